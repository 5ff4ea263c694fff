// An explore: its progress while it runs, then its report.
import { diagram } from "./diagram.js";
import { button, el as raw, plain } from "./dom.js";
import { count, number } from "./format.js";
import { call, Follower, may } from "./rpc.js";

const OPERATION = "explore";
/** Finished steps that stay visible. */
const STEPS = 8;
const COLOURS = 7;
const NS = "http://www.w3.org/2000/svg";

/** Creates an element; all text is sanitised, because it may be a repository's. */
function el(tag, names, ...children) {
  return raw(tag, names, ...children.flat(2).map((child) => (typeof child === "string" ? plain(child) : child)));
}

const change = (one) => `+${number(one.addedLines)} −${number(one.deletedLines)} lines`;
const position = (one) => (one.line ? `${one.path}:${one.line}` : one.path);
const title = (component) => component.name?.trim() || component.path;

/** A path as code that may break after its separators. */
function path(text) {
  const parts = plain(text).split("/");
  return raw("code", "", ...parts.flatMap((part, at) => (at ? ["/", document.createElement("wbr"), part] : [part])));
}

const faint = (text) => (text ? el("span", "faint", text) : undefined);
const list = (items, names = "") => (items.length ? el("ul", `entries ${names}`.trim(), ...items.map((item) => el("li", "", item))) : undefined);
const files = (all) => list((all ?? []).map((one) => [path(position(one)), faint(one.reason)]));

export class Report {
  /** `failed(reason, message)` receives the failure of the explore. */
  constructor(session, { failed }) {
    this.session = session;
    this.id = session.sessionId;
    this.hooks = { failed };
    this.node = raw("div", "report");
    this.node.tabIndex = 0;
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", "Report");
    this.cancel = button("Cancel the explore", () => this.abort());
    this.cancel.hidden = true;
    this.state = raw("span", "faint");
    this.bar = raw("div", "bar", this.state, this.cancel);
    this.reset();
  }

  reset() {
    this.steps = [];
    this.labels = new Map();
    this.running = new Map();
    this.done = 0;
    this.failed = 0;
    this.planned = 0;
    this.stage = "starting";
    this.notices = [];
  }

  /** Shows the report, or follows the explore until there is one. */
  async begin() {
    const status = await call("orchestrate.explore.status", { sessionId: this.id });
    if (status.summary) return this.show(status.summary);
    this.paint();
    this.follower = new Follower(this.id, 0, { take: (record) => this.receive(record) });
    await this.follower.resume();
  }

  close() {
    this.follower?.close();
  }

  async abort() {
    this.cancel.disabled = true;
    this.state.textContent = "cancelling";
    try {
      await call("orchestrate.explore.abort", { sessionId: this.id });
    } catch (error) {
      this.cancel.disabled = false;
      this.state.textContent = error.message;
    }
  }

  receive(record) {
    if (!record.seq || this.isComplete) return;
    if (record.kind === "Cmd") {
      this.labels.set(record.id, words(record.cmd));
      return;
    }
    const evt = record.evt ?? {};
    if (record.parentId) this.step(record.parentId, evt);
    else this.event(evt);
    this.later();
  }

  /** Takes an event of one operation. */
  step(id, evt) {
    if (evt.type === "started") this.running.set(id, this.labels.get(id) ?? evt.op);
    if (["progress", "warning", "approval_required"].includes(evt.type)) this.event(evt);
    if (evt.type !== "result" && evt.type !== "error") return;
    const label = this.running.get(id) ?? evt.op;
    this.running.delete(id);
    this.labels.delete(id);
    this.done += 1;
    this.failed += evt.type === "error" ? 1 : 0;
    this.steps.push([label, evt.type === "error" ? evt.message : undefined]);
    this.steps = this.steps.slice(-STEPS);
  }

