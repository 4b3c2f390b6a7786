// Ask: every wish is a control, and every change is fitted at once.

import { h, newId } from "./dom.js";
import { percent } from "./format.js";

const MOST_LEVELS = 12; // of a column whose shares can be drawn

export function drawAsk(section, { state, options, change }) {
  const columns = options.groups === "joint" || options.protected.length === 1 ? [null] : options.protected;
  section.replaceChildren(
    h("h2", { id: "ask-title" }, "Ask"),
    rates(options, change, columns, "statistical_rate", "Equal outcomes",
      "1: every group gets the good outcome equally often. 0.8: the lowest rate is at least 80 % of the highest."),
    rates(options, change, columns, "representation_rate", "Equal group sizes",
      "1: all groups are equally large. Not ticked: groups keep their sizes."),
    change_of_rows(options, change),
    base(options, change),
    largest(options, change),
    shares(state, options, change),
    more(state, options, change));
}

// A labelled slider with its value beside it; `input` is called while the hand moves.
function slider({ label, value, min, max, step, disabled, show, input }) {
  const id = newId("slider");
  const output = h("output", { for: id }, show(value));
  const range = h("input", { type: "range", id, min, max, step, disabled, oninput: () => {
    output.textContent = show(Number(range.value));
    input(Number(range.value));
  } });
  range.value = value;
  return h("div", { class: "slider" }, h("label", { for: id }, label), range, output);
}

function rates(options, change, columns, name, title, help) {
  const asked = options[name];
  const of = (column) => (asked !== null && typeof asked === "object" ? asked[column ?? options.protected[0]] ?? null : asked);
  const set = (column, rate) => {
    if (column === null) return change({ [name]: rate });
    const present = options[name];
    const by = Object.fromEntries(options.protected.map((other) =>
      [other, present !== null && typeof present === "object" ? present[other] ?? null : present]));
    change({ [name]: { ...by, [column]: rate } });
  };
  const targeted = (column) => name === "representation_rate" && options.target &&
    (column ?? options.protected[0]) in options.target;
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
      return h("div", { class: "wish" }, box, row);
    }));
}

function change_of_rows(options, change) {
  const name = newId("relabel");
  const choices = [
    ["none", "Reweigh: rows count more or less, and keep their outcome"],
    ["probabilities", "Relabel: rows are split between outcomes, for equal probabilities of a model"],
    ["predictions", "Relabel, for equal decisions of a model (slower)"]];
  const threshold = slider({ label: "Decision threshold", value: options.threshold ?? 0.5, min: 0.05, max: 0.95,
    step: 0.01, disabled: (options.relabel ?? "none") === "none", show: (value) => value.toFixed(2),
    input: (value) => change({ threshold: value }) });
  return h("fieldset", null, h("legend", null, "How rows change"),
    choices.map(([value, label]) => {
      const id = newId("choice");
      return h("div", { class: "choice" }, h("input", { type: "radio", name, id, value,
        checked: (options.relabel ?? "none") === value, onchange: () => {
          threshold.querySelector("input").disabled = value === "none";
          change({ relabel: value });
        } }), h("label", { for: id }, label));
    }), threshold);
}

function base(options, change) {
  return h("fieldset", null, h("legend", null, "New combinations"),
    h("p", { class: "soft" }, "How much of the new table may be rows that nobody in the data has."),
    slider({ label: "Share", value: options.base_share ?? 0.2, min: 0, max: 1, step: 0.01,
      show: (value) => percent(value), input: (value) => change({ base_share: value }) }));
}

function largest(options, change) {
  const id = newId("largest");
  const present = options.largest_weight ?? null;
  const row = slider({ label: "times as much", value: present ?? 10, min: 1.5, max: 30, step: 0.5, disabled: present === null,
    show: (value) => value.toFixed(1), input: (value) => change({ largest_weight: value }) });
  const range = row.querySelector("input");
  const box = h("input", { type: "checkbox", id, checked: present !== null, "aria-label": "Limit the largest weight",
    onchange: () => { range.disabled = !box.checked; change({ largest_weight: box.checked ? Number(range.value) : null }); } });
  return h("fieldset", null, h("legend", null, "Largest weight"),
    h("p", { class: "soft" }, "A row may count at most so many times as much as before; rates then come as close as they can."),
    h("div", { class: "wish" }, box, row));
}

// Wanted shares of the groups, as bars to be dragged; they always add up to 100 %.
function shares(state, options, change) {
  const drawn = options.protected.map((name) => state.look.columns.find((column) => column.name === name))
    .filter((column) => column && column.choices.length >= 2 && column.choices.length <= MOST_LEVELS);
  return drawn.length > 0 && h("details", { open: drawn.some((column) => options.target?.[column.name]) }, h("summary", null, "Wanted shares"),
    drawn.map((column) => columnShares(state, options, change, column)));
}

function columnShares(state, options, change, column) {
  const id = newId("target");
  const wanted = options.target?.[column.name];
  const levels = column.choices;
  const parts = levels.map((level) => Math.round(100 * (wanted?.[level] ?? present(state, column.name, level, levels.length))));
  const rows = [];
  const texts = () => rounded(parts).map((part, index) => {
    rows[index].querySelector("output").textContent = `${part} %`;
    return part;
  });
  const send = () => {
    const whole = texts();
    const target = { ...options.target, [column.name]: Object.fromEntries(levels.map((level, index) => [level, whole[index] / 100])) };
    change({ target, representation_rate: without(options, column.name) }, { draw: !options.target?.[column.name] });
  };
  levels.forEach((level, index) => rows.push(slider({ label: level, value: parts[index], min: 1, max: 100, step: 1,
    disabled: !wanted, show: (value) => `${value} %`, input: (value) => { parts[index] = value; send(); } })));
  texts();
  const box = h("input", { type: "checkbox", id, checked: Boolean(wanted), onchange: () => {
    if (box.checked) return send();
    const rest = Object.fromEntries(Object.entries(options.target ?? {}).filter(([name]) => name !== column.name));
    change({ target: Object.keys(rest).length ? rest : null }, { draw: true });
  } });
  return h("fieldset", null, h("legend", null, `Shares of ${column.name}`),
    h("p", null, box, " ", h("label", { for: id }, "Choose them instead of equal sizes")), rows);
}

