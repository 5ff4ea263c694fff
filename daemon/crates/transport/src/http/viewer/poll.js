// What pages repeat while they are visible: the data of the page that is open, and the pending approvals, which the daemon's notifications refresh.
import { failure } from "./dom.js";
import { call, on } from "./rpc.js";

const INTERVAL_MS = 2_000;
/** An answer that takes long is requested less often: at most this share of the time is spent on it. */
const SHARE = 10;
const MAX_INTERVAL_MS = 30_000;
/** Pending approvals are read this often without a notification: a page that falls behind misses some. */
export const NOTIFIED_MS = 30_000;

/** Pending approvals, newest first. */
export let approvals = [];
const listeners = new Set();
const tasks = new Set();

/** Runs `act` now and then repeatedly; the returned function ends that. */
export function repeat(act, interval = INTERVAL_MS) {
  const task = { act, interval, timer: undefined };
  tasks.add(task);
  run(task);
  return () => {
    clearTimeout(task.timer);
    tasks.delete(task);
  };
}

async function run(task) {
  clearTimeout(task.timer);
  if (task.busy) return;
  task.busy = true;
  const began = performance.now();
  await Promise.resolve(document.hidden ? undefined : task.act()).catch(() => {});
  task.busy = false;
  const pause = Math.min(MAX_INTERVAL_MS, Math.max(task.interval, (performance.now() - began) * SHARE));
  if (tasks.has(task)) task.timer = setTimeout(() => run(task), pause);
}

/** A page whose body has an answer that is requested repeatedly, and is painted when it differs from the last one. */
export class Repeated {
  begin() {
    this.stop = repeat(() => this.load());
  }

  close() {
    this.stop?.();
  }

  /** The part of an answer whose change is painted; times are relative, so a minute is a change. */
  identity(answer) {
    return JSON.stringify(answer) + Math.floor(Date.now() / 60_000);
  }

  async load() {
    try {
      const answer = await this.request();
      const seen = this.identity(answer);
      if (seen === this.seen) return;
      this.seen = seen;
      // The focus stays where it was.
      const focus = document.activeElement?.dataset?.row;
      this.body.replaceChildren(...this.sections(answer));
      if (focus) this.body.querySelector(`[data-row="${CSS.escape(focus)}"]`)?.focus();
    } catch (error) {
      if (!this.seen) this.body.replaceChildren(failure(error, () => this.load()));
      throw error;
    }
  }
}

/** Repeats everything at once: after a reconnection, and when the page becomes visible. */
export function refresh() {
  for (const task of tasks) run(task);
}
document.addEventListener("visibilitychange", () => document.hidden || refresh());

/** Subscribes to the pending approvals; the returned function unsubscribes. */
export function watchApprovals(listen) {
  listeners.add(listen);
  listen(approvals);
  return () => listeners.delete(listen);
}

export async function loadApprovals() {
  const { data } = await call("approval.list", {});
  const former = approvals.map((approval) => approval.approvalId).join();
  approvals = data.filter((approval) => !approval.resolution);
  if (former !== approvals.map((approval) => approval.approvalId).join()) for (const listen of listeners) listen(approvals);
}

let isLoading = false;
let isStale = false;

/** Loads the list again; notifications that come meanwhile cause one further request. */
async function reload() {
  isStale = true;
  if (isLoading || document.hidden) return;
  isLoading = true;
  while (isStale) {
    isStale = false;
    await loadApprovals().catch(() => {});
  }
  isLoading = false;
}
on.approval = reload;

/** Removes an approval that was answered, without waiting for the next list. */
export function removeApproval(id) {
  approvals = approvals.filter((approval) => approval.approvalId !== id);
  for (const listen of listeners) listen(approvals);
}
