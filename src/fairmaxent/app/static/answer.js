// @ts-check
// What happens, drawn from numbers alone, for the page and for the page to send: both sides and the
// price in a sentence, what else changes, and people as dots, or groups as arrows.

import { arrows, dotsKey, dotsOf, meanArrows } from "./charts.js";
import { h, soft } from "./dom.js";
import { hundredths, percent, short, together } from "./format.js";
import { groupName, madeFor, outcomeName, price, priceInFull, sizesTold,
  told } from "./people.js";

const MOST_DOTS = 8; // groups whose people are drawn
const MOST_ARROWS = 9;
const LONG = 60; // letters, from which a sentence is written smaller
const MOST_APART = 4;

// ---------------------------------------------------------------- the sentence

// `isGood`: there is a good outcome, so that somebody gains and somebody loses.
const colour = (kind, isGood) => (isGood && kind !== "rest" ? kind : null);

// The pieces of a sentence, coloured, with commas and the last "and" between them.
function joinedPieces(parts, isGood) {
  return parts.map(({ kind, text }, index) => {
    const next = index === parts.length - 1 ? "" : index === parts.length - 2 ? " and " : ", ";
    return [h("span", { class: colour(kind, isGood) }, text), next];
  });
}

// Why nothing changes, if nothing does.
function still({ outcomes }) {
  const wanted = outcomes?.wanted ?? null;
  if (wanted === null) return "Nothing changes: no equal outcomes are asked for.";
  if (outcomes.before !== null && wanted <= outcomes.before + 0.0005) {
    const own = hundredths(outcomes.before), asked = hundredths(wanted);
    return `Nothing changes: your data are at ${own} already, and ${asked} is asked for.`;
  }
  return "Nobody's outcome changes, by a whole person.";
}

// The headline of a column: both sides and the price, in one size.
export function headline(see, grouping, isGood, kind = "h1") {
  const { pieces, before, after } = told(grouping), sizes = sizesTold(grouping);
  const first = madeFor(see) ? `To teach the model: ${before}` : before;
  const said = pieces.length > 0
    ? [first, joinedPieces(pieces, isGood), after, ". "]
    : sizes.length > 0
      ? [joinedPieces(sizes, false), " would be in the table. "]
      : [still(grouping), " "];
  const costs = price(see), length = pieces.map(({ text }) => text).join("").length;
  return h(kind, { class: length > LONG ? "lede long" : "lede" }, said,
    h("span", { class: "price" }, costs));
}

// What else changes: the price in full, the sizes, and the other columns in a line each.
export function alongside(see, all, grouping) {
  const sizes = sizesTold(grouping), parts = told(grouping).pieces;
  const isSaid = parts.length === 0;
  const line = (other) => {
    const { pieces } = told(other);
    const words = pieces.length ? `${together(pieces.map(({ text }) => text))}.` : still(other);
    return h("li", { key: other.name }, h("strong", null, other.name), `: ${words}`);
  };
  return h("ul", { class: "alongside" },
    h("li", { key: "price" }, priceInFull(see)),
    sizes.length > 0 && !isSaid && h("li", { key: "sizes" },
      `${together(sizes.map(({ text }) => text))} would be in the table.`),
    all.filter((other) => other !== grouping).map(line),
    aboutModel(see).map((text) => h("li", { key: text }, text)),
    apartOf(all));
}

// For which model a table is made, and whose decisions would stay unequal.
function aboutModel(see) {
  const made = madeFor(see);
  if (!made) return [];
  const decisions = see.notes.filter((text) => text.startsWith("the decisions"));
  return [`${made.split(". ")[0]}.`, ...decisions];
}

// Groups that are too small to be part of the headline.
function apartOf(all) {
  const compared = all.flatMap(({ groups, means }) => (means.length ? means : groups));
  const names = compared.filter((one) => one.is_apart).map((one) => one.name);
  if (!names.length) return null;
  const shown = names.slice(0, names.length > MOST_APART + 1 ? MOST_APART : names.length);
  const more = names.length - shown.length;
  const texts = [...shown.map((name) => short(name)), ...(more ? [`${more} more groups`] : [])];
  return h("li", { id: "set-apart", key: "apart" }, `Too small to compare: ${together(texts)}.`);
}

// ---------------------------------------------------------------- the people

// Columns of dots, and how many dots stand side by side in each.
function columnsFor(count, width) {
  if (width < 560) return { columns: count > 4 ? 3 : Math.min(2, count), across: 20 };
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
