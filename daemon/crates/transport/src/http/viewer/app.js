// Opens the page that the address names, and handles keys and the connection.
import { announce, button, el, icon, link } from "./dom.js";
import { Explore } from "./explore.js";
import { Fleet, probe } from "./fleet.js";
import { Home } from "./home.js";
import { Inbox } from "./inbox.js";
import { NOTIFIED_MS, loadApprovals, refresh, repeat, watchApprovals } from "./poll.js";
import { AccessError, enter, isLink, may, methods, on } from "./rpc.js";
import { Schedules } from "./schedules.js";
import { Search } from "./search.js";
import { SessionPage } from "./session.js";
import { Sessions } from "./sessions.js";
import { Start } from "./start.js";

/** Pages of the navigation: address, name, icon, key; those without `narrow` are reached from Home on a narrow screen. */
const PAGES = [
  { route: "/", name: "Home", icon: "home", key: "1", narrow: true },
  { route: "/approvals", name: "Approvals", icon: "inbox", key: "2", narrow: true },
  { route: "/search", name: "Search", icon: "search", key: "3", narrow: true },
  { route: "/explore", name: "Explore", icon: "explore", key: "4", allowed: () => Explore.isAllowed(methods) },
  { route: "/sessions", name: "Sessions", icon: "sessions", key: "5", narrow: true },
  { route: "/schedules", name: "Schedules", icon: "schedules", key: "6" },
  { route: "/fleet", name: "Fleet", icon: "fleet", key: "7", allowed: () => Fleet.isAllowed() },
  { route: "/new", name: "New", icon: "plus", key: "c", narrow: true, allowed: () => may("orchestrate.run.start") },
];

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const banner = document.getElementById("banner");
const help = document.getElementById("help");
let current;
let exploreForm;

