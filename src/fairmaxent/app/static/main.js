// The page: one state, which the server keeps; each part draws itself from it.

import { Live, follow, get, post, stop, upload, work } from "./api.js";
import { drawAsk, singleRates } from "./ask.js";
import { byId, h, redraw } from "./dom.js";
import { duration, withMerging } from "./format.js";
import { drawLook } from "./look.js";
import { drawOpen } from "./opening.js";
import { drawPins } from "./pins.js";
import { drawRake, drawRaked } from "./rake.js";
import { drawSee, drawTradeOff } from "./see.js";
import { forgetMoves } from "./shares.js";
import { drawFiles, drawJudge, drawTake, drawVerdict } from "./take.js";

let state = null;
let options = {};
let answer = null;
let pins = [];
let files = [];
let looking = 0;
let outdated = null; // why the newest wish has no result, if it has none
let refitting = false; // whether the newest wish has been waited for a while
let late;
const LATE = 700; // milliseconds

const live = new Live({
  answered: (newest) => { answer = newest; files = []; outdated = null; fail(null); clearResults(); drawAnswer(); },
  failed: (problem) => { outdated = problem.message; fail(problem); drawAnswer(); },
  busy: (is) => {
    byId("see").setAttribute("aria-busy", String(is));
    clearTimeout(late);
    if (is) late = setTimeout(() => { refitting = true; drawAnswer(); }, LATE);
    else if (refitting) { refitting = false; drawAnswer(); }
  },
});

function fail(problem) {
  byId("problem").textContent = problem ? withMerging([problem.message]).join(" ") : "";
  byId("problem").hidden = !problem;
}

// Do something, and say on the page if it fails.
async function attempt(act) {
  try {
    return await act();
  } catch (problem) {
    fail(problem);
    return null;
  }
}

const room = (id) => Math.max(240, byId(id).clientWidth - 32);
const NOT_READY = "Choose the outcome and the groups above first.";
const isReady = () => Boolean(options.outcome) && options.protected.length > 0;

// ---------------------------------------------------------------- opening

async function opening(what, text) {
  fail(null);
  drawOpenPart(text);
  try {
    show(await what());
    byId("look").scrollIntoView();
  } catch (problem) {
    fail(problem);
    await get("/api/state").then((newest) => { state = { ...state, unread: newest.unread, forms: newest.forms }; }, () => {});
  }
  drawOpenPart();
}

function drawOpenPart(busy) {
  redraw(byId("open"), () => drawOpen(byId("open"), {
    examples: state.examples, most: state.most_bytes, suffixes: state.suffixes, opened: Boolean(state.table), busy,
    unread: state.unread, forms: state.forms, readAgain,
    openFile: (file) => opening(() => sized(file) && upload(file), `Reading ${file.name}…`),
    openDemo: (name) => opening(() => post("/api/demo", { name }), "Reading the example…"),
  }));
}

const readAgain = (number, options) => opening(() => post("/api/read", { table: number, options }), "Reading the file again…");

function sized(file) {
  if (file.size <= state.most_bytes) return true;
  throw new Error("The file is too large for the page; start the app with it instead: fairmaxent app FILE");
}

function show(newest) {
  if (state?.table?.number !== newest.table?.number) forgetMoves();
  state = { examples: state?.examples, most_bytes: state?.most_bytes, ...newest };
  const rates = (state.forms?.rates ?? []).map((one) => [one.name, one.optional ? null : one.start]);
  options = { favourable: [], protected: [], ...Object.fromEntries(rates), random_state: 0, ...(state.options ?? {}) };
  answer = state.answer ?? null;
  outdated = null;
  pins = state.pins ?? [];
  files = state.files ?? [];
  for (const id of ["look", "live", "take", "rake", "parts"]) byId(id).hidden = !state.table;
  byId("title").textContent = state.table ? state.table.title : "Turn a biased table into a fair one.";
  document.title = state.table ? `${state.table.title} – fairmaxent` : "fairmaxent";
  if (!state.table) return;
  drawLookPart();
  drawRest();
  clearResults();
  drawRake(byId("rake"), { state, rake });
  for (const job of state.jobs ?? []) resume(job);
  if ((!answer || state.outdated) && isReady()) live.ask(state.table.number, options);
}

// ---------------------------------------------------------------- changing