function present(state, column, level, count) {
  const grouping = state.look.groupings.find((one) => one.name === column);
  return grouping?.groups.find((group) => group.group === level)?.share ?? 1 / count;
}

// Whole percents that add up to 100; none is 0.
function rounded(parts) {
  const sum = parts.reduce((total, part) => total + Math.max(part, 1), 0);
  const exact = parts.map((part) => (100 * Math.max(part, 1)) / sum);
  const floors = exact.map((part) => Math.max(1, Math.floor(part)));
  const order = exact.map((part, index) => index).sort((a, b) => exact[b] % 1 - exact[a] % 1);
  let left = 100 - floors.reduce((total, part) => total + part, 0);
  for (let turn = 0; left > 0; turn += 1, left -= 1) floors[order[turn % order.length]] += 1;
  while (left < 0) { floors[floors.indexOf(Math.max(...floors))] -= 1; left += 1; }
  return floors;
}

// The sizes of groups whose shares are chosen cannot also be asked to be equal.
function without(options, column) {
  const asked = options.representation_rate;
  if (asked === null || asked === undefined || options.protected.length === 1) return null;
  const by = typeof asked === "object" ? asked : Object.fromEntries(options.protected.map((name) => [name, asked]));
  return { ...by, [column]: null };
}

function more(state, options, change) {
  const free = state.look.columns.filter((column) => !column.identifier && column.name !== options.outcome &&
    !options.protected.includes(column.name) && !(options.drop ?? []).includes(column.name));
  const numeric = free.filter((column) => column.kind === "numeric");
  const strata = free.filter((column) => column.choices.length > 0 && column.levels.length <= 20 && column.name !== options.weight);
  const opened = options.target?.[options.outcome] || options.groups === "joint" || options.within?.length || options.weight || options.share || options.compare_missing;
  return h("details", { open: Boolean(opened) }, h("summary", null, "More"),
    options.protected.length > 1 && choose("Compare", options.groups ?? "each",
      [["each", "each column on its own"], ["joint", "their intersections"]],
      (groups) => change({ groups, ...scalar(options) }, { look: true, draw: true })),
    strata.length > 0 && h("fieldset", null, h("legend", null, "Compare only within"),
      h("p", { class: "soft" }, "Rates then hold in every stratum of these columns, e.g. in every department."),
      h("div", { class: "checks" }, strata.map((column) => flag(column.name, (options.within ?? []).includes(column.name),
        (on) => change({ within: on ? [...(options.within ?? []), column.name] :
          options.within.filter((name) => name !== column.name) }, { draw: true }))))),
    flag("Let the overall share of the outcome change", options.target?.[options.outcome] === "free", (on) => {
      const rest = Object.fromEntries(Object.entries(options.target ?? {}).filter(([name]) => name !== options.outcome));
      const target = on ? { ...rest, [options.outcome]: "free" } : rest;
      change({ target: Object.keys(target).length ? target : null });
    }),
    flag("Compare missing values as a group", options.compare_missing ?? false, (on) => change({ compare_missing: on })),
    flag("Rows to share: no copies, no exact numbers, no rare values", options.share ?? false,
      (on) => change({ share: on, ...(on ? { mode: "rows" } : {}) }, { draw: true })),
    choose("New combinations come from", options.base ?? "tree", [["tree", "the strongest dependences (tree)"],
      ["product", "each column on its own (product)"], ["uniform", "nothing, as in the paper (uniform)"]],
      (kind) => change({ base: kind })),
    numeric.length > 0 && choose("Design weights", options.weight ?? "", [["", "none"],
      ...numeric.map((column) => [column.name, column.name])],
      (weight) => change({ weight: weight || null }, { look: true, draw: true })),
    number("Seed", options.seed ?? 0, 0, 4294967295, (seed) => change({ seed: seed ?? 0 })));
}

function scalar(options) {
  const one = (asked) => (asked !== null && typeof asked === "object" ? Object.values(asked).find((rate) => rate !== null) ?? null : asked);
  return { representation_rate: one(options.representation_rate), statistical_rate: one(options.statistical_rate) };
}

export function flag(label, on, change) {
  const id = newId("flag");
  const box = h("input", { type: "checkbox", id, checked: on, onchange: () => change(box.checked) });
  return h("span", { class: "flag" }, box, h("label", { for: id }, label));
}

export function choose(label, value, choices, change) {
  const id = newId("choose");
  const select = h("select", { id, onchange: () => change(select.value) },
    choices.map(([key, text]) => h("option", { value: key }, text)));
  select.value = value;
  return h("div", { class: "line" }, h("label", { for: id }, label), select);
}

export function text(label, value, change) {
  const id = newId("text");
  const input = h("input", { type: "text", id, maxlength: 300, onchange: () => change(input.value.trim() || null) });
  input.value = value ?? "";
  return h("div", { class: "line" }, h("label", { for: id }, label), input);
}

export function number(label, value, min, max, change) {
  const id = newId("number");
  const input = h("input", { type: "number", id, min, max, step: 1, onchange: () =>
    input.checkValidity() && change(input.value === "" ? null : Number(input.value)) });
  input.value = value ?? "";
  return h("div", { class: "line" }, h("label", { for: id }, label), input);
}
