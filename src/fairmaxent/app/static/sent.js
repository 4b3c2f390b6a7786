// @ts-check
// The page to send: every scenario with all its columns of groups, its price and what makes it
// again, and its curves, live without a server.

import { alongside, headline, ofWeight, peopleOf, rateTold, reached, saidOf, tablesOf, verdicts,
  warnings } from "./answer.js";
import { HANDLE, axis, costStrip, rateCurve, rateTicks } from "./charts.js";
import { Component, h, listed, soft, table } from "./dom.js";
import { KINDS, amounts, hundredths, percent, signed, weightOf, whole } from "./format.js";
import { costOf, counted, groupName, groupings, outcomeName, price, ratesOf } from "./people.js";
import { render } from "./preact.js";

const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
const roomFor = () => Math.max(280, Math.min(1080, document.documentElement.clientWidth - 32));

// What a scenario is at a point of one of its curves.
function seeAt(see, point) {
  const { effective_rows: left, heaviest, told: entries } = point;
  const groups = see.groups.map((group, index) => {
    const [share, rate, people, having] = point.groups[index];
    return { ...group, share_after: share, rate_after: rate, people_after: people,
      with_after: having };
  });
  const rates = see.rates.map((one, index) => {
    const [wanted, after] = point.rates[index];
    return { ...one, wanted, after };
  });
  return { ...see, groups, rates, effective_rows: left, heaviest, told: entries };
}

// ---------------------------------------------------------------- numbers

// `where` tells the tables of several scenarios apart.
function inNumbers({ groups, means, name }, where) {
  if (means.length) {
    const shown = amounts(means.flatMap(({ before, after }) => [before, after]));
    return table(`Means, by ${name}${where}`, ["Group", "before", "after"],
      means.map((one) => [groupName(one), shown(one.before), shown(one.after)]), [1, 2]);
  }
  const sizes = counted(groups, "people");
  const row = ({ group, before, after, change }, index) => [groupName(group),
    sizes[index].change ? `${whole(sizes[index].before)} → ${whole(sizes[index].after)}`
      : whole(sizes[index].after),
    `${whole(before)} → ${whole(after)}`, signed(change),
    percent(group.rate_before), percent(group.rate_after)];
  return table(`People who have ${outcomeName(groups[0])}, by ${name}${where}`,
    ["Group", "people", "with it", "change", "rate before", "after"],
    counted(groups).map(row), [1, 2, 3, 4, 5]);
}

// ---------------------------------------------------------------- one scenario

class Scenario extends Component {
  render({ scenario, width }) {
    const { name, isGood, wishes, command, left, curves } = scenario, moved = this.state.moved;
    const see = moved ? seeAt(scenario.see, moved.point) : scenario.see, all = groupings(see);
    const back = () => this.setState({ moved: null });
    // costs and facts are those of the scenario, and none of a point of a slider
    const entries = [...reached(see), ...ofWeight(see, "cost", "fact")];
    return h("section", null,
      h("h2", null, name),
      h("div", { role: "status", class: "told" }, headline(see, all[0], isGood, "h3"),
        alongside(see, all, all[0])),
      warnings(see), verdicts(see),
      moved && h("p", { class: "notice" }, "You have moved a slider: the scenario asked for " +
        "something else. ", h("button", { type: "button", onclick: back }, "Put it back")),
      left.map((why) => soft(`No slider here, because ${why}.`)),
      all.map((grouping) => this.column(grouping, see, width)),
      h("h4", null, "Asked for"),
      h("ul", { class: "soft" }, Object.entries(wishes).map(([label, value]) =>
        h("li", null, `${label}: ${value}`))),
      entries.length > 0 && [h("h4", null, "What else to know"), listed(saidOf(entries)),
        tablesOf(entries)],
      h("h4", null, "Do this again"), h("pre", { tabindex: "0", "aria-label": "Command" }, command),
      curves.length === 0 ? null : soft("A slider moves one rate; the others stay as asked for."));
  }

