// Elements and texts. Text is always inserted as text.

/** Creates an element; string children become text. */
export function el(tag, names, ...children) {
  const node = document.createElement(tag);
  if (names) node.className = names;
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

/** Control characters, and invisible ones that reorder or hide text. */
const HIDDEN = /[\u{0}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}-\u{180f}\u{200b}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}\u{3164}\u{fe00}-\u{fe0d}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const escape = (c) => `\\u{${c.codePointAt(0).toString(16)}}`;

/** Sanitises a text as one line: hidden characters become visible escapes. */
export function plain(text) {
  return String(text ?? "").replace(/[ \t\r\n]+/g, " ").replace(HIDDEN, escape);
}

/** Sanitises a text of several lines. */
export function lines(text) {
  return String(text ?? "").replace(/\r\n?/g, "\n").replace(HIDDEN, (c) => (c === "\n" || c === "\t" ? c : escape(c)));
}

const wide = (c) => (c.codePointAt(0) >= 0x1100 ? 2 : 1);

/** Truncates a sanitised text to a number of cells. */
export function fitted(text, cells) {
  const all = [...plain(String(text ?? "").slice(0, cells * 8)).trim()];
  let used = 0;
  const end = all.findIndex((c) => (used += wide(c)) > cells);
  return end < 0 ? all.join("") : `${all.slice(0, Math.max(0, end - 1)).join("")}…`;
}

/** Wraps a sanitised text into at most `most` lines. */
export function wrapped(text, cells, most) {
  const rows = [];
  for (const word of plain(text).trim().split(" ").filter(Boolean)) {
    const last = rows.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= cells) rows[rows.length - 1] = `${last} ${word}`;
    else rows.push(word);
  }
  const listed = rows.slice(0, most);
  if (rows.length > most) listed[most - 1] = `${listed[most - 1]} ${rows[most]}`;
  return listed.map((line) => fitted(line, cells));
}

export function button(text, act, names = "") {
  const node = el("button", names, text);
  node.type = "button";
  node.onclick = act;
  return node;
}

/** A link inside the page. */
export function link(route, names, ...children) {
  const node = el("a", names, ...children);
  node.href = `#${route}`;
  return node;
}

/** A field with its label. */
export function labelled(text, control, hint) {
  const label = el("label", "field", el("span", "label", text), control);
  if (hint) label.append(el("span", "faint hint", hint));
  return label;
}

export function select(options, chosen) {
  const node = el("select", "");
  for (const [value, text] of options) {
    const option = el("option", "", text);
    option.value = value;
    option.selected = value === chosen;
    node.append(option);
  }
  return node;
}

const ICONS = {
  home: "M3 10.5 12 3l9 7.5M5.5 9v11h13V9M10 20v-6h4v6",
  inbox: "M3 13h5l1.5 3h5L16 13h5M3 13l3-8h12l3 8v6H3z",
  sessions: "M4 5h16v11H9l-5 4z",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5",
  explore: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM15.5 8.5l-2 5-5 2 2-5z",
  schedules: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2",
  fleet: "M4 5h16v5H4zM4 14h16v5H4zM8 7.5h.01M8 16.5h.01",
  plus: "M12 5v14M5 12h14",
  back: "M15 5l-7 7 7 7",
  send: "M4 12h15M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  keys: "M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8",
};

/** A drawing that repeats what the text beside it says, or its control's name. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return svg;
}

/** Announces a result to people who see the page and to screen readers; it disappears by itself. */
export function announce(text, tone = "") {
  const host = document.getElementById("toasts");
  const toast = el("p", `toast ${tone}`, plain(text));
  host.append(toast);
  while (host.children.length > 3) host.firstElementChild.remove();
  setTimeout(() => toast.remove(), 8_000);
}

/** A page without content: its reason, and what to do. */
export function empty(title, text, ...actions) {
  return el("div", "empty", el("p", "empty-title", title), text ? el("p", "faint", text) : "", actions.length ? el("div", "actions", ...actions) : "");
}

/** A failure with a way to repeat what failed. */
export function failure(error, again) {
  const node = el("div", "empty", el("p", "bad", plain(error.message)), again ? button("Try again", again) : "");
  node.setAttribute("role", "alert");
  return node;
}
