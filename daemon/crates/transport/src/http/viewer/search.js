// Search in one repository, or in all of them by name: passages by file, with code and marks.
import { code, languageOf, scrollable } from "./code.js";
import { button, el, empty, failure, labelled, lines, plain, select } from "./dom.js";
import { count, number, shortFolder } from "./format.js";
import { call } from "./rpc.js";

const ROOT_KEY = "cairn-viewer-root";
const ALL = "*";
const KINDS = [["hybrid", "Meaning and words"], ["grep", "Exact text"], ["regex", "Regular expression"], ["symbols", "Definitions"]];
const RESULTS = 50;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Search {
  constructor(parameters) {
    this.parameters = parameters;
    this.field = el("input", "search-field");
    this.field.type = "search";
    this.field.id = "search-field";
    this.field.placeholder = "What the code does, a name, or exact text";
    this.field.setAttribute("aria-label", "Query");
    this.field.autocomplete = "off";
    this.field.value = parameters.get("q") ?? "";
    this.root = select([["", "Loading"]]);
    this.root.id = "search-root";
    this.kind = select(KINDS, parameters.get("kind") ?? "hybrid");
    const submit = el("button", "main", "Search");
    submit.type = "submit";
    this.form = el("form", "search-form", this.field, labelled("Repository", this.root), labelled("By", this.kind), submit);
    this.form.onsubmit = (event) => {
      event.preventDefault();
      this.submit();
    };
    this.form.onkeydown = (event) => {
      if (event.key !== "Escape") event.stopPropagation();
    };
    this.status = el("p", "faint");
    this.status.setAttribute("role", "status");
    this.results = el("div", "results");
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Search")), el("div", "page-body wide", this.form, this.status, this.results));
  }

  async begin() {
    try {
      const { roots } = await call("index.status", {});
      this.roots = new Map(roots.map((root) => [root.root, root]));
      this.showRoots(roots);
    } catch (error) {
      this.results.replaceChildren(failure(error, () => this.begin()));
      return;
    }
    if (this.field.value) await this.run();
    else this.field.focus({ preventScroll: true });
  }

  showRoots(roots) {
    if (!roots.length) {
      this.form.inert = true;
      this.results.replaceChildren(empty("No repository is indexed", "Run 'cairn index add FOLDER' in a terminal, or start a session in one."));
      return;
    }
    const chosen = this.parameters.get("root") ?? localStorage.getItem(ROOT_KEY) ?? roots[0].path;
    const options = roots.map((root) => [root.path, shortFolder(root.path)]);
    if (roots.length > 1) options.push([ALL, `All ${roots.length} repositories`]);
    const known = options.some(([value]) => value === chosen) ? chosen : roots[0].path;
    this.root.replaceWith((this.root = Object.assign(select(options, known), { id: "search-root" })));
    this.root.title = known;
  }

  /** The query is part of the address, so that it can be opened again. */
  submit() {
    const query = this.field.value.trim();
    if (!query) return this.field.focus();
    if (this.root.value !== ALL) localStorage.setItem(ROOT_KEY, this.root.value);
    const parameters = new URLSearchParams({ q: query, root: this.root.value, kind: this.kind.value });
    history.replaceState(null, "", `#/search?${parameters}`);
    this.run();
  }

  async run() {
    const query = this.field.value.trim();
    const serial = (this.serial = (this.serial ?? 0) + 1);
    const all = this.root.value === ALL;
    const filters = all ? {} : { filters: { roots: [this.root.value] } };
    this.status.textContent = "Searching";
    const began = performance.now();
    try {
      const groups = await this.find(query, this.kind.value, filters);
      if (serial !== this.serial) return;
      const hits = groups.reduce((sum, group) => sum + group.hits.length, 0);
      const scope = all ? "all repositories" : shortFolder(this.root.value);
      this.status.textContent = `${count(hits, "result")} in ${count(groups.length, "file")} of ${scope}, ${Math.round(performance.now() - began)} ms${this.remark ? `; ${this.remark}` : ""}`;
      this.results.replaceChildren(...groups.map((group) => this.group(group, all)));
      if (!groups.length) this.results.replaceChildren(empty("Nothing was found", this.kind.value === "hybrid" ? "Try other words, or exact text." : "Try a search by meaning and words."));
    } catch (error) {
      if (serial !== this.serial) return;
      this.status.textContent = "";
      this.results.replaceChildren(failure(error));
    }
  }

  /** Returns results by file, the file with the best one first. */
  async find(query, kind, filters) {
    this.remark = "";
    let items;
    if (kind === "hybrid") {
      const answer = await call("search.hybrid", { query, k: RESULTS, explain: true, includeText: true, ...filters });
      items = answer.items;
      if (!answer.complete) this.remark = "the index is not complete yet";
    } else if (kind === "symbols") {
      items = (await call("search.symbols", { query, k: RESULTS, ...filters })).items.map((item) => ({ ...item, startLine: item.startLine ?? item.line }));
    } else {
      const answer = await call("search.grep", { pattern: query, isRegex: kind === "regex", flags: ["smart_case"], k: 200, contextLines: 1, ...filters });
      items = answer.items;
      if (answer.truncated) this.remark = "more lines match";
    }
    const groups = new Map();
    for (const item of items) {
      const key = `${item.root}\n${item.path}`;
      if (!groups.has(key)) groups.set(key, { root: item.root, path: item.path, hits: [] });
      groups.get(key).hits.push(item);
    }
    return [...groups.values()];
  }

  group({ root, path, hits }, withRoot) {
    const folder = this.roots.get(root)?.path ?? root;
    const name = el("h2", "hit-file", withRoot ? el("span", "tag", plain(shortFolder(folder))) : "", el("code", "path", plain(path)), el("span", "faint", hits.length > 1 ? count(hits.length, "result") : ""));
    const sorted = hits[0].line === undefined ? hits : [...hits].sort((a, b) => a.line - b.line);
    return el("section", "card hit-group", name, ...sorted.map((hit) => this.hit(hit, folder)));
  }

  hit(hit, folder) {
    const first = hit.line !== undefined ? hit.line - (hit.before?.length ?? 0) : hit.textStartLine ?? hit.startLine;
    const text = hit.line !== undefined ? [...(hit.before ?? []), hit.text, ...(hit.after ?? [])].join("\n") : hit.text ?? "";
    const offset = hit.line !== undefined ? encoder.encode((hit.before ?? []).map((line) => `${line}\n`).join("")).length : 0;
    const ranges = (hit.ranges ?? hit.highlights ?? []).map(([from, to]) => [from + offset, to + offset]);
    const label = hit.symbol?.name ?? hit.name;
    const line = hit.line ?? hit.startLine;
    const open = button(`Open line ${number(line)}`, () => this.open(node, hit, folder, open), "link small");
    const node = el("div", "hit", el("p", "hit-head faint", el("span", "", hit.endLine && hit.endLine !== line ? `lines ${line} to ${hit.endLine}` : `line ${line}`),
      label ? el("code", "", plain(`${hit.symbol?.kind ?? hit.kind ?? ""} ${label}`.trim())) : "", hit.changed ? el("span", "bad", "changed since it was indexed") : "", open));
    if (text) node.append(numbered(text, first, ranges, hit.path));
    if (hit.explain?.length) node.append(reasons(hit));
    return node;
  }

  /** Shows more of the file around a result. */
  async open(node, hit, folder, control) {
    const line = hit.line ?? hit.startLine;
    control.disabled = true;
    try {
      const span = await call("content.getSpan", { path: hit.path, root: folder, start: Math.max(1, line - 30), end: (hit.endLine ?? line) + 60 });
      node.querySelector(".numbered")?.remove();
      node.querySelector(".hit-head").after(numbered(span.text, span.startLine, [], hit.path));
      control.remove();
    } catch (error) {
      control.disabled = false;
      node.append(el("p", "bad", plain(error.message)));
    }
  }
}

