// One session: its records as a timeline, live, and what a replay makes of them.
import { button, diff, el, Rows } from "./dom.js";
import { call, listen } from "./rpc.js";

const PAGE = 500;
const MAX_PAGES = 40;
const MAX_TEXT = 200_000;

export class Trace {
  constructor(session) {
    this.session = session;
    this.id = session.sessionId;
    this.pages = new Map();
    this.rows = new Rows("trace", (at) => this.cells(at), (at) => this.show(at));
    this.detail = el("div", "detail");
    this.told = el("span", "faint");
    this.node = el("div", "split", this.rows.host, this.detail);
    const name = el("strong", "", session.title || this.id);
    this.bar = el("div", "bar", button("Back", () => history.back()), name, el("span", "faint", session.root ?? ""), this.told,
      button("Replay", () => this.replay()));
    this.rows.size(session.headSeq);
    this.rows.follow = session.state === "running";
    this.deaf = listen((method, params) => this.hear(method, params));
  }

  /** After each connection: what comes from now on. */
  async begin() {
    const { subscriptionId, headSeq } = await call("orchestrate.subscribe", { sessionId: this.id, after: "live" });
    this.subscription = subscriptionId;
    // Pages with records that were not there yet are asked for again.
    for (const [page, records] of this.pages) if (records && records.length < PAGE) this.pages.delete(page);
    this.grow(headSeq);
  }

  close() {
    this.deaf();
    if (this.subscription) call("orchestrate.unsubscribe", { subscriptionId: this.subscription }).catch(() => {});
  }

  hear(method, params) {
    if (method !== "orchestrate.event" || params.subscriptionId !== this.subscription || !params.seq) return;
    const page = this.pages.get(Math.floor((params.seq - 1) / PAGE));
    if (page && page.length === (params.seq - 1) % PAGE) page.push(params);
    this.grow(params.seq);
  }

  grow(head) {
    if (head > this.rows.count) this.rows.size(head);
    this.told.textContent = `${this.rows.count.toLocaleString()} records`;
    this.rows.later();
  }

  record(at) {
    const page = Math.floor(at / PAGE);
    const records = this.pages.get(page);
    if (records === undefined) this.fetch(page);
    return records?.[at % PAGE];
  }

  async fetch(page) {
    this.pages.set(page, null);
    if (this.pages.size > MAX_PAGES) this.pages.delete(this.pages.keys().next().value);
    try {
      const { data } = await call("trace.get", { traceId: this.id, after: page * PAGE, limit: PAGE });
      this.pages.set(page, data);
    } catch (error) {
      this.pages.delete(page);
      this.told.textContent = error.message;
      return;
    }
    if (this.rows.at === page * PAGE || !this.detail.firstChild) this.show(this.rows.at);
    this.rows.later();
  }

  cells(at) {
    const record = this.record(at);
    if (!record) return undefined;
    const evt = record.evt ?? record.cmd ?? {};
    const before = at > 0 ? this.pages.get(Math.floor((at - 1) / PAGE))?.[(at - 1) % PAGE] : undefined;
    const took = evt.millis ?? (before ? Date.parse(record.ts) - Date.parse(before.ts) : undefined);
    const tone = evt.type === "error" ? "bad" : /completed|result/.test(evt.type) ? "good" : "mark";
    return [
      el("span", "right faint", String(record.seq)),
      el("span", "faint", record.ts.slice(11, 23)),
      el("span", took > 1000 ? "right bad" : "right faint", took === undefined ? "" : `${evt.millis === undefined ? "+" : ""}${took} ms`),
      el("span", "", record.origin?.tool ?? record.origin?.client ?? ""),
      el("span", tone, [record.kind === "Cmd" ? "asked" : "", evt.type, evt.op ?? evt.name ?? ""].filter(Boolean).join(" ")),
      el("span", "", words(evt)),
    ];
  }

  show(at) {
    const record = this.record(at);
    if (!record) return;
    const evt = record.evt ?? {};
    const change = evt.diff ?? evt.approval?.preview?.diff;
    const text = JSON.stringify(record, null, 2);
    this.detail.replaceChildren(
      el("strong", "", `${record.seq} ${evt.type ?? record.cmd?.type ?? ""}`),
      change ? diff(change) : "",
      el("pre", "", text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n… ${text.length - MAX_TEXT} more characters` : text),
    );
  }

  async replay() {
    this.detail.replaceChildren(el("p", "faint", "replaying"));
    try {
      const report = await call("trace.replay", { traceId: this.id });
      const first = report.first;
      this.detail.replaceChildren(
        el("p", report.identical ? "good" : "bad",
          report.identical ? `the same: ${report.compared} steps compared` : `different after ${report.compared} steps compared`),
        ...(first
          ? [el("p", "", `${first.what} (record ${first.seq}) at ${first.path || "/"}`),
             el("pre", "diff", el("span", "cut", `- ${first.recorded}`), el("span", "add", `+ ${first.now}`))]
          : []),
      );
      if (first?.seq) this.rows.choose(first.seq - 1);
    } catch (error) {
      this.detail.replaceChildren(el("p", "bad", error.message));
    }
  }

  key(key) {
    if (key === "r") this.replay();
    else if (key === "Enter") this.show(this.rows.at);
    else return this.rows.key(key);
    return true;
  }
}

/** The most telling text of an event, in one line. */
function words(evt) {
  const result = evt.result && typeof evt.result === "object" ? evt.result.status : evt.result;
  const text = evt.message ?? evt.text ?? evt.approval?.preview?.summary ?? result ?? evt.details ?? evt.data ?? evt.arguments ?? "";
  return (typeof text === "string" ? text : JSON.stringify(text)).slice(0, 300).replace(/\s+/g, " ");
}
