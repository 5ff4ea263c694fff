// The message to a session: a new turn, or a hint to the running one.
import { announce, button, el, icon, labelled, plain, select } from "./dom.js";
import { call, may } from "./rpc.js";

export const MODES = [["ask", "Ask before effects"], ["plan", "Plan only, change nothing"], ["accept-edits", "Edit files freely"], ["auto", "Work freely in the sandbox"]];
const MODE_KEY = "cairn-viewer-mode";
/** Longest message to a running turn, in bytes. */
const MAX_STEER = 16 * 1024;

export const lastMode = () => localStorage.getItem(MODE_KEY) ?? "ask";
export const rememberMode = (mode) => localStorage.setItem(MODE_KEY, mode);

/** A retry key: a repeated request with it starts nothing twice. */
export const retryKey = () => [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Modes that raise what a turn may do need the right to approve. */
export const modesOf = () => MODES.filter(([mode]) => mode === "ask" || mode === "plan" || may("approval.resolve"));

export class Composer {
  constructor(sessionId) {
    this.sessionId = sessionId;
    this.text = el("textarea");
    this.text.rows = 2;
    this.text.setAttribute("aria-label", "Message");
    this.mode = select(modesOf(), lastMode());
    this.mode.onchange = () => rememberMode(this.mode.value);
    this.send = el("button", "main send", icon("send"), el("span", "", "Send"));
    this.send.type = "submit";
    this.steer = button("Send now", () => this.submit("steer"));
    this.cancel = el("button", "danger", icon("stop"), el("span", "", "Cancel turn"));
    this.cancel.type = "button";
    this.cancel.onclick = () => this.stop();
    this.problem = el("p", "bad");
    this.problem.setAttribute("role", "alert");
    this.node = el("form", "composer", this.text, el("div", "composer-row", labelled("Mode", this.mode), this.cancel, this.steer, this.send), this.problem);
    this.node.onsubmit = (event) => {
      event.preventDefault();
      this.submit("start");
    };
    this.text.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.node.requestSubmit();
      if (event.key === "Escape") this.text.blur();
    };
    this.setRunning(false);
  }

  setRunning(running) {
    this.running = running;
    this.steer.title = "The running turn reads it before its next answer";
    this.steer.hidden = !running || !may("orchestrate.run.steer");
    this.cancel.hidden = !running || !may("orchestrate.run.cancel");
    this.text.placeholder = running ? "Send now to the running turn, or queue" : "Ask or request something";
    this.send.lastChild.textContent = running ? "Queue" : "Send";
  }

  async submit(kind) {
    const text = this.text.value.trim();
    if (!text) return this.text.focus();
    if (kind === "steer" && new TextEncoder().encode(text).length > MAX_STEER) return this.fail("A message to a running turn has at most 16 KiB: queue it as the next one.");
    // The same message keeps its key until it was accepted, so that a repetition after a lost answer starts no second turn.
    if (this.key?.text !== text) this.key = { text, id: retryKey() };
    this.node.inert = true;
    try {
      if (kind === "steer") await call("orchestrate.run.steer", { sessionId: this.sessionId, text });
      else await call("orchestrate.run.start", { sessionId: this.sessionId, turnId: this.key.id, input: text, policy: { mode: this.mode.value, allowExternalLLMs: true } });
      this.key = undefined;
      this.text.value = "";
      this.fail("");
    } catch (error) {
      this.fail(error.message);
    } finally {
      this.node.inert = false;
      this.text.focus();
    }
  }

  async stop() {
    this.cancel.disabled = true;
    try {
      await call("orchestrate.run.cancel", { sessionId: this.sessionId });
      announce("The turn is being cancelled.");
    } catch (error) {
      this.fail(error.message);
    } finally {
      this.cancel.disabled = false;
    }
  }

  fail(text) {
    this.problem.textContent = plain(text);
  }
}
