// Controls: those that every part uses, and those that are drawn from the records of the command line's options.

import { h, newId } from "./dom.js";

export function flag(label, on, change) {
  const id = newId("flag");
  const box = h("input", { type: "checkbox", id, checked: on, onchange: () => change(box.checked) });
  return h("span", { class: "flag" }, box, h("label", { for: id }, label));
}

export function choose(label, value, choices, change) {
  const id = newId("choose");
  const select = h("select", { id, onchange: () => change(select.value) },
    choices.map(([key, text]) => h("option", { value: key }, text)));
  select.value = value;
  return h("div", { class: "line" }, h("label", { for: id }, label), select);
}

export function text(label, value, change) {
  const id = newId("text");
  const input = h("input", { type: "text", id, maxlength: 300, autocomplete: "off", onchange: () => change(input.value.trim() || null) });
  input.value = value ?? "";
  return h("div", { class: "line" }, h("label", { for: id }, label), input);
}

export function number(label, value, { min = null, max = null, step = 1 }, change) {
  const id = newId("number");
  const input = h("input", { type: "number", id, min, max, step, onchange: () =>
    input.reportValidity() && change(input.value === "" ? null : Number(input.value)) });
  input.value = value ?? "";
  return h("div", { class: "line" }, h("label", { for: id }, label), input);
}

// A labelled slider with its value beside it; `input` is called while the hand moves.
export function slider({ label, value, min, max, step, disabled, show, input }) {
  const id = newId("slider");
  const output = h("output", { for: id }, show(value));
  const range = h("input", { type: "range", id, min, max, step, disabled, oninput: () => {
    output.textContent = show(Number(range.value));
    input(Number(range.value));
  } });
  range.value = value;
  return h("div", { class: "slider" }, h("label", { for: id }, label), range, output);
}

const MANY = 40; // names that are listed without a box to scroll in

export function checks(title, names, chosen, change, { help = null, ifNone = null } = {}) {
  return h("fieldset", null, h("legend", null, title), help && h("p", { class: "soft" }, help),
    h("div", { class: names.length > MANY ? "checks many" : "checks" }, names.map((name) => {
      const id = newId("check");
      const box = h("input", { type: "checkbox", id, checked: chosen.includes(name), onchange: () =>
        change(box.checked ? [...chosen, name] : chosen.filter((other) => other !== name)) });
      return h("span", null, box, h("label", { for: id }, name));
    })),
    ifNone && chosen.length === 0 && h("p", { class: "soft" }, ifNone));
}

const USUAL = "automatic";
const parts = (words) => words.split(",").map((word) => word.trim());
const DRAWN = {
  flag: (one, value, change) => flag(one.label, value ?? false, change),
  choice: (one, value, change) => choose(one.label, value ?? one.default ?? "",
    [...(one.default === null ? [["", USUAL]] : []), ...one.choices.map((choice) => [choice, choice])],
    (chosen) => change(chosen || null)),
  whole: (one, value, change) => number(one.label, value ?? one.default, { min: one.least }, change),
  number: (one, value, change) => number(one.label, value ?? one.default, { min: 0, step: "any" }, change),
  text: (one, value, change) => text(one.label, value ?? one.default, change),
  // An empty cell is missing whatever else is.
  texts: (one, value, change) => text(one.label, (value ?? []).filter(Boolean).join(", "),
    (words) => change(words ? ["", ...parts(words)] : null)),
};

// One control for an option of the command line, with the command line's own help under it.
export function control(one, value, change) {
  const drawn = DRAWN[one.kind](one, value, change);
  const id = newId("help");
  drawn.querySelector("input, select").setAttribute("aria-describedby", id);
  return h("div", { class: "option" }, drawn, h("p", { class: "soft", id }, one.help));
}

// All options of a form; `change` gets the name and the value of the one that was changed.
export const form = (records, values, change) =>
  records.map((one) => control(one, values[one.name], (value) => change({ [one.name]: value })));
