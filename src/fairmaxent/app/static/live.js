// Live fits: at most one is under way while the hand moves; the newest wish goes next, and one that takes long is
// replaced at once, because the server gives up an older fit for a newer one.

import { Superseded, post } from "./api.js";

const LONG = 800; // milliseconds

export class Live {
  constructor({ answered, failed, busy }) {
    Object.assign(this, { answered, failed, busy });
    this.sent = 0;
    this.shown = 0;
    this.since = null;
    this.waiting = null;
    this.ends = [];
  }

  // Wait until no fit is under way.
  async settled() {
    if (this.since !== null) await new Promise((resolve) => this.ends.push(resolve));
  }

  ask(table, options, spend = false) {
    this.waiting = { table, options, spend };
    if (this.since === null) this.send();
    else if (performance.now() - this.since > LONG) this.send();
    else {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.waiting && this.send(), LONG - (performance.now() - this.since));
    }
  }

  async send() {
    const wish = this.waiting;
    const number = ++this.sent;
    this.waiting = null;
    this.since = performance.now();
    this.busy(true);
    try {
      const { answer } = await post("/api/fit", wish);
      if (number > this.shown) {
        this.shown = number;
        this.answered(answer);
      }
    } catch (problem) {
      if (!(problem instanceof Superseded) && number === this.sent) this.failed(problem);
    }
    if (number !== this.sent) return;
    this.since = null;
    if (this.waiting) this.send();
    else {
      this.busy(false);
      for (const end of this.ends.splice(0)) end();
    }
  }
}
