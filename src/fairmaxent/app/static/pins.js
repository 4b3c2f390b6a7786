// @ts-check
// Pins: scenarios that are kept by name, beside the present one; each can be put back as it was.

import { at, button, h, table } from "./dom.js";
import { Typed } from "./form.js";
import { KINDS, rate, weightOf, whole } from "./format.js";
import { ratesOf } from "./people.js";
import { putBack, rename, store, unpin } from "./store.js";

export function pinsTable() {
  const { pins, answer } = store;
  if (!pins.length || !answer) return h("div", { id: "pins" });
  const all = [...pins, { number: 0, answer }];
  return h("div", { id: "pins" },
    table("Scenarios compared", ["Scenario", ...all.map(head)],
      rows(all.map((pin) => pin.answer)), all.map((_, index) => index + 1)));
}

function head(pin) {
  if (!pin.number) return "now";
  const press = (text, act) => button(text, act, { "aria-label": `${text} ${pin.name}` });
  return h("div", { class: "pin", key: pin.number },
    h(Typed, { type: "text", maxlength: 60, "aria-label": `Name of ${pin.name}`, value: pin.name,
      change: (name) => rename(pin.number, name) }),
    h("div", null, press("Restore", () => putBack(pin.answer.scenario)), " ",
      press("Remove", () => unpin(pin.number))));
}

// Rates, what it costs, and what was asked for in different ways.
function rows(answers) {
  const each = (name, text) => [name, ...answers.map(text)];
  // One row for each name that any scenario has.
  const lines = (of, name) => {
    const names = [...new Set(answers.flatMap((one) => of(one).map(name)))];
    return names.map((one) => each(one, (answer) =>
      rate(of(answer).find((line) => name(line) === one)?.after)));
  };
  const estimated = ({ see }) => (see.estimate?.lines ?? [])
    .map(([label, , , [, after]]) => ({ label, after }));
  const wishes = [...new Set(answers.flatMap((one) => Object.keys(one.wishes)))]
    .map((name) => each(name, (one) => at(one.wishes, name) ?? "–"));
  return [
    ...lines(({ see }) => ratesOf(see), (one) => `${KINDS[one.kind]}: ${one.name}`),
    each("Effective rows", ({ see }) => whole(see.effective_rows)),
    each("Largest weight of one row", ({ see }) => weightOf(see.heaviest)),
    each("Outcomes changed", ({ see }) => whole(see.changed_people)),
    ...lines(estimated, (line) => `Model: ${line.label}`),
    ...wishes.filter(([, ...texts]) => new Set(texts).size > 1),
  ];
}
