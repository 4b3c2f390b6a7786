// Advanced wishes: strata and their levels, more outcomes, impossible combinations, privacy.

import { at, h, has, newId } from "./dom.js";
import { checks, choose, control, form } from "./form.js";

const MOST_LEVELS = 20;

function usable(state, options) {
  const taken = [options.outcome, options.weight, ...options.protected, ...(options.drop ?? [])];
  const few = state.look.columns.filter((column) => !column.identifier && column.choices.length > 1 &&
    column.choices.length <= MOST_LEVELS);
  return { taken, few, free: few.filter((column) => !taken.includes(column.name)) };
}

export function within(state, options, change) {
  const { free } = usable(state, options);
  return free.length > 0 && h("details", { open: Object.keys(options.within ?? {}).length > 0 },
    h("summary", null, "Compare only like with like"),
    levelsOf("within", "Compare only within", "Rates then hold in every stratum of these columns, e.g. in every department.",
      "Only where", "all strata", free.filter((column) => !has(options.also, column.name)), options, change));
}

export function advanced(state, options, change, { draft, spend }) {
  const { taken, few, free } = usable(state, options);
  const outcome = state.look.columns.find((column) => column.name === options.outcome);
  const records = state.forms.ask.filter((one) => one.name !== "equal_means" || outcome?.kind === "numeric");
  return [
    levelsOf("also", "More outcomes", "They get the same rates at the same time.",
      "Good outcome of", "every level is compared", free.filter((column) => !has(options.within, column.name)), options, change),
    forbidden(few.filter((column) => !(options.drop ?? []).includes(column.name)), options, change),
    h("fieldset", null, h("legend", null, "More options"), weights(state, options, taken, change),
      form(records, options, (values) => change(values, { draw: true }))),
    privacy(state, options, change, draft, spend)];
}

export const isAdvanced = (options) => Object.keys(options.also ?? {}).length ||
  options.forbid?.length || options.weight || options.release || options.epsilon;

// Columns to choose, and of each some of its levels, or all.
function levelsOf(name, title, help, which, ifNone, columns, options, change) {
  const chosen = options[name] ?? {};
  const set = (values) => change({ [name]: values }, { draw: true });
  return columns.length > 0 && [
    checks(title, columns.map((column) => column.name), Object.keys(chosen), (names) =>
      set(Object.fromEntries(names.map((one) => [one, at(chosen, one) ?? null]))), { help }),
    columns.filter((column) => has(chosen, column.name)).map((column) =>
      checks(`${which} ${column.name} is`, column.choices, at(chosen, column.name) ?? [], (levels) =>
        set({ ...chosen, [column.name]: levels.length ? levels : null }), { ifNone: `None is chosen: ${ifNone}.` }))];
}

function weights(state, options, taken, change) {
  const numeric = state.look.columns.filter((column) => column.kind === "numeric" &&
    (column.name === options.weight || !taken.includes(column.name)) && !has(options.within, column.name));
  return numeric.length > 0 && choose("Design weights", options.weight ?? "", [["", "none"],
    ...numeric.map((column) => [column.name, column.name])],
    (weight) => change({ weight: weight || null }, { look: true, draw: true }));
}

// Combinations that cannot exist: two or three columns with a level each.
function forbidden(columns, options, change) {
  const present = options.forbid ?? [];
  const rows = [1, 2, 3].map((number) => condition(number, columns));
  const add = () => {
    const combination = Object.fromEntries(rows.map((row) => row.value()).filter(([name]) => name));
    if (Object.keys(combination).length) change({ forbid: [...present, combination] }, { draw: true });
  };
  const words = (combination) => Object.entries(combination).map(([name, level]) => `${name} = ${level}`).join(", ");
  return columns.length > 1 && h("fieldset", null, h("legend", null, "Impossible combinations"),
    h("p", { class: "soft" }, "New rows never have them, e.g. sex = male and pregnant = yes."),
    present.length > 0 && h("ul", null, present.map((combination, index) => h("li", null, words(combination), " ",
      h("button", { type: "button", "aria-label": `Allow ${words(combination)}`,
        onclick: () => change({ forbid: present.filter((_, other) => other !== index) }, { draw: true }) }, "Allow")))),
    rows.map((row) => row.element),
    h("button", { type: "button", onclick: add }, "Add this combination"));
}

function condition(number, columns) {
  const level = h("select", { "aria-label": `Level of column ${number}` });
  const fill = () => level.replaceChildren(...(columns.find((one) => one.name === column.value)?.choices ?? [])
    .map((one) => h("option", { value: one }, one)));
  const column = h("select", { "aria-label": `Column ${number}`, onchange: fill }, h("option", { value: "" }, "column…"),
    columns.map((one) => h("option", { value: one.name }, one.name)));
  return { value: () => [column.value, level.value], element: h("div", { class: "line" }, column, " = ", level) };
}

function privacy(state, options, change, draft, spend) {
  const isPrivate = options.epsilon !== null && options.epsilon !== undefined;
  const id = newId("domain");
  const area = h("textarea", { id, rows: 10, spellcheck: "false", onchange: () => change({ domain: area.value.trim() ? area.value : null }) });
  area.value = options.domain ?? "";
  const records = state.forms.privacy.filter((one) => one.name !== "delta" || isPrivate);
  return h("fieldset", null, h("legend", null, "Privacy"),
    records.map((one) => control(one, options[one.name], (value) =>
      change({ [one.name]: value, ...(value ? { mode: "rows", base_share: null } : {}) }, { draw: true }))),
    (isPrivate || options.release) && [
      h("label", { for: id }, "Public values of every column"),
      h("p", { class: "soft" }, isPrivate ? "A private result needs them, because levels that are learned from rows reveal who is in them."
        : "If you declare them, rare values need not be merged. May be left empty."),
      area,
      h("p", null, h("button", { type: "button", onclick: async () => {
        const text = await draft();
        if (text !== null) change({ domain: text }, { draw: true });
      } }, "Draft them from this table"))],
    isPrivate && h("p", null, h("button", { type: "button", class: "main", id: "spend", onclick: spend },
      `Spend the budget (ε = ${options.epsilon})`)));
}
