// @ts-check
// In numbers: every group before and after, what it costs whom, what a model will do, and pins.

import { button, folded, h, listed, marked, section, soft, table } from "./dom.js";
import { KINDS, percent, rate, signed, span, times, whole, withMerging } from "./format.js";
import { counted, groupings, ratesOf, rise } from "./people.js";
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
  const means = see.means.map((one) => [one.group, times(one.before), times(one.after)]);
  return [
    spent && h("p", { class: "notes" }, spent),
    see.warnings.length > 0 && h("div", { class: "warnings" },
      h("h3", null, "High costs"), listed(withMerging(see.warnings))),
    rates(see),
    soft("“After” is exact for the fit. Rows cannot be split, so the rates of a file of new " +
      "rows differ a little; the report gives them."),
    means.length > 0 && table("Mean of the outcome", ["Group", "before", "after"], means, [1, 2]),
    people(see), costs(see), see.estimate && estimate(see),
    see.set_apart.length > 0 && listed(see.set_apart),
    !see.estimate && see.about_models.length > 0 && listed(see.about_models),
    see.notes.length > 0 && folded(`What else to know (${see.notes.length})`, false,
      listed(withMerging(see.notes))),
  ];
}

function rates(see) {
  const row = (one) => {
    const isShort = one.wanted !== null && one.after < one.wanted - 0.0005;
    return marked(isShort ? "short" : null, [`${KINDS[one.kind]}: ${one.name}`,
      one.wanted === null ? "not asked" : rate(one.wanted), rate(one.before), rate(one.after)]);
  };
  return table("Rates", ["1 means equal", "asked for", "before", "after"], ratesOf(see).map(row),
    [1, 2, 3]);
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
    see.changed.length > 0 && h("div", null, h("h3", null, "Outcomes changed"),
      listed(see.changed)),
  ];
}

const WAITING = "is known when all rows are fitted: make the files, or an estimate";

function costs(see) {
  const copies = see.copied_share === null
    ? ["…", `how many new rows are copies of ${see.copied_rows} ${WAITING}`]
    : [percent(see.copied_share), `of new rows are copies of ${see.copied_rows}`];
  const tiles = [
    [`${whole(see.effective_rows)} of ${whole(see.rows)}`,
      "effective rows: the information that the fair weights leave"],
    [times(see.heaviest), "largest weight of one row"],
    ...(see.most_copies >= 1.5
      ? [[times(see.most_copies), "copies, on average, of the row that is copied most"]] : []),
    copies,
    ...(see.changed_people >= 0.5
      ? [[`${whole(see.changed_people)} (${percent(see.changed_people / see.rows)})`,
        "people get another outcome than they have in your data"]] : []),
  ];
  // the last is not known before all rows are fitted
  const heads = ["Group", "rows", "effective rows", "largest weight", "expected copies"]
    .slice(0, see.copied_share === null ? 4 : 5);
  const row = ([isBeyond, ...cells]) => {
    const [name, count, ...more] = cells.slice(0, heads.length);
    return marked(isBeyond ? "short" : null, [name, whole(count), ...more.map(times)]);
  };
  return [h("h3", null, "What it costs"),
    h("dl", { class: "tiles" }, tiles.map(([value, what]) =>
      h("div", null, h("dt", null, what), h("dd", null, value)))),
    see.costs.length > 0 && folded("Costs of each group", false,
      table("Costs of each group", heads, see.costs.map(row), [1, 2, 3, 4]))];
}

function estimate({ estimate: known, about_models: remarks }) {
  const [, accuracy] = known.lines.find(([label]) => label === "Accuracy")?.[3] ?? [];
  const isPoor = (accuracy ?? 1) < known.same_for_all;
  const range = (ends) => (ends ? span(...ends) : "–");
  const row = ([label, , meaning, [before, after], [, ends]]) => [
    h("span", null, label, h("br"), h("span", { class: "soft" }, meaning)),
    rate(before), rate(after), range(ends)];
  const heads = ["Measure", "before", "after", `on ${whole(known.people)} other people (95 %)`];
  return [
    h("h3", null, `What a model will do (${known.student}, trained on the ${known.output})`),
    table("Expected of a model", heads, known.lines.map(row), [1, 2, 3]),
    isPoor && h("p", { class: "warnings" },
      `The same answer for everybody would be right for ${percent(known.same_for_all)} of ` +
      "people, so this model has learned little that helps."),
    remarks.length > 0 && h("ul", { class: "warnings" },
      remarks.map((text) => h("li", null, text)))];
}
