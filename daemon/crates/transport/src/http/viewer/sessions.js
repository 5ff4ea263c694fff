// All sessions, newest first.
import { button, el, empty, failure, link } from "./dom.js";
import { sessionRow } from "./home.js";
import { repeat } from "./poll.js";
import { call, may } from "./rpc.js";

const PAGE = 100;

export class Sessions {
  constructor() {
    this.data = [];
    this.list = el("ul", "entries-list");
    this.more = button("Show more", () => this.next());
    this.more.hidden = true;
    this.filter = el("input");
    this.filter.type = "search";
    this.filter.placeholder = "Filter by title or folder";
    this.filter.setAttribute("aria-label", "Filter by title or folder");
    this.filter.oninput = () => this.paint();
    this.body = el("div", "page-body", this.list, this.more);
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Sessions"), this.filter), this.body);
  }

  begin() {
    // Further pages are not repeated: only the newest sessions change.
    this.stop = repeat(() => this.load());
  }

  close() {
    this.stop?.();
  }

  async load() {
    try {
      const { data, nextCursor } = await call("session.list", { limit: PAGE });
      const seen = JSON.stringify(data) + Math.floor(Date.now() / 60_000);
      if (seen === this.seen) return;
      this.seen = seen;
      const known = new Set(data.map((session) => session.sessionId));
      const rest = this.data.slice(PAGE).filter((session) => !known.has(session.sessionId));
      if (!rest.length) this.cursor = nextCursor;
      this.data = [...data, ...rest];
      this.paint();
    } catch (error) {
      if (!this.seen) this.body.replaceChildren(failure(error, () => location.reload()));
      throw error;
    }
  }

  async next() {
    const { data, nextCursor } = await call("session.list", { limit: PAGE, cursor: this.cursor });
    this.cursor = nextCursor;
    this.data.push(...data);
    this.paint();
  }

  paint() {
    const text = this.filter.value.trim().toLowerCase();
    const found = this.data.filter((session) => !text || `${session.title} ${session.root ?? ""}`.toLowerCase().includes(text));
    const focus = document.activeElement?.dataset?.row;
    this.list.replaceChildren(...found.map((session) => sessionRow({ session })));
    if (!found.length) {
      this.list.replaceChildren(el("li", "", this.data.length ? empty("No session matches", "") : empty("No sessions yet", "", may("orchestrate.run.start") ? link("/new", "button main", "Start one") : "")));
    }
    if (focus) this.list.querySelector(`[data-row="${CSS.escape(focus)}"]`)?.focus();
    this.more.hidden = !this.cursor;
  }
}
