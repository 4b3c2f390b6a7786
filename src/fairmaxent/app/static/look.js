// Look: what is in the table, who is compared, and how unequal the groups are.

import { axis, groupLine, roundTop } from "./charts.js";
import { drawColumns } from "./columns.js";
import { h, has, newId, refill, table } from "./dom.js";
import { checks } from "./form.js";
import { percent, rate, span, whole, withMerging } from "./format.js";
import { drawReading } from "./reading.js";

const SHOWN = 40;

export function drawLook(section, { state, options, change, again, readAgain, width }) {
  const { look } = state;
  const parts = [h("h2", { id: "look-title" }, "Look"),
    h("p", null, `${state.table.name}: ${whole(look.rows)} rows, ${look.columns.length} columns.`,
      state.table.offered && [" ", h("a", { href: `/files/0/${encodeURIComponent(state.table.name)}`, download: "" },
        "Download this table"), "."])];
  parts.push(roles(look, options, change), reasons(look, options), groups(look, width), notes(look),
    drawColumns(state, options, change, again), drawReading(state.forms, state.table, readAgain));
  refill(section, parts);
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
      (favourable) => change({ favourable }), { ifNone: "None is chosen: every outcome is compared." }),
    protectedColumns(usable, options, change));
}

function protectedColumns(usable, options, change) {
  const possible = usable.filter((column) => column.name !== options.outcome && !column.identifier &&
    column.name !== options.weight && !has(options.within, column.name) && !has(options.also, column.name));
  return checks("Groups to compare", possible.map((column) => column.name), options.protected,
    (chosen) => change({ protected: chosen }), { ifNone: "Choose at least one column." });
}

// Guesses that hold; those that were not followed are possibilities.
function reasons(look, options) {
  const words = { outcome: "outcome", favourable: "good outcome", protected: "group" };
  const isFollowed = (one) => [options[one.role]].flat().includes(one.value);
  const why = (one) => `${one.value} as ${words[one.role]} (${one.reason.replace(/its name \('[^']*'\)/, "because of its name")})`;
  const shown = look.reasons.filter(isFollowed);
  const candidates = look.reasons.filter((one) => !isFollowed(one));
  const more = withMerging(look.reasons.map((one) => one.reason)).slice(look.reasons.length);
  const listed = (ones, text) => ones.map((one, index) => [index ? "; " : "", text(one)]);
  return [
    shown.length > 0 && h("p", { class: "soft" }, "Guessed, so please check: ",
      listed(shown, why), "."),
    candidates.length > 0 && h("p", { class: "soft" }, "Perhaps: ",
      listed(candidates, why), ". ", more),
  ];
}

function groups(look, width) {
  const most = roundTop(look.groupings.flatMap((grouping) => grouping.groups.map((group) => group.interval?.[1] ?? group.rate))); // one scale for all
  return look.groupings.map((grouping) => {
    const outcomes = [...new Set(grouping.groups.map((group) => group.outcome))].slice(0, 4);
    return outcomes.map((outcome) => {
      const rows = grouping.groups.filter((group) => group.outcome === outcome);
      return h("div", { class: "picture" },
        h("h3", null, `How often each group of ${grouping.name} gets “${outcome}”`),
        h("p", { class: "soft" }, `Statistical rate ${rate(grouping.statistical_rate)} (lowest over highest), ` +
          `representation rate ${rate(grouping.representation_rate)} (smallest over largest group). Bars: 95 % intervals.`),
        rows.slice(0, SHOWN).map((group) => groupLine({
          name: `${group.group} (${whole(group.rows)} rows, ${percent(group.share)})`,
          before: group.rate, low: group.interval?.[0], high: group.interval?.[1], most, width })),
        axis(most, width),
        rows.length > SHOWN && h("p", { class: "soft" }, `${rows.length - SHOWN} more groups are only in the table below.`),
        numbers(grouping.name, outcome, rows));
    });
  });
}

// The same in numbers, with what is missing; open if anything is.
function numbers(name, outcome, rows) {
  const caption = `Groups of ${name}`;
  const range = (group) => (group.interval ? ` (${span(...group.interval, percent)})` : "");
  const most = (gaps) => (gaps?.most_in ? ` (most in ${gaps.most_in}: ${percent(gaps.most)})` : "");
  return h("details", { open: rows.some((group) => group.missing?.share > 0) }, h("summary", null, `${caption} in numbers: ${outcome}`),
    table(caption, ["Group", "rows (share)", `“${outcome}” (95 % interval)`, "missing values"],
      rows.map((group) => [group.group, `${whole(group.rows)} (${percent(group.share)})`, percent(group.rate) + range(group),
        percent(group.missing?.share ?? null) + most(group.missing)]), [1, 2, 3]));
}

function notes(look) {
  return [look.notes.length > 0 && h("div", { class: "notes" }, h("h3", null, "What to watch out for"),
    h("ul", null, withMerging(look.notes).map((note) => h("li", null, note)))),
  look.proxies.length > 0 && h("details", null, h("summary", null, "Columns that predict a group"),
    table("Columns that predict a group", ["Column", "predicts", "how well"],
      look.proxies.map((proxy) => [proxy.column, proxy.protected, percent(proxy.strength)]), [2]))];
}
