// One session: its conversation, live; its report if it is an explore; its records as a second view.
import { ApprovalCard, resolutionText } from "./approval.js";
import { body, outcome, target, took, verb } from "./calls.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { code, diff } from "./code.js";
import { announce, button, el, empty, failure, icon, lines, link, plain } from "./dom.js";
import { chip, count, dollars, duration, number, shortFolder, titleOf, when } from "./format.js";
import { markdown } from "./markdown.js";
import { Report } from "./report.js";
import { call, Follower, may } from "./rpc.js";
import { Trace } from "./trace.js";

/** Records that are loaded first: several screens of them. */
const FIRST = 150;
/** Records of each further request. */
const PAGE = 500;
/** Records in the page; further ones replace those at the other end. */
const MAX_RECORDS = 3_000;
/** Distance from the end within which the view follows it (pixels). */
const NEAR = 80;
/** Shortest time between two paintings of a text that is being written (milliseconds). */
const PAINT_MS = 60;

export class SessionPage {
  constructor(id, view) {
    this.id = id;
    this.view = view;
    this.records = [];
    this.head = 0;
    this.nodes = new Map();
    this.title = el("h1", "session-title", "Session");
    this.facts = el("p", "facts-line faint");
    this.state = el("span");
    const tab = (route, text, name) => {
      const node = link(route, "tab", text);
      if (name === view) node.setAttribute("aria-current", "page");
      return node;
    };
    this.tabs = el("nav", "tabs", tab(`/session/${id}`, "Conversation", "conversation"), tab(`/session/${id}/records`, "Records", "records"));
    this.tabs.setAttribute("aria-label", "Views of the session");
    const back = link("/", "icon-button back", icon("back"));
    back.setAttribute("aria-label", "Back to Home");
    this.content = el("div", "session-content");
    this.node = el("div", "page session-page", el("header", "session-head", back, el("div", "session-name", this.title, this.facts), this.state, this.tabs), this.content);
  }

  async begin() {
    try {
      const [session, begin] = await Promise.all([call("session.get", { sessionId: this.id }), call("trace.get", { traceId: this.id, after: 0, limit: 1 })]);
      this.session = session;
      const first = begin.data[0]?.evt;
      this.isExplore = first?.type === "started" && first.op === "explore";
      this.head = session.headSeq;
      this.showHead();
      if (this.view === "records") this.open(new Trace(session));
      else if (this.isExplore) this.open(new Report(session, { failed: (reason, message) => this.exploreFailed(reason, message) }));
      else await this.openConversation();
    } catch (error) {
      const text = error.reason === "session_not_found" ? "There is no such session: it may have been deleted." : error.message;
      this.content.replaceChildren(failure({ message: text }, () => this.begin()));
    }
  }

  /** Shows a view with its own node. */
  open(part) {
    this.part = part;
    this.content.replaceChildren(part.bar, part.node);
    part.begin().catch((error) => this.content.replaceChildren(failure(error)));
  }

  exploreFailed(reason, message) {
    this.onExploreFailed?.(reason, message);
  }

  showHead() {
    const title = titleOf(this.session);
    this.title.textContent = title;
    this.title.title = title;
    document.title = `${title} · Cairn`;
    if (this.isExplore) this.tabs.firstElementChild.textContent = "Report";
    const root = el("code", "path", plain(shortFolder(this.session.root)));
    root.title = this.session.root ?? "";
    this.facts.replaceChildren(...[this.session.root && root, when(this.session.updatedAt), this.model && el("span", "", plain(this.model)),
      this.cost !== undefined && el("span", "", dollars(this.cost))].filter(Boolean));
    this.state.replaceChildren(this.waits ? chip("waiting", "waits for you") : chip(this.session.state));
  }

  setState(state) {
    if (this.session.state === state) return;
    this.session.state = state;
    this.showHead();
  }

