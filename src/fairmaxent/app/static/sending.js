// @ts-check
// One file with all scenarios, which anybody can open without a network: the modules that draw it,
// in one script, and the numbers of each scenario, with every curve that there is.

import { ofWeight } from "./answer.js";
import { Superseded, post } from "./api.js";
import { comparedIn, rateOf } from "./form.js";
import { attempt, curveOf, isCurrent, pauseCurve, scenarioName, set, store } from "./store.js";

const PARTS = ["dom.js", "format.js", "people.js", "charts.js", "answer.js", "sent.js"];

export const send = () => attempt(async () => {
  if (!await isCurrent()) return;
  set({ busy: "Making the page to send…" });
  pauseCurve(true);
  try {
    const { name } = store.state.table, own = name.split(/[/\\]/).pop();
    const stem = own.replace(/\.[^.]*$/, "");
    const page = new Blob([await filled(await scenarios())], { type: "text/html" });
    set({ sent: { address: URL.createObjectURL(page), name: `${stem}-scenarios.html` } });
  } finally {
    set({ busy: "" });
    pauseCurve(false);
  }
});

async function scenarios() {
  const { pins, answer } = store;
  const isSame = (one) => JSON.stringify(one.answer.scenario) === JSON.stringify(answer.scenario);
  const present = { name: scenarioName(answer), answer };
  const all = pins.some(isSame) ? pins : [...pins, present];
  const told = [];
  for (const one of all) told.push(await withCurves(one)); // one after the other, as they are made
  return told;
}

// ---------------------------------------------------------------- curves

// A scenario with the curves of all rates that it asks for, or why it has none.
async function withCurves({ name, answer }) {
  const { see, scenario, wishes, command } = answer, curves = [];
  const isGood = (scenario.favourable?.length ?? 0) > 0;
  const why = whyNone(scenario, see), left = new Set(why ? [why] : []);
  for (const { kind, column, columns } of why ? [] : ratesOf(scenario, see)) {
    const { points, skipped } = await curve(scenario, kind, column);
    if (skipped) left.add(skipped);
    if (points.length > 1) curves.push({ kind, columns, points: points.map(slim) });
  }
  return { name, see, isGood, wishes, command, curves, left: [...left] };
}

// Why a scenario has nothing that moves.
function whyNone(scenario, see) {
  if (see.means.length) return "equal means have no rate to choose";
  if (scenario.model) return "its model would have to be trained again for each rate";
  return ratesOf(scenario, see).length ? null : "no rate is asked for";
}

// The rates that are asked for, each once, and the column that each is asked of.
function ratesOf(scenario, see) {
  const compared = comparedIn(scenario);
  const isOne = compared.length === 1 || scenario.groups === "joint";
  const known = new Map();
  for (const { kind, columns, wanted } of see.rates) {
    const column = isOne ? null : columns;
    const asked = rateOf(scenario[kind], column ?? compared[0]);
    if (wanted !== null && asked !== null) {
      known.set(`${kind} ${column}`, { kind, column, columns });
    }
  }
  return [...known.values()];
}

// The page's own curve if it is the same; asking for one puts an end to another, so again.
const TIMES = 5;
async function curve(scenario, kind, column) {
  const isPresent = JSON.stringify(scenario) === JSON.stringify(store.answer.scenario);
  const known = isPresent && curveOf(kind, column);
  if (known && !known.sketch) return known;
  for (let time = 1; ; time += 1) {
    try {
      const about = { table: store.state.table.number, scenario, kind, column };
      const { curve: found, skipped } = await post("/api/curve", about);
      return { points: found?.points ?? [], skipped };
    } catch (problem) {
      if (!(problem instanceof Superseded) || time === TIMES) throw problem;
    }
  }
}

// What moves at a point of a curve; the rest is that of the scenario.
export const slim = ({ value, see }) => ({ value,
  effective_rows: see.effective_rows, heaviest: see.heaviest,
  told: ofWeight(see, "verdict", "warning").map((entry) => ({ ...entry, tables: [] })),
  rates: see.rates.map(({ wanted, after }) => [wanted, after]),
  groups: see.groups.map((group) =>
    [group.share_after, group.rate_after, group.people_after, group.with_after]) });

// ---------------------------------------------------------------- the file

const text = async (name) => (await fetch(`/static/${name}`)).text();

// The modules of the page as one script, without what joins them.
async function script() {
  const [preact, names] = (await text("preact.js")).split("export{");
  const inside = /(\w+) as (Component|h|render)[,}]/g;
  const given = [...names.matchAll(inside)].map(([, short, name]) => `${name}:${short}`).join(",");
  const parts = await Promise.all(PARTS.map(text));
  const joints = /^import [^;]*;$|^export (?=const|function|class)/gm;
  return [`const {Component:Base,h:element,render}=(()=>{${preact};return{${given}}})();`,
    ...parts.map((part) => part.replace(joints, ""))].join("\n");
}

async function filled(told) {
  const { table, version } = store.state;
  const data = JSON.stringify({ title: table.title, version, scenarios: told,
    written: new Date().toISOString().slice(0, 10) });
  const parts = {
    TITLE: table.title.replace(/[&<]/g, (mark) => (mark === "&" ? "&amp;" : "&lt;")),
    SCRIPT: await script(), STYLE: await text("style.css"),
    DATA: data.replaceAll("<", "\\u003c"),
  };
  return (await text("sent.html")).replace(/TITLE|SCRIPT|STYLE|DATA/g, (part) => parts[part]);
}
