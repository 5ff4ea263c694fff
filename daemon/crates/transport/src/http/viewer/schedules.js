// Schedules: their next times, and the latest runs.
import { el, empty, failure, fitted, link, plain } from "./dom.js";
import { chip, count, shortFolder, when } from "./format.js";
import { repeat } from "./poll.js";
import { call } from "./rpc.js";

const OUTCOMES = { started: "running" };

export class Schedules {
  constructor() {
    this.body = el("div", "page-body", el("p", "faint", "Loading"));
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Schedules")), this.body);
  }

  begin() {
    this.stop = repeat(() => this.load());
  }

  close() {
    this.stop?.();
  }

  async load() {
    try {
      const answer = await call("schedule.list", {});
      const all = answer.data;
      const seen = JSON.stringify(all) + Math.floor(Date.now() / 60_000);
      if (seen === this.seen) return;
      this.seen = seen;
      this.body.replaceChildren(...(all.length ? all.map((one) => this.card(one)) : [empty("No schedules", "In a terminal, cairn schedule add 'every weekday 7:00' 'summarise what changed' adds one.")]));
    } catch (error) {
      if (!this.seen) this.body.replaceChildren(failure(error, () => this.load()));
      throw error;
    }
  }

  card({ when: words, timezone, job, nextAt, history = [], scheduleId, cron }) {
    const facts = [["When", el("span", "", plain(words === cron ? cron : `${words} (${cron})`), ` in ${plain(timezone)}`)],
      ["Next", nextAt ? el("span", "", new Date(nextAt).toLocaleString(), " ", when(nextAt)) : el("span", "", "never again")],
      ["Folder", el("code", "path", plain(shortFolder(job.root)))], ["Mode", el("span", "", job.policy?.mode ?? "ask")]];
    if (job.until) facts.push(["Until", el("code", "", fitted(job.until, 200))]);
    const runs = history.slice(0, 5).map((entry) => el("li", "entry-line", chip(OUTCOMES[entry.outcome] ?? "idle", plain(entry.outcome)),
      entry.sessionId ? link(`/session/${entry.sessionId}`, "", new Date(entry.at).toLocaleString()) : el("span", "", new Date(entry.at).toLocaleString()),
      el("span", "faint", [entry.reason && plain(entry.reason), entry.missed > 1 && count(entry.missed, "missed time")].filter(Boolean).join(", "))));
    return el("section", "card schedule", el("h2", "card-heading", fitted(job.request, 200)), el("dl", "facts", ...facts.flatMap(([term, value]) => [el("dt", "", term), el("dd", "", value)])),
      runs.length ? el("ul", "plain-list", ...runs) : el("p", "faint", "It has not run yet."),
      el("p", "faint", "Change it in a terminal: ", el("code", "", `cairn schedule remove ${scheduleId}`)));
  }
}
