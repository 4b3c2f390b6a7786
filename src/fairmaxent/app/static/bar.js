// @ts-check
// The bar: which table it is, who is compared and for what, as chips that open; and another table.

import { at, button, folded, h, menu, soft } from "./dom.js";
import { Typed, checks, choose, comparedIn, form, isGiven, named } from "./form.js";
import { short, together, whole } from "./format.js";
import { lookPart, renaming, without } from "./look.js";
import { Reading, openPart } from "./opening.js";
import { levelName } from "./people.js";
import { atLeast, changeRoles as change, compare, isReady, store } from "./store.js";

const PERHAPS = 2; // guesses that are offered in the bar

export function bar() {
  const { state } = store, file = state?.table;
  return [h("strong", { class: "wordmark", key: "name" }, "fairmaxent"),
    h("div", { class: "chips", key: "chips" },
      file && [about(), outcome(), groups(), perhaps()]),
    file && another(file)];
}

function another(file) {
  const label = file.is_first ? "Open your table" : "Open another";
  const look = { class: file.is_first ? "main" : null };
  return menu("open-menu", label, { title: label, look }, openPart);
}

const quiet = (words) => h("span", { class: "soft" }, words);
const chip = (id, words, how, draw) =>
  menu(id, [words, h("i", { "aria-hidden": "true" }, " ▾")], { look: { class: "chip" }, ...how },
    draw);

function about() {
  const { look, table } = store.state, rows = quiet(` ${whole(look.rows)} rows`);
  return chip("about", [short(table.title, 36), rows],
    { title: "What the table holds", kind: "large" }, lookPart);
}

// ---------------------------------------------------------------- outcome

function outcomeWords(options) {
  if (!options.outcome) return "choose…";
  const good = options.favourable ?? [], name = short(options.outcome, 24);
  if (options.equal_means) return `mean of ${name}`;
  return good.length ? `${name} is ${short(together(good.map(levelName)), 32)}` : name;
}

function outcome() {
  const { state: { look }, options } = store;
  const dropped = options.drop ?? [];
  const usable = look.columns.filter(({ name, identifier }) =>
    !identifier && !dropped.includes(name));
  const chosen = look.columns.find((column) => column.name === options.outcome);
  const good = options.favourable ?? [];
  const words = [quiet("outcome "), outcomeWords(options)];
  return chip("outcome-menu", words, { title: "What the outcome is" }, () => [
    choose("Outcome", options.outcome ?? "", named("choose…", usable), (name) =>
      change({ outcome: name, favourable: [],
        protected: options.protected.filter((other) => other !== name) })),
    numberAsOutcome(chosen, options),
    chosen && chosen.choices.length > 0 && !options.equal_means &&
      checks("Good outcome", chosen.choices, good, (favourable) => change({ favourable }),
        { ifNone: "None is chosen: every outcome is compared." }),
    renaming([options.outcome]),
  ]);
}

// An outcome of numbers is compared by its means, or by how many have at least a number.
function numberAsOutcome(column, options) {
  if (!column?.range) return null;
  const edges = at(options.bins, column.name), isCut = Array.isArray(edges) && edges.length === 3;
  const least = isCut ? edges[1] : column.middle;
  const good = (value) => atLeast(column.name, value, column.range);
  const means = () => change({ equal_means: true, favourable: [],
    bins: without(options.bins, column.name) });
  return h("p", { class: "choices" },
    h("span", { class: "soft" }, `${column.name} is a number:`),
    button("Compare means", means, { "aria-pressed": String(Boolean(options.equal_means)) }),
    h("span", { class: "line" },
      button("At least", () => good(least), { "aria-pressed": String(isCut) }),
      h(Typed, { type: "number", step: "any", "aria-label": `Good from, of ${column.name}`,
        value: least, change: (words) => good(Number(words)) }),
      "is good"));
}

// ---------------------------------------------------------------- groups

function groups() {
  const { state: { look, forms }, options } = store;
  const taken = [options.outcome, options.weight, ...options.drop ?? []];
  const possible = look.columns.map(({ name, identifier }) => (identifier ? null : name))
    .filter((name) => name !== null && !taken.includes(name));
  const compared = comparedIn(options);
  const chosen = compared.length ? short(compared.join(", "), 40) : "choose…";
  const title = "Which groups are compared";
  return chip("groups-menu", [quiet("groups "), chosen], { title }, () => [
    checks("Groups to compare", possible, options.protected,
      (names) => change({ protected: names }), { ifNone: "Choose at least one column." }),
    options.protected.length > 1 && isReady() &&
      form(forms.groups, options, (values) => compare(values.groups)),
    renaming(options.protected),
    likely(),
  ]);
}

// Groups that nobody wrote down: columns that look like their probabilities are offered.
function likely() {
  const { state: { look, forms }, options } = store;
  const ask = (asked, toldBy) => change({ likely: asked, told_by: toldBy });
  const offer = ({ columns, asked }) => h("p", { class: "choices", key: asked },
    soft(`${together(columns)} add up to 1 in every row: are they probabilities of groups?`),
    button("From names or addresses", () => ask(asked, "names")),
    button("From the columns that decide", () => ask(asked, "columns")));
  const isOpen = isGiven(options.likely) || look.likely.length > 0;
  return folded("Groups that nobody wrote down", isOpen,
    isGiven(options.likely) ? null : look.likely.map(offer),
    form(forms.likely, options, change));
}

// Guesses that were not followed are a button each.
function perhaps() {
  const { state: { look, guessed }, options } = store;
  const isFree = (value) => value !== options.outcome && !options.protected.includes(value) &&
    look.columns.some((column) => column.name === value && !column.identifier);
  return guessed.filter((one) => one.role === "protected" && isFree(one.value))
    .slice(0, PERHAPS)
    .map(({ value }) => button(`+ ${short(value, 20)}?`,
      () => change({ protected: [...options.protected, value] }),
      { class: "chip perhaps", "aria-label": `Compare groups of ${value}, too`, key: value }));
}

// What is asked before anything can be fitted.
export const unready = ({ table } = store.state) => h("section", { id: "unready" },
  h("h1", null, "Who is to get what equally often?"),
  soft("Choose the outcome, such as who was hired, and the columns of the groups, such as sex."),
  h("p", { class: "choices" },
    h("button", { type: "button", class: "main", popovertarget: "outcome-menu" },
      "Choose the outcome"),
    h("button", { type: "button", class: "main", popovertarget: "groups-menu" },
      "Choose the groups")),
  soft("If these are not the columns of your table, say where it begins:"),
  h(Reading, { file: table, key: table.number }));
