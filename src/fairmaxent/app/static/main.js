// @ts-check
// The page: every part is drawn from the one store whenever that changes.

import { get } from "./api.js";
import { askPart } from "./ask.js";
import { bar, unready } from "./bar.js";
import { button, byId, h, visible } from "./dom.js";
import { withMerging } from "./format.js";
import { alike } from "./look.js";
import { morePart } from "./more.js";
import { detailPart } from "./numbers.js";
import { dropAnywhere, openPart, unreadPart } from "./opening.js";
import { render } from "./preact.js";
import { seePart } from "./see.js";
import { attempt, fail, isChanged, isReady, onChange, readAgain, set, show,
  store } from "./store.js";
import { actions, againPart, takePart } from "./take.js";

const main = /** @type {HTMLElement} */ (byId("main"));
const top = /** @type {HTMLElement} */ (byId("bar"));
const BESIDE = 1000; // the width from which the question stands beside the slider
const SIDE = 264; // and its own

function problem() {
  const { problem: known, state } = store, file = state?.table;
  const again = () => readAgain(file.number, file.reading);
  return h("div", { id: "problem", class: "problem", role: "alert", hidden: !known }, known && [
    h("span", null, withMerging([known.message]).join(" ")), " ",
    isChanged(known) && file && button("Read the file again", again),
    button("Close", () => set({ problem: null }))]);
}

const busy = () => h("p", { id: "busy", role: "status", class: "soft" }, store.busy);

// Without a table, there is a place to drop one, and what this is.
const start = () => h("section", { id: "start" },
  h("h1", null, "Turn a biased table into a fair one"),
  h("p", null, "Open a table about people: the page says who gets the good outcome how often, " +
    "what equal shares would change for whom, and what that costs."),
  openPart());

function live() {
  const edge = parseFloat(getComputedStyle(main).paddingLeft);
  const width = Math.max(280, main.clientWidth - 2 * edge);
  const isBeside = innerWidth >= BESIDE;
  if (!isReady()) return [unready(), morePart()];
  return [
    h("div", { id: "live", key: "live" }, seePart(width),
      h("div", { class: isBeside ? "beside" : "stacked" },
        askPart(isBeside ? width - SIDE : width), actions())),
    againPart(), detailPart(), morePart(), takePart()];
}

function draw() {
  const { state } = store, isThere = Boolean(state?.table);
  document.title = isThere ? `${visible(state.table.title)} – fairmaxent` : "fairmaxent";
  render(state && bar(), top);
  render([problem(), state && busy(), state && unreadPart(),
    isThere ? [Object.keys(state.look.alike).map(alike), live()] : state && start()], main);
}

// ---------------------------------------------------------------- starting

onChange(draw);
dropAnywhere();
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(draw, 150);
});
addEventListener("pagehide", () => sessionStorage.setItem("scrolled", String(scrollY)));
// back to a page that may be old
addEventListener("pageshow", (event) => event.persisted && location.reload());
const scrolled = Number(sessionStorage.getItem("scrolled"));

// The first address brings the page's secret behind the #.
const brought = /^#page=(\w+)$/.exec(location.hash);
if (brought) {
  localStorage.setItem("page", brought[1]);
  history.replaceState(null, "", "/");
}

await attempt(async () => {
  const first = await get("/api/first");
  show(first);
  set({ busy: first.starting ? "Starting…" : "" });
  document.body.dataset.ready = "yes";
  if (first.starting) {
    show(await get("/api/state"));
    set({ busy: "" });
  }
  if (store.state.table && scrolled) scrollTo(0, scrolled); // as before a reload
  if (store.state.problem) fail(new Error(store.state.problem));
});
