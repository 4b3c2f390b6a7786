// Judge: may the new rows be shared? As 'fairmaxent evaluate' says.

import { h, newId, table } from "./dom.js";
import { form } from "./form.js";
import { rate, span, whole } from "./format.js";

// The options of the judgement, which are kept while the page is open.
export function drawJudge(target, { forms, control, values, addControl, judge }) {
  const id = newId("control");
  const input = h("input", { type: "file", id, class: "file", onchange: () => input.files.length && addControl(input.files[0]) });
  target.replaceChildren(h("details", null, h("summary", null, "Judge the new rows before sharing"),
    h("p", { class: "soft" }, "How much they differ from yours, what a model learns from them, and what they give away about people."),
    h("div", { class: "line" }, h("label", { for: id }, "Rows of other people"), input),
    h("p", { class: "soft" }, control ? `${control.name}: ${whole(control.rows)} rows.`
      : "A table with the same columns that was not used to make the new rows. Without it, risks can only be bounded."),
    form(forms, values, (changed) => Object.assign(values, changed)),
    h("p", null, h("button", { type: "button", id: "evaluate", onclick: () =>
      judge({ control: Boolean(control), options: { ...values } }) }, "Judge the new rows"))));
}

export function drawVerdict(target, result) {
  const range = (one) => (one.low === null ? "" : span(one.low, one.high));
  target.replaceChildren(h("h3", null, "May the new rows be shared?"), h("p", null, result.verdict),
    table("What was measured", ["", "about", "value", "95 % interval"],
      result.measures.map((one) => [one.measure, one.about, rate(one.value), range(one)]), [2, 3]),
    h("p", { class: "soft" }, "The same on the command line, once the files are there:"),
    h("pre", { tabindex: "0", "aria-label": "Command that judges the rows" }, result.command));
}