// Every change of a wish or a role; `look`: the table is looked at again, `draw`: other controls depend on it.
function change(values, { look = false, draw = false, guess = false } = {}) {
  options = { ...options, ...values };
  Object.assign(shared, options);
  if (draw) drawRest();
  if (look) lookAgain(guess);
  if (isReady()) live.ask(state.table.number, options);
  else if (answer) { outdated = NOT_READY; drawAnswer(); }
}

// The controls read the newest wish even if they were drawn before.
const shared = {};

function changeRoles(values) {
  const protectedNow = values.protected ?? options.protected;
  const others = (columns) => Object.fromEntries(Object.entries(columns ?? {}).filter(([name]) =>
    !protectedNow.includes(name) && name !== (values.outcome ?? options.outcome)));
  const fresh = values.protected || values.outcome
    ? { target: null, ...singleRates(state.forms, options),
        within: others(options.within), also: others(options.also), equal_means: values.outcome ? null : options.equal_means,
        groups: protectedNow.length > 1 ? options.groups ?? "each" : "each" } : {};
  change({ ...values, ...fresh }, { look: true, draw: true, guess: values.outcome !== undefined });
  drawLookPart();
}

// `guess`: the outcome is another one, so its good level is guessed.
async function lookAgain(guess) {
  const number = ++looking;
  try {
    const { look } = await post("/api/look", { table: state.table.number, options });
    if (number !== looking) return;
    state = { ...state, look };
    if (guess && look.favourable.length) change({ favourable: look.favourable });
    drawLookPart();
  } catch (problem) {
    if (number === looking) fail(problem);
  }
}

// ---------------------------------------------------------------- drawing

function drawLookPart() {
  const part = byId("look");
  redraw(part, () => drawLook(part, { state, options, change: changeRoles, again: drawLookPart, readAgain, width: room("look") }));
}

function drawRest() {
  for (const name of Object.keys(shared)) delete shared[name];
  Object.assign(shared, options);
  const ask = byId("ask"), take = byId("take");
  redraw(ask, () => {
    if (isReady()) drawAsk(ask, { state, options: shared, change, actions: { draft, spend, again: drawRest } });
    else ask.replaceChildren(h("h2", { id: "ask-title" }, "Ask"), h("p", null, NOT_READY));
  });
  if (!byId("answer")) drawSeeFrame();
  redraw(take, () => drawTake(take, { state, options: shared, change, make: () => make(), files }));
  drawAnswer();
}

function drawSeeFrame() {
  byId("see").replaceChildren(h("h2", { id: "see-title" }, "See"),
    h("p", { id: "spoken", class: "soft", role: "status" }),
    h("p", { id: "outdated", class: "warnings", hidden: true }),
    h("div", { id: "pins" }),
    h("div", { id: "answer" }),
    h("p", { class: "buttons" },
      h("button", { type: "button", id: "estimate", onclick: () => slow("estimate") }, "Estimate what a model will do"),
      h("button", { type: "button", id: "trade-off", onclick: () => slow("trade-off") }, "Show the trade-off"),
      h("button", { type: "button", id: "pin", onclick: pin }, "Pin this scenario")),
    h("div", { id: "slow" }), h("div", { id: "curves" }), h("div", { id: "judge" }), h("div", { id: "verdict" }));
  drawJudge(byId("judge"), () => slow("evaluate"));
}

// What slow work showed about a fit goes with it.
function clearResults() {
  for (const id of ["curves", "verdict"]) byId(id).replaceChildren();
}

function drawAnswer() {
  const isThere = Boolean(answer), isOld = outdated !== null || refitting;
  for (const id of ["estimate", "trade-off", "evaluate", "pin", "make"]) byId(id).disabled = !isThere || isOld;
  byId("outdated").hidden = byId("not-made").hidden = !isOld || !isThere;
  byId("outdated").textContent = refitting ? "Fitting again: until that is done, what you see here is the earlier result."
    : `Out of date: what you see here is an earlier result. There is none for what you asked for last. ${outdated}`;
  byId("not-made").textContent = refitting ? "The newest result is on its way; you can take it when it is there."
    : "There is no result for what you asked for last, so there is nothing to take yet.";
  byId("answer").classList.toggle("outdated", isOld);
  byId("spoken").textContent = isThere && !isOld ? `Fitted in ${duration(answer.seconds)}.` : "";
  if (!isThere) return byId("answer").replaceChildren(h("p", { class: "soft" }, "There is no result yet."));
  redraw(byId("answer"), () => drawSee(byId("answer"), { answer, width: room("see") }));
  if (isOld) clearResults();
  byId("judge").hidden = (answer.scenario.mode ?? "rows") !== "rows" || Boolean(answer.scenario.epsilon);
  drawPinsPart();
  byId("command").textContent = isOld ? "" : answer.command;
  byId("python").textContent = isOld ? "" : answer.python;
  drawFiles(isOld ? [] : files);
}

