// Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-api --test generated.

/** Versions of the protocol that this client speaks, best first. */
export const PROTOCOL_VERSIONS = ["1"];

/** Why a call failed: `error.data.reason`. */
export type Reason =
  | "parse_error"
  | "invalid_request"
  | "method_not_found"
  | "invalid_params"
  | "internal"
  | "cancelled"
  | "overloaded"
  | "not_initialized"
  | "already_initialized"
  | "incompatible_version"
  | "too_large"
  | "shutting_down"
  | "disk_full"
  | "storage_failed"
  | "not_supported"
  | "path_not_found"
  | "path_outside_roots"
  | "path_blocked"
  | "not_a_directory"
  | "not_a_file"
  | "path_unreadable"
  | "root_not_found"
  | "root_ambiguous"
  | "bad_pattern"
  | "index_failed"
  | "no_roots"
  | "session_not_found"
  | "session_busy"
  | "request_conflict"
  | "after_beyond_head"
  | "gone"
  | "subscription_not_found"
  | "not_resumable"
  | "blob_not_found"
  | "bad_trace"
  | "approval_not_found"
  | "approval_resolved"
  | "run_not_found"
  | "session_exists"
  | "unknown_tool"
  | "tool_denied"
  | "tool_failed"
  | "tool_timed_out"
  | "audit_failed"
  | "network_denied"
  | "sandbox_missing"
  | "file_changed"
  | "denied_by_user"
  | "no_approver"
  | "budget_exceeded"
  | "turn_limit"
  | "stuck"
  | "plugin_refused"
  | "bad_url"
  | "clone_failed"
  | "authentication_required"
  | "destination_exists"
  | "git_failed"
  | "model_unavailable"
  | "model_not_found"
  | "model_unauthorized"
  | "model_rate_limited"
  | "context_overflow"
  | "model_malformed"
  | "model_cut"
  | "model_timed_out"
  | "model_rejected"
  | "provider_unknown"
  | "external_llm_denied"
  | "schema_mismatch"
  | "unauthorized"
  | "origin_denied"
  | "host_denied"
  | "right_missing"
  | "remote_off"
  | "not_paired"
  | "pairing_refused"
  | "device_not_found";

/** Parameters of `index.addRoot`. */
export interface AddRootParams {
  /** Absolute path of a folder. */
  path: string;
  /** Retry key and name for `index.progress`. */
  requestId?: string | null;
}

/** Where a subscription starts. */
export type After =
  /** After this sequence number; 0 for everything. */
  | number
  /** `"live"`: only what comes from now on. */
  | LiveWord;

/** A command. Tags are snake_case; the camelCase tags of older clients are accepted on input. */
export type AgentCmd =
  /** Lists a folder. */
  | {
    type: "fs_list_dir";
    /** Absolute, or relative to `root`. */
    path: string;
    /** Levels below it, 1 to 16. */
    depth?: number;
    /** Root id or root path for a relative `path`. */
    root?: string | null;
  }
  /** Reads a bounded range of lines. */
  | {
    type: "content_get_span";
    /** Last line. */
    end: number;
    /** Absolute, or relative to `root` (to the session's root in a command). */
    path: string;
    /** First line, from 1. */
    start: number;
    /** The hash a search gave: the answer then says whether the file changed since. */
    contentHash?: string | null;
    /** Lines before and after, at most 50. */
    context?: number | null;
    /** Root id or root path for a relative `path`; may be left out when one root is declared. */
    root?: string | null;
  }
  /** Makes a root of a clone and indexes it; a declared root stays as it is. */
  | {
    type: "index_add_root";
    /** Absolute path of the folder. */
    path: string;
  }
  /** Brings the index of the session's root up to date and waits for it. */
  | {
    type: "index_build";
    /** Indexes at work at once at most, this one among them: with as many others at work the build waits for them first.
     * As many as there are when omitted. */
    maxConcurrency?: number | null;
    /** Seconds to wait at most, up to 600; then the answer is the state reached. */
    timeoutSeconds?: number | null;
  }
  /** Literal or regular-expression search over lines. */
  | {
    type: "search_grep";
    /** Text, or a regular expression with `isRegex`. At most 4 KiB. */
    pattern: string;
    /** Lines of context around each hit, at most 20. */
    contextLines?: number;
    /** Only count: `items` stays empty, `counts` has the lines by file. */
    countOnly?: boolean;
    /** Where to go on, from `nextCursor`. */
    cursor?: string | null;
    /** Further filters; `kinds` does not apply. */
    filters?: SearchFilters | null;
    /** `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline` (`U`), `dot_all` (`s`). */
    flags?: Array<string>;
    /** Whether `pattern` is a regular expression. */
    isRegex?: boolean;
    /** Lines wanted, 1 to 10,000. */
    k?: number;
    /** Only files under this path. */
    pathPrefix?: string | null;
    /** Name for `search.partial` notifications, each with the next lines; none are sent when omitted or with `countOnly`. */
    requestId?: string | null;
  }
  /** Search by meaning. */
  | {
    type: "search_semantic";
    /** Words, an identifier, a path or a question. At most 4 KiB. */
    query: string;
    /** Lines of context around the text, at most 50. */
    contextLines?: number;
    /** Further results of a file count a fifth less each, not only 4 % and up to three times. */
    diversify?: boolean | null;
    /** Whether items tell what each feature gave to their score. */
    explain?: boolean;
    /** Where to look. */
    filters?: SearchFilters | null;
    /** How hybrid search fuses its two lists. */
    fusion?: Fusion | null;
    /** Whether items carry their text. */
    includeText?: boolean;
    /** Results wanted, 1 to 200. */
    k?: number;
    /** Maximal marginal relevance: 0 is all diversity, 1 all relevance. */
    mmr?: number | null;
    /** Name for `search.partial` notifications; none are sent when omitted. */
    requestId?: string | null;
  }
  /** Search by words and meaning, fused. */
  | {
    type: "search_hybrid";
    /** Words, an identifier, a path or a question. At most 4 KiB. */
    query: string;
    /** Lines of context around the text, at most 50. */
    contextLines?: number;
    /** Further results of a file count a fifth less each, not only 4 % and up to three times. */
    diversify?: boolean | null;
    /** Whether items tell what each feature gave to their score. */
    explain?: boolean;
    /** Where to look. */
    filters?: SearchFilters | null;
    /** How hybrid search fuses its two lists. */
    fusion?: Fusion | null;
    /** Whether items carry their text. */
    includeText?: boolean;
    /** Results wanted, 1 to 200. */
    k?: number;
    /** Maximal marginal relevance: 0 is all diversity, 1 all relevance. */
    mmr?: number | null;
    /** Name for `search.partial` notifications; none are sent when omitted. */
    requestId?: string | null;
  }
  /** Clones a repository into the workspaces folder. */
  | {
    type: "git_clone";
    /** `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; nothing that begins with `-`. */
    remoteURL: string;
    /** The branch; the remote's default when omitted. */
    branch?: string | null;
    /** Name of the folder under the workspaces folder; made from the URL when omitted. */
    dest?: string | null;
    /** Name for `git.progress` notifications and retry key. */
    requestId?: string | null;
  }
  /** Branch, head and changed files of a repository. */
  | {
    type: "git_status";
    /** A folder inside a declared root. */
    path: string;
  }
  /** Asks a model one question. */
  | {
    type: "llm_call";
    /** What is asked. */
    prompt: string;
    /** The registered type that the answer must be: `ExplorePlan` or `ExploreSummary`. */
    expectsType?: string | null;
    /** The system text. */
    instructions?: string | null;
    /** How the model is asked. */
    policy?: LlmPolicy;
    /** The provider; the session's own when omitted. */
    provider?: string | null;
    /** Whether a typed answer is told while it is written, as `structured_snapshot` events; needs `expectsType`. */
    streamStructured?: boolean;
  }
  /** Any other registered tool, by name. */
  | {
    type: "tool_call";
    /** Name in `tool.list`. */
    name: string;
    /** Arguments, by the tool's input schema. */
    arguments?: unknown;
  };

/** An event. A run begins with `started` and ends with exactly one of `completed`, `stopped` or `error` whose
 * `op` is the run's own. */
