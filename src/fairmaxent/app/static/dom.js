// Elements made from data: every name and value becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const refill = (element, ...children) => { element.replaceChildren(); fill(element, null, children); };
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

// ---------------------------------------------------------------- drawing again

// Which control of a part has the focus, by its place, so that drawing the part again does not lose it.
const controls = (part) => [...part.querySelectorAll("input, select, textarea, button, summary, a, [role=slider]")];

// Give the focus back, and what was being typed; leaving the field then counts as a change.
function restore(part, index, typed) {
  const control = index >= 0 ? controls(part)[index] : null;
  control?.focus();
  if (typed === null || control?.type !== typed.type || control.value === typed.value) return;
  control.value = typed.value;
  control.addEventListener("blur", () => control.dispatchEvent(new Event("change")), { once: true });
}
const isTyped = (control) => control?.matches("input[type=text], input[type=number], textarea");

// Draw a part again, with the same focus, and with open what was open.
export function redraw(part, draw) {
  const title = (one) => one.querySelector("summary").textContent.replace(/\d+/g, "");
  const index = controls(part).indexOf(document.activeElement);
  const typed = index >= 0 && isTyped(document.activeElement) ? { type: document.activeElement.type, value: document.activeElement.value } : null;
  const before = new Map([...part.querySelectorAll("details")].map((one) => [title(one), one.open]));
  draw();
  for (const one of part.querySelectorAll("details")) one.open = before.get(title(one)) ?? one.open;
  restore(part, index, typed);
}
