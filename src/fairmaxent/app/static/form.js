// @ts-check
// Controls: those that every part uses, and those that are drawn from the records of the command line's options.

import { Component, at, h, newId, soft } from "./dom.js";

// A control and its label, which keep their id while the page is drawn again.
class Labelled extends Component {
  constructor(props) {
    super(props);
    this.id = newId("field");
  }
  render({ label, draw, isBox, help, disabled }) {
    const id = this.id, words = h("label", { for: id }, label);
    const control = draw({ id, disabled, "aria-describedby": help ? `${id}-help` : null });
    const line = isBox ? h("span", { class: "flag" }, control, words) : h("div", { class: "line" }, words, control);
    return help ? h("div", { class: "option" }, line, h("p", { class: "soft", id: `${id}-help` }, help)) : line;
  }
}
const labelled = (label, draw, more = {}) => h(Labelled, { label, draw, ...more });

// A field whose text is the user's until it is left; what was drawn meanwhile does not change it.
export class Typed extends Component {
  render({ value, change, ...more }) {
    const leave = (event) => {
      const field = event.target;
      if (field.reportValidity && !field.reportValidity()) return;
      const text = this.typed;
      this.typed = undefined;
      if (text !== undefined) change(text);
      this.setState({});
    };
    return h(more.rows ? "textarea" : "input", { autocomplete: "off", ...more, value: this.typed ?? value ?? "",
      oninput: (event) => { this.typed = event.target.value; this.setState({}); }, onchange: leave });
  }
}

export const flag = (label, on, change, more) => labelled(label, (given) =>
  h("input", { type: "checkbox", checked: on, onchange: (event) => change(event.target.checked), ...given }),
{ isBox: true, ...more });

export const choose = (label, value, choices, change, more) => labelled(label, (given) =>
  h("select", { value, onchange: (event) => change(event.target.value), ...given },
    choices.map(([key, text]) => h("option", { value: key, key, selected: key === value }, text))), more);

// Columns to choose from, and what it is called if none is.
export const named = (none, columns) => [["", none], ...columns.map(({ name }) => [name, name])];

export const text = (label, value, change, more) => labelled(label, (given) =>
  h(Typed, { type: "text", maxlength: 300, value, change: (words) => change(words.trim() || null), ...given }), more);

export const number = (label, value, limits, change, more) => labelled(label, (given) =>
  h(Typed, { type: "number", ...limits, value, change: (words) => change(words === "" ? null : Number(words)),
    ...given }), more);

// A labelled slider with a field for its value beside it; `change` is called while the hand moves.
class Slider extends Component {
  constructor(props) {
    super(props);
    this.id = newId("slider");
  }
  render({ one, label, spoken, said, value, disabled, change }) {
    const { least: min, most: max, step } = one, digits = step < 0.1 ? 2 : 1;
    const move = (next) => change(Math.min(max, Math.max(min, Number(next))), true);
    return h("div", { class: "slider" }, h("label", { for: this.id }, label),
      h("input", { type: "range", id: this.id, min, max, step, disabled, value, "aria-label": spoken,
        "aria-valuetext": said, oninput: (event) => move(event.target.value) }),
      h(Typed, { type: "number", min, max, step, disabled, "aria-label": `${spoken ?? label}, as a number`,
        value: Number(value).toFixed(digits), change: (words) => words !== "" && change(Number(words), false) }));
  }
}

// A slider with a tick, without which its value is null.
export function wish(one, about, change) {
  const { label, spoken, ticked, said, value, disabled = false } = about, isOn = value !== null;
  return h("div", { class: "wish" },
    h("input", { type: "checkbox", checked: isOn, disabled, "aria-label": ticked,
      onchange: (event) => change(event.target.checked ? one.start : null, false) }),
    h(Slider, { one, label, spoken, said, value: value ?? one.start, disabled: disabled || !isOn, change }));
}

const MANY = 40; // names that are listed without a box to scroll in

export function checks(title, names, chosen, change, { help = "", ifNone = "" } = {}) {
  const next = (name, on) => (on ? [...chosen, name] : chosen.filter((other) => other !== name));
  return h("fieldset", null, h("legend", null, title), help && soft(help),
    h("div", { class: names.length > MANY ? "checks many" : "checks" }, names.map((name) =>
      flag(name, chosen.includes(name), (on) => change(next(name, on)), { key: name }))),
    ifNone && chosen.length === 0 && soft(ifNone));
}

