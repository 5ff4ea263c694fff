// The list of sessions, approvals, and search.
import { button, diff, el, plain, Rows } from "./dom.js";
import { call } from "./rpc.js";

export class Sessions {
  constructor(open) {
    this.data = [];
    this.open = open;
    this.rows = new Rows("session", (at) => this.cells(at), undefined);
    this.rows.host.ondblclick = () => this.enter();
    this.node = this.rows.host;
    this.bar = el("div", "bar", el("span", "faint", "Enter opens a session, ? shows the keys"));
  }

  async begin() {
    const page = await call("session.list", { limit: 200 });
    this.data = page.data;
    this.cursor = page.nextCursor;
    this.rows.size(this.data.length);
  }

  /** Returns true while only the newest sessions are listed. */
  first() {
    return this.data.length <= 200;
  }

  async more() {
    const cursor = this.cursor;
    this.cursor = undefined;
    const page = await call("session.list", { limit: 200, cursor });
    this.data.push(...page.data);
    this.cursor = page.nextCursor;
    this.rows.size(this.data.length);
  }

  cells(at) {
    const session = this.data[at];
    if (this.cursor && at > this.data.length - 20) this.more().catch(() => {});
    const tone = { failed: "bad", interrupted: "bad", completed: "good", running: "mark" }[session.state] ?? "faint";
    return [
      el("span", "faint", session.updatedAt.slice(0, 19).replace("T", " ")),
      el("span", tone, session.state),
      el("span", "right faint", String(session.headSeq)),
      el("span", "", session.title),
      el("span", "faint", session.root ?? ""),
    ];
  }

  enter() {
    const session = this.data[this.rows.at];
    if (session) this.open(session);
  }

  key(key) {
    if (key === "Enter") this.enter();
    else return this.rows.key(key);
    return true;
  }
}

/** A key pressed sooner after the displayed approval changed was meant for the previous one (milliseconds). */
const READ_MS = 400;

/** The input of a field of a form. */
function input(field) {
  if (field.kind === "choice" || field.kind === "choices") {
    const select = el("select", "", ...field.options.map((o) => Object.assign(el("option", "", plain(o.title ?? o.value)), { value: o.value })));
    select.multiple = field.kind === "choices";
    if (!select.multiple && !field.required) select.prepend(el("option", ""));
    if (field.default !== undefined) for (const option of select.options) option.selected = [field.default].flat().includes(option.value);
    return select;
  }
  const box = el("input", "");
  if (field.kind === "boolean") {
    box.type = "checkbox";
    box.checked = field.default === true;
  } else box.value = field.default ?? "";
  return box;
}

/** The value of a field's input; undefined for none. */
function value(field, node) {
  if (field.kind === "boolean") return node.checked;
  if (field.kind === "choices") return [...node.selectedOptions].map((option) => option.value);
  if (node.value === "") return undefined;
  return field.kind === "number" || field.kind === "integer" ? Number(node.value) : node.value;
}

export class Approvals {
  constructor() {
    this.data = [];
    this.at = 0;
    this.node = el("div", "detail");
    this.bar = el("div", "bar");
  }

  /** Starts to display the view. */
  entered() {
    this.since = performance.now();
  }

  async begin() {
    const { data } = await call("approval.list", {});
    const seen = JSON.stringify(this.data.map((a) => a.approvalId));
    this.data = data.filter((approval) => !approval.resolution);
    // The list may change at any time; the selected entry stays selected.
    const same = this.data.findIndex((approval) => approval.approvalId === this.current);
    if (same >= 0) this.at = same;
    if (seen !== JSON.stringify(this.data.map((a) => a.approvalId)) || !this.node.firstChild) this.paint();
    return this.data.length;
  }

  paint() {
    this.at = Math.max(0, Math.min(this.at, this.data.length - 1));
    const approval = this.data[this.at];
    if (this.current !== approval?.approvalId) this.since = performance.now();
    this.current = approval?.approvalId;
    this.bar.replaceChildren(el("span", "faint", `${this.data.length} pending`));
    if (!approval) return this.node.replaceChildren(el("p", "faint", "no pending approvals"));
    const { preview } = approval;
    if (approval.form) return this.paintForm(approval);
    this.bar.append(button("y allow once", () => this.answer("once")));
    if (approval.grants) this.bar.append(button("a allow for the session", () => this.answer("session")));
    this.bar.append(button("n deny", () => this.answer("deny")));
    this.node.replaceChildren(
      el("h3", "", `${this.at + 1} of ${this.data.length}: ${preview.summary}`),
      el("p", "faint", `${approval.tool}, because of ${approval.rule}, until ${approval.expiresAt.slice(11, 19)}`),
      ...(preview.warnings ?? []).map((text) => el("p", "bad", text)),
      preview.command ? el("pre", "", `${preview.folder ?? "."}$ ${preview.command}`) : "",
      preview.diff ? diff(preview.diff) : el("pre", "", JSON.stringify(approval.arguments, null, 2)),
      approval.grants ? el("p", "faint", `a writes: ${approval.grants}`) : "",
    );
  }

