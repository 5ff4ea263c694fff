// Selects the displayed view and handles keys.
import { el } from "./dom.js";
import { Approvals, Search, Sessions } from "./panes.js";
import { enter, on } from "./rpc.js";
import { Trace } from "./trace.js";

const LOOK_MS = 2_000;
const main = document.getElementById("main");
const help = document.getElementById("help");
const waiting = document.getElementById("waiting");
const views = { sessions: new Sessions(openTrace), approvals: new Approvals(), search: new Search() };
let shown;

function show(view, name) {
  if (shown === view) return;
  if (shown instanceof Trace) shown.close();
  shown = view;
  main.replaceChildren(view.bar, view.node);
  for (const tab of document.querySelectorAll("[data-view]")) tab.toggleAttribute("aria-current", tab.dataset.view === name);
  main.focus();
  view.entered?.();
  Promise.resolve(view.begin()).catch((error) => told(error.message));
}

function told(text) {
  document.getElementById("state").textContent = text;
}

function openTrace(session) {
  history.pushState({ trace: true }, "");
  show(new Trace(session), "sessions");
}

function go(name) {
  show(views[name], name);
}

for (const tab of document.querySelectorAll("[data-view]")) tab.onclick = () => go(tab.dataset.view);
window.onpopstate = () => go("sessions");

document.onkeydown = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement || help.open) return;
  const tab = { 1: "sessions", 2: "approvals", 3: "search" }[event.key];
  if (tab) go(tab);
  else if (event.key === "?") help.showModal();
  else if (event.key === "/") {
    go("search");
    views.search.field.select();
  } else if (event.key === "Escape" && shown instanceof Trace) history.back();
  else if (event.target instanceof HTMLButtonElement && event.key === "Enter") return;
  else if (!shown?.key(event.key)) return;
  event.preventDefault();
};

async function look() {
  const count = await views.approvals.begin();
  waiting.hidden = count === 0;
  waiting.textContent = String(count);
  if (shown === views.sessions && shown.first()) await shown.begin();
}

on.state = told;
on.open = () => {
  if (shown) Promise.resolve(shown.begin()).catch((error) => told(error.message));
  look().catch(() => {});
};

try {
  await enter();
  go("sessions");
  setInterval(() => document.hidden || look().catch(() => {}), LOOK_MS);
} catch (error) {
  told("no access");
  main.replaceChildren(el("p", "notice", error.message));
}
