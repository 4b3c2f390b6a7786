// @ts-check
// Numbers as people read them.

import { at } from "./dom.js";

export const whole = (value) => Math.round(value).toLocaleString("en-GB");
export const percent = (value) =>
  (value === null ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);

// Ticks of shares as percentages, in the digits that tell them apart.
export function ticksOf(ticks) {
  const [first, second] = ticks;
  const digits = Math.max(0, Math.ceil(-Math.log10(100 * (second - first)) - 1e-9));
  return (share) => `${(100 * share).toFixed(digits)}\u00a0%`;
}
export const rate = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
export const hundredths = (value) => (value === null ? "–" : value.toFixed(2));
export const times = (value) => {
  if (value === null || value === undefined) return "–";
  return value >= 100 ? whole(value) : value.toFixed(1);
};
export const signed = (value) => {
  if (value === 0) return "0";
  return `${value > 0 ? "+" : "−"}${whole(Math.abs(value))}`;
};

export const isOne = (weight) => Math.abs(weight - 1) < 1e-6; // solvers stop a little short
// The weight of a row, whose average is 1, in the digits that tell it from 1.
export function weightOf(weight) {
  if (weight === null || weight >= 10) return times(weight);
  const digits = isOne(weight) ? 2 : Math.ceil(-Math.log10(Math.abs(weight - 1)));
  return weight.toFixed(Math.max(2, digits));
}

// A small share in two digits that say something.
export function roughly(share) {
  if (share < 0.00005) return "0\u00a0%";
  const parts = 100 * share;
  const digits = parts >= 9.95 ? 0 : parts >= 0.995 ? 1 : 2;
  return `${parts.toFixed(digits).replace(/\.0$/, "")}\u00a0%`;
}

// Amounts of a unit, all with the digits that tell the closest two of them apart.
export function amounts(values) {
  const largest = Math.max(...values.map(Math.abs));
  const spread = Math.max(...values) - Math.min(...values);
  const digits = Math.ceil(-Math.log10(spread || largest || 1)) + 1;
  const most = Math.max(0, Math.min(6, digits));
  return (value) => value.toLocaleString("en-GB",
    { minimumFractionDigits: most, maximumFractionDigits: most });
}

/** @type {[number, string][]} */
const UNITS = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
export const size = (bytes) => {
  const unit = UNITS.find(([least]) => bytes >= least);
  return unit ? `${(bytes / unit[0]).toFixed(1)} ${unit[1]}` : `${bytes} bytes`;
};

// Whole numbers that add up to the whole, each at most 1 from its own (largest remainders).
export function wholes(values, total = Math.round(values.reduce((sum, one) => sum + one, 0))) {
  const exact = values.map((value) => Math.round(1e6 * value) / 1e6); // so that ties are ties
  const sure = exact.map(Math.floor);
  const rests = exact.map((value, index) => Math.round(1e6 * (value - sure[index])));
  const order = values.map((_, index) => index).sort((a, b) => rests[b] - rests[a]);
  const left = total - sure.reduce((sum, one) => sum + one, 0);
  for (let turn = 0; turn < left; turn += 1) sure[order[turn % order.length]] += 1;
  return sure;
}

// A name has room for so many letters.
const LONGEST = 40;
export const short = (text, most = LONGEST) =>
  (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// "a, b and c"
export const together = (texts) =>
  (texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`);

export const KINDS = {
  statistical_rate: "Equal outcomes",
  representation_rate: "Equal group sizes",
};

// From one number to another; if they look the same, one of them.
export const span = (low, high, show = rate) =>
  (show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);

// The library advises to merge groups or levels, which the page can do.
const MERGING = "To merge groups or levels, give them the same name where they are chosen.";
export const withMerging = (texts) =>
  (texts.some((text) => /\bmerge\b/i.test(text)) ? [...texts, MERGING] : texts);

// The new names of levels by the codes in the file: some may have been renamed before.
export function joined(given, names) {
  const old = Object.entries(given ?? {}), words = old.map(([, word]) => word);
  return Object.fromEntries([
    ...old.map(([code, word]) => [code, at(names, word) ?? word]),
    ...Object.entries(names).filter(([level]) => !words.includes(level)),
  ]);
}
