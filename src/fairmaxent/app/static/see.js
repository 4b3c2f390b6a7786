// See: who gains and who loses, in people, and what it costs.

import { curve, groupLine } from "./charts.js";
import { h, refill, table } from "./dom.js";
import { percent, rate, signed, times, whole } from "./format.js";

const SHOWN = 40;
const KINDS = { representation_rate: "Equal group sizes", statistical_rate: "Equal outcomes" };

export function drawSee(target, { answer, width }) {
  const { see } = answer;
  refill(target,
    headline(see), spent(answer), warnings(see), rates(see), means(see), people(see), ...pictures(see, width), costs(see), estimate(see), notes(see));
}

const named = (group) => `${group.column} = ${group.group}`;

function headline(see) {
  const gains = see.groups.filter((group) => group.with_after - group.with_before >= 0.5);
  const most = gains.sort((a, b) => (b.with_after - b.with_before) - (a.with_after - a.with_before))[0];
  if (!most) return h("p", { class: "lede" }, "With this wish, no group gets the outcome more often.");
  return h("p", { class: "lede" }, `${named(most)} gains most: ${whole(most.with_after)} people instead of ` +
    `${whole(most.with_before)} would have “${most.outcome}”, in a table of ${whole(see.rows)} people.`);
}

// What private looks at the table have spent together.
function spent(answer) {
  return answer.spent.length > 0 && h("p", { class: "notes" }, `This page has looked at the table privately ` +
    `${answer.spent.length === 1 ? "once" : `${answer.spent.length} times`} (${answer.spent.join("; ")}). ` +
    "Whatever you share of it adds up.");
}

function means(see) {
  return see.means.length > 0 && table("Mean of the outcome", ["Group", "before", "after"],
    see.means.map((one) => [one.group, times(one.before), times(one.after)]), [1, 2]);
}

function warnings(see) {
  return see.warnings.length > 0 && h("div", { class: "warnings" }, h("h3", null, "Costs beyond the line"),
    h("ul", null, see.warnings.map((text) => h("li", null, text))));
}

function rates(see) {
  return table("Rates", ["", "asked for", "before", "after"], see.rates.map((one) => {
    const row = [`${KINDS[one.kind]}: ${one.name}`, one.wanted === null ? "anything" : rate(one.wanted),
      rate(one.before), rate(one.after)];
    row.className = one.wanted !== null && one.after < one.wanted - 0.0005 ? "short" : null;
    return row;
  }), [1, 2, 3]);
}

function people(see) {
  const rows = see.groups.slice(0, 4 * SHOWN).map((group) => {
    const change = group.with_after - group.with_before;
    const row = [`${named(group)}: ${group.outcome}`, whole(group.people_before), whole(group.people_after),
      whole(group.with_before), whole(group.with_after), signed(change)];
    row.className = change >= 0.5 ? "up" : change <= -0.5 ? "down" : null;
    return row;
  });
  return [table(`Who gains and who loses, in a table of ${whole(see.rows)} people`,
    ["Group: outcome", "people before", "people after", "with it before", "with it after", "change"], rows, [1, 2, 3, 4, 5]),
  see.changed.length > 0 && h("div", null, h("h3", null, "Outcomes changed"),
    h("ul", null, see.changed.map((text) => h("li", null, text))))];
}

function pictures(see, width) {
  const columns = [...new Set(see.groups.map((group) => group.column))];
  return columns.map((column) => {
    const inside = see.groups.filter((group) => group.column === column);
    const outcomes = [...new Set(inside.map((group) => group.outcome))].slice(0, 4);
    const first = inside.filter((group) => group.outcome === outcomes[0]).slice(0, SHOWN);
    return [
      outcomes.map((outcome) => {
        const rows = inside.filter((group) => group.outcome === outcome).slice(0, SHOWN);
        const most = Math.max(...rows.flatMap((group) => [group.rate_before, group.rate_after, group.rate_before_high]), 1e-9);
        return h("div", { class: "picture" }, h("h3", null, `How often each group of ${column} gets “${outcome}”`),
          rows.map((group) => groupLine({ name: group.group, before: group.rate_before, after: group.rate_after,
            low: group.rate_before_low, high: group.rate_before_high, most, width })));
      }),
      first.every((group) => Math.abs(group.share_after - group.share_before) < 0.0005)
        ? h("p", { class: "soft" }, `The groups of ${column} keep their sizes.`)
        : h("div", { class: "picture" }, h("h3", null, `How large each group of ${column} is`),
        first.map((group) => groupLine({ name: group.group, before: group.share_before, after: group.share_after,
          most: Math.max(...first.flatMap((one) => [one.share_before, one.share_after]), 1e-9), width }))),
    ];
  }).flat(2).concat(h("p", { class: "soft key" }, "Open circle: before, with its 95 % interval. Full circle: after."));
}

