// Rake: weights that give the table known shares, e.g. those of a census.

import { h, newId, table } from "./dom.js";
import { percent, size } from "./format.js";

const MOST_LEVELS = 20;

export function drawRake(section, { state, rake }) {
  const columns = state.look.columns.filter((column) => column.choices.length >= 2 && column.choices.length <= MOST_LEVELS);
  const chosen = columns.map((column) => knownShares(column));
  const bounds = [number("Smallest factor", 0.01, 1, 0.3), number("Largest factor", 1, 1000, 3)];
  const limitId = newId("limit");
  const limit = h("input", { type: "checkbox", id: limitId });
  section.replaceChildren(h("details", null, h("summary", null, h("h2", { id: "rake-title" }, "Or weigh to known margins")),
    h("p", { class: "soft" }, "If you know the true shares of some columns, e.g. from a census, rows get weights that give the " +
      "table these shares, and otherwise change as little as possible. No outcome is involved."),
    chosen.map((one) => one.element),
    h("p", { class: "flag" }, limit, h("label", { for: limitId }, "Limit how much a weight may change")),
    bounds.map((one) => one.element),
    h("p", null, h("button", { type: "button", id: "rake-button", onclick: () => rake({
      margins: Object.fromEntries(chosen.filter((one) => one.isKnown()).map((one) => [one.name, one.shares()])),
      bounds: limit.checked ? bounds.map((one) => one.value()) : null,
    }) }, "Make the weights")),
    h("div", { id: "raking" }), h("div", { id: "raked" })));
}

// One column: a tick, and a number for each level, in percent.
function knownShares(column) {
  const id = newId("known");
  const box = h("input", { type: "checkbox", id, onchange: () => { fields.hidden = !box.checked; } });
  const each = Math.floor(1000 / column.choices.length) / 10;
  const last = Math.round(1000 - 10 * each * (column.choices.length - 1)) / 10;
  const inputs = column.choices.map((level, index) => number(level, 0, 100, index < column.choices.length - 1 ? each : last));
  const fields = h("div", { class: "shares", hidden: true }, h("p", { class: "soft" }, "in percent; they must add up to 100"),
    inputs.map((one) => one.element));
  return { name: column.name, isKnown: () => box.checked,
    shares: () => Object.fromEntries(column.choices.map((level, index) => [level, Math.round(inputs[index].value() * 1e4) / 1e6])),
    element: h("div", null, h("span", { class: "flag" }, box, h("label", { for: id }, `The shares of ${column.name} are known`)), fields) };
}

function number(label, min, max, value) {
  const id = newId("share");
  const input = h("input", { type: "number", id, min, max, step: "any" });
  input.value = value;
  return { value: () => Number(input.value), element: h("div", { class: "line" }, h("label", { for: id }, label), input) };
}

export function drawRaked(target, result) {
  target.replaceChildren(
    table("Margins", ["Level", "rows", "before", "known", "after"], result.levels.map((one) =>
      [`${one.margin} = ${one.level}`, String(one.rows), percent(one.before), percent(one.wanted), percent(one.achieved)]), [1, 2, 3, 4]),
    h("ul", null, [...result.summary, ...result.notes].map((text) => h("li", null, text))),
    h("ul", { class: "files" }, result.files.map((file) => h("li", null,
      h("a", { href: `/files/${file.folder}/${encodeURIComponent(file.name)}`, download: "" }, `${file.what}: ${file.name}`), ` (${size(file.bytes)})`))),
    h("p", { class: "soft" }, "The same on the command line:"), h("pre", { tabindex: "0", "aria-label": "Command that rakes" }, result.command));
}
