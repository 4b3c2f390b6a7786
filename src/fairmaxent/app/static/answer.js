// @ts-check
// What happens, drawn from numbers alone, for the page and for the page to send: both sides and the
// price in a sentence, what else changes, and people as dots, or groups as arrows.

import { arrows, dotsKey, dotsOf, meanArrows } from "./charts.js";
import { at, h, soft } from "./dom.js";
import { hundredths, percent, short, together } from "./format.js";
import { decided, groupName, outcomeName, price, priceInFull, sizesTold, textOf,
  told } from "./people.js";

const MOST_DOTS = 8; // groups whose people are drawn
const MOST_ARROWS = 9;
const LONG = 80; // letters, from which a sentence is written smaller
const MOST_APART = 4;

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
  const { length } = decided(see, grouping) || textOf(told(grouping));
  return h(kind, { class: length > LONG ? "lede long" : "lede" }, happens(see, grouping, isGood),
    h("span", { class: "price" }, price(see)));
}

function happens(see, grouping, isGood) {
  const model = decided(see, grouping), sides = told(grouping), sizes = sizesTold(grouping);
  if (model) return model;
  if (sides.pieces.length > 0) return sentence(sides, isGood);
  if (sizes.pieces.length > 0) return sentence({ ...sizes, after: IN_TABLE }, false);
  return [still(grouping), " "];
}
const IN_TABLE = " would be in the table";

// The rate of a column before and after, and that of the model that the table is made for.
export function rateTold({ model }, { name, outcomes, means }) {
  if (means.length || !outcomes) return "";
  const own = model && at(model.rates, name);
  const decisions = typeof own === "number" ? `, model ${hundredths(own)}` : "";
  return `${hundredths(outcomes.before)} → ${hundredths(outcomes.after)}${decisions}`;
}

// What else changes: the price in full, the sizes, and the other columns in a line each.
export function alongside(see, all, grouping) {
  const sizes = sizesTold(grouping), sides = told(grouping);
  const areSizesLeft = sizes.pieces.length > 0 && sides.pieces.length > 0;
  const line = (other) => {
    const { pieces, rest } = told(other);
    const words = decided(see, other) || (pieces.length ? textOf({ pieces, rest }) : still(other));
    return h("li", { key: other.name }, h("strong", null, other.name), `: ${words}`);
  };
  return h("ul", { class: "alongside" },
    h("li", { key: "price" }, priceInFull(see)),
    areSizesLeft && h("li", { key: "sizes" }, textOf({ ...sizes, after: IN_TABLE })),
    all.filter((other) => other !== grouping).map(line),
    aboutModel(see, sides).map((text) => h("li", { key: text }, text)),
    apartOf(all));
}

// For which model a table is made, what teaches it, and what to know of its decisions.
function aboutModel({ model, notes, about_models: remarks }, sides) {
  if (!model) return [];
  const made = `${remarks[0].split(". ")[0]}.`;
  const taught = sides.pieces.length > 0 ? [`To teach it, ${textOf(sides)}`] : [];
  return [...taught, made,
    ...notes.filter((text) => text.includes(model.student)).map(asSentence)];
}
const asSentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replace(/\.?$/, ".")}`;

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
