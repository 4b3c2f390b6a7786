// @ts-check
// What the page asks its server; every failure is an Error with a sentence for people.

export class Superseded extends Error {}
// What a page asked for is no longer the session's.
export class Stale extends Error {}

const GONE = "The app is no longer running. Start it again with 'fairmaxent app', and open the " +
  "address that it prints.";
const OUTSIDE = "Open the address that 'fairmaxent app' printed.";

// The page's own secret. Cookies go to every port of this computer; what a page keeps does not.
const secret = () => localStorage.getItem("page") ?? "";
export const fileAddress = (folder, name) =>
  `/files/${folder}/${encodeURIComponent(name)}?page=${secret()}`;

async function ask(path, options) {
  const headers = { "X-Fairmaxent-Page": secret(), ...options.headers };
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options, headers });
  } catch {
    throw new Error(GONE);
  }
  let values;
  try {
    values = await answer.json();
  } catch {
    throw new Error(answer.status === 403 ? OUTSIDE : GONE);
  }
  if (values.superseded) throw new Superseded();
  if (!answer.ok) throw new (answer.status === 409 ? Stale : Error)(values.error ?? GONE);
  return values;
}

export const get = (path) => ask(path, {});
export const post = (path, values) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify(values ?? {}) });
export const upload = (file) =>
  ask(`/api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

// Watch slow work that has been started until it ends.
export async function follow(started, watch) {
  let job = started;
  while (job.state === "running") {
    watch(job);
    await new Promise((resolve) => setTimeout(resolve, 200));
    job = await get(`/api/job/${job.number}`);
  }
  if (job.state === "failed") throw new Error(job.error);
  return job.state === "done" ? job.result : null;
}
export const stop = (number) => post("/api/stop", { number });

// ---------------------------------------------------------------- live fits

// At most one fit is under way; the newest wish goes next, and one that takes long is replaced at
// once, because the server gives up an older fit for a newer one. What a curve knows already is
// shown without asking, and asked for when the hand rests.
const LONG = 800, REST = 200; // milliseconds

export class Live {
  sent = 0;
  shown = 0;
  ends = [];
  /** @type {any} */
  since = null; // when the fit that is under way was sent
  timer;
  waiting; // the newest wish
  resting; // what is shown and not yet asked for, and the timer until it is

  constructor(acts) {
    this.acts = acts;
  }

  // Wait until no fit is under way, and what is shown was asked for.
  async settled() {
    if (this.resting) this.rest();
    if (this.since !== null) await new Promise((resolve) => this.ends.push(resolve));
  }

  // Show an answer that is known.
  move(table, options, answer) {
    clearTimeout(this.resting?.timer);
    this.waiting = null;
    this.shown = this.sent; // whatever is under way is older
    this.resting = { table, options, timer: setTimeout(() => this.rest(), REST) };
    this.acts.answered(answer, true);
  }

  rest() {
    this.ask(this.resting.table, this.resting.options);
  }

  ask(table, options, { spend = false } = {}) {
    clearTimeout(this.resting?.timer);
    this.resting = null;
    this.waiting = { table, options, spend };
    const left = this.since === null ? 0 : LONG - (performance.now() - this.since);
    clearTimeout(this.timer);
    if (left <= 0) this.send();
    else this.timer = setTimeout(() => this.waiting && this.send(), left);
  }

  async send() {
    const wish = this.waiting;
    const number = ++this.sent;
    this.waiting = null;
    this.since = performance.now();
    this.acts.busy(true);
    try {
      const { answer } = await post("/api/fit", wish);
      if (number > this.shown) {
        this.shown = number;
        this.acts.answered(answer, false);
      }
    } catch (problem) {
      const isNewest = number === this.sent && !this.waiting && !this.resting;
      if (isNewest && !(problem instanceof Superseded)) this.acts.failed(problem);
    }
    if (number !== this.sent) return;
    this.since = null;
    if (this.waiting) this.send();
    else {
      this.acts.busy(false);
      for (const end of this.ends.splice(0)) end();
    }
  }
}
