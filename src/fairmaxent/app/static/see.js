// See: who gains and who loses, in people, and what it costs.

import { axis, curve, groupLine, roundTop } from "./charts.js";
import { h, refill, table } from "./dom.js";
import { KINDS, percent, rate, signed, span, times, whole, withMerging } from "./format.js";

const SHOWN = 40; // groups in a picture
const MOST_ROWS = 160; // groups in the table

export function drawSee(target, { answer, width }) {
  const { see } = answer;
  refill(target, headline(see), spent(answer.spent),
    see.warnings.length > 0 && h("div", { class: "warnings" }, h("h3", null, "High costs"), listed(see.warnings)),
    rates(see), h("p", { class: "soft" }, "“After” is exact for the fit. Rows cannot be split, so the rates of a file of new rows differ a little; the report gives them."),
    see.means.length > 0 && table("Mean of the outcome", ["Group", "before", "after"],
      see.means.map((one) => [one.group, times(one.before), times(one.after)]), [1, 2]),
    people(see), pictures(see, width), costs(see), see.estimate && estimate(see),
    see.notes.length > 0 && h("details", null, h("summary", null, `What else to know (${see.notes.length})`), listed(see.notes)));
}

const listed = (texts) => h("ul", null, withMerging(texts).map((text) => h("li", null, text)));
// A row of a table that stands out.
const marked = (className, row) => Object.assign(row, { className });

const named = (group) => `${group.column} = ${group.group}`;
// How much a rate changes, in the digits that are shown.
const rise = ({ rate_before: before, rate_after: after }) =>
  (before === null || after === null ? 0 : (Math.round(1000 * after) - Math.round(1000 * before)) / 1000);

// If not, its people with the outcome can become fewer although they get it more often.
const keepsSize = (group) => Math.round(group.people_before) === Math.round(group.people_after);

// Those that change most, in their order, if there are too many.
function mostChanged(groups, most) {
  if (groups.length <= most) return groups;
  const size = (group) => Math.abs(rise(group)) + Math.abs(group.share_after - group.share_before);
  const kept = new Set([...groups].sort((a, b) => size(b) - size(a)).slice(0, most));
  return groups.filter((group) => kept.has(group));
}

function headline(see) {
  const sorted = [...see.groups].sort((a, b) => rise(b) - rise(a));
  const best = sorted[0], worst = sorted.at(-1);
  const people = (group) => (keepsSize(group) ? `${whole(group.with_after)} people instead of ${whole(group.with_before)}`
    : `of ${whole(group.people_after)} people instead of ${whole(group.people_before)}`);
  const said = (group, what) => `${named(group)} ${what} most: ${percent(group.rate_after)} instead of ` +
    `${percent(group.rate_before)} get “${group.outcome}” (${people(group)}). `;
  const words = [best && rise(best) > 0 && said(best, "gains"), worst && rise(worst) < 0 && said(worst, "loses")].filter(Boolean);
  return h("p", { class: "lede" }, words.length ? words : "With this wish, no group gets the outcome more or less often than before.");
}

const spent = (said) => said && h("p", { class: "notes" }, said);

function rates(see) {
  return table("Rates", ["", "asked for", "before", "after"], see.rates.map((one) =>
    marked(one.wanted !== null && one.after < one.wanted - 0.0005 ? "short" : null, [`${KINDS[one.kind]}: ${one.name}`,
      one.wanted === null ? "not asked" : rate(one.wanted), rate(one.before), rate(one.after)])), [1, 2, 3]);
}

function people(see) {
  const shown = mostChanged(see.groups, MOST_ROWS);
  const outcomes = [...new Set(see.groups.map((group) => group.outcome))];
  const both = (before, after) => (before === after ? before : `${before} →\u00a0${after}`);
  const rows = shown.map((group) => {
    const change = Math.round(group.with_after) - Math.round(group.with_before); // that of the numbers beside it
    const isUp = rise(group) > 0, isDown = rise(group) < 0;
    return marked(isUp ? "up" : isDown ? "down" : null, [named(group) + (outcomes.length > 1 ? `: ${group.outcome}` : ""),
      both(whole(group.people_before), whole(group.people_after)),
      both(whole(group.with_before), whole(group.with_after)) + (change && keepsSize(group) ? ` (${signed(change)})` : ""),
      (isUp ? "▲\u00a0" : isDown ? "▼\u00a0" : "") + both(percent(group.rate_before), percent(group.rate_after))]);
  });
  const areMissing = see.groups.some((group) => Math.abs(group.people_before * (group.rate_before ?? 0) - group.with_before) > 0.5);
  const outcome = outcomes.length === 1 ? `“${outcomes[0]}”` : "their outcome";
  return [table(`Who gains and who loses, in a table of ${whole(see.rows)} people`,
    ["Group", "people", `with ${outcome}`, "rate"], rows, [1, 2, 3]),
  shown.length < see.groups.length && h("p", { class: "soft" }, `${whole(see.groups.length - shown.length)} groups that change less are not shown.`),
  areMissing && h("p", { class: "soft" }, "A rate is about the people of a group whose outcome is known."),
  see.changed.length > 0 && h("div", null, h("h3", null, "Outcomes changed"), listed(see.changed))];
}

