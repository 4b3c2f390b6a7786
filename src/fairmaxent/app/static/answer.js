// @ts-check
// What happens, for the page and for the page to send: both sides and the price in a sentence, what
// else changes, what the server says of it, and people as dots, or groups as arrows.

import { arrows, dotsKey, dotsOf, meanArrows } from "./charts.js";
import { at, h, listed, soft, table } from "./dom.js";
import { hundredths, percent } from "./format.js";
import { decided, groupName, outcomeName, price, priceInFull, sizesTold, still, textOf,
  told } from "./people.js";

const MOST_DOTS = 8; // groups whose people are drawn
const MOST_ARROWS = 9;
const LONG = 80; // letters, from which a sentence is written smaller

// ---------------------------------------------------------------- the sentence

// `isGood`: there is a good outcome, so that somebody gains and somebody loses.
// The pieces of a sentence, coloured, with commas and the last "and" between them.
function sentence({ pieces, rest, before = "", after }, isGood) {
  const parts = pieces.map(({ kind, text }, index) => {
    const left = pieces.length - 1 - index, next = ["", " and "][left] ?? ", ";
    return [h("span", { class: isGood ? kind : null }, text), next];
  });
  return [before, parts, after, rest && `; ${rest}`, ". "];
}

// The headline of a column: both sides and the price, in one size.
export function headline(see, grouping, isGood, kind = "h1") {
  const { length } = decided(see, grouping) || textOf(told(grouping));
  return h(kind, { class: length > LONG ? "lede long" : "lede" }, happens(see, grouping, isGood),
    h("span", { class: "price" }, price(see)));
}

function happens(see, grouping, isGood) {
  const model = decided(see, grouping), sides = told(grouping), sizes = sizesTold(grouping);
  if (model) return model;
  if (sides.pieces.length > 0) return sentence(sides, isGood);
  if (sizes.pieces.length > 0) return sentence({ ...sizes, after: IN_TABLE }, false);
  return [still(see, grouping), " "];
}
const IN_TABLE = " would be in the table";

// The rate of a column before and after, and that of the model that the table is made for.
export function rateTold({ model }, { name, outcomes, means }) {
  if (means.length || !outcomes) return "";
  const own = model && at(model.rates, name);
  const decisions = typeof own === "number" ? `, model ${hundredths(own)}` : "";
  return `${hundredths(outcomes.before)} → ${hundredths(outcomes.after)}${decisions}`;
}

// What else changes: the price in full, the sizes, shares that were chosen, and the other columns
// in a line each.
export function alongside(see, all, grouping) {
  const sizes = sizesTold(grouping), sides = told(grouping);
  const areSizesLeft = sizes.pieces.length > 0 && sides.pieces.length > 0;
  const [{ about }] = grouping.groups;
  const line = (other) => h("li", { key: other.name }, h("strong", null, other.name),
    `: ${inShort(see, other, about)}`);
  return h("ul", { class: "alongside" },
    h("li", { key: "price" }, priceInFull(see)),
    areSizesLeft && h("li", { key: "sizes" }, textOf({ ...sizes, after: IN_TABLE })),
    see.chosen.map((text) => h("li", { key: text }, text)),
    all.filter((other) => other !== grouping).map(line),
    see.model && sides.pieces.length > 0 &&
      h("li", { key: "taught" }, `To teach it, ${textOf(sides)}`));
}

// A column in a line; `about`: the outcome that has been named.
function inShort(see, grouping, about) {
  const model = decided(see, grouping), sides = told(grouping), sizes = sizesTold(grouping);
  const { pieces, rest } = sides, isSame = grouping.groups[0].about === about;
  const changes = isSame ? textOf({ pieces, rest }) : textOf(sides);
  const what = model || (pieces.length > 0 ? changes : still(see, grouping));
  return sizes.pieces.length ? `${what} ${textOf({ ...sizes, after: IN_TABLE })}` : what;
}

// ---------------------------------------------------------------- what the server says

export const ofWeight = ({ told: entries }, ...weights) =>
  entries.filter(({ weight }) => weights.includes(weight));
export const saidOf = (entries) => entries.flatMap(({ says }) => says);
export const tablesOf = (entries) => entries.flatMap(({ tables }) => tables)
  .map(({ label, heads, rows }) =>
    table(label, heads, rows, heads.slice(1).map((_, place) => place + 1)));
// How fair the groups are and become stands beside the other numbers.
export const reached = (see) => ofWeight(see, "verdict").filter(({ topic }) => topic === "reached");

export function warnings(see) {
  const said = saidOf(ofWeight(see, "warning"));
  return said.length > 0 && h("div", { class: "warnings", id: "warnings" }, listed(said));
}

export function verdicts(see) {
  const entries = ofWeight(see, "verdict").filter((one) => !reached(see).includes(one));
  return [saidOf(entries).map((text) => h("p", { class: "notice", key: text }, text)),
    tablesOf(entries)];
}

// ---------------------------------------------------------------- the people

// Columns of dots, and how many dots stand side by side in each.
function columnsFor(count, width) {
  if (width < 560 && count > 4) return { columns: 3, across: 25 };
  if (width < 560) return { columns: Math.min(2, count), across: 20 };
  const columns = count > 6 ? 4 : count > 4 && width < 800 ? 3 : count;
  return { columns, across: width / columns > 900 ? 50 : width / columns > 330 ? 25 : 20 };
}

// The people of a column as dots if they are few groups, else its groups as arrows.
export function peopleOf(grouping, width) {
  const { groups, means } = grouping, large = groups.filter((group) => !group.is_apart);
  if (means.length) {
    return h("div", { class: "crowd" }, meanArrows(means, width),
      soft("The mean of each group, before and after."));
  }
  if (large.length <= MOST_DOTS) {
    const { columns, across } = columnsFor(large.length, width);
    return h("div", { class: "crowd" },
      h("div", { class: `dots-of c${columns}` }, large.map((group) => dotsOf(group, across))),
      dotsKey(outcomeName(groups[0])));
  }
  const change = (group) => Math.abs((group.rate_after ?? 0) - (group.rate_before ?? 0));
  const shown = [...large].sort((a, b) => change(b) - change(a)).slice(0, MOST_ARROWS);
  const label = shown.map((group) =>
    `${groupName(group)} from ${percent(group.rate_before)} to ${percent(group.rate_after)}`);
  return h("div", { class: "crowd" },
    arrows(shown, { width, shown: percent, label: `${label.join("; ")}.` }),
    soft(`The ${shown.length} groups that change most have ${outcomeName(groups[0])}, before and ` +
      `after. The other ${large.length - shown.length} are in numbers below.`));
}
