// @ts-check
// What the table holds, and how it is read: a drawer behind the table's name.

import { fileAddress } from "./api.js";
import { Component, at, button, folded, h, listed, soft, table } from "./dom.js";
import { choose, form, text } from "./form.js";
import { joined, percent, span, whole, withMerging } from "./format.js";
import { Reading } from "./opening.js";
import { changeRoles as change, readAgain, store } from "./store.js";

const SHOWN = 4; // outcomes, a table each
const KINDS = [["", "automatic"], ["categorical", "categories"], ["ordered", "ordered categories"],
  ["numeric", "numbers"], ["date", "dates"], ["boolean", "true or false"]];
const SET = ["kinds", "bins", "order"]; // what can be set of a column

export function lookPart() {
  const { state, options } = store, { look, table: file } = state;
  return h("div", { id: "look" },
    h("h2", null, file.title),
    soft(`${whole(look.rows)} rows, ${look.columns.length} columns.`, file.offered && [" ",
      h("a", { href: fileAddress(0, file.name), download: "" }, "Download this table"), "."]),
    reasons(look, options),
    look.verdicts.map((verdict) => h("p", { class: "verdict" }, verdict)),
    look.groupings.map(groups), notes(look), columns(state, options),
    h(Reading, { file, key: file.number }));
}

// Levels that are perhaps only written differently, "Sí" and "sí": a button makes them one.
export function alike(name) {
  const { look, table: { number, reading } } = store.state;
  const names = look.alike[name], given = reading.levels ?? {};
  const pairs = Object.entries(names)
    .map((pair) => pair.map((level) => `“${level}”`).join(" and "));
  const levels = { ...given, [name]: joined(at(given, name), names) };
  return h("p", { class: "notice", key: name },
    h("span", null, `Perhaps the same in ${name}: ${pairs.join("; ")}.`), " ",
    button("Make them one", () => readAgain(number, { ...reading, levels }),
      { "aria-label": `Make the levels of ${name} one that are perhaps the same` }));
}

