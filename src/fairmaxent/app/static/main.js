// @ts-check
// The page: every part is drawn from the one store whenever that changes.

import { get } from "./api.js";
import { askPart, morePart } from "./ask.js";
import { button, byId, h } from "./dom.js";
import { withMerging } from "./format.js";
import { lookPart } from "./look.js";
import { openPart } from "./opening.js";
import { render } from "./preact.js";
import { detailPart, seePart } from "./see.js";
import { attempt, fail, isChanged, onChange, readAgain, set, show, store } from "./store.js";
import { actions, takePart } from "./take.js";

const main = /** @type {HTMLElement} */ (byId("main"));

function problem() {
  const { problem: known, state } = store, file = state?.table;
  return h("div", { id: "problem", class: "problem", role: "alert", hidden: !known }, known && [
    h("span", null, withMerging([known.message]).join(" ")), " ",
    isChanged(known) && file && button("Read the file again", () => readAgain(file.number, file.reading)),
    button("Close", () => set({ problem: null }), { class: "close" })]);
}

function draw() {
  const { state } = store;
  const isThere = Boolean(state?.table), width = Math.max(240, main.clientWidth - 66);
  document.title = isThere ? `${state.table.title} – fairmaxent` : "fairmaxent";
  render([problem(), state && openPart(), isThere && [lookPart(),
    h("div", { id: "live", key: "live" }, seePart(), actions(), askPart(width)),
    takePart(), detailPart(), morePart()]], main);
}

// ---------------------------------------------------------------- starting

onChange(draw);
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(draw, 150); });
addEventListener("pagehide", () => sessionStorage.setItem("scrolled", String(scrollY)));
addEventListener("pageshow", (event) => event.persisted && location.reload()); // back to a page that may be old
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
