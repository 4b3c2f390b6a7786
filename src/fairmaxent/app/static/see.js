// @ts-check
// See: first one sentence in people and a picture, which move with the sliders; then everything in numbers.

import { dotsOf } from "./charts.js";
import { button, folded, h, section, soft, table } from "./dom.js";
import { KINDS, gained, keepsSize, outcomeName, percent, rate, rise, sentence, signed, span, times, whole,
  withMerging } from "./format.js";
import { pinsTable } from "./pins.js";
import { NOT_READY, isMissing, isOld, isReady, slow, store } from "./store.js";
import { working } from "./take.js";

const MOST_ROWS = 160; // groups in the table
const MOST_DOTS = 8; // groups whose people are drawn as dots
const MOST_APART = 6; // groups that are too small to be part of the headline

export function seePart() {
  const { answer } = store;
  return section("see", "See", true, warnings(), h("div", { id: "answer", class: isOld() ? "outdated" : null },
      answer ? [headline(answer.see), dots(answer.see)]
        : h("p", { class: "lede" }, isReady() ? "Fitting…" : NOT_READY)));
}

function warnings() {
  const { answer, outdated, refitting } = store;
  const text = refitting ? "Fitting again: until that is done, what you see here is the earlier result."
    : `Out of date: what you see here is an earlier result. There is none for what you asked for last. ${outdated}`;
  return h("p", { id: "outdated", class: "warnings", hidden: !isOld() || !answer }, text);
}

const byColumn = (see) => [...new Set(see.groups.map((group) => group.column))].map((column) =>
  see.groups.filter((group) => group.column === column));

const firstOf = (texts) => [...texts.slice(0, MOST_APART),
  ...(texts.length > MOST_APART ? [`and ${texts.length - MOST_APART} more groups that are too small to compare`] : [])];

// What happens to people, in a sentence for each column that is compared, the first of them large.
function headline(see) {
  const large = { groups: see.groups.filter((group) => !group.is_apart) }, all = byColumn(large);
  return h("div", { role: "status", id: "headline" }, see.means.length > 0
    ? h("p", { class: "lede" }, "The means of all groups are equal.")
    : all.map((groups, index) => h("p", { class: index === 0 ? "lede" : "soft" },
      all.length > 1 && `By ${groups[0].column}: `, sentence(groups))),
  see.set_apart.length > 0 && h("ul", { class: "soft", id: "set-apart" },
    firstOf(see.set_apart).map((text) => h("li", null, text))));
}

// The people of the first column as dots, if they are few groups and one outcome; otherwise curve and table say it.
function dots(see) {
  const groups = byColumn(see)[0] ?? [];
  const outcomes = new Set(groups.map((group) => group.outcome));
  if (!groups.length || groups.length > MOST_DOTS || outcomes.size > 1 || see.means.length) return null;
  return [h("div", { class: "crowd" }, groups.map(dotsOf)),
    h("p", { class: "soft key" }, h("span", { class: "swatch have" }, `has ${outcomeName(groups[0])}`),
      h("span", { class: "swatch get" }, "gets it"), h("span", { class: "swatch miss" }, "no longer has it"))];
}

// ---------------------------------------------------------------- in numbers

export function detailPart() {
  const { answer } = store;
  return answer && section("detail", "In numbers", false, pinsTable(),
    h("div", { class: isOld() ? "outdated" : null }, inNumbers(answer)),
    h("p", { class: "buttons" }, button("Estimate what a model will do", () => slow("estimate"),
      { id: "estimate", disabled: isMissing() })),
    h("div", { id: "slow" }, working("estimate")));
}

function inNumbers({ see, spent }) {
  return [spent && h("p", { class: "notes" }, spent),
    see.warnings.length > 0 && h("div", { class: "warnings" }, h("h3", null, "High costs"), listed(see.warnings)),
    rates(see), soft("“After” is exact for the fit. Rows cannot be split, so the rates of a file of new " +
      "rows differ a little; the report gives them."),
    see.means.length > 0 && table("Mean of the outcome", ["Group", "before", "after"],
      see.means.map((one) => [one.group, times(one.before), times(one.after)]), [1, 2]),
    people(see), costs(see), see.estimate && estimate(see),
    see.notes.length > 0 && folded(`What else to know (${see.notes.length})`, false, listed(see.notes))];
}

const listed = (texts) => h("ul", null, withMerging(texts).map((text) => h("li", null, text)));
// A row of a table that stands out.
const marked = (className, row) => Object.assign(row, { className });
const named = (group) => `${group.column} = ${group.group}`;

