// The records of a session as a timeline, live, and the result of a replay.
import { diff, scrollable } from "./code.js";
import { button, el, lines, plain } from "./dom.js";
import { Rows } from "./rows.js";
import { call, Follower } from "./rpc.js";

const PAGE = 500;
const MAX_PAGES = 40;
const MAX_TEXT = 200_000;
const NARROW = matchMedia("(max-width: 760px)");

export class Trace {
  constructor(session) {
    this.session = session;
    this.id = session.sessionId;
    this.pages = new Map();
    // Number of records when a page was requested; requesting again is useful only once there are
    // more.
    this.requested = new Map();
    this.busy = new Set();
    // Start time of each command, to show how long its answer took.
    this.startTimes = new Map();
    this.rows = new Rows("trace", NARROW.matches ? 44 : 28, "Records", (at) => this.cells(at), (at) => this.show(at));
    this.detail = scrollable(el("div", "detail"), "Record");
    this.status = el("span", "faint");
    this.node = el("div", "split", this.rows.host, this.detail);
    this.bar = el("div", "bar", this.status, button("Replay and compare", () => this.replay()));
    this.rows.size(session.headSeq);
    this.rows.follow = session.state === "running";
  }

  async begin() {
    this.follower = new Follower(this.id, this.session.headSeq, { take: (record) => this.take(record) });
    this.grow(this.session.headSeq);
    if (this.rows.count) this.rows.choose(this.rows.follow ? this.rows.count - 1 : 0);
    await this.follower.resume();
  }

  close() {
    this.follower?.close();
    this.rows.close();
  }

  take(record) {
    if (!record.seq) return;
    const page = this.pages.get(Math.floor((record.seq - 1) / PAGE));
    if (page && page.length === (record.seq - 1) % PAGE) {
      page.push(record);
      this.note(record);
    }
    this.grow(record.seq);
  }

  grow(head) {
    if (head > this.rows.count) this.rows.size(head);
    this.status.textContent = `${this.rows.count.toLocaleString("en")} records`;
    this.rows.later();
  }

  record(at) {
    const page = Math.floor(at / PAGE);
    const record = this.pages.get(page)?.[at % PAGE];
    if (!record && !this.busy.has(page) && this.requested.get(page) !== this.rows.count) this.fetch(page);
    return record;
  }

  async fetch(page) {
    this.requested.set(page, this.rows.count);
    this.busy.add(page);
    try {
      const { data } = await call("trace.get", { traceId: this.id, after: page * PAGE, limit: PAGE });
      this.pages.set(page, data);
      for (const record of data) this.note(record);
    } catch (error) {
      this.requested.delete(page);
      this.status.textContent = error.message;
      return;
    } finally {
      this.busy.delete(page);
    }
    if (this.pages.size > MAX_PAGES) {
      const oldest = this.pages.keys().next().value;
      this.pages.delete(oldest);
      this.requested.delete(oldest);
    }
    if (this.seen === undefined && Math.floor(this.rows.at / PAGE) === page) this.show(this.rows.at);
    this.rows.later();
  }

  note(record) {
    if (record.kind !== "Cmd") return;
    if (this.startTimes.size > PAGE * MAX_PAGES) this.startTimes.clear();
    this.startTimes.set(record.id, Date.parse(record.ts));
  }

  /** Returns the duration of a finished operation; for other records, the time since the previous one. */
  took(record, at) {
    const evt = record.evt ?? {};
    if (evt.millis !== undefined) return `${evt.millis} ms`;
    const given = evt.type === "started" ? undefined : this.startTimes.get(record.parentId);
    if (given !== undefined) return `${Date.parse(record.ts) - given} ms`;
    const before = at > 0 ? this.pages.get(Math.floor((at - 1) / PAGE))?.[(at - 1) % PAGE] : undefined;
    return before ? `+${Date.parse(record.ts) - Date.parse(before.ts)} ms` : "";
  }

  cells(at) {
    const record = this.record(at);
    if (!record) return undefined;
    const evt = record.evt ?? record.cmd ?? {};
    const tone = evt.type === "error" ? "bad" : /completed|result/.test(evt.type) ? "good" : "mark";
    return [
      el("span", "right faint", String(record.seq)),
      el("span", "faint", new Date(record.ts).toLocaleTimeString([], { hour12: false })),
      el("span", "right faint", this.took(record, at)),
      el("span", "", plain(record.origin?.tool ?? record.origin?.client ?? "")),
      el("span", tone, plain([record.kind === "Cmd" ? "command" : "", evt.type, evt.op ?? evt.name ?? ""].filter(Boolean).join(" "))),
      el("span", "", words(evt)),
    ];
  }

  show(at) {
    this.seen = undefined;
    const record = this.record(at);
    if (!record) return;
    this.seen = at;
    const evt = record.evt ?? {};
    const change = evt.diff ?? evt.approval?.preview?.diff;
    const text = lines(JSON.stringify(record, null, 2));
    this.detail.replaceChildren(
      el("h2", "record-title", plain(`${record.seq} ${evt.type ?? record.cmd?.type ?? ""}`)),
      change ? diff(change) : "",
      el("pre", "", text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n… ${text.length - MAX_TEXT} more characters` : text),
    );
  }

  async replay() {
    // The report stays visible until a record is chosen.
    this.seen = this.rows.at;
    this.detail.replaceChildren(el("p", "faint", "replaying"));
    try {
      const report = await call("trace.replay", { traceId: this.id });
      const first = report.first;
      this.detail.replaceChildren(
        el("p", report.identical ? "good" : "bad",
          report.identical ? `the same: ${report.compared} steps compared` : `different after ${report.compared} steps compared`),
        ...(first
          ? [el("p", "", plain(`${first.what} (record ${first.seq}) at ${first.path || "/"}`)),
             el("pre", "compared", el("span", "cut", lines(`- ${first.recorded}`)), el("span", "add", lines(`+ ${first.now}`)))]
          : []),
      );
      if (first?.seq) this.rows.choose(first.seq - 1, true);
    } catch (error) {
      this.detail.replaceChildren(el("p", "bad", plain(error.message)));
    }
  }

  key(key) {
    if (key === "r") this.replay();
    else if (key === "Enter") this.show(this.rows.at);
    else return this.rows.key(key);
    return true;
  }
}

/** Returns the most informative text of an event, in one line. */
function words(evt) {
  const result = evt.result && typeof evt.result === "object" ? evt.result.status : evt.result;
  const text = evt.message ?? evt.text ?? evt.approval?.preview?.summary ?? result ?? evt.details ?? evt.data ?? evt.arguments ?? "";
  return plain((typeof text === "string" ? text : JSON.stringify(text)).slice(0, 300));
}
