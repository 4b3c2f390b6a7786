// Wanted shares: of any column, typed or by dragging bars.

import { drawBars, forget, forgetAll } from "./bars.js";
import { at, h, has } from "./dom.js";
import { choose } from "./form.js";

const MOST_LEVELS = 20; // of a column whose shares can be dragged
const HOW = "Type a share, drag its bar, or use the arrow keys (with Shift: small steps). What you set stays; the others follow.";

const canBeDragged = (column) => !column.identifier && column.shares.length >= 2 && column.shares.length <= MOST_LEVELS;
const byLevel = (column, shares) => Object.fromEntries(column.shares.map(([level], index) => [level, shares[index]]));
const inData = (column) => Object.fromEntries(column.shares); // to the last digit, so that nothing changes

// Columns in the order in which they were chosen, and whether anything was asked of them; nothing is before a bar is moved.
const chosen = new Map();
export const forgetMoves = () => { chosen.clear(); forgetAll(); };

export function shares(state, options, change, again) {
  const target = options.target ?? {};
  const isFree = (column) => canBeDragged(column) && !(options.drop ?? []).includes(column.name) && column.name !== options.weight;
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
    forget(name);
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
  const values = { shares: () => inData(column), keep: () => null, free: () => "free" };
  const levels = column.shares.map(([level]) => level);
  const wanted = kind === "shares" ? options.target[name] : inData(column);
  const moved = (parts) => set(column, byLevel(column, parts));
  // Other controls depend on the first move; they are drawn when the hand rests, as drawing would end the drag.
  const rest = () => kind === "none" && kindOf(options, column) === "shares" && setTimeout(again);
  return h("fieldset", null, h("legend", null, `Shares of ${name}`),
    choose(`The shares of ${name} are`, kind, kinds, (next) => { forget(name); if (next !== "none") set(column, values[next](), true); }),
    ["none", "shares"].includes(kind) && drawBars(name, levels, levels.map((level) => at(wanted, level) ?? 0), moved, rest),
    h("button", { type: "button", "aria-label": `Remove the shares of ${name}`, onclick: () => remove(column) }, "Remove"));
}

// The sizes of groups whose shares are chosen cannot also be asked to be equal.
function sizes(options, column) {
  const asked = options.representation_rate;
  if (asked === null || asked === undefined || !options.protected.includes(column)) return {};
  if (options.protected.length === 1 || options.groups === "joint") return { representation_rate: null };
  const by = typeof asked === "object" ? asked : Object.fromEntries(options.protected.map((name) => [name, asked]));
  return { representation_rate: { ...by, [column]: null } };
}
