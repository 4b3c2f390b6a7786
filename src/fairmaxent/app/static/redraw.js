// Drawing a part again without losing the focus, what is being typed, and what is unfolded.

// Which control of a part has the focus, by its place, so that drawing the part again does not lose it.
const controls = (part) => [...part.querySelectorAll("input, select, textarea, button, summary, a, [role=slider]")];
const focusIn = (part) => controls(part).indexOf(document.activeElement);

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
  const index = focusIn(part);
  const typed = index >= 0 && isTyped(document.activeElement) ? { type: document.activeElement.type, value: document.activeElement.value } : null;
  const before = new Map([...part.querySelectorAll("details")].map((one) => [title(one), one.open]));
  draw();
  for (const one of part.querySelectorAll("details")) one.open = before.get(title(one)) ?? one.open;
  restore(part, index, typed);
}
