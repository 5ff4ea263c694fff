// Markdown as elements. Its tokens become nodes one by one: HTML in it stays text, and a link is a link only with a safe address.
import { lexer } from "/viewer/vendor/marked.js";
import { code, copyable } from "./code.js";
import { el, lines } from "./dom.js";

/** Longest text that is parsed, in characters; the rest is shown as it is. */
const MAX_TEXT = 200_000;
/** Deepest nesting. */
const MAX_DEPTH = 16;
/** Level of an answer's first headings: the title of the session and those of the questions are above. */
const FIRST_LEVEL = 3;

export function markdown(text) {
  const tokens = lexer(lines(text.slice(0, MAX_TEXT)), { gfm: true });
  setLevels(tokens);
  const node = el("div", "markdown", ...blocks(tokens, 0));
  if (text.length > MAX_TEXT) node.append(el("pre", "code", lines(text.slice(MAX_TEXT))));
  return node;
}

/** Headings begin below those of the page, and skip no level, whatever the answer's begin with. */
function setLevels(tokens) {
  const headings = tokens.filter((token) => token.type === "heading");
  const top = Math.min(...headings.map((token) => token.depth));
  let level = FIRST_LEVEL - 1;
  for (const token of headings) {
    level = Math.min(level + 1, FIRST_LEVEL + token.depth - top, 6);
    token.level = level;
  }
}

function blocks(tokens, depth) {
  return (tokens ?? []).map((token) => block(token, depth)).filter(Boolean);
}

function block(token, depth) {
  if (depth > MAX_DEPTH) return el("p", "", token.raw);
  switch (token.type) {
    case "space":
    case "def":
      return undefined;
    case "heading":
      return el(token.level ? `h${token.level}` : "p", token.level ? "" : "strong", ...inline(token.tokens, depth));
    case "paragraph":
      return el("p", "", ...inline(token.tokens, depth));
    case "text":
      return token.tokens ? el("span", "", ...inline(token.tokens, depth)) : el("span", "", unescaped(token.text));
    case "code":
      return copyable(code(token.text, token.lang), token.text);
    case "blockquote":
      return el("blockquote", "", ...blocks(token.tokens, depth + 1));
    case "hr":
      return el("hr");
    case "list":
      return list(token, depth);
    case "table":
      return table(token, depth);
    default:
      return el("p", "", token.raw ?? "");
  }
}

function list(token, depth) {
  const node = el(token.ordered ? "ol" : "ul");
  if (token.ordered && token.start > 1) node.start = token.start;
  for (const item of token.items) {
    const entry = el("li", item.task ? "task" : "");
    if (item.task) entry.append(el("span", "mark", item.checked ? "☑ " : "☐ "));
    entry.append(...blocks(item.tokens, depth + 1));
    node.append(entry);
  }
  return node;
}

function table(token, depth) {
  const row = (cells, tag) => el("tr", "", ...cells.map((cell) => el(tag, "", ...inline(cell.tokens, depth))));
  const node = el("table", "", el("thead", "", row(token.header, "th")), el("tbody", "", ...token.rows.map((cells) => row(cells, "td"))));
  const host = el("div", "table", node);
  host.tabIndex = 0;
  host.setAttribute("role", "region");
  host.setAttribute("aria-label", "Table");
  return host;
}

function inline(tokens, depth) {
  if (depth > MAX_DEPTH) return [(tokens ?? []).map((token) => token.raw).join("")];
  return (tokens ?? []).map((token) => {
    switch (token.type) {
      case "strong":
        return el("strong", "", ...inline(token.tokens, depth + 1));
      case "em":
        return el("em", "", ...inline(token.tokens, depth + 1));
      case "del":
        return el("del", "", ...inline(token.tokens, depth + 1));
      case "codespan":
        return el("code", "", token.text);
      case "br":
        return el("br");
      case "link":
        return anchor(token, depth);
      // An image would be a request to another server: its description stands for it.
      case "image":
        return el("span", "faint", `[image: ${token.text || token.href}]`);
      case "text":
      case "escape":
        return token.tokens ? el("span", "", ...inline(token.tokens, depth + 1)) : unescaped(token.text);
      default:
        return token.raw ?? "";
    }
  });
}

/** Links lead to web pages alone; others are shown with their address. */
function anchor(token, depth) {
  let url;
  try {
    url = new URL(token.href);
  } catch {
    url = undefined;
  }
  const content = inline(token.tokens, depth + 1);
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) {
    return el("span", "", ...content, token.href === token.text ? "" : el("span", "faint", ` (${token.href})`));
  }
  const node = el("a", "", ...content);
  node.href = url.href;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  // The true destination, whatever the text claims.
  node.title = url.href;
  return node;
}

/** The lexer leaves entities of HTML as they are. */
function unescaped(text) {
  const names = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
  return String(text ?? "").replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => names[name]);
}
