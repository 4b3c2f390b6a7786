// @ts-check
// Look: who is compared, as chips; and in a drawer what the table holds, and how it is read.

import { fileAddress } from "./api.js";
import { Component, Folded, at, button, folded, h, section, soft, table } from "./dom.js";
import { Typed, checks, choose, form, named, text } from "./form.js";
import { joined, percent, span, whole, withMerging } from "./format.js";
import { Reading } from "./opening.js";
import { atLeast, changeRoles as change, readAgain, store } from "./store.js";

const SHOWN = 4; // outcomes, a table each
const KINDS = [["", "automatic"], ["categorical", "categories"], ["ordered", "ordered categories"],
  ["numeric", "numbers"], ["date", "dates"], ["boolean", "true or false"]];
const SET = ["kinds", "bins", "order"]; // what can be set of a column

export function lookPart() {
  const { state, options } = store, { look, table: file } = state;
  return section("look", file.title, false,
    soft(`${whole(look.rows)} rows, ${look.columns.length} columns.`,
      file.offered && [" ",
        h("a", { href: fileAddress(0, file.name), download: "" }, "Download this table"), "."]),
    roles(look, options), numbersAsOutcome(look, options), perhaps(look, options), Object.keys(look.alike).map(alike),
    folded("What the table holds", false, reasons(look, options),
      look.verdicts.map((verdict) => h("p", { class: "verdict" }, verdict)), look.groupings.map(groups), notes(look),
      columns(state, options), h(Reading, { file, key: file.number })));
}

const chip = (name, value, ...parts) => h(Folded, { kind: "chip", isOpen: !value, key: name,
  title: [h("span", { class: "soft" }, `${name}: `), h("strong", null, value || "choose…")] },
h("div", { class: "menu" }, parts));

function roles(look, options) {
  const usable = look.columns.filter(({ name, identifier }) => !identifier && !(options.drop ?? []).includes(name));
  const chosen = look.columns.find((column) => column.name === options.outcome), good = options.favourable ?? [];
  const possible = usable.map(({ name }) => name).filter((name) => ![options.outcome, options.weight].includes(name));
  return h("div", { class: "chips" },
    choose("Outcome", options.outcome ?? "", named("choose…", usable), (outcome) =>
      change({ outcome, favourable: [], protected: options.protected.filter((name) => name !== outcome) })),
    chosen && chosen.choices.length > 0 && chip("Good outcome", good.join(", ") || "none, all are compared",
      checks("Good outcome", chosen.choices, good, (favourable) => change({ favourable }),
        { ifNone: "None is chosen: every outcome is compared." }), names([options.outcome])),
    chip("Groups", options.protected.join(", "), checks("Groups to compare", possible, options.protected,
      (chosen) => change({ protected: chosen }), { ifNone: "Choose at least one column." }), names(options.protected)));
}

// Columns with codes, whose levels can be given names where they are chosen.
function names(columns) {
  const { look, table: file } = store.state;
  return look.columns.filter(({ name, choices }) => columns.includes(name) && choices.length > 0)
    .map((column) => h(Names, { column, file, key: `${file.number} ${column.name}` }));
}

// An outcome of numbers is compared by its means, or by how many have at least a number that is good.
function numbersAsOutcome(look, options) {
  const column = look.columns.find((one) => one.name === options.outcome);
  if (!column?.range) return null;
  const edges = at(options.bins, column.name), isCut = Array.isArray(edges) && edges.length === 3;
  const [low, high] = isCut ? [edges[0], edges[2]] : column.range, least = isCut ? edges[1] : column.middle;
  const good = (value) => atLeast(column.name, [Math.min(low, value - 1), value, Math.max(high, value + 1)]);
  return h("p", { class: "chips" }, h("span", { class: "soft" }, `${column.name} is a number:`),
    button("Compare means",
      () => change({ equal_means: true, favourable: [], bins: without(options.bins, column.name) }),
      { "aria-pressed": String(Boolean(options.equal_means)) }),
    h("span", { class: "line" }, button("At least", () => good(least), { "aria-pressed": String(isCut) }),
      h(Typed, { type: "number", step: "any", "aria-label": `Good from, of ${column.name}`, value: least,
        change: (words) => good(Number(words)) }), "is good"));
}

