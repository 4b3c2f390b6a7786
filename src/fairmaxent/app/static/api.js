// What the page asks its server; every failure is an Error with a sentence for people.

export class Superseded extends Error {}
export class Stale extends Error {}

const GONE =
  "The app is no longer running. Start it again with 'fairmaxent app', and open the address that it prints.";

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (problem) {
    if (problem.name === "AbortError") throw new Superseded();
    throw new Error(GONE);
  }
  let values;
  try {
    values = await answer.json();
  } catch {
    throw new Error(answer.status === 403 ? "Open the address that 'fairmaxent app' printed." : GONE);
  }
  if (values.superseded) throw new Superseded();
  if (values.stale) throw new Stale(values.error);
  if (!answer.ok) throw new Error(values.error ?? GONE);
  return values;
}

export const get = (path) => ask(path);
export const post = (path, values) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values ?? {}) });
export const upload = (file, as = "table") =>
  ask(`/api/upload?name=${encodeURIComponent(file.name)}&as=${as}`, { method: "POST", body: file });

// Start slow work, and call `watch` until it ends.
export async function work(kind, watch, values = {}) {
  return follow(await post("/api/job", { kind, ...values }), watch);
}

// Watch work that has been started, also before this page was loaded.
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