export type AgentEvt =
  /** Work began. */
  | {
    type: "started";
    /** What began: a tool's name, or `explore`. */
    op: string;
    /** A line for people. */
    details?: string | null;
  }
  /** How far it is. */
  | {
    type: "progress";
    /** What goes on. */
    op: string;
    /** 0 to 100. */
    percent: number;
    /** A line for people. */
    message?: string | null;
  }
  /** A tool's result. */
  | {
    type: "result";
    /** Always `application/json` for inline data. */
    mime: string;
    /** The tool. */
    op: string;
    /** What `data` is: `search_answer`, `grep_answer`, `span`, `dir_listing`, … */
    tag: string;
    /** Where a larger one lies; read it with `trace.blob`. */
    blob?: BlobRef | null;
    /** The result itself, when it is 64 KiB or less. */
    data?: unknown;
    /** True when the tool cut its output at a limit. */
    truncated?: boolean;
  }
  /** The plan as it stands after a revision. */
  | {
    type: "plan_snapshot";
    /** The plan. */
    plan: ExplorePlan;
    /** 1, 2, 3, … */
    revision: number;
  }
  /** A typed answer of `llm_call` as far as it is written: each holds what the one before it held, and the last is the
   * answer itself. Live only: it has no number, is not in the log and is never replayed; the result follows. */
  | {
    type: "structured_snapshot";
    /** The type that the answer will be. */
    expectsType: string;
    /** Always `llm_call`. */
    op: string;
    /** 1, 2, 3, … */
    revision: number;
    /** What is written so far; fields that it does not hold yet are missing. */
    value: unknown;
  }
  /** Something the user should know that did not stop the work. */
  | {
    type: "warning";
    /** The text. */
    message: string;
    /** What it concerns. */
    op: string;
  }
  /** The daemon ended while this was going on; the session can be resumed. */
  | {
    type: "interrupted";
    /** What was cut off. */
    op: string;
  }
  /** Interrupted work goes on. */
  | {
    type: "resumed";
    /** What goes on. */
    op: string;
  }
  /** An explore ended well. */
  | {
    type: "completed";
    /** What it found. */
    summary: ExploreSummary;
  }
  /** The run was aborted. */
  | {
    type: "stopped";
    /** What was stopped. */
    op: string;
    /** By whom or why. */
    reason: string;
  }
  /** Work failed; terminal when `op` is the run's own. */
  | {
    type: "error";
    /** For people. */
    message: string;
    /** What failed. */
    op: string;
    /** Whether the same again may succeed. */
    retryable: boolean;
    /** The stable reason, as in the error table. */
    reason?: string | null;
  }
  /** A turn was taken; it begins at once or waits for those before it. */
  | {
    type: "turn_accepted";
    /** What is asked, the context first. */
    input: Array<Part>;
    /** Its run. */
    runId: RunId;
    /** The client's name for it. */
    turnId: string;
    /** What the client sent with it. */
    metadata?: Record<string, string>;
    /** What it may do. */
    policy?: ExecutionPolicy | null;
  }
  /** A turn began. */
  | {
    type: "run_started";
    /** Whom it asks. */
    model: ModelChoice;
    /** Its run. */
    runId: RunId;
    /** Characters of a tool's output that the model is shown at most. */
    shownChars: number;
    /** The client's name for it. */
    turnId: string;
  }
  /** Text of a model as it comes. Live only: it has no number, is not in the log and is never replayed; [`AgentEvt::Text`]
   * with the same text follows. */
  | {
    type: "token_delta";
    /** Bytes of this answer's text (or thinking) before this one. */
    offset: number;
    /** The run. */
    runId: RunId;
    /** The text. */
    text: string;
    /** True for the model's thinking. */
    reasoning?: boolean;
  }
  /** Text of a model, put together: at most every 250 ms, and at the end of an answer. */
  | {
    type: "text";
    /** Bytes of this answer's text (or thinking) before this one. */
    offset: number;
    /** The run. */
    runId: RunId;
    /** The text. */
    text: string;
    /** True for the model's thinking. */
    reasoning?: boolean;
  }
  /** How far the model is in reading its prompt. Live only, like [`AgentEvt::TokenDelta`]. */
  | {
    type: "prompt_progress";
    /** Tokens read. */
    processed: number;
    /** The run. */
    runId: RunId;
    /** Tokens there are. */
    total: number;
    /** Tokens of the model's context, where known. */
    contextTokens?: number | null;
  }
  /** The model's answer is whole; its text is that of the `text` records before it. */
  | {
    type: "model_answer";
    /** Milliseconds to the first piece. */
    firstMillis: number;
    /** Milliseconds to the end. */
    millis: number;
    /** Who answered. */
    model: ModelChoice;
    /** SHA-256 (hex) of what was asked: system text, messages, tools. */
    requestDigest: string;
    /** The run. */
    runId: RunId;
    /** Tokens a second while it answered; 0 when too short to tell. */
    tokensPerSecond: number;
    /** Tokens, as the provider counts them; counted here where it does not tell. */
    usage: TokenUsage;
    /** Tools it asks for. */
    calls?: Array<ToolUse>;
    /** Tokens of the model's context, where known. */
    contextTokens?: number | null;
    /** Why it stopped; absent when it was cut off. */
    finish?: FinishReason | null;
    /** Number of the latest `steered` record that was in what was asked; 0 when there was none. */
    heardSeq?: number;
    /** The answer's bytes as they came, for replay. */
    raw?: BlobRef | null;
  }
  /** The model asked for a tool, which now goes through the gate. */
  | {
    type: "tool_call";
    /** Its arguments, repaired where they had to be. */
    arguments: unknown;
    /** The call, as in [`ModelAnswer::calls`]. */
    callId: string;
    /** The tool. */
    name: string;
  }
  /** What came of a tool call. */
  | {
    type: "tool_result";
    /** The call. */
    callId: string;
    /** Milliseconds. */
    millis: number;
    /** The tool. */
    name: string;
    /** Where a larger one lies; read it with `trace.blob`. */
    blob?: BlobRef | null;
    /** Files it changed. */
    changes?: Array<FileChange>;
    /** What went wrong. */
    error?: ToolFailure | null;
    /** The output, when it is 64 KiB or less. */
    output?: unknown;
    /** What `output` is. */
    tag?: string;
    /** True when the tool cut its output at a limit. */
    truncated?: boolean;
  }
  /** Somebody must say whether a tool may act. */
  | {
    type: "approval_required";
    /** The question. */
    approval: Approval;
  }
  /** The question is answered. */
  | {
    type: "approval_resolved";
    /** Which. */
    approvalId: ApprovalId;
    /** How. */
    resolution: Resolution;
  }
  /** A client told the model something while it worked. */
  | {
    type: "steered";
    /** The run. */
    runId: RunId;
    /** The text. */
    text: string;
  }
  /** The conversation up to here is replaced by a summary in what the model is shown. */
  | {
    type: "compacted";
    /** Messages at the end of the conversation that are kept as they are. */
    kept: number;
    /** What the model is shown instead. */
    summary: string;
    /** Tokens after. */
    tokensAfter: number;
    /** Tokens before, as counted here. */
    tokensBefore: number;
    /** Number of the latest `steered` record that is part of the conversation here; 0 when there is none. */
    heardSeq?: number;
  }
  /** The conversation was emptied; what follows starts afresh. */
  | {
    type: "cleared";
  }
  /** The session talks to another model from here on. */
  | {
    type: "provider_changed";
    /** Which. */
    model: ModelChoice;
  }
  /** The agent's list of things to do. */
  | {
    type: "plan_update";
    /** The items, in order. */
    items: Array<PlanItem>;
  }
  /** What a turn changed in files, as one unified diff. */
  | {
    type: "turn_diff";
    /** The diff; cut at 256 KiB, and then it says so. */
    diff: string;
    /** Paths that changed. */
    paths: Array<string>;
    /** The turn. */
    turnId: string;
  }
  /** What a turn changed was committed, as `git.auto_commit` says. */
  | {
    type: "git_commit";
    /** The commit's id, 40 hex digits. */
    commit: string;
    /** Its message. */
    message: string;
    /** Paths it holds, relative to the root. */
    paths: Array<string>;
    /** The turn. */
    turnId: string;
  }
  /** A turn ended; the last record of its run. */
  | {
    type: "run_completed";
    /** How. */
    result: RunResult;
  };

/** An operation of a plan. Tags are snake_case; camelCase tags are accepted on input. */
export type AgentOp =
  /** Bring the index up to date. */
  | {
    type: "index_repo";
    /** The root. */
    path: string;
  }
  /** List a folder. */
  | {
    type: "list_dir";
    /** Levels below it. */
    depth: number;
    /** The folder, relative to the root. */
    path: string;
  }
  /** Search lines. */
  | {
    type: "grep";
    /** A regular expression. */
    pattern: string;
    /** Only under this path. */
    pathPrefix?: string | null;
  }
  /** Search by meaning. */
  | {
    type: "semantic";
    /** Results wanted. */
    k: number;
    /** The question. */
    query: string;
  }
  /** Search by words and meaning. */
  | {
    type: "hybrid";
    /** Results wanted. */
    k: number;
    /** The question. */
    query: string;
  }
  /** Read lines of a file. */
  | {
    type: "read_span";
    /** Last line. */
    endLine: number;
    /** The file, relative to the root. */
    path: string;
    /** First line. */
    startLine: number;
    /** Lines before and after. */
    context?: number | null;
  }
  /** Summarise files (needs a model). */
  | {
    type: "summarize";
    /** The files. */
    paths: Array<string>;
  }
  /** Any other registered tool. */
  | {
    type: "tool";
    /** Its arguments. */
    arguments: unknown;
    /** Name in `tool.list`. */
    name: string;
  };

/** Params of `search.partial`. */
export type AnyPartial =
  /** Results of a search for passages. */
  | SearchPartial
  /** Results of a search for lines. */
  | GrepPartial
  /** Lines of a streaming search. */
  | LinesPartial;

/** A tool call that waits for leave. */
export interface Approval {
  /** Its id. */
  approvalId: ApprovalId;
  /** Its arguments, whole. */
  arguments: unknown;
  /** When it was asked. */
  createdAt: Timestamp;
  /** When silence becomes a no. */
  expiresAt: Timestamp;
  /** The rules that `session` and `always` would write, one a line; empty when there is none for such a call, which is then
   * approved once. */
  grants: string;
  /** What would be done. */
  preview: Preview;
  /** The rule that makes it a question. */
  rule: string;
  /** The session that wants to act. */
  sessionId: SessionId;
  /** The tool. */
  tool: string;
  /** Wider rules that an answer may name instead, as they would be stored, one a line each. */
  patterns?: Array<string>;
  /** The answer, once there is one. */
  resolution?: Resolution | null;
  /** The run, when one asks. */
  runId?: RunId | null;
}

/** An answer to an approval. */
export type ApprovalDecision =
  /** This call. */
  | "once"
  /** This and those like it, for the life of the session. */
  | "session"
  /** This and those like it, from now on: a rule is written that can be read and revoked. */
  | "always"
  /** Not. */
  | "deny";

export type ApprovalId = string;

/** Parameters of `approval.list`. */
export interface ApprovalListParams {
  /** Also those that are answered, newest first; at most 500 in all. */
  resolved?: boolean;
  /** Only those of this session. */
  sessionId?: SessionId | null;
}

/** Parameters of `approval.resolve`. */
export interface ApprovalResolveParams {
  /** The approval. */
  approvalId: ApprovalId;
  /** The answer. */
  decision: ApprovalDecision;
  /** With `session` or `always`: one of the approval's `patterns`, granted in place of its `grants`. */
  pattern?: string | null;
  /** Why, at most 2,000 characters. */
  reason?: string | null;
}

/** Parameters of `session.archive`. */
export interface ArchiveParams {
  /** The session. */
  sessionId: SessionId;
  /** Whether to put it away (so when omitted) or to take it out again. */
  archived?: boolean;
}

/** One entry of the audit: written before the action, completed after it. */
export interface AuditEntry {
  /** SHA-256 (hex) of the arguments' JSON. */
  argsDigest: string;
  /** `allow` or `deny`. */
  decision: string;
  /** Position. */
  id: number;
  /** The rule that decided. */
  rule: string;
  /** The session; its digits are all 0 for a direct call that concerns none. */
  sessionId: SessionId;
  /** The tool, or the method of a direct call. */
  tool: string;
  /** Whether the output was cut. */
  truncated: boolean;
  /** When it was asked for. */
  ts: Timestamp;
  /** The command line and its folder, for a shell; secrets are taken out. */
  command?: string | null;
  /** Exit code, where there is one. */
  exitCode?: number | null;
  /** Milliseconds it took; absent when it was denied or cut off. */
  millis?: number | null;
  /** `ok`, or the reason of the failure; absent when it was denied or cut off. */
  outcome?: string | null;
}

/** Parameters of `audit.query`. */
export interface AuditQueryParams {
  /** Entries after this one. */
  after?: number;
  /** Entries wanted, at most 500. */
  limit?: number | null;
  /** Only this session. */
  sessionId?: SessionId | null;
  /** Only this tool. */
  tool?: string | null;
}

