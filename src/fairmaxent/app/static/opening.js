// @ts-check
// Open: a file by dropping it anywhere or choosing it, or an example with one click; and how the
// file becomes a table.

import { Component, button, folded, h, newId, soft } from "./dom.js";
import { form } from "./form.js";
import { size } from "./format.js";
import { openDemo, openFile, readAgain, store } from "./store.js";

// The whole page is where a file can be dropped; otherwise a browser would leave for it.
export function dropAnywhere() {
  const over = (is) => document.body.classList.toggle("over", is);
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  const hold = (event) => {
    event.preventDefault();
    over(isFile(event));
  };
  for (const kind of ["dragenter", "dragover"]) addEventListener(kind, hold);
  addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    const [file] = event.dataTransfer?.files ?? [];
    if (file && store.state) openFile(file);
  });
}

class Drop extends Component {
  constructor(props) {
    super(props);
    this.id = newId("file");
  }
  render({ state }) {
    const kinds = `${state.formats ?? "a table"}, up to ${size(state.most_bytes)}`;
    const choose = (event) => event.target.files.length && openFile(event.target.files[0]);
    return h("div", { class: "drop" },
      h("label", { for: this.id }, "Choose a table"),
      h("input", { type: "file", id: this.id, class: "file", accept: state.suffixes,
        onchange: choose }),
      soft(`or drop it anywhere on this page: ${kinds}.`));
  }
}

export function openPart() {
  const { state } = store;
  const examples = Object.entries(state.examples ?? {});
  return h("div", { id: "open" }, h(Drop, { state }),
    h("p", { class: "choices" }, h("span", { class: "soft" }, "Or try an example:"),
      examples.map(([name, title]) => button(title, () => openDemo(name)))));
}

// A file that could not be read, and perhaps can be in another way.
export function unreadPart() {
  const { unread } = store.state;
  return unread && h("section", { id: "unread" },
    h(Reading, { file: unread, key: unread.number, isOpen: true }));
}

// What was chosen for a file, and not yet sent, is kept here.
export class Reading extends Component {
  constructor(props) {
    super(props);
    this.state = { values: { ...props.file.reading } };
  }
  render({ file, isOpen }, { values }) {
    const given = () => Object.fromEntries(
      Object.entries(this.state.values).filter(([, value]) => value !== null));
    const change = (changed) => this.setState({ values: { ...this.state.values, ...changed } });
    return folded("How the file is read", isOpen || Object.keys(file.reading).length > 0,
      soft(`What is left as it is, is detected in ${file.name}.`),
      form(store.state.forms.reading, values, change),
      h("p", null, button("Read the file again", () => readAgain(file.number, given()))));
  }
}
