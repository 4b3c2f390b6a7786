// @ts-check
// Pictures, each a function of numbers: people as dots, arrows from before to after, and the curve
// of a rate with what it costs.

import { h } from "./dom.js";
import { amounts, hundredths, percent, roughly, short, ticksOf, whole } from "./format.js";
import { costOf, groupName, outcomeName } from "./people.js";

// Round ends of a scale that holds some numbers, and its ticks.
export function scale(values, most = 5) {
  const low = Math.min(...values), high = Math.max(...values), room = high - low || high || 1;
  const ten = 10 ** Math.floor(Math.log10(room / most));
  const step = [1, 2, 5, 10].map((digit) => digit * ten).find((one) => room / one <= most) ?? room;
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  const count = Math.max(1, last - first);
  const ticks = Array.from({ length: count + 1 }, (_, index) => (first + index) * step);
  return { ticks, low: ticks[0], high: ticks[count], step };
}

// ---------------------------------------------------------------- people as dots

const DOTS = 100, PITCH = 13, RADIUS = 4.6;

const ARM = RADIUS / 2;
// The plus that marks a dot.
const plusAt = (x, y) => `M${x - ARM} ${y}h${2 * ARM}M${x} ${y - ARM}v${2 * ARM}`;

const sample = (kind) => h("svg", { viewBox: `0 0 ${PITCH} ${PITCH}`, class: "dots sample" },
  h("circle", { class: kind, cx: PITCH / 2, cy: PITCH / 2, r: RADIUS }),
  kind === "gets" && h("path", { class: "plus", d: plusAt(PITCH / 2, PITCH / 2) }));

// How many of some dots have the outcome before and after; of a tiny group each is one person.
export function dotCounts({ people_before: people, rate_before: before, rate_after: after }) {
  const dots = Math.max(1, Math.min(DOTS, Math.round(people)));
  return { dots, before: Math.round(dots * (before ?? 0)), after: Math.round(dots * (after ?? 0)) };
}

function kindOf(index, { before, after }) {
  if (index < Math.min(before, after)) return "has";
  if (index >= Math.max(before, after)) return "none";
  return after > before ? "gets" : "misses";
}

// Each group: its rate in large figures, and its people: those who have the outcome, get it, no
// longer have it, and the others. A plus and a ring say the same as the colours.
export function dotsOf(group, across) {
  const counts = dotCounts(group), { dots, before, after } = counts;
  const x = (index) => PITCH * (index % across) + PITCH / 2;
  const y = (index) => PITCH * Math.floor(index / across) + PITCH / 2;
  const all = Array.from({ length: dots }, (_, index) => index);
  const circle = (index) => h("circle", { key: index, class: kindOf(index, counts),
    cx: x(index), cy: y(index), r: RADIUS });
  const plus = (index) => plusAt(x(index), y(index));
  const gains = all.filter((index) => kindOf(index, counts) === "gets");
  const name = groupName(group), size = whole(group.people_after);
  const spoken = `${name}: ${after} of ${dots} have ${outcomeName(group)}, ${before} before`;
  const rows = Math.ceil(dots / across);
  return h("div", { class: "group", key: `${group.column} ${group.group}` },
    h("div", { class: "names" },
      h("span", null, h("strong", null, name), " ",
        h("span", { class: "soft people" },
          `${size}\u00a0people${dots < DOTS ? ", a dot each" : ""}`)),
      h("span", { class: "figures" },
        h("span", { class: "soft" }, percent(group.rate_before)), " → ",
        h("strong", null, percent(group.rate_after)))),
    h("svg", { viewBox: `0 0 ${across * PITCH} ${rows * PITCH}`, role: "img",
      class: "dots", "aria-label": spoken },
    all.map(circle), h("path", { class: "plus", d: gains.map(plus).join("") })));
}

export const dotsKey = (outcome) => h("p", { class: "soft key" },
  h("span", { class: "each" }, "Each dot is one of 100. "),
  h("span", null, sample("has"), ` has ${outcome}`), " ",
  h("span", null, sample("gets"), " gets it"), " ",
  h("span", null, sample("misses"), " no longer has it"));

