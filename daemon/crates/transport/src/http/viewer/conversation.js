// A session's records as a conversation: a pure fold, without a page. Items keep their key; `version` grows when one changes.
import { commandOf } from "./calls.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text) => encoder.encode(text).length;
/** Longest output of a running command that is kept, in characters. */
const MAX_LIVE = 20_000;

const textOf = (parts) => (Array.isArray(parts) ? parts.filter((part) => part.type === "text").map((part) => part.text).join("\n") : String(parts ?? ""));

export class Conversation {
  constructor() {
    this.items = [];
    this.byKey = new Map();
    this.changed = new Set();
    this.pending = new Map();
    this.keys = new Map();
    this.running = false;
    this.failure = undefined;
    this.costMicroUsd = undefined;
  }

  item(key, type, ts, fields = {}) {
    let item = this.byKey.get(key);
    if (!item) {
      item = { key, type, ts, version: 0 };
      this.items.push(item);
      this.byKey.set(key, item);
    }
    return this.update(item, fields);
  }

  update(item, fields) {
    Object.assign(item, fields);
    item.version += 1;
    this.changed.add(item);
    return item;
  }

  /** Takes a record of the log. */
  add(record) {
    if (record.kind === "Cmd") return this.command(record);
    const evt = record.evt ?? {};
    const handle = this[`on_${evt.type}`];
    if (handle) handle.call(this, evt, record);
  }

  /** Takes an event that is not in the log. */
  live(evt) {
    if (evt.type === "token_delta") this.delta(evt);
    if (evt.type === "command_output") {
      const call = this.byKey.get(this.keyOf(evt.callId));
      if (call) this.update(call, { live: `${call.live ?? ""}${evt.dropped ? `\n… ${evt.dropped} bytes left out\n` : ""}${evt.text}`.slice(-MAX_LIVE) });
    }
  }

  command(record) {
    const { name, args } = commandOf(record.cmd ?? {});
    this.item(`call:${record.id}`, "call", record.ts, { name, args, state: "running", direct: true, client: record.origin?.client });
  }

  on_turn_accepted(evt, { seq, ts, origin }) {
    const images = Array.isArray(evt.input) ? evt.input.filter((part) => part.type === "image").length : 0;
    this.running = true;
    this.item(`turn:${evt.turnId}`, "user", ts, { text: textOf(evt.input), images, mode: evt.policy?.mode, client: origin?.client, turnId: evt.turnId, seq });
  }

  on_run_started(evt) {
    this.running = true;
    this.model = evt.model?.model ?? this.model;
    this.turnStart = undefined;
  }

  /** The answer that is being written: its text so far, and what arrived without being in the log yet. */
  answer(evt, ts) {
    const kind = evt.reasoning ? "reasoning" : "text";
    const current = this[`open_${kind}`];
    if (current && !(evt.offset === 0 && current.bytes > 0)) return current;
    this.serial = (this.serial ?? 0) + 1;
    const item = this.item(`${kind}:${evt.runId}:${this.serial}`, kind, ts, { text: "", bytes: 0, tail: "", streaming: true });
    this[`open_${kind}`] = item;
    return item;
  }

  delta(evt) {
    const item = this.answer(evt, new Date().toISOString());
    // A piece after a gap is left out: the log's text follows.
    if (evt.offset === item.bytes + bytes(item.tail)) this.update(item, { tail: item.tail + evt.text });
  }

  on_text(evt, { ts, seq }) {
    const item = this.answer(evt, ts);
    const arrived = encoder.encode(item.tail);
    const size = bytes(evt.text);
    const tail = arrived.length > size ? decoder.decode(arrived.slice(size)) : "";
    this.update(item, { text: item.text + evt.text, bytes: item.bytes + size, tail, seq });
  }

  closeAnswer() {
    for (const kind of ["text", "reasoning"]) {
      const item = this[`open_${kind}`];
      if (item) this.update(item, { streaming: false, text: item.text + item.tail, tail: "" });
      this[`open_${kind}`] = undefined;
    }
  }

  on_model_answer(evt) {
    this.closeAnswer();
    this.model = evt.model?.model ?? this.model;
    this.contextTokens = evt.contextTokens ?? this.contextTokens;
    if (evt.usage?.costMicroUsd !== undefined) this.costMicroUsd = (this.costMicroUsd ?? 0) + evt.usage.costMicroUsd;
  }

  on_tool_call(evt, { ts, seq }) {
    // Some providers repeat the ids of calls: another call with the id of a finished one is its own item.
    const former = this.byKey.get(this.keyOf(evt.callId));
    if (former && former.args !== undefined && former.state !== "running") this.keys.set(evt.callId, `call:${evt.callId}:${seq}`);
    this.item(this.keyOf(evt.callId), "call", ts, { name: evt.name, args: evt.arguments, state: "running", seq });
  }

  keyOf(callId) {
    return this.keys.get(callId) ?? `call:${callId}`;
  }

  on_tool_result(evt, { ts, seq }) {
    const { name, output, error, blob, truncated, millis, changes } = evt;
    this.item(this.keyOf(evt.callId), "call", ts, { name, output, error, blob, truncated, millis, changes, state: error ? "failed" : "done", live: undefined, seq });
  }

