// Take: the files, the command and the Python that make them again, and whether new rows may be shared.

import { h, refill, table } from "./dom.js";
import { form } from "./form.js";
import { size } from "./format.js";

export function drawTake(section, { state, options, change, make, files }) {
  refill(section,
    h("h2", { id: "take-title" }, "Take"),
    form(state.forms.take, options, change),
    h("details", { open: Boolean(options.pdf) }, h("summary", null, "The report"), form(state.forms.report, options, change)),
    h("p", null, h("button", { type: "button", class: "main", id: "make", onclick: make }, "Make the files")),
    h("p", { id: "not-made", class: "warnings", hidden: true }),
    h("div", { id: "making" }),
    h("div", { id: "files" }),
    h("h3", null, options.epsilon ? `How it was made. Running it again spends another ε = ${options.epsilon}` : "Repeat it elsewhere"),
    h("p", { class: "soft" }, options.epsilon
      ? "Keep the model instead: 'fairmaxent sample' and 'fairmaxent report' make more rows and reports of it, which spends nothing."
      : "These write the same table, byte for byte; the command also writes the same model, and the same report, in which options are named as they are typed."),
    snippet("Command", "command"), snippet("Python", "python"));
  drawFiles(files);
}

function snippet(title, id) {
  const text = h("pre", { id, tabindex: "0", "aria-label": title });
  const said = h("span", { role: "status", class: "soft" });
  return h("div", { class: "snippet" }, h("h4", null, title), text,
    h("button", { type: "button", "aria-label": `Copy the ${title.toLowerCase()}`, onclick: async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        said.textContent = " copied";
      } catch {
        getSelection().selectAllChildren(text);
        said.textContent = " selected; copy it with the keyboard";
      }
    } }, "Copy"), said);
}

export const listFiles = (files) => files.length > 0 && h("ul", { class: "files" }, files.map((file) =>
  h("li", null, h("a", { href: `/files/${file.folder}/${encodeURIComponent(file.name)}`, download: "" },
    `${file.what}: ${file.name}`), ` (${size(file.bytes)})`)));
export const drawFiles = (files) => refill(document.getElementById("files"), listFiles(files));

export function drawJudge(target, judge) {
  target.replaceChildren(h("details", null, h("summary", null, "Judge the new rows before sharing"),
    h("p", { class: "soft" }, "How much they differ from yours, what a model learns from them, and what they give away about people."),
    h("p", null, h("button", { type: "button", id: "evaluate", onclick: judge }, "Judge the new rows"))));
}

// The blocks of a document, as a report has them.
const list = (items) => items.length > 0 && h("ul", null, items.map((item) => h("li", null, item)));
const BLOCKS = {
  Paragraph: ({ text }) => h("p", null, text),
  Note: ({ lead, items }) => h("div", { class: "notes" }, h("p", null, lead), list(items)),
  Table: ({ label, heads, rows, numeric }) => table(label, heads, rows, numeric.flatMap((is, index) => (is ? [index] : []))),
};

export const drawVerdict = (target, { blocks }) =>
  refill(target, h("h3", null, "May the new rows be shared?"), blocks.map((block) => BLOCKS[block.kind](block)));
