// Wanted shares: of any column, typed or by dragging bars, which together are always the whole.

import { at, h, has } from "./dom.js";
import { choose, isGiven, withRate } from "./form.js";

const MOST_LEVELS = 20; // of a column whose shares can be dragged
const HOW = "Type a share, drag its bar, or use the arrow keys. What you set stays; the others follow.";

const inData = (column) => Object.fromEntries(column.shares); // to the last digit, so that nothing changes

// Columns in the order in which they were chosen, and whether anything was asked of them; nothing is before a bar is moved.
const chosen = new Map();
// The levels of each column that were set by hand, oldest first. Both outlive drawing.
const byHand = new Map();
export const forgetMoves = () => { chosen.clear(); byHand.clear(); };

export function shares(state, options, change, again) {
  const target = options.target ?? {};
  const isFree = (column) => !column.identifier && column.shares.length >= 2 && column.shares.length <= MOST_LEVELS &&
    !(options.drop ?? []).includes(column.name) && column.name !== options.weight;
  const find = (name) => state.look.columns.find((column) => column.name === name);
  for (const [name, isAsked] of chosen) if (isAsked && !has(target, name)) chosen.delete(name); // its wish was taken back elsewhere
  const names = new Set([...chosen.keys(), ...Object.keys(target)]);
  const shown = [...names].map(find).filter((column) => column && (has(target, column.name) || isFree(column)));
  const left = state.look.columns.filter((column) => isFree(column) && !shown.includes(column));
  const set = (column, wanted, draw = false) => {
    chosen.set(column.name, true);
    change({ target: { ...options.target, [column.name]: wanted }, ...sizes(options, column.name) }, { draw });
  };
  const remove = ({ name }) => {
    byHand.delete(name);
    chosen.delete(name);
    if (!has(options.target, name)) return again();
    const rest = Object.fromEntries(Object.entries(options.target ?? {}).filter(([other]) => other !== name));
    change({ target: Object.keys(rest).length ? rest : null }, { draw: true });
  };
  return h("details", { open: shown.length > 0 }, h("summary", null, "Wanted shares"),
    choose("Choose the shares of", "", [["", "choose a column…"], ...left.map((column) => [column.name, column.name])],
      (name) => { if (name) { chosen.set(name, false); again(); } }),
    shown.length > 0 && h("p", { class: "soft" }, HOW),
    shown.map((column) => one(options, column, { set, remove, again })));
}

// What is asked of the shares of a column: nothing yet, these shares, those of the data, or that they are free.
function kindOf(options, { name }) {
  const wanted = at(options.target, name);
  return wanted === undefined ? "none" : wanted === null ? "keep" : wanted === "free" ? "free" : "shares";
}

function one(options, column, { set, remove, again }) {
  const { name } = column, kind = kindOf(options, column);
  const isOutcome = name === options.outcome || has(options.also, name);
  const kinds = [...(kind === "none" ? [["none", "not asked for yet"]] : []), ["shares", "as set here"], ["keep", "as in the data"],
    ...(isOutcome ? [["free", "free to change"]] : [])];
  const values = { shares: inData(column), keep: null, free: "free" };
  const wanted = kind === "shares" ? options.target[name] : inData(column);
  const levels = column.shares.map(([level]) => level);
  const moved = (parts) => set(column, Object.fromEntries(levels.map((level, index) => [level, parts[index]])));
  // Other controls depend on the first move; they are drawn when the hand rests, as drawing would end the drag.
  const rest = () => kind === "none" && kindOf(options, column) === "shares" && setTimeout(again);
  return h("fieldset", null, h("legend", null, `Shares of ${name}`),
    choose(`The shares of ${name} are`, kind, kinds, (next) => { byHand.delete(name); if (next !== "none") set(column, values[next], true); }),
    ["none", "shares"].includes(kind) && bars(name, levels, levels.map((level) => at(wanted, level) ?? 0), moved, rest),
    h("button", { type: "button", "aria-label": `Remove the shares of ${name}`, onclick: () => remove(column) }, "Remove"));
}

// The sizes of groups whose shares are chosen cannot also be asked to be equal.
function sizes(options, column) {
  const name = "representation_rate";
  if (!isGiven(options[name]) || !options.protected.includes(column)) return {};
  const isOne = options.protected.length === 1 || options.groups === "joint";
  return { [name]: withRate(options, name, isOne ? null : column, null) };
}

// ---------------------------------------------------------------- bars

const WHOLE = 1000; // tenths of a percent

// Whole tenths of a percent that add up to 100 %, by largest remainders.
function rounded(shares, whole = WHOLE) {
  const sum = shares.reduce((total, share) => total + share, 0);
  const exact = shares.map((share) => (sum > 0 ? (whole * share) / sum : whole / shares.length));
  const result = exact.map(Math.floor);
  const order = exact.map((_, index) => index).sort((a, b) => (exact[b] % 1) - (exact[a] % 1));
  const left = whole - result.reduce((total, part) => total + part, 0);
  for (let turn = 0; turn < left; turn += 1) result[order[turn % order.length]] += 1;
  return result;
}

// Move one bar. Bars that were set stay, and the others follow in proportion; if there are none, or they have too little,
// the bar that was set longest ago follows too.
function moved(parts, index, wanted, set) {
  const value = Math.min(WHOLE, Math.max(0, Math.round(wanted)));
  const fixed = set.filter((other) => other !== index);
  const room = () => WHOLE - value - fixed.reduce((total, other) => total + parts[other], 0);
  while (fixed.length && (fixed.length === parts.length - 1 || room() < 0)) fixed.shift();
  const free = parts.map((_, other) => other).filter((other) => other !== index && !fixed.includes(other));
  const shares = rounded(free.map((other) => parts[other]), room());
  return parts.map((part, other) => (other === index ? value : free.includes(other) ? shares[free.indexOf(other)] : part));
}

// `change` is called with the shares, which add up to 1, while the hand moves, and `rest` when it rests.
function bars(column, levels, shares, change, rest) {
  let parts = rounded(shares);
  const move = (index, percents) => {
    const set = byHand.get(column) ?? [];
    parts = moved(parts, index, 10 * percents, set);
    byHand.set(column, [...set.filter((other) => other !== index), index]);
    show();
    change(parts.map((part) => part / WHOLE));
  };
  const emptied = h("p", { class: "soft", role: "status" });
  const rows = levels.map((level, index) => {
    const spoken = `Share of ${column} = ${level}`;
    const range = h("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": spoken,
      oninput: () => move(index, Number(range.value)), onchange: rest });
    const field = h("input", { type: "number", min: 0, max: 100, step: 0.1, "aria-label": `${spoken}, in percent`,
      onchange: () => { if (field.value !== "" && field.reportValidity()) { move(index, Number(field.value)); rest(); } } });
    return { range, field, element: h("div", { class: "share" }, h("span", { class: "level" }, level), range, h("span", null, field, " %")) };
  });
  const show = () => {
    rows.forEach(({ range, field }, index) => { range.value = parts[index] / 10; field.value = (parts[index] / 10).toFixed(1); });
    const none = levels.filter((_, index) => parts[index] === 0 && shares[index] > 0);
    emptied.textContent = none.length ? `With 0 %, nobody is left with ${column} = ${none.join(", ")}.` : "";
  };
  show();
  return h("div", { class: "bars" }, rows.map((row) => row.element), emptied);
}
