// Reading: how the file becomes a table, if what was guessed is wrong.

import { h } from "./dom.js";
import { form } from "./form.js";

// What was chosen for a file, and not yet sent, outlives drawing.
let chosen = { number: null, values: {} };

export function drawReading(forms, file, readAgain) {
  if (chosen.number !== file.number) chosen = { number: file.number, values: { ...file.reading } };
  const { values } = chosen;
  const isGiven = Object.keys(values).length > 0;
  return h("details", { open: isGiven }, h("summary", null, "How the file is read"),
    h("p", { class: "soft" }, `What is left as it is, is detected in ${file.name}.`),
    form(forms.reading, values, (changed) => Object.assign(values, changed)),
    h("p", null, h("button", { type: "button", onclick: () => readAgain(file.number,
      Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))) }, "Read the file again")));
}
