// @ts-check
// Controls: those that every part uses, and those that are drawn from the records of the command
// line's options.

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
    const line = isBox
      ? h("span", { class: "flag" }, control, words)
      : h("div", { class: "line" }, words, control);
    if (!help) return line;
    return h("div", { class: "option" }, line, h("p", { class: "soft", id: `${id}-help` }, help));
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
    const type = (event) => {
      this.typed = event.target.value;
      this.setState({});
    };
    return h(more.rows ? "textarea" : "input", { autocomplete: "off", ...more,
      value: this.typed ?? value ?? "", oninput: type, onchange: leave });
  }
}

export const flag = (label, on, change, more) => labelled(label, (given) =>
  h("input", { type: "checkbox", checked: on, ...given,
    onchange: (event) => change(event.target.checked) }),
{ isBox: true, ...more });

export const choose = (label, value, choices, change, more) => labelled(label, (given) =>
  h("select", { value, onchange: (event) => change(event.target.value), ...given },
    choices.map(([key, text]) =>
      h("option", { value: key, key, selected: key === value }, text))),
more);

// Columns to choose from, and what it is called if none is.
export const named = (none, columns) => [["", none], ...columns.map(({ name }) => [name, name])];

export const text = (label, value, change, more) => labelled(label, (given) =>
  h(Typed, { type: "text", maxlength: 300, value, ...given,
    change: (words) => change(words.trim() || null) }),
more);

export const number = (label, value, limits, change, more) => labelled(label, (given) =>
  h(Typed, { type: "number", ...limits, value, ...given,
    change: (words) => change(words === "" ? null : Number(words)) }),
more);

// A labelled slider with a field for its value beside it; `change` is called while the hand moves.
class Slider extends Component {
  constructor(props) {
    super(props);
    this.id = newId("slider");
  }
  render({ one, label, value, disabled, change }) {
    const { least: min, most: max, step } = one, digits = step < 0.1 ? 2 : 1;
    return h("div", { class: "slider" },
      h("label", { for: this.id }, label),
      h("input", { type: "range", id: this.id, min, max, step, disabled, value,
        oninput: (event) => change(Number(event.target.value)) }),
      h(Typed, { type: "number", min, max, step, disabled, "aria-label": `${label}, as a number`,
        value: Number(value).toFixed(digits),
        change: (words) => words !== "" && change(Number(words)) }));
  }
}

// A slider with a tick, without which its value is null.
function optional(one, value, disabled, change) {
  const isOn = value !== null;
  return h("div", { class: "wish" },
    h("input", { type: "checkbox", checked: isOn, disabled, "aria-label": `${one.label}: on or off`,
      onchange: (event) => change(event.target.checked ? one.start : null) }),
    h(Slider, { one, label: one.label, value: value ?? one.start, disabled: disabled || !isOn,
      change }));
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
// The columns of groups, and what groups that are only likely are called.
export const comparedIn = ({ protected: names, likely }) =>
  (isGiven(likely) ? [...names, likely.split(":")[0].trim()] : names);
export function withRate(options, name, column, rate) {
  if (column === null) return rate;
  const all = comparedIn(options).map((other) => [other, rateOf(options[name], other)]);
  return { ...Object.fromEntries(all), [column]: rate };
}

// If other columns are compared, the wish of each column stays with it, and a new one has the usual
// wish.
export function keptRates(forms, options, columns) {
  const isJoint = options.groups === "joint";
  const asked = isJoint ? options.protected.slice(0, 1) : columns;
  return Object.fromEntries(forms.map(({ name, optional: isOptional, start }) => {
    const wish = (column) => {
      if (options.protected.includes(column)) return rateOf(options[name], column);
      return isOptional ? null : start;
    };
    const rates = asked.map((column) => [column, wish(column)]);
    const isSame = rates.every(([, rate]) => rate === rates[0][1]);
    return [name, isSame ? rates[0]?.[1] ?? null : Object.fromEntries(rates)];
  }));
}

// One rate for all columns of groups together: the first that is asked for.
export function singleRates(names, options) {
  const all = (asked) =>
    (asked !== null && typeof asked === "object" ? Object.values(asked) : [asked]);
  const first = (asked) => all(asked).find((rate) => rate !== null && rate !== undefined) ?? null;
  return Object.fromEntries(names.map((name) => [name, first(options[name])]));
}

// ---------------------------------------------------------------- options of the command line

const capital = ([key, words]) =>
  [key, key === words ? words : words[0].toUpperCase() + words.slice(1)];
const trimmed = (words, mark) => words.split(mark).map((word) => word.trim());

// Combinations of columns with a value each: "sex = male, pregnant = yes; …".
const written = (combinations) => combinations.map((pairs) =>
  Object.entries(pairs).map((pair) => pair.join(" = ")).join(", ")).join("; ");
const read = (words) => words.split(";").map((pairs) => Object.fromEntries(
  pairs.split(",").map((pair) => [0, 1].map((half) => trimmed(pair, "=")[half] ?? ""))));

const DRAWN = {
  flag: (one, value, change, more) => flag(one.label, value ?? false, change, more),
  choice: (one, value, change, more) => choose(one.label, value ?? one.default ?? "",
    [...(one.default === null ? [["", "automatic"]] : []), ...one.choices.map(capital)],
    (chosen) => change(chosen || null), more),
  whole: (one, value, change, more) =>
    number(one.label, value ?? one.default, { min: one.least, step: 1 }, change, more),
  number: (one, value, change, more) =>
    number(one.label, value ?? one.default, { min: 0, step: "any" }, change, more),
  text: (one, value, change, more) => text(one.label, value ?? one.default, change, more),
  texts: (one, value, change, more) => {
    // An empty cell is missing whatever else is; a column has a name.
    const first = one.name === "missing_text" ? [""] : [];
    return text(one.label, (value ?? []).filter(Boolean).join(", "),
      (words) => change(words ? [...first, ...trimmed(words, ",")] : null), more);
  },
  pairs: (one, value, change, more) =>
    text(one.label, written(value ?? []), (words) => change(words && read(words)), more),
  slider: (one, value, change, more) => h("div", { class: "option" },
    one.optional
      ? optional(one, value ?? null, more.disabled, change)
      : h(Slider, { one, label: one.label, value: value ?? one.start, disabled: more.disabled,
        change }),
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

// Whether an option is no part of another, or that is there, too; and whether it is asked for.
const isWhole = (one, values) => one.part_of === one.name || isGiven(values[one.part_of]);
export const isAsked = (one, values) => isWhole(one, values) && refusals(one, values).length === 0;

// All options of a form, each with its help under it. One that is refused beside the others is
// greyed out and says why; one that needs another is not there without it. `change` gets the value
// of the one that was changed, by its name.
export const form = (records, values, change) => records.map((one) => {
  const refused = refusals(one, values), off = refused.length > 0;
  if (refused.some((row) => row.is === "missing") || !isWhole(one, values)) return null;
  const value = off ? null : values[one.name];
  const help = off ? refused[0].why : one.helps?.[value ?? one.default] ?? one.help;
  return DRAWN[one.kind](one, value, (changed) => change({ [one.name]: changed }),
    { key: one.name, help, disabled: off });
});
