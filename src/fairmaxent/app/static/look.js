// Look: what is in the table, who is compared, and how unequal the groups are.

import { axis, groupLine, roundTop } from "./charts.js";
import { at, h, has, refill, table } from "./dom.js";
import { checks, choose, form, text } from "./form.js";
import { percent, span, whole, withMerging } from "./format.js";
import { drawReading } from "./opening.js";

const SHOWN = 40;
const KINDS = [["", "automatic"], ["categorical", "categories"], ["ordered", "ordered categories"], ["numeric", "numbers"],
  ["date", "dates"], ["boolean", "true or false"]];

export function drawLook(section, { state, options, change, again, readAgain, width }) {
  const { look, table: file } = state;
  refill(section, h("h2", { id: "look-title" }, "Look"),
    h("p", null, `${file.name}: ${whole(look.rows)} rows, ${look.columns.length} columns.`,
      file.offered && [" ", h("a", { href: `/files/0/${encodeURIComponent(file.name)}`, download: "" }, "Download this table"), "."]),
    roles(look, options, change), reasons(look, options), look.verdicts.map((verdict) => h("p", { class: "verdict" }, verdict)), groups(look, width), notes(look),
    columns(state, options, change, again), drawReading(state.forms, file, readAgain));
}

function roles(look, options, change) {
  const usable = look.columns.filter(({ name, identifier }) => !identifier && !(options.drop ?? []).includes(name));
  const chosen = look.columns.find((column) => column.name === options.outcome);
  const possible = usable.map((column) => column.name).filter((name) => name !== options.outcome && name !== options.weight &&
    !has(options.within, name) && !has(options.also, name));
  return h("div", { class: "roles" },
    choose("Outcome", options.outcome ?? "", [["", "choose…"], ...usable.map(({ name }) => [name, name])], (outcome) =>
      change({ outcome, favourable: [], protected: options.protected.filter((name) => name !== outcome) })),
    chosen && chosen.choices.length > 0 && checks("Good outcome", chosen.choices, options.favourable ?? [],
      (favourable) => change({ favourable }), { ifNone: "None is chosen: every outcome is compared." }),
    checks("Groups to compare", possible, options.protected, (names) => change({ protected: names }),
      { ifNone: "Choose at least one column." }));
}

// Guesses that hold; those that were not followed are possibilities.
function reasons(look, options) {
  const words = { outcome: "outcome", favourable: "good outcome", protected: "group" };
  const isFollowed = (one) => [options[one.role]].flat().includes(one.value);
  const listed = (ones) => ones.map((one) =>
    `${one.value} as ${words[one.role]} (${one.reason.replace(/its name \('[^']*'\)/, "because of its name")})`).join("; ");
  const followed = look.reasons.filter(isFollowed), others = look.reasons.filter((one) => !isFollowed(one));
  const more = withMerging(look.reasons.map((one) => one.reason)).slice(look.reasons.length).join(" ");
  return [followed.length > 0 && h("p", { class: "soft" }, `Guessed, so please check: ${listed(followed)}.`),
    others.length > 0 && h("p", { class: "soft" }, `Perhaps: ${listed(others)}. ${more}`)];
}

function groups(look, width) {
  const most = roundTop(look.groupings.flatMap((grouping) => grouping.groups.map((group) => group.interval?.[1] ?? group.rate))); // one scale for all
  return look.groupings.map((grouping) => {
    const outcomes = [...new Set(grouping.groups.map((group) => group.outcome))].slice(0, 4);
    return outcomes.map((outcome) => {
      const rows = grouping.groups.filter((group) => group.outcome === outcome);
      return h("div", { class: "picture" },
        h("h3", null, `How often each group of ${grouping.name} gets “${outcome}”`),
        h("p", { class: "soft" }, "Bars: 95 % intervals."),
        rows.slice(0, SHOWN).map((group) => groupLine({
          name: `${group.group} (${whole(group.rows)} rows, ${percent(group.share)})`,
          before: group.rate, low: group.interval?.[0], high: group.interval?.[1], most, width })),
        axis(most, width),
        rows.length > SHOWN && h("p", { class: "soft" }, `${rows.length - SHOWN} more groups are only in the table below.`),
        numbers(grouping.name, outcome, rows));
    });
  });
}

