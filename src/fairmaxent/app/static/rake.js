// Rake: weights that give the table known shares, e.g. those of a census.

import { h, newId, table } from "./dom.js";
import { choose, form } from "./form.js";
import { percent, size } from "./format.js";

const MOST_LEVELS = 20;
const MOST_CELLS = 120; // of crossed columns

export function drawRake(section, { state, rake }) {
  // Each value is a level here, so numbers in bins are of no use.
  const columns = state.look.columns.filter((column) => !column.identifier && column.choices.length >= 2 &&
    column.choices.length <= MOST_LEVELS && column.values <= column.choices.length);
  const margins = columns.map((column) => knownShares([column]));
  const list = h("div", null, margins.map((one) => one.element));
  const values = { random_state: 0 };
  const bounds = [factor("Smallest factor", 0, 1, 0.3), factor("Largest factor", 1, 1000, 3)];
  const limit = tick("Limit how much a weight may change");
  const numeric = state.look.columns.filter((column) => column.kind === "numeric");
  section.replaceChildren(h("details", null, h("summary", null, h("h2", { id: "rake-title" }, "Or weight to known margins")),
    h("p", { class: "soft" }, "If you know the true shares of some columns, e.g. from a census, rows get weights that give the " +
      "table these shares, and otherwise change as little as possible. No outcome is involved."),
    list,
    columns.length > 1 && crossing(columns, (pair) => { const one = knownShares(pair, true); margins.push(one); list.append(one.element); one.focus(); }),
    h("p", null, limit.element), bounds.map((one) => one.element),
    h("details", null, h("summary", null, "Advanced: weights, replicates, report"),
      numeric.length > 0 && choose("Design weights of the sample", "", [["", "none"], ...numeric.map((column) => [column.name, column.name])],
        (weight) => { values.weight = weight || null; }),
      form(state.forms.raking, values, (changed) => Object.assign(values, changed))),
    h("p", null, h("button", { type: "button", id: "rake-button", onclick: () => {
      const known = margins.filter((one) => one.isKnown());
      rake({ margins: known.map((one) => one.value()), options: { ...values,
        bounds: limit.isOn() ? bounds.map((one) => one.value()).join(",") : null,
        relax: known.filter((one) => one.mayBeMissed()).map((one) => one.names) } });
    } }, "Make the weights")),
    h("div", { id: "raking" }), h("div", { id: "raked" })));
}

function tick(label) {
  const id = newId("tick");
  const box = h("input", { type: "checkbox", id });
  return { isOn: () => box.checked, element: h("span", { class: "flag" }, box, h("label", { for: id }, label)) };
}

// Two columns whose combinations have known shares.
function crossing(columns, add) {
  const names = columns.map((column) => [column.name, column.name]);
  const chosen = [columns[0].name, columns[1].name];
  const pick = (index, label) => choose(label, chosen[index], names, (name) => { chosen[index] = name; });
  const said = h("span", { class: "soft", role: "status" });
  return h("div", { class: "line" }, pick(0, "Cross"), pick(1, "with"), h("button", { type: "button", onclick: () => {
    const pair = chosen.map((name) => columns.find((column) => column.name === name));
    const cells = pair[0].choices.length * pair[1].choices.length;
    said.textContent = pair[0] === pair[1] ? "Choose two columns." : cells > MOST_CELLS ? "They have too many combinations." : "";
    if (!said.textContent) add(pair);
  } }, "Add their combinations"), said);
}

// One column, or crossed ones: a tick, and a number for each level or combination, in percent.
function knownShares(columns, known = false) {
  const names = columns.map((column) => column.name), name = names.join(" × ");
  const cells = columns.reduce((before, column) => before.flatMap((cell) => column.choices.map((level) => [...cell, level])), [[]]);
  const each = Math.floor(1000 / cells.length) / 10;
  const last = Math.round(1000 - 10 * each * (cells.length - 1)) / 10;
  const start = columns.length === 1 && columns[0].choices.length === columns[0].shares.length
    ? tenths(columns[0].shares.map(([, share]) => share)) : cells.map((_, index) => (index < cells.length - 1 ? each : last));
  const inputs = cells.map((cell, index) => factor(cell.join(", "), 0, 100, start[index]));
  const box = tick(`The shares of ${name} are known`), missed = tick(`If margins contradict each other, ${name} may be missed`);
  const fields = h("div", { class: "shares" }, h("p", { class: "soft" }, "in percent; they must add up to 100"),
    h("div", { class: "cells" }, inputs.map((one) => one.element)), missed.element);
  const input = box.element.querySelector("input");
  const show = () => { fields.hidden = !input.checked; };
  input.checked = known;
  input.addEventListener("change", show);
  show();
  return { names, isKnown: box.isOn, mayBeMissed: missed.isOn, focus: () => input.focus(),
    value: () => ({ columns: names, shares: cells.map((cell, index) => [cell, Math.round(inputs[index].value() * 1e4) / 1e6]) }),
    element: h("div", null, box.element, fields) };
}

// Percents with one digit that add up to 100.
function tenths(shares) {
  const parts = shares.map((share) => Math.round(1000 * share));
  parts[parts.indexOf(Math.max(...parts))] += 1000 - parts.reduce((total, part) => total + part, 0);
  return parts.map((part) => part / 10);
}

function factor(label, min, max, value) {
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
