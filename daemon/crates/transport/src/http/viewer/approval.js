// One approval: what the call would do, what each answer stores, and the answers.
import { ARMING_MS, AnswerKeys } from "./answer_keys.js";
import { code, diff } from "./code.js";
import { announce, button, el, fitted, labelled, lines, link, plain, select } from "./dom.js";
import { clock, distance, shortFolder, titleOf, when } from "./format.js";
import { call, callUntilAnswered, clientName, may } from "./rpc.js";

/** Answers that outlive the call, with their keys and texts: a second step confirms them. */
const LASTING = [
  { key: "a", decision: "session", text: "Allow for this session", stores: "Until the session ends: " },
  { key: "A", decision: "always", text: "Always in this project", stores: "Stores a rule for this project, until it is removed: " },
  { key: "E", decision: "everywhere", text: "Everywhere", stores: "Stores a rule for every project, until it is removed: " },
];
/** The same for the first of the wider rules. */
const PATTERN_KEYS = { p: "session", P: "always" };

/** Times of the last two keys, wherever they were pressed. */
let lastKeyAt = -Infinity;
let previousKeyAt = -Infinity;
document.addEventListener("keydown", (event) => {
  previousKeyAt = lastKeyAt;
  lastKeyAt = event.timeStamp;
}, { capture: true });

const DECISIONS = { once: "Allowed once", session: "Allowed for the session", always: "Allowed from now on in its project", everywhere: "Allowed from now on everywhere", deny: "Denied" };

/** Title and folder of the sessions of approvals. */
const sessions = new Map();
const MAX_SESSIONS = 500;

export async function sessionOf(id) {
  if (!sessions.has(id)) {
    if (sessions.size >= MAX_SESSIONS) sessions.delete(sessions.keys().next().value);
    sessions.set(id, call("session.get", { sessionId: id }).catch(() => {
      sessions.delete(id);
      return { sessionId: id, title: "" };
    }));
  }
  return sessions.get(id);
}

/** Why the daemon denied an approval without an answer. */
const UNANSWERED = { deadline: "no answer arrived in time", cancelled: "the turn ended", no_approver: "no client was connected that answers approvals" };

/** The answer to an approval, its author and the reason. */
export function resolutionText({ decision, by, reason }) {
  if (UNANSWERED[by]) return `Denied: ${UNANSWERED[by]}`;
  const author = by === clientName ? "you" : plain(by);
  return `${DECISIONS[decision] ?? decision} by ${author}${reason ? `: ${plain(reason)}` : ""}`;
}

export class ApprovalCard {
  /** `answered(approval)` runs after an answer was recorded, whoever gave it. */
  constructor(approval, { answered, withSession = true } = {}) {
    this.approval = approval;
    this.answered = answered;
    this.since = performance.now();
    this.keys = new AnswerKeys(this.lasting(), this.since);
    this.problem = el("p", "bad");
    this.problem.setAttribute("role", "alert");
    const heading = el("h2", "approval-title", this.title());
    heading.id = `approval-${approval.approvalId}`;
    this.node = el("article", "card approval", heading, withSession ? this.origin() : "", ...this.effect(), this.rules(), this.answers(), this.problem);
    this.node.setAttribute("aria-labelledby", heading.id);
    this.node.tabIndex = 0;
    this.node.addEventListener("focusin", () => this.focused());
    this.node.addEventListener("focusout", (event) => this.node.contains(event.relatedTarget) || this.blurred());
    this.showKeys();
  }

  /** The answers that outlive the call, by key. */
  lasting() {
    const { form, grants, patterns } = this.approval;
    if (form || !grants.length) return {};
    const own = this.offered().map(({ key, decision }) => [key, { decision }]);
    const wider = patterns?.length ? Object.entries(PATTERN_KEYS).filter(([, decision]) => this.isOffered(decision)).map(([key, decision]) => [key, { decision, pattern: patterns[0] }]) : [];
    return Object.fromEntries([...own, ...wider]);
  }

  /** The answers that outlive the call; a session without a folder has no project. */
  offered() {
    return LASTING.filter(({ decision }) => this.isOffered(decision));
  }

  isOffered(decision) {
    return decision !== "always" || Boolean(this.approval.project);
  }

  focused() {
    this.keys.focus(performance.now());
    this.showKeys();
  }

  blurred() {
    const wasSelected = this.keys.selected !== undefined;
    this.keys.blur();
    if (wasSelected) this.drawAnswers();
    this.showKeys();
  }

  /** States whether keys answer now; keys that do not answer yet are drawn faint. */
  showKeys() {
    clearTimeout(this.timer);
    const isFocused = this.keys.focusedAt !== undefined;
    const isArmed = this.keys.isArmed(performance.now(), lastKeyAt);
    this.node.classList.toggle("armed", isArmed);
    this.hint.textContent = isFocused ? "" : "Keys answer a request that has the focus: Enter, Tab or a click gives it.";
    if (isFocused && !isArmed) this.timer = setTimeout(() => this.showKeys(), ARMING_MS / 4);
  }

