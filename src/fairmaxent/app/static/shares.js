// @ts-check
// Wanted shares: of any column, typed or by dragging bars, which together are always the whole.

import { Component, at, button, folded, h, has, soft } from "./dom.js";
import { Typed, choose, isGiven, named, withRate } from "./form.js";
import { wholes } from "./format.js";
import { change, set, store } from "./store.js";

export const MOST_LEVELS = 20; // of a column whose shares can be dragged
const HOW = "Type a share, drag its bar, or use the arrow keys. What you set stays; the others " +
  "follow.";

// to the last digit, so that all stays
const inData = (column) => Object.fromEntries(column.shares);

// Columns that were chosen, of which nothing may be asked yet, are in the store: by name, the
// levels set by hand, oldest first.
const without = (record, name) =>
  Object.fromEntries(Object.entries(record).filter(([other]) => other !== name));

export function shares() {
  const { state: { look }, options, shares: chosen } = store, target = options.target ?? {};
  const dropped = options.drop ?? [];
  const isFree = ({ name, identifier, shares: own }) => !identifier && own.length >= 2 &&
    own.length <= MOST_LEVELS && !dropped.includes(name) && name !== options.weight;
  const names = [...new Set([...Object.keys(chosen), ...Object.keys(target)])];
  const shown = names.map((name) => look.columns.find((column) => column.name === name))
    .filter((column) => column && (has(target, column.name) || isFree(column)));
  const left = look.columns.filter((column) => isFree(column) && !shown.includes(column));
  return folded("Wanted shares", shown.length > 0,
    choose("Choose the shares of", "", named("choose a column…", left),
      (name) => name && set({ shares: { ...chosen, [name]: [] } })),
    shown.length > 0 && soft(HOW),
    shown.map((column) => h(Shares, { column, options, key: column.name })));
}

// What is asked of the shares of a column: nothing yet, these shares, those of the data, or that
// they are free.
function kindOf(options, { name }) {
  const wanted = at(options.target, name);
  if (wanted === undefined) return "none";
  if (wanted === null) return "keep";
  return wanted === "free" ? "free" : "shares";
}

class Shares extends Component {
  render({ options, column }) {
    const { name } = column, kind = kindOf(options, column);
    const isOutcome = name === options.outcome || has(options.further_outcomes, name);
    const choices = [...(kind === "none" ? [["none", "not asked for yet"]] : []),
      ["shares", "as set here"], ["keep", "as in the data"],
      ...(isOutcome ? [["free", "free to change"]] : [])];
    const values = { shares: inData(column), keep: null, free: "free" };
    const ask = (wanted) =>
      change({ target: { ...options.target, [name]: wanted }, ...sizes(options, name) });
    const remove = () => {
      set({ shares: without(store.shares, name) });
      if (!has(options.target, name)) return;
      const rest = without(options.target, name);
      change({ target: Object.keys(rest).length ? rest : null });
    };
    const next = (chosen) => {
      set({ shares: { ...store.shares, [name]: [] } });
      if (chosen !== "none") ask(values[chosen]);
    };
    const wanted = kind === "shares" ? options.target[name] : inData(column);
    return h("fieldset", null, h("legend", null, `Shares of ${name}`),
      choose(`The shares of ${name} are`, kind, choices, next),
      ["none", "shares"].includes(kind) && bars(column, wanted, ask),
      button("Remove", remove, { "aria-label": `Remove the shares of ${name}` }));
  }
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

// Whole tenths of a percent that add up to 100 %.
export function rounded(parts, whole = WHOLE) {
  const sum = parts.reduce((total, share) => total + share, 0);
  const exact = parts.map((share) => (sum > 0 ? (whole * share) / sum : whole / parts.length));
  return wholes(exact, whole);
}

// Move one bar. Bars that were set stay, and the others follow in proportion; if there are none, or
// they have too little, the bar that was set longest ago follows too.
export function moved(parts, index, wanted, held) {
  const value = Math.min(WHOLE, Math.max(0, Math.round(wanted)));
  const fixed = held.filter((other) => other !== index);
  const room = () => WHOLE - value - fixed.reduce((total, other) => total + parts[other], 0);
  while (fixed.length && (fixed.length === parts.length - 1 || room() < 0)) fixed.shift();
  const free = parts.map((_, other) => other)
    .filter((other) => other !== index && !fixed.includes(other));
  const follow = rounded(free.map((other) => parts[other]), room());
  const next = (part, other) => (free.includes(other) ? follow[free.indexOf(other)] : part);
  return parts.map((part, other) => (other === index ? value : next(part, other)));
}

function bars(column, wanted, ask) {
  const { name } = column, levels = column.shares.map(([level]) => level);
  const parts = rounded(levels.map((level) => at(wanted, level) ?? 0));
  const move = (index, percents) => {
    const held = at(store.shares, name) ?? [], next = moved(parts, index, 10 * percents, held);
    const set = [...held.filter((other) => other !== index), index];
    Object.assign(store, { shares: { ...store.shares, [name]: set } });
    ask(Object.fromEntries(levels.map((level, other) => [level, next[other] / WHOLE])));
  };
  const bar = (level, index) => {
    const spoken = `Share of ${name} = ${level}`;
    return h("div", { class: "share", key: level },
      h("span", { class: "level" }, level),
      h("input", { type: "range", min: 0, max: 100, step: 1, "aria-label": spoken,
        value: parts[index] / 10, oninput: (event) => move(index, Number(event.target.value)) }),
      h("span", null, h(Typed, { type: "number", min: 0, max: 100, step: 0.1,
        "aria-label": `${spoken}, in percent`, value: (parts[index] / 10).toFixed(1),
        change: (words) => words !== "" && move(index, Number(words)) }), " %"));
  };
  const none = column.shares.filter(([, share], index) => parts[index] === 0 && share > 0)
    .map(([level]) => level);
  return h("div", { class: "bars" }, levels.map(bar),
    h("p", { class: "soft", role: "status" },
      none.length > 0 && `With 0 %, nobody is left with ${name} = ${none.join(", ")}.`));
}