// What is asked of a rate: one number for all columns, or one for each.
export const rateOf = (asked, column) =>
  (asked !== null && typeof asked === "object" ? at(asked, column) : asked) ?? null;
export const withRate = (options, name, column, rate) => (column === null ? rate
  : { ...Object.fromEntries(options.protected.map((other) => [other, rateOf(options[name], other)])), [column]: rate });

// If other columns are compared, the wish of each column stays with it, and a new one has the usual wish.
export function keptRates(forms, options, columns) {
  const wished = (name, column, usual) => (options.protected.includes(column) ? rateOf(options[name], column) : usual);
  const isJoint = options.groups === "joint";
  return Object.fromEntries(forms.map(({ name, optional, start }) => {
    const usual = optional ? null : start, asked = isJoint ? options.protected.slice(0, 1) : columns;
    const rates = asked.map((column) => [column, wished(name, column, usual)]);
    const isSame = rates.every(([, rate]) => rate === rates[0][1]);
    return [name, isSame ? rates[0]?.[1] ?? null : Object.fromEntries(rates)];
  }));
}

// ---------------------------------------------------------------- options of the command line

const capital = ([key, words]) => [key, key === words ? words : words[0].toUpperCase() + words.slice(1)];
const halves = (pair) => [0, 1].map((half) => pair.split("=")[half]?.trim() ?? "");
const DRAWN = {
  flag: (one, value, change, more) => flag(one.label, value ?? false, change, more),
  choice: (one, value, change, more) => choose(one.label, value ?? one.default ?? "",
    [...(one.default === null ? [["", "automatic"]] : []), ...one.choices.map(capital)],
    (chosen) => change(chosen || null), more),
  whole: (one, value, change, more) =>
    number(one.label, value ?? one.default, { min: one.least, step: 1 }, change, more),
  number: (one, value, change, more) => number(one.label, value ?? one.default, { min: 0, step: "any" }, change, more),
  text: (one, value, change, more) => text(one.label, value ?? one.default, change, more),
  // An empty cell is missing whatever else is; a column has a name.
  texts: (one, value, change, more) => text(one.label, (value ?? []).filter(Boolean).join(", "), (words) => change(words
    ? [...(one.name === "missing_text" ? [""] : []), ...words.split(",").map((word) => word.trim())] : null), more),
  // Combinations of columns with a value each: "sex = male, pregnant = yes; …".
  pairs: (one, value, change, more) => text(one.label, (value ?? []).map((pairs) =>
    Object.entries(pairs).map((pair) => pair.join(" = ")).join(", ")).join("; "), (words) => change(words &&
    words.split(";").map((pairs) => Object.fromEntries(pairs.split(",").map(halves)))), more),
  slider: (one, value, change, more) => h("div", { class: "option" }, one.optional
    ? wish(one, { label: one.label, ticked: `${one.label}: on or off`, value: value ?? null,
      disabled: more.disabled }, change)
    : h(Slider, { one, label: one.label, value: value ?? one.start, disabled: more.disabled, change }),
  soft(more.help)),
};

export const isGiven = (value) => ![null, undefined, false, "none", ""].includes(value);
// The rows of the table of what is refused that are in the way of an option.
const refusals = (one, values) => one.refused.filter((row) => {
  const value = isGiven(values[row.other]) ? values[row.other] : row.default;
  const given = isGiven(value) && value !== row.default;
  if (row.is === "given") return given;
  return row.is === "missing" ? !given : row.is.includes(value);
});

// Whether an option is no part of another, or that is there, too; and whether it is asked for at all.
const isWhole = (one, values) => one.part_of === one.name || isGiven(values[one.part_of]);
export const isAsked = (one, values) => isWhole(one, values) && refusals(one, values).length === 0;

// All options of a form, each with its help under it. One that is refused beside the others is greyed out and says why;
// one that needs another is not there without it. `change` gets the value of the one that was changed, by its name, and
// whether a hand is at it.
export const form = (records, values, change) => records.map((one) => {
  const refused = refusals(one, values), off = refused.length > 0, value = off ? null : values[one.name];
  if (refused.some((row) => row.is === "missing") || !isWhole(one, values)) return null;
  const help = off ? refused[0].why : one.helps?.[value ?? one.default] ?? one.help;
  return DRAWN[one.kind](one, value, (changed, moving = false) => change({ [one.name]: changed }, { moving }),
    { key: one.name, help, disabled: off });
});
