// @ts-check
// What the page asks its server; every failure is an Error with a sentence for people.

export class Superseded extends Error {}
// What a page asked for is no longer the session's.
export class Stale extends Error {}

const GONE =
  "The app is no longer running. Start it again with 'fairmaxent app', and open the address that it prints.";

// The page's own secret. Cookies go to every port of this computer; what a page keeps does not.
const secret = () => localStorage.getItem("page") ?? "";
export const fileAddress = (folder, name) => `/files/${folder}/${encodeURIComponent(name)}?page=${secret()}`;

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
    throw new Error(answer.status === 403 ? "Open the address that 'fairmaxent app' printed." : GONE);
  }
  if (values.superseded) throw new Superseded();
  if (!answer.ok) throw new (answer.status === 409 ? Stale : Error)(values.error ?? GONE);
  return values;
}

export const get = (path) => ask(path, {});
export const post = (path, values) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values ?? {}) });
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

// At most one fit is under way while the hand moves; the newest wish goes next, and one that takes long is replaced at
// once, because the server gives up an older fit for a newer one. When the hand rests, the same is asked once more, for
// the command that repeats it.
const LONG = 800, REST = 200; // milliseconds

export class Live {
  sent = 0;
  shown = 0;
  ends = [];
  /** @type {any} */
  since = null; // when the fit that is under way was sent
  timer;
  waiting; // the newest wish
  resting; // the wish whose hand rests, and the timer until that is sure

  constructor(acts) {
    this.acts = acts;
  }

  // Wait until no fit is under way, and the hand rests.
  async settled() {
    if (this.resting) this.rest();
    if (this.since !== null) await new Promise((resolve) => this.ends.push(resolve));
  }

  rest() {
    const wish = this.resting.wish;
    this.ask(wish.table, wish.options);
  }

  ask(table, options, { spend = false, moving = false } = {}) {
    clearTimeout(this.resting?.timer);
    this.resting = null;
    this.waiting = { table, options, spend, moving };
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
    this.acts.busy(true);
    try {
      const { answer } = await post("/api/fit", wish);
      if (number > this.shown) {
        this.shown = number;
        this.acts.answered(answer, wish.moving);
      }
    } catch (problem) {
      wish.moving = false;
      if (!(problem instanceof Superseded) && number === this.sent) this.acts.failed(problem);
    }
    if (number !== this.sent) return;
    this.since = null;
    if (this.waiting) this.send();
    else if (wish.moving) this.resting = { wish, timer: setTimeout(() => this.rest(), REST) };
    else {
      this.acts.busy(false);
      for (const end of this.ends.splice(0)) end();
    }
  }
}
