// Wanted shares: of any column, typed or by dragging bars.

import { drawBars, forget, wholeShares } from "./bars.js";
import { h } from "./dom.js";
import { choose } from "./form.js";

const MOST_LEVELS = 20; // of a column whose shares can be dragged

const canBeDragged = (column) => !column.identifier && column.shares.length >= 2 && column.shares.length <= MOST_LEVELS;
const byLevel = (column, shares) => Object.fromEntries(column.shares.map(([level], index) => [level, shares[index]]));
const asInData = (column) => {
  forget(column.name);
  return byLevel(column, wholeShares(column.shares.map(([, share]) => share)));
};

export function shares(state, options, change) {
  const target = options.target ?? {};
  const find = (name) => state.look.columns.find((column) => column.name === name);
  const left = state.look.columns.filter((column) => canBeDragged(column) && !(options.drop ?? []).includes(column.name) &&
    column.name !== options.weight && !(column.name in target));
  const set = (column, wanted, draw = false) =>
    change({ target: { ...options.target, [column.name]: wanted }, ...sizes(options, column.name) }, { draw });
  const remove = (name) => {
    const rest = Object.fromEntries(Object.entries(options.target ?? {}).filter(([other]) => other !== name));
    change({ target: Object.keys(rest).length ? rest : null }, { draw: true });
  };
  return h("details", { open: Object.keys(target).length > 0 }, h("summary", null, "Wanted shares"),
    choose("Choose the shares of", "", [["", "choose a column…"], ...left.map((column) => [column.name, column.name])],
      (name) => name && set(find(name), asInData(find(name)), true)),
    Object.entries(target).map(([name, wanted]) => find(name) && one(options, find(name), wanted, set, remove)));
}

function one(options, column, wanted, set, remove) {
  const { name } = column;
  const isOutcome = name === options.outcome || name in (options.also ?? {});
  const kinds = [["shares", "as set here"], ["keep", "as in the data"], ...(isOutcome ? [["free", "free to change"]] : [])];
  const kind = wanted === null ? "keep" : wanted === "free" ? "free" : "shares";
  const values = { shares: () => asInData(column), keep: () => null, free: () => "free" };
  const levels = column.shares.map(([level]) => level);
  return h("fieldset", null, h("legend", null, `Shares of ${name}`),
    choose(`The shares of ${name} are`, kind, kinds, (chosen) => set(column, values[chosen](), true)),
    kind === "shares" && [
      h("p", { class: "soft" }, "Type a share, drag its bar, or use the arrow keys (with Shift: small steps). What you set stays; the others follow."),
      drawBars(name, levels, levels.map((level) => wanted[level] ?? 0), (parts) => set(column, byLevel(column, parts)))],
    h("button", { type: "button", "aria-label": `Remove the shares of ${name}`, onclick: () => remove(name) }, "Remove"));
}

// The sizes of groups whose shares are chosen cannot also be asked to be equal.
function sizes(options, column) {
  const asked = options.representation_rate;
  if (asked === null || asked === undefined || !options.protected.includes(column)) return {};
  if (options.protected.length === 1 || options.groups === "joint") return { representation_rate: null };
  const by = typeof asked === "object" ? asked : Object.fromEntries(options.protected.map((name) => [name, asked]));
  return { representation_rate: { ...by, [column]: null } };
}