function costs(see) {
  const tiles = [
    [`${whole(see.effective_rows)} of ${whole(see.rows)}`, "effective rows: the information that the fair weights leave"],
    [times(see.largest_weight), "largest weight of one row"],
    [times(see.most_copies), "most copies of one row among new rows"],
    [percent(see.copied_share), "of new rows are copies of real ones"],
  ];
  const rows = see.costs.map((one) => {
    const row = [one.name, whole(one.rows), times(one.effective_rows), times(one.largest_weight), times(one.most_copies)];
    row.className = one.beyond ? "short" : null;
    return row;
  });
  return [h("h3", null, "What it costs"),
    h("dl", { class: "tiles" }, tiles.map(([value, what]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
    rows.length > 0 && h("details", null, h("summary", null, "Costs of each group"),
      table("Costs of each group", ["Group", "rows", "effective rows", "largest weight", "most copies"], rows, [1, 2, 3, 4]))];
}

function estimate(see) {
  const known = see.estimate;
  if (!known) return null;
  const range = (span) => (span ? `${rate(span[0])} to ${rate(span[1])}` : "–");
  return [h("h3", null, `What a model will do (${known.student}, trained on the ${known.output})`),
    table("Expected of a model", ["", "before", "after", `on ${whole(known.people)} other people (95 %)`],
      known.lines.map((line) => [h("span", null, line.name, h("br"), h("span", { class: "soft" }, line.meaning)),
        rate(line.before), rate(line.after), range(line.range)]), [1, 2, 3])];
}

function notes(see) {
  return see.notes.length > 0 && h("details", null, h("summary", null, `What else to know (${see.notes.length})`),
    h("ul", null, see.notes.map((text) => h("li", null, text))));
}

export function drawTradeOff(target, result, width) {
  if (result.skipped) return target.replaceChildren(h("p", null, `There is no trade-off curve: ${result.skipped}.`));
  const titles = { base_share: "Other shares of new combinations", rates: "Other rates" };
  const across = { base_share: "share of new combinations", rates: "rate asked for" };
  target.replaceChildren(...Object.keys(titles).map((varied) => {
    const points = result.points.filter((point) => point.varied === varied && point.effective_rows !== null)
      .map((point) => ({ x: point.value, y: point.effective_rows, here: point.is_this_fit, text: `${whole(point.effective_rows)} effective rows` }));
    return points.length > 1 && curve({ title: `${titles[varied]}: effective rows`, across: across[varied], up: whole, points, width });
  }).filter(Boolean));
}

// Pinned scenarios beside the present one.
export function drawPins(target, pins, answer, { unpin }) {
  if (!pins.length) return target.replaceChildren();
  const all = [...pins, { number: 0, answer }];
  const head = (pin, index) => (pin.number ? h("span", null, `pin ${index + 1} `, h("button", { type: "button",
    "aria-label": `Remove pin ${index + 1}`, onclick: () => unpin(pin.number) }, "×")) : "now");
  const names = [...new Set(all.flatMap((pin) => pin.answer.see.rates.map((one) => `${KINDS[one.kind]}: ${one.name}`)))];
  const found = (pin, name) => pin.answer.see.rates.find((one) => `${KINDS[one.kind]}: ${one.name}` === name);
  const rows = [
    ...names.map((name) => [name, ...all.map((pin) => rate(found(pin, name)?.after))]),
    ["Effective rows", ...all.map((pin) => whole(pin.answer.see.effective_rows))],
    ["Largest weight", ...all.map((pin) => times(pin.answer.see.largest_weight))],
    ["How rows change", ...all.map((pin) => ({ none: "reweigh", probabilities: "relabel (probabilities)", predictions: "relabel (decisions)" })[pin.answer.scenario.relabel ?? "none"])],
    ["New combinations", ...all.map((pin) => percent(pin.answer.scenario.base_share ?? 0.2))],
  ];
  target.replaceChildren(table("Scenarios compared", ["", ...all.map(head)], rows, all.map((_, index) => index + 1)));
}
