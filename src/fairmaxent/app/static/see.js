// @ts-check
// See: the answer on the page, a tab for each column of groups, and what it is waiting for.

import { alongside, headline, peopleOf, rateTold, verdicts, warnings } from "./answer.js";
import { h } from "./dom.js";
import { NOT_READY, isOld, isReady, lookAt, looked, store } from "./store.js";

const isGood = () => (store.options.favourable?.length ?? 0) > 0;

export function seePart(width) {
  const { answer } = store;
  if (!answer) {
    return h("section", { id: "see", "aria-label": "What happens to people" },
      h("h1", null, isReady() ? "Fitting…" : NOT_READY));
  }
  const { all, grouping } = looked(), { see } = answer;
  return h("section", { id: "see", "aria-label": "What happens to people" }, outOfDate(),
    h("div", { id: "answer", class: isOld() ? "outdated" : null },
      h("div", { role: "status", id: "headline" }, headline(see, grouping, isGood()),
        alongside(see, all, grouping)),
      warnings(see), tabs(all, grouping), notice(), verdicts(see),
      h("div", { role: "tabpanel", id: "people", "aria-label": `People, by ${grouping.name}` },
        peopleOf(grouping, width))));
}

function outOfDate() {
  const { answer, outdated, refitting } = store;
  const text = refitting
    ? "Fitting again: until that is done, what you see here is the earlier result."
    : "Out of date: what you see here is an earlier result. There is none for what you asked " +
      `for last. ${outdated}`;
  return h("p", { id: "outdated", class: "warnings", hidden: !isOld() || !answer }, text);
}

const notice = () => h("p", { id: "notice", class: "notice", role: "status",
  hidden: !store.notice }, store.notice);

// One tab for each column of groups, with its rate before and after.
function tabs(all, chosen) {
  const choose = (place) => {
    lookAt({ tab: all[(place + all.length) % all.length].name });
    /** @type {HTMLElement | null} */ (document.querySelector("[role=tab][aria-selected=true]"))
      ?.focus();
  };
  const keys = { ArrowRight: 1, ArrowLeft: -1 };
  const tab = (grouping, index) => {
    const { name } = grouping, isChosen = grouping === chosen;
    const numbers = rateTold(store.answer.see, grouping);
    return h("button", { type: "button", role: "tab", key: name, "aria-selected": String(isChosen),
      "aria-controls": "people", tabindex: isChosen ? 0 : -1,
      onclick: () => lookAt({ tab: name }),
      onkeydown: ({ key }) => keys[key] && choose(index + keys[key]) },
    name, " ", h("small", null, numbers));
  };
  return h("div", { class: "tabs", role: "tablist", "aria-label": "Columns of groups" },
    all.map(tab));
}
