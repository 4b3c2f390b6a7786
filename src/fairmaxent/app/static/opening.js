// Open: a file by dropping or choosing it, or an example with one click.

import { h, newId } from "./dom.js";
import { size } from "./format.js";
import { drawReading } from "./reading.js";

export function drawOpen(section, { examples, most, opened, unread, forms, openFile, openDemo, readAgain, busy }) {
  const id = newId("file");
  const input = h("input", {
    type: "file", id, class: "file", accept: ".csv,.tsv,.txt,.xlsx,.parquet,.pq,.arrow,.feather,.jsonl,.ndjson,.gz",
    onchange: () => input.files.length && openFile(input.files[0]),
  });
  const drop = h("div", { class: "drop" },
    h("label", { for: id }, "Choose a table"), input,
    h("p", { class: "soft" }, `or drop it here: CSV, Excel, Parquet, Arrow or JSON lines, up to ${size(most)}.`));
  for (const kind of ["dragover", "dragenter"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
  });
  const buttons = h("p", { class: "examples" }, h("span", { class: "soft" }, "Or try an example: "),
    Object.entries(examples).map(([name, title]) =>
      h("button", { type: "button", onclick: () => openDemo(name) }, title)));
  const again = unread ? [drawReading(forms, unread, readAgain)] : [];
  const status = h("p", { role: "status", class: "soft" }, busy ?? "");
  if (opened) {
    section.replaceChildren(h("details", { open: Boolean(unread) }, h("summary", null, h("h2", { id: "open-title" }, "Open another table")),
      drop, buttons, ...again, status));
  } else {
    section.replaceChildren(h("h2", { id: "open-title" }, "Open a table"), drop, buttons, ...again, status);
  }
}
