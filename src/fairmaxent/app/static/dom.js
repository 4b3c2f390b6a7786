// @ts-check
// Elements made from data: every name and value becomes a text node, never markup. Preact draws
// what has changed.

import { Component as Base, h as element } from "./preact.js";

// Marks that reverse or hide the rest of a line, as in fairmaxent.plain_text: they are shown as
// escapes.
const RANGES = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b" +
  "\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb";
const STEERING = new RegExp(`[${RANGES}]`, "g");
const escaped = (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
export const visible = (text) => text.replace(STEERING, escaped);

function shown(child) {
  if (typeof child === "string") return visible(child);
  return Array.isArray(child) ? child.map(shown) : child;
}
export const h = (kind, props, ...children) => element(kind, props, ...children.map(shown));

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
  const cell = (text, index) => (index === 0
    ? h("th", { scope: "row" }, text)
    : h("td", { class: side(index) }, text));
  const line = (row) => h("tr", row.className ? { class: row.className } : null, row.map(cell));
  const head = (text, index) => h("th", { scope: "col", class: side(index) }, text);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null,
      h("caption", null, caption),
      h("thead", null, h("tr", null, heads.map(head))),
      h("tbody", null, rows.map(line))));
}
// A row of a table that stands out.
export const marked = (className, row) => Object.assign(row, { className });

// A part of the page, with its title.
export const section = (id, title, ...parts) =>
  h("section", { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), parts);
export const soft = (...words) => h("p", { class: "soft" }, ...words);
export const listed = (texts) => h("ul", null, texts.map((text) => h("li", null, text)));
export const button = (text, act, more = {}) =>
  h("button", { type: "button", onclick: act, ...more }, text);

// Opened once there is something in it; whoever closes it is not contradicted.
class Folded extends Component {
  render({ title, isOpen, children }) {
    this.was = this.was || Boolean(isOpen);
    return h("details", { open: this.was }, h("summary", null, title), children);
  }
}
export const folded = (title, isOpen, ...parts) => h(Folded, { title, isOpen }, ...parts);

// A button with what it opens above the page; that is only drawn while it is open.
const WIDTHS = { small: 480, large: 840 };
class Menu extends Component {
  render({ id, label, title, look, kind, draw }) {
    const place = ({ newState, target }) => {
      if (newState !== "open") return;
      const { left, bottom } = /** @type {Element} */ (
        document.querySelector(`.bar [popovertarget="${id}"]`)).getBoundingClientRect();
      const room = document.documentElement.clientWidth - Math.min(innerWidth, WIDTHS[kind]) - 8;
      target.style.left = `${Math.max(8, Math.min(left, room))}px`;
      target.style.top = `${bottom + 8}px`;
      this.setState({ isOpen: true });
    };
    const toggle = ({ newState }) => this.setState({ isOpen: newState === "open" });
    return [
      h("button", { type: "button", popovertarget: id, key: "button", ...look }, label),
      h("div", { id, popover: "auto", class: `menu ${kind}`, key: "menu", role: "dialog",
        "aria-label": title, onbeforetoggle: place, ontoggle: toggle },
      this.state.isOpen && draw()),
    ];
  }
}
export const menu = (id, label, { title, look = {}, kind = "small" }, draw) =>
  h(Menu, { id, label, title, look, kind, draw, key: id });
/** @param {string} id */
export const close = (id) => /** @type {any} */ (byId(id))?.hidePopover?.();
