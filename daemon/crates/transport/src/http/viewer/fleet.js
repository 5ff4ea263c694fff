// Fleet: the daemons that share a broker, what they do, and what waits for an answer there.
import { announce, button, el, empty, fitted, link } from "./dom.js";
import { chip, count, when } from "./format.js";
import { Repeated } from "./poll.js";
import { call, may } from "./rpc.js";

/** True once this daemon has said that it belongs to a fleet. */
let isOn = false;

/** Finds out whether there is a fleet; the page is in the navigation only then. */
export async function probe() {
  try {
    await call("fleet.status", {});
    isOn = true;
  } catch {
    isOn = false;
  }
}

export class Fleet extends Repeated {
  static isAllowed() {
    return isOn;
  }

  constructor() {
    super();
    this.body = el("div", "page-body", el("p", "faint", "Loading"));
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Fleet")), this.body);
  }

  request() {
    return call("fleet.status", {});
  }

  /** The signs of life and the number of copied records change every few seconds and are not painted. */
  identity(status) {
    return JSON.stringify(status, (key, value) => (key === "seenAt" || key === "confirmed" ? undefined : value));
  }

  sections(status) {
    const notes = [];
    if (!status.connected) notes.push(el("p", "notice", `The broker cannot be reached: ${status.error ?? "not connected"}`));
    else if (status.error) notes.push(el("p", "notice", status.error));
    if (status.mirror?.error) notes.push(el("p", "notice", `Records are not copied: ${status.mirror.error}`));
    if (!status.daemons.length) return [...notes, empty("No daemons", "No daemon is connected to the broker.")];
    if (status.truncated) notes.push(el("p", "notice", `More daemons are connected: these ${status.daemons.length} confirmed their state last.`));
    return [...notes, ...this.pools(status.pools), ...status.daemons.map((daemon) => this.daemon(daemon, daemon.name === status.name))];
  }

  pools(pools) {
    if (!pools.length) return [];
    const entry = (pool) => el("li", "entry",
      el("div", "row-link", el("span", "row-title", pool.name), el("span", "row-second faint", pool.daemons.join(", ") || "no daemon takes its runs")),
      el("span", "row-facts", el("span", "faint", `${count(pool.queued, "run")} waiting · ${pool.active} active`)));
    return [el("section", "home-section", el("h2", "section-title", "Pools"), el("ul", "entries-list", ...pools.map(entry)))];
  }

  daemon(daemon, isOwn) {
    const facts = [`${daemon.running} active`, daemon.waiting ? `${daemon.waiting} waiting for an answer` : "", daemon.pools.length ? `pools ${daemon.pools.join(", ")}` : ""];
    const heading = el("h2", "section-title with-facts", el("span", "", daemon.name),
      el("span", "faint", `${facts.filter(Boolean).join(" · ")} · Cairn ${daemon.version} · `, when(daemon.seenAt)));
    const list = daemon.sessions.map((session) => this.session(daemon, session, isOwn));
    const text = "None of its sessions is copied to the broker.";
    return el("section", "home-section", heading, list.length ? el("ul", "entries-list", ...list) : el("p", "faint", text));
  }

  session(daemon, session, isOwn) {
    const waits = (session.approvals ?? []).length > 0;
    const title = fitted(session.request || session.title, 200);
    const texts = [el("span", "row-title", title), el("span", "row-second faint", session.sessionId.slice(-6))];
    const entry = el("li", "entry",
      // Only sessions of this daemon have a page here.
      isOwn ? link(`/session/${session.sessionId}`, "row-link", ...texts) : el("div", "row-link", ...texts),
      el("span", "row-facts", chip(waits ? "waiting" : session.state, waits ? "waits for you" : undefined)));
    const asked = (session.approvals ?? []).map((approval) => this.approval(daemon, approval));
    if (asked.length) entry.append(el("div", "waiting-calls", ...asked));
    return entry;
  }

  approval(daemon, approval) {
    const text = el("span", "", fitted(approval.summary || approval.tool, 160));
    if (!may("approval.resolve")) return el("div", "waiting-call", text);
    const answer = (name, decision) => button(name, () => this.answer(daemon.name, approval.approvalId, decision), "button small");
    return el("div", "waiting-call", text, el("span", "call-answers", answer("Allow once", "once"), answer("Deny", "deny")));
  }

  async answer(daemon, approvalId, decision) {
    try {
      await call("fleet.call", { daemon, method: "approval.resolve", params: { approvalId, decision } });
      announce(decision === "once" ? "Allowed" : "Denied");
    } catch (error) {
      announce(error.message);
    }
    this.seen = undefined;
    await this.load();
  }
}