  /** A question of an MCP server: its fields, whose values go to that server. */
  paintForm({ form, expiresAt }) {
    this.inputs = form.fields.map((field) => [field, input(field)]);
    this.bar.append(button("y send", () => this.answer("once")), button("n decline", () => this.answer("deny")));
    this.node.replaceChildren(
      el("h3", "", `${this.at + 1} of ${this.data.length}: the MCP server ${plain(form.server)} asks`),
      el("p", "", plain(form.message)),
      ...this.inputs.map(([field, node]) => {
        const label = el("label", "", `${plain(field.title ?? field.name)}${field.required ? "" : " (optional)"} `, node);
        return el("p", "", label, field.description ? el("span", "faint", ` ${plain(field.description)}`) : "");
      }),
      el("p", "faint", `the values go to the server, not to the model; until ${expiresAt.slice(11, 19)}`),
    );
  }

  async answer(decision) {
    const approval = this.data[this.at];
    if (!approval || performance.now() - this.since < READ_MS || (decision === "session" && !approval.grants)) return;
    const filled = approval.form && decision === "once" ? this.inputs.map(([field, node]) => [field.name, value(field, node)]) : [];
    const values = Object.fromEntries(filled.filter(([, entered]) => entered !== undefined));
    try {
      await call("approval.resolve", { approvalId: approval.approvalId, decision, values });
    } catch (error) {
      this.bar.append(el("span", "bad", error.message));
    }
    await this.begin();
  }

  key(key) {
    const answers = { y: "once", a: "session", n: "deny" };
    if (key in answers) this.answer(answers[key]);
    else if (key === "j" || key === "k") {
      this.at += key === "j" ? 1 : -1;
      this.paint();
    } else return false;
    return true;
  }
}

export class Search {
  constructor() {
    this.data = [];
    this.rows = new Rows("hit", (at) => this.cells(at), (at) => this.show(at));
    this.detail = el("div", "detail");
    this.node = el("div", "split", this.rows.host, this.detail);
    this.field = el("input", "");
    this.field.placeholder = "words, names, or what the code does";
    this.field.setAttribute("aria-label", "query");
    this.field.onkeydown = (event) => {
      if (event.key === "Enter") this.run();
      if (event.key === "Escape" || event.key === "ArrowDown") this.rows.host.focus();
      event.stopPropagation();
    };
    this.status = el("span", "faint");
    this.bar = el("div", "bar", this.field, button("Search", () => this.run()), this.status);
  }

  begin() {
    if (this.data.length === 0) this.field.focus();
  }

  async run() {
    const query = this.field.value.trim();
    if (!query) return;
    this.status.textContent = "searching";
    try {
      const began = performance.now();
      const answer = await call("search.hybrid", { query, k: 50, explain: true, includeText: true });
      this.data = answer.items;
      this.status.textContent = `${answer.items.length} in ${Math.round(performance.now() - began)} ms`;
    } catch (error) {
      this.status.textContent = error.message;
      return;
    }
    this.rows.size(this.data.length);
    this.rows.choose(0);
    this.rows.host.focus();
  }

  cells(at) {
    const hit = this.data[at];
    return [
      el("span", "right faint", hit.score.toFixed(2)),
      el("span", "", `${hit.path}:${hit.startLine}`),
      el("span", "mark", hit.symbol?.name ?? ""),
    ];
  }

  show(at) {
    const hit = this.data[at];
    if (!hit) return;
    const reasons = (hit.explain ?? []).map((share) =>
      el("tr", "", el("td", "", share.feature), el("td", "", share.value.toFixed(3)), el("td", "", share.share.toFixed(3))));
    this.detail.replaceChildren(
      el("strong", "", `${hit.path}:${hit.startLine}-${hit.endLine}`),
      hit.changed ? el("p", "bad", "the file has changed since") : "",
      el("pre", "", hit.text ?? ""),
      el("table", "", el("tr", "", el("th", "", "reason"), el("th", "", "value"), el("th", "", "share")), ...reasons),
    );
  }

  key(key) {
    return this.rows.key(key);
  }
}