// Those that change most, in their order, if there are too many.
function mostChanged(groups, most) {
  const size = (group) => Math.abs(rise(group)) + Math.abs(group.share_after - group.share_before);
  const kept = new Set([...groups].sort((a, b) => size(b) - size(a)).slice(0, most));
  return groups.filter((group) => kept.has(group));
}

function rates(see) {
  return table("Rates", ["", "asked for", "before", "after"], see.rates.map((one) =>
    marked(one.wanted !== null && one.after < one.wanted - 0.0005 ? "short" : null, [`${KINDS[one.kind]}: ${one.name}`,
      one.wanted === null ? "not asked" : rate(one.wanted), rate(one.before), rate(one.after)])), [1, 2, 3]);
}

function people(see) {
  const shown = mostChanged(see.groups, MOST_ROWS), isGood = store.options.favourable?.length > 0; // or nobody gains
  const outcomes = [...new Set(see.groups.map((group) => group.outcome))];
  const both = (before, after) => (before === after ? before : `${before} →\u00a0${after}`);
  const rows = shown.map((group) => {
    const change = gained(group), isUp = rise(group) > 0, isDown = rise(group) < 0;
    return marked(isGood && isUp ? "up" : isGood && isDown ? "down" : null,
      [named(group) + (outcomes.length > 1 ? `: ${group.outcome}` : ""),
      both(whole(group.people_before), whole(group.people_after)),
      both(whole(group.with_before), whole(group.with_after)) +
        (change && keepsSize(group) ? ` (${signed(change)})` : ""),
      (isUp ? "▲\u00a0" : isDown ? "▼\u00a0" : "") + both(percent(group.rate_before), percent(group.rate_after))]);
  });
  const areMissing = see.groups.some((group) =>
    Math.abs(group.people_before * (group.rate_before ?? 0) - group.with_before) > 0.5);
  const outcome = outcomes.length === 1 ? `“${outcomes[0]}”` : "their outcome";
  const title = isGood ? "Who gains and who loses" : "What changes for whom";
  return [table(`${title}, in a table of ${whole(see.rows)} people`, ["Group", "people", `with ${outcome}`, "rate"],
    rows, [1, 2, 3]),
    shown.length < see.groups.length &&
      soft(`${whole(see.groups.length - shown.length)} groups that change less are not shown.`),
    areMissing && soft("A rate is about the people of a group whose outcome is known."),
    see.changed.length > 0 && h("div", null, h("h3", null, "Outcomes changed"), listed(see.changed))];
}

const WAITING = "is known when all rows are fitted: make the files, or an estimate";

function costs(see) {
  const tiles = [
    [`${whole(see.effective_rows)} of ${whole(see.rows)}`,
      "effective rows: the information that the fair weights leave"],
    [times(see.heaviest), "largest weight of one row"],
    ...(see.most_copies >= 1.5 ? [[times(see.most_copies), "copies, on average, of the row that is copied most"]] : []),
    see.copied_share === null ? ["…", `how many new rows are copies of ${see.copied_rows} ${WAITING}`]
      : [percent(see.copied_share), `of new rows are copies of ${see.copied_rows}`],
    ...(see.changed_people >= 0.5 ? [[`${whole(see.changed_people)} (${percent(see.changed_people / see.rows)})`,
      "people get another outcome than they have in your data"]] : []),
  ];
  const rows = see.costs.map(([isBeyond, name, count, ...more]) =>
    marked(isBeyond ? "short" : null, [name, whole(count), ...more.map(times)]));
  return [h("h3", null, "What it costs"),
    h("dl", { class: "tiles" },
      tiles.map(([value, what]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
    rows.length > 0 && folded("Costs of each group", false,
      table("Costs of each group", ["Group", "rows", "effective rows", "largest weight", "expected copies"], rows,
        [1, 2, 3, 4]))];
}

function estimate({ estimate: known, about_models: remarks }) {
  const [, accuracy] = known.lines.find(([label]) => label === "Accuracy")?.[3] ?? [];
  const isPoor = (accuracy ?? 1) < known.same_for_all;
  const range = (ends) => (ends ? span(...ends) : "–");
  return [h("h3", null, `What a model will do (${known.student}, trained on the ${known.output})`),
    table("Expected of a model", ["", "before", "after", `on ${whole(known.people)} other people (95 %)`],
      known.lines.map(([label, , meaning, [before, after], [, ends]]) => [
        h("span", null, label, h("br"), h("span", { class: "soft" }, meaning)),
        rate(before), rate(after), range(ends)]), [1, 2, 3]),
    isPoor && h("p", { class: "warnings" },
      `The same answer for everybody would be right for ${percent(known.same_for_all)} of people, ` +
      "so this model has learned little that helps."),
    remarks.length > 0 && h("ul", { class: "warnings" }, remarks.map((text) => h("li", null, text)))];
}
