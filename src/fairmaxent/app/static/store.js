// @ts-check
// The one store: what the server said, what is asked for, and every act that changes them. Drawing only reads it.

import { Live, Stale, Superseded, follow, get, post, upload } from "./api.js";
import { byId } from "./dom.js";
import { isAsked, rateOf } from "./form.js";

/** @type {any} */
export const store = {
  state: null, options: {}, answer: null, pins: [], files: [],
  problem: null, // what went wrong last
  outdated: null, // why the newest wish has no result, if it has none
  refitting: false, // whether the newest wish has been waited for a while
  busy: "", // what is being opened
  curves: {}, // by rate and column: what it was asked of, and the curve
  working: {}, // slow work by its kind: number, share, stage, or what became of it
};
let draw = () => {};
export const onChange = (act) => { draw = act; };
export function set(values) {
  Object.assign(store, values);
  draw();
}

// Other tabs hear that something has changed, and show it, too.
const channel = new BroadcastChannel("fairmaxent");
let heard;
channel.onmessage = () => { clearTimeout(heard); heard = setTimeout(() => live.since === null && reload(), 300); };
const tell = () => channel.postMessage("changed");

const LATE = 700; // milliseconds
let late;
export const live = new Live({
  answered: (answer, moving) => {
    const last = store.answer;
    const texts = moving && last ? { command: last.command, python: last.python } : {};
    set({ answer: { ...answer, ...texts }, files: [], outdated: null, problem: null });
    if (moving) return;
    tell();
    drawCurves();
  },
  failed: (problem) => { set({ outdated: problem.message }); fail(problem); },
  busy: (is) => {
    byId("see")?.setAttribute("aria-busy", String(is));
    clearTimeout(late);
    if (is) late = setTimeout(() => set({ refitting: true }), LATE);
    else if (store.refitting) set({ refitting: false });
  },
});

export function fail(problem) {
  set({ problem });
  if (problem instanceof Stale && !isChanged(problem)) reload();
}
export const isChanged = (problem) => /since it was opened/.test(problem?.message ?? "");
// What the server keeps is shown, unless something was asked for since.
async function reload() {
  const { sent } = live, newest = await get("/api/state").catch(() => null);
  if (newest && live.sent === sent) show(newest);
}

// Do something, and say on the page if it fails.
export async function attempt(act) {
  try {
    return await act();
  } catch (problem) {
    if (!(problem instanceof Superseded)) fail(problem);
    return null;
  }
}

export const isReady = () => Boolean(store.options.outcome) && store.options.protected.length > 0;
export const isOld = () => store.outdated !== null || store.refitting;
export const isMissing = () => !store.answer || isOld();
export const NOT_READY = "Choose the outcome and the groups above: who is to get what equally often?";

// ---------------------------------------------------------------- opening

async function opening(what, text) {
  set({ problem: null, busy: text });
  try {
    show(await what());
    tell();
  } catch (problem) {
    fail(problem);
    await get("/api/state").then(({ unread, forms }) => set({ state: { ...store.state, unread, forms } }), () => {});
  }
  set({ busy: "" });
}

export const openFile = (file) => opening(() => sized(file) && upload(file), `Reading ${file.name}…`);
export const openDemo = (name) => opening(() => post("/api/demo", { name }), "Reading the example…");
export const readAgain = (number, options) =>
  opening(() => post("/api/read", { table: number, options }), "Reading the file again…");

function sized(file) {
  if (file.size <= store.state.most_bytes) return true;
  throw new Error("The file is too large for the page; start the app with it instead: fairmaxent app FILE");
}

// Show what the server keeps.
export function show(newest) {
  const { state: old } = store;
  const isNew = old?.table?.number !== newest.table?.number;
  if (isNew) Object.assign(store, { curves: {}, working: {}, shares: {} });
  const state = { examples: old?.examples, most_bytes: old?.most_bytes, ...newest };
  const rates = (state.forms?.rates ?? []).map((one) => [one.name, one.optional ? null : one.start]);
  const options = { favourable: [], protected: [], ...Object.fromEntries(rates), random_state: 0, ...state.options };
  const { answer = null, pins = [], files = [] } = state;
  set({ state, options, answer, pins, files, outdated: null });
  if (!state.table) return;
  for (const job of state.jobs ?? []) if (store.working[job.kind]?.number !== job.number) slow(job.kind, job);
  if ((!answer || state.outdated) && isReady()) live.ask(state.table.number, asked());
  else drawCurves();
}

// ---------------------------------------------------------------- changing

