// Take: the files, and the command and the Python that make them again.

import { h, refill } from "./dom.js";
import { choose, flag, form, number } from "./form.js";
import { size } from "./format.js";

export function drawTake(section, { state, options, change, make, files }) {
  const modes = [["rows", "New rows, to train on instead of yours"],
    ["weights", "Your rows with weights, for learners that take sample weights"],
    ["top-up", "Only the rows to add to yours, to train on both"]];
  const mode = options.mode ?? "rows";
  const isNew = options.release || options.epsilon; // then nobody's row may be handed on
  refill(section,
    h("h2", { id: "take-title" }, "Take"),
    choose("What", mode, isNew ? modes.slice(0, 1) : modes,
      (chosen) => change({ mode: chosen, ...(chosen === "rows" ? {} : { rows: null, iid: null }) }, { draw: true })),
    mode === "rows" && number("How many rows (empty: as many as in the data)", options.rows, { min: 1, max: 1e9 }, (rows) => change({ rows })),
    mode === "rows" && flag("Draw rows independently; their rates then vary by chance", options.iid ?? false, (iid) => change({ iid })),
    form(state.forms.take.filter((one) => one.name === (mode === "weights" ? "weight_name" : mode === "rows" && !options.epsilon ? "evaluate" : "")), options, change),
    h("details", { open: Boolean(options.pdf) }, h("summary", null, "The report"),
      form(state.forms.report, options, change),
      flag("Also as PDF, if Chromium, Chrome or Edge is installed", options.pdf ?? false, (pdf) => change({ pdf }))),
    h("p", null, h("button", { type: "button", class: "main", id: "make", onclick: make }, "Make the files")),
    mode !== "weights" && (options.keep_columns ?? []).length > 0 && h("p", { class: "warnings" }, `You keep ${options.keep_columns.join(", ")}. In new rows, its values ` +
      "can be repeated, and can stand in the rows of people they do not belong to. If each must stay with its person, take “Your rows with weights”."),
    h("p", { id: "not-made", class: "warnings", hidden: true }),
    h("div", { id: "making" }),
    h("div", { id: "files" }),
    h("h3", null, "Repeat it elsewhere"),
    h("p", { class: "soft" }, options.epsilon
      ? "These make another private result: its noise differs, and what it spends adds up with what was spent here."
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

export function drawFiles(files) {
  const number = files[0]?.set;
  refill(document.getElementById("files"), files.length > 0 && h("ul", { class: "files" }, files.map((file) =>
    h("li", null, h("a", { href: `/files/${file.folder}/${encodeURIComponent(file.name)}`, download: "" },
      `${file.what}: ${file.name}`), ` (${size(file.bytes)})`))),
  number > 1 && h("p", { class: "soft" }, `You made other files from this table before, so the names of these end in -${number}.`));
}
