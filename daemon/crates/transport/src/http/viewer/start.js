// A new session: its folder, the mode, the first request.
import { button, el, failure, labelled, link, plain, select } from "./dom.js";
import { lastMode, modesOf, rememberMode, retryKey } from "./composer.js";
import { call, may } from "./rpc.js";

const ROOT_KEY = "cairn-viewer-root";

export class Start {
  constructor() {
    this.text = el("textarea");
    this.text.rows = 5;
    this.text.id = "start-text";
    this.text.placeholder = "fix the failing test, explain how login works, …";
    this.root = select([["", "Loading"]]);
    this.mode = select(modesOf(), lastMode());
    this.worktree = el("input");
    this.worktree.type = "checkbox";
    this.submit = el("button", "main", "Start");
    this.submit.type = "submit";
    this.problem = el("p", "bad");
    this.problem.setAttribute("role", "alert");
    this.body = el("div", "page-body");
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "New session")), this.body);
  }

  async begin() {
    if (!may("session.create") || !may("unattended.start")) {
      this.body.replaceChildren(el("p", "", "This page may look at sessions, not start work: its right 'prompt' is missing."), link("/", "button", "Home"));
      return;
    }
    try {
      const { roots } = await call("index.status", {});
      if (!roots.length) {
        this.body.replaceChildren(el("p", "", "A session works in a declared folder, and there is none yet. Declare one with 'cairn index add FOLDER', or run 'cairn chat' in it."));
        return;
      }
      const chosen = localStorage.getItem(ROOT_KEY);
      this.root = select(roots.map((root) => [root.path, plain(root.path)]), roots.some((root) => root.path === chosen) ? chosen : roots[0].path);
    } catch (error) {
      this.body.replaceChildren(failure(error, () => this.begin()));
      return;
    }
    const form = el("form", "start-form", labelled("Request", this.text), labelled("Folder", this.root), labelled("Mode", this.mode, "What the agent may do without asking you."),
      may("worktree.create") ? el("label", "check", this.worktree, el("span", "", "In a git work tree of its own")) : "", this.problem,
      el("div", "actions", this.submit, button("Cancel", () => history.back())),
      el("p", "faint", "The session goes on when this page is closed, and waits for your answers."));
    form.onsubmit = (event) => {
      event.preventDefault();
      this.start();
    };
    form.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    };
    this.body.replaceChildren(form);
    this.text.focus();
  }

  async start() {
    const text = this.text.value.trim();
    if (!text) return this.text.focus();
    rememberMode(this.mode.value);
    localStorage.setItem(ROOT_KEY, this.root.value);
    // A repetition after a lost answer creates no second session and starts no second turn.
    if (this.key?.text !== text) this.key = { text, id: retryKey() };
    this.submit.disabled = true;
    this.problem.textContent = "";
    try {
      const title = text.split("\n")[0].slice(0, 120);
      const session = await call("session.create", { title, root: this.root.value, requestId: this.key.id, ...(this.worktree.checked ? { worktree: "new" } : {}) });
      const policy = { mode: this.mode.value, allowExternalLLMs: true };
      await call("unattended.start", { turn: { sessionId: session.sessionId, turnId: this.key.id, input: text, policy } });
      location.hash = `#/session/${session.sessionId}`;
    } catch (error) {
      this.problem.textContent = plain(error.message);
    } finally {
      this.submit.disabled = false;
    }
  }
}