// What is asked for, without the options that are greyed out, whose controls keep what was chosen.
function asked() {
  const { options, state } = store, off = Object.values(state.forms).flat()
    .filter((one) => !isAsked(one, options)).map((one) => one.name);
  return Object.fromEntries(Object.entries(options).filter(([name]) => !off.includes(name)));
}

// Every change of a wish or a role; `look`: the table is looked at again, `moving`: a hand is still at it.
export function change(values, { look = false, moving = false } = {}) {
  Object.assign(store, { options: { ...store.options, ...values } });
  if (look) lookAgain();
  if (isReady()) live.ask(store.state.table.number, asked(), { moving });
  else if (store.answer) store.outdated = NOT_READY;
  if (!moving) draw(); // or with the answer: the handle moves by itself
}

// A rate for all columns of groups together, as others may be compared.
export const singleRates = () =>
  Object.fromEntries(store.state.forms.rates.map(({ name }) => [name, [store.options[name]]
  .flatMap((asked) => (asked !== null && typeof asked === "object" ? Object.values(asked) : [asked]))
  .find((rate) => rate !== null) ?? null]));

export function changeRoles(values) {
  const { options } = store, protectedNow = values.protected ?? options.protected;
  const others = (columns) => Object.fromEntries(Object.entries(columns ?? {}).filter(([name]) =>
    !protectedNow.includes(name) && name !== (values.outcome ?? options.outcome)));
  const outcome = store.state.look.columns.find((column) => column.name === values.outcome);
  const fresh = values.protected || values.outcome
    ? { target: null, ...singleRates(), within: others(options.within), also: others(options.also),
        equal_means: values.outcome ? Boolean(outcome?.range) || null : options.equal_means, // bins say little
        groups: protectedNow.length > 1 ? options.groups ?? "each" : "each" } : {};
  change({ ...fresh, ...values });
  lookAgain(values.outcome ? (look) => look.favourable : undefined);
}

let looking = 0;
// `good` says which levels of the outcome are then good, if they have to be chosen anew.
/** @param {(look: any) => string[]} good */
async function lookAgain(good = () => []) {
  const number = ++looking;
  await attempt(async () => {
    const { look } = await post("/api/look", { table: store.state.table.number, options: store.options });
    if (number !== looking) return;
    set({ state: { ...store.state, look } });
    const favourable = good(look);
    if (favourable.length) change({ favourable }, { look: true });
  });
}

// The last bin of an outcome of numbers becomes the good one, once it is known what it is called.
export function atLeast(column, edges) {
  const bins = { ...store.options.bins, [column]: edges };
  set({ options: { ...store.options, bins, equal_means: null, favourable: [] } });
  lookAgain((look) => look.columns.find((one) => one.name === column).choices.slice(-1));
}

export const draft = () => attempt(async () =>
  (await post("/api/draft", { table: store.state.table.number, options: store.options })).text);
export const spend = () => live.ask(store.state.table.number, asked(), { spend: true });

// ---------------------------------------------------------------- curves

// The rates that have a slider: of each, the column it is about, or null if it is about all groups together.
export function sliders() {
  const { options, state } = store;
  const columns = options.groups === "joint" || options.protected.length === 1 ? [null] : options.protected;
  return state.forms.rates.flatMap((one) =>
    columns.map((column) => ({ one, column, first: column ?? options.protected[0] })));
}

// What a curve depends on: everything but the rate itself, and what is only about files.
function curveKey(name, column) {
  const { options, state } = store, taken = [...state.forms.take, ...state.forms.report].map((one) => one.name);
  const rate = column === null ? null : { ...options[name], [column]: null };
  const rest = Object.entries({ ...options, [name]: rate }).filter(([key]) => !taken.includes(key));
  return JSON.stringify([state.table.number, rest.sort(([one], [other]) => (one < other ? -1 : 1))]);
}

let drawing = 0;
async function drawCurves() {
  const number = ++drawing, scenario = store.answer?.scenario;
  for (const { one, column, first } of scenario ? sliders() : []) {
    const place = `${one.name} ${column}`, key = curveKey(one.name, column);
    if (rateOf(store.options[one.name], first) === null || store.curves[place]?.key === key) continue;
    try {
      const { curve } = await post("/api/curve", { table: store.state.table.number, scenario, kind: one.name, column });
      if (number !== drawing) return;
      set({ curves: { ...store.curves, [place]: { key, curve } } });
    } catch {
      return; // something else is asked for by now
    }
  }
}

// ---------------------------------------------------------------- slow work

// What work is about: what is no longer the session's is refused.
const present = () => ({ table: store.state.table.number, scenario: store.answer?.scenario });
const at = (kind, values) => set({ working: { ...store.working, [kind]: values } });

