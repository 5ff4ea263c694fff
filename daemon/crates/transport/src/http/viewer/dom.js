// Elements, and a list that draws only its visible rows. Text is always inserted as text.

/** Creates an element; string children become text. */
export function el(tag, names, ...children) {
  const made = document.createElement(tag);
  if (names) made.className = names;
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** Control characters, and invisible ones that reorder or hide text. */
const HIDDEN = /[\u{0}-\u{1f}\u{7f}-\u{9f}\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{fff9}-\u{fffb}\u{e0000}-\u{e007f}]/gu;

/** Sanitises a repository's text as one line: hidden characters become visible escapes. */
export function plain(text) {
  return String(text ?? "").replace(/[ \t\r\n]+/g, " ").replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

const wide = (c) => (c.codePointAt(0) >= 0x1100 ? 2 : 1);

/** Truncates a sanitised text to a number of cells. */
export function fitted(text, cells) {
  const all = [...plain(text).trim()];
  let used = 0;
  const end = all.findIndex((c) => (used += wide(c)) > cells);
  return end < 0 ? all.join("") : `${all.slice(0, Math.max(0, end - 1)).join("")}…`;
}

/** Wraps a sanitised text into at most `most` lines. */
export function wrapped(text, cells, most) {
  const lines = [];
  for (const word of plain(text).trim().split(" ").filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= cells) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  const listed = lines.slice(0, most);
  if (lines.length > most) listed[most - 1] = `${listed[most - 1]} ${lines[most]}`;
  return listed.map((line) => fitted(line, cells));
}

export function button(text, act) {
  const made = el("button", "", text);
  made.onclick = act;
  return made;
}

/** Renders a unified diff, with added and removed lines marked. */
export function diff(text) {
  const kind = (line) => (/^\+(?!\+\+ )/.test(line) ? "add" : /^-(?!-- )/.test(line) ? "cut" : "");
  return el("pre", "diff", ...text.split("\n").map((line) => el("span", kind(line), line || " ")));
}

const ROW = 24;
const SPARE = 10;

/** Rows of equal height; `draw(index)` returns the cells of a row, or nothing while it is loading. */
export class Rows {
  constructor(kind, draw, chosen) {
    this.kind = kind;
    this.draw = draw;
    this.onchoose = chosen;
    this.count = 0;
    this.at = 0;
    this.follow = false;
    this.host = el("div", "rows");
    this.host.tabIndex = 0;
    this.host.setAttribute("role", "listbox");
    this.space = el("div", "");
    this.host.append(this.space);
    this.host.onscroll = () => this.later();
    this.host.onclick = (event) => {
      const row = event.target.closest(".row");
      if (row) this.choose(Number(row.dataset.at));
    };
    new ResizeObserver(() => this.later()).observe(this.host);
  }

  size(count) {
    this.count = count;
    this.space.style.height = `${count * ROW}px`;
    if (this.follow) this.host.scrollTop = count * ROW;
    this.later();
  }

  /** Schedules one redraw before the next frame. */
  later() {
    this.due ??= requestAnimationFrame(() => {
      this.due = undefined;
      this.paint();
    });
  }

  paint() {
    const first = Math.max(0, Math.floor(this.host.scrollTop / ROW) - SPARE);
    const last = Math.min(this.count, Math.ceil((this.host.scrollTop + this.host.clientHeight) / ROW) + SPARE);
    const rows = [];
    for (let at = first; at < last; at += 1) {
      const row = el("div", `row ${this.kind}${at === this.at ? " chosen" : ""}`, ...(this.draw(at) ?? [el("span", "faint", "…")]));
      row.style.top = `${at * ROW}px`;
      row.dataset.at = at;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", at === this.at);
      rows.push(row);
    }
    this.host.replaceChildren(this.space, ...rows);
  }

  /** Selects a row; `quiet` suppresses the notification. */
  choose(at, quiet) {
    if (this.count === 0) return;
    this.at = Math.max(0, Math.min(this.count - 1, at));
    const top = this.at * ROW;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    const below = top + ROW - this.host.clientHeight;
    if (below > this.host.scrollTop) this.host.scrollTop = below;
    this.later();
    if (!quiet) this.onchoose?.(this.at);
  }

  /** Handles a navigation key; returns true if it was one. */
  key(key) {
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    if (key in steps) this.choose(this.at + steps[key]);
    else if (key === "g" || key === "Home") this.choose(0);
    else if (key === "G" || key === "End") this.choose(this.count - 1);
    else return false;
    this.follow = key === "G" || key === "End";
    return true;
  }
}
