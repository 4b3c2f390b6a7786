// Look: what is in the table, who is compared, and how unequal the groups are.

import { groupLine } from "./charts.js";
import { h, newId, table } from "./dom.js";
import { percent, rate, whole } from "./format.js";

const SHOWN = 40;

export function drawLook(section, { state, options, change, width }) {
  const { look } = state;
  const parts = [h("h2", { id: "look-title" }, "Look"),
    h("p", null, `${state.table.name}: ${whole(look.rows)} rows, ${look.columns.length} columns.`,
      state.table.offered && [" ", h("a", { href: `/files/0/${encodeURIComponent(state.table.name)}`, download: "" },
        "Download this table"), "."])];
  parts.push(roles(look, options, change), reasons(look), groups(look, width), notes(look), columns(look, options, change));
  section.replaceChildren(...parts.flat(9).filter(Boolean));
}

function roles(look, options, change) {
  const usable = look.columns.filter((column) => !(options.drop ?? []).includes(column.name));
  const outcomeId = newId("outcome");
  const outcome = h("select", { id: outcomeId, onchange: (event) => change({ outcome: event.target.value, favourable: [],
    protected: options.protected.filter((name) => name !== event.target.value) }) },
    h("option", { value: "" }, "choose…"),
    usable.filter((column) => !column.identifier).map((column) => h("option", { value: column.name }, column.name)));
  outcome.value = options.outcome ?? "";
  const chosen = look.columns.find((column) => column.name === options.outcome);
  return h("div", { class: "roles" },
    h("div", null, h("label", { for: outcomeId }, "Outcome"), outcome),
    chosen && chosen.choices.length > 0 && checks("Good outcome", chosen.choices, options.favourable ?? [],
      (favourable) => change({ favourable }), "None is chosen: every outcome is compared."),
    protectedColumns(usable, options, change));
}

function protectedColumns(usable, options, change) {
  const possible = usable.filter((column) => column.name !== options.outcome && !column.identifier &&
    column.name !== options.weight && !(options.within ?? []).includes(column.name));
  return checks("Groups to compare", possible.map((column) => column.name), options.protected,
    (chosen) => change({ protected: chosen }), "Choose at least one column.");
}

function checks(title, names, chosen, change, ifNone) {
  return h("fieldset", null, h("legend", null, title),
    h("div", { class: "checks" }, names.map((name) => {
      const id = newId("check");
      const box = h("input", { type: "checkbox", id, checked: chosen.includes(name), onchange: () =>
        change(box.checked ? [...chosen, name] : chosen.filter((other) => other !== name)) });
      return h("span", null, box, h("label", { for: id }, name));
    })),
    chosen.length === 0 && h("p", { class: "soft" }, ifNone));
}

function reasons(look) {
  const words = { outcome: "outcome", favourable: "good outcome", protected: "group" };
  const shown = look.reasons.filter((one) => one.sure !== "candidate");
  const candidates = look.reasons.filter((one) => one.sure === "candidate");
  const listed = (ones, text) => ones.map((one, index) => [index ? "; " : "", text(one)]);
  return [
    shown.length > 0 && h("p", { class: "soft" }, "Guessed, so please check: ",
      listed(shown, (one) => `${one.value} as ${words[one.role]} (${one.reason})`), "."),
    candidates.length > 0 && h("p", { class: "soft" }, "Perhaps: ",
      listed(candidates, (one) => `${one.value} as ${words[one.role]} (${one.reason})`), "."),
  ];
}

function groups(look, width) {
  return look.groupings.map((grouping) => {
    const outcomes = [...new Set(grouping.groups.map((group) => group.outcome))].slice(0, 4);
    return outcomes.map((outcome) => {
      const rows = grouping.groups.filter((group) => group.outcome === outcome);
      const most = Math.max(...rows.map((group) => group.interval?.[1] ?? group.rate ?? 0), 1e-9);
      return h("div", { class: "picture" },
        h("h3", null, `How often each group of ${grouping.name} gets “${outcome}”`),
        h("p", { class: "soft" }, `Statistical rate ${rate(grouping.statistical_rate)} (lowest over highest), ` +
          `representation rate ${rate(grouping.representation_rate)} (smallest over largest group). Bars: 95 % intervals.`),
        rows.slice(0, SHOWN).map((group) => groupLine({
          name: `${group.group} (${whole(group.rows)} rows, ${percent(group.share)})`,
          before: group.rate, low: group.interval?.[0], high: group.interval?.[1], most, width })),
        rows.length > SHOWN && h("p", { class: "soft" }, `and ${rows.length - SHOWN} more groups`));
    });
  });
}

function notes(look) {
  return [look.notes.length > 0 && h("div", { class: "notes" }, h("h3", null, "What to watch out for"),
    h("ul", null, look.notes.map((note) => h("li", null, note)))),
  look.proxies.length > 0 && h("details", null, h("summary", null, "Columns that predict a group"),
    table("Columns that predict a group", ["Column", "predicts", "how well"],
      look.proxies.map((proxy) => [proxy.column, proxy.protected, percent(proxy.strength)]), [2]))];
}

function columns(look, options, change) {
  const dropped = options.drop ?? [];
  const taken = [options.outcome, options.weight, ...options.protected, ...(options.within ?? [])];
  const kept = options.keep ?? [];
  const identifier = (column) => `looks like an identifier: ${kept.includes(column.name) ? "kept, as you asked" : "left out"}`;
  const keep = (name) => (kept.includes(name)
    ? h("button", { type: "button", "aria-label": `Do not keep ${name}`,
      onclick: () => change({ keep: kept.filter((other) => other !== name) }) }, "Do not keep")
    : h("button", { type: "button", "aria-label": `Keep ${name}`, onclick: () => change({ keep: [...kept, name] }) }, "Keep"));
  const rows = look.columns.map((column) => [column.name, column.kind, whole(column.values), whole(column.missing),
    column.identifier ? identifier(column) :
      column.levels.join(", ") + (column.more ? `, and ${column.more} more` : ""),
    taken.includes(column.name) ? "" : column.identifier ? keep(column.name) :
      h("button", { type: "button", "aria-label": `Leave out ${column.name}`,
        onclick: () => change({ drop: [...dropped, column.name] }) }, "Leave out")]);
  return h("details", null, h("summary", null, `All ${look.columns.length} columns`),
    table("Columns", ["Column", "kind", "values", "missing", "levels", "leave out"], rows, [2, 3], 4),
    dropped.length > 0 && h("p", null, "Left out: ", dropped.map((name) => [
      h("button", { type: "button", "aria-label": `Put ${name} back`,
        onclick: () => change({ drop: dropped.filter((other) => other !== name) }) }, `${name} – put back`), " "])));
}
