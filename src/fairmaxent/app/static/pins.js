// Pins: scenarios that are kept by name, beside the present one; each can be put back as it was.

import { at, h, table } from "./dom.js";
import { KINDS, rate, times, whole } from "./format.js";

export function drawPins(target, pins, answer, actions) {
  if (!pins.length) return target.replaceChildren();
  const all = [...pins, { number: 0, answer }];
  target.replaceChildren(table("Scenarios compared", ["", ...all.map((pin) => head(pin, actions))], rows(all), all.map((_, index) => index + 1)));
}

function head(pin, { rename, restore, unpin }) {
  if (!pin.number) return "now";
  const field = h("input", { type: "text", maxlength: 40, autocomplete: "off", "aria-label": `Name of ${pin.name}`, value: pin.name,
    onchange: () => rename(pin.number, field.value) });
  const button = (text, act) => h("button", { type: "button", "aria-label": `${text} ${pin.name}`, onclick: act }, text);
  return h("div", { class: "pin" }, field, h("div", null,
    button("Restore", () => restore(pin.answer.scenario)), " ", button("Remove", () => unpin(pin.number))));
}

// Rates, what it costs, and what was asked for in different ways.
function rows(all) {
  const answers = all.map((pin) => pin.answer);
  const each = (name, text) => [name, ...answers.map(text)];
  // One row for each name that any scenario has.
  const lines = (of, name) => [...new Set(answers.flatMap((one) => of(one).map(name)))].map((one) =>
    each(one, (answer) => rate(of(answer).find((line) => name(line) === one)?.after)));
  return [
    ...lines(({ see }) => see.rates, (one) => `${KINDS[one.kind]}: ${one.name}`),
    each("Effective rows", ({ see }) => whole(see.effective_rows)),
    each("Largest weight of one row", ({ see }) => times(see.heaviest)),
    each("Outcomes changed", ({ see }) => whole(see.changed_people)),
    ...lines(({ see }) => see.estimate?.lines ?? [], (line) => `Model: ${line.name}`),
    ...[...new Set(answers.flatMap(({ wishes }) => Object.keys(wishes)))].map((name) => each(name, ({ wishes }) => at(wishes, name) ?? "–"))
      .filter(([, ...texts]) => new Set(texts).size > 1),
  ];
}
