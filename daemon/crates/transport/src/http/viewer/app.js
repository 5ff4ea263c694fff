// Selects the displayed view and handles keys.
import { Board } from "./board.js";
import { el } from "./dom.js";
import { Explore } from "./explore.js";
import { Approvals, Search, Sessions } from "./panes.js";
import { Report } from "./report.js";
import { call, enter, methods, on } from "./rpc.js";
import { Trace } from "./trace.js";

const LOOK_MS = 2_000;
const main = document.getElementById("main");
const help = document.getElementById("help");
const waiting = document.getElementById("waiting");
const views = { sessions: new Sessions(openSession), approvals: new Approvals(), search: new Search(), explore: new Explore(openReport), board: new Board(openSession, () => go("approvals")) };
let current;

function show(view, name) {
  if (current === view) return;
  current?.close?.();
  current = view;
  main.replaceChildren(view.bar, view.node);
  for (const tab of document.querySelectorAll("[data-view]")) tab.toggleAttribute("aria-current", tab.dataset.view === name);
  main.focus();
  view.entered?.();
  Promise.resolve(view.begin()).catch((error) => showStatus(error.message));
}

function showStatus(text) {
  document.getElementById("state").textContent = text;
}

/** Opens the report of an explore, or the records of another session. */
async function openSession(session) {
  const status = await call("orchestrate.explore.status", { sessionId: session.sessionId }).catch(() => undefined);
  if (status?.runId) openReport(session);
  else openTrace(session);
}

function openTrace(session) {
  history.pushState({ trace: true }, "");
  show(new Trace(session), "sessions");
}

function openReport(session) {
  history.pushState({ trace: true }, "");
  const started = current === views.explore;
  const retry = (report, reason, message) => {
    // Its form still has what was entered.
    if (!started || current !== report) return;
    go("explore");
    views.explore.fail(reason, message);
  };
  show(new Report(session, { records: openTrace, retry }), "sessions");
}

function go(name) {
  show(views[name], name);
}

for (const tab of document.querySelectorAll("[data-view]")) tab.onclick = () => go(tab.dataset.view);
window.onpopstate = () => go("sessions");

document.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || help.open) return;
  const tab = { 1: "sessions", 2: "approvals", 3: "search", 4: "explore", 5: "board" }[event.key];
  if (tab && !document.querySelector(`[data-view=${tab}]`).hidden) go(tab);
  else if (event.key === "?") help.showModal();
  else if (event.key === "/") {
    go("search");
    views.search.field.select();
  } else if (event.key === "Escape" && (current instanceof Trace || current instanceof Report)) history.back();
  else if (event.target instanceof HTMLButtonElement && event.key === "Enter") return;
  else if (!current?.key(event.key)) return;
  event.preventDefault();
};

async function look() {
  const count = await views.approvals.begin();
  waiting.hidden = count === 0;
  waiting.textContent = String(count);
  if ((current === views.sessions && current.first()) || current === views.board) await current.begin();
}

on.state = showStatus;
on.open = () => {
  document.querySelector("[data-view=explore]").hidden = !Explore.isAllowed(methods);
  if (current) Promise.resolve(current.begin()).catch((error) => showStatus(error.message));
  look().catch(() => {});
};

try {
  await enter();
  go("sessions");
  setInterval(() => document.hidden || look().catch(() => {}), LOOK_MS);
} catch (error) {
  showStatus("no access");
  main.replaceChildren(el("p", "notice", error.message));
}