// Guesses that were not followed are a button each.
function perhaps(look, options) {
  const others = look.reasons.filter((one) => one.role === "protected" && !options.protected.includes(one.value) &&
    one.value !== options.outcome && look.columns.some((column) => column.name === one.value && !column.identifier));
  return others.length > 0 &&
    h("p", { class: "chips" }, h("span", { class: "soft" }, "Perhaps also: "), others.map((one) =>
    button(one.value, () => change({ protected: [...options.protected, one.value] }),
      { "aria-label": `Compare groups of ${one.value}, too` })));
}

// Levels that are perhaps only written differently, such as "Sí" and "sí": a button makes them one.
function alike(name) {
  const { look, table: { number, reading } } = store.state, names = look.alike[name], given = reading.levels ?? {};
  const pairs = Object.entries(names).map((pair) => pair.map((level) => `“${level}”`).join(" and "));
  return h("p", { class: "chips" }, h("span", { class: "soft" }, `Perhaps the same in ${name}: ${pairs.join("; ")}.`),
    button("Make them one", () =>
      readAgain(number, { ...reading, levels: { ...given, [name]: joined(at(given, name), names) } }),
    { "aria-label": `Make the levels of ${name} one that are perhaps the same` }));
}

function reasons(look, options) {
  const words = { outcome: "outcome", favourable: "good outcome", protected: "group" };
  const isFollowed = (one) => [options[one.role]].flat().includes(one.value);
  const why = ({ reason }) => reason.replace(/its name \('[^']*'\)/, "because of its name");
  const listed = (ones) => ones.map((one) => `${one.value} as ${words[one.role]} (${why(one)})`).join("; ");
  const followed = look.reasons.filter(isFollowed), others = look.reasons.filter((one) => !isFollowed(one));
  const more = withMerging(look.reasons.map((one) => one.reason)).slice(look.reasons.length).join(" ");
  return [followed.length > 0 && soft(`Guessed, so please check: ${listed(followed)}.`),
    others.length > 0 && soft(`Perhaps: ${listed(others)}. ${more}`)];
}

// Each group with its rate and what is missing in it; of many outcomes, the first.
function groups({ name, groups: all }) {
  const outcomes = [...new Set(all.map((group) => group.outcome))], left = outcomes.length - SHOWN;
  const range = (group) => (group.interval ? ` (${span(...group.interval, percent)})` : "");
  const most = (gaps) => (gaps?.most_in ? ` (most in ${gaps.most_in}: ${percent(gaps.most)})` : "");
  return [outcomes.slice(0, SHOWN).map((outcome) => table(`How often each group of ${name} gets “${outcome}”`,
    ["Group", "rows (share)", `“${outcome}” (95 % interval)`, "missing values"],
    all.filter((group) => group.outcome === outcome).map((group) =>
      [group.group, `${whole(group.rows)} (${percent(group.share)})`, percent(group.rate) + range(group),
        percent(group.missing?.share ?? null) + most(group.missing)]), [1, 2, 3])),
  left > 0 && soft(`${left} more outcomes are not shown.`)];
}

function notes(look) {
  return [look.notes.length > 0 && h("div", { class: "notes" }, h("h3", null, "What to watch out for"),
    h("ul", null, withMerging(look.notes).map((note) => h("li", null, note)))),
  look.proxies.length > 0 && folded("Columns that predict a group", false,
    table("Columns that predict a group", ["Column", "predicts", "how well"],
      look.proxies.map((proxy) => [proxy.column, proxy.protected, percent(proxy.strength)]), [2]))];
}

// ---------------------------------------------------------------- columns: how each is read, and which are left out

function columns(state, options) {
  const { look, forms: { kept: [{ name: keep }] } } = state;
  const dropped = options.drop ?? [], kept = options[keep] ?? [];
  const taken = [options.outcome, options.weight, ...options.protected, ...Object.keys(options.within ?? {}),
    ...Object.keys(options.also ?? {})];
  const press = (label, spoken, values) => button(label, () => change(values), { "aria-label": spoken });
  const action = ({ name, identifier }) => {
    if (taken.includes(name)) return "";
    // What was said of a column that is left out is forgotten.
    const forgotten = () =>
      Object.fromEntries([...SET, "target"].map((option) => [option, without(options[option], name)]));
    if (!identifier) return press("Leave out", `Leave out ${name}`, { drop: [...dropped, name], ...forgotten() });
    return kept.includes(name)
      ? press("Do not keep", `Do not keep ${name}`, { [keep]: kept.filter((other) => other !== name) })
      : press("Keep", `Keep ${name}`, { [keep]: [...kept, name] });
  };
  const levels = ({ name, identifier, levels: all }) => (!identifier ? all
    : `looks like an identifier: ${kept.includes(name) ? "kept, as you asked; see above" : "left out of new rows"}`);
  const rows = look.columns.map((column) =>
    [column.name, column.kind, whole(column.values), whole(column.missing), levels(column), action(column)]);
  return folded(`All ${look.columns.length} columns`, false,
    table("Columns", ["Column", "kind", "values", "missing", "levels", "keep or leave out"], rows, [2, 3], 4),
    dropped.length > 0 && h("p", null, "Left out: ", dropped.map((name) => [
      press(`${name} – put back`, `Put ${name} back`, { drop: dropped.filter((other) => other !== name) }), " "])),
    h(ReadDifferently, { state, options, press }));
}

// One column is chosen, and its kind, bins and order can be set; what was set is listed.
class ReadDifferently extends Component {
  render({ state, options, press }) {
    const all = state.look.columns, column = all.find((one) => one.name === this.state.shown) ?? all[0],
      { name, kind } = column;
    const present = (option) => at(byColumn(options[option]), name);
    const set = (option, value) => change({ [option]: value === null ? without(options[option], name)
      : { ...byColumn(options[option]), [name]: value } });
    const words = (value) => value.split(",").map((word) => word.trim());
    const given = SET.flatMap((option) => Object.keys(byColumn(options[option])).map((one) => [option, one]));
    return h("div", null, h("h3", null, "Read a column differently"),
      choose("Column", name, all.map((one) => [one.name, one.name]), (shown) => this.setState({ shown })),
      choose(`Read ${name} as`, present("kinds") ?? "", KINDS, (chosen) => set("kinds", chosen || null)),
      ["numeric", "date"].includes(kind) && text(`Bins of ${name} (a number, or edges: 0, 18, 65, 120)`,
        [present("bins") ?? []].flat().join(", "), (value) => set("bins", value && bins(words(value), value))),
      ["categorical", "ordered"].includes(kind) && text(`Order of the levels of ${name} (small, medium, large)`,
        (present("order") ?? []).join(", "), (value) => set("order", value && words(value))),
      given.length > 0 && h("p", null, "Read differently: ",
        given.map(([option, one]) => [press(`${one}: ${option} – automatic`,
        `Read the ${option} of ${one} automatically`, { [option]: without(options[option], one) }), " "])),
      column.choices.length > 0 && h(Names, { column, file: state.table, key: `${state.table.number} ${name}` }),
      form(state.forms.columns, options, change));
  }
}

// New names for the levels of a column; those that get the same one are merged. The file is then read again.
class Names extends Component {
  render({ column: { name, choices }, file }) {
    const given = file.reading.levels ?? {}, old = at(given, name) ?? {}, typed = this.state.names ?? {};
    const codes = (level) => Object.keys(old).filter((code) => old[code] === level);
    const send = () => {
      const pairs = choices.flatMap((level) => (codes(level).length ? codes(level) : [level])
        .map((code) => [code, at(typed, level) ?? level])).filter(([code, word]) => code !== word);
      readAgain(file.number, { ...file.reading, levels: { ...given, [name]: Object.fromEntries(pairs) } });
    };
    return folded(`Names of the levels of ${name}`, false, soft("Levels that get the same name are merged."),
      choices.map((level) => text(`Name of ${name} = ${level}`, at(typed, level) ?? level, (word) =>
        this.setState({ names: { ...this.state.names, [level]: word ?? level } }), { key: level })),
      button(`Rename the levels of ${name}`, send));
  }
}

const byColumn = (values) => (values !== null && typeof values === "object" ? values : {});

function without(values, name) {
  const rest = Object.fromEntries(Object.entries(byColumn(values)).filter(([other]) => other !== name));
  return Object.keys(rest).length ? rest : null;
}

function bins(words, text) {
  const numbers = words.map(Number);
  if (numbers.some(Number.isNaN)) return text; // the server says what is wrong
  return numbers.length === 1 ? numbers[0] : numbers;
}