  async openConversation() {
    this.list = el("ol", "conversation");
    this.older = button("Earlier records", () => this.loadOlder(), "older");
    this.older.hidden = true;
    this.latest = button("Jump to the latest", () => this.loadTail(), "latest");
    this.latest.hidden = true;
    this.scroller = el("div", "scroller", this.older, this.list);
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "region");
    this.scroller.setAttribute("aria-label", "Conversation");
    this.scroller.onscroll = () => this.scrolled();
    this.composer = may("orchestrate.run.start") ? new Composer(this.id) : undefined;
    this.content.replaceChildren(this.scroller, el("div", "floating", this.latest),
      this.interrupted(), this.composer?.node ?? el("p", "faint notice", "This page may look at sessions, not start work: its right 'prompt' is missing."));
    await this.loadTail();
  }

  /** Offers to resume a session that the end of the daemon interrupted. */
  interrupted() {
    if (this.session.state !== "interrupted" || !may("session.resume")) return "";
    const notice = el("div", "notice actions", el("span", "warn", "The daemon stopped while this session was running."), button("Resume", async () => {
      await call("session.resume", { sessionId: this.id }).then(() => notice.remove(), (error) => announce(error.message, "bad"));
    }, "main"));
    return notice;
  }

  fetch(after, limit = PAGE) {
    return call("trace.get", { traceId: this.id, after, limit }).then(({ data }) => data);
  }

  /** Loads the newest records, and follows what comes after them. */
  async loadTail() {
    this.follower?.close();
    this.detached = false;
    this.records = await this.fetch(Math.max(0, this.head - FIRST), FIRST);
    this.head = Math.max(this.head, this.records.at(-1)?.seq ?? 0);
    this.rebuild();
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.follower = new Follower(this.id, this.records.at(-1)?.seq ?? 0, {
      take: (record) => this.take(record),
      gone: () => this.content.replaceChildren(empty("This session was deleted.", "")),
      failed: (error) => this.content.replaceChildren(failure(error, () => this.begin())),
    });
    await this.follower.resume();
  }

  /** Takes what happens while the page is open. */
  take(record) {
    if (!record.seq) {
      if (!this.detached) this.conversation.live(record.evt ?? {});
    } else {
      this.head = record.seq;
      if (this.detached) return;
      this.records.push(record);
      this.conversation.add(record);
      this.react(record.evt ?? {});
      if (this.records.length > MAX_RECORDS + PAGE) {
        this.records.splice(0, this.records.length - MAX_RECORDS);
        this.rebuild();
      }
    }
    this.later();
  }

  /** Announces what a person waits for. */
  react(evt) {
    if (evt.type === "run_completed") announce(evt.result.status === "completed" ? "The turn is complete." : `The turn has ended: ${evt.result.status}.`);
    if (evt.type === "approval_required") announce(`An answer is needed: ${evt.approval.preview?.summary ?? evt.approval.tool}`);
    if (evt.type === "run_started" || evt.type === "turn_accepted") this.setState("running");
    if (evt.type === "run_completed") this.setState(evt.result.status === "completed" ? "completed" : "stopped");
  }

  async loadOlder() {
    const first = this.records[0]?.seq ?? 1;
    if (this.loading || first <= 1) return;
    this.loading = true;
    try {
      const after = Math.max(0, first - 1 - PAGE);
      const page = (await this.fetch(after)).filter((record) => record.seq < first);
      this.records = [...page, ...this.records];
      if (this.records.length > MAX_RECORDS) {
        this.records.length = MAX_RECORDS;
        this.detached = true;
      }
      this.rebuild();
    } catch (error) {
      announce(error.message, "bad");
    } finally {
      this.loading = false;
    }
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    this.latest.hidden = this.atEnd && !this.detached;
    if (scrollTop < 600 && !this.older.hidden) this.loadOlder();
  }

  /** Folds all records again; nodes of unchanged items stay, with what is open in them. */
  rebuild() {
    const former = this.conversation?.byKey ?? new Map();
    this.conversation = new Conversation();
    for (const record of this.records) this.conversation.add(record);
    if (this.session.state === "running" && !this.detached) this.conversation.running = true;
    for (const item of this.conversation.items) {
      const old = former.get(item.key);
      if (old && isSame(old, item)) this.conversation.changed.delete(item);
    }
    this.older.hidden = (this.records[0]?.seq ?? 1) <= 1;
    const anchor = this.anchor();
    const drawn = new Map();
    const rows = this.conversation.items.map((item) => {
      const stored = this.nodes.get(item.key);
      const node = stored && !this.conversation.changed.has(item) ? stored : render(item, this);
      drawn.set(item.key, node);
      return node;
    });
    this.conversation.changed.clear();
    this.nodes = drawn;
    this.list.replaceChildren(...rows, this.waitingNode());
    if (anchor?.node.isConnected) this.scroller.scrollTop += anchor.node.getBoundingClientRect().top - anchor.top;
    this.after();
  }

  /** The first visible item and its position, which stay when items are added above. */
  anchor() {
    const top = this.scroller.getBoundingClientRect().top;
    for (const node of this.list.children) {
      const box = node.getBoundingClientRect();
      if (box.bottom > top) return { node, top: box.top };
    }
    return undefined;
  }

  waitingNode() {
    this.busy ??= el("li", "item busy", el("span", "spinner"), el("span", "faint", "Working"));
    return this.busy;
  }

  /** Schedules one painting. */
  later() {
    if (this.timer) return;
    const due = Math.max(0, PAINT_MS - (performance.now() - (this.painted ?? 0)));
    this.timer = setTimeout(() => requestAnimationFrame(() => {
      this.timer = undefined;
      this.painted = performance.now();
      this.paint();
    }), due);
  }

  paint() {
    if (!this.list?.isConnected) return;
    const follow = this.atEnd !== false;
    for (const item of this.conversation.changed) {
      const old = this.nodes.get(item.key);
      if (old?.refresh) {
        old.refresh(item);
        continue;
      }
      const node = render(item, this);
      if (old) old.replaceWith(node);
      else this.list.insertBefore(node, this.busy);
      this.nodes.set(item.key, node);
    }
    this.conversation.changed.clear();
    if (follow) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.after();
  }

  after() {
    const { running, model, costMicroUsd, items } = this.conversation;
    const waits = this.conversation.pending.size > 0;
    this.busy.hidden = !running || waits;
    if (waits !== this.waits) {
      this.waits = waits;
      this.showHead();
    }
    this.composer?.setRunning(running);
    if (model !== this.model || costMicroUsd !== this.cost) {
      this.model = model;
      this.cost = this.records[0]?.seq > 1 ? undefined : costMicroUsd;
      this.showHead();
    }
    const nothing = items.length === 0;
    if (nothing && !this.blank) this.list.before((this.blank = empty("Nothing has happened here yet.", this.composer ? "Write a message below to begin." : "")));
    if (!nothing && this.blank) {
      this.blank.remove();
      this.blank = undefined;
    }
  }

  close() {
    this.follower?.close();
    this.part?.close?.();
    clearTimeout(this.timer);
  }

  key(key, at) {
    if (this.part?.key?.(key)) return true;
    const cards = [...(this.nodes?.values() ?? [])].filter((node) => node.card).map((node) => node.card);
    const focused = cards.find((card) => card.node.contains(document.activeElement));
    if (focused?.key(key, at)) return true;
    if (key === "Escape") {
      if (focused) this.scroller.focus();
      else location.hash = "#/";
      return true;
    }
    if (!this.scroller) return false;
    if (key === "Enter" && cards.length && !focused) {
      cards[0].node.focus();
      return true;
    }
    if (key === "i" && this.composer) this.composer.text.focus();
    else if (key === "G" || key === "End") this.loadTail();
    else if (key === "g" || key === "Home") this.scroller.scrollTop = 0;
    else if (key === "j" || key === "k" || key === "ArrowDown" || key === "ArrowUp") this.scroller.scrollTop += key === "j" || key === "ArrowDown" ? 60 : -60;
    else return false;
    return true;
  }
}

