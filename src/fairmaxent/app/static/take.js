// @ts-check
// Take: the files, the command and the Python that make them again.

import { fileAddress, stop } from "./api.js";
import { Component, button, folded, h, section, soft } from "./dom.js";
import { form } from "./form.js";
import { size } from "./format.js";
import { change, isMissing, isOld, pin, send, slow, store } from "./store.js";

// How far slow work is, or what became of it.
export function working(kind) {
  const one = store.working[kind];
  if (!one) return null;
  if (one.said) return h("p", { role: "status" }, one.said);
  if (one.failed) return h("p", { class: "warnings", role: "status" }, one.failed);
  return h("p", { class: "working" }, h("progress", { max: 1, value: one.share, "aria-label": kind }), " ",
    h("span", { role: "status" }, one.stage), " ",
    one.number !== null && button("Stop", () => stop(one.number)));
}

// The buttons beside the sliders: to take the files, and to keep the scenario for comparison.
export function actions() {
  const { answer, refitting, files, sent } = store;
  const why = refitting ? "The newest result is on its way; you can take it when it is there."
    : "There is no result for what you asked for last, so there is nothing to take yet.";
  return answer && h("div", { class: "actions" },
    h("p", { class: "buttons" },
      button("Make the files", () => slow("take"), { class: "main", id: "make", disabled: isMissing() }),
      button("Pin this scenario", pin, { id: "pin", disabled: isMissing() }),
      button("Make a page to send", send, { id: "send", disabled: isMissing() })),
    h("p", { id: "not-made", class: "warnings", hidden: !isOld() || !answer }, why),
    h("div", { id: "making" }, working("take")),
    h("div", { id: "files" }, listFiles(isOld() ? [] : files)), h("div", { id: "sent" }, sent &&
      h("a", { href: sent, download: "scenarios.html" }, "Scenarios to send: scenarios.html")));
}

export function takePart() {
  const { state: { forms }, options, answer } = store;
  const isPrivate = Boolean(options.epsilon);
  return answer && section("take", "Take", false, form(forms.take, options, change),
    folded("The report", options.pdf, form(forms.report, options, change)),
    h("h3", null, isPrivate ? `How it was made. Running it again spends another ε = ${options.epsilon}`
      : "Repeat it elsewhere"),
    soft(isPrivate
      ? "Keep the saved fit instead: 'fairmaxent sample' and 'fairmaxent report' make more rows and reports of it, " +
        "which spends nothing."
      : "These write the same table, byte for byte; the command also saves the same fit, and the same report, in " +
        "which options are named as they are typed."),
    h(Snippet, { title: "Command", id: "command", text: isOld() ? "" : answer.command }),
    h(Snippet, { title: "Python", id: "python", text: isOld() ? "" : answer.python }));
}

class Snippet extends Component {
  render({ title, id, text }) {
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        this.setState({ said: " copied" });
      } catch {
        getSelection()?.selectAllChildren(/** @type {Node} */ (document.getElementById(id)));
        this.setState({ said: " selected; copy it with the keyboard" });
      }
    };
    return h("div", { class: "snippet" }, h("h4", null, title),
      h("pre", { id, tabindex: "0", "aria-label": title }, text),
      button("Copy", copy, { "aria-label": `Copy the ${title.toLowerCase()}` }),
      h("span", { role: "status", class: "soft" }, this.state.said));
  }
}

export const listFiles = (files) => files.length > 0 && h("ul", { class: "files" }, files.map((file) =>
  h("li", null, h("a", { href: fileAddress(file.folder, file.name), download: "" },
    `${file.what}: ${file.name}`), ` (${size(file.bytes)})`)));