// Wait for the fit that is under way; only the result of the newest wish is worked with.
async function isCurrent() {
  await live.settled();
  if (store.outdated === null) set({ problem: null });
  return store.outdated === null;
}

// Begin work, or go on with a `job` that was under way when the page was loaded, and show its progress and its result.
export async function slow(kind, job) {
  if (!job && !await isCurrent()) return;
  const watch = ({ number, share, stage }) => at(kind, { number, share, stage: stage || "starting" });
  watch(job ?? { number: null, share: 0, stage: "" });
  try {
    const result = await follow(job ?? await post("/api/start", { kind, ...present() }), watch);
    at(kind, result === null ? { said: "Stopped." } : null);
    if (result === null) return;
    set(result);
    tell();
    if (kind === "take") /** @type {HTMLElement | null} */ (document.querySelector("#files a"))?.focus();
  } catch (problem) {
    at(kind, { failed: /** @type {Error} */ (problem).message });
    fail(problem);
  }
}

// ---------------------------------------------------------------- scenarios

const changePins = (path, values) => attempt(async () => { set({ pins: (await post(path, values)).pins }); tell(); });
export async function pin() {
  if (!await isCurrent()) return;
  const name = scenarioName(store.answer), isTaken = store.pins.some((one) => one.name === name);
  await changePins("/api/pin", { ...present(), name: isTaken ? `${name} (${store.pins.length + 1})` : name });
}
// A scenario by what was asked, e.g. "rate 0.9 for sex, sizes kept".
export function scenarioName({ see }) {
  const asked = see.rates.filter((one) => one.wanted !== null),
    words = { statistical_rate: "rate", representation_rate: "sizes" };
  const areSizes = asked.some((one) => one.kind === "representation_rate");
  return [...asked.map((one) => `${words[one.kind]} ${one.wanted} for ${one.grouping}`),
    ...(areSizes ? [] : ["sizes kept"])].join(", ");
}

// A scenario for a page to send, with the curve of the first rate that was asked for.
async function withCurve({ name, answer }) {
  const { see, scenario, wishes } = answer, kinds = store.state.forms.rates;
  const rate = [...kinds].sort((a, b) => (a.name < b.name ? 1 : -1)).flatMap((kind) =>
    see.rates.filter((known) => known.kind === kind.name && known.wanted !== null))[0];
  const column = scenario.protected.length === 1 || scenario.groups === "joint" ? null : rate?.columns;
  const { curve } = rate
    ? await post("/api/curve", { table: store.state.table.number, scenario, kind: rate.kind, column }) : {};
  return { name, wishes, curve, what: rate?.columns, own: rate?.before, rows: see.rows,
    one: kinds.find((kind) => kind.name === rate?.kind),
      groups: see.groups.filter((group) => group.column === rate?.grouping) };
}

// One file with all scenarios, which anybody can open without a network: the modules that draw it in one script.
const PARTS = ["dom.js", "format.js", "charts.js", "sent.js"];
const text = async (name) => (await fetch(`/static/${name}`)).text();
export const send = () => attempt(async () => {
  if (!await isCurrent()) return;
  const isPinned = store.pins.some((one) =>
    JSON.stringify(one.answer.scenario) === JSON.stringify(store.answer.scenario));
  const all = [...store.pins, ...(isPinned ? [] : [{ name: scenarioName(store.answer), answer: store.answer }])];
  const scenarios = [];
  for (const one of all) scenarios.push(await withCurve(one));
  const [preact, names] = (await text("preact.js")).split("export{"), inside = /(\w+) as (Component|h|render)[,}]/g;
  const given = [...names.matchAll(inside)].map(([, short, name]) => `${name}:${short}`).join(",");
  const parts = await Promise.all(PARTS.map(text));
  const script = [`const {Component:Base,h,render}=(()=>{${preact};return{${given}}})();`,
    ...parts.map((part) => part.replace(/^(import .*;|export \{.*\};)$|^export /gm, ""))].join("\n");
  const data = JSON.stringify({ title: store.state.table.title, scenarios: scenarios.filter((one) => one.curve) });
  const filled = { SCRIPT: script, STYLE: await text("style.css"), DATA: data.replaceAll("<", "\\u003c") };
  const page = (await text("sent.html")).replace(/SCRIPT|STYLE|DATA/g, (part) => filled[part]);
  set({ sent: URL.createObjectURL(new Blob([page], { type: "text/html" })) });
});
export const rename = (number, name) => changePins("/api/rename", { number, name });
export const unpin = (number) => changePins("/api/unpin", { number });

// Ask again for all that was asked for then, and for nothing else; the server still has the result.
export function putBack(scenario) {
  set({ options: { ...scenario }, shares: {} });
  change({}, { look: true });
}