  /** Takes an event of the explore itself. */
  event(evt) {
    if (evt.type === "started" || evt.type === "resumed") this.reset();
    if (evt.type === "plan_snapshot") this.planned += evt.plan.nextOps.length;
    if (evt.type === "progress") this.stage = evt.message ?? `${evt.op} ${Math.floor(evt.percent)} %`;
    if (evt.type === "warning") this.notices.push(evt.message);
    if (evt.type === "approval_required") this.notices.push("An approval is pending: see Approvals.");
    if (evt.type === "completed") this.show(evt.summary);
    if (evt.type === "stopped") this.end("stopped", evt.reason);
    if (evt.type === "interrupted") this.end("interrupted", "The daemon stopped; the explore can be resumed in a terminal.");
    if (evt.type === "error" && evt.op === OPERATION) {
      this.end("failed", evt.message);
      this.hooks.failed?.(evt.reason, evt.message);
    }
  }

  end(state, message) {
    this.outcome = [state, message];
    this.cancel.hidden = true;
    this.state.textContent = state;
    this.node.replaceChildren(el("h2", "", this.session.title || this.id),
      el("p", state === "failed" ? "bad" : "", `The explore has ${state === "failed" ? "failed" : `been ${state}`}: ${message}`), this.progress());
  }

  /** Schedules one redraw before the next frame. */
  later() {
    if (this.isComplete || this.outcome) return;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (!this.isComplete && !this.outcome) this.paint();
    });
  }

  paint() {
    this.cancel.hidden = !may("orchestrate.explore.abort");
    const total = Math.max(this.planned, this.done + this.running.size);
    if (!this.bars) {
      this.bars = raw("progress", "");
      this.bars.setAttribute("aria-label", "Operations");
      this.status = raw("p", "");
      this.status.setAttribute("role", "status");
      this.body = raw("div", "");
      this.node.replaceChildren(el("h2", "", "Exploring"), this.bars, this.status, this.body);
    }
    this.bars.max = Math.max(1, total);
    this.bars.value = this.done;
    const text = `${plain(this.stage)}: ${number(this.done)} of ${count(total, "operation")}`;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.body.replaceChildren(this.progress());
  }

  /** Lists the latest and the current operations. */
  progress() {
    const step = ([label, problem]) => el("li", problem ? "failed" : "done", el("span", "", label), faint(problem));
    const current = (label) => el("li", "current", el("span", "", label));
    return raw("div", "",
      ...this.notices.slice(-3).map((text) => el("p", "bad", text)),
      raw("ol", "steps", ...this.steps.map(step), ...[...this.running.values()].map(current)));
  }

  show(summary) {
    this.isComplete = true;
    this.cancel.hidden = true;
    this.bar.hidden = true;
    this.follower?.close();
    this.node.replaceChildren(...report(summary));
    this.node.scrollTop = 0;
  }

  key(key) {
    const steps = { j: 60, ArrowDown: 60, k: -60, ArrowUp: -60, PageDown: 600, PageUp: -600, g: -1e9, Home: -1e9, G: 1e9, End: 1e9 };
    if (!(key in steps)) return false;
    this.node.scrollTop += steps[key];
    return true;
  }
}

/** Names an operation in a few words. */
function words(cmd) {
  const verbs = { fs_list_dir: "list", content_get_span: "read", search_grep: "find", search_hybrid: "search", search_symbols: "find the definition of",
    index_build: "build the index", git_status: "read the state of git", git_log: "read the history", git_changes: "compare with", git_clone: "clone",
    find_impact: "find what depends on", code_graph: "read the imports", count_languages: "count languages", rank_files: "rank files", list_folders: "list folders" };
  const name = cmd.type === "tool_call" ? cmd.name : cmd.type;
  const parameters = cmd.type === "tool_call" ? cmd.arguments ?? {} : cmd;
  const object = parameters.path === "." && name.startsWith("git") ? "" : parameters.path ?? parameters.query ?? parameters.since ?? parameters.remoteURL ?? parameters.pattern ?? "";
  const globs = parameters.filters?.globs?.slice(0, 3).join(", ");
  return [verbs[name] ?? name, name === "search_grep" && globs ? globs : String(object)].filter(Boolean).join(" ").slice(0, 160);
}

