// Ask: every wish is a control, and every change is fitted at once.

import { at, h, has, newId, refill } from "./dom.js";
import { checks, choose, form, isGiven, rateOf, wish, withRate } from "./form.js";
import { shares } from "./shares.js";

const MOST_LEVELS = 20;

export function drawAsk(section, { state, options, change, actions }) {
  const { forms, look } = state;
  const dropped = options.drop ?? [];
  const taken = [options.outcome, options.weight, ...options.protected, ...dropped];
  const few = look.columns.filter((column) => !column.identifier && column.choices.length > 1 && column.choices.length <= MOST_LEVELS);
  const free = few.filter((column) => !taken.includes(column.name));
  const outcome = look.columns.find((column) => column.name === options.outcome);
  const wishes = forms.wishes.filter((one) => one.name !== "equal_means" || outcome?.kind === "numeric");
  const isAdvanced = Object.keys(options.also ?? {}).length || options.forbid?.length || options.weight || options.release || options.epsilon;
  refill(section,
    h("h2", { id: "ask-title" }, "Ask"),
    options.protected.length > 1 && form(forms.groups, options, (values) =>
      change({ ...values, ...singleRates(forms, options) }, { look: true, draw: true })),
    forms.rates.map((one) => rates(one, options, change)),
    shares(state, options, change, actions.again),
    free.length > 0 && h("details", { open: Object.keys(options.within ?? {}).length > 0 },
      h("summary", null, "Compare only like with like"),
      levelsOf("within", "Compare only within", "Rates then hold in every stratum of these columns, e.g. in every department.",
        "Only where", "all strata", free.filter((column) => !has(options.also, column.name)), options, change)),
    h("fieldset", null, form(forms.change, options, change)),
    h("details", { open: Boolean(isAdvanced) }, h("summary", null, "Advanced"),
      levelsOf("also", "More outcomes", "They get the same rates at the same time.",
        "Good outcome of", "every level is compared", free.filter((column) => !has(options.within, column.name)), options, change),
      forbidden(few.filter((column) => !dropped.includes(column.name)), options, change),
      h("fieldset", null, h("legend", null, "More options"), weights(look, options, taken, change), form(wishes, options, change)),
      privacy(forms, options, change, actions)));
}

// A rate for all columns of groups together, as others may be compared.
export const singleRates = (forms, options) => Object.fromEntries(forms.rates.map(({ name }) => [name,
  [options[name]].flatMap((asked) => (asked !== null && typeof asked === "object" ? Object.values(asked) : [asked]))
    .find((rate) => rate !== null) ?? null]));

function rates(one, options, change) {
  const { name, label, help } = one;
  const columns = options.groups === "joint" || options.protected.length === 1 ? [null] : options.protected;
  return h("fieldset", null, h("legend", null, label), h("p", { class: "soft" }, help), columns.map((column) => {
    const what = column ?? options.protected.join(" × "), first = column ?? options.protected[0];
    const isTargeted = name === "representation_rate" && has(options.target, first);
    return [wish(one, { label: what, spoken: `Ask for ${label.toLowerCase()} of ${what}`, value: rateOf(options[name], first), disabled: isTargeted },
      (rate) => change({ [name]: withRate(options, name, column, rate) })),
    isTargeted && h("p", { class: "soft" }, `The shares of ${what} are chosen below.`)];
  }));
}

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

function weights(look, options, taken, change) {
  const numeric = look.columns.filter((column) => column.kind === "numeric" &&
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

function privacy(forms, options, change, { draft, spend }) {
  const isPrivate = isGiven(options.epsilon), id = newId("domain");
  const area = h("textarea", { id, rows: 10, spellcheck: "false", value: options.domain ?? "",
    onchange: () => change({ domain: area.value.trim() ? area.value : null }) });
  return h("fieldset", null, h("legend", null, "Privacy"),
    form(forms.privacy, options, (values) => change({ ...values, mode: null }, { draw: true })),
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
