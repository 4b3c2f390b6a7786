// @ts-check
// The one store: what the server said, what is asked for, and every act that changes them. Drawing
// only reads it.

import { Live, Stale, Superseded, follow, get, post, upload } from "./api.js";
import { byId, close } from "./dom.js";
import { comparedIn, isAsked, keptRates, rateOf, singleRates } from "./form.js";
import { hundredths, short, together } from "./format.js";
import { groupings, keepsSizes } from "./people.js";

/** @type {any} */
export const store = {
  state: null, options: {}, answer: null, pins: [], files: [],
  problem: null, // what went wrong last
  outdated: null, // why the newest wish has no result, if it has none
  refitting: false, // whether the newest wish has been waited for a while
  busy: "", // what is being opened
  notice: "", // what was asked for because a role changed
  curves: {}, // by rate and column: what it was asked of, and its points
  working: {}, // slow work by its kind: number, share, stage, or what became of it
  shares: {}, // columns whose shares were chosen, and what was set of each
  tab: null, // the grouping that is looked at
  kind: "statistical_rate", // and the rate
  sent: null, // the address of the page to send, which is about the present scenario
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
channel.onmessage = () => {
  clearTimeout(heard);
  heard = setTimeout(() => live.since === null && !live.resting && reload(), 300);
};
const tell = () => channel.postMessage("changed");

const LATE = 700; // milliseconds
let late;
export const live = new Live({
  answered: (answer, moving) => {
    set({ answer, files: [], sent: null, outdated: null, problem: null });
    if (moving) return;
    tell();
    drawCurve();
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
  if (newest && live.sent === sent && !live.resting) show(newest);
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

export const isReady = () =>
  Boolean(store.options.outcome) && comparedIn(store.options).length > 0;
export const isOld = () => store.outdated !== null || store.refitting;
export const isMissing = () => !store.answer || isOld() || store.busy !== "";
export const NOT_READY = "Choose the outcome and the groups above: " +
  "who is to get what equally often?";

// ---------------------------------------------------------------- opening

async function opening(what, text) {
  set({ problem: null, busy: text });
  close("open-menu");
  close("about");
  try {
    show(await what());
    tell();
  } catch (problem) {
    fail(problem);
    const put = ({ unread, forms }) => set({ state: { ...store.state, unread, forms } });
    await get("/api/state").then(put, () => {});
  }
  set({ busy: "" });
}

export const openFile = (file) =>
  opening(() => sized(file) && upload(file), `Reading ${file.name}…`);
export const openDemo = (name) =>
  opening(() => post("/api/demo", { name }), "Reading the example…");
export const readAgain = (number, options) =>
  opening(() => post("/api/read", { table: number, options }), "Reading the file again…");

function sized(file) {
  if (file.size <= store.state.most_bytes) return true;
  throw new Error("The file is too large for the page; start the app with it instead: " +
    "fairmaxent app FILE");
}

// Show what the server keeps.
export function show(newest) {
  const old = store.state, isNew = old?.table?.number !== newest.table?.number;
  if (isNew) Object.assign(store, { curves: {}, working: {}, shares: {}, tab: null, notice: "" });
  const fixed = { examples: old?.examples, most_bytes: old?.most_bytes, version: old?.version };
  const state = { ...fixed, ...newest };
  const options = { ...usual(state), ...state.options };
  const { answer = null, pins = [], files = [] } = state;
  set({ state, options, answer, pins, files, outdated: null, sent: null });
  if (!state.table) return;
  for (const job of state.jobs ?? []) {
    if (store.working[job.kind]?.number !== job.number) slow(job.kind, job);
  }
  if ((!answer || state.outdated) && isReady()) live.ask(state.table.number, asked());
  else drawCurve();
}

const startOf = (rate) => (rate.optional ? null : rate.start);
const usual = ({ forms }) => ({ favourable: [], protected: [], random_state: 0,
  ...Object.fromEntries((forms?.rates ?? []).map((rate) => [rate.name, startOf(rate)])) });

// ---------------------------------------------------------------- changing

// What is asked for, without the options that are greyed out, whose controls keep what was chosen.
function asked() {
  const { options, state } = store, all = Object.values(state.forms).flat();
  const off = all.filter((one) => !isAsked(one, options)).map((one) => one.name);
  return Object.fromEntries(Object.entries(options).filter(([name]) => !off.includes(name)));
}

// Every change of a wish or a role; `look`: the table is looked at again; `moved`: the slider that
// a hand is at, with its rate, its column and its value.
/** @type {(values: any, how?: { look?: boolean, moved?: any }) => void} */
export const change = (values, { look = false, moved = null } = {}) => {
  Object.assign(store, { options: { ...store.options, ...values }, notice: "" });
  if (look) lookAgain();
  const { number } = store.state.table, see = moved && knownAt(moved);
  if (see) {
    live.move(number, asked(), { ...store.answer, see });
    return;
  }
  if (isReady()) live.ask(number, asked());
  else if (store.answer) store.outdated = NOT_READY;
  if (!moved) draw(); // or with the answer: the handle moves by itself
};

// Another outcome, or other columns of groups: each column keeps its own wishes.
export function changeRoles(values) {
  const { options, state } = store, columns = values.protected ?? options.protected;
  const outcome = state.look.columns.find((column) => column.name === values.outcome);
  const others = (chosen) => Object.fromEntries(Object.entries(chosen ?? {}).filter(([name]) =>
    !columns.includes(name) && name !== (values.outcome ?? options.outcome)));
  const means = values.outcome ? Boolean(outcome?.range) || null : options.equal_means;
  const fresh = values.protected || values.outcome ? {
    target: null, ...keptRates(state.forms.rates, options, columns),
    within: others(options.within), further_outcomes: others(options.further_outcomes),
    equal_means: means, // the bins of a number say little
    groups: columns.length > 1 ? options.groups ?? "each" : "each",
  } : {};
  change({ ...fresh, ...values });
  const added = columns.filter((name) => !options.protected.includes(name));
  if (added.length && options.protected.length) set({ notice: noticeOf(added) });
  lookAgain(values.outcome ? (look) => look.favourable : undefined);
}

// What is asked of columns that were added.
function noticeOf(added) {
  const { options, state } = store;
  const wishes = state.forms.rates
    .map(({ name, label }) => [label, rateOf(options[name], added[0])])
    .filter(([, wish]) => wish !== null && !options.equal_means)
    .map(([label, wish]) => `${label.toLowerCase()} of ${hundredths(wish)}`);
  const are = added.length === 1 ? "is" : "are";
  const what = wishes.length ? `; you ask for ${together(wishes)} there` : "";
  return `${together(added)} ${are} compared, too${what}. The other wishes stay as they were.`;
}

// Columns by themselves or in combination, each with the wishes that it had when it was left.
const left = {};
export function compare(groups) {
  const { options, state } = store, rates = state.forms.rates.map(({ name }) => name);
  const key = (how) => JSON.stringify([state.table.number, options.protected, how]);
  left[key(options.groups ?? "each")] =
    Object.fromEntries(rates.map((name) => [name, options[name]]));
  change({ groups, ...(left[key(groups)] ?? singleRates(rates, options)) }, { look: true });
}

let looking = 0;
// `good` says which levels of the outcome are then good, if they have to be chosen anew.
/** @param {(look: any) => string[]} good */
async function lookAgain(good = () => []) {
  const number = ++looking;
  await attempt(async () => {
    const { table } = store.state;
    const { look } = await post("/api/look", { table: table.number, options: store.options });
    if (number !== looking) return;
    set({ state: { ...store.state, look } });
    const favourable = good(look);
    if (favourable.length) change({ favourable }, { look: true });
  });
}

// The last bin of an outcome of numbers becomes the good one, once it is known what it is called.
export function atLeast(column, least, [low, high]) {
  if (!(low < least && least <= high)) {
    const who = least > high ? "Nobody" : "Everybody";
    fail(new Error(`${who} has at least ${least} in ${column}, so there is nothing to compare. ` +
      `Choose a number above ${low}, and up to ${high}.`));
    return;
  }
  const edges = [Math.min(low, least - 1), least, Math.max(high, least + 1)];
  const bins = { ...store.options.bins, [column]: edges };
  set({ options: { ...store.options, bins, equal_means: null, favourable: [] }, problem: null,
    outdated: `It is being counted who has at least ${least}.` });
  lookAgain((look) => look.columns.find((one) => one.name === column).choices.slice(-1));
}

export const draft = () => attempt(async () =>
  (await post("/api/draft", { table: store.state.table.number, options: store.options })).text);
export const spend = () => live.ask(store.state.table.number, asked(), { spend: true });

// ---------------------------------------------------------------- what is looked at, and its curve

// The grouping that is looked at, and the column whose rate its slider moves: null if all columns
// of groups have one rate together.
export function looked() {
  const { answer, options, tab, kind } = store;
  const all = groupings(answer.see), grouping = all.find(({ name }) => name === tab) ?? all[0];
  const compared = comparedIn(options);
  const isOne = options.groups === "joint" || compared.length === 1;
  const { columns } = grouping.outcomes, first = compared[0];
  const column = isOne ? null : compared.includes(columns) ? columns : first;
  return { all, grouping, column, kind, first: column ?? first,
    what: column ?? compared.join(" × ") };
}

export function lookAt(values) {
  set(values);
  drawCurve();
}

// What a curve depends on: everything but the rate itself, and what is only about files.
function curveKey(name, column) {
  const { options, state } = store, { take, report } = state.forms;
  const taken = [...take, ...report].map((one) => one.name);
  const wished = comparedIn(options).map((one) => [one, rateOf(options[name], one)]);
  const rate = column === null ? null : wished.filter(([one]) => one !== column);
  const rest = Object.entries({ ...options, [name]: rate }).filter(([key]) => !taken.includes(key));
  rest.sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([state.table.number, rest]);
}

// The curve of a rate, if it is known as things are.
export function curveOf(name, column) {
  const known = store.curves[`${name} ${column}`];
  return known?.key === curveKey(name, column) ? known : null;
}

const SAME = 1e-9;
const knownAt = ({ name, column, value }) =>
  curveOf(name, column)?.points?.find((point) => Math.abs(point.value - value) < SAME)?.see;

const AGAIN = 1000; // milliseconds
let drawing = 0, isPaused = false;
// While a page to send is made, the curves are for it.
export function pauseCurve(is) {
  isPaused = is;
  drawing += 1;
  if (!is) drawCurve();
}
async function drawCurve() {
  const number = ++drawing, { answer, state } = store;
  if (!answer || document.hidden || isPaused) return;
  const { column, kind } = looked(), { scenario } = answer;
  const key = curveKey(kind, column), known = curveOf(kind, column);
  if (known && !known.sketch) return;
  try {
    for (const sketch of known ? [false] : [true, false]) { // a few points are there at once
      const about = { table: state.table.number, scenario, kind, column, sketch };
      const { curve, skipped } = await post("/api/curve", about);
      if (number !== drawing) return;
      const found = { key, points: curve?.points ?? [], step: curve?.step, skipped, sketch };
      set({ curves: { ...store.curves, [`${kind} ${column}`]: found } });
    }
  } catch (problem) {
    // Another tab has asked for its own; whatever else it is, something else is asked for by now.
    if (problem instanceof Superseded && number === drawing) setTimeout(drawCurve, AGAIN);
  }
}
addEventListener("visibilitychange", drawCurve);

// ---------------------------------------------------------------- slow work

// What work is about: what is no longer the session's is refused.
export const present = () =>
  ({ table: store.state.table.number, scenario: store.answer?.scenario });
const at = (kind, values) => set({ working: { ...store.working, [kind]: values } });

// Wait for the fit that is under way; only the result of the newest wish is worked with.
export async function isCurrent() {
  await live.settled();
  if (store.outdated === null) set({ problem: null });
  return store.outdated === null;
}

// Begin work, or go on with a `job` that was under way when the page was loaded, and show its
// progress and its result.
export async function slow(kind, job) {
  if (!job && !await isCurrent()) return;
  const watch = ({ number, share, stage }) =>
    at(kind, { number, share, stage: stage || "starting" });
  watch(job ?? { number: null, share: 0, stage: "" });
  try {
    const result = await follow(job ?? await post("/api/start", { kind, ...present() }), watch);
    at(kind, result === null ? { said: "Stopped." } : null);
    if (result === null) return;
    set(result);
    tell();
    const first = /** @type {HTMLElement | null} */ (document.querySelector("#files a"));
    if (kind === "take") first?.focus();
  } catch (problem) {
    at(kind, { failed: /** @type {Error} */ (problem).message });
    fail(problem);
  }
}

// ---------------------------------------------------------------- scenarios

const changePins = (path, values) => attempt(async () => {
  set({ pins: (await post(path, values)).pins });
  tell();
});
export async function pin() {
  if (!await isCurrent()) return;
  const name = short(scenarioName(store.answer), 60);
  const isTaken = store.pins.some((one) => one.name === name);
  const own = isTaken ? `${short(name, 54)} (${store.pins.length + 1})` : name;
  await changePins("/api/pin", { ...present(), name: own });
}

// A scenario by what was asked, e.g. "rate 0.9 for sex, sizes kept".
export function scenarioName({ see }) {
  const words = { statistical_rate: "rate", representation_rate: "sizes" };
  const wishes = {}; // the columns of each
  for (const { kind, wanted, grouping } of see.rates.filter((one) => one.wanted !== null)) {
    (wishes[`${words[kind]} ${wanted}`] ??= []).push(grouping);
  }
  const areKept = groupings(see).every(({ groups }) => keepsSizes(groups));
  const asked = Object.entries(wishes).map(([wish, names]) => `${wish} for ${together(names)}`);
  return [
    ...(see.means.length ? ["equal means"] : []),
    ...(see.model ? [`for ${see.model.student}`] : []),
    ...asked,
    ...(areKept && !asked.some((wish) => wish.startsWith("sizes")) ? ["sizes kept"] : []),
  ].join(", ");
}
export const rename = (number, name) => changePins("/api/rename", { number, name });
export const unpin = (number) => changePins("/api/unpin", { number });

// Ask again for all that was asked for then, and for nothing else; the server still has the result.
export function putBack(scenario) {
  set({ options: { ...scenario }, shares: {} });
  change({}, { look: true });
}