function pageOf(address) {
  const [path, query] = address.replace(/^#/, "").split("?");
  const [, first = "", second, third] = path.split("/").map((part) => decodeURIComponent(part));
  switch (first) {
    case "": return new Home();
    case "approvals": return new Inbox(second);
    case "sessions": return new Sessions();
    case "session": return openSession(second, third === "records" ? "records" : "conversation");
    case "search": return new Search(new URLSearchParams(query));
    case "explore": return (exploreForm ??= new Explore((session) => openExplore(session)));
    case "schedules": return new Schedules();
    case "fleet": return new Fleet();
    case "new": return new Start();
    default: return new Home();
  }
}

function openSession(id, view) {
  const page = new SessionPage(id ?? "", view);
  const started = startedExplore === id;
  startedExplore = undefined;
  page.onExploreFailed = (reason, message) => {
    // The form of an explore that was just started still has what was entered.
    if (!started || current !== page) return;
    location.hash = "#/explore";
    afterRoute = () => exploreForm?.fail(reason, message);
  };
  return page;
}

let startedExplore;
let afterRoute;

function openExplore(session) {
  startedExplore = session.sessionId;
  location.hash = `#/session/${session.sessionId}`;
}

function route() {
  const page = pageOf(location.hash);
  current?.close?.();
  const isFirst = !current;
  current = page;
  main.replaceChildren(page.node);
  const heading = page.node.querySelector("h1");
  document.title = heading && heading.textContent !== "Home" ? `${heading.textContent} · Cairn` : "Cairn";
  showNavigation();
  page.begin();
  afterRoute?.();
  afterRoute = undefined;
  // A field that the page has focused stays so; otherwise reading begins at the page.
  if (!isFirst && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

const isCurrent = (one) => {
  const path = location.hash.replace(/^#/, "").split("?")[0] || "/";
  return one.route === "/" ? path === "/" : path === one.route || path.startsWith(`${one.route}/`) || (one.route === "/sessions" && path.startsWith("/session/"));
};

function showNavigation() {
  for (const one of PAGES) {
    if (!one.node) continue;
    one.node.hidden = one.allowed ? !one.allowed() : false;
    if (isCurrent(one)) one.node.setAttribute("aria-current", "page");
    else one.node.removeAttribute("aria-current");
  }
}

function buildNavigation() {
  const brand = link("/", "brand", el("span", "brand-mark"), el("span", "", "Cairn"));
  const badge = el("span", "badge");
  badge.setAttribute("aria-hidden", "true");
  const total = el("span", "unseen");
  const list = el("ul");
  for (const one of PAGES) {
    const hint = el("kbd", "", one.key);
    hint.setAttribute("aria-hidden", "true");
    const isInbox = one.route === "/approvals";
    one.node = link(one.route, "", el("span", "nav-icon", icon(one.icon), isInbox && badge), el("span", "nav-name", one.name, isInbox && total), hint);
    list.append(el("li", one.narrow ? "" : "wide-only", one.node));
  }
  const keys = button("", () => help.showModal(), "keys-button");
  keys.append(icon("keys"), el("span", "", "Keys"), el("kbd", "", "?"));
  const version = el("p", "version faint");
  version.id = "state";
  nav.replaceChildren(brand, list, el("div", "nav-foot", keys, version));
  watchApprovals((all) => {
    badge.hidden = all.length === 0;
    badge.textContent = all.length > 99 ? "99+" : String(all.length);
    total.textContent = all.length ? `, ${all.length} pending` : "";
  });
}

/** Shows the state of the connection: nothing while it works. */
function showState(state, detail) {
  const version = document.getElementById("state");
  if (state === "open") {
    banner.hidden = true;
    if (version) version.textContent = `Cairn ${detail}`;
    return;
  }
  banner.hidden = false;
  banner.className = state;
  banner.textContent = state === "denied" ? detail : "The connection is lost. Trying again…";
}

function isTyping(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select") !== null;
}

/** Moves the focus among the entries of a page. */
function moveFocus(key) {
  const entries = [...main.querySelectorAll("[data-row]")];
  const at = entries.indexOf(document.activeElement);
  const next = { j: at + 1, ArrowDown: at + 1, k: at - 1, ArrowUp: at - 1, g: 0, Home: 0, G: entries.length - 1, End: entries.length - 1 }[key];
  if (next === undefined || !entries.length) return false;
  entries[Math.max(0, Math.min(next, entries.length - 1))].focus();
  return true;
}

document.onkeydown = (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || help.open) return;
  // A control that has the focus takes its own keys.
  if ((event.key === "Enter" || event.key === " ") && event.target.closest?.("a, button, summary, [role=link]")) return;
  const page = PAGES.find((one) => one.key === event.key && (!one.allowed || one.allowed()));
  if (page) location.hash = `#${page.route}`;
  else if (event.key === "?") help.showModal();
  else if (event.key === "/") {
    if (current instanceof Search) current.field.select();
    else location.hash = "#/search";
  } else if (current?.key?.(event.key, event.timeStamp) || moveFocus(event.key)) {
    // Handled by the page.
  } else if (event.key === "Escape") history.back();
  else return;
  event.preventDefault();
};

window.addEventListener("hashchange", () => {
  // A link that is opened in the tab of a page that is already there.
  if (isLink(location.hash)) location.reload();
  else if (current) route();
});

on.state = showState;
on.open = () => {
  probe().then(showNavigation);
  if (current) refresh();
};

function noAccess(error) {
  banner.hidden = true;
  nav.hidden = true;
  main.replaceChildren(el("div", "page", el("div", "gate card", el("span", "brand-mark"), el("h1", "", "Cairn"), el("p", "", error.message))));
}

buildNavigation();
try {
  const remark = await enter().catch((error) => {
    if (error instanceof AccessError) throw error;
    // The daemon may only be starting: the connection is retried, and reported meanwhile.
    return new Promise((resolve) => {
      const { open } = on;
      on.open = () => {
        on.open = open;
        resolve();
      };
    });
  });
  route();
  probe().then(showNavigation);
  repeat(loadApprovals, NOTIFIED_MS);
  if (remark) announce(remark, "bad");
} catch (error) {
  noAccess(error);
}