  title() {
    const { form, preview } = this.approval;
    return form ? `The MCP server ${plain(form.server)} has a question` : fitted(preview.summary || this.approval.tool, 300);
  }

  origin() {
    const { sessionId, tool, rule, createdAt, expiresAt, project } = this.approval;
    const name = link(`/session/${sessionId}`, "", "session");
    const folder = el("code", "path");
    sessionOf(sessionId).then((session) => {
      name.textContent = titleOf(session);
      folder.textContent = plain(shortFolder(session.root));
      folder.title = session.root ?? "";
    });
    const facts = [["Session", name], ["Folder", folder], ["Tool", el("code", "", plain(tool))], ["Because of", el("span", "", plain(rule))],
      ...(project ? [["Project", el("code", "path", plain(project))]] : []),
      ["Asked", when(createdAt)], ["Counts as denied", el("span", "", `${distance(expiresAt)} (${clock(expiresAt)})`)]];
    return el("dl", "facts", ...facts.flatMap(([term, value]) => [el("dt", "", term), el("dd", "", value)]));
  }

  /** Shows exactly what the call would do. */
  effect() {
    const { preview, form, arguments: args } = this.approval;
    if (form) return this.form(form);
    const parts = (preview.warnings ?? []).map((text) => el("p", "warning", plain(text)));
    if (preview.network) parts.push(el("p", "warning", preview.domains?.length ? `Reaches the network: ${plain(preview.domains.join(", "))}` : "Reaches the network."));
    if (preview.command) {
      parts.push(el("p", "faint", "Command, in ", el("code", "", plain(preview.folder ?? "the folder of the session"))), code(preview.command, "bash"));
    }
    const whole = () => code(JSON.stringify(args, null, 2) ?? "", "json");
    // A long diff is incomplete, the arguments never are.
    if (preview.diff) parts.push(diff(preview.diff), el("details", "", el("summary", "faint", "Arguments"), whole()));
    else if (!preview.command) parts.push(whole());
    return parts;
  }

  /** A question of an MCP server: its fields, whose values go to that server. */
  form(form) {
    this.inputs = form.fields.map((field) => [field, input(field)]);
    return [el("p", "", lines(form.message)), ...this.inputs.map(([field, node]) =>
      labelled(`${plain(field.title ?? field.name)}${field.required ? "" : " (optional)"}`, node, field.description ? plain(field.description) : undefined)),
    el("p", "faint", "The values go to the server, not to the model.")];
  }

  /** The rules of which one is stored by an answer that stores one. */
  rules() {
    const { grants, patterns } = this.approval;
    if (!grants.length || !patterns?.length || !may("approval.resolve")) return "";
    const own = fitted(ruleText(grants), 120);
    this.pattern = select([["", own], ...patterns.map((rules, at) => [String(at), fitted(ruleText(rules), 120)])], "");
    return labelled("Rule that an answer for more than this call stores", this.pattern);
  }

  answers() {
    this.row = el("div", "answers");
    this.hint = el("p", "faint keys-hint");
    this.drawAnswers();
    return el("div", "", this.row, may("approval.resolve") ? this.hint : "");
  }

  /** Draws the answers, or the second step of the one that is selected. */
  drawAnswers() {
    if (!may("approval.resolve")) {
      this.row.replaceChildren(el("p", "faint", "This page may not answer approvals: its right 'approve' is missing."));
      return;
    }
    if (this.keys.selected !== undefined) {
      this.row.replaceChildren(this.confirmation(this.keys.selected));
      return;
    }
    this.row.replaceChildren();
    const { form, grants } = this.approval;
    const add = (decision, text, key, stores, act, names = "") => {
      const one = button("", act, names);
      one.dataset.decision = decision;
      const hint = el("kbd", "", key);
      hint.setAttribute("aria-hidden", "true");
      one.append(el("span", "", text), key ? hint : "");
      const note = el("span", "faint", stores);
      note.id = `stores-${decision}-${this.approval.approvalId}`;
      one.setAttribute("aria-describedby", note.id);
      this.row.append(el("div", "answer", one, note));
    };
    const single = (decision) => () => this.answer({ decision });
    if (form) {
      add("once", "Send", "y", "Nothing is stored.", single("once"), "main");
      add("deny", "Decline", "n", "Nothing is stored.", single("deny"));
      return;
    }
    add("once", "Allow once", "y", "Stores nothing.", single("once"), "main");
    if (grants.length) {
      // Complete, since it is what the answer grants.
      const rule = ruleText(grants);
      for (const { key, decision, text, stores } of this.offered()) {
        add(decision, text, key, `${stores}${rule}`, () => this.select({ decision, ...this.chosenPattern() }));
      }
    }
    add("deny", "Deny", "n", "Stores nothing; the model receives the denial.", single("deny"), "danger");
  }

