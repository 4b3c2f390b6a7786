// Bars: shares that are typed, dragged, or moved with the arrow keys; together they are always the whole.

import { h, s } from "./dom.js";

const WHOLE = 1000; // tenths of a percent
const WIDTH = 160, HEIGHT = 28;
const STEPS = { ArrowRight: 10, ArrowUp: 10, ArrowLeft: -10, ArrowDown: -10, PageUp: 100, PageDown: -100 };
const shown = (part) => `${(part / 10).toFixed(1)} %`;

// Whole tenths of a percent that add up to 100 %, by largest remainders.
function rounded(shares, whole = WHOLE) {
  const sum = shares.reduce((total, share) => total + share, 0);
  const exact = shares.map((share) => (sum > 0 ? (whole * share) / sum : whole / shares.length));
  const result = exact.map(Math.floor);
  const order = exact.map((_, index) => index).sort((a, b) => (exact[b] % 1) - (exact[a] % 1));
  for (let left = whole - result.reduce((total, part) => total + part, 0), turn = 0; left > 0; left -= 1, turn += 1) {
    result[order[turn % order.length]] += 1;
  }
  return result;
}

// The levels of each column that were set by hand, oldest first; they outlive drawing.
const byHand = new Map();
export const forget = (column) => byHand.delete(column);
export const forgetAll = () => byHand.clear();

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
export function drawBars(column, levels, shares, change, rest) {
  let parts = rounded(shares);
  const move = (index, wanted) => {
    const set = byHand.get(column) ?? [];
    parts = moved(parts, index, wanted, set);
    byHand.set(column, [...set.filter((other) => other !== index), index]);
    show();
    change(parts.map((part) => part / WHOLE));
  };
  const rows = levels.map((level, index) => bar(`Share of ${column} = ${level}`, level, () => parts[index], (wanted) => move(index, wanted), rest));
  const emptied = h("p", { class: "soft", role: "status" });
  const show = () => {
    rows.forEach((row) => row.show());
    const none = levels.filter((_, index) => parts[index] === 0 && shares[index] > 0);
    emptied.textContent = none.length ? `With 0 %, nobody is left with ${column} = ${none.join(", ")}.` : "";
  };
  show();
  return h("div", { class: "bars" }, rows.map((row) => row.element), emptied);
}

function bar(spoken, level, get, move, rest) {
  const set = (wanted) => { move(wanted); rest(); };
  const fill = s("rect", { class: "fill", x: 0, y: 4, height: HEIGHT - 8, width: 0 });
  const grip = s("rect", { class: "grip", y: 0, height: HEIGHT, width: 10, rx: 3 });
  const field = h("input", { type: "number", min: 0, max: 100, step: 0.1, "aria-label": `${spoken}, in percent`,
    onchange: () => field.value !== "" && field.reportValidity() && set(10 * Number(field.value)) });
  const at = (event) => {
    const box = picture.getBoundingClientRect();
    move(10 * Math.round((100 * (event.clientX - box.left)) / box.width));
  };
  const picture = s("svg", { class: "bar", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "slider",
    tabindex: "0", "aria-label": spoken, "aria-valuemin": 0, "aria-valuemax": 100,
    onpointerdown: (event) => { picture.setPointerCapture(event.pointerId); picture.focus(); at(event); },
    onpointermove: (event) => picture.hasPointerCapture(event.pointerId) && at(event),
    onlostpointercapture: rest,
    onkeydown: (event) => {
      const step = (STEPS[event.key] ?? 0) / (event.shiftKey ? 10 : 1);
      const wanted = event.key === "Home" ? 0 : event.key === "End" ? WHOLE : step ? get() + step : null;
      if (wanted === null) return;
      event.preventDefault();
      set(wanted);
    } },
    s("rect", { class: "room", x: 0, y: 4, width: WIDTH, height: HEIGHT - 8 }), fill, grip);
  const show = () => {
    const x = (WIDTH * get()) / WHOLE;
    fill.setAttribute("width", x);
    grip.setAttribute("x", Math.min(WIDTH - 10, Math.max(0, x - 5)));
    picture.setAttribute("aria-valuenow", get() / 10);
    picture.setAttribute("aria-valuetext", shown(get()));
    field.value = (get() / 10).toFixed(1);
  };
  return { show, element: h("div", { class: "share" }, h("span", { class: "level" }, level), picture, h("span", null, field, " %")) };
}