/** Parameters of `trace.blob`. */
export interface BlobParams {
  /** SHA-256, hex. */
  sha256: string;
  /** Bytes wanted, at most 256 KiB. */
  limit?: number | null;
  /** First byte. */
  offset?: number;
}

/** Part of a blob; blobs are UTF-8 JSON and parts end between characters. */
export interface BlobPart {
  /** Bytes of the whole. */
  size: number;
  /** The text. */
  text: string;
  /** Offset of the next part; absent on the last. */
  nextOffset?: number | null;
}

/** A result stored by the hash of its content. */
export interface BlobRef {
  /** SHA-256, hex. */
  sha256: string;
  /** Bytes. */
  size: number;
}

/** What a client can do. */
export interface ClientCapabilities {
  /** Whether it answers approvals. */
  approvals?: boolean;
}

/** A client's name and version. */
export interface ClientInfo {
  /** Name, at most 64 characters. */
  name: string;
  /** Version. */
  version: string;
}

/** Parameters of `git.clone`. */
export interface CloneParams {
  /** `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; nothing that begins with `-`. */
  remoteURL: string;
  /** The branch; the remote's default when omitted. */
  branch?: string | null;
  /** Name of the folder under the workspaces folder; made from the URL when omitted. */
  dest?: string | null;
  /** Name for `git.progress` notifications and retry key. */
  requestId?: string | null;
}

/** Receipt of `git.clone`: the end comes as `git.progress` with `done`. */
export interface CloneReceipt {
  /** Where the clone will be. */
  path: string;
  /** The request. */
  requestId: string;
}

/** Result of a finished clone. */
export interface CloneResult {
  /** Commit checked out. */
  head: string;
  /** Absolute path of the checkout. */
  path: string;
  /** True when an earlier clone of the same remote was there already; it is brought up to date. */
  reused: boolean;
  /** Branch checked out. */
  branch?: string | null;
  /** Why an earlier clone was not brought up to date: it is given as it was. Without a network, what git says of it. */
  stale?: string | null;
}

/** A command as a client sends it in `orchestrate.command`; only `payload` is required. */
export interface CommandEnvelope {
  /** The command. */
  payload: AgentCmd;
  /** Made by the client; the events that answer carry it as `parentId`. A fresh one when omitted. */
  id?: string | null;
  /** `Cmd`, when given. */
  kind?: string | null;
  /** What led to this command. */
  parentId?: string | null;
  /** The client's own time; the log uses the daemon's. */
  ts?: Timestamp | null;
}

/** Parameters of `orchestrate.command`. */
export interface CommandParams {
  /** The command in its envelope. */
  cmd: CommandEnvelope;
  /** The session. */
  sessionId: SessionId;
  /** Retry key. */
  requestId?: string | null;
}

/** Receipt of `orchestrate.command`; the outcome comes as events with this `commandId` as `parentId`. */
export interface CommandReceipt {
  /** The command's id. */
  commandId: string;
  /** Sequence number of the command's record; it is durable. */
  seq: number;
  /** The session. */
  sessionId: SessionId;
}

/** Answer of `session.compress`. */
export interface Compressed {
  /** Tokens after; the same as before when there was nothing to condense. */
  tokensAfter: number;
  /** Tokens of the conversation before, as counted here. */
  tokensBefore: number;
}

/** Answer of `config.get`. */
export interface ConfigAnswer {
  /** Each setting by its dotted key; secrets read `"(set)"`. */
  values: Record<string, ConfigValue>;
  /** Lines about settings that are not taken, and why. */
  warnings: Array<string>;
}

/** The reason why a configuration folder applies. */
export type ConfigFolder =
  /** `CAIRN_CONFIG` names it. */
  | "named"
  /** It is `<CAIRN_HOME>/config`, which exists. */
  | "of_data_root"
  /** It is the user's own. */
  | "of_user";

/** Parameters of `config.get`. */
export interface ConfigGetParams {
  /** The root whose configuration is meant, by id or path; that of the daemon itself when absent. */
  root?: string | null;
}

/** Answer of `config.reload`. */
export interface ConfigReloaded {
  /** Keys whose new value takes effect at the next start. */
  pending: Array<string>;
  /** Lines about settings that are not taken, and why. */
  warnings: Array<string>;
}

/** One setting. */
export interface ConfigValue {
  /** The file, variable or flag that set it; `default` for the built-in one. */
  source: string;
  /** The value in force. */
  value: unknown;
  /** The value in the files, when it takes effect at the next start of the daemon. */
  pending?: unknown;
}

/** The list a partial comes from. */
export type Corpus =
  /** Lexical. */
  | "lex"
  /** Semantic. */
  | "sem"
  /** Both, fused. */
  | "fused";

/** Answer of `daemon.stats`. */
export interface DaemonStats {
  /** Of it, memory that is not file pages. */
  anonymousBytes: number;
  /** Calls that ended with an error. */
  callErrors: number;
  /** Calls since start. */
  calls: number;
  /** Connections now. */
  connections: number;
  /** Chunks in all indexes. */
  indexChunks: number;
  /** Files in all indexes. */
  indexFiles: number;
  /** Files waiting to be indexed. */
  indexPending: number;
  /** Bytes of the log's database. */
  logBytes: number;
  /** Records waiting for their commit. */
  logQueue: number;
  /** Records appended since start. */
  recordsAppended: number;
  /** Resident memory in bytes; 0 where it cannot be read. */
  residentBytes: number;
  /** Runs at work. */
  running: number;
  /** Sessions in the log. */
  sessions: number;
  /** Subscriptions now. */
  subscriptions: number;
  /** Seconds since start. */
  uptimeSeconds: number;
}

/** Answer of `daemon.status`. */
export interface DaemonStatus {
  /** Addresses it listens on. */
  addresses: Array<string>;
  /** Where its data lies. */
  dataRoot: string;
  /** Declared roots and their indexes. */
  index: IndexStatus;
  /** This start of the daemon. */
  instanceId: InstanceId;
  /** `on_demand`, `service` or `foreground`. */
  mode: string;
  /** Process id. */
  pid: number;
  /** Sessions at work. */
  runningSessions: number;
  /** When it started. */
  startedAt: Timestamp;
  /** Version of the binary. */
  version: string;
  /** The folder of the user's configuration; absent when there is none. */
  configDir?: string | null;
  /** The reason why this folder applies. */
  configOrigin?: ConfigFolder | null;
  /** Seconds without a client after which it leaves by itself; absent when it stays. */
  idleExitSeconds?: number | null;
  /** Where it logs; absent when it logs to its terminal or the service manager. */
  logFile?: string | null;
}

/** A paired device. */
export interface Device {
  /** Its id here. */
  id: DeviceId;
  /** Its key, by its hash. */
  key: string;
  /** What it is called. */
  name: string;
  /** When it was paired. */
  pairedAt: Timestamp;
  /** What it may do. */
  rights: Array<Right>;
  /** Its open connections. */
  connections?: number;
}

export type DeviceId = string;

/** Parameters of `client.revoke`. */
export interface DeviceRef {
  /** Its id. */
  id: DeviceId;
}

/** One entry of a listing. */
export interface DirEntry {
  /** What it is. */
  kind: EntryKind;
  /** Path relative to the root. */
  path: string;
  /** Bytes, for files. */
  size?: number | null;
}

/** A bounded listing. */
export interface DirListing {
  /** What is in it, ignored files left out, by path. */
  entries: Array<DirEntry>;
  /** The folder, relative to its root (`.` for the root itself). */
  path: string;
  /** True when the limit of 5,000 entries cut it. */
  truncated: boolean;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
}

/** An empty object. */
export interface Empty {}

/** Kind of an entry. */
export type EntryKind =
  /** A file. */
  | "file"
  /** A folder. */
  | "dir"
  /** A symbolic link, not followed. */
  | "symlink"
  /** A socket, device or pipe. */
  | "other";

/** A place where execution begins. */
export interface Entrypoint {
  /** `manifest`, `main`, `server`, `script`, `ci`, `library`, `container`. */
  kind: string;
  /** The file, relative to the root. */
  path: string;
  /** Why it is one. */
  reason: string;
  /** The line, when known. */
  line?: number | null;
}

