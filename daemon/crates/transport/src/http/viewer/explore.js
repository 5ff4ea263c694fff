// Explore Codebase: the form that starts an explore.
import { el } from "./dom.js";
import { call } from "./rpc.js";

const START = "orchestrate.explore.start";

/** Returns true for `scheme://…`, and for `host:path` in the notation of scp. */
function isUrl(text) {
  return /^[a-z][a-z0-9+.-]*:\/\/[^\s/]/i.test(text) || /^[^\s:/-][^\s:/]*:[^\s]+$/.test(text);
}

/** A labelled input with a place for its error. */
class Field {
  constructor(id, label, hint) {
    this.input = el("input", "");
    this.input.id = id;
    this.input.autocomplete = "off";
    this.input.spellcheck = false;
    this.error = el("p", "bad");
    this.error.id = `${id}-error`;
    this.error.setAttribute("role", "alert");
    const hinted = el("p", "faint", hint);
    hinted.id = `${id}-hint`;
    this.input.setAttribute("aria-describedby", `${hinted.id} ${this.error.id}`);
    this.input.oninput = () => this.fail("");
    const name = el("label", "", label);
    name.htmlFor = id;
    this.node = el("div", "field", name, this.input, hinted, this.error);
  }

  get text() {
    return this.input.value.trim();
  }

  /** Shows a problem next to the field; an empty one clears it. */
  fail(problem) {
    this.error.textContent = problem;
    if (problem) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
    return !problem;
  }
}

export class Explore {
  /** `opened(session)` is called with the session of a started explore. */
  constructor(opened) {
    this.opened = opened;
    this.target = new Field("explore-target", "Folder or git URL", "A declared folder, such as /home/you/project, or a URL to clone, such as https://host/owner/name.git");
    this.branch = new Field("explore-branch", "Branch", "Of a URL; its default branch otherwise");
    this.since = new Field("explore-since", "Changes since", "A git revision, such as v1.2 or HEAD~20: the report begins with what changed after it");
    this.goal = new Field("explore-goal", "Question", "In plain words; answered with the best locations");
    this.roots = el("datalist", "");
    this.roots.id = "explore-roots";
    this.target.input.setAttribute("list", "explore-roots");
    this.submit = el("button", "main", "Explore");
    this.submit.type = "submit";
    const form = el("form", "", this.target.node, this.roots, el("div", "fields", this.since.node, this.branch.node), this.goal.node, this.submit);
    form.noValidate = true;
    form.onsubmit = (event) => {
      event.preventDefault();
      this.start();
    };
    form.onkeydown = (event) => event.stopPropagation();
    this.node = el("div", "page", el("header", "page-head", el("h1", "", "Explore a codebase")), el("div", "page-body",
      el("p", "", "Reads a codebase without a model and reports its purpose, components, entrypoints, files to read first, commands and conventions. Nothing in the folder is changed or run."), form));
  }

  /** Returns true if this page may start an explore. */
  static isAllowed(methods) {
    return methods.includes(START);
  }

  async begin() {
    this.target.input.focus();
    const { roots } = await call("index.status", {});
    this.roots.replaceChildren(...roots.map((root) => {
      const option = el("option", "");
      option.value = root.path;
      return option;
    }));
    if (!this.target.text && roots.length === 1) this.target.input.value = roots[0].path;
  }

  /** Returns the parameters, or nothing after showing the problems. */
  params() {
    const target = this.target.text;
    const url = isUrl(target);
    const problem = !target ? "Enter a folder or a git URL."
      : target.startsWith("-") ? "A folder or URL does not begin with '-'."
      : !url && !target.startsWith("/") ? "Enter the absolute path of a folder, or a URL with its scheme, such as https://."
      : "";
    const range = /\.\.|[\s:]|^-/.test(this.since.text) ? "Enter one revision, such as a tag, a branch or a hash." : "";
    const branch = this.branch.text && !url && !problem ? "A folder is explored as it is: only a URL has a branch to clone." : "";
    const valid = [this.target.fail(problem), this.since.fail(range), this.branch.fail(branch)];
    const failed = [this.target, this.since, this.branch].filter((_, at) => !valid[at]);
    if (failed.length) return void failed[0].input.focus();
    return {
      ...(url ? { remoteURL: target, policy: { network: true } } : { root: target }),
      ...(url && this.branch.text ? { branch: this.branch.text } : {}),
      ...(this.since.text ? { since: this.since.text } : {}),
      ...(this.goal.text ? { goals: [this.goal.text] } : {}),
    };
  }

  async start() {
    const params = this.params();
    if (!params || this.submit.disabled) return;
    this.submit.disabled = true;
    try {
      const receipt = await call(START, params);
      this.opened({ sessionId: receipt.sessionId, title: `explore ${this.target.text}`, root: params.root });
    } catch (error) {
      this.fail(error.reason, error.message);
    } finally {
      this.submit.disabled = false;
    }
  }

  /** Shows the failure of an explore next to the field that it is about. */
  fail(reason, message) {
    const text = ["right_missing", "root_not_found"].includes(reason) && !isUrl(this.target.text)
      ? `This page may explore declared folders only. Declare this one with 'cairn index add ${this.target.text}', or explore it in a terminal.`
      : message;
    const field = /revision/.test(reason ?? "") || /^revision /.test(message) ? this.since : this.target;
    field.fail(text);
    field.input.focus();
  }

  key() {
    return false;
  }
}
