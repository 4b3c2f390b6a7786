// Rake: weights that give the table known shares, e.g. those of a census.

import { h, table } from "./dom.js";
import { choose, flag, form, number } from "./form.js";
import { percent } from "./format.js";
import { listFiles } from "./take.js";

const MOST_LEVELS = 20;

export function drawRake(section, { state, rake }) {
  // Each value is a level here, so numbers in bins are of no use.
  const columns = state.look.columns.filter((column) => !column.identifier && column.choices.length >= 2 &&
    column.choices.length <= MOST_LEVELS && column.values <= column.choices.length);
  const margins = columns.map(knownShares);
  const values = { random_state: 0 };
  const limits = { isOn: false, factors: [0.3, 3] };
  const factor = (label, index, range) => number(label, limits.factors[index], { ...range, step: "any" }, (value) => { limits.factors[index] = value; });
  const numeric = state.look.columns.filter((column) => column.kind === "numeric");
  section.replaceChildren(h("details", null, h("summary", null, h("h2", { id: "rake-title" }, "Or weight to known margins")),
    h("p", { class: "soft" }, "If you know the true shares of some columns, e.g. from a census, rows get weights that give the " +
      "table these shares, and otherwise change as little as possible. No outcome is involved."),
    margins.map((one) => one.element),
    h("p", null, flag("Limit how much a weight may change", false, (isOn) => { limits.isOn = isOn; })),
    factor("Smallest factor", 0, { min: 0, max: 1 }), factor("Largest factor", 1, { min: 1, max: 1000 }),
    h("details", null, h("summary", null, "Advanced: weights, replicates, report"),
      numeric.length > 0 && choose("Design weights of the sample", "", [["", "none"], ...numeric.map((column) => [column.name, column.name])],
        (weight) => { values.weight = weight || null; }),
      form(state.forms.raking, values, (changed) => Object.assign(values, changed))),
    h("p", null, h("button", { type: "button", id: "rake-button", onclick: () => {
      const known = margins.filter((one) => one.isKnown);
      rake({ margins: known.map(({ column, shares }) => ({ column, shares: shares.map(([level, share]) => [level, Math.round(share * 1e4) / 1e6]) })),
        options: { ...values, bounds: limits.isOn ? limits.factors.map((one) => one ?? "none").join(",") : null,
          relax: known.filter((one) => one.mayBeMissed).map((one) => [one.column]) } });
    } }, "Make the weights")),
    h("div", { id: "raking" }), h("div", { id: "raked" })));
}

// One column: a tick, and a number for each level, in percent; at first those of the data.
function knownShares({ name, choices, shares }) {
  const inData = shares.length === choices.length ? tenths(shares.map(([, share]) => share)) : tenths(choices.map(() => 1 / choices.length));
  const known = { column: name, isKnown: false, mayBeMissed: false, shares: choices.map((level, index) => [level, inData[index]]) };
  const fields = h("div", { class: "shares", hidden: true }, h("p", { class: "soft" }, "in percent; they must add up to 100"),
    h("div", { class: "cells" }, known.shares.map((pair) => number(pair[0], pair[1], { min: 0, max: 100, step: "any" }, (value) => { pair[1] = value; }))),
    flag(`If margins contradict each other, ${name} may be missed`, false, (may) => { known.mayBeMissed = may; }));
  known.element = h("div", null, flag(`The shares of ${name} are known`, false, (is) => { known.isKnown = is; fields.hidden = !is; }), fields);
  return known;
}

// Percents with one digit that add up to 100.
function tenths(shares) {
  const parts = shares.map((share) => Math.round(1000 * share));
  parts[parts.indexOf(Math.max(...parts))] += 1000 - parts.reduce((total, part) => total + part, 0);
  return parts.map((part) => part / 10);
}

export function drawRaked(target, result) {
  target.replaceChildren(
    table("Margins", ["Level", "rows", "before", "known", "after"], result.levels.map((one) =>
      [`${one.margin} = ${one.level}`, String(one.rows), percent(one.before), percent(one.wanted), percent(one.achieved)]), [1, 2, 3, 4]),
    h("ul", null, [...result.summary, ...result.notes].map((text) => h("li", null, text))),
    listFiles(result.files),
    h("p", { class: "soft" }, "The same on the command line:"), h("pre", { tabindex: "0", "aria-label": "Command that rakes" }, result.command));
}
