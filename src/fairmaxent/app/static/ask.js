// @ts-check
// Ask: the sliders with their trade-off, and every other wish; every change is answered at once.

import { tradeOff } from "./charts.js";
import { at, button, folded, h, has, newId, section, soft } from "./dom.js";
import { Typed, checks, choose, form, isGiven, named, rateOf, wish, withRate } from "./form.js";
import { groupName, percent } from "./format.js";
import { MOST_LEVELS, shares } from "./shares.js";
import { change, draft, isReady, singleRates, sliders, spend, store } from "./store.js";

export function askPart(width) {
  if (!isReady()) return null;
  const { state: { forms }, options } = store;
  return section("ask", "Ask", true,
    forms.rates.map((one) => h("fieldset", { key: one.name }, h("legend", null, one.label), soft(one.help),
      sliders().filter((slider) => slider.one === one).map((slider) => rate(slider, options, width)))),
    options.protected.length > 1 && form(forms.groups, options, (values) =>
      change({ ...values, ...singleRates() }, { look: true })));
}

// The wishes beside the sliders, folded.
export function morePart() {
  const { state, options } = store, { forms, look } = state;
  const taken = [options.outcome, options.weight, ...options.protected, ...(options.drop ?? [])];
  const free = look.columns.filter(({ name, identifier, choices }) =>
    !identifier && choices.length > 1 && choices.length <= MOST_LEVELS && !taken.includes(name));
  const outcome = look.columns.find((column) => column.name === options.outcome);
  const wishes = forms.wishes.filter((one) => one.name !== "equal_means" || outcome?.kind === "numeric");
  const isAdvanced = Object.keys(options.also ?? {}).length || options.forbid?.length || options.weight ||
    options.release || options.epsilon;
  return isReady() && section("more", "Ask for more", false, shares(),
    free.length > 0 && folded("Compare only like with like", Object.keys(options.within ?? {}).length > 0,
      levelsOf("within", "Compare only within",
        "Rates then hold in every stratum of these columns, e.g. in every department.",
        "Only where", "all strata", free.filter((column) => !has(options.also, column.name)), options)),
    folded("How the table changes", forms.change.some((one) => isGiven(options[one.name])),
      form(forms.change, options, change)),
    folded("Advanced", isAdvanced,
      levelsOf("also", "More outcomes", "They get the same rates at the same time.",
        "Good outcome of", "every level is compared",
        free.filter((column) => !has(options.within, column.name)), options),
      h("fieldset", null, h("legend", null, "More options"), weights(look, options, taken),
        form(wishes, options, change)),
      privacy(forms, options)));
}

// One slider, the curve under it, and what its value means in people, for those who do not see it.
function rate({ one, column, first }, options, width) {
  const { answer, curves } = store, { name, label } = one, what = column ?? options.protected.join(" × ");
  const value = rateOf(options[name], first), isTargeted = name === "representation_rate" && has(options.target, first);
  const about = (answer?.see.rates ?? []).find((known) => known.kind === name && known.columns === what);
  const groups = (answer?.see.groups ?? []).filter((group) => group.column === about?.grouping);
  const now = groups.map((group) => (name === "statistical_rate" ? group.rate_after : group.share_after));
  const said = groups.slice(0, 4).map((group, index) => `${groupName(group)} ${percent(now[index])}`).join(", ");
  const curve = at(curves, `${name} ${column}`)?.curve;
  return h("div", { class: "rate", key: what },
    wish(one, { label: what, spoken: `${label} of ${what}`, ticked: `Ask for ${label.toLowerCase()} of ${what}`, value,
      said: value === null ? undefined : `${value.toFixed(2)}: ${said}`, disabled: isTargeted },
    (next, moving) => change({ [name]: withRate(options, name, column, next) }, { moving })),
    isTargeted && soft(`The shares of ${what} are chosen below.`),
    value !== null && curve && curve.points.length > 1 &&
      tradeOff({ curve, one, value, now, own: about?.before ?? null, rows: answer.see.rows, width }));
}

// Columns to choose, and of each some of its levels, or all.
function levelsOf(name, title, help, which, ifNone, columns, options) {
  const chosen = options[name] ?? {}, set = (values) => change({ [name]: values });
  return columns.length > 0 && [
    checks(title, columns.map((column) => column.name), Object.keys(chosen), (names) =>
      set(Object.fromEntries(names.map((one) => [one, at(chosen, one) ?? null]))), { help }),
    columns.filter((column) => has(chosen, column.name)).map((column) =>
      checks(`${which} ${column.name} is`, column.choices, at(chosen, column.name) ?? [], (levels) =>
        set({ ...chosen, [column.name]: levels.length ? levels : null }), { ifNone: `None is chosen: ${ifNone}.` }))];
}

function weights(look, options, taken) {
  const others = look.columns.filter((column) => column.kind === "numeric" && !taken.includes(column.name) &&
    !has(options.within, column.name));
  const numeric = options.weight ? [{ name: options.weight }, ...others] : others; // a look is without the weights
  return numeric.length > 0 && choose("Design weights", options.weight ?? "", named("none", numeric),
    (weight) => change({ weight: weight || null }, { look: true }));
}

const AREA = newId("domain");
function privacy(forms, options) {
  const isPrivate = isGiven(options.epsilon);
  return h("fieldset", null, h("legend", null, "Privacy"),
    form(forms.privacy, options, (values) => change({ ...values, mode: null })),
    (isPrivate || options.release) && [
      h("label", { for: AREA }, "Public values of every column"),
      soft(isPrivate
        ? "A private result needs them, because levels that are learned from rows reveal who is in them."
        : "If you declare them, rare values need not be merged. May be left empty."),
      h(Typed, { id: AREA, rows: 10, spellcheck: "false", value: options.domain ?? "",
        change: (words) => change({ domain: words.trim() ? words : null }) }),
      h("p", null, button("Draft them from this table", async () => {
        const text = await draft();
        if (text !== null) change({ domain: text });
      }))],
    isPrivate && h("p", null,
      button(`Spend the budget (ε = ${options.epsilon})`, spend, { class: "main", id: "spend" })));
}
