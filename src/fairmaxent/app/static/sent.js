// @ts-check
// A file to send: scenarios side by side, each with its sentence, its dots and its curve, live without a server.

import { dotsOf, tradeOff } from "./charts.js";
import { Component, h, soft, table } from "./dom.js";
import { percent, sentence, whole } from "./format.js";
import { render } from "./preact.js";

const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");

// The groups of a curve at one of its points, as the page has them.
function groupsAt({ curve, groups, rows }, point) {
  return groups.map((group, index) => {
    const [share, rate, having] = point.groups[index];
    return { ...group, share_after: share, rate_after: rate, people_after: rows * share, with_after: rows * having,
      column: curve.kind };
  });
}

class Scenario extends Component {
  render({ scenario, width }) {
    const { curve, own, rows, one } = scenario, { points, asked } = curve;
    const start = points.findIndex((point) => point.value === asked);
    const index = this.state.index ?? (start < 0 ? points.length - 1 : start), point = points[index];
    const groups = groupsAt(scenario, point), nth = curve.kind === "statistical_rate" ? 1 : 0;
    const now = groups.map((group) => [group.share_after, group.rate_after][nth]);
    const said = groups.slice(0, 4).map((group, at) => `${group.group} ${percent(now[at])}`).join(", ");
    const label = `${one.label} of ${scenario.what}: ${point.value.toFixed(2)}`;
    return h("section", null, h("h2", null, scenario.name), h("p", { class: "lede", role: "status" }, sentence(groups)),
      groups.length <= 8 && new Set(groups.map((group) => group.outcome)).size === 1 &&
        h("div", { class: "crowd" }, groups.map(dotsOf)),
      h("div", { class: "rate" },
        h("label", null, label, h("input", { type: "range", min: 0, max: points.length - 1, step: 1,
        value: index, "aria-valuetext": `${point.value.toFixed(2)}: ${said}`,
        oninput: (event) => this.setState({ index: Number(event.target.value) }) })),
      tradeOff({ curve, one, value: point.value, now, own, rows, width })),
      table(`${scenario.name}, in a table of ${whole(rows)} people`, ["Group", "before", "after", "people with it"],
        groups.map((group) =>
        [group.group, percent(group.rate_before), percent(group.rate_after), whole(group.with_after)]), [1, 2, 3]),
      point.effective_rows !== null &&
        h("p", null, `Effective rows: ${whole(point.effective_rows)} of ${whole(rows)}.`),
      index !== start && start >= 0 && soft(`This scenario asked for ${asked}.`),
      h("ul", { class: "soft" },
        Object.entries(scenario.wishes).map(([name, value]) => h("li", null, `${name}: ${value}`))));
  }
}

const draw = () => render(h("div", { class: "sent" }, h("h1", null, data.title), data.scenarios.map((scenario) =>
  h(Scenario, { scenario, width: Math.max(240, Math.min(1100, innerWidth - 80)) })),
soft("Made by fairmaxent. This file needs no network.")), /** @type {HTMLElement} */ (document.querySelector("main")));
addEventListener("resize", draw);
draw();
