// Columns: how each is read, and which are left out.

import { at, h, table } from "./dom.js";
import { choose, form, text } from "./form.js";
import { whole } from "./format.js";

const KINDS = [["", "automatic"], ["categorical", "categories"], ["ordered", "ordered categories"], ["numeric", "numbers"],
  ["date", "dates"], ["boolean", "true or false"]];

export function drawColumns(state, options, change, again) {
  const { look } = state;
  const dropped = options.drop ?? [];
  const kept = options.keep_columns ?? [];
  const taken = [options.outcome, options.weight, ...options.protected, ...Object.keys(options.within ?? {}), ...Object.keys(options.also ?? {})];
  const button = (label, spoken, values) => h("button", { type: "button", "aria-label": spoken, onclick: () => change(values) }, label);
  const identifier = (name) => `looks like an identifier: ${kept.includes(name) ? "kept, as you asked; see above" : "left out of new rows"}`;
  const action = ({ name, identifier: looksLikeOne }) => {
    if (taken.includes(name)) return "";
    if (!looksLikeOne) return button("Leave out", `Leave out ${name}`, { drop: [...dropped, name], ...forgotten(options, name) });
    return kept.includes(name) ? button("Do not keep", `Do not keep ${name}`, { keep_columns: kept.filter((other) => other !== name) })
      : button("Keep", `Keep ${name}`, { keep_columns: [...kept, name] });
  };
  const rows = look.columns.map((column) => [column.name, column.kind, whole(column.values), whole(column.missing),
    column.identifier ? identifier(column.name) : column.levels.join(", ") + (column.more ? `, and ${column.more} more` : ""),
    action(column)]);
  return h("details", null, h("summary", null, `All ${look.columns.length} columns`),
    table("Columns", ["Column", "kind", "values", "missing", "levels", "keep or leave out"], rows, [2, 3], 4),
    dropped.length > 0 && h("p", null, "Left out: ", dropped.map((name) => [
      button(`${name} – put back`, `Put ${name} back`, { drop: dropped.filter((other) => other !== name) }), " "])),
    readDifferently(state, options, change, again));
}

// One column is chosen, and its kind, bins and order can be set; what was set is listed.
let shown = "";
function readDifferently(state, options, change, again) {
  const names = state.look.columns.map((column) => column.name);
  const column = state.look.columns.find((one) => one.name === shown) ?? state.look.columns[0];
  const said = ["kinds", "bins", "order"].flatMap((option) => Object.keys(byColumn(options[option])).map((name) => [option, name]));
  const set = (option, value) => {
    const rest = Object.fromEntries(Object.entries(byColumn(options[option])).filter(([name]) => name !== column.name));
    const all = value === null ? rest : { ...rest, [column.name]: value };
    change({ [option]: Object.keys(all).length ? all : null });
  };
  return h("div", null, h("h3", null, "Read a column differently"),
    choose("Column", column.name, names.map((name) => [name, name]), (name) => { shown = name; again(); }),
    choose(`Read ${column.name} as`, at(byColumn(options.kinds), column.name) ?? "", KINDS, (kind) => set("kinds", kind || null)),
    ["numeric", "date"].includes(column.kind) && text(`Bins of ${column.name} (a number, or edges: 0, 18, 65, 120)`,
      [at(byColumn(options.bins), column.name) ?? []].flat().join(", "), (words) => set("bins", bins(words))),
    ["categorical", "ordered"].includes(column.kind) && text(`Order of the levels of ${column.name} (small, medium, large)`,
      (at(byColumn(options.order), column.name) ?? []).join(", "), (words) => set("order", words && words.split(",").map((word) => word.trim()))),
    said.length > 0 && h("p", null, "Read differently: ", said.map(([option, name]) => [h("button", { type: "button",
      "aria-label": `Read the ${option} of ${name} automatically`, onclick: () => change({ [option]: without(options[option], name) }) },
    `${name}: ${option} – automatic`), " "])),
    form(state.forms.columns, options, change));
}

const byColumn = (values) => (values !== null && typeof values === "object" ? values : {});

function without(values, name) {
  const rest = Object.fromEntries(Object.entries(byColumn(values)).filter(([other]) => other !== name));
  return Object.keys(rest).length ? rest : null;
}

// What was said of a column that is left out is forgotten.
const forgotten = (options, name) => Object.fromEntries(["kinds", "bins", "order", "target"].map((option) => [option, without(options[option], name)]));

function bins(words) {
  if (!words) return null;
  const numbers = words.split(",").map((word) => Number(word.trim()));
  if (numbers.some(Number.isNaN)) return words; // the server says what is wrong
  return numbers.length === 1 ? numbers[0] : numbers;
}
