// @ts-check
// Ask for more: every wish beside the slider, folded.

import { at, button, folded, h, has, newId, section, soft } from "./dom.js";
import { Typed, checks, choose, form, isGiven, named } from "./form.js";
import { MOST_LEVELS, shares } from "./shares.js";
import { change, draft, isReady, spend, store } from "./store.js";

export function morePart() {
  const { state, options } = store, { forms } = state;
  if (!isReady()) return null;
  const free = freeColumns();
  const isStrict = Object.keys(options.within ?? {}).length > 0;
  const isChanged = forms.change.some((one) => isGiven(options[one.name]));
  return section("more", "Ask for more", shares(),
    free.length > 0 && folded("Compare only like with like", isStrict,
      levelsOf("within", "Compare only within",
        "Rates are then compared in every stratum of these columns: in every department.",
        "Only where", "all strata",
        free.filter((one) => !has(options.further_outcomes, one.name)))),
    folded("How the table changes", isChanged, form(forms.change, options, change)),
    advanced(free));
}

// Columns of few levels that have no role yet.
function freeColumns() {
  const { state: { look }, options } = store;
  const taken = [options.outcome, options.weight, ...options.protected, ...options.drop ?? []];
  return look.columns.filter(({ name, identifier, choices }) => !identifier &&
    choices.length > 1 && choices.length <= MOST_LEVELS && !taken.includes(name));
}

function advanced(free) {
  const { state: { forms, look }, options } = store;
  const outcome = look.columns.find((column) => column.name === options.outcome);
  const wishes = forms.wishes.filter((one) =>
    one.name !== "equal_means" || outcome?.kind === "numeric");
  const isAsked = Object.keys(options.further_outcomes ?? {}).length || options.forbid?.length ||
    options.weight || options.release || options.epsilon;
  return folded("Advanced", isAsked,
    levelsOf("further_outcomes", "More outcomes", "The same rates are asked of them.",
      "Good outcome of", "every level is compared",
      free.filter((column) => !has(options.within, column.name))),
    h("fieldset", null, h("legend", null, "More options"), weights(),
      form(wishes, options, change)),
    privacy(forms, options));
}

// Columns to choose, and of each some of its levels, or all.
function levelsOf(name, title, help, which, ifNone, columns) {
  const chosen = store.options[name] ?? {}, set = (values) => change({ [name]: values });
  const choice = (names) => set(Object.fromEntries(
    names.map((one) => [one, at(chosen, one) ?? null])));
  const levels = (column) => checks(`${which} ${column.name} is`, column.choices,
    at(chosen, column.name) ?? [],
    (some) => set({ ...chosen, [column.name]: some.length ? some : null }),
    { ifNone: `None is chosen: ${ifNone}.` });
  return columns.length > 0 && [
    checks(title, columns.map((column) => column.name), Object.keys(chosen), choice, { help }),
    columns.filter((column) => has(chosen, column.name)).map(levels)];
}

function weights() {
  const { state: { look }, options } = store;
  const taken = [options.outcome, options.weight, ...options.protected, ...options.drop ?? []];
  const others = look.columns.filter(({ kind, name }) =>
    kind === "numeric" && !taken.includes(name) && !has(options.within, name));
  // a look is without the weights
  const numeric = options.weight ? [{ name: options.weight }, ...others] : others;
  return numeric.length > 0 && choose("Design weights", options.weight ?? "",
    named("none", numeric), (weight) => change({ weight: weight || null }, { look: true }));
}

const AREA = newId("domain");
function privacy(forms, options) {
  const isPrivate = isGiven(options.epsilon);
  const drafted = async () => {
    const text = await draft();
    if (text !== null) change({ domain: text });
  };
  return h("fieldset", null, h("legend", null, "Privacy"),
    form(forms.privacy, options, (values) => change({ ...values, mode: null })),
    (isPrivate || options.release) && [
      h("label", { for: AREA }, "Public values of every column"),
      soft(isPrivate
        ? "A private result needs them, because levels that are learned from rows reveal who is " +
          "in them."
        : "If you declare them, rare values need not be merged. May be left empty."),
      h(Typed, { id: AREA, rows: 10, spellcheck: "false", value: options.domain ?? "",
        change: (words) => change({ domain: words.trim() ? words : null }) }),
      h("p", null, button("Draft them from this table", drafted))],
    isPrivate && h("p", null, button(`Spend the budget (ε = ${options.epsilon})`, spend,
      { class: "main", id: "spend" })));
}