  // A column of groups: people, sliders, and numbers.
  column(grouping, see, width) {
    const { name, outcomes } = grouping;
    const own = this.props.scenario.curves
      .filter(({ columns }) => columns === outcomes?.columns);
    const where = data.scenarios.length > 1 ? `, in “${this.props.scenario.name}”` : "";
    return h("div", { class: "column", key: name },
      h("h4", null, name, h("small", null, rateTold(see, grouping))),
      peopleOf(grouping, width),
      own.map((curve) => this.curve(curve, grouping, see, width)),
      inNumbers(grouping, where));
  }

  curve(curve, grouping, see, width) {
    const { points, kind, columns } = curve, { moved } = this.state;
    const wanted = (rates) => rates.find((one) => one.kind === kind && one.columns === columns)
      ?.wanted;
    const { see: start } = this.props.scenario;
    const value = moved?.curve === curve ? moved.point.value : wanted(start.rates);
    const least = points[0].value, label = `${KINDS[kind]} of ${columns}`;
    const at = axis(width, least, grouping.groups);
    const all = points.map((point) => ({ value: point.value, see: seeAt(start, point) }));
    const share = kind === "statistical_rate" ? "rate_after" : "share_after";
    const { groups, outcomes, sizes } = grouping, shown = Math.max(least, value);
    const own = (kind === "statistical_rate" ? outcomes : sizes)?.before ?? least;
    const now = groups.filter((group) => !group.is_apart).map((group) => group[share]);
    const nearest = (wish) => points.reduce((one, other) =>
      (Math.abs(other.value - wish) < Math.abs(one.value - wish) ? other : one));
    const move = ({ target }) =>
      this.setState({ moved: { curve, point: nearest(Number(target.value)) } });
    const place = { marginLeft: `${at.left - HANDLE}px`, width: `${at.long + 2 * HANDLE}px` };
    return h("div", { class: "picture", key: kind },
      h("p", { class: "label" }, `${label}: at least ${hundredths(value)}`),
      rateCurve({ points: all, kind, grouping: grouping.name, outcome: groups[0].outcome, value,
        now, at }),
      rateTicks(own, value, at),
      h("input", { type: "range", class: "handle", style: place, min: least, max: 1, step: 0.01,
        value: shown, "aria-label": label, oninput: move,
        "aria-valuetext": `${hundredths(value)}: ${price(see)}` }),
      costStrip({ points: all, value, now: costOf(see), at }));
  }
}

// ---------------------------------------------------------------- all of them

function compared(scenarios) {
  const named = (one) => `${KINDS[one.kind]}: ${one.name}`;
  const names = [...new Set(scenarios.flatMap(({ see }) => ratesOf(see).map(named)))];
  const rate = ({ see }, name) =>
    ratesOf(see).find((one) => named(one) === name)?.after ?? null;
  const each = (name, text) => [name, ...scenarios.map(text)];
  return table("Scenarios compared", ["Scenario", ...scenarios.map(({ name }) => name)], [
    ...names.map((name) => each(name, (one) => hundredths(rate(one, name)))),
    each("Effective rows", ({ see }) => whole(see.effective_rows)),
    each("Largest weight", ({ see }) => weightOf(see.heaviest)),
    each("Outcomes changed", ({ see }) => whole(see.changed_people)),
  ], scenarios.map((_, index) => index + 1));
}

function draw() {
  const { title, scenarios, written, version } = data, width = roomFor();
  const count = scenarios.length === 1 ? "One scenario" : `${scenarios.length} scenarios`;
  const [{ see: { rows } }] = scenarios;
  render(h("div", { class: "sent" },
    h("h1", null, title),
    soft(`${whole(rows)} rows. ${count}, written on ${written} by fairmaxent ${version}. ` +
      "This file needs no network."),
    scenarios.length > 1 && compared(scenarios),
    scenarios.map((scenario) => h(Scenario, { scenario, width, key: scenario.name }))),
  /** @type {HTMLElement} */ (document.querySelector("main")));
}
addEventListener("resize", draw);
draw();
