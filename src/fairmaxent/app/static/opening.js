// @ts-check
// Open: a file by dropping or choosing it, or an example with one click; and how the file becomes a table.

import { Component, button, folded, h, newId, soft } from "./dom.js";
import { form } from "./form.js";
import { size } from "./format.js";
import { openDemo, openFile, readAgain, store } from "./store.js";

class Drop extends Component {
  constructor(props) {
    super(props);
    this.id = newId("file");
  }
  render({ state }) {
    const over = (event) => { event.preventDefault(); this.setState({ isOver: true }); };
    return h("div", { class: this.state.isOver ? "drop over" : "drop", ondragover: over, ondragenter: over,
      ondragleave: () => this.setState({ isOver: false }),
      ondrop: (event) => {
        event.preventDefault();
        this.setState({ isOver: false });
        if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
      } },
    h("label", { for: this.id }, "Choose a table"),
    h("input", { type: "file", id: this.id, class: "file", accept: state.suffixes,
      onchange: (event) => event.target.files.length && openFile(event.target.files[0]) }),
    soft(`or drop it here: ${state.formats ?? "a table"}, up to ${size(state.most_bytes)}.`));
  }
}

export function openPart() {
  const { state, busy } = store;
  const parts = [h(Drop, { state }), h("p", { class: "examples" }, h("span", { class: "soft" }, "Or try an example: "),
    Object.entries(state.examples ?? {}).map(([name, title]) => button(title, () => openDemo(name)))),
  state.unread && h(Reading, { file: state.unread, key: state.unread.number })];
  const title = (text) => h("h2", { id: "open-title" }, text);
  const isTried = state.table?.is_first; // the example that the page begins with
  return h("section", { id: "open", "aria-labelledby": "open-title" }, state.table && !isTried
    ? folded(title("Open another table"), state.unread, parts) : [title("Open a table"), parts],
  h("p", { role: "status", class: "soft" }, busy));
}

// What was chosen for a file, and not yet sent, is kept here.
export class Reading extends Component {
  constructor(props) {
    super(props);
    this.state = { values: { ...props.file.reading } };
  }
  render({ file }, { values }) {
    const given = () => Object.fromEntries(Object.entries(this.state.values).filter(([, value]) => value !== null));
    return folded("How the file is read", Object.keys(file.reading).length > 0,
      soft(`What is left as it is, is detected in ${file.name}.`),
      form(store.state.forms.reading, values,
        (changed) => this.setState({ values: { ...this.state.values, ...changed } })),
      h("p", null, button("Read the file again", () => readAgain(file.number, given()))));
  }
}
