// Open: a file by dropping or choosing it, or an example with one click; and how the file becomes a table.

import { h, newId } from "./dom.js";
import { form } from "./form.js";
import { size } from "./format.js";

export function drawOpen(section, { examples, most, suffixes, opened, unread, forms, openFile, openDemo, readAgain, busy }) {
  const id = newId("file");
  const input = h("input", { type: "file", id, class: "file", accept: suffixes,
    onchange: () => input.files.length && openFile(input.files[0]) });
  const over = (event) => { event.preventDefault(); drop.classList.add("over"); };
  const drop = h("div", { class: "drop", ondragover: over, ondragenter: over,
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
    } },
    h("label", { for: id }, "Choose a table"), input,
    h("p", { class: "soft" }, `or drop it here: CSV, Excel, Parquet, Arrow or JSON lines, up to ${size(most)}.`));
  const parts = [drop, h("p", { class: "examples" }, h("span", { class: "soft" }, "Or try an example: "),
    Object.entries(examples).map(([name, title]) => h("button", { type: "button", onclick: () => openDemo(name) }, title))),
  ...(unread ? [drawReading(forms, unread, readAgain)] : []), h("p", { role: "status", class: "soft" }, busy ?? "")];
  const title = (text) => h("h2", { id: "open-title" }, text);
  section.replaceChildren(...(opened
    ? [h("details", { open: Boolean(unread) }, h("summary", null, title("Open another table")), parts)] : [title("Open a table"), ...parts]));
}

// What was chosen for a file, and not yet sent, outlives drawing.
let chosen = { number: null, values: {} };

export function drawReading(forms, file, readAgain) {
  if (chosen.number !== file.number) chosen = { number: file.number, values: { ...file.reading } };
  const { values } = chosen;
  return h("details", { open: Object.keys(values).length > 0 }, h("summary", null, "How the file is read"),
    h("p", { class: "soft" }, `What is left as it is, is detected in ${file.name}.`),
    form(forms.reading, values, (changed) => Object.assign(values, changed)),
    h("p", null, h("button", { type: "button", onclick: () => readAgain(file.number,
      Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))) }, "Read the file again")));
}