/** Code with the numbers of its lines; marked where ranges of bytes match, coloured where none does. */
function numbered(text, first, ranges, path) {
  const rows = text.replace(/\n$/, "").split("\n");
  const gutter = el("span", "gutter", rows.map((_, at) => first + at).join("\n"));
  gutter.setAttribute("aria-hidden", "true");
  const content = ranges.length ? el("pre", "code", el("code", "", ...marked(text.replace(/\n$/, ""), ranges))) : code(text.replace(/\n$/, ""), languageOf(path) ? path : "");
  content.removeAttribute("tabindex");
  content.removeAttribute("role");
  content.removeAttribute("aria-label");
  return scrollable(el("div", "numbered", gutter, content), `Code of ${path}`);
}

function marked(text, ranges) {
  const all = encoder.encode(text);
  const parts = [];
  let at = 0;
  for (const [from, to] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (from < at || to > all.length) continue;
    parts.push(lines(decoder.decode(all.slice(at, from))), el("mark", "", lines(decoder.decode(all.slice(from, to)))));
    at = to;
  }
  parts.push(lines(decoder.decode(all.slice(at))));
  return parts;
}

function reasons(hit) {
  const rows = hit.explain.slice(0, 8).map((share) => el("tr", "", el("td", "", plain(share.feature)), el("td", "right", share.value.toFixed(3)), el("td", "right", share.share.toFixed(3))));
  return el("details", "reasons", el("summary", "faint", "Why this result"),
    el("table", "", el("thead", "", el("tr", "", el("th", "", "reason"), el("th", "", "value"), el("th", "", "share"))), el("tbody", "", ...rows)));
}
