// Code with colours, and differences with line numbers.
import { button, el, lines } from "./dom.js";

/** Longest text that is coloured, in characters. */
const MAX_COLOURED = 60_000;
/** Lines of a difference that are drawn at first. */
const FIRST_LINES = 400;

const LANGUAGES = {
  bash: "bash", sh: "bash", zsh: "bash", shell: "bash", console: "bash", c: "c", h: "c", cpp: "cpp", cc: "cpp", hpp: "cpp", cxx: "cpp", cs: "csharp", csharp: "csharp", css: "css",
  go: "go", ini: "ini", toml: "ini", java: "java", js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", javascript: "javascript", json: "json", kt: "kotlin",
  kotlin: "kotlin", py: "python", python: "python", rb: "ruby", ruby: "ruby", rs: "rust", rust: "rust", sql: "sql", ts: "typescript", tsx: "typescript", typescript: "typescript",
  html: "xml", xml: "xml", svg: "xml", vue: "xml", yaml: "yaml", yml: "yaml",
};

/** Builds nodes where the library would build HTML. */
class NodeEmitter {
  constructor() {
    this.rootNode = document.createDocumentFragment();
    this.stack = [this.rootNode];
  }
  get top() {
    return this.stack.at(-1);
  }
  addText(text) {
    if (text) this.top.append(text);
  }
  startScope(scope) {
    const span = el("span", `hl-${scope.split(".")[0]}`);
    this.top.append(span);
    this.stack.push(span);
  }
  endScope() {
    if (this.stack.length > 1) this.stack.pop();
  }
  openNode(scope) {
    this.startScope(scope);
  }
  closeNode() {
    this.endScope();
  }
  __addSublanguage(emitter) {
    this.top.append(emitter.rootNode);
  }
  finalize() {}
  toHTML() {
    return "";
  }
}

let library;
const loaded = new Map();

/** Loads the library, and a language, when code is first shown. */
async function highlighter(name) {
  library ??= import("/viewer/vendor/highlight.js").then(({ default: hljs }) => {
    hljs.configure({ __emitter: NodeEmitter });
    return hljs;
  });
  const hljs = await library;
  if (!loaded.has(name)) loaded.set(name, import(`/viewer/vendor/languages/${name}.js`).then((module) => hljs.registerLanguage(name, module.default)));
  await loaded.get(name);
  return hljs;
}

/** The language of a path or of a name after a fence; undefined for others. */
export const languageOf = (name) => LANGUAGES[String(name ?? "").toLowerCase().split(/[.\s]/).at(-1)];

/** Fills an element with code, at first without colours. */
export function paintCode(node, text, name) {
  const language = languageOf(name);
  node.textContent = lines(text);
  if (!language || text.length > MAX_COLOURED) return node;
  highlighter(language).then((hljs) => {
    const { _emitter: emitter } = hljs.highlight(node.textContent, { language, ignoreIllegals: true });
    if (emitter?.rootNode) node.replaceChildren(emitter.rootNode);
  }, () => {});
  return node;
}

export function code(text, name) {
  const pre = el("pre", "code", paintCode(el("code"), text, name));
  return scrollable(pre, "Code");
}

/** Makes what may scroll reachable by keyboard. */
export function scrollable(node, label) {
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  return node;
}

/** Copies the text of a block. */
export function copyable(block, text) {
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text).then(() => (copy.textContent = "Copied"), () => (copy.textContent = "Not allowed"));
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  }, "copy");
  return el("div", "copyable", block, copy);
}

/** Splits a unified diff into files with their lines: `{path, added, removed, rows: [{kind, old, now, text}]}`. */
export function parseDiff(text) {
  const files = [];
  let file;
  let old = 0;
  let now = 0;
  let inHunk = false;
  let oldLeft = 0;
  let nowLeft = 0;
  const begin = (path) => files.push((file = { path, added: 0, removed: 0, rows: [] }));
  for (const line of lines(text).split("\n")) {
    const hunk = line.match(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/);
    if (hunk) {
      if (!file) begin("");
      old = Number(hunk[1]);
      oldLeft = Number(hunk[2] ?? 1);
      now = Number(hunk[3]);
      nowLeft = Number(hunk[4] ?? 1);
      inHunk = true;
      file.rows.push({ kind: "hunk", text: hunk[5] ? `⋯ ${hunk[5]}` : "⋯" });
    } else if (inHunk && (oldLeft > 0 || nowLeft > 0)) {
      if (line.startsWith("+")) {
        file.rows.push({ kind: "add", now: now++, text: line.slice(1) });
        file.added += 1;
        nowLeft -= 1;
      } else if (line.startsWith("-")) {
        file.rows.push({ kind: "cut", old: old++, text: line.slice(1) });
        file.removed += 1;
        oldLeft -= 1;
      } else if (line.startsWith("\\")) file.rows.push({ kind: "note", text: line.slice(2) });
      else if (line.startsWith("[")) {
        // The daemon's note of what it omitted, the last line of its file.
        file.rows.push({ kind: "note", text: line.slice(1, -1) });
        oldLeft = nowLeft = 0;
      } else {
        file.rows.push({ kind: "same", old: old++, now: now++, text: line.slice(1) });
        oldLeft -= 1;
        nowLeft -= 1;
      }
    } else if (line.startsWith("--- ")) {
      begin(line.slice(4).replace(/^a\//, "").replace(/\t.*$/, ""));
    } else if (line.startsWith("+++ ")) {
      if (!file || file.rows.length) begin("");
      const path = line.slice(4).replace(/^b\//, "").replace(/\t.*$/, "");
      if (path !== "/dev/null") file.path = path;
    } else if (line && file?.rows.length && !/^(diff|index|new file|deleted file|similarity|rename|old mode|new mode) ?/.test(line)) {
      file.rows.push({ kind: "note", text: line });
    }
  }
  return files;
}

/** Renders a unified diff: each file with its name, its numbers of lines and its lines. */
export function diff(text, { folded = false } = {}) {
  const files = parseDiff(text);
  if (!files.length) return el("pre", "code", lines(text));
  return el("div", "diffs", ...files.map((file) => fileDiff(file, folded)));
}

function fileDiff(file, folded) {
  const name = file.path || "change";
  const details = el("details", "file-diff", el("summary", "",
    el("code", "path", name), el("span", "figures", el("span", "good", `+${file.added}`), " ", el("span", "bad", `−${file.removed}`))));
  const fill = () => {
    if (details.children.length > 1) return;
    details.append(scrollable(table(file.rows), `Changes of ${name}`));
  };
  details.ontoggle = () => details.open && fill();
  details.open = !folded;
  if (!folded) fill();
  return details;
}

const SIGNS = { add: "+", cut: "−" };
const NAMES = { add: "added", cut: "removed" };

function table(rows) {
  const body = el("tbody");
  const host = el("div", "diff-scroll", el("table", "diff", body));
  const draw = (from, to) => {
    for (const row of rows.slice(from, to)) {
      const sign = el("td", "sign", SIGNS[row.kind] ?? "");
      if (NAMES[row.kind]) sign.setAttribute("aria-label", NAMES[row.kind]);
      body.append(el("tr", row.kind, el("td", "line", String(row.old ?? "")), el("td", "line", String(row.now ?? "")), sign, el("td", "text", row.text || " ")));
    }
  };
  draw(0, FIRST_LINES);
  if (rows.length > FIRST_LINES) {
    const more = button(`Show ${rows.length - FIRST_LINES} more lines`, () => {
      draw(FIRST_LINES, rows.length);
      more.remove();
    });
    host.append(more);
  }
  return host;
}