// The same in numbers, with what is missing; open if anything is.
function numbers(name, outcome, rows) {
  const caption = `Groups of ${name}`;
  const range = (group) => (group.interval ? ` (${span(...group.interval, percent)})` : "");
  const most = (gaps) => (gaps?.most_in ? ` (most in ${gaps.most_in}: ${percent(gaps.most)})` : "");
  return h("details", { open: rows.some((group) => group.missing?.share > 0) }, h("summary", null, `${caption} in numbers: ${outcome}`),
    table(caption, ["Group", "rows (share)", `“${outcome}” (95 % interval)`, "missing values"],
      rows.map((group) => [group.group, `${whole(group.rows)} (${percent(group.share)})`, percent(group.rate) + range(group),
        percent(group.missing?.share ?? null) + most(group.missing)]), [1, 2, 3]));
}

function notes(look) {
  return [look.notes.length > 0 && h("div", { class: "notes" }, h("h3", null, "What to watch out for"),
    h("ul", null, withMerging(look.notes).map((note) => h("li", null, note)))),
  look.proxies.length > 0 && h("details", null, h("summary", null, "Columns that predict a group"),
    table("Columns that predict a group", ["Column", "predicts", "how well"],
      look.proxies.map((proxy) => [proxy.column, proxy.protected, percent(proxy.strength)]), [2]))];
}

// ---------------------------------------------------------------- columns: how each is read, and which are left out

function columns(state, options, change, again) {
  const { look, forms: { kept: [{ name: keep }] } } = state;
  const dropped = options.drop ?? [], kept = options[keep] ?? [];
  const taken = [options.outcome, options.weight, ...options.protected, ...Object.keys(options.within ?? {}), ...Object.keys(options.also ?? {})];
  const button = (label, spoken, values) => h("button", { type: "button", "aria-label": spoken, onclick: () => change(values) }, label);
  const action = ({ name, identifier }) => {
    if (taken.includes(name)) return "";
    // What was said of a column that is left out is forgotten.
    const forgotten = () => Object.fromEntries(["kinds", "bins", "order", "target"].map((option) => [option, without(options[option], name)]));
    if (!identifier) return button("Leave out", `Leave out ${name}`, { drop: [...dropped, name], ...forgotten() });
    return kept.includes(name) ? button("Do not keep", `Do not keep ${name}`, { [keep]: kept.filter((other) => other !== name) })
      : button("Keep", `Keep ${name}`, { [keep]: [...kept, name] });
  };
  const levels = ({ name, identifier, levels: all }) => (!identifier ? all
    : `looks like an identifier: ${kept.includes(name) ? "kept, as you asked; see above" : "left out of new rows"}`);
  const rows = look.columns.map((column) =>
    [column.name, column.kind, whole(column.values), whole(column.missing), levels(column), action(column)]);
  return h("details", null, h("summary", null, `All ${look.columns.length} columns`),
    table("Columns", ["Column", "kind", "values", "missing", "levels", "keep or leave out"], rows, [2, 3], 4),
    dropped.length > 0 && h("p", null, "Left out: ", dropped.map((name) => [
      button(`${name} – put back`, `Put ${name} back`, { drop: dropped.filter((other) => other !== name) }), " "])),
    readDifferently(state, options, change, again, button));
}

// One column is chosen, and its kind, bins and order can be set; what was set is listed.
let shown = "";
function readDifferently(state, options, change, again, button) {
  const all = state.look.columns, column = all.find((one) => one.name === shown) ?? all[0], { name, kind } = column;
  const present = (option) => at(byColumn(options[option]), name);
  const set = (option, value) => change({ [option]: value === null ? without(options[option], name)
    : { ...byColumn(options[option]), [name]: value } });
  const words = (value) => value.split(",").map((word) => word.trim());
  const given = ["kinds", "bins", "order"].flatMap((option) => Object.keys(byColumn(options[option])).map((one) => [option, one]));
  return h("div", null, h("h3", null, "Read a column differently"),
    choose("Column", name, all.map((one) => [one.name, one.name]), (chosen) => { shown = chosen; again(); }),
    choose(`Read ${name} as`, present("kinds") ?? "", KINDS, (chosen) => set("kinds", chosen || null)),
    ["numeric", "date"].includes(kind) && text(`Bins of ${name} (a number, or edges: 0, 18, 65, 120)`,
      [present("bins") ?? []].flat().join(", "), (value) => set("bins", value && bins(words(value), value))),
    ["categorical", "ordered"].includes(kind) && text(`Order of the levels of ${name} (small, medium, large)`,
      (present("order") ?? []).join(", "), (value) => set("order", value && words(value))),
    given.length > 0 && h("p", null, "Read differently: ", given.map(([option, one]) => [button(`${one}: ${option} – automatic`,
      `Read the ${option} of ${one} automatically`, { [option]: without(options[option], one) }), " "])),
    form(state.forms.columns, options, change));
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