/** One numbered entry of a session's log. */
export type Envelope =
  /** Something was asked for. */
  | {
    kind: "Cmd";
    /** This entry's own id (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … with no gap. */
    seq: number;
    /** The session it belongs to. */
    sessionId: SessionId;
    /** When it was appended. */
    ts: Timestamp;
    /** The command. */
    cmd: AgentCmd;
    /** Who caused it. */
    origin?: Origin | null;
    /** The entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  }
  /** Something happened. */
  | {
    kind: "Evt";
    /** This entry's own id (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … with no gap. */
    seq: number;
    /** The session it belongs to. */
    sessionId: SessionId;
    /** When it was appended. */
    ts: Timestamp;
    /** The event. */
    evt: AgentEvt;
    /** Who caused it. */
    origin?: Origin | null;
    /** The entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  };

/** `error.data` of every failed call. */
export interface ErrorData {
  /** The way out. */
  hint: string;
  /** Stable string; the contract. */
  reason: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** Further facts: the versions of both sides, `oldestSeq`, the path of a wrong field. */
  details?: unknown;
  /** When to try again, for `overloaded`. */
  retryAfterMs?: number | null;
}

/** Notification `orchestrate.event`. */
export type EventNotification =
  /** Something was asked for. */
  | {
    kind: "Cmd";
    /** This entry's own id (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … with no gap. */
    seq: number;
    /** The session it belongs to. */
    sessionId: SessionId;
    /** The subscription. */
    subscriptionId: SubscriptionId;
    /** When it was appended. */
    ts: Timestamp;
    /** The command. */
    cmd: AgentCmd;
    /** Who caused it. */
    origin?: Origin | null;
    /** The entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  }
  /** Something happened. */
  | {
    kind: "Evt";
    /** This entry's own id (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … with no gap. */
    seq: number;
    /** The session it belongs to. */
    sessionId: SessionId;
    /** The subscription. */
    subscriptionId: SubscriptionId;
    /** When it was appended. */
    ts: Timestamp;
    /** The event. */
    evt: AgentEvt;
    /** Who caused it. */
    origin?: Origin | null;
    /** The entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  };

/** What a turn may do. */
export interface ExecutionPolicy {
  /** Whether models outside this machine may be asked. The daemon's `models.allowExternal` must say so too. */
  allowExternalLLMs?: boolean;
  /** Tool calls are shown and not made. */
  dryRun?: boolean;
  /** Answers of the model at most; `agent.max_iterations` when omitted. */
  maxIterations?: number | null;
  /** Tokens in and out at most, over all answers. */
  maxTokens?: number | null;
  /** Whether tools may use the network. */
  network?: boolean;
  /** The only tools that may be called; all registered ones when omitted. */
  ops?: Array<string> | null;
  /** The only paths that may be touched, relative to the root; everything when omitted. */
  paths?: Array<string> | null;
  /** Whether the model is asked how far it is in reading its prompt; as the daemon has it when omitted. */
  promptProgress?: boolean | null;
  /** `off` runs commands outside the sandbox. Needs the right `admin`, and the audit says so of each. */
  sandbox?: SandboxUse | null;
  /** Settings of this turn in place of the configured ones. */
  settings?: TurnOverrides | null;
  /** Seconds at most, the waiting for approvals left out. */
  timeoutSeconds?: number | null;
  /** Under which names tools are offered; `tools.mode` when omitted. */
  toolsMode?: ToolsMode | null;
}

/** The reasons behind a summary. */
export interface ExploreDetails {
  /** How to build, test and run it. */
  commands: ProjectCommands;
  /** Each entrypoint with its reason. */
  entrypoints: Array<Entrypoint>;
  /** Top-level folders and what they hold. */
  layout: Array<LayoutEntry>;
  /** Packages, crates or modules of the repository. */
  projects: Array<Project>;
  /** Figures. */
  stats: ExploreStats;
  /** Each top file with its reason. */
  topFiles: Array<TopFile>;
  /** What the project says it is, in its own words (manifest or readme). */
  description?: string | null;
  /** What the goals' searches found. */
  findings?: Array<Finding>;
  /** Git facts, when it is a repository. */
  git?: GitFacts | null;
}

/** A plan: goals and the operations to run next. */
export interface ExplorePlan {
  /** What the plan is for. */
  goals: Array<string>;
  /** Operations to run, in order of importance. */
  nextOps: Array<AgentOp>;
}

/** What an explore may do beyond reading inside its root. */
export interface ExplorePolicy {
  /** Whether external models may be asked. */
  allowExternalLLMs?: boolean;
  /** Whether the network may be used (a clone). */
  network?: boolean;
  /** The only operations that may run, by tool name; all read-only ones when omitted. */
  ops?: Array<string> | null;
  /** The only paths that may be read, relative to the root; everything when omitted. What asks for more (a search of the
   * whole root, its languages) is answered for these paths. */
  paths?: Array<string> | null;
}

/** Parameters of `orchestrate.explore.start`. */
export interface ExploreStartParams {
  /** The branch to clone. */
  branch?: string | null;
  /** What to find out. Known goals steer the planner, other text becomes searches. */
  goals?: Array<string>;
  /** Who plans; the built-in planner when omitted. */
  planner?: PlannerKind | null;
  /** What the run may do; nothing beyond reading when omitted. */
  policy?: ExplorePolicy | null;
  /** A repository to clone first; needs `policy.network`. */
  remoteURL?: string | null;
  /** Retry key, up to 128 bytes: the same again returns the first receipt. */
  requestId?: string | null;
  /** Absolute path of the folder; not needed with `remoteURL`. */
  root?: string | null;
  /** An existing session to run in; a fresh one when omitted. */
  sessionId?: SessionId | null;
}

/** Figures of an explore. */
export interface ExploreStats {
  /** Chunks. */
  chunks: number;
  /** Operations that failed. */
  failedOps: number;
  /** Files seen by the index. */
  files: number;
  /** Milliseconds from start to summary. */
  millis: number;
  /** Operations run. */
  ops: number;
  /** Files left out of the index. */
  skipped: number;
  /** Symbols. */
  symbols: number;
}

/** Answer of `orchestrate.explore.status`. */
export interface ExploreStatus {
  /** Sequence number of the newest record. */
  headSeq: number;
  /** Operations finished. */
  opsDone: number;
  /** Operations waiting or running. */
  opsPending: number;
  /** The session. */
  sessionId: SessionId;
  /** Where the run stands. */
  state: RunState;
  /** Its latest explore run. */
  runId?: RunId | null;
  /** The summary, once completed. */
  summary?: ExploreSummary | null;
}

/** What an explore found: the five fields of the plan's schema and `details` with the reasons. */
export interface ExploreSummary {
  /** Reasons, commands and figures. */
  details: ExploreDetails;
  /** Paths where execution begins, most important first. */
  entrypoints: Array<string>;
  /** What is not known yet and how to find out. */
  followups: Array<string>;
  /** Lines by language (code, comments and blanks), as tokei counts them. */
  languages: Record<string, number>;
  /** Name of the repository. */
  repoName: string;
  /** Files to read first, by how much the rest of the code refers to them. */
  topFiles: Array<string>;
}

/** A file that a tool changed. */
export interface FileChange {
  /** The file, relative to the root. */
  path: string;
  /** SHA-256 (hex) of what it held afterwards; absent when it was deleted. */
  after?: string | null;
  /** What it held before, as base64 text; absent when it was not there. */
  before?: BlobRef | null;
  /** Whether it was there before and what it held was not kept: such a change cannot be undone. */
  lost?: boolean;
}

/** Matching lines of one file, at least one. */
export interface FileLines {
  /** Their numbers, ascending. */
  lines: Array<number>;
  /** Path relative to its root. */
  path: string;
  /** The root. */
  root: RootId;
  /** The text of each without its end, at most 2 KiB, invalid UTF-8 replaced; with `\n` between one and the next. */
  text: string;
  /** With `withRanges`: for each of them the byte ranges of the matches in its text. */
  ranges?: Array<Array<[number, number]>>;
}

/** An answer to a goal. */
export interface Finding {
  /** The goal. */
  goal: string;
  /** `path:line` of the best places. */
  places: Array<string>;
}

/** Why a model stopped. */
export type FinishReason =
  /** It was done. */
  | "stop"
  /** It waits for tools. */
  | "tool_calls"
  /** It reached its limit of tokens. */
  | "length"
  /** The provider held the answer back. */
  | "filtered";

/** Parameters of `session.fork`. */
export interface ForkParams {
  /** The session. */
  sessionId: SessionId;
  /** The turn before which the new session begins to differ; the whole past when omitted. */
  beforeTurnId?: string | null;
  /** A name for people; the old one's when omitted. */
  title?: string | null;
}

/** How two lists become one. */
export type Fusion =
  /** Reciprocal rank fusion. */
  | "rrf"
  /** Sum of scores scaled to 0..1 within each list. */
  | "minmax";

/** One changed file. */
export interface GitChange {
  /** Path relative to the repository. */
  path: string;
  /** `added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or `conflicted`. */
  status: string;
}

/** Git facts of a repository. */
export interface GitFacts {
  /** Files changed most often in the latest commits. */
  activeFiles: Array<string>;
  /** Files changed and not committed. */
  changedFiles: number;
  /** Subjects of the latest commits. */
  recent: Array<string>;
  /** Current branch, when on one. */
  branch?: string | null;
  /** Commit checked out. */
  head?: string | null;
}

/** Live notification `git.progress`. */
export interface GitProgress {
  /** True on the last one. */
  done: boolean;
  /** 0 to 100. */
  percent: number;
  /** The request. */
  requestId: string;
  /** `receiving`, `resolving`, `checkout`, … */
  stage: string;
  /** What failed, on a bad end. */
  error?: string | null;
  /** The stable reason of a bad end, as in the error table. */
  reason?: string | null;
  /** The result, on a good end. */
  result?: CloneResult | null;
}

/** State of a repository. */
export interface GitStatus {
  /** Changed files, at most 1,000. */
  changes: Array<GitChange>;
  /** False for a folder without git; the rest is empty then. */
  isRepository: boolean;
  /** True when there were more. */
  truncated: boolean;
  /** Current branch, when on one. */
  branch?: string | null;
  /** Commit checked out, when there is one. */
  head?: string | null;
  /** URL of `origin`, without credentials. */
  remote?: string | null;
  /** Where the repository lies below the root; empty when it is the root. Changes are relative to it. */
  top?: string;
}

/** Parameters of `git.status`. */
export interface GitStatusParams {
  /** A folder inside a declared root. */
  path: string;
}

/** Params of `orchestrate.gone`. */
export interface GoneNotification {
  /** Human-readable explanation. */
  message: string;
  /** Always `gone`. */
  reason: string;
  /** The subscription that ended. */
  subscriptionId: SubscriptionId;
}

/** A rule that somebody granted for good. */
export interface GrantedRule {
  /** When. */
  grantedAt: Timestamp;
  /** The client that answered. */
  grantedBy: string;
  /** The rule, as in `permissions.allow`. */
  rule: string;
}

/** Answer of `search.grep`. */
export interface GrepAnswer {
  /** Whether the file list covers its whole scope now. */
  complete: boolean;
  /** Files looked into. */
  filesSearched: number;
  /** Matching lines by path, then line. */
  items: Array<GrepItem>;
  /** Microseconds spent. */
  tookUs: number;
  /** Matching lines seen (all of them in count mode). */
  total: number;
  /** True when `k` cut the answer; go on with `nextCursor`. */
  truncated: boolean;
  /** Matching lines by file, in count mode. */
  counts?: Array<GrepCount>;
  /** Cursor of the next page. */
  nextCursor?: string | null;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
  /** Files that could not be read. */
  unreadable?: Array<string>;
}

/** What the partials of `search.grep` come from. */
export type GrepCorpus =
  /** The files themselves. */
  | "grep";

/** Matching lines of one file. */
export interface GrepCount {
  /** Matching lines. */
  lines: number;
  /** Path relative to its root. */
  path: string;
  /** The root. */
  root: RootId;
}

/** One matching line. */
export interface GrepItem {
  /** Line number. */
  line: number;
  /** Path relative to its root. */
  path: string;
  /** The root. */
  root: RootId;
  /** The line without its end, at most 2 KiB; invalid UTF-8 replaced. */
  text: string;
  /** Lines after. */
  after?: Array<string>;
  /** Lines before. */
  before?: Array<string>;
  /** Byte ranges of the matches in `text`. */
  ranges?: Array<[number, number]>;
}

/** Parameters of `search.grep`. */
export interface GrepParams {
  /** Text, or a regular expression with `isRegex`. At most 4 KiB. */
  pattern: string;
  /** Lines of context around each hit, at most 20. */
  contextLines?: number;
  /** Only count: `items` stays empty, `counts` has the lines by file. */
  countOnly?: boolean;
  /** Where to go on, from `nextCursor`. */
  cursor?: string | null;
  /** Further filters; `kinds` does not apply. */
  filters?: SearchFilters | null;
  /** `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline` (`U`), `dot_all` (`s`). */
  flags?: Array<string>;
  /** Whether `pattern` is a regular expression. */
  isRegex?: boolean;
  /** Lines wanted, 1 to 10,000. */
  k?: number;
  /** Only files under this path. */
  pathPrefix?: string | null;
  /** Name for `search.partial` notifications, each with the next lines; none are sent when omitted or with `countOnly`. */
  requestId?: string | null;
}

/** Live notification `search.partial` of a `search.grep`. */
export interface GrepPartial {
  /** Always `grep`. */
  corpus: GrepCorpus;
  /** True on the last one. */
  done: boolean;
  /** The lines that come after those of the partial before. */
  items: Array<GrepItem>;
  /** The `requestId` of the search. */
  requestId: string;
}

/** Answer of `search.grepStream`: it comes when all lines are told. */
export interface GrepStreamEnd {
  /** Whether the file list covers its whole scope now. */
  complete: boolean;
  /** Files looked into. */
  filesSearched: number;
  /** Microseconds spent. */
  tookUs: number;
  /** Lines told. */
  total: number;
  /** True when there are more lines than `k`. */
  truncated: boolean;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
  /** Files that could not be read. */
  unreadable?: Array<string>;
}

/** Parameters of `search.grepStream`. */
export interface GrepStreamParams {
  /** Text, or a regular expression with `isRegex`. At most 4 KiB. */
  pattern: string;
  /** Name of the `search.partial` notifications that bring the lines. */
  requestId: string;
  /** Where to go on, from a partial's `cursor`. */
  cursor?: string | null;
  /** Further filters; `kinds` does not apply. */
  filters?: SearchFilters | null;
  /** As those of `search.grep`. */
  flags?: Array<string>;
  /** Whether `pattern` is a regular expression. */
  isRegex?: boolean;
  /** Lines wanted at most; all when omitted. */
  k?: number | null;
  /** Only files under this path. */
  pathPrefix?: string | null;
  /** Whether `ranges` are told: each line is then looked at once more. */
  withRanges?: boolean;
}

/** Arguments of `index_add_root`. */
export interface IndexAddRoot {
  /** Absolute path of the folder. */
  path: string;
}

/** Arguments of `index_build`. */
export interface IndexBuild {
  /** Indexes at work at once at most, this one among them: with as many others at work the build waits for them first.
   * As many as there are when omitted. */
  maxConcurrency?: number | null;
  /** Seconds to wait at most, up to 600; then the answer is the state reached. */
  timeoutSeconds?: number | null;
}

/** Live notification `index.progress`. */
export interface IndexProgress {
  /** Chunks so far. */
  chunks: number;
  /** True when everything is up to date, or the pass failed. */
  done: boolean;
  /** Files indexed so far. */
  filesIndexed: number;
  /** Path of the root. */
  path: string;
  /** What it does now. */
  state: IndexState;
  /** The request, when it was named. */
  requestId?: string | null;
}

/** Receipt of an index command; the work is reported by `index.progress` and `index.status`. */
export interface IndexReceipt {
  /** Its canonical path. */
  path: string;
  /** The root. */
  root: RootId;
  /** The request, when it was named. */
  requestId?: string | null;
}

/** What a root's index does. */
export type IndexState =
  /** Walking and indexing text. */
  | "indexing"
  /** Lexical search is complete; vectors or symbols are being added. */
  | "enriching"
  /** Up to date. */
  | "ready"
  /** The last pass failed; see `error`. */
  | "failed";

/** Answer of `index.status`. */
export interface IndexStatus {
  /** One for each root. */
  roots: Array<RootStatus>;
}

/** Parameters of `index.status`. */
export interface IndexStatusParams {
  /** Root id or absolute path; all roots when omitted. */
  root?: string | null;
}

/** Parameters of `initialize`, the first message of a connection. */
export interface InitializeParams {
  /** Who it is. */
  client: ClientInfo;
  /** Versions the client speaks, best first. */
  protocolVersions: Array<string>;
  /** What it can do. */
  capabilities?: ClientCapabilities;
}

/** Answer of `initialize`. */
export interface InitializeResult {
  /** What the daemon can do. */
  capabilities: ServerCapabilities;
  /** Limits of this connection. */
  limits: Limits;
  /** The version both speak. */
  protocolVersion: string;
  /** Who answers. */
  server: ServerInfo;
  /** Version of the daemon, as in its Bonjour record. */
  version: string;
}

/** The input of a turn: a text, or parts. */
export type Input =
  /** Text alone. */
  | string
  /** Text and images. */
  | Array<Part>;

export type InstanceId = string;

/** Notification `orchestrate.lagged`: this client fell behind and now reads from the log. */
export interface LaggedNotification {
  /** The next record it will be sent, from the log. */
  fromSeq: number;
  /** The subscription. */
  subscriptionId: SubscriptionId;
}

/** A top-level folder. */
export interface LayoutEntry {
  /** Files in it. */
  files: number;
  /** The folder. */
  path: string;
  /** Its main language, or what it is for. */
  role: string;
}

/** Limits; over them there is an immediate error. */
export interface Limits {
  /** Calls in one batch. */
  maxBatch: number;
  /** Connections of the daemon. */
  maxConnections: number;
  /** Calls of one connection at work at once. */
  maxInFlight: number;
  /** Results of one search. */
  maxK: number;
  /** Bytes of one message to the daemon. */
  maxMessageBytes: number;
  /** Entries of one page. */
  maxPage: number;
  /** Subscriptions of one connection. */
  maxSubscriptions: number;
}

/** What the partials of `search.grepStream` come from. */
export type LinesCorpus =
  /** The files themselves, line by line. */
  | "lines";

/** Live notification `search.partial` of a `search.grepStream`. */
export interface LinesPartial {
  /** Always `lines`. */
  corpus: LinesCorpus;
  /** True on the last one. */
  done: boolean;
  /** The lines that come after those of the partial before; the first file may be the last one of that. */
  files: Array<FileLines>;
  /** The `requestId` of the search. */
  requestId: string;
  /** Where to go on after these lines, should the connection end. */
  cursor?: string | null;
}

/** Parameters of `fs.listDir`. */
export interface ListDirParams {
  /** Absolute, or relative to `root`. */
  path: string;
  /** Levels below it, 1 to 16. */
  depth?: number;
  /** Root id or root path for a relative `path`. */
  root?: string | null;
}

/** The word `live`. */
export type LiveWord =
  /** From the head. */
  | "live";

/** Arguments of `llm_call`. */
export interface LlmCall {
  /** What is asked. */
  prompt: string;
  /** The registered type that the answer must be: `ExplorePlan` or `ExploreSummary`. */
  expectsType?: string | null;
  /** The system text. */
  instructions?: string | null;
  /** How the model is asked. */
  policy?: LlmPolicy;
  /** The provider; the session's own when omitted. */
  provider?: string | null;
  /** Whether a typed answer is told while it is written, as `structured_snapshot` events; needs `expectsType`. */
  streamStructured?: boolean;
}

/** How a model is asked. */
export interface LlmPolicy {
  /** Whether a model outside this machine may be asked. The daemon's `models.allowExternal` must say so too. */
  allowExternalLLMs?: boolean;
  /** Tokens of the answer, at most 8,192; 1,024 when omitted. */
  maxTokens?: number | null;
  /** The model; the provider's default when omitted. */
  model?: string | null;
  /** 0 to 2; the provider's own when omitted. */
  temperature?: number | null;
}

/** Answer of `search.map`. */
export interface MapAnswer {
  /** False while symbols are missing, and for trees with more definitions than a map can weigh. */
  complete: boolean;
  /** The same, best file first. */
  files: Array<MapFile>;
  /** The map as a model reads it: a line for each file, under it one for each definition: line number, kind, name. */
  text: string;
  /** Tokens of `text`, one for four bytes; at most the budget. */
  tokens: number;
  /** Microseconds spent. */
  tookUs: number;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
}

/** A definition of a map. */
export interface MapDefinition {
  /** `function`, `class`, … */
  kind: string;
  /** Its first line. */
  line: number;
  /** Its name. */
  name: string;
}

/** A file of a map. */
export interface MapFile {
  /** Its definitions that fit, by line. */
  definitions: Array<MapDefinition>;
  /** Path relative to its root. */
  path: string;
  /** The root. */
  root: RootId;
  /** Its part of all attention, 0 to 1. */
  score: number;
}

/** Parameters of `search.map`. */
export interface MapParams {
  /** Tokens that the text may take, 1 to 16,384; a token is taken for four bytes. */
  budget?: number;
  /** Files being worked on, relative to their root or absolute, at most 200: what they refer to comes first. */
  files?: Array<string>;
  /** What is being worked on, in words or names: what a search for it finds comes first. At most 4 KiB. */
  query?: string | null;
  /** Root ids or absolute root paths; all declared roots when empty. */
  roots?: Array<string>;
}

/** What a change of the store did. */
export interface MemoryChange {
  /** Bytes of its text now; 0 when it was deleted. */
  bytes: number;
  /** In a sentence. */
  message: string;
  /** The entry's name. */
  name: string;
}

/** An entry without its text. */
export interface MemoryEntry {
  /** Bytes of its text. */
  bytes: number;
  /** True when it cannot be changed or deleted through Cairn: its name begins with `fix-`. */
  fixed: boolean;
  /** The same as a list. */
  keywords: Array<string>;
  /** When it was last written. */
  modified: Timestamp;
  /** Its sorted keywords, joined by `_`: the name of its file without `.md`. */
  name: string;
  /** The part of its text that a search found, in one line. */
  excerpt?: string | null;
}

/** A keyword. */
export interface MemoryKeyword {
  /** Entries that bear it. */
  entries: number;
  /** The word. */
  keyword: string;
}

/** Parameters of `memory.keywords`. */
export interface MemoryKeywordsParams {
  /** Keywords: 200 by default, at most 500; those with most entries first. */
  limit?: number | null;
}

/** Parameters of `memory.list`. */
export interface MemoryListParams {
  /** From an earlier page. */
  cursor?: string | null;
  /** Entries a page: 50 by default, at most 200. */
  limit?: number | null;
}

/** Names an entry. */
export interface MemoryRef {
  /** Its keywords, in any order, or its name. */
  keywords: string;
}

/** Parameters of `memory.search`. */
export interface MemorySearchParams {
  /** What is looked for. */
  query: string;
  /** From an earlier page. */
  cursor?: string | null;
  /** Results a page: 10 by default, at most 20. */
  limit?: number | null;
}

/** An entry with its text. */
export interface MemoryText {
  /** Its text. */
  content: string;
  /** True when it cannot be changed or deleted. */
  fixed: boolean;
  /** Its name. */
  name: string;
}

/** Parameters of `memory.save` and `memory.append`. */
export interface MemoryWriteParams {
  /** Text, at most 256 KiB with what the entry holds already. */
  content: string;
  /** The entry's keywords, in any order: 1 to 8 words. They are its only name. */
  keywords: string;
}

/** A whole answer of a model. */
export interface ModelAnswer {
  /** Milliseconds to the first piece. */
  firstMillis: number;
  /** Milliseconds to the end. */
  millis: number;
  /** Who answered. */
  model: ModelChoice;
  /** SHA-256 (hex) of what was asked: system text, messages, tools. */
  requestDigest: string;
  /** The run. */
  runId: RunId;
  /** Tokens a second while it answered; 0 when too short to tell. */
  tokensPerSecond: number;
  /** Tokens, as the provider counts them; counted here where it does not tell. */
  usage: TokenUsage;
  /** Tools it asks for. */
  calls?: Array<ToolUse>;
  /** Tokens of the model's context, where known. */
  contextTokens?: number | null;
  /** Why it stopped; absent when it was cut off. */
  finish?: FinishReason | null;
  /** Number of the latest `steered` record that was in what was asked; 0 when there was none. */
  heardSeq?: number;
  /** The answer's bytes as they came, for replay. */
  raw?: BlobRef | null;
}

/** Which model a session talks to. */
export interface ModelChoice {
  /** The model there. */
  model: string;
  /** The provider's name here. */
  provider: string;
  /** Where it is called, when that is not the configured place. */
  endpoint?: string | null;
}

/** A model that a provider offers. */
export interface ModelInfo {
  /** The model's name there. */
  model: string;
  /** The provider's name here: `ollama`, `openai`, … */
  provider: string;
  /** Tokens of its context, where the provider tells. */
  contextTokens?: number | null;
  /** Bytes of its weights, where the provider tells. */
  sizeBytes?: number | null;
}

/** Parameters of `model.list`. */
export interface ModelListParams {
  /** The provider; the configured one when omitted. */
  provider?: string | null;
}

/** How a name matches. */
export type NameMatch =
  /** Equal. */
  | "exact"
  /** Begins with it. */
  | "prefix"
  /** Close to it. */
  | "fuzzy";

/** Where an entry comes from, as far as it is known. */
export interface Origin {
  /** Name of the client that asked. */
  client?: string | null;
  /** The run it belongs to. */
  runId?: RunId | null;
  /** The tool that made it. */
  tool?: string | null;
}

/** How a turn ended. */
export type Outcome =
  /** The model was done. */
  | "completed"
  /** Something failed; `error` tells what. */
  | "failed"
  /** A client stopped it. */
  | "cancelled"
  /** A call was denied for good, or nobody could be asked. */
  | "denied"
  /** Its time was used up. A turn whose tokens were used up `failed` with the reason `budget_exceeded`. */
  | "timed_out";

/** A page of a list. */
export interface PageOfApproval {
  /** The entries. */
  data: Array<Approval>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfAuditEntry {
  /** The entries. */
  data: Array<AuditEntry>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfDevice {
  /** The entries. */
  data: Array<Device>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfGrantedRule {
  /** The entries. */
  data: Array<GrantedRule>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfMemoryEntry {
  /** The entries. */
  data: Array<MemoryEntry>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfMemoryKeyword {
  /** The entries. */
  data: Array<MemoryKeyword>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfModelInfo {
  /** The entries. */
  data: Array<ModelInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfProviderInfo {
  /** The entries. */
  data: Array<ProviderInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfRootStatus {
  /** The entries. */
  data: Array<RootStatus>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfSession {
  /** The entries. */
  data: Array<Session>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfSkillInfo {
  /** The entries. */
  data: Array<SkillInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** A page of a list. */
export interface PageOfToolInfo {
  /** The entries. */
  data: Array<ToolInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** Page parameters of lists. */
export interface PageParams {
  /** Whether those that are put away are listed too. */
  archived?: boolean;
  /** Where to go on, from `nextCursor`. */
  cursor?: string | null;
  /** Entries wanted, at most 500. */
  limit?: number | null;
}

/** Parameters of `pair.begin`. */
export interface PairBeginParams {
  /** What the device may do; none that the caller has not. */
  rights: Array<Right>;
  /** What the device is to be called; absent to take its own word. */
  name?: string | null;
}

/** Answer of `pair.begin`: what a person carries to the other machine. */
export interface PairOffer {
  /** `host:port` of each listener for devices. */
  addresses: Array<string>;
  /** Eight digits, good for one pairing. */
  code: string;
  /** When it is void. */
  expiresAt: Timestamp;
  /** The daemon's key, by its hash. */
  key: string;
  /** Wrong tries after which it is void. */
  tries: number;
}

/** How a pairing stands. */
export type PairState =
  /** No code was asked for. */
  | "none"
  /** A code waits for its device. */
  | "waiting"
  /** A device is paired; the code is used up. */
  | "paired"
  /** Too many wrong tries. */
  | "void"
  /** Nobody came in time. */
  | "expired"
  /** It was called off. */
  | "cancelled";

/** Answer of `pair.status` and `pair.cancel`. */
export interface PairStatus {
  /** How the latest code stands. */
  state: PairState;
  /** Tries that are left of it. */
  triesLeft: number;
  /** The device that used it. */
  device?: Device | null;
}

/** A part of a user's message. */
export type Part =
  /** Text. */
  | {
    type: "text";
    /** The text. */
    text: string;
  }
  /** An image, for models that take them. */
  | {
    type: "image";
    /** The bytes in base64. */
    data: string;
    /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
    mime: string;
  };

/** One thing to do. */
export interface PlanItem {
  /** What. */
  text: string;
  /** `pending`, `in_progress` or `done`. */
  status?: PlanStatus;
}

/** How far a thing to do is. */
export type PlanStatus =
  /** Not begun. */
  | "pending"
  /** Being done. */
  | "in_progress"
  /** Done. */
  | "done";

/** Who plans an explore. */
export type PlannerKind =
  /** The built-in planner alone: deterministic, without a model. */
  | "default"
  /** The built-in planner, then the session's model with what was found. */
  | "model";

/** Exactly what a call would do. */
export interface Preview {
  /** One line. */
  summary: string;
  /** The command line, for a shell. */
  command?: string | null;
  /** The change as a unified diff; cut at 64 KiB, and then it says so. */
  diff?: string | null;
  /** The folder the command runs in, relative to the root. */
  folder?: string | null;
  /** Whether it uses the network. */
  network?: boolean;
  /** Paths it touches, relative to the root. */
  paths?: Array<string>;
  /** What else the reader should know: no sandbox, a file that was not read before. */
  warnings?: Array<string>;
}

/** A package, crate or module. */
export interface Project {
  /** `cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, … */
  kind: string;
  /** Path of the manifest. */
  manifest: string;
  /** Its name by the manifest. */
  name: string;
  /** What its manifest says it is. */
  description?: string | null;
}

/** Commands of a project, most trusted first. */
export interface ProjectCommands {
  /** Build it. */
  build: Array<string>;
  /** Run it. */
  run: Array<string>;
  /** Test it. */
  test: Array<string>;
}

/** Parameters of `prompt.append`. */
export interface PromptAppendParams {
  /** The session. */
  sessionId: SessionId;
  /** What goes after the tools' own texts; at most 16 KiB of it are used. */
  text: string;
}

/** Parameters of `prompt.set`. */
export interface PromptSetParams {
  /** The session; its conversation is emptied. */
  sessionId: SessionId;
  /** Stands in place of the built-in base; the empty text for no base. When omitted, the built-in one is back and nothing
   * is appended. */
  system?: string | null;
}

/** A resolved system text. */
export interface PromptShown {
  /** The text as the model gets it. */
  system: string;
}

/** Parameters of `provider.current`. */
export interface ProviderCurrentParams {
  /** The session; the daemon's default when omitted. */
  sessionId?: SessionId | null;
}

/** A provider as clients see it. */
export interface ProviderInfo {
  /** Whether it can be called as things are; else why not. */
  available: boolean;
  /** Whether calling it leaves this machine. */
  external: boolean;
  /** Its name. */
  name: string;
  /** The model it is called with when none is named. */
  defaultModel?: string | null;
  /** Where it is called. */
  endpoint?: string | null;
  /** Whether images can be sent to it; a model there may still refuse them. `false` for one that cannot be called. */
  images?: boolean;
  /** Why not. */
  reason?: string | null;
}

/** Answer of `provider.set`. */
export interface ProviderSet {
  /** The model there. */
  model: string;
  /** The provider's name here. */
  provider: string;
  /** Tokens of its context, where known. */
  contextTokens?: number | null;
  /** Where it is called, when that is not the configured place. */
  endpoint?: string | null;
  /** What the user should know: a smaller context than before. */
  warnings?: Array<string>;
}

/** Parameters of `provider.set`. */
export interface ProviderSetParams {
  /** The session. */
  sessionId: SessionId;
  /** Another place to call it; no key that was set up for the configured one goes there. */
  endpoint?: string | null;
  /** The model; the provider's default when omitted. */
  model?: string | null;
  /** The provider; the session's own when omitted. */
  provider?: string | null;
}

/** A step that came out differently. */
export interface ReplayDifference {
  /** What is there now. */
  now: string;
  /** Where in it, as a JSON pointer. */
  path: string;
  /** What the record has there. */
  recorded: string;
  /** The record it is about; 0 when it is about none. */
  seq: number;
  /** Which step. */
  what: string;
}

/** Parameters of `trace.replay`. */
export interface ReplayParams {
  /** The session's id. */
  traceId: SessionId;
  /** The folder to replay it in; the session's own root when omitted. It must be a declared root. */
  root?: string | null;
}

/** Answer of `trace.replay`. */
export interface ReplayReport {
  /** Steps that were compared. */
  compared: number;
  /** Whether everything was the same. */
  identical: boolean;
  /** The session in which it was. */
  replay: SessionId;
  /** What was replayed. */
  traceId: SessionId;
  /** The first step that was not. */
  first?: ReplayDifference | null;
}

/** How an approval ended. */
export interface Resolution {
  /** When. */
  at: Timestamp;
  /** Who gave it: a client's name, `deadline`, or `cancelled`. */
  by: string;
  /** The answer. */
  decision: ApprovalDecision;
  /** The rules that were granted in place of the approval's own. */
  pattern?: string | null;
  /** Why; the model sees it when the answer is no. */
  reason?: string | null;
}

/** Parameters of `permission.revoke`. */
export interface RevokeParams {
  /** The rule, as `permission.list` tells it. */
  rule: string;
}

/** What a client must be allowed to. */
export type Right =
  /** Look. */
  | "observe"
  /** Start work. */
  | "prompt"
  /** Answer approvals. */
  | "approve"
  /** Change the daemon. */
  | "admin";

/** The id of an indexed root: `root_` and the first 16 hex digits of the SHA-256 of its canonical path, so that
 * the same folder keeps its index. */
export type RootId = string;

/** Parameters that name a root by its id or its absolute path. */
export interface RootRef {
  /** Root id or absolute path. */
  root: string;
  /** Retry key and name for `index.progress`, where work follows. */
  requestId?: string | null;
}

/** State of one root's index. */
export interface RootStatus {
  /** Bytes of their text. */
  bytes: number;
  /** Chunks. */
  chunks: number;
  /** Grows by one with each committed batch of changes. */
  clock: number;
  /** True when lexical, vectors and symbols are all up to date with the last scan. */
  complete: boolean;
  /** Model of the vectors. */
  embedder: string;
  /** Indexed files. */
  files: number;
  /** Indexed files by language. */
  languages: Record<string, number>;
  /** Its canonical path. */
  path: string;
  /** Files waiting to be indexed. */
  pending: number;
  /** The root. */
  root: RootId;
  /** Files left out, by reason: `binary`, `too_large`, `generated`, `unreadable`, `invalid_name`, … */
  skipped: Record<string, number>;
  /** What it does now. */
  state: IndexState;
  /** Files whose symbols are known. */
  symbolFiles: number;
  /** Definitions. */
  symbols: number;
  /** Chunks that have a vector. */
  vectors: number;
  /** Whether changes are noticed at once (`watching`), by sweeps only (`polling`), or not (`off`). */
  watch: string;
  /** The last error, when the last pass had one. */
  error?: string | null;
}

/** Why a turn did not complete. */
export interface RunError {
  /** The way out. */
  hint: string;
  /** For people. */
  message: string;
  /** Stable reason, as in the error table. */
  reason: string;
  /** Whether the same again may succeed. */
  retryable: boolean;
}

export type RunId = string;

/** Receipt of a started run. */
export interface RunReceipt {
  /** The run. */
  runId: RunId;
  /** Sequence number of the run's `started` record; it is durable. */
  seq: number;
  /** The session to follow. */
  sessionId: SessionId;
}

/** The end of a turn. */
export interface RunResult {
  /** The run. */
  runId: RunId;
  /** The session. */
  sessionId: SessionId;
  /** How it ended. */
  status: Outcome;
  /** Every tool call, in order. */
  toolTrace: Array<ToolTrace>;
  /** The turn. */
  turnId: string;
  /** Tokens of all answers. */
  usage: TokenUsage;
  /** Why it did not complete. */
  error?: RunError | null;
  /** The model's last visible text. */
  finalOutput?: string | null;
  /** What the client sent with the turn. */
  metadata?: Record<string, string>;
}

/** Parameters of `orchestrate.run.start`. */
export interface RunStartParams {
  /** What is asked. */
  input: Input;
  /** The session. */
  sessionId: SessionId;
  /** The client's name for the turn, 1 to 128 bytes: the same again returns the first receipt. */
  turnId: string;
  /** What the model should know beside it; goes before the input. */
  context?: string | null;
  /** Kept with the turn and returned as it is; at most 32 entries. */
  metadata?: Record<string, string>;
  /** What the turn may do and how long. */
  policy?: ExecutionPolicy | null;
}

/** Where a run stands. */
export type RunState =
  /** Nothing has run. */
  | "idle"
  /** At work. */
  | "running"
  /** Ended with `completed`. */
  | "completed"
  /** Ended with `stopped`. */
  | "stopped"
  /** Ended with `error`. */
  | "failed"
  /** Cut off by the end of the daemon; can be resumed. */
  | "interrupted";

/** Answer of `orchestrate.run.status`. */
export interface RunStatus {
  /** Sequence number of the newest record. */
  headSeq: number;
  /** Turns that wait behind the one at work. */
  queued: number;
  /** The session. */
  sessionId: SessionId;
  /** State of the session. */
  state: RunState;
  /** Its latest turn. */
  runId?: RunId | null;
}

/** Answer of `sandbox.probe`. */
export interface SandboxProbe {
  /** Whether memory and processes are bounded by a control group, for all of a command together. */
  controlGroup: boolean;
  /** What it does not stop. */
  notes: Array<string>;
  /** Whether system calls can be filtered. */
  seccomp: boolean;
  /** `full`, `weaker` or `none`. */
  tier: string;
  /** Whether user namespaces can be made. */
  userNamespaces: boolean;
  /** What bubblewrap calls itself; absent where it is not there. */
  bubblewrap?: string | null;
  /** Version of Landlock's interface. */
  landlock?: number | null;
  /** Why the full tier does not work. */
  whyNotFull?: string | null;
}

/** Whether commands are confined. */
export type SandboxUse =
  /** As the configuration says. */
  | "on"
  /** Not at all. */
  | "off";

/** Answer of a search. */
export interface SearchAnswer {
  /** Whether the index covers its whole scope now. */
  complete: boolean;
  /** Best first. */
  items: Array<SearchItem>;
  /** Microseconds spent. */
  tookUs: number;
  /** What is missing or late, in words (`vectors`, `symbols`, `indexing`, `rerank`); empty when nothing is. */
  degraded?: Array<string>;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
}

/** Filters; every one given must hold. */
export interface SearchFilters {
  /** Glob patterns, any of them; with `!` in front: none of them. */
  globs?: Array<string>;
  /** Symbol kinds (`function`, `class`, …): only results inside such a symbol. */
  kinds?: Array<string>;
  /** Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names (`c++`), any of them. */
  languages?: Array<string>;
  /** Only files under this path, by whole components, relative to the root. */
  pathPrefix?: string | null;
  /** Root ids or absolute root paths, any of them; all declared roots when empty. */
  roots?: Array<string>;
}

/** One result: a range of lines. */
export interface SearchItem {
  /** Index clock of the root when this was indexed. */
  clock: number;
  /** SHA-256 (hex) of the file as indexed. */
  contentHash: string;
  /** Last line. */
  endLine: number;
  /** Path relative to its root, `/` between components. */
  path: string;
  /** The root. */
  root: RootId;
  /** Higher is better; comparable within one answer only. */
  score: number;
  /** First line. */
  startLine: number;
  /** True when the file on disk differs from what was indexed. */
  changed?: boolean;
  /** With `explain`: what each feature gave to the score, the most telling first; together they are the score. */
  explain?: Array<Share>;
  /** Byte ranges in `text` that match words of the query. */
  highlights?: Array<[number, number]>;
  /** Language, when known. */
  lang?: string | null;
  /** The definition it lies in, when known. */
  symbol?: SymbolRef | null;
  /** The text, when asked for. */
  text?: string | null;
  /** Line number of the first line of `text`, when context moved it. */
  textStartLine?: number | null;
}

/** Parameters of `search.lexical`, `search.semantic` and `search.hybrid`. */
export interface SearchParams {
  /** Words, an identifier, a path or a question. At most 4 KiB. */
  query: string;
  /** Lines of context around the text, at most 50. */
  contextLines?: number;
  /** Further results of a file count a fifth less each, not only 4 % and up to three times. */
  diversify?: boolean | null;
  /** Whether items tell what each feature gave to their score. */
  explain?: boolean;
  /** Where to look. */
  filters?: SearchFilters | null;
  /** How hybrid search fuses its two lists. */
  fusion?: Fusion | null;
  /** Whether items carry their text. */
  includeText?: boolean;
  /** Results wanted, 1 to 200. */
  k?: number;
  /** Maximal marginal relevance: 0 is all diversity, 1 all relevance. */
  mmr?: number | null;
  /** Name for `search.partial` notifications; none are sent when omitted. */
  requestId?: string | null;
}

/** Live notification `search.partial`. */
export interface SearchPartial {
  /** Which list. */
  corpus: Corpus;
  /** True on the last one. */
  done: boolean;
  /** The items so far. */
  items: Array<SearchItem>;
  /** The `requestId` of the search. */
  requestId: string;
}

/** What a daemon can do. */
export interface ServerCapabilities {
  /** Methods it answers on this connection. */
  methods: Array<string>;
  /** Notifications it sends. */
  notifications: Array<string>;
}

/** The daemon's name and instance. */
export interface ServerInfo {
  /** This start of the daemon. */
  instanceId: InstanceId;
  /** Always `cairn`. */
  name: string;
  /** Version of the binary. */
  version: string;
}

/** A session. */
export interface Session {
  /** When it was made. */
  createdAt: Timestamp;
  /** Sequence number of the newest record, 0 when there is none. */
  headSeq: number;
  /** Its id, which is also its trace id. */
  sessionId: SessionId;
  /** State of its latest run. */
  state: RunState;
  /** Its name. */
  title: string;
  /** When its log last grew. */
  updatedAt: Timestamp;
  /** Whether it is put away: lists leave it out. */
  archived?: boolean;
  /** The root its commands work in. */
  root?: string | null;
}

/** Parameters of `session.create`. */
export interface SessionCreateParams {
  /** Retry key. */
  requestId?: string | null;
  /** The declared root its commands work in: a path or root id. */
  root?: string | null;
  /** A name for people, at most 200 characters. */
  title?: string | null;
}

export type SessionId = string;

/** Parameters that name a session. */
export interface SessionRef {
  /** The session. */
  sessionId: SessionId;
}

/** What one feature gave to a score. */
export interface Share {
  /** `windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name`, `exact`: words of the query in the window, its
   * file, its path, the names in it, the answer itself and its name; `fileName`: whether its file's whole name (its
   * folder's for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`, `nameMeaning`: nearness
   * of the file's best window, the answer and its name; `line`: how far one line covers the query, from six tenths on;
   * `definition`: what an answer that is a definition must outweigh; `container`: a type or module, which holds others;
   * `size`: its length, up to ten lines; `rerank`: nearness by the model that re-scores;
   * `repeat`: what a further answer of a file counts less, its value the factor;
   * `prior`: the factor of the path when it is below 1, with no share of its own. */
  feature: string;
  /** Its part of the score: the value times its weight, times the factor of the path. */
  share: number;
  /** Its value, mostly 0 to 1. */
  value: number;
}

/** A skill's `skill.json`. The folder it lies in bears its id. */
export interface SkillFile {
  /** Its name: letters, digits, `-` and `_`, at most 64. */
  id: string;
  /** One line. */
  description?: string;
  /** Rules that hold while it is on; they can only tighten. */
  policy?: SkillPolicy;
  /** What the agent is told, at most 16 KiB; `prompt.md` beside the file when absent. */
  promptBlock?: string | null;
  /** Names of tools it uses. While all of them are switched off or missing, the skill is off. */
  tools?: Array<string>;
  /** Its version, as its author counts. */
  version?: string;
}

/** A skill as clients see it. */
export interface SkillInfo {
  /** Whether the agent is told of it. */
  enabled: boolean;
  /** What its file says. */
  skill: SkillFile;
  /** The folder it comes from; absent for one that is built in. */
  folder?: string | null;
  /** Why not. */
  reason?: string | null;
}

/** Rules of a skill, written as in `permissions`. */
export interface SkillPolicy {
  /** Asked about. */
  confirm?: Array<string>;
  /** Refused. */
  deny?: Array<string>;
}

/** A range of lines of a file. */
export interface Span {
  /** Last line returned; less than `startLine` when the file has no such line. */
  endLine: number;
  /** Path relative to its root. */
  path: string;
  /** First line returned. */
  startLine: number;
  /** The lines; invalid UTF-8 replaced. */
  text: string;
  /** True when a limit cut the range: 2,000 lines or 256 KiB. */
  truncated: boolean;
  /** Whether the file differs from the `contentHash` that was given. */
  changed?: boolean | null;
  /** SHA-256 (hex) of the file now; left out for files over 8 MiB. */
  contentHash?: string | null;
  /** Lines of the file, when it was read to its end. */
  totalLines?: number | null;
}

/** Parameters of `content.getSpan`. */
export interface SpanParams {
  /** Last line. */
  end: number;
  /** Absolute, or relative to `root` (to the session's root in a command). */
  path: string;
  /** First line, from 1. */
  start: number;
  /** The hash a search gave: the answer then says whether the file changed since. */
  contentHash?: string | null;
  /** Lines before and after, at most 50. */
  context?: number | null;
  /** Root id or root path for a relative `path`; may be left out when one root is declared. */
  root?: string | null;
}

/** Parameters of `orchestrate.run.steer`. */
export interface SteerParams {
  /** The session. */
  sessionId: SessionId;
  /** What the model should hear before its next answer; at most 16 KiB. */
  text: string;
}

/** Parameters of `orchestrate.subscribe`. */
export interface SubscribeParams {
  /** The session. */
  sessionId: SessionId;
  /** Where to start; from the beginning when omitted. */
  after?: After | null;
}

/** Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`. */
export interface SubscribeResult {
  /** Newest record now. */
  headSeq: number;
  /** Oldest record that is kept. */
  oldestSeq: number;
  /** Carried by every notification of this subscription. */
  subscriptionId: SubscriptionId;
}

export type SubscriptionId = string;

/** A definition. */
export interface SymbolItem {
  /** Last line. */
  endLine: number;
  /** `function`, `method`, `class`, `struct`, `enum`, `interface`, `type`, `constant`, `module`, `macro`, … */
  kind: string;
  /** Language. */
  lang: string;
  /** Its name. */
  name: string;
  /** Path relative to its root. */
  path: string;
  /** The root. */
  root: RootId;
  /** How well the name fits, 0 to 1. */
  score: number;
  /** First line. */
  startLine: number;
  /** The definition it lies in, when any. */
  container?: string | null;
}

/** A definition's name and kind. */
export interface SymbolRef {
  /** `function`, `method`, `class`, `struct`, … */
  kind: string;
  /** Its name. */
  name: string;
}

/** Answer of `search.symbols`. */
export interface SymbolsAnswer {
  /** Whether symbols are known for the whole scope now. */
  complete: boolean;
  /** Best first; an outline by line. */
  items: Array<SymbolItem>;
  /** Microseconds spent. */
  tookUs: number;
  /** Whether rules hide paths of what was asked for, which are left out. */
  restricted?: boolean;
}

/** Parameters of `search.symbols`: definitions by name, or the outline of a file. */
export interface SymbolsParams {
  /** Where to look. */
  filters?: SearchFilters | null;
  /** Results wanted, 1 to 200 (an outline: up to 2,000). */
  k?: number;
  /** How names match; best of all three when omitted. */
  match?: NameMatch | null;
  /** The file of an outline, relative to the root or absolute. */
  path?: string | null;
  /** A name; with `path` and no `query` the outline of that file. */
  query?: string | null;
}

/** Notification `orchestrate.synced`: the backlog is sent. */
export interface SyncedNotification {
  /** The last record sent. */
  seq: number;
  /** The subscription. */
  subscriptionId: SubscriptionId;
}

export type Timestamp = string;

/** Tokens of one model call, or of several together. */
export interface TokenUsage {
  /** Tokens of the prompt, cached ones among them. */
  inputTokens: number;
  /** Tokens of the answer. */
  outputTokens: number;
  /** Tokens of the prompt that the provider had in its cache. */
  cachedTokens?: number;
}

/** A call of a tool by name. */
export interface ToolCall {
  /** Name in `tool.list`. */
  name: string;
  /** Arguments, by the tool's input schema. */
  arguments?: unknown;
}

/** Parameters of `tool.call`. */
export interface ToolCallParams {
  /** The tool. */
  name: string;
  /** The session it is recorded in. */
  sessionId: SessionId;
  /** Its arguments. */
  arguments?: unknown;
}

/** Why a tool call failed. */
export interface ToolFailure {
  /** For people. */
  message: string;
  /** Stable reason, as in the error table. */
  reason: string;
  /** Whether the same again may succeed. */
  retryable: boolean;
}

/** A registered tool. */
export interface ToolInfo {
  /** All there is to say. */
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: unknown;
  /** Its name. */
  name: string;
  /** True when it uses the network. */
  network: boolean;
  /** True when it changes nothing outside Cairn's own state. */
  readOnly: boolean;
  /** True when models are not offered it: another tool does the same for them. */
  hidden?: boolean;
  /** One line: what a model is told of it. */
  short?: string;
}

/** About a tool's output. */
export interface ToolMeta {
  /** Milliseconds. */
  millis: number;
  /** The type of `output`. */
  tag: string;
  /** True when it was cut at a limit. */
  truncated: boolean;
}

/** What came of a tool call in a turn. */
export interface ToolOutcome {
  /** The call. */
  callId: string;
  /** Milliseconds. */
  millis: number;
  /** The tool. */
  name: string;
  /** Where a larger one lies; read it with `trace.blob`. */
  blob?: BlobRef | null;
  /** Files it changed. */
  changes?: Array<FileChange>;
  /** What went wrong. */
  error?: ToolFailure | null;
  /** The output, when it is 64 KiB or less. */
  output?: unknown;
  /** What `output` is. */
  tag?: string;
  /** True when the tool cut its output at a limit. */
  truncated?: boolean;
}

/** A tool's result. */
export interface ToolResult {
  /** What `output` is and what was cut. */
  meta: ToolMeta;
  /** Whether it did what was asked. */
  ok: boolean;
  /** The output; `null` on failure. */
  output: unknown;
  /** What went wrong. */
  error?: ToolFailure | null;
}

/** One tool call of a turn. */
export interface ToolTrace {
  /** The call. */
  callId: string;
  /** Milliseconds, the waiting for approval among them. */
  millis: number;
  /** `ok`, or the reason of its failure. */
  outcome: string;
  /** The tool. */
  tool: string;
}

/** A tool the model asks for. */
export interface ToolUse {
  /** Its arguments. A string when the model's text was no JSON: the gate tries to repair it. */
  arguments: unknown;
  /** The provider's id for it, or one made here where it has none; unique within a session. */
  id: string;
  /** The tool's name. */
  name: string;
}

/** Under which names models are offered what tools do with files, the web and memory. */
export type ToolsMode =
  /** Each by its own name. */
  | "split"
  /** `fs`, `web` and `memory`, which take the operation as an argument, in place of what they stand for. */
  | "unified"
  /** Both ways. */
  | "both";

/** A file worth reading. */
export interface TopFile {
  /** The file, relative to the root. */
  path: string;
  /** Files that refer to its definitions. */
  referringFiles: number;
  /** Share of the centrality, 0 to 1. */
  score: number;
  /** Its most referred-to definitions. */
  symbols: Array<string>;
}

/** Parameters of `trace.export`. */
export interface TraceExportParams {
  /** The session's id (also taken as `sessionId`). */
  traceId: SessionId;
  /** Where to go on, from `nextCursor`. */
  cursor?: string | null;
}

/** One part of an export: JSONL text. The parts in order are the whole file. */
export interface TraceExportPart {
  /** Lines, each one JSON object: first a header, then the records, then what records refer to by its hash. */
  jsonl: string;
  /** Cursor of the next part; absent on the last. */
  nextCursor?: string | null;
}

/** Parameters of `trace.get`. */
export interface TraceGetParams {
  /** The session's id. */
  traceId: SessionId;
  /** Records after this one. */
  after?: number;
  /** Records wanted, at most 500. */
  limit?: number | null;
}

/** Parameters of `trace.import`. */
export interface TraceImportParams {
  /** A whole export, or a part of one that ends after a whole line: the first begins with the header, each further one with
   * the line after the last that is here. */
  jsonl: string;
}

/** Answer of `trace.get`. */
export interface TracePage {
  /** The records. */
  data: Array<Envelope>;
  /** Pass as `after` for the next page; absent on the last. */
  nextAfter?: number | null;
}

/** Settings of one turn in place of those that the configuration has. */
export interface TurnOverrides {
  /** Part of the context, 0 to 1, after which older turns are condensed, in place of `context.compaction_threshold`. */
  compactionThreshold?: number | null;
  /** Tokens of one answer, at least 1, in place of `llm.max_tokens`. */
  maxAnswerTokens?: number | null;
  /** Tokens of the context, at least 1, in place of `context.max_tokens`. */
  maxContextTokens?: number | null;
  /** Characters of a tool's output that the model gets, in place of `context.max_tool_output_chars`. */
  maxToolOutputChars?: number | null;
  /** Tokens of the repository map, in place of `context.repo_map_tokens`. */
  repoMapTokens?: number | null;
  /** Randomness of the answers, 0 to 2, in place of `llm.temperature`. */
  temperature?: number | null;
}

/** Parameters that name a turn at work; the session's current one when `turnId` is omitted. */
export interface TurnRef {
  /** The session. */
  sessionId: SessionId;
  /** The turn. */
  turnId?: string | null;
}

/** Parameters of `orchestrate.unsubscribe`. */
export interface UnsubscribeParams {
  /** The subscription. */
  subscriptionId: SubscriptionId;
}

/** Answer of `viewer.link`. */
export interface ViewerLink {
  /** Seconds within which it must be opened, once. */
  expiresInSeconds: number;
  /** Path of the page on the daemon's address, with the code behind `#`, which browsers do not
   * send. */
  path: string;
}

/** Notifications of the daemon, with their params. */
export interface Notifications {
  "orchestrate.event": EventNotification;
  "orchestrate.synced": SyncedNotification;
  "orchestrate.lagged": LaggedNotification;
  "orchestrate.gone": GoneNotification;
  "index.progress": IndexProgress;
  "git.progress": GitProgress;
  "search.partial": AnyPartial;
}
