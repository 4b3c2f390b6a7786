// @ts-check
// Elements made from data: every name and value becomes a text node, never markup. Preact draws what has changed.

import { Component as Base, h } from "./preact.js";

export { h };
export class Component extends Base {
  constructor(props) {
    super(props);
    /** @type {any} */
    this.state = {};
  }
}
export const byId = (id) => document.getElementById(id);

// Records by column: a column may be called "constructor", which every object has.
export const has = (record, name) => Object.hasOwn(record ?? {}, name);
export const at = (record, name) => (has(record, name) ? record[name] : undefined);

let numbers = 0;
export const newId = (stem) => `${stem}-${++numbers}`;

// A table of texts; the columns in `right` hold numbers, the one `wide` long texts.
export function table(caption, heads, rows, right = [], wide = -1) {
  const side = (index) => (right.includes(index) ? "n" : index === wide ? "levels" : null);
  const body = rows.map((row) =>
    h("tr", row.className ? { class: row.className } : null, row.map((cell, index) =>
      index === 0 ? h("th", { scope: "row" }, cell) : h("td", { class: side(index) }, cell))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", null, caption),
      h("thead", null, h("tr", null, heads.map((head, index) => h("th", { scope: "col", class: side(index) }, head)))),
      h("tbody", null, body)));
}

// A part of the page, with its title, which is not drawn where the part speaks for itself.
export const section = (id, title, isQuiet, ...parts) => h("section", { id, "aria-labelledby": `${id}-title` },
  h("h2", { id: `${id}-title`, class: isQuiet ? "quiet" : null }, title), parts);
export const soft = (...words) => h("p", { class: "soft" }, ...words);
export const button = (text, act, more = {}) => h("button", { type: "button", onclick: act, ...more }, text);

// Opened once there is something in it; whoever closes it is not contradicted.
export class Folded extends Component {
  render({ title, isOpen, kind, children }) {
    this.was = this.was || Boolean(isOpen);
    return h("details", { open: this.was, class: kind }, h("summary", null, title), children);
  }
}
export const folded = (title, isOpen, ...parts) => h(Folded, { title, isOpen }, ...parts);
