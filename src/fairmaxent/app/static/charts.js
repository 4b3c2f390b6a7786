// Pictures: each group as a line from before to after, and curves of trade-offs. Names stand above, never beside.

import { h, s } from "./dom.js";
import { percent } from "./format.js";

const HEIGHT = 22;

// A round end of a scale from 0 to the largest of some shares, and the step of its ticks.
const STEPS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const stepTo = (top) => STEPS.find((step) => top / step <= 5.001) ?? 0.2;
export function roundTop(shares) {
  const most = Math.max(...shares.filter((share) => share !== null && share !== undefined), 1e-4);
  const step = stepTo(most);
  return Math.min(1, step * Math.ceil(most / step - 1e-9));
}
const place = (width, most) => (value) => 8 + (width - 16) * Math.min(1, Math.max(0, value / most));
const ticks = (most) => Array.from({ length: Math.round(most / stepTo(most)) + 1 }, (_, index) => index * stepTo(most));

// The scale under a picture; the numbers are also in words beside each group.
export function axis(most, width) {
  const x = place(width, most), all = ticks(most), digits = stepTo(most) < 0.01 ? 2 : 0;
  const anchor = (index) => (index === 0 ? "start" : index === all.length - 1 ? "end" : "middle");
  return s("svg", { class: "axis", width, height: 20, viewBox: `0 0 ${width} 20`, "aria-hidden": "true" },
    all.map((value, index) => [s("line", { class: "track", x1: x(value), x2: x(value), y1: 0, y2: 5 }),
      s("text", { x: index === 0 ? 0 : index === all.length - 1 ? width : x(value), y: 17, "text-anchor": anchor(index) }, `${(100 * value).toFixed(digits)} %`)]));
}

// One group: its name and numbers, and under them a track with an open circle (before) and a full one (after).
export function groupLine({ name, before, after, low, high, most, width }) {
  const x = place(width, most);
  const middle = HEIGHT / 2;
  const known = [before, after].filter((value) => value !== null);
  const spoken = after === undefined
    ? `${name}: ${percent(before)}`
    : `${name}: ${percent(before)} before, ${percent(after)} after`;
  const track = s("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": spoken },
    s("line", { class: "track", x1: 8, x2: width - 8, y1: middle, y2: middle }),
    ticks(most).map((value) => s("line", { class: "track", x1: x(value), x2: x(value), y1: middle - 4, y2: middle + 4 })),
    low !== null && low !== undefined && high !== null &&
      s("line", { class: "interval", x1: x(low), x2: x(high), y1: middle, y2: middle }),
    after !== undefined && known.length === 2 &&
      s("line", { class: after >= before ? "gain" : "loss", x1: x(before), x2: x(after), y1: middle, y2: middle }),
    before !== null && s("circle", { class: "before", cx: x(before), cy: middle, r: 5 }),
    after !== undefined && after !== null && s("circle", { class: "after", cx: x(after), cy: middle, r: 6 }));
  const numbers = after === undefined ? percent(before) : `${percent(before)} → ${percent(after)}`;
  return h("div", { class: "group" }, h("div", { class: "names" }, h("span", null, name), h("span", null, numbers)), track);
}

// A curve through points, the present one marked.
export function curve({ title, across, up, points, width }) {
  const height = 200, left = 56, bottom = 40, top = 12;
  const most = Math.max(...points.map((point) => point.y), 1e-9);
  const x = (value) => left + (width - left - 16) * value;
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const label = (text, at, anchor) => s("text", { x: at[0], y: at[1], "text-anchor": anchor }, text);
  const spoken = points.map((point) => `${point.x}: ${point.text}`).join("; ");
  return h("figure", null, h("figcaption", null, title),
    s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${spoken}` },
      [0, 0.5, 1].map((part) => [
        s("line", { class: "track", x1: left, x2: width - 16, y1: y(part * most), y2: y(part * most) }),
        label(up(part * most), [left - 6, y(part * most) + 4], "end"),
        label(String(part), [x(part), height - bottom + 18], "middle")]),
      label(across, [(left + width - 16) / 2, height - 6], "middle"),
      s("polyline", { class: "curve", points: points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") }),
      points.map((point) =>
        s("circle", { class: point.here ? "after" : "before", cx: x(point.x), cy: y(point.y), r: point.here ? 7 : 4 },
          s("title", null, `${across} ${point.x}: ${point.text}`)))));
}