/** Renders a summary. */
function report(summary) {
  const details = summary.details ?? {};
  const components = details.components ?? [];
  const cards = components.map((component, at) => card(component, at, components));
  const open = (at) => {
    cards[at].scrollIntoView({ block: "center" });
    cards[at].focus({ preventScroll: true });
  };
  for (const [at, node] of cards.entries()) {
    node.append(...links(components, at, open));
  }
  const wide = (name, ...content) => section(name, false, content);
  const narrow = (name, ...content) => section(name, true, content);
  const all = [
    wide("Changes", ...changes(details.changes)),
    wide("Overview by the model", list((details.overview?.statements ?? []).map((one) => [el("span", "", one.text), ...one.citations.map((line) => path(position(line)))]))),
    wide("Components", components.length ? diagram(components, shortNames(components), open) : undefined),
    wide("Languages", languages(summary.languages ?? {})),
    wide("Goals", ...(details.findings ?? []).flatMap((one) => [el("h4", "", one.goal), list(one.places.map(path)) ?? el("p", "faint", "Nothing was found.")])),
    narrow("Where it starts", files(details.entrypoints)),
    narrow("Read first", files(details.topFiles)),
    narrow("Flows", ...(details.flows ?? []).filter((flow) => flow.steps.length).flatMap((flow) => flowOf(flow, components, open))),
    narrow("Commands", commands(details.commands ?? {})),
    narrow("Conventions", list((details.conventions ?? []).map((one) => [el("span", "", one.text), raw("span", "faint", path(one.source))]))),
    narrow("Concepts", list((details.concepts ?? []).map((one) => [el("strong", "", one.name), tag(one.kind), path(position(one)), faint(one.files ? `used by ${count(one.files, "file")}` : "")]))),
    narrow("Hotspots", list((details.hotspots ?? []).map((one) => [path(one.path), faint(count(one.commits, "commit")), el("ul", "faint", ...one.subjects.map((text) => el("li", "", text)))]))),
    narrow("Open questions", list((summary.followups ?? []).map((text) => el("span", "", text)))),
    wide("Each component", cards.length ? raw("div", "cards", ...cards) : undefined),
    wide("Secondary folders", details.secondary?.length ? raw("div", "cards", ...details.secondary.map((one, at) => card(one, at, []))) : undefined),
    narrow("Packages", list((details.projects ?? []).map((one) => [el("strong", "", one.name), tag(one.kind), path(one.manifest), faint(one.description)]))),
    narrow("Folders", list((details.layout ?? []).map((one) => [path(one.path), faint([count(one.files, "file"), one.role].filter(Boolean).join(" · "))]))),
    narrow("Latest commits", list((details.git?.recent ?? []).map((text) => el("span", "", text)))),
  ].filter(Boolean);
  const grouped = [];
  for (const one of all) {
    const last = grouped.at(-1);
    if (one.classList.contains("narrow") && last?.className === "pair") last.append(one);
    else grouped.push(one.classList.contains("narrow") ? raw("div", "pair", one) : one);
  }
  if (!grouped.length) grouped.push(el("p", "faint", "Nothing was found to describe."));
  return [el("h2", "", summary.repoName || "repository"), el("p", "purpose", details.purpose ?? details.description ?? ""), el("p", "faint", figures(summary)), ...grouped];
}

let sections = 0;

function section(name, isNarrow, content) {
  const filled = content.filter(Boolean);
  if (!filled.length) return undefined;
  const heading = raw("h3", "", name);
  heading.id = `section-${(sections += 1)}`;
  const node = raw("section", isNarrow ? "narrow" : "", heading, ...filled);
  node.setAttribute("aria-labelledby", heading.id);
  return node;
}

function tag(text) {
  return text ? raw("span", "", " ", el("span", "tag", text)) : undefined;
}

