// Home: what waits for an answer, what runs, what ended lately.
import { button, el, empty, fitted, link, plain } from "./dom.js";
import { chip, count, dollars, shortFolder, titleOf, when } from "./format.js";
import { Explore } from "./explore.js";
import { Fleet } from "./fleet.js";
import { Repeated } from "./poll.js";
import { call, may, methods } from "./rpc.js";

const LIMIT = 50;
/** Requests of one session that are listed. */
const MAX_WAITING = 3;

/** An unattended run in words: its turns and its check. */
function runText(run) {
  let text = `run ${run.status}, turn ${run.turns} of ${run.maxTurns}`;
  if (run.until) text += `, until ${run.until}`;
  return run.reason ? `${text}: ${run.reason}` : text;
}

/** A session of the board as an entry of a list. */
export function sessionRow({ session, branch, request, waiting = [], queued, costMicroUsd, unattended, parent }) {
  const waits = waiting.length > 0;
  const title = titleOf(session, request);
  const place = [session.root && shortFolder(session.root), branch && `branch ${fitted(branch, 60)}`, parent && "subagent", queued && `${queued} queued`].filter(Boolean).join(" · ");
  const second = request && fitted(request, 200) !== title ? fitted(request, 200) : unattended ? fitted(runText(unattended), 200) : "";
  const main = link(`/session/${session.sessionId}`, "row-link",
    el("span", "row-title", title),
    el("span", "row-second faint", [second, place].filter(Boolean).join(" · ") || session.sessionId));
  main.dataset.row = session.sessionId;
  const facts = el("span", "row-facts", costMicroUsd !== undefined ? el("span", "faint", dollars(costMicroUsd)) : "", when(session.updatedAt), chip(waits ? "waiting" : session.state, waits ? "waits for you" : undefined));
  return el("li", "entry", main, facts);
}

export class Home extends Repeated {
  constructor() {
    super();
    this.body = el("div", "page-body", el("p", "faint", "Loading"));
    const actions = el("div", "actions");
    if (may("orchestrate.run.start")) actions.append(link("/new", "button main", "New session"));
    if (Explore.isAllowed(methods)) actions.append(link("/explore", "button", "Explore a codebase"));
    actions.append(link("/schedules", "button", "Schedules"));
    if (Fleet.isAllowed()) actions.append(link("/fleet", "button", "Fleet"));
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Home"), actions), this.body);
  }

  async request() {
    return (await call("session.board", { limit: LIMIT })).rows;
  }

  sections(rows) {
    if (!rows.length) {
      return [empty("No sessions yet", "A session is a conversation with an agent that works in one of your folders.",
        may("orchestrate.run.start") ? link("/new", "button main", "Start one") : "")];
    }
    const waiting = rows.filter((row) => row.waiting.length);
    const running = rows.filter((row) => !row.waiting.length && row.session.state === "running");
    const others = rows.filter((row) => !row.waiting.length && row.session.state !== "running");
    const section = (name, list, text) => {
      const heading = el("h2", "section-title", name, list.length ? el("span", "faint", ` ${list.length}`) : "");
      return el("section", "home-section", heading, list.length ? el("ul", "entries-list", ...list) : el("p", "faint", text));
    };
    const ended = section("Ended lately", others.map(sessionRow), "Nothing has ended yet.");
    ended.append(el("p", "", link("/sessions", "", "All sessions")));
    return [section("Waiting for you", waiting.map((row) => this.waitingRow(row)), "Nothing waits for an answer."),
      section("Running", running.map(sessionRow), "Nothing runs."), ended];
  }

  waitingRow(row) {
    const entry = sessionRow(row);
    const listed = row.waiting.slice(0, MAX_WAITING).map((approval) => {
      const open = link(`/approvals/${approval.approvalId}`, "waiting-call", el("span", "", fitted(approval.preview.summary || plain(approval.tool), 160)), el("span", "button small", "Review"));
      open.dataset.row = approval.approvalId;
      return open;
    });
    if (row.waiting.length > MAX_WAITING) listed.push(link("/approvals", "faint", `and ${count(row.waiting.length - MAX_WAITING, "more request")}`));
    entry.append(el("div", "waiting-calls", ...listed));
    return entry;
  }
}
