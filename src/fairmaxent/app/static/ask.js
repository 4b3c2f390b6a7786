// @ts-check
// Ask: the slider on its curve, with what it costs under it; every move is answered at once.

import { HANDLE, axis, costStrip, rateCurve, rateTicks } from "./charts.js";
import { h, has, newId, soft } from "./dom.js";
import { Typed, isAsked, rateOf, withRate } from "./form.js";
import { hundredths, percent } from "./format.js";
import { costOf, groupName } from "./people.js";
import { change, curveOf, lookAt, looked, store } from "./store.js";

const STEP = 0.01;
const RANGE = newId("slider");

export function askPart(width) {
  const { answer, options, state } = store;
  if (!answer) return null;
  const one = state.forms.rates.find(({ name }) => name === store.kind);
  const about = looked(), { what, first } = about;
  const { means } = about.grouping;
  if (!isAsked(one, options) || (means.length && one.name === "statistical_rate")) {
    return h("section", { id: "ask", "aria-label": "Equal means" }, kinds(true),
      soft(`The same mean is asked for all groups of ${what}, so there is no rate to choose.`));
  }
  const isTargeted = one.name === "representation_rate" && has(options.target, first);
  const value = isTargeted ? null : rateOf(options[one.name], first);
  return h("section", { id: "ask", "aria-label": `${one.label} of ${what}` }, kinds(means.length),
    isTargeted
      ? soft(`The shares of ${what} are chosen under “Ask for more”.`)
      : [wanted(one, about, value), picture(one, about, value, width)]);
}

// Which of the rates is looked at.
function kinds(areMeans) {
  const { state: { forms }, kind } = store;
  const words = ({ name, label }) =>
    (areMeans && name === "statistical_rate" ? "Equal means" : label);
  return h("fieldset", { class: "kinds" },
    h("legend", { class: "quiet" }, "What is to be equal"),
    forms.rates.map((one) => h("label", { key: one.name },
      h("input", { type: "radio", name: "kind", checked: one.name === kind,
        onchange: () => lookAt({ kind: one.name }) }),
      words(one))));
}

// ---------------------------------------------------------------- what is asked for

const move = (one, { column }, value, isMoving) => {
  const wish = { [one.name]: withRate(store.options, one.name, column, value) };
  change(wish, isMoving ? { moved: { name: one.name, column, value } } : {});
};

// Whether it is asked for, as a number that may be less than the data have, and what that means.
function wanted(one, about, value) {
  const { what, grouping } = about, name = `${one.label} of ${what}`;
  const own = store.answer.see.model ? null : ownRate(grouping, one.name);
  const tick = (event) => move(one, about, event.target.checked ? one.start : null, false);
  const type = (words) => words !== "" && move(one, about, Number(words), false);
  return h("div", { class: "wanted" },
    h("label", null,
      h("input", { type: "checkbox", checked: value !== null, onchange: tick,
        "aria-label": `Ask for ${one.label.toLowerCase()} of ${what}` }),
      ` ${what} at least `),
    h(Typed, { type: "number", min: one.least, max: one.most, step: STEP, disabled: value === null,
      "aria-label": `${name}, as a number`, value: (value ?? one.start).toFixed(2), change: type }),
    h("span", { class: "soft", id: "meaning" }, meaning(one, value, own)));
}

function meaning(one, value, own) {
  if (value === null) return "Not asked for: it may become more or less equal.";
  if (own !== null && value <= own + 0.0005) {
    return `Your data are at ${hundredths(own)} already, so this asks for nothing more.`;
  }
  const what = one.name === "statistical_rate" ? "lowest rate" : "smallest group";
  const least = `${Math.round(100 * value)} % of the ${what.split(" ")[0] === "lowest"
    ? "highest" : "largest"}`;
  return value === 1 ? `1: ${EQUAL[one.name]}.` : `The ${what} is to be at least ${least}.`;
}
const EQUAL = {
  statistical_rate: "equally often in all groups",
  representation_rate: "all groups are equally large",
};

const ownRate = (grouping, name) =>
  (name === "statistical_rate" ? grouping.outcomes : grouping.sizes)?.before ?? null;

// ---------------------------------------------------------------- the slider on its curve

const LEAST = 0.05;
const floorOf = (own) => Math.max(LEAST, Math.floor(100 * (own ?? 0) + 1e-9) / 100);

// The slider's steps are those of the whole curve, if the present value is one of them.
function stepsOf(known, value) {
  if (!known?.step || known.points.length < 2) return STEP;
  const places = (1 - value) / known.step;
  return Math.abs(places - Math.round(places)) < 1e-6 ? known.step : STEP;
}

function picture(one, about, value, width) {
  const { grouping, column } = about, known = curveOf(one.name, column);
  const points = known?.points ?? [];
  const own = ownRate(grouping, one.name);
  const least = points.length > 1 ? points[0].value : Math.min(0.99, floorOf(own));
  const { see } = store.answer, { groups, groups: [{ outcome }] } = grouping;
  const at = axis(width, least, groups);
  const share = one.name === "statistical_rate" ? "rate_after" : "share_after";
  const now = groups.filter((group) => !group.is_apart).map((group) => group[share]);
  const curve = points.length > 1 && rateCurve({ points, kind: one.name, grouping: grouping.name,
    outcome, value, now, at });
  return h("div", { class: value === null ? "picture off" : "picture" },
    curve || h("p", { class: "soft waiting" }, known?.skipped
      ? `There is no curve here, because ${known.skipped}.` : "The curve is being drawn…"),
    rateTicks(own, value, at),
    slider(one, about, { value, least, known, at, groups, share }),
    points.length > 1 && costStrip({ points, value, now: costOf(see), at }));
}

function slider(one, about, { value, least, known, at, groups, share }) {
  const name = `${one.label} of ${about.what}`, shown = Math.max(least, value ?? one.start);
  const said = groups.slice(0, 4)
    .map((group) => `${groupName(group)} ${percent(group[share])}`).join(", ");
  const input = (event) => move(one, about, Number(event.target.value), true);
  const place = { marginLeft: `${at.left - HANDLE}px`, width: `${at.long + 2 * HANDLE}px` };
  return h("input", { type: "range", id: RANGE, class: "handle", style: place, min: least,
    max: one.most, step: stepsOf(known, shown), value: shown, disabled: value === null,
    "aria-label": name, oninput: input,
    "aria-valuetext": value === null ? "not asked for" : `${value.toFixed(2)}: ${said}` });
}
