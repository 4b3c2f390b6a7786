// @ts-check
// Numbers as people read them.

import { at } from "./dom.js";

export const whole = (value) => Math.round(value).toLocaleString("en-GB");
export const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);
export const rate = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
export const times = (value) =>
  value === null || value === undefined ? "–" : value >= 100 ? whole(value) : value.toFixed(1);
export const signed = (value) => {
  const size = whole(Math.abs(value));
  return size === "0" ? "0" : `${value > 0 ? "+" : "−"}${size}`;
};
/** @type {[number, string][]} */
const UNITS = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
export const size = (bytes) => {
  const unit = UNITS.find(([least]) => bytes >= least);
  return unit ? `${(bytes / unit[0]).toFixed(1)} ${unit[1]}` : `${bytes} bytes`;
};

export const KINDS = { representation_rate: "Equal group sizes", statistical_rate: "Equal outcomes" };

// From one number to another; if they look the same, one of them.
export const span = (low, high, show = rate) =>
  (show(low) === show(high) ? show(low) : `${show(low)} to ${show(high)}`);

// The library advises to merge groups or levels, which the page can do.
const MERGING = "To merge groups or levels, give them the same name under “What the table holds”.";
export const withMerging = (texts) => (texts.some((text) => /\bmerge\b/i.test(text)) ? [...texts, MERGING] : texts);

// The new names of levels by the codes in the file: some may have been renamed before.
export function joined(given, names) {
  const old = Object.entries(given ?? {}), words = old.map(([, word]) => word);
  return Object.fromEntries([...old.map(([code, word]) => [code, at(names, word) ?? word]),
    ...Object.entries(names).filter(([level]) => !words.includes(level))]);
}

// ---------------------------------------------------------------- people

// How much a rate changes, in the digits that are shown.
export const rise = ({ rate_before: before, rate_after: after }) =>
  (before === null || after === null ? 0 : (Math.round(1000 * after) - Math.round(1000 * before)) / 1000);

// If not, its people with the outcome can become fewer although they get it more often.
export const keepsSize = (group) => Math.round(group.people_before) === Math.round(group.people_after);
export const gained = (group) => Math.round(group.with_after) - Math.round(group.with_before);

// A code is called by its column, too: "SEX = 1"; and so is a group that is only called yes or no.
const isCode = (text) => /^-?[\d.]+$/.test(text);
const isBare = (text) => isCode(text) || /^(yes|no|true|false)$/i.test(text);
export const groupName = (group) => (isBare(group.group) ? group.name : group.group);
export const outcomeName = (group) => (isCode(group.outcome) ? group.about : `“${group.outcome}”`);

const TOLD = 3, MANY = 8; // groups in one sentence

// One sentence in people about the groups of one column: who has the outcome more often, who less often.
export function sentence(groups) {
  const outcomes = [...new Set(groups.map((group) => group.outcome))];
  const isCounted = groups.every(keepsSize), isTold = (group) => rise(group) !== 0 &&
    !(isCounted && gained(group) === 0);
  const changed = groups.filter(isTold).sort((a, b) => Math.abs(rise(b)) - Math.abs(rise(a)));
  if (!changed.length) return "No group gets the outcome more or less often than before.";
  const told = changed.slice(0, TOLD), up = changed.filter((group) => rise(group) > 0).length;
  if (changed.length > MANY && outcomes.length === 1) {
    return `${up} of ${groups.length} groups would have ${outcomeName(told[0])} more often, ${changed.length - up} ` +
      `less often, most of all ${told.map(groupName).join(", ")}.`;
  }
  const words = told.map((group, index) => {
    const outcome = index === 0 || outcomes.length > 1 ? ` would have ${outcomeName(group)}` : "";
    const count = Math.abs(gained(group));
    const who = `${isBare(group.group) ? "of " : ""}${groupName(group)}`;
    if (isCounted) return `${whole(count)} ${gained(group) >= 0 ? "more" : "fewer"} ${who}${outcome}`;
    return `${percent(group.rate_after)} of ${groupName(group)}${outcome} instead of ${percent(group.rate_before)}`;
  });
  const rest = changed.length - told.length;
  return `${words.join(", ")}${rest ? `; ${rest} more ${rest === 1 ? "group changes" : "groups change"} less`
    : changed.length < groups.length && isCounted ? "; nobody else changes" : ""}.`;
}