function isSame(one, other) {
  const names = Object.keys(other);
  return names.length === Object.keys(one).length && names.every((name) => name === "version" || one[name] === other[name]);
}

const RENDERERS = { user, text, reasoning, call: callNode, approval, plan, diff: diffNode, note, end };

function render(item, page) {
  const node = RENDERERS[item.type](item, page);
  node.classList.add("item", item.type);
  return node;
}

function user(item) {
  const name = item.steered ? "To the running turn" : "You";
  const facts = [item.mode && item.mode !== "ask" ? `mode ${item.mode}` : "", item.images ? count(item.images, "image") : ""].filter(Boolean).join(", ");
  return el("li", "", el("h2", "who", name, facts ? el("span", "faint", facts) : "", when(item.ts)), el("div", "said", lines(item.text)));
}

function text(item) {
  const node = el("li", "", markdown(item.text + item.tail));
  node.refresh = (changed) => node.replaceChildren(markdown(changed.text + changed.tail));
  return node;
}

function reasoning(item) {
  const bodyNode = el("div", "thought");
  const details = el("details", "", el("summary", "faint", "Thought"), bodyNode);
  const node = el("li", "", details);
  node.refresh = (changed) => {
    bodyNode.textContent = lines(changed.text + changed.tail);
    details.firstElementChild.textContent = changed.streaming ? "Thinking" : "Thought";
  };
  node.refresh(item);
  return node;
}

