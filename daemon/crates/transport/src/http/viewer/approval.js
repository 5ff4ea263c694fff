// One approval: what the call would do, what each answer stores, and the answers.
import { code, diff } from "./code.js";
import { announce, button, el, fitted, labelled, lines, link, plain, select } from "./dom.js";
import { clock, distance, shortFolder, titleOf, when } from "./format.js";
import { call, callUntilAnswered, clientName, may } from "./rpc.js";

/** An answer given sooner after the approval appeared was meant for the previous one (milliseconds). */
const READ_MS = 400;

const DECISIONS = { once: "Allowed once", session: "Allowed for the session", always: "Always allowed", deny: "Denied" };

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
    this.problem = el("p", "bad");
    this.problem.setAttribute("role", "alert");
    const heading = el("h2", "approval-title", this.title());
    heading.id = `approval-${approval.approvalId}`;
    this.node = el("article", "card approval", heading, withSession ? this.origin() : "", ...this.effect(), this.rules(), this.answers(), this.problem);
    this.node.setAttribute("aria-labelledby", heading.id);
  }

  title() {
    const { form, preview } = this.approval;
    return form ? `The MCP server ${plain(form.server)} has a question` : fitted(preview.summary || this.approval.tool, 300);
  }

  origin() {
    const { sessionId, tool, rule, createdAt, expiresAt } = this.approval;
    const name = link(`/session/${sessionId}`, "", "session");
    const folder = el("code", "path");
    sessionOf(sessionId).then((session) => {
      name.textContent = titleOf(session);
      folder.textContent = plain(shortFolder(session.root));
      folder.title = session.root ?? "";
    });
    const facts = [["Session", name], ["Folder", folder], ["Tool", el("code", "", plain(tool))], ["Because of", el("span", "", plain(rule))],
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
    if (!grants || !patterns?.length || !may("approval.resolve")) return "";
    const own = fitted(grants.split("\n").join(", "), 120);
    this.pattern = select([["", own], ...patterns.map((rule) => [rule, fitted(rule, 120)])], "");
    return labelled("Rule that the session or always stores", this.pattern);
  }

  answers() {
    this.row = el("div", "answers");
    if (!may("approval.resolve")) {
      this.row.append(el("p", "faint", "This page may not answer approvals: its right 'approve' is missing."));
      return this.row;
    }
    const { form, grants } = this.approval;
    const add = (decision, text, key, stores, names = "") => {
      const one = button("", () => this.answer(decision), names);
      one.dataset.decision = decision;
      const hint = el("kbd", "", key);
      hint.setAttribute("aria-hidden", "true");
      one.append(el("span", "", text), key ? hint : "");
      const note = el("span", "faint", stores);
      note.id = `stores-${decision}-${this.approval.approvalId}`;
      one.setAttribute("aria-describedby", note.id);
      this.row.append(el("div", "answer", one, note));
    };
    if (form) {
      add("once", "Send", "y", "Nothing is stored.", "main");
      add("deny", "Decline", "n", "Nothing is stored.");
      return this.row;
    }
    add("once", "Allow once", "y", "Stores nothing.", "main");
    if (grants) {
      // Complete, since it is what the answer grants.
      const rule = grants.split("\n").join(", ");
      add("session", "Allow for this session", "a", `Until the session ends: ${rule}`);
      add("always", "Always allow", "", `Stores a rule that stays until it is revoked: ${rule}`);
    }
    add("deny", "Deny", "n", "Stores nothing; the model receives the denial.", "danger");
    return this.row;
  }

  async answer(decision) {
    if (this.busy || performance.now() - this.since < READ_MS) return;
    if ((decision === "session" || decision === "always") && !this.approval.grants) return;
    const filled = this.approval.form && decision === "once" ? this.inputs.map(([field, node]) => [field.name, value(field, node)]) : [];
    const values = Object.fromEntries(filled.filter(([, entered]) => entered !== undefined));
    const pattern = (decision === "session" || decision === "always") && this.pattern?.value ? { pattern: this.pattern.value } : {};
    this.setBusy(true);
    try {
      const params = { approvalId: this.approval.approvalId, decision, ...(filled.length ? { values } : {}), ...pattern };
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

  /** Answers by key; true if it was one. */
  key(key) {
    const decision = { y: "once", a: "session", n: "deny" }[key];
    if (!decision || !may("approval.resolve")) return false;
    this.answer(decision);
    return true;
  }
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
