// Ask: every wish is a control, and every change is fitted at once.

import { advanced, isAdvanced, within } from "./advanced.js";
import { at, h, has, newId, refill } from "./dom.js";
import { choose, slider } from "./form.js";
import { percent } from "./format.js";
import { shares } from "./shares.js";

export function drawAsk(section, { state, options, change, actions }) {
  const columns = options.groups === "joint" || options.protected.length === 1 ? [null] : options.protected;
  refill(section,
    h("h2", { id: "ask-title" }, "Ask"),
    options.protected.length > 1 && choose("Compare", options.groups ?? "each",
      [["each", "each column on its own"], ["joint", "their intersections"]],
      (groups) => change({ groups, ...scalar(options) }, { look: true, draw: true })),
    options.protected.length > 1 && options.groups !== "joint" && h("p", { class: "soft" },
      "Their intersections may then stay unequal."),
    rates(options, change, columns, "statistical_rate", "Equal outcomes",
      "1: all groups get the good outcome equally often. 0.8: the lowest rate is at least 80 % of the highest."),
    rates(options, change, columns, "representation_rate", "Equal group sizes",
      "1: all are equally large. Not ticked: as in the data."),
    shares(state, options, change, actions.again),
    within(state, options, change),
    changeOfRows(options, change),
    limits(options, change),
    h("details", { open: Boolean(isAdvanced(options)) }, h("summary", null, "Advanced"), advanced(state, options, change, actions)));
}

function rates(options, change, columns, name, title, help) {
  const asked = options[name];
  const of = (column) => (asked !== null && typeof asked === "object" ? at(asked, column ?? options.protected[0]) ?? null : asked);
  const set = (column, rate) => {
    if (column === null) return change({ [name]: rate });
    const present = options[name];
    const by = Object.fromEntries(options.protected.map((other) =>
      [other, present !== null && typeof present === "object" ? at(present, other) ?? null : present]));
    change({ [name]: { ...by, [column]: rate } });
  };
  const targeted = (column) => name === "representation_rate" && has(options.target, column ?? options.protected[0]);
  return h("fieldset", null, h("legend", null, title), h("p", { class: "soft" }, help),
    columns.map((column) => {
      const id = newId("ask");
      const present = of(column);
      const what = column ?? options.protected.join(" × ");
      const row = slider({ label: what, value: present ?? 1, min: 0.05, max: 1, step: 0.01,
        disabled: present === null || targeted(column), show: (value) => value.toFixed(2),
        input: (value) => set(column, value) });
      const range = row.querySelector("input");
      const box = h("input", { type: "checkbox", id, checked: present !== null, disabled: targeted(column),
        "aria-label": `Ask for ${title.toLowerCase()} of ${what}`,
        onchange: () => { range.disabled = !box.checked; set(column, box.checked ? Number(range.value) : null); } });
      return [h("div", { class: "wish" }, box, row),
        targeted(column) && h("p", { class: "soft" }, `The shares of ${what} are chosen below.`)];
    }));
}

const WAYS = {
  none: ["Reweigh", "Rows count more or less, and keep their outcome."],
  probabilities: ["Relabel, for equal probabilities", "Rows are split between outcomes, so that a model finds the good outcome equally likely for all groups."],
  predictions: ["Relabel, for equal decisions (slower)", "Rows are split between outcomes, so that a model decides equally often for all groups."],
};

function changeOfRows(options, change) {
  const way = options.relabel ?? "none";
  return h("fieldset", null,
    choose("How rows change", way, Object.entries(WAYS).map(([key, [text]]) => [key, text]), (relabel) => change({ relabel }, { draw: true })),
    h("p", { class: "soft" }, WAYS[way][1]),
    way !== "none" && slider({ label: "Decision threshold", value: options.threshold ?? 0.5, min: 0.05, max: 0.95,
      step: 0.01, show: (value) => value.toFixed(2), input: (value) => change({ threshold: value }) }));
}

function limits(options, change) {
  return h("fieldset", null, largest(options, change),
    h("p", { class: "soft" }, "A row may count at most this many times as much as before; rates then come as close as they can."),
    slider({ label: "New combinations", value: options.base_share ?? 0.2, min: 0, max: 1, step: 0.01,
      disabled: Boolean(options.release || options.epsilon), // then all rows are new
      show: (value) => percent(value), input: (value) => change({ base_share: value }) }),
    h("p", { class: "soft" }, "Share of rows that may match nobody in the data."));
}

function largest(options, change) {
  const present = options.largest_weight ?? null;
  const row = slider({ label: "Largest weight", value: present ?? 10, min: 1.5, max: 30, step: 0.5, disabled: present === null,
    show: (value) => value.toFixed(1), input: (value) => change({ largest_weight: value }) });
  const range = row.querySelector("input");
  const box = h("input", { type: "checkbox", checked: present !== null, "aria-label": "Limit the largest weight",
    onchange: () => { range.disabled = !box.checked; change({ largest_weight: box.checked ? Number(range.value) : null }); } });
  return h("div", { class: "wish" }, box, row);
}

function scalar(options) {
  const one = (asked) => (asked !== null && typeof asked === "object" ? Object.values(asked).find((rate) => rate !== null) ?? null : asked);
  return { representation_rate: one(options.representation_rate), statistical_rate: one(options.statistical_rate) };
}