const MARKS = { running: "…", waiting: "?", done: "✓", failed: "✗", stopped: "–" };
const STATE_NAMES = { running: "running", waiting: "waits for an answer", done: "done", failed: "failed", stopped: "did not run" };

function callNode(item) {
  const mark = el("span", "call-mark");
  mark.setAttribute("role", "img");
  const name = el("span", "call-verb");
  const object = el("code", "call-target");
  const result = el("span", "call-outcome");
  const time = el("span", "call-time faint");
  const details = el("details", "call", el("summary", "", mark, name, object, result, time));
  const bodyNode = el("div", "call-body");
  let current = item;
  const fill = () => bodyNode.replaceChildren(...body(current));
  details.ontoggle = () => {
    if (!details.open) return;
    if (!bodyNode.isConnected) details.append(bodyNode);
    fill();
  };
  const node = el("li", "", details);
  node.refresh = (changed) => {
    current = changed;
    details.dataset.state = changed.state;
    mark.textContent = MARKS[changed.state] ?? "";
    mark.setAttribute("aria-label", STATE_NAMES[changed.state] ?? changed.state);
    name.textContent = verb(changed.name);
    object.textContent = target(changed.name, changed.args);
    result.textContent = outcome(changed);
    result.classList.toggle("bad", changed.state === "failed" || /^exit/.test(result.textContent));
    time.textContent = took(changed);
    if (details.open) fill();
  };
  node.refresh(item);
  return node;
}

function approval(item) {
  const node = el("li");
  const draw = (changed) => {
    if (changed.resolution) {
      node.card = undefined;
      node.replaceChildren(el("p", `line ${changed.resolution.decision === "deny" ? "bad" : "faint"}`, resolutionText(changed.resolution)));
    } else if (!node.card) {
      node.card = new ApprovalCard(changed.approval, { withSession: false });
      node.replaceChildren(node.card.node);
    }
  };
  node.refresh = draw;
  draw(item);
  return node;
}

const STEP_MARKS = { done: "✓", in_progress: "●", pending: "○" };
const STEP_NAMES = { done: "done", in_progress: "in progress", pending: "pending" };

function plan(item) {
  const finished = item.steps.filter((step) => step.status === "done").length;
  const steps = item.steps.map((step) => {
    const mark = el("span", "step-mark", STEP_MARKS[step.status] ?? "○");
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", STEP_NAMES[step.status] ?? "pending");
    return el("li", `step ${step.status ?? "pending"}`, mark, el("span", "", plain(step.text)));
  });
  return el("li", "", el("div", "card plan-card", el("p", "card-title", `Plan, ${finished} of ${item.steps.length} done`), el("ol", "plan-steps", ...steps)));
}

function diffNode(item) {
  return el("li", "", el("div", "card", el("p", "card-title", `Changed ${count(item.paths?.length ?? 0, "file")}`), diff(item.diff, { folded: (item.paths?.length ?? 0) > 3 })));
}

function note(item) {
  const line = el("span", "", lines(item.text));
  if (!item.details) return el("li", "", el("p", `line ${item.tone ?? "faint"}`, line));
  return el("li", "", el("details", "", el("summary", `line ${item.tone ?? "faint"}`, line), code(item.details)));
}

function end(item) {
  const { status, error, usage } = item;
  const facts = [item.millis !== undefined && duration(item.millis), item.calls && count(item.calls, "call"),
    usage && `${number(usage.inputTokens + usage.outputTokens)} tokens`, usage?.costMicroUsd !== undefined && dollars(usage.costMicroUsd), item.model].filter(Boolean);
  const node = el("li", "", el("p", "turn-end faint", chip(status === "completed" ? "completed" : status === "failed" ? "failed" : "stopped", status), el("span", "", plain(facts.join(" · ")))));
  if (error) {
    const box = el("div", "card problem", el("p", "bad", plain(error.message)), error.hint ? el("p", "", plain(error.hint)) : "");
    node.prepend(box);
  }
  return node;
}