function figures(summary) {
  const { stats = {}, git } = summary.details ?? {};
  const lines = Object.values(summary.languages ?? {}).reduce((sum, one) => sum + one, 0);
  const at = git && [`${git.branch ?? "no branch"} at ${git.head?.slice(0, 12) ?? "no commit yet"}`, git.changedFiles ? count(git.changedFiles, "changed file") : ""].filter(Boolean).join(", ");
  return [at, ...[[stats.files, "file"], [lines, "line"], [stats.symbols, "definition"]].map(([n, noun]) => (n ? count(n, noun) : ""))].filter(Boolean).join(" · ");
}

/** Names without the folders that most of them begin with. */
function shortNames(components) {
  const names = components.map(title);
  const users = (prefix) => names.filter((name) => name.startsWith(prefix)).length;
  const prefixes = names.flatMap((name) => [...name.matchAll(/\//g)].map((found) => name.slice(0, found.index + 1)));
  const common = prefixes.filter((prefix) => prefix.length >= 10 && users(prefix) * 2 > names.length).sort((a, b) => b.length - a.length)[0];
  return names.map((name) => (common && name.startsWith(common) && name.length > common.length ? name.slice(common.length) : name));
}

function card(component, at, components) {
  const name = title(component);
  const size = [component.files ? count(component.files, "file") : "", component.lines ? count(component.lines, "line") : ""].filter(Boolean).join(", ");
  const node = raw("article", "card", raw("h4", "", el("span", "", name), tag(component.kind)), component.role ? el("p", "", component.role) : undefined,
    raw("p", "faint", component.path !== name ? path(component.path) : "", component.path !== name && size ? " · " : "", size,
      component.evidence ? " · role stated in " : "", component.evidence ? path(component.evidence) : ""),
    component.keyFiles?.length ? raw("ul", "", ...component.keyFiles.map((file) => raw("li", "", path(file)))) : undefined);
  if (components.length) node.tabIndex = -1;
  return node;
}

/** The components that one depends on, and those that depend on it. */
function links(components, at, open) {
  const own = components[at].path;
  const found = (paths) => [...new Set(paths)].map((one) => components.findIndex((other) => other.path === one)).filter((index) => index >= 0 && index !== at);
  const users = components.filter((other) => other.dependsOn?.includes(own)).map((other) => other.path);
  const row = (label, indexes) => (indexes.length
    ? raw("p", "faint links", label, ...indexes.map((index) => link(title(components[index]), () => open(index))))
    : undefined);
  return [row("Depends on", found(components[at].dependsOn ?? [])), row("Used by", found(users))].filter(Boolean);
}

function link(text, act) {
  const node = button(plain(text), act);
  node.className = "link";
  return node;
}

function languages(all) {
  const sorted = Object.entries(all).filter(([, lines]) => lines > 0).sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  const total = sorted.reduce((sum, [, lines]) => sum + lines, 0);
  if (!total) return undefined;
  const own = sorted.length === COLOURS + 1 ? sorted : sorted.slice(0, COLOURS);
  const rest = sorted.slice(own.length);
  const parts = own.map(([name, lines]) => [name, lines / total]);
  if (rest.length) parts.push([`${rest.length} others`, rest.reduce((sum, [, lines]) => sum + lines, 0) / total]);
  const bar = document.createElementNS(NS, "svg");
  for (const [name, value] of Object.entries({ class: "shares", viewBox: "0 0 1000 12", preserveAspectRatio: "none", "aria-hidden": "true" })) bar.setAttribute(name, value);
  let from = 0;
  parts.forEach(([, share], at) => {
    bar.append(rectangle(`l${at}`, from, Math.max(1, share * 1000 - 2), 12));
    from += share * 1000;
  });
  const legend = parts.map(([name, share], at) => {
    const spot = document.createElementNS(NS, "svg");
    spot.setAttribute("viewBox", "0 0 10 10");
    spot.setAttribute("aria-hidden", "true");
    spot.append(rectangle(`l${at}`, 0, 10, 10));
    return raw("li", "", spot, el("span", "", name), faint(` ${(share * 100).toFixed(1)} %`));
  });
  return raw("div", "", bar, raw("ul", "legend", ...legend));
}

function rectangle(name, x, width, height) {
  const node = document.createElementNS(NS, "rect");
  for (const [key, value] of Object.entries({ class: name, x, y: 0, width, height })) node.setAttribute(key, value);
  return node;
}

function commands(all) {
  const rows = ["build", "test", "run", "lint", "format"].flatMap((kind) => (all[kind] ?? []).map((command, at) => [at ? "" : kind, command]));
  return list(rows.map(([kind, command]) => {
    const source = all.sources?.[command];
    return raw("div", "command", el("span", "", kind), el("code", "", command), source ? faint(`stated in ${source}`) : "");
  }));
}

function flowOf(flow, components, open) {
  const owner = (step) => {
    const at = components.findIndex((one) => one.path === step.component);
    return at >= 0 ? [" ", link(title(components[at]), () => open(at))] : step.component ? [" ", path(step.component)] : [];
  };
  const step = (one) => raw("li", "", el("strong", "", one.name), ...owner(one), document.createElement("br"), path(position(one)));
  return [raw("p", "", "From ", path(flow.entrypoint)), raw("ol", "flow", ...flow.steps.map(step))];
}

/** The changes since a revision, if they were requested. */
function changes(all) {
  if (!all) return [];
  const impact = (one) => {
    const direct = one.direct < one.total ? `, ${number(one.direct)} directly` : "";
    const names = (one.components ?? []).slice(0, 4).join(", ");
    return `${one.truncated ? "more than " : ""}${count(one.total, "file")} ${one.total === 1 ? "depends" : "depend"} on it${direct}${names ? `: ${names}` : ""}`;
  };
  const parts = (one) => ["added", "modified", "deleted", "renamed"].filter((kind) => one[kind]).map((kind) => `${number(one[kind])} ${kind}`).join(", ");
  const total = !all.files && !all.commits ? "Nothing has changed."
    : `${count(all.commits, "commit")}, ${all.files ? `${count(all.files, "changed file")}, ${change(all)}` : "no changed files"}`;
  const titled = (name, items) => (items.length ? [el("h4", "", name), list(items)] : []);
  const more = (n) => (n > 0 ? [faint(`${number(n)} more`)] : []);
  const folded = (name, items) => (items.length ? raw("details", "", el("summary", "", name), list(items, "columns")) : undefined);
  const commit = (one) => raw("div", "", el("code", "", one.id.slice(0, 8)), el("span", "", ` ${one.subject}`));
  const file = (one) => [path(one.path), faint(`${one.status.replace("_", " ")}${one.previousPath ? ` from ${one.previousPath}` : ""}, ${change(one)}`)];
  const changed = all.changedFiles ?? [];
  const subjects = all.subjects ?? [];
  return [
    raw("p", "", "Since ", el("code", "", all.since), ", commit ", el("code", "", all.base.slice(0, 12)), ": ", el("span", "", total)),
    all.behind ? el("p", "faint", `The revision has ${count(all.behind, "commit")} that the checked-out commit does not have.`) : undefined,
    all.truncated ? el("p", "faint", "Some commits, files or contents could not be read: the numbers are lower bounds.") : undefined,
    list((all.components ?? []).map((one) => [raw("div", "", el("strong", "", one.name), tag(one.commits ? count(one.commits, "commit") : "")),
      one.path && one.path !== one.name ? path(one.path) : undefined, faint(`${parts(one)}, ${change(one)}`)]), "columns"),
    raw("div", "pair",
      raw("div", "", ...titled("Risky changes", (all.risks ?? []).map((one) => [path(one.path), faint(one.reason)]))),
      raw("div", "", ...titled("Affected by the changes", (all.impact ?? []).map((one) => [path(one.path), faint(impact(one))])))),
    folded(`Changed files (${number(all.files)})`, [...changed.map(file), ...more(all.files - changed.length)]),
    folded(`Commits (${number(all.commits)})`, [...subjects.map(commit), ...more(all.commits - subjects.length)]),
  ];
}
