// Calls of tools: one line each, and their output.
import { code, copyable, diff, languageOf, scrollable } from "./code.js";
import { el, fitted, lines, plain } from "./dom.js";
import { count, duration } from "./format.js";

/** Longest output that is put into the page, in characters. */
const MAX_OUTPUT = 100_000;

const VERBS = {
  content_get_span: "Read", read_file: "Read", read_span: "Read", fs_list_dir: "List", list_dir: "List", list_files: "List files", list_folders: "List folders",
  search_grep: "Find", grep: "Find", search_files: "Find", search_hybrid: "Search", search_semantic: "Search", search_lexical: "Search", search_code: "Search",
  search_symbols: "Find definition", find_references: "Find uses of", find_calls: "Find calls of", find_impact: "Find dependents of", index_build: "Update the index",
  index_add_root: "Add root", write_file: "Write", edit_file: "Edit", apply_patch: "Patch", apply_edits: "Edit", delete_file: "Delete", run_shell: "Run", run_background: "Run in background",
  web_fetch: "Fetch", web_search: "Search the web", git_status: "Git status", git_log: "Git log", git_diff: "Git diff", git_changes: "Changes since", git_commit: "Commit",
  git_clone: "Clone", memory_search: "Recall", memory_load: "Recall", memory_save: "Remember", memory_append: "Remember", llm_call: "Ask a model", update_plan: "Plan",
  count_languages: "Count languages", rank_files: "Rank files", code_graph: "Read imports", tool_lookup: "Look up tools", agent_start: "Start agent", trace_flow: "Trace flow",
};

/** The tool of a command record, and its arguments. */
export function commandOf(cmd) {
  if (cmd.type === "tool_call") return { name: cmd.name, args: cmd.arguments ?? {} };
  const { type, ...args } = cmd;
  return { name: type, args };
}

export const verb = (name) => VERBS[name] ?? plain(name ?? "call").replaceAll("_", " ");

/** The object of a call: its path, query or command, in one line. */
export function target(name, args) {
  const a = args && typeof args === "object" ? args : {};
  const edits = Array.isArray(a.edits) ? [...new Set(a.edits.map((edit) => edit.path).filter(Boolean))].join(", ") : "";
  const path = a.path ?? a.file ?? a.dest;
  const start = a.start ?? a.startLine ?? a.offset;
  const lineRange = start ? `:${start}${a.end ?? a.endLine ? `-${a.end ?? a.endLine}` : ""}` : "";
  if (name.startsWith("git") && path === ".") return fitted(a.since ?? a.message ?? "", 200);
  const first = a.command ?? a.query ?? a.pattern ?? (path !== undefined ? `${path}${lineRange}` : undefined) ?? a.url ?? a.remoteURL ?? a.name ?? a.symbol ?? a.since ?? a.prompt ?? a.task;
  const text = first ?? (edits || Object.values(a).find((value) => typeof value === "string"));
  const globs = a.filters?.globs?.slice?.(0, 3).join(", ");
  return fitted([text, globs && `in ${globs}`].filter(Boolean).join(" "), 240);
}

const length = (value) => (Array.isArray(value) ? value.length : undefined);

/** The outcome of a call in a few words. */
export function outcome(call) {
  if (call.error) return fitted(call.error.message ?? call.error, 160);
  const out = call.output;
  if (call.state !== "done" || !out || typeof out !== "object") return "";
  if (out.exitCode !== undefined && out.exitCode !== null) return out.exitCode === 0 ? "" : `exit ${out.exitCode}`;
  const items = length(out.items) ?? length(out.entries) ?? length(out.results) ?? length(out.files);
  if (items !== undefined) return items === 0 ? "nothing found" : count(items, "result");
  if (out.startLine && out.endLine) return count(Math.max(0, out.endLine - out.startLine + 1), "line");
  if (call.changes?.length) return count(call.changes.length, "file");
  return "";
}

export const took = (call) => (call.millis === undefined ? "" : duration(call.millis));

/** The body of a call: its input, its output, and what could be read of it. */
export function body(call) {
  const parts = [];
  const args = call.args && typeof call.args === "object" ? call.args : {};
  if (typeof args.command === "string") parts.push(copyable(code(args.command, "bash"), args.command));
  else if (Object.keys(args).length) parts.push(el("div", "args", ...argumentsOf(args)));
  const change = call.approval?.preview?.diff;
  if (change) parts.push(diff(change));
  if (call.error) parts.push(el("p", "bad", lines(call.error.message ?? String(call.error)).slice(0, MAX_OUTPUT)));
  if (call.live) parts.push(scrollable(el("pre", "code output", lines(call.live)), "Output"));
  else if (call.output !== undefined) parts.push(output(call));
  if (call.blob) parts.push(el("p", "faint", `The output has ${count(call.blob.bytes ?? call.blob.size ?? 0, "byte")}: see Records for it.`));
  if (call.truncated) parts.push(el("p", "faint", "The tool cut its output at a limit."));
  if (!parts.length) parts.push(el("p", "faint", call.state === "done" ? "The call has no output." : "There is no output yet."));
  return parts;
}

function argumentsOf(args) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
  return Object.entries(args).slice(0, 40).map(([name, value]) => {
    const content = lines(text(value) ?? "").slice(0, 4000);
    const isBlock = content.includes("\n") || content.length > 120;
    return el("div", "arg", el("span", "faint", plain(name)), isBlock ? code(content, args.path ?? "") : el("code", "", content));
  });
}

function output(call) {
  const out = call.output;
  if (typeof out === "string") return block(out);
  if (!out || typeof out !== "object") return block(JSON.stringify(out));
  const streams = [out.stdout, out.stderr].filter((text) => typeof text === "string" && text);
  if (streams.length) return el("div", "", ...streams.map((text, at) => block(text, at || !out.stdout ? "Errors" : "Output")));
  if (typeof out.text === "string") return block(out.text, "Text", languageOf(out.path ?? call.args?.path) ? out.path ?? call.args.path : "");
  if (typeof out.content === "string") return block(out.content, "Content", languageOf(out.path ?? call.args?.path) ? out.path ?? call.args.path : "");
  if (typeof out.output === "string") return block(out.output);
  if (typeof out.diff === "string") return diff(out.diff);
  if (Array.isArray(out.items) && out.items.some((item) => item?.path)) return hits(out.items);
  if (Array.isArray(out.entries)) return block(out.entries.map((entry) => (typeof entry === "string" ? entry : `${entry.path ?? entry.name}${entry.kind === "dir" || entry.kind === "folder" ? "/" : ""}`)).join("\n"));
  return block(JSON.stringify(out, null, 2), "Output", "json");
}

function hits(items) {
  const rows = items.slice(0, 200).map((item) => el("li", "", el("code", "path", plain(`${item.path}${item.line ?? item.startLine ? `:${item.line ?? item.startLine}` : ""}`)),
    item.text ? el("code", "text", fitted(item.text, 160)) : item.name ? el("span", "faint", ` ${plain(item.name)}`) : ""));
  return el("ul", "call-hits", ...rows, items.length > 200 ? el("li", "faint", `${items.length - 200} more`) : "");
}

function block(text, label = "Output", name = "") {
  const cut = text.length > MAX_OUTPUT;
  const node = code(cut ? text.slice(0, MAX_OUTPUT) : text, name);
  node.classList.add("output");
  node.setAttribute("aria-label", label);
  return cut ? el("div", "", node, el("p", "faint", `${count(text.length - MAX_OUTPUT, "more character")}: see Records`)) : node;
}
