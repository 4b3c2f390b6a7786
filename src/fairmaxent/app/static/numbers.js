// @ts-check
// In numbers: every group before and after, what it costs whom, what a model will do, and pins.

import { ofWeight, reached, saidOf, tablesOf } from "./answer.js";
import { button, folded, h, listed, marked, section, soft, table } from "./dom.js";
import { percent, rate, signed, span, weightOf, whole, withMerging } from "./format.js";
import { counted, groupings, rise } from "./people.js";
import { pinsTable } from "./pins.js";
import { isMissing, isOld, slow, store } from "./store.js";
import { working } from "./take.js";

const MOST_ROWS = 160; // groups in the table

export function detailPart() {
  const { answer } = store;
  return answer && section("detail", "In numbers", pinsTable(),
    h("div", { class: isOld() ? "outdated" : null }, inNumbers(answer)),
    h("p", { class: "choices" }, button("Estimate what a model will do", () => slow("estimate"),
      { id: "estimate", disabled: isMissing() })),
    h("div", { id: "slow" }, working("estimate")));
}

function inNumbers({ see, spent }) {
  const facts = ofWeight(see, "fact"), known = saidOf(facts);
  return [
    spent && h("p", { class: "notes" }, spent),
    tablesOf(reached(see)), listed(saidOf(reached(see))),
    soft("These are rates of the fitted distribution. Rows cannot be split, so those of a file " +
      "of new rows can differ, the fewer its rows the more; the report gives them."),
    people(see), costs(see), see.estimate && estimate(see.estimate),
    known.length > 0 && folded(`What else to know (${known.length})`, false,
      listed(withMerging(known)), tablesOf(facts)),
  ];
}

// Every group and outcome in whole people who add up, those that change most if there are too many.
function changes(see) {
  const all = groupings(see).flatMap(({ all: groups }) => {
    const outcomes = [...new Set(groups.map((group) => group.outcome))];
    return outcomes.flatMap((outcome) => {
      const own = groups.filter((group) => group.outcome === outcome);
      const sizes = counted(own, "people");
      return counted(own).map((one, index) => ({ ...one, size: sizes[index] }));
    });
  });
  const size = ({ group }) => Math.abs(rise(group)) +
    1000 * Math.abs(group.share_after - group.share_before);
  const kept = [...all].sort((a, b) => size(b) - size(a)).slice(0, MOST_ROWS);
  return { all, shown: all.filter((one) => kept.includes(one)) };
}

function people(see) {
  const { all, shown } = changes(see);
  const isGood = store.options.favourable?.length > 0; // or nobody gains
  const outcomes = [...new Set(all.map(({ group }) => group.outcome))];
  const both = (before, after) => (before === after ? before : `${before} →\u00a0${after}`);
  const row = ({ group, before, after, change, size }) => {
    const up = rise(group), more = outcomes.length > 1 ? `: ${group.outcome}` : "";
    const changed = change && size.change === 0 ? ` (${signed(change)})` : "";
    return marked(!isGood || up === 0 ? null : up > 0 ? "up" : "down", [
      `${group.column} = ${group.group}${more}`,
      both(whole(size.before), whole(size.after)),
      both(whole(before), whole(after)) + changed,
      (up > 0 ? "▲\u00a0" : up < 0 ? "▼\u00a0" : "") +
        both(percent(group.rate_before), percent(group.rate_after))]);
  };
  const areMissing = see.groups.some((group) =>
    Math.abs(group.people_before * (group.rate_before ?? 0) - group.with_before) > 0.5);
  const outcome = outcomes.length === 1 ? `“${outcomes[0]}”` : "their outcome";
  const title = isGood ? "Who gains and who loses" : "What changes for whom";
  const left = all.length - shown.length;
  const groups = table(`${title}, in a table of ${whole(see.rows)} people`,
    ["Group", "people", `with ${outcome}`, "rate"], shown.map(row), [1, 2, 3]);
  return [
    see.means.length > 0 ? folded("Every range of the outcome", false, groups) : groups,
    left > 0 && soft(`${whole(left)} groups that change less are not shown.`),
    areMissing && soft("A rate is about the people of a group whose outcome is known."),
  ];
}

function costs(see) {
  const entries = ofWeight(see, "cost"), tables = tablesOf(entries);
  const tiles = [
    [`${whole(see.effective_rows)} of ${whole(see.rows)}`,
      "effective rows: the information that the fair weights leave"],
    [weightOf(see.heaviest), "largest weight of one row"],
    ...(see.changed_people >= 0.5
      ? [[`${whole(see.changed_people)} (${percent(see.changed_people / see.rows)})`,
        "people get another outcome than they have in your data"]] : []),
  ];
  return [h("h3", null, "What it costs"),
    h("dl", { class: "tiles" }, tiles.map(([value, what]) =>
      h("div", null, h("dt", null, what), h("dd", null, value)))),
    listed(saidOf(entries)),
    !see.is_whole && soft("How many new rows are copies of rows of yours is known when all rows " +
      "are fitted: make the files, or an estimate."),
    tables.length > 0 && folded("Costs of each group", false, tables)];
}

function estimate(known) {
  const range = (ends) => (ends ? span(...ends) : "–");
  const row = ([label, , meaning, [before, after], [, ends]]) => [
    h("span", null, label, h("br"), h("span", { class: "soft" }, meaning)),
    rate(before), rate(after), range(ends)];
  const heads = ["Measure", "before", "after", `on ${whole(known.people)} other people (95 %)`];
  return [
    h("h3", null, `What a model will do (${known.student}, trained on the ${known.output})`),
    table("Expected of a model", heads, known.lines.map(row), [1, 2, 3]),
    known.said && h("p", { class: "warnings" }, known.said)];
}