  /** Events of a command carry its id. */
  directCall(record) {
    return record.parentId ? this.byKey.get(`call:${record.parentId}`) : undefined;
  }

  on_started(evt, record) {
    const call = this.directCall(record);
    if (call) this.update(call, { startedAt: record.ts });
    else if (!record.parentId) this.item(`note:${record.seq}`, "note", record.ts, { text: evt.details || `${evt.op} started` });
  }

  on_result(evt, record) {
    const call = this.directCall(record) ?? this.item(`call:${record.parentId ?? record.seq}`, "call", record.ts, { name: evt.op, args: undefined, direct: true });
    const begin = call.startedAt ?? (call.direct && call.ts !== record.ts ? call.ts : undefined);
    this.update(call, { output: evt.data, blob: evt.blob, truncated: evt.truncated, state: "done", millis: begin ? Date.parse(record.ts) - Date.parse(begin) : undefined });
  }

  on_error(evt, record) {
    const call = this.directCall(record);
    if (call) this.update(call, { error: { message: evt.message }, state: "failed" });
    else if (evt.op === "agent" && this.running) {
      this.reportFailure();
      this.failure = record;
    } else this.failed(record);
  }

  /** Adds the last error of the turn, unless it is the one that ended it. */
  reportFailure(last) {
    const { failure } = this;
    this.failure = undefined;
    if (failure && failure.evt.message !== last?.message) this.failed(failure);
  }

  failed({ seq, ts, evt }) {
    this.item(`note:${seq}`, "note", ts, { text: `${evt.op} failed: ${evt.message}`, tone: "bad" });
  }

  on_approval_required({ approval }, record) {
    this.pending.set(approval.approvalId, approval);
    // The request belongs to the call that waits: the latest of its tool without an outcome.
    const call = this.directCall(record) ?? this.items.findLast((item) => item.type === "call" && item.state === "running" && item.name === approval.tool);
    if (call) this.update(call, { approval, state: "waiting" });
    this.item(`approval:${approval.approvalId}`, "approval", record.ts, { approval, call: call?.key });
  }

  on_approval_resolved(evt) {
    this.pending.delete(evt.approvalId);
    const item = this.byKey.get(`approval:${evt.approvalId}`);
    if (!item) return;
    this.update(item, { resolution: evt.resolution });
    const call = this.byKey.get(item.call);
    if (call?.state === "waiting") this.update(call, { state: "running" });
  }

  on_steered(evt, { seq, ts }) {
    this.item(`steer:${seq}`, "user", ts, { text: evt.text, steered: true });
  }

  on_plan_update(evt, { seq, ts }) {
    const last = this.byKey.get(this.planKey);
    // A plan that is only ticked off stays where it is.
    const same = last && last.steps.length === evt.items.length && last.steps.every((step, at) => step.text === evt.items[at].text);
    if (!same) this.planKey = `plan:${seq}`;
    this.item(this.planKey, "plan", ts, { steps: evt.items });
  }

  on_turn_diff(evt, { seq, ts }) {
    this.item(`diff:${seq}`, "diff", ts, { diff: evt.diff, paths: evt.paths });
  }

  on_git_commit(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: `Committed ${evt.commit.slice(0, 10)}: ${evt.message.split("\n")[0]}`, tone: "good" });
  }

  on_run_completed({ result }, { seq, ts }) {
    this.closeAnswer();
    this.running = false;
    this.reportFailure(result.error);
    const turn = this.byKey.get(`turn:${result.turnId}`);
    for (const item of this.items) {
      if (item.type === "call" && !item.direct && (item.state === "running" || item.state === "waiting")) this.update(item, { state: "stopped", live: undefined });
    }
    this.item(`end:${seq}`, "end", ts, {
      status: result.status, error: result.error, usage: result.usage, calls: result.toolTrace?.length ?? 0, model: this.model,
      millis: turn ? Date.parse(ts) - Date.parse(turn.ts) : undefined,
    });
  }

  on_compacted(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: `The conversation so far was condensed: ${evt.tokensBefore} to ${evt.tokensAfter} tokens.`, details: evt.summary });
  }

  on_cleared(_, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: "The conversation was cleared: what follows does not know what came before." });
  }

  on_provider_changed(evt, { seq, ts }) {
    this.model = evt.model.model;
    this.item(`note:${seq}`, "note", ts, { text: `From here on the model is ${evt.model.model} (${evt.model.provider}).` });
  }

  on_warning(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: evt.message, tone: "warn" });
  }

  on_interrupted(evt, { seq, ts }) {
    this.running = false;
    this.item(`note:${seq}`, "note", ts, { text: "The daemon stopped here; the session can be resumed.", tone: "warn" });
  }

  on_resumed(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: "Resumed." });
  }

  on_stopped(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: `Stopped: ${evt.reason}` });
  }

  on_background_started(evt, { seq, ts }) {
    this.item(`note:${seq}`, "note", ts, { text: `Started in the background: ${evt.command}` });
  }

  on_background_finished(evt, { seq, ts }) {
    const code = evt.exitCode === undefined ? evt.state : `exit ${evt.exitCode}`;
    this.item(`note:${seq}`, "note", ts, { text: `Background command ended (${code}): ${evt.command}`, details: evt.tail, tone: evt.exitCode === 0 ? "" : "warn" });
  }
}