// ---------------------------------------------------------------- arrows from before to after

const LINE = 26, NAMES = 0.3, FIGURES = 150, TICK = 64;

// One arrow for each of some groups, on one axis; `shown` writes a number of it.
export function arrows(groups, { width, label, shown, of = "rate" }) {
  const ends = groups.map((group) => [group[`${of}_before`], group[`${of}_after`]]);
  const known = ends.flat().filter((one) => one !== null);
  const left = Math.min(220, NAMES * width), right = Math.min(FIGURES, NAMES * width);
  const room = Math.max(2, Math.min(5, Math.floor((width - left - right) / TICK)));
  const { ticks, low, high } = scale(known, room);
  const x = (value) => left + (width - left - right) * ((value - low) / (high - low || 1));
  const written = of === "rate" ? ticksOf(ticks) : shown;
  const bottom = LINE * groups.length + 4, most = Math.floor((left - 12) / 7.5);
  const line = (group, index) => {
    const [before, after] = ends[index], y = LINE * index + LINE / 2;
    if (before === null || after === null) return null;
    const way = Math.sign(x(after) - x(before)), tip = x(after), moves = Math.abs(tip - x(before));
    const head = `M${tip} ${y}l${-8 * way} -5v10z`;
    return h("g", { key: group.name },
      h("text", { x: left - 12, y: y + 5, "text-anchor": "end", class: "ink" },
        short(groupName(group), most)),
      h("line", { class: "arrow", x1: x(before), x2: tip, y1: y, y2: y }),
      h("circle", { class: "from", cx: x(before), cy: y, r: 4 }),
      moves > 4 ? h("path", { class: "head", d: head })
        : h("circle", { class: "head", cx: tip, cy: y, r: 4 }),
      h("text", { x: width - right + 12, y: y + 5 }, `${shown(before)} → `,
        h("tspan", { class: "ink" }, shown(after))));
  };
  return h("svg", { class: "arrows", width, height: bottom + 22, role: "img", "aria-label": label,
    viewBox: `0 0 ${width} ${bottom + 22}` },
  ticks.map((tick) => [
    h("line", { class: "rule", x1: x(tick), x2: x(tick), y1: 0, y2: bottom }),
    h("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, written(tick))]),
  groups.map(line));
}

export const meanArrows = (means, width) => {
  const groups = means.map((mean) =>
    ({ ...mean, mean_before: mean.before, mean_after: mean.after }));
  const shown = amounts(means.flatMap(({ before, after }) => [before, after]));
  const label = `Means before and after: ${means.map((one) =>
    `${groupName(one)} ${shown(one.before)}, then ${shown(one.after)}`).join("; ")}`;
  return arrows(groups, { width, label, shown, of: "mean" });
};

// ---------------------------------------------------------------- the curve, and the price

const TALL = 148, TOP = 20, FOOT = 24, STRIP = 40, APART = 15;
export const HANDLE = 10; // the radius of a slider's handle

// The x-axis that handle, curve and strip share.
export function axis(width, least, groups) {
  const isNarrow = width < 560, isNamed = !isNarrow && groups.length > 2;
  const left = isNarrow ? 54 : isNamed ? 188 : 56, right = isNarrow ? 96 : 112;
  const long = width - left - right;
  return { isNarrow, isNamed, left, right, long,
    x: (value) => left + long * Math.min(1, Math.max(0, (value - least) / (1 - least))) };
}

const SHOWN = { statistical_rate: "rate", representation_rate: "share" };

// The groups of a curve as lines: of each, its values over the range, from the data as they are.
function linesOf(points, kind, grouping, outcome) {
  const of = (see) => see.groups.filter((group) =>
    group.column === grouping && group.outcome === outcome && !group.is_apart);
  const value = (group, place) => group?.[`${SHOWN[kind]}_${place ? "after" : "before"}`] ?? null;
  return of(points[0].see).map((group, index) => ({ name: groupName(group),
    values: points.map(({ see }, place) => value(of(see)[index], place)) }))
    .filter(({ values }) => values[0] !== null && values.at(-1) !== null);
}

// Texts at the heights of what they name, moved apart where they would overlap.
function apart(labels, low, high) {
  const sorted = [...labels].sort((one, other) => one.y - other.y);
  const heights = sorted.map(({ y }) => y);
  for (let index = 1; index < heights.length; index += 1) {
    heights[index] = Math.max(heights[index], heights[index - 1] + APART);
  }
  for (let index = heights.length - 1; index >= 0; index -= 1) {
    const next = heights[index + 1] ?? high + APART;
    heights[index] = Math.max(low, Math.min(heights[index], next - APART));
  }
  return sorted.map((label, index) => ({ ...label, y: heights[index] }));
}

const LABELLED = 6; // lines; of more, the highest and the lowest are
const NEAR = 0.003; // shares that are called the same

// What the ends of the lines are called; those that end together share a name, and of many the
// highest and the lowest are named.
function endLabels(lines, up, place, { most = LABELLED, letters = 17 }) {
  const ends = lines.map(({ name, values }) =>
    ({ name, value: values.at(place), way: values.at(-1) - values[0] }));
  const values = ends.map(({ value }) => value), spread = Math.max(...values) - Math.min(...values);
  if (spread < NEAR && lines.length > 1) {
    const isOne = new Set(values.map(percent)).size === 1;
    const who = `${lines.length === 2 ? "both" : "all"}${isOne ? "" : " ≈"}`;
    return [{ text: `${who} ${percent(ends[0].value)}`, y: up(ends[0].value), way: 0 }];
  }
  const sorted = [...ends].sort((one, other) => other.value - one.value);
  const shown = sorted.length > most ? [sorted[0], sorted.at(-1)] : sorted;
  return shown.map(({ name, value, way }) =>
    ({ text: `${short(name, letters)} ${percent(value)}`, y: up(value), way }));
}

// What the lines are called where they begin: beside them, or on the side that a line leaves free.
function startLabels(lines, up, { isNamed, isNarrow, left }) {
  const labels = endLabels(lines, up, 0, isNarrow ? { most: 2 } : {});
  const label = ({ text, y, way }) => (isNamed
    ? { text, y, x: left - 10, anchor: "end" }
    : { text, y: y + (way > 0 ? 12 : -11), x: left + 6, anchor: "start" });
  return apart(labels.map(label), TOP - 12, TALL - FOOT + 8);
}

// Each group's rate as a line from where the data are to 1, and the present rates on it.
export function rateCurve({ points, kind, grouping, outcome, value, now, at }) {
  const lines = linesOf(points, kind, grouping, outcome);
  if (!lines.length) return null;
  const { ticks, low, high } = scale(lines.flatMap(({ values }) => values), 3);
  const bottom = TALL - FOOT;
  const up = (share) => bottom - (bottom - TOP) * ((share - low) / (high - low));
  const { x, left, long } = at, width = left + long + at.right, edge = left + long;
  const path = ({ values }) => points.map((point, index) => [x(point.value), values[index]])
    .filter(([, share]) => share !== null)
    .map(([across, share]) => `${across.toFixed(1)},${up(share).toFixed(1)}`).join(" ");
  const label = ({ text, y, x: across, anchor }) =>
    h("text", { class: "label", x: across, y: y + 4, "text-anchor": anchor }, text);
  const ends = apart(endLabels(lines, up, -1, at.isNarrow ? { letters: 5 } : {}), TOP - 8, bottom)
    .map((one) => ({ ...one, x: edge + 10, anchor: "start" }));
  const spoken = `${lines.slice(0, LABELLED).map(({ name, values }) =>
    `${name} from ${percent(values[0])} to ${percent(values.at(-1))}`).join("; ")}.`;
  const written = ticksOf(ticks);
  return h("svg", { class: "curve", width, height: TALL, viewBox: `0 0 ${width} ${TALL}`,
    role: "img", "aria-label": spoken },
  ticks.map((tick) => [
    h("line", { class: "rule", x1: left, x2: edge, y1: up(tick), y2: up(tick) }),
    !at.isNamed && h("text", { x: left - 8, y: up(tick) + 4, "text-anchor": "end" },
      written(tick))]),
  lines.map((line) => h("polyline", { class: "line", points: path(line) })),
  value !== null &&
    h("line", { class: "handle", x1: x(value), x2: x(value), y1: TOP - 8, y2: TALL }),
  value !== null && now.filter((share) => share !== null).map((share) =>
    h("circle", { class: "here", cx: x(value), cy: up(share), r: 4.5 })),
  [...startLabels(lines, up, at), ...ends].map(label));
}

// The steps of the slider, between the curve and the price.
export function rateTicks(own, value, at) {
  const { x, left, isNarrow } = at;
  const inside = [0.2, 0.4, 0.6, 0.8, 0.9].filter((one) =>
    x(one) > left + (isNarrow ? 96 : 110) && x(one) < x(1) - 68);
  const texts = [[`as it is ${hundredths(own)}`, left, "start"],
    ...inside.map((one) => [String(one), x(one), "middle"]), ["1 equal", x(1) - 6, "end"]];
  const width = left + at.long + at.right;
  // the line of the handle goes through no number
  const isAlone = value !== null && inside.every((one) => Math.abs(x(one) - x(value)) > 16);
  return h("svg", { class: "steps", width, height: 16, viewBox: `0 0 ${width} 16`,
    "aria-hidden": "true" },
  isAlone && h("line", { class: "handle", x1: x(value), x2: x(value), y1: 0, y2: 16 }),
  texts.map(([text, across, anchor]) =>
    h("text", { class: "step", x: across, y: 12, "text-anchor": anchor }, text)));
}

// What it costs, on the same axis: the share of the data that is lost.
export function costStrip({ points, value, now, at }) {
  const costs = points.map(({ see }) => costOf(see)), most = Math.max(...costs, now, 0.0005);
  const { x, left, long } = at, width = left + long + at.right, foot = STRIP + 6;
  const up = (cost) => foot - STRIP * (cost / most);
  const line = points.map((point, index) =>
    `${x(point.value).toFixed(1)},${up(costs[index]).toFixed(1)}`);
  const last = x(points.at(-1).value);
  const area = [`${x(points[0].value)},${foot}`, ...line, `${last},${foot}`].join(" ");
  const spoken = `Cost: from ${roughly(costs[0])} to ${roughly(costs.at(-1))} of the data`;
  return h("svg", { class: "strip", width, height: foot + 6, viewBox: `0 0 ${width} ${foot + 6}`,
    role: "img", "aria-label": spoken },
  h("polygon", { class: "cost", points: area }),
  h("line", { class: "rule", x1: left, x2: left + long, y1: foot, y2: foot }),
  // said once: beside the handle if that is there
  (value === null || roughly(now) !== roughly(most)) &&
    h("text", { x: left - 8, y: 14, "text-anchor": "end" }, roughly(most)),
  h("text", { x: left - 8, y: foot + 2, "text-anchor": "end" }, "0\u00a0%"),
  value !== null && [
    h("line", { class: "handle", x1: x(value), x2: x(value), y1: 0, y2: foot }),
    h("circle", { class: "here", cx: x(value), cy: up(now), r: 4.5 }),
    h("text", { class: "label", ...besideHandle(x(value), up(now), at) },
      `costs ${roughly(now)}`)]);
}

// Where the price stands: outside at the end, above the lower part of its area if there is room.
function besideHandle(x, y, { left, long }) {
  const isInside = x < left + long - 1 && x > left + 110;
  return isInside ? { x: x - 10, y: Math.max(12, y - 2), "text-anchor": "end" }
    : { x: x + 10, y: Math.max(14, Math.min(STRIP + 6, y + 4)) };
}
