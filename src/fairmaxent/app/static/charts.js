// @ts-check
// Pictures, each a function of numbers: groups as dots of people, and the curve of a trade-off.

import { h, soft } from "./dom.js";
import { groupName, outcomeName, percent, whole } from "./format.js";

// A round end of a scale from 0 to the largest of some shares, and the step of its ticks.
const STEPS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const stepTo = (top) => STEPS.find((step) => top / step <= 5.001) ?? 0.2;
function roundTop(shares) {
  const most = Math.max(...shares.filter((share) => share !== null && share !== undefined), 1e-4);
  const step = stepTo(most);
  return Math.min(1, step * Math.ceil(most / step - 1e-9));
}
const ticks = (most) =>
  Array.from({ length: Math.round(most / stepTo(most)) + 1 }, (_, index) => index * stepTo(most));
const tickText = (value, most) => `${(100 * value).toFixed(stepTo(most) < 0.01 ? 2 : 0)} %`;

// ---------------------------------------------------------------- people as dots

const ACROSS = 20, DOTS = 100, APART = 13;
const circle = (index, radius) => {
  const x = APART * (index % ACROSS) + APART / 2, y = APART * Math.floor(index / ACROSS) + APART / 2;
  return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
};

// How many of some dots have the outcome before and after; of a tiny group each dot is one person.
export function dotCounts({ people_before: people, rate_before: before, rate_after: after }) {
  const dots = Math.max(1, Math.min(DOTS, Math.round(people)));
  return { dots, before: Math.round(dots * (before ?? 0)), after: Math.round(dots * (after ?? 0)) };
}

// Each group as dots: those that have the outcome, those that get it or no longer have it, and the others.
export function dotsOf(group) {
  const { dots, before, after } = dotCounts(group);
  const kinds = [["have", 0, Math.min(before, after)], [after > before ? "get" : "miss", Math.min(before, after),
    Math.max(before, after)], ["none", Math.max(before, after), dots]];
  const path = (from, to) => Array.from({ length: to - from }, (_, index) => circle(from + index, 4.5)).join("");
  const rows = Math.ceil(dots / ACROSS);
  const spoken = `${groupName(group)}: ${after} of ${dots} have ${outcomeName(group)}, ` +
    `${before} before`;
  const people = Math.round(group.people_after);
  return h("div", { class: "people", key: `${group.column} ${group.group}` },
    h("div", { class: "names" }, h("strong", null, groupName(group)),
      h("span", null, `${percent(group.rate_before)} → ${percent(group.rate_after)}`)),
    h("svg", { viewBox: `0 0 ${ACROSS * APART} ${rows * APART}`, role: "img", "aria-label": spoken },
      kinds.map(([kind, from, to]) => h("path", { class: `dots ${kind}`, d: path(from, to) }))),
    soft(`${whole(people)} people${people < DOTS ? ", a dot each" : ""}`));
}

// ---------------------------------------------------------------- the trade-off under a slider

const TALL = 170, TOP = 14, BOTTOM = 26, EDGE = 10; // the middle of a slider's handle is that far from its end

// Each group's rate as a line over the whole range, the effective rows as a band; `now` are the present numbers.
export function tradeOff({ curve, one, value, now, own, rows, width }) {
  const { points, groups } = curve, index = curve.kind === "statistical_rate" ? 1 : 0;
  const x = (at) => EDGE + (width - 2 * EDGE) * ((at - one.least) / (one.most - one.least));
  const most = roundTop(points.flatMap((point) => point.groups.map((group) => group[index])));
  const up = (share) => TOP + (TALL - TOP - BOTTOM) * (1 - share);
  const paths = groups.map((_, group) => points.filter((point) => point.groups[group]?.[index] !== null)
    .map((point) => `${x(point.value).toFixed(1)},${up(point.groups[group][index] / most).toFixed(1)}`).join(" "));
  const worth = points.filter((point) => point.effective_rows !== null);
  const band = worth.length > 1 && [`${x(worth[0].value)},${up(0)}`,
    ...worth.map((point) => `${x(point.value)},${up(point.effective_rows / rows)}`),
    `${x(worth.at(-1).value)},${up(0)}`].join(" ");
  const asItIs = own !== null && own >= one.least && own <= one.most;
  const text = (words, at, y, anchor, more) => h("text", { x: at, y, "text-anchor": anchor, ...more }, words);
  return h("figure", { class: "curve" },
    h("svg", { width, height: TALL, viewBox: `0 0 ${width} ${TALL}`, role: "img",
      "aria-label": spokenCurve(curve, index) },
      band && h("polygon", { class: "band", points: band }),
      ticks(most).map((tick) =>
        h("line", { class: "track thin", x1: EDGE, x2: width - EDGE, y1: up(tick / most), y2: up(tick / most) })),
      asItIs && h("rect", { class: "below", x: EDGE, y: TOP, width: Math.max(0, x(own) - EDGE),
        height: TALL - TOP - BOTTOM }),
      asItIs && [h("line", { class: "own", x1: x(own), x2: x(own), y1: TOP, y2: up(0) }),
        text("as it is", x(own), TALL - 8, x(own) < 60 ? "start" : x(own) > width - 60 ? "end" : "middle")],
      paths.map((path, group) => h("polyline", { class: `line g${group % 6}`, points: path })),
      ticks(most).slice(1).map((tick) => text(tickText(tick, most), width - EDGE, up(tick / most) - 3, "end")),
      value !== null && h("line", { class: "handle", x1: x(value), x2: x(value), y1: TOP, y2: up(0) }),
      value !== null && now.map((share, group) => share !== null &&
        h("circle", { class: `here g${group % 6}`, cx: x(value), cy: up(share / most), r: 5 }))),
    h("figcaption", { class: "key" }, groups.slice(0, 6).map((group, number) =>
      h("span", { class: `swatch g${number % 6}` }, groups.some((other) => other.outcome !== group.outcome)
        ? `${group.group}: ${group.outcome}` : groupName(group))),
    groups.length > 6 && h("span", null, `and ${groups.length - 6} more groups`),
    band && h("span", { class: "swatch band" }, `effective rows, up to ${whole(rows)}`)));
}

function spokenCurve({ points, groups }, index) {
  const ends = [points[0], points.at(-1)].filter(Boolean).map((point) => `at ${point.value}: ` + groups.slice(0, 4)
    .map((group, number) => `${group.group} ${percent(point.groups[number]?.[index] ?? null)}`).join(", "));
  return `Each group, by what is asked for. ${ends.join("; ")}.`;
}
