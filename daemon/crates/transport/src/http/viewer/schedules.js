// Schedules: their next times, and the latest runs.
import { el, empty, fitted, link, plain } from "./dom.js";
import { chip, count, shortFolder, when } from "./format.js";
import { Repeated } from "./poll.js";
import { call } from "./rpc.js";

const OUTCOMES = { started: "running" };

export class Schedules extends Repeated {
  constructor() {
    super();
    this.body = el("div", "page-body", el("p", "faint", "Loading"));
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Schedules")), this.body);
  }

  async request() {
    return (await call("schedule.list", {})).data;
  }

  sections(all) {
    return all.length ? all.map((one) => this.card(one)) : [empty("No schedules", "In a terminal, cairn schedule add 'every weekday 7:00' 'summarise what changed' adds one.")];
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
