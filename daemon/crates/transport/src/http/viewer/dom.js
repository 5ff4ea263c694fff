// Elements, and a list that draws only its visible rows. Text is always inserted as text.

/** An element; strings among its children are text. */
export function el(tag, names, ...children) {
  const made = document.createElement(tag);
  if (names) made.className = names;
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

export function button(text, act) {
  const made = el("button", "", text);
  made.onclick = act;
  return made;
}

/** A unified diff with its lines told apart. */
export function diff(text) {
  const kind = (line) => (/^\+(?!\+\+ )/.test(line) ? "add" : /^-(?!-- )/.test(line) ? "cut" : "");
  return el("pre", "diff", ...text.split("\n").map((line) => el("span", kind(line), line || " ")));
}

const ROW = 24;
const SPARE = 10;

/** Rows of one height; `draw(index)` gives the cells of one, or nothing while it is on its way. */
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

  /** Draws once before the next frame. */
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

  /** Goes to a row; `quiet` when nobody is to be told. */
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

  /** Whether the key was one of a list. */
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
