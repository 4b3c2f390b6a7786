// Controls: those that every part uses, and those that are drawn from the records of the command line's options.

import { at, h, newId } from "./dom.js";

function labelled(label, element) {
  element.id = newId("field");
  const words = h("label", { for: element.id }, label);
  return element.type === "checkbox" ? h("span", { class: "flag" }, element, words) : h("div", { class: "line" }, words, element);
}

export function flag(label, on, change) {
  const box = h("input", { type: "checkbox", checked: on, onchange: () => change(box.checked) });
  return labelled(label, box);
}

export function choose(label, value, choices, change) {
  const select = h("select", { onchange: () => change(select.value) },
    choices.map(([key, text]) => h("option", { value: key }, text)));
  select.value = value;
  return labelled(label, select);
}

export function text(label, value, change) {
  const input = h("input", { type: "text", maxlength: 300, autocomplete: "off", value: value ?? "",
    onchange: () => change(input.value.trim() || null) });
  return labelled(label, input);
}

export function number(label, value, limits, change) {
  const input = h("input", { type: "number", ...limits, value: value ?? "",
    onchange: () => input.reportValidity() && change(input.value === "" ? null : Number(input.value)) });
  return labelled(label, input);
}

// A labelled slider with its value beside it; `change` is called while the hand moves.
function slider(one, label, value, disabled, change) {
  const id = newId("slider");
  const show = () => Number(range.value).toFixed(one.step < 0.1 ? 2 : 1);
  const output = h("output", { for: id });
  const range = h("input", { type: "range", id, min: one.least, max: one.most, step: one.step, disabled, value,
    oninput: () => { output.textContent = show(); change(Number(range.value)); } });
  output.textContent = show();
  return h("div", { class: "slider" }, h("label", { for: id }, label), range, output);
}

// A slider with a tick, without which its value is null.
export function wish(one, { label, spoken, value, disabled = false }, change) {
  const row = slider(one, label, value ?? one.start, disabled || value === null, change);
  const range = row.querySelector("input");
  const box = h("input", { type: "checkbox", checked: value !== null, disabled, "aria-label": spoken,
    onchange: () => { range.disabled = !box.checked; change(box.checked ? Number(range.value) : null); } });
  return h("div", { class: "wish" }, box, row);
}

const MANY = 40; // names that are listed without a box to scroll in

export function checks(title, names, chosen, change, { help = null, ifNone = null } = {}) {
  return h("fieldset", null, h("legend", null, title), help && h("p", { class: "soft" }, help),
    h("div", { class: names.length > MANY ? "checks many" : "checks" }, names.map((name) =>
      flag(name, chosen.includes(name), (on) => change(on ? [...chosen, name] : chosen.filter((other) => other !== name))))),
    ifNone && chosen.length === 0 && h("p", { class: "soft" }, ifNone));
}

// What is asked of a rate: one number for all columns, or one for each.
export const rateOf = (asked, column) => (asked !== null && typeof asked === "object" ? at(asked, column) : asked) ?? null;
export const withRate = (options, name, column, rate) => (column === null ? rate
  : { ...Object.fromEntries(options.protected.map((other) => [other, rateOf(options[name], other)])), [column]: rate });

// ---------------------------------------------------------------- options of the command line

const capital = ([key, words]) => [key, key === words ? words : words[0].toUpperCase() + words.slice(1)];
const DRAWN = {
  flag: (one, value, change) => flag(one.label, value ?? false, change),
  choice: (one, value, change) => choose(one.label, value ?? one.default ?? "",
    [...(one.default === null ? [["", "automatic"]] : []), ...one.choices.map(capital)], (chosen) => change(chosen || null)),
  whole: (one, value, change) => number(one.label, value ?? one.default, { min: one.least, step: 1 }, change),
  number: (one, value, change) => number(one.label, value ?? one.default, { min: 0, step: "any" }, change),
  text: (one, value, change) => text(one.label, value ?? one.default, change),
  // An empty cell is missing whatever else is; a column has a name.
  texts: (one, value, change) => text(one.label, (value ?? []).filter(Boolean).join(", "),
    (words) => change(words ? [...(one.name === "missing" ? [""] : []), ...words.split(",").map((word) => word.trim())] : null)),
  slider: (one, value, change) => (one.optional
    ? wish(one, { label: one.label, spoken: `${one.label}: on or off`, value: value ?? null }, change)
    : slider(one, one.label, value ?? one.start, false, change)),
};

// Whether an option means anything beside the others.
export const isGiven = (value) => ![null, undefined, false, "none", ""].includes(value);
const means = (one, values) => Object.entries(one.only_if).every(([name, allowed]) => {
  const value = isGiven(values[name]) ? values[name] : null;
  return allowed.includes(value) || (value !== null && allowed.includes("given"));
});

// All options of a form that mean something, each with its help under it; `change` gets the value of the one that was
// changed, by its name, and whether other controls may depend on it.
export const form = (records, values, change) => records.filter((one) => means(one, values)).map((one) => {
  const value = values[one.name], id = newId("help");
  const drawn = DRAWN[one.kind](one, value, (changed) => change({ [one.name]: changed }, { draw: ["flag", "choice"].includes(one.kind) }));
  drawn.querySelector("input, select").setAttribute("aria-describedby", id);
  return h("div", { class: "option" }, drawn, h("p", { class: "soft", id }, one.helps?.[value ?? one.default] ?? one.help));
});
