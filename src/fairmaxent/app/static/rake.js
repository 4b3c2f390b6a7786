// @ts-check
// Rake: weights that give the table known shares, e.g. those of a census.

import { Component, at, button, folded, h, soft, table } from "./dom.js";
import { choose, flag, form, named, number } from "./form.js";
import { percent } from "./format.js";
import { MOST_LEVELS, rounded } from "./shares.js";
import { rake, store } from "./store.js";
import { listFiles, working } from "./take.js";

// What is known, by column, and the options; nothing of it is sent before the button is pressed.
export class Rake extends Component {
  constructor(props) {
    super(props);
    this.state = { known: {}, values: { random_state: 0 }, isLimited: false, factors: [0.3, 3] };
  }

  // Each value is a level here, so numbers in bins are of no use.
  columns() {
    return store.state.look.columns.filter((column) => !column.identifier && column.choices.length >= 2 &&
      column.choices.length <= MOST_LEVELS && column.values <= column.choices.length);
  }

  send() {
    const { known, values, isLimited, factors } = this.state;
    const chosen = this.columns().filter(({ name }) => at(known, name)?.isKnown);
    const margins = chosen.flatMap((column) => sharesOf(column, known).map(([level, share]) =>
      [column.name, level, Math.round(share * 1e4) / 1e6]));
    rake({ margins, options: { ...values, bounds: isLimited ? factors.map((one) => one ?? "none").join(",") : null,
      relax: chosen.filter(({ name }) => known[name].mayBeMissed).map(({ name }) => [name]) } });
  }

  render(_, { values, isLimited, factors }) {
    const factor = (label, index, range) => number(label, factors[index], { ...range, step: "any" }, (value) =>
      this.setState({ factors: factors.map((old, other) => (other === index ? value : old)) }));
    const numeric = store.state.look.columns.filter((column) => column.kind === "numeric");
    const change = (changed) => this.setState({ values: { ...this.state.values, ...changed } });
    return h("section", { id: "rake", "aria-labelledby": "rake-title" },
      folded(h("h2", { id: "rake-title" }, "Or weight to known margins"), false,
      soft("If you know the true shares of some columns, e.g. from a census, rows get weights that give the " +
        "table these shares, and otherwise change as little as possible. No outcome is involved."),
      this.columns().map((column) => this.knownShares(column)),
      h("p", null, flag("Limit how much a weight may change", isLimited, (is) => this.setState({ isLimited: is }))),
      factor("Smallest factor", 0, { min: 0, max: 1 }), factor("Largest factor", 1, { min: 1, max: 1000 }),
      folded("Advanced: weights, replicates, report", false,
        numeric.length > 0 && choose("Design weights of the sample", values.weight ?? "",
          named("none", numeric), (weight) => change({ weight: weight || null })),
        form(store.state.forms.raking, values, change)),
      h("p", null, button("Make the weights", () => this.send(), { id: "rake-button" })),
      h("div", { id: "raking" }, working("raking")), h("div", { id: "raked" }, store.raked && raked(store.raked))));
  }

  // One column: a tick, and a number for each level, in percent; at first those of the data.
  knownShares(column) {
    const { name } = column, { known } = this.state, mine = known[name] ?? {};
    const set = (values) =>
      this.setState({ known: { ...this.state.known, [name]: { ...this.state.known[name], ...values } } });
    return h("div", { key: name },
      flag(`The shares of ${name} are known`, Boolean(mine.isKnown), (isKnown) => set({ isKnown })),
      mine.isKnown && h("div", { class: "shares" }, soft("in percent; they must add up to 100"),
        h("div", { class: "cells" }, sharesOf(column, known).map(([level, share]) =>
          number(level, share, { min: 0, max: 100, step: "any" }, (value) =>
            set({ shares: { ...this.state.known[name].shares, [level]: value } }), { key: level }))),
        flag(`If margins contradict each other, ${name} may be missed`, Boolean(mine.mayBeMissed),
          (mayBeMissed) => set({ mayBeMissed }))));
  }
}

function sharesOf({ name, choices, shares }, known) {
  const inData = rounded(choices.map((_, index) => (shares.length === choices.length ? shares[index][1] : 1)));
  return choices.map((level, index) => [level, at(at(known, name)?.shares, level) ?? inData[index] / 10]);
}

const raked = (result) => [
  table("Margins", ["Level", "rows", "before", "known", "after"], result.levels.map((one) =>
    [`${one.margin} = ${one.level}`, String(one.rows), percent(one.before), percent(one.wanted),
      percent(one.achieved)]), [1, 2, 3, 4]),
  h("ul", null, [...result.summary, ...result.notes].map((text) => h("li", null, text))),
  listFiles(result.files),
  soft("The same on the command line:"),
    h("pre", { tabindex: "0", "aria-label": "Command that rakes" }, result.command)];