function reasons(look, options) {
  const words = { outcome: "outcome", favourable: "good outcome", protected: "group" };
  const isFollowed = (one) => [options[one.role]].flat().includes(one.value);
  const why = ({ reason }) => reason.replace(/its name \('[^']*'\)/, "because of its name");
  const say = (one) => `${one.value} as ${words[one.role]} (${why(one)})`;
  const followed = look.reasons.filter(isFollowed);
  const others = look.reasons.filter((one) => !isFollowed(one));
  const said = look.reasons.map((one) => one.reason);
  const more = withMerging(said).slice(said.length).join(" ");
  return [
    followed.length > 0 && soft(`Guessed, so please check: ${followed.map(say).join("; ")}.`),
    others.length > 0 && soft(`Perhaps: ${others.map(say).join("; ")}. ${more}`),
  ];
}

// Each group with its rate; of many outcomes, the first.
function groups({ name, groups: all }) {
  const outcomes = [...new Set(all.map((group) => group.outcome))];
  const left = outcomes.length - SHOWN;
  const range = ({ interval }) => (interval ? ` (${span(...interval, percent)})` : "");
  const row = (group) => [group.group, `${whole(group.rows)} (${percent(group.share)})`,
    percent(group.rate) + range(group)];
  const one = (outcome) => table(`How often each group of ${name} gets “${outcome}”`,
    ["Group", "rows (share)", `“${outcome}” (95 % interval)`],
    all.filter((group) => group.outcome === outcome).map(row), [1, 2]);
  return [outcomes.slice(0, SHOWN).map(one),
    left > 0 && soft(`${left} more outcomes are not shown.`)];
}

function notes(look) {
  const rows = look.proxies.map((proxy) =>
    [proxy.column, proxy.protected, percent(proxy.strength)]);
  return [
    look.notes.length > 0 && h("div", { class: "notes" },
      h("h3", null, "What to watch out for"), listed(withMerging(look.notes))),
    rows.length > 0 && folded("Columns that predict a group", false,
      table("Columns that predict a group", ["Column", "predicts", "how well"], rows, [2])),
  ];
}

// ---------------------------------------------------------------- columns

const press = (label, spoken, values) =>
  button(label, () => change(values), { "aria-label": spoken });

// What can be done with a column that has no role: leave it out, or keep it.
function action({ name, identifier }, options, keep) {
  const taken = [options.outcome, options.weight, ...options.protected,
    ...Object.keys(options.within ?? {}), ...Object.keys(options.further_outcomes ?? {})];
  if (taken.includes(name)) return "";
  if (!identifier) {
    // What was said of a column that is left out is forgotten.
    const forgotten = Object.fromEntries([...SET, "target"].map((option) =>
      [option, without(options[option], name)]));
    const drop = [...options.drop ?? [], name];
    return press("Leave out", `Leave out ${name}`, { drop, ...forgotten });
  }
  const kept = options[keep] ?? [];
  return kept.includes(name)
    ? press("Do not keep", `Do not keep ${name}`,
      { [keep]: kept.filter((other) => other !== name) })
    : press("Keep", `Keep ${name}`, { [keep]: [...kept, name] });
}

function columns(state, options) {
  const { look, forms: { kept: [{ name: keep }] } } = state;
  const dropped = options.drop ?? [], kept = options[keep] ?? [];
  const levels = ({ name, identifier, levels: all }) => {
    if (!identifier) return all;
    const what = kept.includes(name) ? "kept, as you asked; see above" : "left out of new rows";
    return `looks like an identifier: ${what}`;
  };
  const rows = look.columns.map((column) => [column.name, column.kind, whole(column.values),
    whole(column.missing), levels(column), action(column, options, keep)]);
  const back = (name) => [press(`${name} – put back`, `Put ${name} back`,
    { drop: dropped.filter((other) => other !== name) }), " "];
  return folded(`All ${look.columns.length} columns`, false,
    table("Columns", ["Column", "kind", "values", "missing", "levels", "keep or leave out"], rows,
      [2, 3], 4),
    dropped.length > 0 && h("p", null, "Left out: ", dropped.map(back)),
    h(ReadDifferently, { state, options }));
}

const byColumn = (values) => (values !== null && typeof values === "object" ? values : {});
const split = (value) => value.split(",").map((word) => word.trim());

// One column is chosen, and its kind, bins and order can be set; what was set is listed.
class ReadDifferently extends Component {
  render({ state, options }) {
    const all = state.look.columns;
    const column = all.find((one) => one.name === this.state.shown) ?? all[0];
    return h("div", null, h("h3", null, "Read a column differently"),
      choose("Column", column.name, all.map((one) => [one.name, one.name]),
        (shown) => this.setState({ shown })),
      settings(column, options), given(options), renaming([column.name]),
      form(state.forms.columns, options, change));
  }
}

function settings({ name, kind }, options) {
  const present = (option) => at(byColumn(options[option]), name);
  const set = (option, value) => change({ [option]: value === null
    ? without(options[option], name)
    : { ...byColumn(options[option]), [name]: value } });
  return [
    choose(`Read ${name} as`, present("kinds") ?? "", KINDS,
      (chosen) => set("kinds", chosen || null)),
    ["numeric", "date"].includes(kind) &&
      text(`Bins of ${name} (a number, or edges: 0, 18, 65, 120)`,
        [present("bins") ?? []].flat().join(", "),
        (value) => set("bins", value && bins(split(value), value))),
    ["categorical", "ordered"].includes(kind) &&
      text(`Order of the levels of ${name} (small, medium, large)`,
        (present("order") ?? []).join(", "), (value) => set("order", value && split(value))),
  ];
}

function given(options) {
  const all = SET.flatMap((option) =>
    Object.keys(byColumn(options[option])).map((name) => ({ option, name })));
  const automatic = ({ option, name }) => [press(`${name}: ${option} – automatic`,
    `Read the ${option} of ${name} automatically`,
    { [option]: without(options[option], name) }), " "];
  return all.length > 0 && h("p", null, "Read differently: ", all.map(automatic));
}

export function without(values, name) {
  const rest = Object.entries(byColumn(values)).filter(([other]) => other !== name);
  return rest.length ? Object.fromEntries(rest) : null;
}

function bins(words, typed) {
  const numbers = words.map(Number);
  if (numbers.some(Number.isNaN)) return typed; // the server says what is wrong
  return numbers.length === 1 ? numbers[0] : numbers;
}

// ---------------------------------------------------------------- names of levels

// Columns whose levels can be given names where they are chosen.
export function renaming(names) {
  const { look, table: file } = store.state;
  return look.columns.filter(({ name, choices }) => names.includes(name) && choices.length > 0)
    .map((column) => h(Names, { column, file, key: `${file.number} ${column.name}` }));
}

// New names for the levels of a column; those that get the same one are merged. The file is then
// read again.
class Names extends Component {
  render({ column: { name, choices }, file }) {
    const known = file.reading.levels ?? {}, old = at(known, name) ?? {};
    const typed = this.state.names ?? {};
    const codes = (level) => {
      const own = Object.keys(old).filter((code) => old[code] === level);
      return own.length ? own : [level];
    };
    const send = () => {
      const pairs = choices.flatMap((level) =>
        codes(level).map((code) => [code, at(typed, level) ?? level]));
      const levels = Object.fromEntries(pairs.filter(([code, word]) => code !== word));
      readAgain(file.number, { ...file.reading, levels: { ...known, [name]: levels } });
    };
    const field = (level) => text(`Name of ${name} = ${level}`, at(typed, level) ?? level,
      (word) => this.setState({ names: { ...this.state.names, [level]: word ?? level } }),
      { key: level });
    return folded(`Names of the levels of ${name}`, false,
      soft("Levels that get the same name are merged."), choices.map(field),
      button(`Rename the levels of ${name}`, send));
  }
}