// ---------------------------------------------------------------- slow work

// Work that is begun, or that a page before this one has begun (`job`), with its progress.
async function watched(kind, target, values, job) {
  const bar = h("progress", { max: 1, "aria-label": kind });
  const stage = h("span", { role: "status" }, "starting");
  let number = null;
  target.replaceChildren(h("p", { class: "working" }, bar, " ", stage, " ",
    h("button", { type: "button", onclick: () => number !== null && stop(number) }, "Stop")));
  try {
    const watch = (running) => {
      number = running.number;
      bar.value = running.share;
      if (running.stage && stage.textContent !== running.stage) stage.textContent = running.stage;
    };
    const result = await (job ? follow(job, watch) : work(kind, watch, values));
    target.replaceChildren(...(result === null ? [h("p", { role: "status" }, "Stopped.")] : []));
    return result;
  } catch (problem) {
    target.replaceChildren(h("p", { class: "warnings", role: "status" }, problem.message));
    throw problem;
  }
}

const draft = () => attempt(async () => (await post("/api/draft", { table: state.table.number, options })).text);
const spend = () => live.ask(state.table.number, options, true);

// Wait for the fit that is under way; only the result of the newest wish is worked with.
async function isCurrent() {
  await live.settled();
  if (outdated === null) fail(null);
  return outdated === null;
}

async function slow(kind, values, job) {
  if (!job && !await isCurrent()) return;
  await attempt(async () => {
    const result = await watched(kind, byId("slow"), values, job);
    if (result === null) return;
    if (kind === "trade-off") return drawTradeOff(byId("curves"), result, room("see"));
    if (kind === "evaluate") return drawVerdict(byId("verdict"), result);
    ({ answer, pins } = result);
    drawAnswer();
  });
}

async function make(job) {
  if (!job && !await isCurrent()) return;
  await attempt(async () => {
    const result = await watched("take", byId("making"), {}, job);
    if (result === null) return;
    files = result.files;
    drawFiles(files);
    byId("files").querySelector("a")?.focus();
  });
}

async function rake(values, job) {
  fail(null);
  await attempt(async () => {
    const result = await watched("rake", byId("raking"), { table: state.table.number, ...values }, job);
    if (result !== null) drawRaked(byId("raked"), result);
  });
}

// Go on with what was under way when the page was loaded.
function resume(job) {
  if (job.kind === "take") make(job);
  else if (job.kind === "rake") rake({}, job);
  else slow(job.kind, {}, job);
}

async function changePins(path, values) {
  await attempt(async () => { ({ pins } = await post(path, values)); drawPinsPart(); });
}

async function pin() {
  if (!await isCurrent()) return;
  await changePins("/api/pin");
  byId("pins").scrollIntoView({ block: "nearest" });
}

const drawPinsPart = () => redraw(byId("pins"), () => drawPins(byId("pins"), pins, answer, { restore: putBack,
  rename: (number, name) => changePins("/api/rename", { number, name }), unpin: (number) => changePins("/api/unpin", { number }) }));

// Ask again for all that was asked for then, and for nothing else; the server still has the result.
function putBack(scenario) {
  options = { ...scenario };
  forgetMoves();
  byId("ask").replaceChildren(); // so that what is asked for is unfolded, even if it was folded before
  change({}, { look: true, draw: true });
  drawLookPart();
}

// ---------------------------------------------------------------- starting

let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => { if (state?.table) { drawLookPart(); drawAnswer(); } }, 150);
});

addEventListener("pagehide", () => sessionStorage.setItem("scrolled", String(scrollY)));
const scrolled = Number(sessionStorage.getItem("scrolled"));

await attempt(async () => {
  show(await get("/api/first"));
  drawOpenPart(state.starting ? "Starting…" : "");
  document.body.dataset.ready = "yes";
  if (state.starting) {
    show(await get("/api/state"));
    drawOpenPart();
  }
  if (state.table && scrolled) scrollTo(0, scrolled); // as before a reload
  if (state.problem) fail(new Error(state.problem));
});
