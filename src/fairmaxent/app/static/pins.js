// Pins: scenarios that are kept by name, beside the present one; each can be put back as it was.

import { h, table } from "./dom.js";
import { KINDS, percent, rate, times, whole } from "./format.js";

const WAYS = { none: "reweigh", probabilities: "relabel (probabilities)", predictions: "relabel (decisions)" };

export function drawPins(target, pins, answer, actions) {
  if (!pins.length) return target.replaceChildren();
  const all = [...pins, { number: 0, answer }];
  target.replaceChildren(table("Scenarios compared", ["", ...all.map((pin) => head(pin, actions))], rows(all), all.map((_, index) => index + 1)));
}

function head(pin, { rename, restore, unpin }) {
  if (!pin.number) return "now";
  const field = h("input", { type: "text", maxlength: 40, autocomplete: "off", "aria-label": `Name of ${pin.name}`,
    onchange: () => rename(pin.number, field.value) });
  field.value = pin.name;
  const button = (text, act) => h("button", { type: "button", "aria-label": `${text} ${pin.name}`, onclick: act }, text);
  return h("div", { class: "pin" }, field, h("div", null,
    button("Restore", () => restore(pin.answer.scenario)), " ", button("Remove", () => unpin(pin.number))));
}

// Scenarios that compare other groups still have the same columns, so these come first; then what only some have.
function rows(all) {
  const each = (text) => all.map((pin) => text(pin.answer));
  const named = (names) => Object.keys(names ?? {}).join(", ") || "–";
  const areIn = (name) => all.some((pin) => Object.keys(pin.answer.scenario[name] ?? {}).length > 0);
  return [
    ...lines(all, ({ see }) => see.overall, overallName(all)),
    ...lines(all, ({ see, scenario }) => (comparesOthers(scenario) ? see.rates : []), (one) => `${KINDS[one.kind]}: ${one.name}`),
    ["Effective rows", ...each(({ see }) => whole(see.effective_rows))],
    ["Largest weight", ...each(({ see }) => times(see.largest_weight))],
    ...lines(all, ({ see }) => see.estimate?.lines ?? [], (line) => `Model: ${line.name}`),
    ["Outcomes changed", ...each(({ see }) => whole(see.changed_people))],
    ["How rows change", ...each(({ scenario }) => WAYS[scenario.relabel ?? "none"])],
    ["New combinations", ...each(({ scenario }) => percent(scenario.base_share ?? 0.2))],
    ...(areIn("within") ? [["Compare only within", ...each(({ scenario }) => named(scenario.within))]] : []),
    ...(areIn("target") ? [["Wanted shares", ...each(({ scenario }) => named(scenario.target))]] : []),
  ];
}

// One row for each name that any scenario has.
function lines(all, of, name) {
  const names = [...new Set(all.flatMap((pin) => of(pin.answer).map(name)))];
  return names.map((one) => [one, ...all.map((pin) => rate(of(pin.answer).find((line) => name(line) === one)?.after))]);
}

const comparesOthers = ({ within, groups, protected: columns }) =>
  Object.keys(within ?? {}).length > 0 || (groups === "joint" && columns.length > 1);

function overallName(all) {
  const outcomes = new Set(all.flatMap((pin) => pin.answer.see.overall.map((one) => one.outcome).filter(Boolean)));
  return (one) => `${KINDS[one.kind]}: ${one.name}${one.outcome && outcomes.size > 1 ? ` (${one.outcome})` : ""}`;
}
