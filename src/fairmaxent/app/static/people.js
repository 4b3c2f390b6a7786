// @ts-check
// What happens to people, in whole people and in words: both sides, and the price.

import { amounts, hundredths, isOne, percent, roughly, short, together, weightOf, whole,
  wholes } from "./format.js";

// ---------------------------------------------------------------- names

const isCode = (text) => /^-?[\d.]+$/.test(text);
const isYes = (text) => /^(yes|no|true|false)$/i.test(text);

// A group that is only called yes, 1 or [18, 30) is called by its column, too.
const isBare = (text) => isYes(text) || !/^\p{L}/u.test(text);
export const groupName = (group) =>
  short(group.called ?? (isBare(group.group) ? group.name : group.group));

// The last bin of a number ends with the largest that anybody has: [40, 59] is at least 40.
export const levelName = (level) => short(level.replace(/^\[(.+), .+\]$/, "≥ $1"));

export function outcomeName({ outcome, about }) {
  const column = short(about.slice(0, about.length - outcome.length - " = ".length));
  const level = levelName(outcome);
  if (isCode(outcome)) return `${column} = ${level}`;
  if (isYes(outcome)) return `“${level}” in ${column}`;
  return /^[<>≤≥([]/.test(level) ? `${column} ${level}` : `${column} “${level}”`;
}

// ---------------------------------------------------------------- the groups of a column

// Every column that is compared, with its groups and its rates; of several outcomes, the one that
// the groups of the data differ in most.
export function groupings(see) {
  const names = [...new Set(see.groups.map((group) => group.column))];
  return names.map((name) => {
    const all = see.groups.filter((group) => group.column === name);
    const outcomes = see.rates.find((one) =>
      one.kind === "statistical_rate" && one.grouping === name);
    const sizes = see.rates.find((one) =>
      one.kind === "representation_rate" && one.columns === outcomes?.columns);
    const means = see.means.flatMap(({ group: named, before, after }) => {
      const own = all.filter((one) => one.name === named);
      // A mean is of all outcomes: too little is known about it if that is so of most of them.
      const isApart = own.filter((one) => one.is_apart).length > own.length / 2;
      return own.length ? [{ ...own[0], is_apart: isApart, before, after }] : [];
    });
    const groups = mostUnequal(all);
    return { name, groups, all, outcomes, sizes, means };
  });
}

function mostUnequal(groups) {
  const outcomes = [...new Set(groups.map((group) => group.outcome))];
  const of = (outcome) => groups.filter((group) => group.outcome === outcome);
  const gap = (outcome) => {
    const rates = of(outcome).filter((group) => !group.is_apart && group.rate_before !== null)
      .map((group) => group.rate_before);
    return Math.max(...rates) - Math.min(...rates);
  };
  const widest = outcomes.reduce((one, other) => (gap(other) > gap(one) ? other : one));
  return of(widest);
}

// Whole people of each group before and after, who add up to as many as they are together.
export function counted(groups, of = "with") {
  const before = wholes(groups.map((group) => group[`${of}_before`]));
  const after = wholes(groups.map((group) => group[`${of}_after`]));
  return groups.map((group, index) => ({ group, before: before[index], after: after[index],
    change: after[index] - before[index] }));
}

// If not, its people with the outcome can become fewer although they get it more often.
export const keepsSizes = (groups) =>
  counted(groups, "people").every(({ change }) => change === 0);

// ---------------------------------------------------------------- a sentence, in pieces

const TOLD = 2; // groups that are named, unless only one more is left

const side = (change) => (change > 0 ? "gain" : "loss");
const bySize = (one, other) =>
  Math.abs(other.change) - Math.abs(one.change) || other.change - one.change;

// The largest changes, always one of each side, as pieces, and the rest in one clause with its
// sums. Groups that are too small to be compared are never named beside others.
function sides(changes, say, sayRest) {
  const all = changes.filter(({ change }) => change !== 0).sort(bySize);
  const large = all.filter(({ group }) => !group.is_apart), known = large.length ? large : all;
  const firsts = [1, -1].map((sign) => known.find(({ change }) => sign * change > 0))
    .filter((one) => one !== undefined);
  const next = known.filter((one) => !firsts.includes(one));
  const isLast = all.length === TOLD + 1 && known.length === all.length;
  const told = [...firsts, ...next].slice(0, isLast ? TOLD + 1 : TOLD).sort(bySize);
  const rest = all.filter((one) => !told.includes(one));
  const others = [1, -1].map((sign) => rest.filter(({ change }) => sign * change > 0))
    .filter((ones) => ones.length > 0);
  return {
    pieces: told.map((one) => ({ kind: side(one.change), text: say(one) })),
    rest: rest.length ? sayRest(others) : "",
  };
}

const groupsOf = (count) => `${count} other group${count === 1 ? "" : "s"}`;

const sum = (ones) => ones.reduce((total, one) => total + one.change, 0);
const people = (change) => `${whole(Math.abs(change))} ${change > 0 ? "more" : "fewer"}`;
const isNamed = (group) => group.called !== null && group.called !== undefined;
const isToldByColumn = (group) => !isNamed(group) && isBare(group.group);
const whose = ({ name }) => `whose ${short(name.replaceAll(" = ", " is "))}`;
const of = (group) => (isToldByColumn(group) ? whose(group) : groupName(group));
const those = (group) => (isToldByColumn(group) ? `those ${whose(group)}` : groupName(group));

const inPeople = (groups, what = "with") => sides(counted(groups, what),
  ({ group, change }) => `${people(change)} ${of(group)}`,
  (others) => `${together(others.map((ones) => people(sum(ones))))} in ` +
    groupsOf(others.flat().length));

// Rates and means have no sum: of how many groups they rise and fall.
const counts = (rises, falls) => (others) => {
  const last = others.length - 1, way = (ones) => (ones[0].change > 0 ? rises : falls);
  return together(others.map((ones, index) =>
    `${way(ones)} ${index === last ? groupsOf(ones.length) : ones.length}`));
};

// How much a rate changes, in the digits that are shown.
export const rise = ({ rate_before: before, rate_after: after }) =>
  (before === null || after === null ? 0 : Math.round(1000 * after) - Math.round(1000 * before));

const inRates = (groups) => sides(groups.map((group) => ({ group, change: rise(group) })),
  ({ group }) =>
    `${percent(group.rate_after)} of ${those(group)} instead of ${percent(group.rate_before)}`,
  counts("more often in", "less often in"));

function inMeans(means) {
  const moved = ({ before, after }) =>
    (Math.abs(after - before) > 1e-9 * Math.abs(before) ? after - before : 0);
  const changes = means.map((group) => ({ group, change: moved(group) }));
  const shown = amounts([0, ...changes.map(({ change }) => Math.abs(change))]);
  return sides(changes,
    ({ group, change }) => `${shown(Math.abs(change))} ${change > 0 ? "more" : "less"} ` +
      `for ${those(group)}`,
    counts("more for", "less for"));
}

// The rates that say something: of means, those of the bins do not.
export const ratesOf = ({ rates, means }) =>
  rates.filter(({ kind }) => kind !== "statistical_rate" || means.length === 0);

// What happens to the groups of a column, as pieces, the rest, and the words around them.
export function told({ groups, means, all }) {
  if (means.length) {
    const column = means[0].about.split(" = ")[0];
    return { ...inMeans(means), before: `On average, ${short(column)} would be `, after: "" };
  }
  const after = ` would have ${outcomeName(groups[0])}`;
  const others = otherChanges(all, groups);
  const change = others > 1 ? "outcomes change" : "outcome changes";
  const more = others ? `; ${others} other ${change}, too` : "";
  const known = keepsSizes(groups) ? inPeople(groups) : inRates(groups);
  return { ...known, before: "", after: `${after}${more}` };
}

const isChanged = (groups) => counted(groups).some(({ change }) => change !== 0) ||
  groups.some((group) => rise(group) !== 0);

// How many outcomes change beside the one that is told; of two, one says all.
function otherChanges(all, [{ outcome }]) {
  const names = [...new Set(all.map((group) => group.outcome))].filter((name) => name !== outcome);
  const changed = names.filter((name) => isChanged(all.filter((group) => group.outcome === name)));
  return names.length > 1 ? changed.length : 0;
}

// What stays as it is if no group of a column changes, and why.
export function still({ model }, { name, groups, means, outcomes }) {
  if (means.length) return `The mean of each group of ${short(name)} stays as it is.`;
  const it = outcomeName(groups[0]), what = keepsSizes(groups)
    ? `As many people of each group of ${short(name)} have ${it} as before`
    : `Each group of ${short(name)} has ${it} as often as before`;
  const wanted = outcomes?.wanted ?? null, own = outcomes?.before ?? null;
  if (wanted === null) return model ? `${what}.` : `${what}: no equal outcomes are asked for.`;
  if (own === null || wanted > own + 0.0005) return `${what}.`;
  return `${what}: your data are at ${hundredths(own)} already, and ${hundredths(wanted)} is ` +
    "asked for.";
}

// What the model that a table is made for would decide; "" if it is made for none.
export function decided({ model }, { groups }) {
  const known = groups.filter((group) => model && group.decided !== null && !group.is_apart);
  if (!known.length) return "";
  const sorted = [...known].sort((one, other) => one.decided - other.decided);
  const ends = known.length === 2 ? known : [sorted[0], sorted.at(-1)];
  const between = known.length > 2 ? `; ${groupsOf(known.length - 2)} in between` : "";
  const shares = ends.map((group) => `${percent(group.decided)} of ${those(group)}`);
  const whom = model.is_opportunity ? " whose outcome is good" : "";
  return `The model would give ${outcomeName(groups[0])} to ${together(shares)}${whom}${between}. `;
}

// How the sizes of the groups of a column change, if they do.
export const sizesTold = ({ groups }) =>
  (keepsSizes(groups) ? { pieces: [], rest: "" } : inPeople(groups, "people"));

// The same as text: both sides, what is said of them, and the rest.
export const textOf = ({ pieces, rest, before = "", after = "" }) =>
  `${before}${together(pieces.map(({ text }) => text))}${after}${rest && `; ${rest}`}.`;

// ---------------------------------------------------------------- the price

const FREE = 0.00005; // of the data, which rounds to nothing

export const costOf = ({ effective_rows: left, worth }) => Math.max(0, 1 - left / worth);

// What it costs, in a sentence.
export function price(see) {
  const cost = costOf(see), changed = see.changed_people;
  const little = cost < 1e-9 ? "none" : "less than 0.01\u00a0%";
  const rows = `${cost < FREE ? little : roughly(cost)} of your data`;
  if (changed < 0.5) return `It costs ${rows}.`;
  const outcomes = `another outcome for ${whole(changed)} of ${whole(see.rows)} people`;
  return `It costs ${cost < FREE ? outcomes : together([outcomes, rows])}.`;
}

// The same in full, for those who want to know how.
export function priceInFull({ rows, worth, effective_rows: left, heaviest }) {
  const wasLess = Math.round(worth) < rows ? `, which counted like ${whole(worth)} before,` : "";
  const most = heaviest === null ? "" : `: ${isOne(heaviest) ? "all count alike"
    : `the heaviest counts ${weightOf(heaviest)} times as much as the average`}`;
  return `${whole(rows)} rows${wasLess} count like ${whole(left)}${most}.`;
}