function pictures(see, width) {
  const columns = [...new Set(see.groups.map((group) => group.column))];
  const most = roundTop(see.groups.flatMap((group) => [group.rate_before, group.rate_after, group.rate_before_high])); // one scale for all
  const size = ({ people_before: before, people_after: after }) =>
    `${whole(before)}${whole(before) === whole(after) ? "" : ` → ${whole(after)}`} people`;
  const more = (all, shown) => shown.length < all.length && h("p", { class: "soft" }, `${whole(all.length - shown.length)} more groups ` +
    `change less. ${see.groups.length > MOST_ROWS ? "They are not shown." : "They are in the table above."}`);
  return columns.map((column) => {
    const inside = see.groups.filter((group) => group.column === column);
    const outcomes = [...new Set(inside.map((group) => group.outcome))].slice(0, 4);
    const first = inside.filter((group) => group.outcome === outcomes[0]);
    const sizes = mostChanged(first, SHOWN);
    const top = roundTop(first.flatMap((one) => [one.share_before, one.share_after]));
    return [
      outcomes.map((outcome) => {
        const all = inside.filter((group) => group.outcome === outcome), rows = mostChanged(all, SHOWN);
        return h("div", { class: "picture" }, h("h3", null, `How often each group of ${column} gets “${outcome}”`),
          rows.map((group) => groupLine({ name: `${group.group} (${size(group)})`, before: group.rate_before, after: group.rate_after,
            low: group.rate_before_low, high: group.rate_before_high, most, width })), axis(most, width), more(all, rows));
      }),
      first.every((group) => Math.abs(group.share_after - group.share_before) < 0.0005)
        ? h("p", { class: "soft" }, `The groups of ${column} keep their sizes.`)
        : h("div", { class: "picture" }, h("h3", null, `How large each group of ${column} is`),
        sizes.map((group) => groupLine({ name: group.group, before: group.share_before, after: group.share_after, most: top, width })),
        axis(top, width), more(first, sizes)),
    ];
  }).flat(2).concat(h("p", { class: "soft key" }, "Open circle: before, with its 95 % interval. Full circle: after."));
}

function costs(see) {
  const tiles = [
    [`${whole(see.effective_rows)} of ${whole(see.rows)}`, "effective rows: the information that the fair weights leave"],
    [times(see.heaviest), "largest weight of one row"],
    ...(see.most_copies >= 1.5 ? [[times(see.most_copies), "copies, on average, of the row that is copied most"]] : []),
    [percent(see.copied_share), `of new rows are copies of ${see.copied_rows}`],
    ...(see.changed_people >= 0.5 ? [[`${whole(see.changed_people)} (${percent(see.changed_people / see.rows)})`, "people get another outcome than they have in your data"]] : []),
  ];
  const rows = see.costs.map(([isBeyond, name, rows, ...more]) => marked(isBeyond ? "short" : null, [name, whole(rows), ...more.map(times)]));
  return [h("h3", null, "What it costs"),
    h("dl", { class: "tiles" }, tiles.map(([value, what]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
    rows.length > 0 && h("details", null, h("summary", null, "Costs of each group"),
      table("Costs of each group", ["Group", "rows", "effective rows", "largest weight", "expected copies"], rows, [1, 2, 3, 4]))];
}

function estimate({ estimate: known, about_models: remarks }) {
  const accuracy = known.lines.find((line) => line.name === "Accuracy");
  const isPoor = accuracy !== undefined && accuracy.after !== null && accuracy.after < known.same_for_all;
  const range = (ends) => (ends ? span(...ends) : "–");
  return [h("h3", null, `What a model will do (${known.student}, trained on the ${known.output})`),
    table("Expected of a model", ["", "before", "after", `on ${whole(known.people)} other people (95 %)`],
      known.lines.map((line) => [h("span", null, line.name, h("br"), h("span", { class: "soft" }, line.meaning)),
        rate(line.before), rate(line.after), range(line.range)]), [1, 2, 3]),
    isPoor && h("p", { class: "warnings" }, `The same answer for everybody would be right for ${percent(known.same_for_all)} of people, ` +
      "so this model has learned little that helps."),
    remarks.length > 0 && h("ul", { class: "warnings" }, remarks.map((text) => h("li", null, text)))];
}

export function drawTradeOff(target, { points: all, names, skipped }, width) {
  if (skipped) return target.replaceChildren(h("p", null, `There is no trade-off curve: ${skipped}.`));
  refill(target, Object.entries(names).map(([varied, name]) => {
    const points = all.filter((point) => point.varied === varied && point.effective_rows !== null)
      .map((point) => ({ x: point.value, y: point.effective_rows, here: point.is_this_fit, text: `${whole(point.effective_rows)} effective rows` }));
    return points.length > 1 && h("div", null, curve({ title: `Effective rows, by ${name}`, across: name, up: whole, points, width }),
      h("p", null, conclusion(points)));
  }));
}

function conclusion(points) {
  const best = points.reduce((one, other) => (other.y > one.y ? other : one));
  const here = points.find((point) => point.here);
  const least = Math.min(...points.map((point) => point.y));
  if (least > 0.95 * best.y) return "The line is almost flat: another value would hardly change how much information is left.";
  if (!here || here.y > 0.95 * best.y) return "The present value leaves nearly as much information as any other.";
  return `A value of ${best.x} would leave ${whole(best.y)} effective rows instead of ${whole(here.y)}.`;
}