  chosenPattern() {
    return this.pattern?.value ? { pattern: this.approval.patterns[this.pattern.value] } : {};
  }

  select(answer) {
    if (this.busy || performance.now() - this.since < ARMING_MS) return;
    this.keys.select(answer, performance.now());
    this.drawAnswers();
    // Enter is a key of the approval, not of a button: the rules of keys hold for it.
    this.node.focus();
  }

  /** The second step: exactly what would be stored, and how to confirm it or go back. */
  confirmation({ decision, pattern }) {
    const { text, stores } = LASTING.find((one) => one.decision === decision);
    const confirm = button("", () => this.keys.mayConfirm(performance.now()) && this.answer(this.keys.selected), "main");
    confirm.dataset.confirm = decision;
    const back = button("", () => this.goBack(), "");
    for (const [node, name, key] of [[confirm, text, "Enter"], [back, "Back", "Esc"]]) {
      const hint = el("kbd", "", key);
      hint.setAttribute("aria-hidden", "true");
      node.append(el("span", "", name), hint);
    }
    const step = el("div", "confirmation", el("p", "", stores, el("code", "", ruleText(pattern ?? this.approval.grants)), decision === "always" ? ` in ${plain(this.approval.project)}` : ""), el("div", "actions", confirm, back));
    step.setAttribute("role", "status");
    return step;
  }

  goBack() {
    this.keys.selected = undefined;
    this.drawAnswers();
    this.node.focus();
  }

  async answer({ decision, pattern }) {
    if (this.busy || performance.now() - this.since < ARMING_MS) return;
    const filled = this.approval.form && decision === "once" ? this.inputs.map(([field, node]) => [field.name, value(field, node)]) : [];
    const values = Object.fromEntries(filled.filter(([, entered]) => entered !== undefined));
    this.setBusy(true);
    try {
      const params = { approvalId: this.approval.approvalId, decision, ...(filled.length ? { values } : {}), ...(pattern ? { pattern } : {}) };
      const resolved = await callUntilAnswered("approval.resolve", params);
      announce(`${DECISIONS[decision]}: ${this.title()}`, decision === "deny" ? "" : "good");
      this.answered?.(resolved);
    } catch (error) {
      this.failed(error, decision);
    } finally {
      this.setBusy(false);
    }
  }

  /** An answer whose confirmation was lost was recorded as this page's own; another is reported with its author. */
  failed(error, decision) {
    const first = error.details?.resolution;
    if (error.reason === "approval_resolved" && first) {
      const own = first.by === clientName && first.decision === decision;
      announce(own ? `${DECISIONS[decision]}: ${this.title()}` : `Already answered. ${resolutionText(first)}.`, own ? "good" : "bad");
      this.answered?.({ ...this.approval, resolution: first });
      return;
    }
    this.problem.textContent = plain(error.reason === "disconnected"
      ? "There is no connection: the answer may not have arrived. Answer again when the page is connected; the first answer counts."
      : error.message);
  }

  setBusy(busy) {
    this.busy = busy;
    if (busy) this.problem.textContent = "";
    for (const one of this.row.querySelectorAll("button")) one.disabled = busy;
  }

  /** Takes a key while this approval has the focus; true if it was one of its own. */
  key(key, at) {
    if (!may("approval.resolve") || this.busy || !this.node.contains(document.activeElement)) return false;
    const effect = this.keys.press(key, at, previousKeyAt);
    this.showKeys();
    if (!effect) return false;
    if (effect.selected || effect.back) this.drawAnswers();
    if (effect.answer) this.answer(typeof effect.answer === "string" ? { decision: effect.answer } : effect.answer);
    return true;
  }
}

/** Rules as text, for people. */
function ruleText(rules) {
  return plain(rules.join(", "));
}

/** The input of a field of a form. */
function input(field) {
  if (field.kind === "choice" || field.kind === "choices") {
    const node = select(field.options.map((option) => [option.value, plain(option.title ?? option.value)]));
    node.multiple = field.kind === "choices";
    if (!node.multiple && !field.required) node.prepend(el("option"));
    for (const option of node.options) option.selected = [field.default].flat().includes(option.value);
    return node;
  }
  const node = el("input");
  if (field.kind === "boolean") {
    node.type = "checkbox";
    node.checked = field.default === true;
  } else node.value = field.default ?? "";
  return node;
}

/** The value of a field's input; undefined for none. */
function value(field, node) {
  if (field.kind === "boolean") return node.checked;
  if (field.kind === "choices") return [...node.selectedOptions].map((option) => option.value);
  if (node.value === "") return undefined;
  return field.kind === "number" || field.kind === "integer" ? Number(node.value) : node.value;
}
