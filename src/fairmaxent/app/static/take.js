// @ts-check
// Take: what it is for, the files, the page to send, and what makes them again.

import { fileAddress, stop } from "./api.js";
import { Component, button, folded, h, section, soft } from "./dom.js";
import { choose, form, isGiven } from "./form.js";
import { size } from "./format.js";
import { send } from "./sending.js";
import { change, isMissing, isOld, pin, slow, store } from "./store.js";

// How far slow work is, or what became of it.
export function working(kind) {
  const one = store.working[kind];
  if (!one) return null;
  if (one.said) return h("p", { role: "status" }, one.said);
  if (one.failed) return h("p", { class: "warnings", role: "status" }, one.failed);
  return h("p", { class: "working" },
    h("progress", { max: 1, value: one.share, "aria-label": kind }), " ",
    h("span", { role: "status" }, one.stage), " ",
    one.number !== null && button("Stop", () => stop(one.number)));
}

// ---------------------------------------------------------------- what is it for?

// Each use, and what it chooses: rows, weights, or a table for a model.
const USES = {
  train: { label: "train a model", values: { mode: null, release: null } },
  weigh: { label: "weigh my rows",
    values: { mode: "weights", model: null, release: null } },
  publish: { label: "publish rows", values: { mode: null, model: null, release: true } },
};

function useOf({ mode, release, model }) {
  if (isGiven(model)) return "train";
  if (release) return "publish";
  return mode === "weights" ? "weigh" : mode === "top-up" ? null : "train";
}

const WHY = {
  train: "New rows, to use in place of your file. A model may bring the gap back: name yours, " +
    "and the table is made for it.",
  model: "Your rows with weights made for this model: train it with them. What it is expected to " +
    "decide is said above.",
  weigh: "Your rows get a column of weights: use it in every table.",
  publish: "New rows to share, drawn from what was learned of yours; rare values are merged, " +
    "unless they were declared. The report counts how many are the same as one of yours.",
  private: "A private result is always new rows.",
  added: "Only the rows to add to yours, as chosen under “The files”.",
};

function uses() {
  const { options, state: { forms } } = store, use = useOf(options);
  if (isGiven(options.epsilon)) return soft(WHY.private);
  const models = forms.change.find(({ name }) => name === "model");
  const radio = ([name, { label, values }]) => h("label", { key: name },
    h("input", { type: "radio", name: "use", checked: name === use,
      onchange: () => change(values) }), label);
  const why = isGiven(options.model) ? WHY.model : WHY[use ?? "added"];
  return [
    h("fieldset", { class: "uses" },
      h("legend", null, "What will you do with it?"), Object.entries(USES).map(radio)),
    h("div", { class: "which" },
      use === "train" && choose("Which model?", options.model ?? "",
        [["", "any"], ...models.choices],
        (model) => change({ model: model || null, mode: model ? "weights" : null })),
      h("p", { class: "soft", id: "why" }, why)),
  ];
}

// ---------------------------------------------------------------- the button, and what it makes

// What each file is for.
const FOR = {
  "New rows": { train: "to train on, in place of your file", publish: "to publish" },
  "Your rows with weights": { train: "to train on, with the weights",
    weigh: "weigh them in every table" },
  "Saved fit": "more rows and reports, whenever you want",
  Report: "explains it to others",
  "Public values": "what you declared",
};

function listFiles(files) {
  const use = useOf(store.options) ?? "";
  const purpose = (what) => (typeof FOR[what] === "string" ? FOR[what] : FOR[what]?.[use]);
  const line = ({ what, name, folder, bytes }) => h("li", null,
    h("a", { href: fileAddress(folder, name), download: "" }, `${what}: ${name}`),
    h("span", { class: "soft" }, [purpose(what), size(bytes)].filter(Boolean).join(", ")));
  return files.length > 0 && h("ul", { class: "files" }, files.map(line));
}

export function actions() {
  const { answer, refitting, files, sent } = store, off = isMissing();
  const why = refitting ? "The newest result is on its way; you can take it when it is there."
    : "There is no result for what you asked for last, so there is nothing to take yet.";
  return answer && h("section", { id: "actions", "aria-label": "What will you do with it?" },
    uses(),
    button("Make the files", () => slow("take"), { class: "main", id: "make", disabled: off }),
    h("p", { id: "not-made", class: "warnings", hidden: !isOld() || !answer }, why),
    h("div", { id: "making" }, working("take")),
    h("div", { id: "files" }, listFiles(isOld() ? [] : files)),
    h("p", { class: "again" }, h("span", { class: "soft" }, "Do this again: "),
      h("a", { href: "#command" }, "command"), " · ",
      h("a", { href: "#python" }, "Python"), " · ",
      button("page to send", send, { id: "send", class: "plain", disabled: off }), " · ",
      button("keep to compare", pin, { id: "pin", class: "plain", disabled: off })),
    h("div", { id: "sent" }, sent && h("a", { href: sent.address, download: sent.name },
      `Page to send: ${sent.name}`)));
}

// ---------------------------------------------------------------- again

export function againPart() {
  const { options, answer } = store, isPrivate = Boolean(options.epsilon);
  const spends = `Running it again spends another ε = ${options.epsilon}. Keep the saved ` +
    "fit instead: 'fairmaxent sample' and 'fairmaxent report' make more rows and reports of it, " +
    "which spends nothing.";
  const same = "These write the same table, byte for byte; the command also saves the same " +
    "fit, and the same report, in which options are named as they are typed.";
  return answer && section("again", "Do this again", soft(isPrivate ? spends : same),
    h(Snippet, { title: "Command", id: "command", text: isOld() ? "" : answer.command }),
    h(Snippet, { title: "Python", id: "python", text: isOld() ? "" : answer.python }));
}

export function takePart() {
  const { state: { forms }, options, answer } = store;
  return answer && section("take", "The files", form(forms.take, options, change),
    folded("The report", false, form(forms.report, options, change)));
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
    return h("div", { class: "snippet" }, h("h3", null, title),
      h("pre", { id, tabindex: "0", "aria-label": title }, text),
      button("Copy", copy, { "aria-label": `Copy the ${title.toLowerCase()}` }),
      h("span", { role: "status", class: "soft" }, this.state.said));
  }
}
