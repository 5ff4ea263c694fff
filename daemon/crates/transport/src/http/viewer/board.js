// The board: who works where, on what, for what cost, and who waits for an answer.
import { button, el, plain } from "./dom.js";
import { call } from "./rpc.js";

const TONES = { failed: "bad", interrupted: "bad", exhausted: "bad", completed: "good", running: "mark" };

/** Millionths of a dollar as an amount. */
function dollars(micro) {
  const amount = micro / 1e6;
  return `$${amount < 0.1 ? amount.toFixed(4) : amount.toFixed(2)}`;
}

function age(time) {
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(time)) / 60_000));
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}

/** An unattended run in words: its turns and its check. */
function runText(run) {
  let text = `run ${run.status}, turn ${run.turns} of ${run.maxTurns}`;
  if (run.until) text += `, until ${run.until}`;
  return run.reason ? `${text}: ${run.reason}` : text;
}

export class Board {
  constructor(open, approvals) {
    this.open = open;
    this.approvals = approvals;
    this.node = el("div", "start board");
    this.node.tabIndex = -1;
    this.bar = el("div", "bar", el("span", "faint", "Sessions that wait for you come first, then running ones"));
  }

  async begin() {
    const { rows } = await call("session.board", { limit: 50 });
    const seen = JSON.stringify(rows) + Math.floor(Date.now() / 60_000);
    // An unchanged board stays as it is, with the focus in it.
    if (seen === this.seen) return;
    this.seen = seen;
    const focus = document.activeElement?.dataset?.session;
    const list = el("ul", "entries", ...rows.map((row) => this.row(row)));
    this.node.replaceChildren(rows.length ? list : el("p", "faint", "no sessions yet: cairn run 'REQUEST' starts one"));
    if (focus) this.node.querySelector(`[data-session="${focus}"]`)?.focus();
  }

  row({ session, branch, request, waiting, queued, costMicroUsd, unattended, parent }) {
    const waits = waiting.length > 0;
    const state = waits ? "waits for you" : session.state;
    const title = button(plain(session.title || request || session.sessionId), () => this.open(session));
    title.className = "link";
    title.dataset.session = session.sessionId;
    const facts = [age(session.updatedAt)];
    if (costMicroUsd !== undefined) facts.push(dollars(costMicroUsd));
    if (queued) facts.push(`${queued} queued`);
    const lines = [
      session.root && `${session.root}${branch ? `, branch ${branch}` : ""}`,
      request && request !== session.title && request,
      parent && `agent of ${parent}`,
      unattended && runText(unattended),
    ].filter(Boolean);
    const item = el(
      "li",
      "",
      el("div", "head", el("span", `tag ${waits ? "waits" : (TONES[session.state] ?? "")}`, state), title, el("span", "faint facts", facts.join("  "))),
      ...lines.map((line) => el("span", "faint", plain(line))),
    );
    for (const approval of waiting) {
      const go = button(plain(`${approval.tool}: ${approval.preview.summary}`), () => this.approvals());
      go.className = "link bad";
      item.append(go);
    }
    return item;
  }

  key(key) {
    const all = [...this.node.querySelectorAll("button[data-session]")];
    const at = all.indexOf(document.activeElement);
    const next = { j: at + 1, k: at - 1, g: 0, G: all.length - 1 }[key];
    if (next === undefined || all.length === 0) return false;
    all[Math.max(0, Math.min(next, all.length - 1))].focus();
    return true;
  }
}
