// A list of rows of equal height that draws only the visible ones.
import { el } from "./dom.js";

const SPARE = 10;

/** `draw(index)` returns the cells of a row, or nothing while it is loading; `chosen(index)` runs when one is selected. */
export class Rows {
  constructor(kind, height, label, draw, chosen) {
    this.kind = kind;
    this.height = height;
    this.draw = draw;
    this.onchoose = chosen;
    this.count = 0;
    this.at = 0;
    this.follow = false;
    this.host = el("div", "rows");
    this.host.tabIndex = 0;
    this.host.setAttribute("role", "listbox");
    this.host.setAttribute("aria-label", label);
    this.space = el("div");
    this.space.setAttribute("role", "presentation");
    this.host.append(this.space);
    this.host.onscroll = () => this.later();
    this.host.onclick = (event) => {
      const row = event.target.closest(".row");
      if (row) this.choose(Number(row.dataset.at));
    };
    this.observer = new ResizeObserver(() => this.later());
    this.observer.observe(this.host);
  }

  size(count) {
    this.count = count;
    this.host.classList.toggle("none", count === 0);
    this.space.style.height = `${count * this.height}px`;
    if (this.follow) this.host.scrollTop = count * this.height;
    this.later();
  }

  /** Schedules one painting before the next frame. */
  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
    });
  }

  paint() {
    const first = Math.max(0, Math.floor(this.host.scrollTop / this.height) - SPARE);
    const last = Math.min(this.count, Math.ceil((this.host.scrollTop + this.host.clientHeight) / this.height) + SPARE);
    const rows = [];
    for (let at = first; at < last; at += 1) {
      const row = el("div", `row ${this.kind}${at === this.at ? " chosen" : ""}`, ...(this.draw(at) ?? [el("span", "faint", "…")]));
      row.style.top = `${at * this.height}px`;
      row.style.height = `${this.height}px`;
      row.dataset.at = at;
      row.id = `${this.kind}-${at}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", at === this.at);
      row.setAttribute("aria-setsize", this.count);
      row.setAttribute("aria-posinset", at + 1);
      rows.push(row);
    }
    this.host.replaceChildren(this.space, ...rows);
    if (this.at >= first && this.at < last) this.host.setAttribute("aria-activedescendant", `${this.kind}-${this.at}`);
    else this.host.removeAttribute("aria-activedescendant");
  }

  /** Selects a row; `quiet` suppresses the notification. */
  choose(at, quiet) {
    if (this.count === 0) return;
    this.at = Math.max(0, Math.min(this.count - 1, at));
    const top = this.at * this.height;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    const below = top + this.height - this.host.clientHeight;
    if (below > this.host.scrollTop) this.host.scrollTop = below;
    this.later();
    if (!quiet) this.onchoose?.(this.at);
  }

  close() {
    this.observer.disconnect();
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
