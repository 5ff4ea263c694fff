// Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.

/** Versions of the protocol that this client supports, best first. */
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
  | "mcp_server_not_found"
  | "login_failed"
  | "bad_url"
  | "clone_failed"
  | "authentication_required"
  | "destination_exists"
  | "git_failed"
  | "revision_not_found"
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
  | "device_not_found"
  | "fleet_off"
  | "broker_unreachable"
  | "daemon_not_found"
  | "pool_run_not_found";

/** Parameters of the method `index.addRoot`. */
export interface AddRootParams {
  /** Absolute path of a folder. */
  path: string;
  /** Retry key, and name for `index.progress`. */
  requestId?: string | null;
}

/** Position at which a subscription starts. */
export type After =
  /** Records after this sequence number; 0 for all. */
  | number
  /** `"live"`: only records appended from now on. */
  | LiveWord;

/** A command. Tags are snake_case; the camelCase tags of older clients are accepted on input. */
export type AgentCmd =
  /** Lists the entries of a folder. */
  | {
    type: "fs_list_dir";
    /** Path, absolute or relative to `root`. */
    path: string;
    /** Levels below the folder, 1 to 16. */
    depth?: number;
    /** Root id or root path for a relative `path`. */
    root?: string | null;
  }
  /** Reads a bounded range of lines. */
  | {
    type: "content_get_span";
    /** Last line of the range, inclusive. */
    end: number;
    /** Path, absolute or relative to `root` (to the session's root in a command). */
    path: string;
    /** First line, starting at 1. */
    start: number;
    /** Hash that a search returned; the answer then reports whether the file has changed since. */
    contentHash?: string | null;
    /** Lines of context before and after, at most 50. */
    context?: number | null;
    /** Root id or root path for a relative `path`; may be omitted when only one root is declared. */
    root?: string | null;
  }
  /** Declares a clone as a root and indexes it; a root that is already declared stays unchanged. */
  | {
    type: "index_add_root";
    /** Absolute path of the folder. */
    path: string;
  }
  /** Updates the index of the session's root and waits until it is complete. */
  | {
    type: "index_build";
    /** Maximum number of indexes that run at once, including this one; while more are running, the
     * build waits for them first. Unlimited when omitted. */
    maxConcurrency?: number | null;
    /** Maximum time to wait, in seconds, up to 600; the answer then holds the state reached. */
    timeoutSeconds?: number | null;
  }
  /** Searches lines for a literal text or a regular expression. */
  | {
    type: "search_grep";
    /** Text, or a regular expression with `isRegex`; at most 4 KiB. */
    pattern: string;
    /** Lines of context around each match, at most 100. */
    contextLines?: number;
    /** Counts only: `items` stays empty and `counts` has the lines per file. */
    countOnly?: boolean;
    /** Cursor from the `nextCursor` of the previous page. */
    cursor?: string | null;
    /** Further filters; `kinds` does not apply. */
    filters?: SearchFilters | null;
    /** Flags of the search: `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline`
     * (`U`), `dot_all` (`s`), `invert` (`v`, lines that do not match). With `files` and
     * `countOnly` nothing is searched: `counts` has each file of the scope, with 0 lines. */
    flags?: Array<string>;
    /** True if `pattern` is a regular expression. */
    isRegex?: boolean;
    /** Maximum number of lines, 1 to 10,000. */
    k?: number;
    /** Restricts the search to files under this path. */
    pathPrefix?: string | null;
    /** Name for `search.partial` notifications, each with the next lines; none are sent when
     * omitted or with `countOnly`. */
    requestId?: string | null;
  }
  /** Searches by meaning (dense vectors). */
  | {
    type: "search_semantic";
    /** Words, an identifier, a path, a question or the text of an issue; at most 64 KiB. */
    query: string;
    /** Lines of context around the text, at most 50. */
    contextLines?: number;
    /** True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
     * of an issue) up to three times. */
    diversify?: boolean | null;
    /** Returns the kind of the query, and the contribution of each feature to the score of each
     * item. */
    explain?: boolean;
    /** Filters that restrict the scope. */
    filters?: SearchFilters | null;
    /** Fusion of the two lists of a hybrid search. */
    fusion?: Fusion | null;
    /** Returns the text of each item. */
    includeText?: boolean;
    /** Maximum number of results, 1 to 200. */
    k?: number;
    /** Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
     * `items` those results that it names, without a text of their own. */
    maxTokens?: number | null;
    /** Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only. */
    mmr?: number | null;
    /** Number of best results to skip, which continues an answer; `offset` + `k` is at most 200. */
    offset?: number;
    /** Name for `search.partial` notifications; none are sent when omitted. */
    requestId?: string | null;
  }
  /** Searches by words and by meaning, and fuses both lists. */
  | {
    type: "search_hybrid";
    /** Words, an identifier, a path, a question or the text of an issue; at most 64 KiB. */
    query: string;
    /** Lines of context around the text, at most 50. */
    contextLines?: number;
    /** True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
     * of an issue) up to three times. */
    diversify?: boolean | null;
    /** Returns the kind of the query, and the contribution of each feature to the score of each
     * item. */
    explain?: boolean;
    /** Filters that restrict the scope. */
    filters?: SearchFilters | null;
    /** Fusion of the two lists of a hybrid search. */
    fusion?: Fusion | null;
    /** Returns the text of each item. */
    includeText?: boolean;
    /** Maximum number of results, 1 to 200. */
    k?: number;
    /** Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
     * `items` those results that it names, without a text of their own. */
    maxTokens?: number | null;
    /** Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only. */
    mmr?: number | null;
    /** Number of best results to skip, which continues an answer; `offset` + `k` is at most 200. */
    offset?: number;
    /** Name for `search.partial` notifications; none are sent when omitted. */
    requestId?: string | null;
  }
  /** Clones a repository into the workspaces folder. */
  | {
    type: "git_clone";
    /** URL of the repository: `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; it
     * must not begin with `-`. */
    remoteURL: string;
    /** Branch to check out; the remote's default when omitted. */
    branch?: string | null;
    /** Name of the folder under the workspaces folder; derived from the URL when omitted. */
    dest?: string | null;
    /** Retry key, and name for `git.progress` notifications. */
    requestId?: string | null;
  }
  /** Returns branch, head and changed files of a repository. */
  | {
    type: "git_status";
    /** Path of a folder inside a declared root. */
    path: string;
  }
  /** Sends one request to a model. */
  | {
    type: "llm_call";
    /** Text of the request. */
    prompt: string;
    /** Registered type that the answer must match: `ExplorePlan` or `ExploreSummary`. */
    expectsType?: string | null;
    /** System text of the request. */
    instructions?: string | null;
    /** Limits and options of the model request. */
    policy?: LlmPolicy;
    /** Name of the provider; the session's own when omitted. */
    provider?: string | null;
    /** Emits a typed answer while it is written, as `structured_snapshot` events; requires
     * `expectsType`. */
    streamStructured?: boolean;
  }
  /** Calls any other registered tool by its name. */
  | {
    type: "tool_call";
    /** Name of the tool, as in `tool.list`. */
    name: string;
    /** Arguments that match the tool's input schema. */
    arguments?: unknown;
  };

/** An event. A run starts with `started` and ends with exactly one of `completed`, `stopped` or
 * `error` whose `op` is the run's own. */
export type AgentEvt =
  /** An operation or run started. */
  | {
    type: "started";
    /** Name of the operation: a tool's name, or `explore`. */
    op: string;
    /** Details in one line, for a person. */
    details?: string | null;
  }
  /** Progress of an operation. */
  | {
    type: "progress";
    /** Name of the operation. */
    op: string;
    /** Progress in percent, 0 to 100. */
    percent: number;
    /** Message in one line, for a person. */
    message?: string | null;
  }
  /** Result of a tool call. */
  | {
    type: "result";
    /** MIME type; always `application/json` for inline data. */
    mime: string;
    /** Name of the tool. */
    op: string;
    /** Type of `data`: `search_answer`, `grep_answer`, `span`, `dir_listing`, … */
    tag: string;
    /** Reference to a larger result; read it with `trace.blob`. */
    blob?: BlobRef | null;
    /** The result itself, when it is at most 64 KiB. */
    data?: unknown;
    /** True when the tool cut its output at a limit. */
    truncated?: boolean;
  }
  /** The complete plan after a revision. */
  | {
    type: "plan_snapshot";
    /** The plan after this revision. */
    plan: ExplorePlan;
    /** Revision number: 1, 2, 3, … */
    revision: number;
  }
  /** Partial typed answer of `llm_call`. Each snapshot extends the previous one, and the last is
   * the complete answer. Live only: it has no sequence number, is not logged and is never
   * replayed; the result follows. */
  | {
    type: "structured_snapshot";
    /** Type that the answer will have. */
    expectsType: string;
    /** Name of the operation, always `llm_call`. */
    op: string;
    /** Revision number: 1, 2, 3, … */
    revision: number;
    /** The value so far; fields that are not yet written are missing. */
    value: unknown;
  }
  /** A problem that did not stop the operation. */
  | {
    type: "warning";
    /** Text of the warning. */
    message: string;
    /** Name of the operation concerned. */
    op: string;
  }
  /** The daemon stopped during the operation; the session can be resumed. */
  | {
    type: "interrupted";
    /** Name of the interrupted operation. */
    op: string;
  }
  /** Interrupted work was resumed. */
  | {
    type: "resumed";
    /** Name of the resumed operation. */
    op: string;
  }
  /** An explore finished successfully. */
  | {
    type: "completed";
    /** Summary of the results. */
    summary: ExploreSummary;
  }
  /** The run was aborted. */
  | {
    type: "stopped";
    /** Name of the stopped operation. */
    op: string;
    /** Client or reason that stopped it. */
    reason: string;
  }
  /** An operation failed; terminal when `op` is the run's own. */
  | {
    type: "error";
    /** Error message for a person. */
    message: string;
    /** Name of the failed operation. */
    op: string;
    /** True if the same request may succeed later. */
    retryable: boolean;
    /** Stable reason, as in the error table. */
    reason?: string | null;
  }
  /** A turn was accepted; it starts at once or waits in the queue. */
  | {
    type: "turn_accepted";
    /** Input of the turn, with the context first. */
    input: Array<Part>;
    /** Id of the turn's run. */
    runId: RunId;
    /** Id of the turn, chosen by the client. */
    turnId: string;
    /** Metadata that the client sent with the turn. */
    metadata?: Record<string, string>;
    /** Permissions and limits of the turn. */
    policy?: ExecutionPolicy | null;
  }
  /** A turn started to run. */
  | {
    type: "run_started";
    /** Model that the turn uses. */
    model: ModelChoice;
    /** Id of the turn's run. */
    runId: RunId;
    /** Maximum characters of a tool's output that the model receives. */
    shownChars: number;
    /** Id of the turn, chosen by the client. */
    turnId: string;
  }
  /** Text of a model as it arrives. Live only: it has no sequence number, is not logged and is
   * never replayed; [`AgentEvt::Text`] with the same text follows. */
  | {
    type: "token_delta";
    /** Bytes of this answer's text (or reasoning) before this piece. */
    offset: number;
    /** Id of the run. */
    runId: RunId;
    /** The piece of text. */
    text: string;
    /** True for the model's reasoning. */
    reasoning?: boolean;
  }
  /** Text of a model in larger pieces: at most every 250 ms, and at the end of an answer. */
  | {
    type: "text";
    /** Bytes of this answer's text (or reasoning) before this piece. */
    offset: number;
    /** Id of the run. */
    runId: RunId;
    /** The piece of text. */
    text: string;
    /** True for the model's reasoning. */
    reasoning?: boolean;
  }
  /** Progress of the model in reading its prompt. Live only, like [`AgentEvt::TokenDelta`]. */
  | {
    type: "prompt_progress";
    /** Number of prompt tokens read. */
    processed: number;
    /** Id of the run. */
    runId: RunId;
    /** Number of tokens of the prompt. */
    total: number;
    /** Context size of the model in tokens, if known. */
    contextTokens?: number | null;
  }
  /** The model's answer is complete; its text is in the preceding `text` records. */
  | {
    type: "model_answer";
    /** Milliseconds until the first piece arrived. */
    firstMillis: number;
    /** Milliseconds until the answer was complete. */
    millis: number;
    /** Model that gave the answer. */
    model: ModelChoice;
    /** SHA-256 (hex) of the request: system text, messages and tools. */
    requestDigest: string;
    /** Id of the run. */
    runId: RunId;
    /** Tokens per second during the answer; 0 when it was too short to measure. */
    tokensPerSecond: number;
    /** Token usage by the provider's count, or by the daemon's if the provider reports none. */
    usage: TokenUsage;
    /** Tool calls that the model requests. */
    calls?: Array<ToolUse>;
    /** Context size of the model in tokens, if known. */
    contextTokens?: number | null;
    /** Reason why the model stopped; absent when the answer was cut off. */
    finish?: FinishReason | null;
    /** Sequence number of the latest `steered` record included in the request; 0 if none. */
    heardSeq?: number;
    /** Reference to the raw bytes of the answer, for replay. */
    raw?: BlobRef | null;
    /** Reasoning that the provider requires back with the conversation. */
    reasoning?: ProviderReasoning | null;
  }
  /** The model requested a tool call, which now passes the gate. */
  | {
    type: "tool_call";
    /** Arguments of the call, repaired where necessary. */
    arguments: unknown;
    /** Id of the call, as in [`ModelAnswer::calls`]. */
    callId: string;
    /** Name of the tool. */
    name: string;
  }
  /** Outcome of a tool call. */
  | {
    type: "tool_result";
    /** Id of the call. */
    callId: string;
    /** Duration of the call in milliseconds. */
    millis: number;
    /** Name of the tool. */
    name: string;
    /** Reference to a larger output; read it with `trace.blob`. */
    blob?: BlobRef | null;
    /** Files that the call changed. */
    changes?: Array<FileChange>;
    /** The failure, if the call failed. */
    error?: ToolFailure | null;
    /** The output, when it is at most 64 KiB. */
    output?: unknown;
    /** Type of the `output`. */
    tag?: string;
    /** True when the tool cut its output at a limit. */
    truncated?: boolean;
  }
  /** Output of a command that a tool call runs, at most ten times a second. Live only, like
   * [`AgentEvt::TokenDelta`]; the call's result follows. */
  | {
    type: "command_output";
    /** Id of the call. */
    callId: string;
    /** The output since the last event, both streams in the order of arrival. */
    text: string;
    /** Bytes before `text` that were left out, because the command writes faster than events
     * are sent. */
    dropped?: number;
  }
  /** A command was started in the background. */
  | {
    type: "background_started";
    /** Command line as it was given. */
    command: string;
    /** Id of the command. */
    id: string;
  }
  /** A background command ended; the model is notified before its next answer. */
  | {
    type: "background_finished";
    /** Command line as it was given. */
    command: string;
    /** Id of the command. */
    id: string;
    /** The way it ended. */
    state: BackgroundState;
    /** Exit code; absent if it is not known. */
    exitCode?: number | null;
    /** The last lines of its output. */
    tail?: string;
  }
  /** A hook ran at an event of the session. */
  | {
    type: "hook_finished";
    /** Its command line, at most 1,000 characters. */
    command: string;
    /** The event, as hooks name it. */
    event: string;
    /** Duration of its run in milliseconds. */
    millis: number;
    /** True if it ran in the sandbox. */
    sandboxed: boolean;
    /** The file or key that names the hook. */
    source: string;
    /** Reason why it did not run or was stopped. */
    error?: string | null;
    /** Exit code; absent if it has none. */
    exitCode?: number | null;
  }
  /** A tool call is pending until a client approves or denies it. */
  | {
    type: "approval_required";
    /** The approval to answer. */
    approval: Approval;
  }
  /** An approval was answered. */
  | {
    type: "approval_resolved";
    /** Id of the approval. */
    approvalId: ApprovalId;
    /** The answer and its author. */
    resolution: Resolution;
  }
  /** A client sent text to the model during its turn. */
  | {
    type: "steered";
    /** Id of the run. */
    runId: RunId;
    /** Text that the client sent. */
    text: string;
  }
  /** The conversation so far is replaced by a summary in the model's context. */
  | {
    type: "compacted";
    /** Number of messages at the end of the conversation that are retained unchanged. */
    kept: number;
    /** Summary that the model receives instead. */
    summary: string;
    /** Tokens after compaction, as counted by the daemon. */
    tokensAfter: number;
    /** Tokens before compaction, as counted by the daemon. */
    tokensBefore: number;
    /** Sequence number of the latest `steered` record included in the conversation here; 0 if
     * none. */
    heardSeq?: number;
  }
  /** The conversation was cleared; the following turns start an empty one. */
  | {
    type: "cleared";
  }
  /** The session uses another model from this record on. */
  | {
    type: "provider_changed";
    /** The model now in use. */
    model: ModelChoice;
  }
  /** The agent updated its list of tasks. */
  | {
    type: "plan_update";
    /** Items of the list, in order. */
    items: Array<PlanItem>;
  }
  /** Changes of a turn to files, as one unified diff. */
  | {
    type: "turn_diff";
    /** The diff, cut at 256 KiB with a note in its text. */
    diff: string;
    /** Paths that were changed. */
    paths: Array<string>;
    /** Id of the turn. */
    turnId: string;
  }
  /** The changes of a turn were committed, as `git.autoCommit` configures. */
  | {
    type: "git_commit";
    /** Hash of the commit, 40 hex digits. */
    commit: string;
    /** Message of the commit. */
    message: string;
    /** Paths in the commit, relative to the root. */
    paths: Array<string>;
    /** Id of the turn. */
    turnId: string;
  }
  /** A turn finished; the last record of its run. */
  | {
    type: "run_completed";
    /** Result of the run. */
    result: RunResult;
  };

/** An operation of a plan. Tags are snake_case; camelCase tags are accepted on input. */
export type AgentOp =
  /** Updates the index of a root. */
  | {
    type: "index_repo";
    /** Path of the root. */
    path: string;
  }
  /** Lists the entries of a folder. */
  | {
    type: "list_dir";
    /** Levels below the folder. */
    depth: number;
    /** Path of the folder, relative to the root. */
    path: string;
  }
  /** Searches lines of text. */
  | {
    type: "grep";
    /** Regular expression to search for. */
    pattern: string;
    /** Restricts the search to files under this path. */
    pathPrefix?: string | null;
  }
  /** Searches by meaning (dense vectors). */
  | {
    type: "semantic";
    /** Maximum number of results. */
    k: number;
    /** Text of the query. */
    query: string;
  }
  /** Searches by words and by meaning. */
  | {
    type: "hybrid";
    /** Maximum number of results. */
    k: number;
    /** Text of the query. */
    query: string;
  }
  /** Reads lines of a file. */
  | {
    type: "read_span";
    /** Last line of the range, inclusive. */
    endLine: number;
    /** Path of the file, relative to the root. */
    path: string;
    /** First line, starting at 1. */
    startLine: number;
    /** Lines of context before and after. */
    context?: number | null;
  }
  /** Reads the beginnings of files. */
  | {
    type: "summarize";
    /** Paths of the files. */
    paths: Array<string>;
  }
  /** Calls any other registered tool. */
  | {
    type: "tool";
    /** Arguments of the tool. */
    arguments: unknown;
    /** Name of the tool, as in `tool.list`. */
    name: string;
  };

/** Parameters of the notification `search.partial`. */
export type AnyPartial =
  /** Results of a search for passages. */
  | SearchPartial
  /** Results of a search for lines. */
  | GrepPartial
  /** Lines of a streaming search. */
  | LinesPartial;

/** A tool call that is pending until a client approves or denies it. */
export interface Approval {
  /** Id of the approval. */
  approvalId: ApprovalId;
  /** Complete arguments of the call; empty if the approval is shortened. */
  arguments: unknown;
  /** Time of the request. */
  createdAt: Timestamp;
  /** Time after which an unanswered approval counts as denied. */
  expiresAt: Timestamp;
  /** Rules that `session`, `always` and `everywhere` would write; one rule may have several lines. Empty when
   * no rule can be written for such a call, which can then be approved only once. */
  grants: Array<string>;
  /** Effects of the call, shown to the approver. */
  preview: Preview;
  /** The rule that requires the approval. */
  rule: string;
  /** Id of the session that requests the call. */
  sessionId: SessionId;
  /** Name of the tool. */
  tool: string;
  /** Values that the user enters, for a question of an MCP server; such an approval is answered
   * with `once` and the values, or denied. */
  form?: Form | null;
  /** Lists of wider rules, of which an answer may name one instead. */
  patterns?: Array<Array<string>>;
  /** Folder of the project in which `always` would allow such calls: the root of the session, or
   * the repository of which the root is a work tree. Absent for a session without a root, where
   * `always` is refused. */
  project?: string | null;
  /** The answer; absent while the approval is pending. */
  resolution?: Resolution | null;
  /** Id of the run that requests the call, if any. */
  runId?: RunId | null;
  /** True if the arguments and long texts of the preview are left out of a list, because the
   * approvals before it have filled it. `approval.get` has the complete approval. */
  shortened?: boolean;
}

/** An answer to an approval. */
export type ApprovalDecision =
  /** Approves this call only. */
  | "once"
  /** Approves this call and similar ones until the session ends. */
  | "session"
  /** Approves this call and similar ones from now on in the approval's project: writes a rule that
   * can be listed and revoked. */
  | "always"
  /** Approves this call and similar ones from now on in every project: writes a rule that can be
   * listed and revoked. */
  | "everywhere"
  /** Denies the pending call. */
  | "deny";

export type ApprovalId = string;

/** Parameters of the method `approval.list`. */
export interface ApprovalListParams {
  /** Includes answered approvals, newest first; at most 500 in all. */
  resolved?: boolean;
  /** Lists only the approvals of this session. */
  sessionId?: SessionId | null;
}

/** Notification for clients that answer approvals: one of a session that they do not follow is
 * pending, or was answered. A client that falls behind misses some; `approval.list` has all. */
export interface ApprovalNotice {
  /** Id of the approval. */
  approvalId: ApprovalId;
  /** Time after which it counts as denied. */
  expiresAt: Timestamp;
  /** Id of the session that requests the call. */
  sessionId: SessionId;
  /** Effect of the call in one line. */
  summary: string;
  /** Name of the tool. */
  tool: string;
  /** The answer; absent while the approval is pending. */
  decision?: ApprovalDecision | null;
}

/** Reference to an approval, as parameters of a method. */
export interface ApprovalRef {
  /** Id of the approval. */
  approvalId: ApprovalId;
}

/** Parameters of the method `approval.resolve`. */
export interface ApprovalResolveParams {
  /** Id of the approval. */
  approvalId: ApprovalId;
  /** The decision to record. */
  decision: ApprovalDecision;
  /** One of the approval's `patterns`, granted instead of its `grants`; valid with `session`,
   * `always` or `everywhere`. */
  pattern?: Array<string> | null;
  /** Reason for the decision, at most 2,000 characters. */
  reason?: string | null;
  /** Values of the approval's `form` by the names of its fields; valid with `once`. They reach
   * the server and are not recorded. */
  values?: Record<string, unknown>;
}

/** Parameters of the method `session.archive`. */
export interface ArchiveParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** True (the default) archives the session, false restores it. */
  archived?: boolean;
}

/** One entry of the audit, written before the action and completed after it. */
export interface AuditEntry {
  /** SHA-256 (hex) of the arguments as JSON. */
  argsDigest: string;
  /** Decision of the gate, `allow` or `deny`. */
  decision: string;
  /** Position in the audit. */
  id: number;
  /** The rule that led to the decision. */
  rule: string;
  /** Id of the session; all digits are 0 for a direct call outside any session. */
  sessionId: SessionId;
  /** Name of the tool, or the method of a direct call. */
  tool: string;
  /** True if the output was cut. */
  truncated: boolean;
  /** Time of the request. */
  ts: Timestamp;
  /** Command line and folder of a shell call, or the code that a call runs, with secrets
   * removed; else the paths of the call as it names them. */
  command?: string | null;
  /** Exit code of the command, if any. */
  exitCode?: number | null;
  /** Duration in milliseconds; absent when the call was denied or interrupted. */
  millis?: number | null;
  /** `ok`, or the reason of the failure; absent when the call was denied or interrupted. */
  outcome?: string | null;
}

/** Parameters of the method `audit.query`. */
export interface AuditQueryParams {
  /** Id after which entries are returned. */
  after?: number;
  /** Maximum number of entries, at most 500. */
  limit?: number | null;
  /** Returns only entries of this session. */
  sessionId?: SessionId | null;
  /** Returns only entries of this tool. */
  tool?: string | null;
}

/** A background command of a session. */
export interface BackgroundCommand {
  /** Bytes of output so far. */
  bytes: number;
  /** Command line as it was given. */
  command: string;
  /** Id of the command, unique in its session. */
  id: string;
  /** Time of the start. */
  startedAt: Timestamp;
  /** State of the command. */
  state: BackgroundState;
  /** Exit code, once it has ended: 128 plus the number of the signal that killed it. */
  exitCode?: number | null;
  /** Time of the end. */
  finishedAt?: Timestamp | null;
}

/** New output of a background command. */
export interface BackgroundOutput {
  /** The command with its state. */
  command: BackgroundCommand;
  /** Position for the next call. */
  cursor: number;
  /** Bytes that are no longer stored, between the requested position and `output`. */
  dropped: number;
  /** True if more output is already available at `cursor`. */
  more: boolean;
  /** Output from the position on, both streams in the order of arrival. */
  output: string;
}

/** Parameters of the method `background.output`. */
export interface BackgroundOutputParams {
  /** Id of the command. */
  id: string;
  /** Id of the session. */
  sessionId: SessionId;
  /** Position to read from, as returned by an earlier call; 0 by default. */
  cursor?: number;
}

/** A reference to a background command. */
export interface BackgroundRef {
  /** Id of the command. */
  id: string;
  /** Id of the session. */
  sessionId: SessionId;
}

/** State of a background command. */
export type BackgroundState =
  /** The command is running. */
  | "running"
  /** The command exited by itself. */
  | "exited"
  /** A client or the model stopped the command. */
  | "stopped"
  /** The command reached the limit of its lifetime. */
  | "timed_out"
  /** The command was stopped when its session was deleted or archived. */
  | "session_closed"
  /** The command ended with the daemon. */
  | "daemon_stopped";

/** Parameters of the method `trace.blob`. */
export interface BlobParams {
  /** SHA-256 of the blob, in hex. */
  sha256: string;
  /** Maximum number of bytes, at most 256 KiB. */
  limit?: number | null;
  /** Offset of the first byte. */
  offset?: number;
}

/** Part of a blob. Blobs are UTF-8 JSON, and parts end between characters. */
export interface BlobPart {
  /** Size of the complete blob in bytes. */
  size: number;
  /** Text of this part. */
  text: string;
  /** Offset of the next part; absent on the last. */
  nextOffset?: number | null;
}

/** Reference to a result stored by the hash of its content. */
export interface BlobRef {
  /** SHA-256 of the content, in hex. */
  sha256: string;
  /** Size of the content in bytes. */
  size: number;
}

/** Answer of the method `session.board`. */
export interface Board {
  /** Sessions that wait for an answer, then running ones, then the latest others. */
  rows: Array<BoardRow>;
}

/** Parameters of the method `session.board`. */
export interface BoardParams {
  /** Maximum number of sessions, 1 to 100; 20 when omitted. */
  limit?: number | null;
}

/** A session of the board. */
export interface BoardRow {
  /** Number of turns in the queue. */
  queued: number;
  /** State of the session itself. */
  session: Session;
  /** Requests that wait for an answer. */
  waiting: Array<Approval>;
  /** Branch of the work tree in which it works; absent outside of created work trees. */
  branch?: string | null;
  /** Cost of all its answers in millionths of a dollar; absent if no price is known. */
  costMicroUsd?: number | null;
  /** Session of the agent that started it as a subagent. */
  parent?: SessionId | null;
  /** First line of the input of its latest turn. */
  request?: string | null;
  /** Its unattended run, if it has one. */
  unattended?: UnattendedRun | null;
}

/** A path that a command acts by, as it was when its approval was requested. */
export interface BoundPath {
  /** The path as the command has it, relative to the root. */
  path: string;
  /** Its part in the command. */
  role: BoundRole;
  /** Its content or identity, to compare; empty for a file that is written. */
  state: string;
  /** The path to which it leads. */
  target: string;
}

/** The part that a path plays in a command. */
export type BoundRole =
  /** The folder in which the command starts. */
  | "folder"
  /** A program or script that runs. */
  | "program"
  /** A file that a redirection writes. */
  | "output";

/** Definition that calls another, or is called by it. */
export interface CallItem {
  /** Certainty that the calls mean the definition: the best of theirs. */
  confidence: ReferenceConfidence;
  /** Kind of the definition, as in `search.symbols`; `module` for a file. */
  kind: string;
  /** First line of the definition, starting at 1. */
  line: number;
  /** Lines of the first 20 calls, in the file of the caller. */
  lines: Array<number>;
  /** Name of the definition; that of the file for calls outside of any definition. */
  name: string;
  /** Path relative to the root. */
  path: string;
  /** Number of calls between it and the requested definition, 1 for a direct one. */
  steps: number;
  /** Name of the enclosing definition, if any. */
  container?: string | null;
  /** Index of the item that it calls, or is called by; none for the requested definition. */
  via?: number | null;
}

/** Answer of the methods `search.callers` and `search.callees`. */
export interface CallsAnswer {
  /** True if imports and symbols are currently indexed for the root. */
  complete: boolean;
  /** Definition whose callers or callees these are. */
  definition: SymbolItem;
  /** Definitions by their number of steps; callers then by path and line, callees in the order of
   * their calls. */
  items: Array<CallItem>;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** True if there are more than `k`, or more files or definitions than were read. */
  truncated: boolean;
  /** Other definitions of the name, which `path` and `line` can select. */
  others?: Array<SymbolItem>;
  /** Number of calls in the bodies that were read which lead to no definition of the root, or to
   * more than two of the same name; 0 for callers. */
  unresolved?: number;
}

/** Parameters of the methods `search.callers` and `search.callees`. */
export interface CallsParams {
  /** Steps of calls that are followed, 1 to 5. */
  depth?: number;
  /** Maximum number of definitions, 1 to 2,000. */
  k?: number;
  /** Line of the definition in `path`, starting at 1; the innermost definition around it is used. */
  line?: number | null;
  /** File with the definition, relative to the root or absolute. */
  path?: string | null;
  /** Root to search: its id or path; needed when several roots are declared. */
  root?: string | null;
  /** Name of the definition, as `name` or `Type.name`; with `path` the one in that file. */
  symbol?: string | null;
}

/** Commit since a revision. */
export interface ChangeCommit {
  /** Full hash of the commit. */
  id: string;
  /** First line of the message. */
  subject: string;
}

/** Changed file that other files import. */
export interface ChangeImpact {
  /** Number of files that import it directly. */
  direct: number;
  /** Path of the changed file, relative to the root. */
  path: string;
  /** Number of files that import it directly or by up to two others. */
  total: number;
  /** Names of the components of all these files, most files first. */
  components?: Array<string>;
  /** Paths of some files that import it, nearest first. */
  dependents?: Array<string>;
  /** True if there are more files than that. */
  truncated?: boolean;
}

/** Change that deserves a closer look. */
export interface ChangeRisk {
  /** Kind of risk: `entrypoint`, `manifest`, `public_root`, `central`, `deleted`, `renamed`,
   * `conflict` or `workflow`. */
  kind: string;
  /** Path of the changed file, relative to the root. */
  path: string;
  /** Reason, as `entrypoint: command 'tidepool'`. */
  reason: string;
}

/** A file whose content differs from the recorded one. */
export interface ChangedFile {
  /** Path relative to the root. */
  path: string;
  /** `added`, `modified` or `deleted` since the recording. */
  status: string;
}

/** Line that bears out a statement. */
export interface Citation {
  /** Line, starting at 1. */
  line: number;
  /** Path relative to the root. */
  path: string;
}

/** Capabilities of a client. */
export interface ClientCapabilities {
  /** True if the client answers approvals. */
  approvals?: boolean;
}

/** Name and version of a client. */
export interface ClientInfo {
  /** Name of the client, at most 64 characters. */
  name: string;
  /** Version of the client. */
  version: string;
}

/** Parameters of the method `git.clone`. */
export interface CloneParams {
  /** URL of the repository: `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; it
   * must not begin with `-`. */
  remoteURL: string;
  /** Branch to check out; the remote's default when omitted. */
  branch?: string | null;
  /** Name of the folder under the workspaces folder; derived from the URL when omitted. */
  dest?: string | null;
  /** Retry key, and name for `git.progress` notifications. */
  requestId?: string | null;
}

/** Receipt of `git.clone`; the result arrives as `git.progress` with `done`. */
export interface CloneReceipt {
  /** Path of the future clone. */
  path: string;
  /** Id of the request. */
  requestId: string;
}

/** Result of a finished clone. */
export interface CloneResult {
  /** Hash of the checked-out commit. */
  head: string;
  /** Absolute path of the checkout. */
  path: string;
  /** True when an earlier clone of the same remote existed; it is updated. */
  reused: boolean;
  /** Name of the checked-out branch. */
  branch?: string | null;
  /** Reason why an earlier clone was not updated but returned unchanged; git's message when the
   * network fails. */
  stale?: string | null;
}

/** Parameters of the method `storage.collect`. */
export interface CollectParams {
  /** True to change nothing and return what would be removed. */
  dryRun?: boolean;
}

/** Result of the method `storage.collect`. */
export interface Collected {
  /** Bytes of the log's files after. */
  bytesAfter: number;
  /** Bytes of the log's files before. */
  bytesBefore: number;
  /** Number of sessions whose records were packed. */
  packed: number;
  /** The removed sessions, least recently used first. */
  removed: Array<SessionUsage>;
}

/** A command as a client sends it in `orchestrate.command`; only `payload` is required. */
export interface CommandEnvelope {
  /** The command to execute. */
  payload: AgentCmd;
  /** Id chosen by the client, returned as `parentId` of the resulting events; a new one when
   * omitted. */
  id?: string | null;
  /** Always `Cmd` when present. */
  kind?: string | null;
  /** Id of the entry that led to this command. */
  parentId?: string | null;
  /** Time by the client's clock; the log uses the daemon's. */
  ts?: Timestamp | null;
}

/** Parameters of the method `orchestrate.command`. */
export interface CommandParams {
  /** The command in its envelope. */
  cmd: CommandEnvelope;
  /** Id of the session. */
  sessionId: SessionId;
  /** Retry key of the request. */
  requestId?: string | null;
}

/** Receipt of `orchestrate.command`; the outcome arrives as events with this `commandId` as
 * `parentId`. */
export interface CommandReceipt {
  /** Id of the command. */
  commandId: string;
  /** Sequence number of the command's durable record. */
  seq: number;
  /** Id of the session. */
  sessionId: SessionId;
}

/** A part of a system. */
export interface Component {
  /** Kind: `program`, `library`, `module`, or for secondary folders `tests`, `examples`,
   * `documents`, `vendored`, `generated` or `tools`. */
  kind: string;
  /** Name for people: that of its manifest, else of its folder or file. */
  name: string;
  /** Path of its folder, or of the file that represents it, relative to the root. */
  path: string;
  /** Role in a few words. */
  role: string;
  /** Paths of the components that its files import. */
  dependsOn?: Array<string>;
  /** Source of the role, as `path:line`. */
  evidence?: string | null;
  /** Number of its files. */
  files?: number;
  /** Paths of its files that most others depend on. */
  keyFiles?: Array<string>;
  /** Lines of its files. */
  lines?: number;
}

/** Changes of a component. */
export interface ComponentChanges {
  /** Number of added files. */
  added: number;
  /** Number of added lines. */
  addedLines: number;
  /** Number of commits that changed its files; merges are not counted. */
  commits: number;
  /** Number of deleted files. */
  deleted: number;
  /** Number of deleted lines. */
  deletedLines: number;
  /** Number of modified files. */
  modified: number;
  /** Name of the component; for files outside of all components that of their folder, or `other
   * files`. */
  name: string;
  /** Path of the component or folder; empty for other files at the top. */
  path: string;
  /** Number of renamed files. */
  renamed: number;
}

/** Answer of the method `session.compress`. */
export interface Compressed {
  /** Tokens after; unchanged when there was nothing to condense. */
  tokensAfter: number;
  /** Tokens of the conversation before, as counted by the daemon. */
  tokensBefore: number;
}

/** Name that a newcomer meets in many files. */
export interface Concept {
  /** Number of other files that use it. */
  files: number;
  /** Kind of the definition, as in `search.symbols`. */
  kind: string;
  /** Line of the definition, starting at 1. */
  line: number;
  /** Name of the definition. */
  name: string;
  /** Path of its file, relative to the root. */
  path: string;
}

/** Answer of the method `config.get`. */
export interface ConfigAnswer {
  /** Values by dotted key; secrets read `"(set)"`. */
  values: Record<string, ConfigValue>;
  /** Warnings about settings that are ignored, with the reason. */
  warnings: Array<string>;
}

/** The reason why a configuration folder applies. */
export type ConfigFolder =
  /** The variable `CAIRN_CONFIG` names it. */
  | "named"
  /** It is `<CAIRN_HOME>/config`, which exists. */
  | "of_data_root"
  /** It is the user's own configuration folder. */
  | "of_user";

/** Parameters of the method `config.get`. */
export interface ConfigGetParams {
  /** Id or path of the root whose configuration is returned; the daemon's own when absent. */
  root?: string | null;
}

/** Answer of the method `config.reload`. */
export interface ConfigReloaded {
  /** Keys whose new value takes effect only after a restart. */
  pending: Array<string>;
  /** Warnings about settings that are ignored, with the reason. */
  warnings: Array<string>;
}

/** Value and source of a setting. */
export interface ConfigValue {
  /** The file, variable or flag that sets it; `default` for the built-in value. */
  source: string;
  /** The value that is in force. */
  value: unknown;
  /** Value in the files, when it takes effect only after the daemon restarts. */
  pending?: unknown;
}

/** An item of a turn's context. */
export type ContextItem =
  /** A text that the client adds. */
  | {
    type: "text";
    /** The text, as the model receives it. */
    text: string;
  }
  /** A file that the user refers to; the model reads it when it needs it. */
  | {
    type: "file";
    /** Path of the file. */
    path: string;
  }
  /** A part of a file that the user selected. */
  | {
    type: "selection";
    /** Last line of the selection. */
    endLine: number;
    /** Path of the file. */
    path: string;
    /** First line, from 1. */
    startLine: number;
    /** The selected text itself. */
    text: string;
  }
  /** A message of a compiler or a linter. */
  | {
    type: "diagnostic";
    /** Line of the message, from 1. */
    line: number;
    /** Text of the message. */
    message: string;
    /** Path of the file. */
    path: string;
    /** Severity, such as `error`. */
    severity: string;
  };

/** Rule of a project for its contributors. */
export interface Convention {
  /** Path of the file that states it, as `path` or `path:line`. */
  source: string;
  /** Statement of the rule, as `formatted with rustfmt`. */
  text: string;
}

/** List that a partial comes from. */
export type Corpus =
  /** Results of the lexical search. */
  | "lex"
  /** Results of the semantic search. */
  | "sem"
  /** Both lists after fusion. */
  | "fused";

/** Answer of the method `daemon.stats`. */
export interface DaemonStats {
  /** Part of the resident memory that is not backed by files, in bytes. */
  anonymousBytes: number;
  /** Calls that returned an error. */
  callErrors: number;
  /** Calls received since the start. */
  calls: number;
  /** Number of open connections. */
  connections: number;
  /** Number of chunks in all indexes. */
  indexChunks: number;
  /** Number of files in all indexes. */
  indexFiles: number;
  /** Files waiting to be indexed. */
  indexPending: number;
  /** Size of the log's database, in bytes. */
  logBytes: number;
  /** Records waiting for their commit. */
  logQueue: number;
  /** Records appended since the start. */
  recordsAppended: number;
  /** Resident memory in bytes; 0 where it cannot be read. */
  residentBytes: number;
  /** Number of active runs. */
  running: number;
  /** Number of sessions in the log. */
  sessions: number;
  /** Number of active subscriptions. */
  subscriptions: number;
  /** Seconds since the daemon started. */
  uptimeSeconds: number;
}

/** Answer of the method `daemon.status`. */
export interface DaemonStatus {
  /** Addresses that the daemon listens on. */
  addresses: Array<string>;
  /** Path of the data root. */
  dataRoot: string;
  /** Declared roots and the state of their indexes. */
  index: IndexStatus;
  /** Id of this start of the daemon. */
  instanceId: InstanceId;
  /** Start mode: `on_demand`, `service` or `foreground`. */
  mode: string;
  /** Process id of the daemon. */
  pid: number;
  /** Number of sessions with an active run. */
  runningSessions: number;
  /** Start time of the daemon. */
  startedAt: Timestamp;
  /** Version of the daemon's binary. */
  version: string;
  /** Path of the user's configuration folder; absent when there is none. */
  configDir?: string | null;
  /** The reason why this configuration folder applies. */
  configOrigin?: ConfigFolder | null;
  /** Seconds without a client after which the daemon exits; absent when it never exits by
   * itself. */
  idleExitSeconds?: number | null;
  /** Path of the log file; absent when the daemon logs to its terminal or the service manager. */
  logFile?: string | null;
}

/** A device that is paired with the daemon. */
export interface Device {
  /** Id of the device at this daemon. */
  id: DeviceId;
  /** Hash of the device's public key; of its secret for a browser. */
  key: string;
  /** Name of the device. */
  name: string;
  /** Time of the pairing. */
  pairedAt: Timestamp;
  /** Rights of the device. */
  rights: Array<Right>;
  /** True for a browser, which proves itself by a secret of its own instead of a key. */
  browser?: boolean;
  /** Number of open connections. */
  connections?: number;
}

export type DeviceId = string;

/** Parameters of the method `client.revoke`. */
export interface DeviceRef {
  /** Id of the device. */
  id: DeviceId;
}

/** One entry of a listing. */
export interface DirEntry {
  /** Kind of the entry. */
  kind: EntryKind;
  /** Path relative to the root. */
  path: string;
  /** Size in bytes, for files. */
  size?: number | null;
}

/** Bounded listing of a folder. */
export interface DirListing {
  /** Entries sorted by path, without ignored files. */
  entries: Array<DirEntry>;
  /** The folder, relative to its root (`.` for the root itself). */
  path: string;
  /** True when the listing was cut at 5,000 entries. */
  truncated: boolean;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
}

/** Parts of the daemon's data, with their sizes. */
export interface DiskUsage {
  /** Sessions that the limits of `retention` remove. */
  expired: ExpiredUsage;
  /** The indexes, largest first. */
  indexes: Array<IndexUsage>;
  /** The log of sessions. */
  log: LogUsage;
  /** The frozen indexes that several roots share, largest first; not part of `indexes`. */
  sharedIndexes?: Array<SharedIndexUsage>;
}

/** An object without fields. */
export interface Empty {}

/** Kind of a listing entry. */
export type EntryKind =
  /** A regular file on disk. */
  | "file"
  /** A folder on the disk. */
  | "dir"
  /** A symbolic link, not followed. */
  | "symlink"
  /** A socket, device or pipe. */
  | "other";

/** A location where execution starts. */
export interface Entrypoint {
  /** Kind of entrypoint: `manifest`, `main`, `server`, `script`, `library` or `container`. */
  kind: string;
  /** Path of the file, relative to the root. */
  path: string;
  /** Reason why it is an entrypoint. */
  reason: string;
  /** Line of the entrypoint, if known. */
  line?: number | null;
}

/** One numbered entry of a session's log. */
export type Envelope =
  /** A command that was received. */
  | {
    kind: "Cmd";
    /** Id of this entry (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … without gaps. */
    seq: number;
    /** Id of the session that the entry belongs to. */
    sessionId: SessionId;
    /** Time at which the entry was appended. */
    ts: Timestamp;
    /** The command that was received. */
    cmd: AgentCmd;
    /** Client, run and tool that caused the entry. */
    origin?: Origin | null;
    /** Id of the entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  }
  /** An event that happened. */
  | {
    kind: "Evt";
    /** Id of this entry (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … without gaps. */
    seq: number;
    /** Id of the session that the entry belongs to. */
    sessionId: SessionId;
    /** Time at which the entry was appended. */
    ts: Timestamp;
    /** The event that happened. */
    evt: AgentEvt;
    /** Client, run and tool that caused the entry. */
    origin?: Origin | null;
    /** Id of the entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  };

/** `error.data` of a failed call. */
export interface ErrorData {
  /** Advice on how to resolve the failure. */
  hint: string;
  /** Stable reason string, part of the contract. */
  reason: string;
  /** True if the same call may succeed later. */
  retryable: boolean;
  /** Further details: the versions of both sides, `oldestSeq`, the path of an invalid field. */
  details?: unknown;
  /** Time to wait before the next attempt, in milliseconds; set for `overloaded`. */
  retryAfterMs?: number | null;
}

/** Payload of the notification `orchestrate.event`. */
export type EventNotification =
  /** A command that was received. */
  | {
    kind: "Cmd";
    /** Id of this entry (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … without gaps. */
    seq: number;
    /** Id of the session that the entry belongs to. */
    sessionId: SessionId;
    /** Id of the subscription. */
    subscriptionId: SubscriptionId;
    /** Time at which the entry was appended. */
    ts: Timestamp;
    /** The command that was received. */
    cmd: AgentCmd;
    /** Client, run and tool that caused the entry. */
    origin?: Origin | null;
    /** Id of the entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  }
  /** An event that happened. */
  | {
    kind: "Evt";
    /** Id of this entry (bare UUIDv7). */
    id: string;
    /** Position in the session's log: 1, 2, 3, … without gaps. */
    seq: number;
    /** Id of the session that the entry belongs to. */
    sessionId: SessionId;
    /** Id of the subscription. */
    subscriptionId: SubscriptionId;
    /** Time at which the entry was appended. */
    ts: Timestamp;
    /** The event that happened. */
    evt: AgentEvt;
    /** Client, run and tool that caused the entry. */
    origin?: Origin | null;
    /** Id of the entry that caused this one: events of a command carry the command's id. */
    parentId?: string | null;
  };

/** Calls that a turn may make without an approval, and whether it may change anything at all.
 * Denials, required confirmations and protected paths apply in every mode. */
export type ExecutionMode =
  /** Only tools that change nothing may be called. */
  | "plan"
  /** Calls with an effect need an approval, unless a rule allows them. */
  | "ask"
  /** Edits of files inside the root need no approval. */
  | "accept-edits"
  /** Edits of files, and commands that the sandbox confines, need no approval. */
  | "auto";

/** Permissions and limits of a turn. */
export interface ExecutionPolicy {
  /** True if models outside this machine may be used; the daemon's `models.allowExternal` must
   * also allow it. */
  allowExternalLLMs?: boolean;
  /** Reports tool calls without running them. */
  dryRun?: boolean;
  /** Maximum number of model answers; `agent.maxIterations` when omitted. */
  maxIterations?: number | null;
  /** Maximum number of input and output tokens over all answers. */
  maxTokens?: number | null;
  /** Maximum cost in US dollars, by the known prices; `models.maxUsdPerTurn` applies too. */
  maxUsd?: number | null;
  /** Mode of the turn, `ask` when omitted. `accept-edits` and `auto` require the right `approve`. */
  mode?: ExecutionMode | null;
  /** True if tools may use the network. */
  network?: boolean;
  /** Names of the only tools that may be called; all registered ones when omitted. */
  ops?: Array<string> | null;
  /** The only paths that tools may access, relative to the root; all when omitted. */
  paths?: Array<string> | null;
  /** True requests reports on the model's progress in reading its prompt; the daemon's setting
   * when omitted. */
  promptProgress?: boolean | null;
  /** `off` runs commands outside the sandbox, which requires the right `admin` and is noted in
   * the audit of each command. */
  sandbox?: SandboxUse | null;
  /** Settings of this turn that override the configured ones. */
  settings?: TurnOverrides | null;
  /** Maximum duration in seconds, without the time spent waiting for approvals. */
  timeoutSeconds?: number | null;
  /** Names under which tools are offered; `tools.mode` when omitted. */
  toolsMode?: ToolsMode | null;
}

/** Sessions that the limits of `retention` remove. */
export interface ExpiredUsage {
  /** Bytes of the sessions. */
  bytes: number;
  /** Number of the sessions, at most 1,000. */
  sessions: number;
  /** Time from which the daemon removes such sessions by itself: a week after it first found one. */
  removedFrom?: Timestamp | null;
}

/** Changes between a revision and the work tree, and the code that they touch. */
export interface ExploreChanges {
  /** Number of added lines. */
  addedLines: number;
  /** Full hash of its commit. */
  base: string;
  /** Number of commits since the revision. */
  commits: number;
  /** Number of deleted lines. */
  deletedLines: number;
  /** Number of changed files. */
  files: number;
  /** Requested revision, as the caller wrote it. */
  since: string;
  /** Number of commits of the revision that the checked-out commit does not have. */
  behind?: number;
  /** Changed files, most lines first; at most 200. */
  changedFiles?: Array<GitFileChange>;
  /** Changes by component, the system's own first, then most lines first. */
  components?: Array<ComponentChanges>;
  /** Changed files that other files import, most importing files first. */
  impact?: Array<ChangeImpact>;
  /** Changes that deserve a closer look. */
  risks?: Array<ChangeRisk>;
  /** Commits since the revision, newest first; at most 100. */
  subjects?: Array<ChangeCommit>;
  /** True if commits, files or contents could not be read; the numbers are then lower bounds. */
  truncated?: boolean;
}

/** Reasons behind a summary. */
export interface ExploreDetails {
  /** Commands that build, test and run the project. */
  commands: ProjectCommands;
  /** Entrypoints, each with its reason. */
  entrypoints: Array<Entrypoint>;
  /** Top-level folders and their roles. */
  layout: Array<LayoutEntry>;
  /** Packages, crates or modules of the repository. */
  projects: Array<Project>;
  /** Statistics of the explore. */
  stats: ExploreStats;
  /** Top files, each with its reason. */
  topFiles: Array<TopFile>;
  /** Changes since the requested revision. */
  changes?: ExploreChanges | null;
  /** Parts of the system, most important first. */
  components?: Array<Component>;
  /** Names that a newcomer meets in many files. */
  concepts?: Array<Concept>;
  /** Rules of the project for its contributors, each with the file that states it. */
  conventions?: Array<Convention>;
  /** Description of the project from its manifest or readme. */
  description?: string | null;
  /** Results of the searches for the goals. */
  findings?: Array<Finding>;
  /** Paths of the first request or command through the components. */
  flows?: Array<Flow>;
  /** Git facts, when the root is a repository. */
  git?: GitFacts | null;
  /** Files that changed most often in the latest commits. */
  hotspots?: Array<Hotspot>;
  /** Overview of the findings by a model, if one was asked. */
  overview?: Overview | null;
  /** One or two sentences: the purpose of the project, from manifests and the readme. */
  purpose?: string | null;
  /** Folders that are no part of the system: tests, examples, documents, vendored and generated
   * code. */
  secondary?: Array<Component>;
}

/** A plan: goals and the operations to run next. */
export interface ExplorePlan {
  /** Goals of the plan. */
  goals: Array<string>;
  /** Operations to run, in order of importance. */
  nextOps: Array<AgentOp>;
}

/** Permissions of an explore beyond reading inside its root. */
export interface ExplorePolicy {
  /** True if external models may be used. */
  allowExternalLLMs?: boolean;
  /** True if the network may be used (for a clone). */
  network?: boolean;
  /** Names of the only tools that may run; all read-only ones when omitted. */
  ops?: Array<string> | null;
  /** The only paths that may be read, relative to the root; all when omitted. A request that
   * covers more (a search of the complete root, its languages) is answered for these paths
   * only. */
  paths?: Array<string> | null;
}

/** Parameters of the method `orchestrate.explore.start`. */
export interface ExploreStartParams {
  /** Name of the branch to clone. */
  branch?: string | null;
  /** Goals of the explore. Known goals steer the planner; other text becomes searches. */
  goals?: Array<string>;
  /** Planner to use; the built-in one when omitted. */
  planner?: PlannerKind | null;
  /** Permissions of the run; read-only when omitted. */
  policy?: ExplorePolicy | null;
  /** URL of a repository to clone first; requires `policy.network`. */
  remoteURL?: string | null;
  /** Retry key, up to 128 bytes: a repeated key returns the first receipt. */
  requestId?: string | null;
  /** Absolute path of the folder; not needed with `remoteURL`. */
  root?: string | null;
  /** Id of an existing session to run in; a new session when omitted. */
  sessionId?: SessionId | null;
  /** Git revision: the summary then has the changes between it and the work tree. */
  since?: string | null;
}

/** Statistics of an explore. */
export interface ExploreStats {
  /** Number of indexed chunks. */
  chunks: number;
  /** Number of operations that failed. */
  failedOps: number;
  /** Number of indexed files. */
  files: number;
  /** Milliseconds from start to summary. */
  millis: number;
  /** Number of operations run. */
  ops: number;
  /** Number of files left out of the index. */
  skipped: number;
  /** Number of indexed symbols. */
  symbols: number;
}

/** Answer of the method `orchestrate.explore.status`. */
export interface ExploreStatus {
  /** Sequence number of the newest record. */
  headSeq: number;
  /** Number of finished operations. */
  opsDone: number;
  /** Number of pending or running operations. */
  opsPending: number;
  /** Id of the session. */
  sessionId: SessionId;
  /** State of the latest run. */
  state: RunState;
  /** Id of its latest explore run. */
  runId?: RunId | null;
  /** Summary of the explore, once completed. */
  summary?: ExploreSummary | null;
}

/** Results of an explore: the five fields of the plan's schema, and `details` with the reasons. */
export interface ExploreSummary {
  /** Reasons, commands and statistics. */
  details: ExploreDetails;
  /** Paths of the entrypoints, most important first. */
  entrypoints: Array<string>;
  /** Open questions and how to answer them. */
  followups: Array<string>;
  /** Lines per language (code, comments and blanks), as tokei counts them. */
  languages: Record<string, number>;
  /** Name of the repository. */
  repoName: string;
  /** Files to read first, ordered by how much other code refers to them. */
  topFiles: Array<string>;
}

/** A change of a file by a tool. */
export interface FileChange {
  /** Path of the file, relative to the root. */
  path: string;
  /** SHA-256 (hex) of the new content; absent when the file was deleted. */
  after?: string | null;
  /** Former content as base64 text; absent when the file did not exist. */
  before?: BlobRef | null;
  /** True if the file existed and its former content was not stored: the change cannot be
   * undone. */
  lost?: boolean;
}

/** Matching lines of one file; at least one. */
export interface FileLines {
  /** Line numbers in ascending order. */
  lines: Array<number>;
  /** Path relative to its root. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Text of each line without its terminator, at most 2 KiB, invalid UTF-8 replaced; lines are
   * separated by `\n`. */
  text: string;
  /** Byte ranges of the matches in the text of each line; only with `withRanges`. */
  ranges?: Array<Array<[number, number]>>;
}

/** Search results for a goal. */
export interface Finding {
  /** Text of the goal. */
  goal: string;
  /** The best locations, as `path:line`. */
  places: Array<string>;
}

/** Reason why a model stopped. */
export type FinishReason =
  /** The model finished its answer. */
  | "stop"
  /** The model waits for the results of tool calls. */
  | "tool_calls"
  /** The answer reached its limit of tokens. */
  | "length"
  /** The provider withheld the answer. */
  | "filtered";

/** An approval that waits on a daemon of the fleet. */
export interface FleetApproval {
  /** Id of the approval. */
  approvalId: ApprovalId;
  /** Summary of the call in one line. */
  summary: string;
  /** Name of the tool. */
  tool: string;
}

/** An attempt at a run. */
export interface FleetAttempt {
  /** Name of the daemon. */
  daemon: string;
  /** Identity of the daemon's data folder. */
  identity: string;
  /** Id of the session on that daemon. */
  sessionId?: SessionId | null;
}

/** Parameters of the method `fleet.call`. */
export interface FleetCallParams {
  /** Name of the daemon that is called. */
  daemon: string;
  /** Name of the method. */
  method: string;
  /** Parameters of the method. */
  params?: unknown;
}

/** A daemon of the fleet. */
export interface FleetDaemon {
  /** Identity of its data folder. */
  identity: string;
  /** Id of its process. */
  instance: string;
  /** Maximum number of runs of pools that it takes at once. */
  maxRuns: number;
  /** Name of the daemon. */
  name: string;
  /** Pools of which it takes runs. */
  pools: Array<string>;
  /** Number of its active sessions. */
  running: number;
  /** Its latest sessions of which the records are mirrored, at most 20. */
  sessions: Array<FleetSession>;
  /** Version of its program. */
  version: string;
  /** Number of its approvals that wait for an answer. */
  waiting: number;
  /** Time at which it was last seen, by the broker's clock. */
  seenAt?: Timestamp | null;
}

/** Answer of the method `fleet.records`. */
export interface FleetRecords {
  /** Records in order, as the broker has them. */
  records: Array<unknown>;
  /** Number of the first record that the broker has, if it is not the session's first one. */
  first?: number | null;
}

/** Parameters of the method `fleet.records`. */
export interface FleetRecordsParams {
  /** Name of the daemon that has the session. */
  daemon: string;
  /** Id of the session. */
  sessionId: SessionId;
  /** Number of the record after which records are returned; 0 for the first one. */
  after?: number;
  /** Maximum number of records, 1 to 500; 100 when omitted. */
  limit?: number | null;
  /** Longest wait for a record when there is none, in milliseconds, at most 30,000. */
  waitMillis?: number | null;
}

/** A daemon's refusal of a run. */
export interface FleetRefusal {
  /** Name of the daemon. */
  daemon: string;
  /** Reason of the refusal, for people. */
  reason: string;
}

/** A repository, whatever folder a daemon has it in. */
export interface FleetRepository {
  /** URL of its remote. */
  remoteURL: string;
  /** Commit to work on, in a work tree of its own; the daemon's checkout when omitted. */
  commit?: string | null;
}

/** A run of a pool. */
export interface FleetRun {
  /** Name of the pool. */
  pool: string;
  /** First line of the request. */
  request: string;
  /** Name of the daemon that added the run. */
  sentBy: string;
  /** State of the run. */
  state: FleetRunState;
  /** Id of the run. */
  turnId: string;
  /** The attempts so far; the last one is the current one. */
  attempts?: Array<FleetAttempt>;
  /** True if a client cancelled the run while a daemon had it. */
  cancelling?: boolean;
  /** Metadata of the run. */
  metadata?: Record<string, string>;
  /** Reason for a state that is not success, for people. */
  reason?: string | null;
  /** Daemons that refused the run, with their reasons. */
  refusals?: Array<FleetRefusal>;
}

/** Parameters of the method `fleet.run`. */
export interface FleetRunParams {
  /** Name of the pool. */
  pool: string;
  /** Work of the run. */
  work: FleetWork;
  /** Metadata that is returned unchanged; at most 32 entries. */
  metadata?: Record<string, string>;
  /** Repository to work in. When omitted, `root` is a folder of this machine whose remote and
   * commit are taken. */
  repository?: FleetRepository | null;
  /** Declared root: of this machine if its repository is taken, otherwise of the daemon that
   * takes the run. */
  root?: string | null;
  /** Title of the session. */
  title?: string | null;
  /** Id of the run, chosen by the client, 1 to 128 letters, digits, `-` and `_`: a repeated id
   * adds nothing and returns the state of the first one. A random one when omitted. */
  turnId?: string | null;
}

/** Parameters that name a run of a pool. */
export interface FleetRunRef {
  /** Name of the pool. */
  pool: string;
  /** Id of the run. */
  turnId: string;
}

/** State of a run of a pool. */
export type FleetRunState =
  /** No daemon has taken it yet. */
  | "queued"
  /** A daemon has taken it. */
  | "running"
  /** The agent finished its work. */
  | "completed"
  /** The work failed, for the reason beside it. */
  | "failed"
  /** A client cancelled it. */
  | "cancelled"
  /** No daemon of the pool may or can do it. */
  | "refused";

/** Parameters of the method `fleet.runs`. */
export interface FleetRunsParams {
  /** Name of the pool. */
  pool: string;
  /** Cursor from the `nextCursor` of the previous page. */
  cursor?: string | null;
  /** Most runs of the answer, 1 to 1000; 100 when absent. */
  limit?: number | null;
  /** Id of the only run to return. */
  turnId?: string | null;
}

/** A session of a daemon of the fleet. */
export interface FleetSession {
  /** Id of the session on its daemon. */
  sessionId: SessionId;
  /** State of the session. */
  state: RunState;
  /** Title of the session. */
  title: string;
  /** Approvals that wait for an answer. */
  approvals?: Array<FleetApproval>;
  /** First line of the input of its latest turn. */
  request?: string | null;
}

/** Answer of the method `fleet.status`. */
export interface FleetStatus {
  /** True if the broker can be reached. */
  connected: boolean;
  /** Connected daemons by their names, this one included; at most 1,000, those that confirmed
   * their state last. */
  daemons: Array<FleetDaemon>;
  /** Name of this daemon in the fleet. */
  name: string;
  /** Pools of which this daemon takes runs, and those of the other daemons. */
  pools: Array<PoolStatus>;
  /** Address of the broker, without credentials. */
  server: string;
  /** Reason why the broker cannot be used, or why this daemon does not take part. */
  error?: string | null;
  /** The copying of records to the broker; absent if nothing is mirrored. */
  mirror?: MirrorStatus | null;
  /** True if more daemons are connected than are listed. */
  truncated?: boolean;
}

/** Work of a run. */
export type FleetWork =
  /** A turn of an agent. */
  | {
    type: "turn";
    /** Input of the turn. */
    input: string;
    /** Permissions and limits of the turn. */
    policy?: ExecutionPolicy | null;
  }
  /** An explore of the repository. */
  | {
    type: "explore";
    /** Goals of the explore. */
    goals?: Array<string>;
  };

/** Path of the first request or command of an entrypoint through the components. */
export interface Flow {
  /** Path of the entrypoint. */
  entrypoint: string;
  /** Steps in order, up to eight. */
  steps: Array<FlowStep>;
}

/** Step of a flow. */
export interface FlowStep {
  /** Line of the definition, starting at 1. */
  line: number;
  /** Name of the definition. */
  name: string;
  /** Path of its file, relative to the root. */
  path: string;
  /** Path of the component that contains it. */
  component?: string | null;
}

/** The trust in a folder. */
export interface FolderTrust {
  /** Absolute path of the folder, or of the repository's for one of its work trees. */
  folder: string;
  /** True if `trust.folders` of the configuration names it, or a folder around it: instructions,
   * skills and language servers are used then, and nothing that runs by itself. */
  isConfigured: boolean;
  /** True if the user trusted the folder by its content before. */
  isKnown: boolean;
  /** Everything that it brings. */
  items: Array<TrustItem>;
}

/** Parameters of the method `session.fork`. */
export interface ForkParams {
  /** Id of the session to fork. */
  sessionId: SessionId;
  /** Id of the turn before which the new session diverges; the complete history when omitted. */
  beforeTurnId?: string | null;
  /** Title for people; the original's when omitted. */
  title?: string | null;
}

/** A question of an MCP server for the user. No model sees it or answers it. */
export interface Form {
  /** The values that it requests, in order. */
  fields: Array<FormField>;
  /** The server's own text: untrusted, without control characters. */
  message: string;
  /** Name of the server. */
  server: string;
}

/** One value of a form. */
export interface FormField {
  /** Kind of the value. */
  kind: FormFieldKind;
  /** Name of the value in the answer. */
  name: string;
  /** True if the answer must have it. */
  required: boolean;
  /** Value that the server proposes. */
  default?: unknown;
  /** Explanation of the field, for people. */
  description?: string | null;
  /** Largest number, or most characters or chosen values. */
  max?: number | null;
  /** Smallest number, or fewest characters or chosen values. */
  min?: number | null;
  /** The values to choose from, for `choice` and `choices`. */
  options?: Array<FormOption>;
  /** Title of the field, for people. */
  title?: string | null;
}

/** Kind of a value of a form. */
export type FormFieldKind =
  /** A text of one line. */
  | "text"
  /** A number, with a fraction or without. */
  | "number"
  /** A number without a fraction. */
  | "integer"
  /** Either true or false. */
  | "boolean"
  /** Exactly one of the options. */
  | "choice"
  /** Any number of the options. */
  | "choices";

/** A value that the user may choose. */
export interface FormOption {
  /** The value in the answer. */
  value: string;
  /** Title of the value, for people. */
  title?: string | null;
}

/** Method that fuses two ranked lists. */
export type Fusion =
  /** Reciprocal rank fusion (RRF) of both lists. */
  | "rrf"
  /** Sum of scores scaled to 0..1 within each list. */
  | "minmax";

/** One changed file of a repository. */
export interface GitChange {
  /** Path relative to the repository. */
  path: string;
  /** Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or
   * `conflicted`. */
  status: string;
}

/** Git facts of a repository. */
export interface GitFacts {
  /** Files changed most often in the latest commits. */
  activeFiles: Array<string>;
  /** Number of files with uncommitted changes. */
  changedFiles: number;
  /** Subjects of the latest commits. */
  recent: Array<string>;
  /** Current branch; absent when HEAD is detached. */
  branch?: string | null;
  /** Hash of the checked-out commit. */
  head?: string | null;
}

/** Changed file with its numbers of lines. */
export interface GitFileChange {
  /** Number of added lines; zero for binary files. */
  addedLines: number;
  /** Number of deleted lines; zero for binary files. */
  deletedLines: number;
  /** Path relative to the repository. */
  path: string;
  /** Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed` or `conflicted`. */
  status: string;
  /** Former path of a renamed file. */
  previousPath?: string | null;
}

/** Payload of the live notification `git.progress`. */
export interface GitProgress {
  /** True on the last notification. */
  done: boolean;
  /** Progress in percent, 0 to 100. */
  percent: number;
  /** Id of the request. */
  requestId: string;
  /** Stage of the clone: `receiving`, `resolving`, `checkout`, … */
  stage: string;
  /** Error message of a failed clone. */
  error?: string | null;
  /** Stable reason of a failure, as in the error table. */
  reason?: string | null;
  /** Result of a successful clone. */
  result?: CloneResult | null;
}

/** State of a repository. */
export interface GitStatus {
  /** Changed files, at most 1,000. */
  changes: Array<GitChange>;
  /** False for a folder without git; the other fields are then empty. */
  isRepository: boolean;
  /** True when there were more changes. */
  truncated: boolean;
  /** Current branch; absent when HEAD is detached. */
  branch?: string | null;
  /** Hash of the checked-out commit, if any. */
  head?: string | null;
  /** URL of `origin`, without credentials. */
  remote?: string | null;
  /** Path of the repository below the root; empty when it is the root. Changes are relative to
   * it. */
  top?: string;
}

/** Parameters of the method `git.status`. */
export interface GitStatusParams {
  /** Path of a folder inside a declared root. */
  path: string;
}

/** Parameters of the notification `orchestrate.gone`. */
export interface GoneNotification {
  /** Explanation of the end for a person. */
  message: string;
  /** The constant value `gone`. */
  reason: string;
  /** The subscription that ended. */
  subscriptionId: SubscriptionId;
}

/** A rule that was granted permanently. */
export interface GrantedRule {
  /** Time of the grant. */
  grantedAt: Timestamp;
  /** Name of the client that granted the rule. */
  grantedBy: string;
  /** The rule, as in `permissions.allow`. */
  rule: string;
  /** Folder of the project in which it applies; absent for a rule that applies in every project. */
  project?: string | null;
}

/** Answer of the method `search.grep`. */
export interface GrepAnswer {
  /** True if the file list currently covers the complete scope. */
  complete: boolean;
  /** Number of files searched. */
  filesSearched: number;
  /** Matching lines sorted by path, then by line. */
  items: Array<GrepItem>;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** Number of matching lines seen (all of them in count mode). */
  total: number;
  /** True when `k` cut the answer; continue with `nextCursor`. */
  truncated: boolean;
  /** Matching lines per file, in count mode. */
  counts?: Array<GrepCount>;
  /** Cursor of the next page. */
  nextCursor?: string | null;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
  /** Paths of files that could not be read. */
  unreadable?: Array<string>;
}

/** Source of the partials of `search.grep`. */
export type GrepCorpus =
  /** The files themselves, line by line. */
  | "grep";

/** Number of matching lines of one file. */
export interface GrepCount {
  /** Number of matching lines. */
  lines: number;
  /** Path relative to its root. */
  path: string;
  /** Id of the root. */
  root: RootId;
}

/** One matching line of a file. */
export interface GrepItem {
  /** Line number, starting at 1. */
  line: number;
  /** Path relative to its root. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Text of the line without its terminator, at most 2 KiB, invalid UTF-8 replaced. */
  text: string;
  /** Lines of context after the match. */
  after?: Array<string>;
  /** Lines of context before the match. */
  before?: Array<string>;
  /** Byte ranges of the matches in `text`. */
  ranges?: Array<[number, number]>;
}

/** Parameters of the method `search.grep`. */
export interface GrepParams {
  /** Text, or a regular expression with `isRegex`; at most 4 KiB. */
  pattern: string;
  /** Lines of context around each match, at most 100. */
  contextLines?: number;
  /** Counts only: `items` stays empty and `counts` has the lines per file. */
  countOnly?: boolean;
  /** Cursor from the `nextCursor` of the previous page. */
  cursor?: string | null;
  /** Further filters; `kinds` does not apply. */
  filters?: SearchFilters | null;
  /** Flags of the search: `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline`
   * (`U`), `dot_all` (`s`), `invert` (`v`, lines that do not match). With `files` and
   * `countOnly` nothing is searched: `counts` has each file of the scope, with 0 lines. */
  flags?: Array<string>;
  /** True if `pattern` is a regular expression. */
  isRegex?: boolean;
  /** Maximum number of lines, 1 to 10,000. */
  k?: number;
  /** Restricts the search to files under this path. */
  pathPrefix?: string | null;
  /** Name for `search.partial` notifications, each with the next lines; none are sent when
   * omitted or with `countOnly`. */
  requestId?: string | null;
}

/** Live notification `search.partial` of a `search.grep`. */
export interface GrepPartial {
  /** Always the value `grep`. */
  corpus: GrepCorpus;
  /** True on the last partial. */
  done: boolean;
  /** Lines that follow those of the previous partial. */
  items: Array<GrepItem>;
  /** The `requestId` of the search. */
  requestId: string;
}

/** Answer of `search.grepStream`, returned after all lines were sent. */
export interface GrepStreamEnd {
  /** True if the file list currently covers the complete scope. */
  complete: boolean;
  /** Number of files searched. */
  filesSearched: number;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** Number of lines sent. */
  total: number;
  /** True when there are more lines than `k`. */
  truncated: boolean;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
  /** Paths of files that could not be read. */
  unreadable?: Array<string>;
}

/** Parameters of the method `search.grepStream`. */
export interface GrepStreamParams {
  /** Text, or a regular expression with `isRegex`; at most 4 KiB. */
  pattern: string;
  /** Name of the `search.partial` notifications that carry the lines. */
  requestId: string;
  /** Cursor of a partial after which the search continues. */
  cursor?: string | null;
  /** Further filters; `kinds` does not apply. */
  filters?: SearchFilters | null;
  /** Same flags as in `search.grep`. */
  flags?: Array<string>;
  /** True if `pattern` is a regular expression. */
  isRegex?: boolean;
  /** Maximum number of lines; unlimited when omitted. */
  k?: number | null;
  /** Restricts the search to files under this path. */
  pathPrefix?: string | null;
  /** Returns `ranges`; each line is then matched a second time. */
  withRanges?: boolean;
}

/** Result of the method `session.search`. */
export interface HistoryAnswer {
  /** The entries, best first; for a file without a query, newest first. */
  data: Array<HistoryEntry>;
  /** Number of sessions whose latest records are not searched yet; 0 for a complete answer. */
  pending: number;
}

/** An entry of the history. */
export interface HistoryEntry {
  /** Kind of the entry. */
  kind: HistoryKind;
  /** Number of the record in the session. */
  seq: number;
  /** Id of the session. */
  sessionId: SessionId;
  /** The part of the text around the first word that was found, at most some 300 characters. */
  text: string;
  /** Title of the session. */
  title: string;
  /** Time of the record. */
  ts: Timestamp;
  /** Root of the session, if it has one. */
  root?: string | null;
}

/** Kind of an entry of the history. */
export type HistoryKind =
  /** A message of the user. */
  | "question"
  /** The last text of a turn, or the purpose that an explore found. */
  | "answer"
  /** A command line that was run. */
  | "command"
  /** A call that waited for an approval. */
  | "approval"
  /** Paths of files that a turn changed. */
  | "file"
  /** Message of a commit. */
  | "commit";

/** Parameters of the method `session.search`: a query, a file, or both; the newest entries without. */
export interface HistoryParams {
  /** Path of a file, or its end: only sessions that changed it. */
  file?: string | null;
  /** Kinds of entries; all if absent. */
  kinds?: Array<HistoryKind> | null;
  /** Maximum number of entries, at most 100; 20 if absent. */
  limit?: number | null;
  /** Words, of which an entry has all, or some if none has all; at most 1,000 characters. A word
   * also finds longer ones that begin with it. */
  query?: string;
  /** Path of a root: only its sessions. */
  root?: string | null;
}

/** File that changed often lately. */
export interface Hotspot {
  /** Number of the latest commits that changed it. */
  commits: number;
  /** Path of the file, relative to the root. */
  path: string;
  /** Subjects of some of these commits, newest first. */
  subjects: Array<string>;
}

/** Answer of the method `search.impact`. */
export interface ImpactAnswer {
  /** True if imports are currently indexed for the root. */
  complete: boolean;
  /** Files that import it, directly or by others, nearest first. */
  items: Array<ImpactItem>;
  /** Path of the file, relative to the root. */
  path: string;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** True if there are more than `k`. */
  truncated: boolean;
}

/** A file that depends on another. */
export interface ImpactItem {
  /** Path relative to the root. */
  path: string;
  /** Number of imports between the two, 1 for a direct one. */
  steps: number;
}

/** Parameters of the method `search.impact`. */
export interface ImpactParams {
  /** File whose dependents are requested, relative to the root or absolute. */
  path: string;
  /** Steps of imports that are followed, 1 to 20. */
  depth?: number;
  /** Maximum number of files, 1 to 2,000. */
  k?: number;
  /** Root to search: its id or path; needed when several roots are declared. */
  root?: string | null;
}

/** Arguments of the tool `index_add_root`. */
export interface IndexAddRoot {
  /** Absolute path of the folder. */
  path: string;
}

/** Arguments of the tool `index_build`. */
export interface IndexBuild {
  /** Maximum number of indexes that run at once, including this one; while more are running, the
   * build waits for them first. Unlimited when omitted. */
  maxConcurrency?: number | null;
  /** Maximum time to wait, in seconds, up to 600; the answer then holds the state reached. */
  timeoutSeconds?: number | null;
}

/** Payload of the live notification `index.progress`. */
export interface IndexProgress {
  /** Number of chunks so far. */
  chunks: number;
  /** True when everything is up to date, or the pass failed. */
  done: boolean;
  /** Number of files indexed so far. */
  filesIndexed: number;
  /** Path of the root. */
  path: string;
  /** Current state of the index. */
  state: IndexState;
  /** Id of the request, if it was given. */
  requestId?: string | null;
}

/** Receipt of an index command; the work is reported by `index.progress` and `index.status`. */
export interface IndexReceipt {
  /** Canonical path of the root. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Id of the request, if it was given. */
  requestId?: string | null;
}

/** State of the index of a root. */
export type IndexState =
  /** The index is walking the root and indexing text. */
  | "indexing"
  /** Lexical search is complete; vectors or symbols are being added. */
  | "enriching"
  /** The index is up to date. */
  | "ready"
  /** The last pass failed; see `error`. */
  | "failed";

/** Answer of the method `index.status`. */
export interface IndexStatus {
  /** One entry for each root. */
  roots: Array<RootStatus>;
}

/** Parameters of the method `index.status`. */
export interface IndexStatusParams {
  /** Root id or absolute path; all roots when omitted. */
  root?: string | null;
}

/** Disk usage of one index. */
export interface IndexUsage {
  /** Bytes of the index on disk. */
  bytes: number;
  /** Path of the root. */
  path: string;
  /** Id of the root. */
  root: RootId;
}

/** Parameters of `initialize`, the first message of a connection. */
export interface InitializeParams {
  /** Name and version of the client. */
  client: ClientInfo;
  /** Protocol versions that the client supports, best first. */
  protocolVersions: Array<string>;
  /** Capabilities of the client. */
  capabilities?: ClientCapabilities;
}

/** Answer of the method `initialize`. */
export interface InitializeResult {
  /** Capabilities of the daemon. */
  capabilities: ServerCapabilities;
  /** Limits of this connection. */
  limits: Limits;
  /** The protocol version that both sides use. */
  protocolVersion: string;
  /** Name and instance of the daemon. */
  server: ServerInfo;
  /** Version of the daemon, as in its Bonjour record. */
  version: string;
}

/** Input of a turn: a text, or parts. */
export type Input =
  /** Input of text alone. */
  | string
  /** Input of text and images. */
  | Array<Part>;

export type InstanceId = string;

/** Notification `orchestrate.lagged`: this client fell behind and is now served from the log. */
export interface LaggedNotification {
  /** Sequence number of the next record, read from the log. */
  fromSeq: number;
  /** Id of the subscription. */
  subscriptionId: SubscriptionId;
}

/** A top-level folder of the repository. */
export interface LayoutEntry {
  /** Number of files in the folder. */
  files: number;
  /** Path of the folder. */
  path: string;
  /** Its main language, or its purpose. */
  role: string;
}

/** Limits of a connection; exceeding one returns an error at once. */
export interface Limits {
  /** Maximum calls in one batch. */
  maxBatch: number;
  /** Maximum connections of the daemon. */
  maxConnections: number;
  /** Maximum calls of one connection that run at once. */
  maxInFlight: number;
  /** Maximum results of one search. */
  maxK: number;
  /** Maximum bytes of one message to the daemon. */
  maxMessageBytes: number;
  /** Maximum entries of one page. */
  maxPage: number;
  /** Maximum subscriptions of one connection. */
  maxSubscriptions: number;
}

/** Source of the partials of `search.grepStream`. */
export type LinesCorpus =
  /** The files themselves, line by line. */
  | "lines";

/** Live notification `search.partial` of a `search.grepStream`. */
export interface LinesPartial {
  /** Always the value `lines`. */
  corpus: LinesCorpus;
  /** True on the last partial. */
  done: boolean;
  /** Lines that follow those of the previous partial; the first file may be the last one of that
   * partial. */
  files: Array<FileLines>;
  /** The `requestId` of the search. */
  requestId: string;
  /** Cursor after these lines, to continue if the connection breaks. */
  cursor?: string | null;
}

/** Parameters of the method `fs.listDir`. */
export interface ListDirParams {
  /** Path, absolute or relative to `root`. */
  path: string;
  /** Levels below the folder, 1 to 16. */
  depth?: number;
  /** Root id or root path for a relative `path`. */
  root?: string | null;
}

/** The literal word `live`. */
export type LiveWord =
  /** Records after the current head. */
  | "live";

/** Arguments of the tool `llm_call`. */
export interface LlmCall {
  /** Text of the request. */
  prompt: string;
  /** Registered type that the answer must match: `ExplorePlan` or `ExploreSummary`. */
  expectsType?: string | null;
  /** System text of the request. */
  instructions?: string | null;
  /** Limits and options of the model request. */
  policy?: LlmPolicy;
  /** Name of the provider; the session's own when omitted. */
  provider?: string | null;
  /** Emits a typed answer while it is written, as `structured_snapshot` events; requires
   * `expectsType`. */
  streamStructured?: boolean;
}

/** Limits and options of a model request. */
export interface LlmPolicy {
  /** True if models outside this machine may be used; the daemon's `models.allowExternal` must
   * also allow it. */
  allowExternalLLMs?: boolean;
  /** Maximum tokens of the answer, at most 8,192; 1,024 when omitted. */
  maxTokens?: number | null;
  /** Name of the model; the provider's default when omitted. */
  model?: string | null;
  /** Sampling temperature, 0 to 2; the provider's default when omitted. */
  temperature?: number | null;
}

/** Parts of the log, with their sizes. */
export interface LogUsage {
  /** Bytes of artifacts: the state of explores, and system texts. */
  artifactBytes: number;
  /** Number of rows of the audit. */
  auditRows: number;
  /** Bytes of blobs: large results, and contents of files from before changes. */
  blobBytes: number;
  /** Bytes of the database and its write-ahead log on disk. */
  fileBytes: number;
  /** Bytes of the database that are not used. */
  freeBytes: number;
  /** The largest sessions, largest first. */
  largest: Array<SessionUsage>;
  /** Bytes of the packed records among them, compressed. */
  packedBytes: number;
  /** Bytes of these records, of packed ones compressed. Records that a fork has in common with
   * its origin count once. */
  recordBytes: number;
  /** Number of records of all sessions. */
  records: number;
  /** Number of sessions in the log. */
  sessions: number;
  /** Bytes of packed records before their compression. */
  unpackedBytes: number;
}

/** Answer of the method `search.map`. */
export interface MapAnswer {
  /** False while symbols are missing, and for trees with more definitions than a map can rank. */
  complete: boolean;
  /** Files of the map, best first. */
  files: Array<MapFile>;
  /** The map for a model: one line for each file, and under it one for each definition with line
   * number and signature, or kind and name. */
  text: string;
  /** Tokens of `text`, counted as one per four bytes; at most the budget. */
  tokens: number;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
}

/** One definition of a map. */
export interface MapDefinition {
  /** Kind of definition: `function`, `class`, … */
  kind: string;
  /** First line of the definition. */
  line: number;
  /** Name of the definition. */
  name: string;
  /** Its first lines without the body and without the value of a constant, on one line of at most
   * 100 characters. Absent if the budget was used up, if the file has changed since, and for
   * modules and sections. */
  signature?: string | null;
}

/** One file of a map. */
export interface MapFile {
  /** Definitions that fit the budget, sorted by line. */
  definitions: Array<MapDefinition>;
  /** Path relative to its root. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Share of the total rank, 0 to 1. */
  score: number;
}

/** Parameters of the method `search.map`. */
export interface MapParams {
  /** Maximum tokens of the text, 1 to 16,384, counted as one per four bytes. */
  budget?: number;
  /** Files being edited, relative to their root or absolute, at most 200: files that they refer
   * to rank first. */
  files?: Array<string>;
  /** Text or names that describe the task: files that a search for it finds rank first. At most
   * 4 KiB. */
  query?: string | null;
  /** Root ids or absolute root paths; all declared roots when empty. */
  roots?: Array<string>;
}

/** Outcome of a login or logout. */
export interface McpAccount {
  /** True if a login is stored now. */
  loggedIn: boolean;
  /** Name of the server in the configuration. */
  name: string;
  /** True if a login was stored before. */
  wasLoggedIn: boolean;
}

/** Parameters of the method `mcp.finishLogin`. */
export interface McpFinishLoginParams {
  /** Id of the login. */
  loginId: McpLoginId;
  /** Address to which the browser was sent, if it could not reach the daemon: it runs on another
   * machine. */
  redirectUrl?: string | null;
}

/** A login that waits for the user's browser. */
export interface McpLogin {
  /** Time after which the login is abandoned. */
  expiresAt: Timestamp;
  /** Id of the login. */
  loginId: McpLoginId;
  /** Address that the user opens in a browser. */
  url: string;
}

export type McpLoginId = string;

/** An MCP server of the configuration. */
export interface McpServerInfo {
  /** True if a login to it is stored. */
  loggedIn: boolean;
  /** Name of the server in the configuration. */
  name: string;
  /** State of its connection. */
  state: McpServerState;
  /** Number of its tools that can be called. */
  tools: number;
  /** Reason why it cannot be used, with the way out. */
  error?: string | null;
  /** Its address without query; absent for a program. */
  url?: string | null;
}

/** Parameters that name an MCP server of the configuration. */
export interface McpServerRef {
  /** Name of the server in the configuration. */
  name: string;
}

/** State of an MCP server of the configuration. */
export type McpServerState =
  /** The server was started and has not answered yet. */
  | "starting"
  /** Calls of its tools reach the server. */
  | "connected"
  /** The server refuses calls without a login. */
  | "login_required"
  /** The server cannot be reached, for the reason in `error`. */
  | "failed"
  /** The configuration switches the server off. */
  | "disabled";

/** Result of a change to the store. */
export interface MemoryChange {
  /** Size of the text in bytes after the change; 0 when the entry was deleted. */
  bytes: number;
  /** Message in one sentence for a person. */
  message: string;
  /** Name of the changed entry. */
  name: string;
}

/** An entry without its text. */
export interface MemoryEntry {
  /** Size of the text in bytes. */
  bytes: number;
  /** True when the entry cannot be changed or deleted through Cairn: its name begins with
   * `fix-`. */
  fixed: boolean;
  /** Keywords of the entry as a list. */
  keywords: Array<string>;
  /** Time of the last write. */
  modified: Timestamp;
  /** Sorted keywords joined by `_`: the name of the entry's file without `.md`. */
  name: string;
  /** Part of the text that matched the search, in one line. */
  excerpt?: string | null;
  /** True for a general entry, which every project reads and no tool changes. */
  general?: boolean;
}

/** A keyword and its frequency. */
export interface MemoryKeyword {
  /** Number of entries with the keyword. */
  entries: number;
  /** The keyword as a word. */
  keyword: string;
}

/** An entry with its text. */
export interface MemoryText {
  /** Text of the entry. */
  content: string;
  /** True when the entry cannot be changed or deleted. */
  fixed: boolean;
  /** Name of the entry. */
  name: string;
  /** True for a general entry, which every project reads and no tool changes. */
  general?: boolean;
}

/** State of the copying of records. */
export interface MirrorStatus {
  /** Records that the broker confirmed since the daemon's start. */
  confirmed: number;
  /** Messages that the broker refused because of their order. */
  refused: number;
  /** Sessions with records that the broker does not have yet. */
  waiting: number;
  /** Reason why no record is copied. */
  error?: string | null;
}

/** Treatment of times at which the daemon was off. */
export type MissedRuns =
  /** One run follows when the daemon starts, however many were missed. */
  | "once"
  /** No run follows; the times are listed. */
  | "skip";

/** A complete answer of a model. */
export interface ModelAnswer {
  /** Milliseconds until the first piece arrived. */
  firstMillis: number;
  /** Milliseconds until the answer was complete. */
  millis: number;
  /** Model that gave the answer. */
  model: ModelChoice;
  /** SHA-256 (hex) of the request: system text, messages and tools. */
  requestDigest: string;
  /** Id of the run. */
  runId: RunId;
  /** Tokens per second during the answer; 0 when it was too short to measure. */
  tokensPerSecond: number;
  /** Token usage by the provider's count, or by the daemon's if the provider reports none. */
  usage: TokenUsage;
  /** Tool calls that the model requests. */
  calls?: Array<ToolUse>;
  /** Context size of the model in tokens, if known. */
  contextTokens?: number | null;
  /** Reason why the model stopped; absent when the answer was cut off. */
  finish?: FinishReason | null;
  /** Sequence number of the latest `steered` record included in the request; 0 if none. */
  heardSeq?: number;
  /** Reference to the raw bytes of the answer, for replay. */
  raw?: BlobRef | null;
  /** Reasoning that the provider requires back with the conversation. */
  reasoning?: ProviderReasoning | null;
}

/** The model that a session uses. */
export interface ModelChoice {
  /** Name of the model at the provider. */
  model: string;
  /** Name of the provider in Cairn. */
  provider: string;
  /** URL of the endpoint, when it differs from the configured one. */
  endpoint?: string | null;
}

/** A model that a provider offers. */
export interface ModelInfo {
  /** The provider's name of the model. */
  model: string;
  /** Cairn's name of the provider: `ollama`, `openai`, … */
  provider: string;
  /** Context size of the model in tokens, if it is known. */
  contextTokens?: number | null;
  /** True if the model reads images; absent if that is not known. */
  images?: boolean | null;
  /** Maximum tokens of an answer, if it is known. */
  maxOutputTokens?: number | null;
  /** Price of the model, if it is known. */
  price?: ModelPrice | null;
  /** True if the model reasons before it answers; absent if that is not known. */
  reasoning?: boolean | null;
  /** Size of the weights in bytes, if the provider reports it. */
  sizeBytes?: number | null;
  /** True if the model calls tools; absent if that is not known. */
  tools?: boolean | null;
}

/** Parameters of the method `model.list`. */
export interface ModelListParams {
  /** Name of the provider; the configured one when omitted. */
  provider?: string | null;
}

/** Price of a model in US dollars for a million tokens. */
export interface ModelPrice {
  /** Price of the prompt's tokens. */
  input: number;
  /** Price of the answer's tokens. */
  output: number;
  /** Price of the prompt's tokens that are read from the provider's cache. */
  cached?: number | null;
}

/** Method that matches names. */
export type NameMatch =
  /** The name equals the query. */
  | "exact"
  /** The name begins with the query. */
  | "prefix"
  /** The name is similar to the query. */
  | "fuzzy";

/** Parameters of the method `permission.narrow`. */
export interface NarrowParams {
  /** The rule, as returned by `permission.list`. */
  rule: string;
  /** The rule that replaces it. It must cover nothing that the first one does not. */
  to: string;
  /** Folder of a project: only the rule of that project is replaced. */
  project?: string | null;
}

/** The part of an answer that `maxTokens` left out. */
export interface Omitted {
  /** Description of a request that returns the omitted part. */
  hint: string;
  /** Number of results that are neither in `items` nor in the text. */
  items: number;
  /** Number of lines of the named results that the text leaves out. */
  lines: number;
  /** Value of `offset` that continues the answer, if results were left out. */
  nextOffset?: number | null;
}

/** Client, run and tool that caused an entry, as far as known. */
export interface Origin {
  /** Name of the client that made the request. */
  client?: string | null;
  /** Id of the run that the entry belongs to. */
  runId?: RunId | null;
  /** Name of the tool that produced the entry. */
  tool?: string | null;
}

/** Outcome of a turn. */
export type Outcome =
  /** The model finished its answer. */
  | "completed"
  /** The turn failed; `error` holds the reason. */
  | "failed"
  /** A client cancelled the turn. */
  | "cancelled"
  /** A call was finally denied, or no approver was available. */
  | "denied"
  /** The time limit was exceeded. A turn that exceeds its token limit ends as `failed` with the
   * reason `budget_exceeded`. */
  | "timed_out";

/** Overview that a model wrote; lines of the tree bear out every statement. */
export interface Overview {
  /** Number of citations that were dropped: no such line, or none of the statement's words near it. */
  droppedCitations: number;
  /** Number of statements that were dropped because none of their citations was valid. */
  droppedStatements: number;
  /** Statements in reading order, at most 12. */
  statements: Array<Statement>;
}

/** A range of lines in a packed text. */
export interface PackedLines {
  /** Last line of the range, inclusive. */
  endLine: number;
  /** Index in `items` of the result in whose file the lines are. */
  item: number;
  /** First line of the range, starting at 1. */
  startLine: number;
}

/** An answer as text of bounded size: for each result its location and its most relevant lines,
 * with `…` and the number of lines where some are left out. */
export interface PackedText {
  /** Ranges of lines that `text` contains. */
  lines: Array<PackedLines>;
  /** Complete text, best result first. Locations are relative to the root if one root was
   * searched, absolute otherwise. */
  text: string;
  /** Upper estimate of the tokens of `text`, at most `maxTokens`. */
  tokens: number;
}

/** One page of a list. */
export interface PageOfApproval {
  /** Entries of the page. */
  data: Array<Approval>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfAuditEntry {
  /** Entries of the page. */
  data: Array<AuditEntry>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfBackgroundCommand {
  /** Entries of the page. */
  data: Array<BackgroundCommand>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfDevice {
  /** Entries of the page. */
  data: Array<Device>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfFleetRun {
  /** Entries of the page. */
  data: Array<FleetRun>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfGrantedRule {
  /** Entries of the page. */
  data: Array<GrantedRule>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfMcpServerInfo {
  /** Entries of the page. */
  data: Array<McpServerInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfMemoryEntry {
  /** Entries of the page. */
  data: Array<MemoryEntry>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfMemoryKeyword {
  /** Entries of the page. */
  data: Array<MemoryKeyword>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfModelInfo {
  /** Entries of the page. */
  data: Array<ModelInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfPluginInfo {
  /** Entries of the page. */
  data: Array<PluginInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfProviderInfo {
  /** Entries of the page. */
  data: Array<ProviderInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfRootStatus {
  /** Entries of the page. */
  data: Array<RootStatus>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfSchedule {
  /** Entries of the page. */
  data: Array<Schedule>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfSession {
  /** Entries of the page. */
  data: Array<Session>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfSkillInfo {
  /** Entries of the page. */
  data: Array<SkillInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfToolInfo {
  /** Entries of the page. */
  data: Array<ToolInfo>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfUnattendedRun {
  /** Entries of the page. */
  data: Array<UnattendedRun>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** One page of a list. */
export interface PageOfWorktree {
  /** Entries of the page. */
  data: Array<Worktree>;
  /** Cursor of the next page; absent on the last. */
  nextCursor?: string | null;
}

/** Page parameters of lists. */
export interface PageParams {
  /** Includes archived entries in the list. */
  archived?: boolean;
  /** Cursor from the `nextCursor` of the previous page. */
  cursor?: string | null;
  /** Lists only entries whose id begins or ends with this, 4 to 36 characters; `ses_` may be
   * omitted at the beginning. */
  id?: string | null;
  /** Maximum number of entries, at most 500. */
  limit?: number | null;
}

/** Parameters of the method `pair.begin`. */
export interface PairBeginParams {
  /** Rights of the new device, all of which the caller must have. */
  rights: Array<Right>;
  /** Name for the device; the device's own name when omitted. */
  name?: string | null;
}

/** Answer of `pair.begin`: a person enters it on the other machine. */
export interface PairOffer {
  /** `host:port` of each listener for devices. */
  addresses: Array<string>;
  /** Code of eight digits, valid for one pairing. */
  code: string;
  /** Time at which the code expires. */
  expiresAt: Timestamp;
  /** Hash of the daemon's public key. */
  key: string;
  /** Number of wrong attempts after which the code becomes void. */
  tries: number;
  /** SHA-256 of the listener's certificate, which browsers show with their warning. */
  certificate?: string | null;
  /** Path of the viewer on each address, with a code behind `#` that pairs one browser; it is
   * valid as long as `code`, and instead of it. */
  page?: string | null;
}

/** State of a pairing. */
export type PairState =
  /** No code was requested yet. */
  | "none"
  /** A code waits for its device. */
  | "waiting"
  /** A device is paired; the code is used up. */
  | "paired"
  /** Too many wrong attempts made the code void. */
  | "void"
  /** No device used the code in time. */
  | "expired"
  /** The pairing was cancelled. */
  | "cancelled";

/** Answer of `pair.status` and `pair.cancel`. */
export interface PairStatus {
  /** State of the latest code. */
  state: PairState;
  /** Number of attempts that remain. */
  triesLeft: number;
  /** Device that used the code. */
  device?: Device | null;
}

/** One part of a user's message. */
export type Part =
  /** A part of plain text. */
  | {
    type: "text";
    /** Text of the part. */
    text: string;
  }
  /** An image, for models that accept images. */
  | {
    type: "image";
    /** Bytes of the image in base64. */
    data: string;
    /** MIME type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
    mime: string;
  };

/** One item of the agent's task list. */
export interface PlanItem {
  /** Text of the item. */
  text: string;
  /** Status of the item: `pending`, `in_progress` or `done`. */
  status?: PlanStatus;
}

/** Status of a task. */
export type PlanStatus =
  /** The task is not started. */
  | "pending"
  /** The task is in progress. */
  | "in_progress"
  /** The task is done. */
  | "done";

/** Planner of an explore. */
export type PlannerKind =
  /** The built-in planner alone: deterministic, without a model. */
  | "default"
  /** The built-in planner, followed by the session's model with the results so far. */
  | "model";

/** A folder of skills, MCP servers, commands and hooks. */
export interface PluginInfo {
  /** Path of its folder. */
  folder: string;
  /** Name of the plugin. */
  name: string;
  /** Names of its commands. */
  commands?: Array<string>;
  /** Description in one line. */
  description?: string;
  /** Reason why it is not loaded. */
  error?: string | null;
  /** Events that its hooks handle. */
  hooks?: Array<string>;
  /** Names of its MCP servers. */
  mcpServers?: Array<string>;
  /** Names of its skills. */
  skills?: Array<string>;
  /** Version in its author's numbering. */
  version?: string;
}

/** State of a pool. */
export interface PoolStatus {
  /** Number of runs that daemons have taken and not finished. */
  active: number;
  /** Names of the connected daemons that take its runs. */
  daemons: Array<string>;
  /** Name of the pool. */
  name: string;
  /** Number of runs that no daemon has taken. */
  queued: number;
}

/** The exact effects of a call. */
export interface Preview {
  /** Summary in one line. */
  summary: string;
  /** Paths that a command acts by as they were at the request: its working folder, the scripts
   * that it runs, the files that its redirections write. The command does not start when they differ. */
  bound?: Array<BoundPath>;
  /** The command line, for a shell call. */
  command?: string | null;
  /** The change as a unified diff, cut at 64 KiB with a note in its text. */
  diff?: string | null;
  /** Domains that the call can reach without a further approval, as patterns. */
  domains?: Array<string>;
  /** Working folder of the command, relative to the root. */
  folder?: string | null;
  /** True if the call uses the network. */
  network?: boolean;
  /** Paths that the call touches, relative to the root. */
  paths?: Array<string>;
  /** Warnings for the approver, such as a missing sandbox or a file that was not read before. */
  warnings?: Array<string>;
}

/** A package, crate or module of the repository. */
export interface Project {
  /** Kind of project: `cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, … */
  kind: string;
  /** Path of the manifest. */
  manifest: string;
  /** Name in the manifest. */
  name: string;
  /** Description in the manifest. */
  description?: string | null;
}

/** Commands of a project, most trusted first. */
export interface ProjectCommands {
  /** Commands that build the project. */
  build: Array<string>;
  /** Commands that run the project. */
  run: Array<string>;
  /** Commands that test the project. */
  test: Array<string>;
  /** Commands that format the code. */
  format?: Array<string>;
  /** Commands that check the style or types of the code. */
  lint?: Array<string>;
  /** The file that states each command. */
  sources?: Record<string, string>;
}

/** Parameters of the method `memory.keywords`. */
export interface ProjectMemoryKeywordsParams {
  /** Maximum number of keywords: 200 by default, at most 500; the most frequent first. */
  limit?: number | null;
  /** Folder of the project, absolute; without it only general entries are counted. */
  project?: string | null;
}

/** Parameters of the method `memory.list`. */
export interface ProjectMemoryListParams {
  /** Cursor from an earlier page. */
  cursor?: string | null;
  /** Entries per page: 50 by default, at most 200. */
  limit?: number | null;
  /** Folder of the project, absolute; without it only general entries are listed. */
  project?: string | null;
}

/** Parameters of `memory.load` and `memory.delete`. */
export interface ProjectMemoryRef {
  /** Keywords of the entry in any order, or its name. */
  keywords: string;
  /** Folder of the project, absolute; without it the entry is a general one. */
  project?: string | null;
}

/** Parameters of the method `memory.search`.
 * 
 * Only a method can name a project: a tool works in the project of its session. */
export interface ProjectMemorySearchParams {
  /** Text to search for. */
  query: string;
  /** Cursor from an earlier page. */
  cursor?: string | null;
  /** Results per page: 10 by default, at most 20. */
  limit?: number | null;
  /** Folder of the project, absolute; without it only general entries are searched. */
  project?: string | null;
}

/** Parameters of `memory.save` and `memory.append`. */
export interface ProjectMemoryWriteParams {
  /** Text to write; at most 256 KiB, including the existing text of the entry. */
  content: string;
  /** Keywords of the entry, in any order: 1 to 8 words. They are its only name. */
  keywords: string;
  /** Folder of the project, absolute; without it the entry is a general one. */
  project?: string | null;
}

/** Parameters of the method `prompt.append`. */
export interface PromptAppendParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Text appended after the tools' own texts; at most 16 KiB of it are used. */
  text: string;
}

/** Parameters of the method `prompt.set`. */
export interface PromptSetParams {
  /** Id of the session, whose conversation is cleared. */
  sessionId: SessionId;
  /** Text that replaces the built-in base; an empty text removes the base. When omitted, the
   * built-in base is restored and appended text is removed. */
  system?: string | null;
}

/** Parameters of the method `prompt.show`. */
export interface PromptShowParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Permissions and limits of the turn whose text is returned; they decide which tools it lists. */
  policy?: ExecutionPolicy | null;
}

/** The resolved system text of a session. */
export interface PromptShown {
  /** The text as the model receives it. */
  system: string;
}

/** Parameters of the method `provider.current`. */
export interface ProviderCurrentParams {
  /** Id of the session; the daemon's default model when omitted. */
  sessionId?: SessionId | null;
}

/** A provider as clients see it. */
export interface ProviderInfo {
  /** True if the provider can currently be called. */
  available: boolean;
  /** True if requests leave this machine. */
  external: boolean;
  /** Name of the provider. */
  name: string;
  /** Name of the model used when a request names none. */
  defaultModel?: string | null;
  /** URL of the provider's endpoint. */
  endpoint?: string | null;
  /** True if the provider accepts images, although a model may still refuse them. Always false
   * for an unavailable provider. */
  images?: boolean;
  /** Reason why the provider is unavailable. */
  reason?: string | null;
}

/** Reasoning of an answer in the provider's own form: signed or encrypted, of use to this provider's
 * model only, and to no other one. */
export interface ProviderReasoning {
  /** Items in the order of their arrival. */
  items: Array<ReasoningItem>;
  /** The provider's name of the model. */
  model: string;
  /** Cairn's name of the provider. */
  provider: string;
}

/** Answer of the method `provider.set`. */
export interface ProviderSet {
  /** Name of the model at the provider. */
  model: string;
  /** Name of the provider in Cairn. */
  provider: string;
  /** Context size of the model in tokens, if known. */
  contextTokens?: number | null;
  /** URL of the endpoint, when it differs from the configured one. */
  endpoint?: string | null;
  /** Warnings for the user, such as a smaller context than before. */
  warnings?: Array<string>;
}

/** Parameters of the method `provider.set`. */
export interface ProviderSetParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** URL of another endpoint, to which no key configured for the regular one is sent. */
  endpoint?: string | null;
  /** Name of the model; the provider's default when omitted. */
  model?: string | null;
  /** Name of the provider; the session's own when omitted. */
  provider?: string | null;
}

/** Kind of a query. Each kind has its own candidates and weights. */
export type QueryKind =
  /** One identifier, possibly qualified: `TypeAdapter`, `Foo::bar`, `parse_header()`. The
   * definitions of exactly that name come first. */
  | "identifier"
  /** One path, possibly with a line: `src/main.rs:42`. */
  | "path"
  /** A question about use (`how do I run this with docker`), which documents answer. */
  | "use"
  /** Words, a sentence, or another question. */
  | "text"
  /** A text of several lines: an issue, a log, a stack trace. Its title, the names, paths and
   * messages in it count more than the rest. */
  | "issue";

/** One item of a provider's reasoning. */
export interface ReasoningItem {
  /** Number of the answer's tool calls before the item. */
  beforeCall: number;
  /** The item as the provider sent it. */
  item: unknown;
}

/** Certainty that a reference means the definition. */
export type ReferenceConfidence =
  /** Scopes and imports lead to it. */
  | "exact"
  /** Types that are written in the file, or the only definition of the name, lead to it. */
  | "likely"
  /** A member of a value whose type is not known. */
  | "ambiguous";

/** A reference to a definition. */
export interface ReferenceItem {
  /** Column in bytes, starting at 0. */
  column: number;
  /** Certainty that the definition is meant. */
  confidence: ReferenceConfidence;
  /** Use that it makes of the definition. */
  kind: ReferenceUse;
  /** Line of the reference, starting at 1. */
  line: number;
  /** Path relative to the root. */
  path: string;
  /** Text of the line, shortened to 300 characters. */
  text: string;
  /** Definition that contains the reference. */
  enclosing?: SymbolRef | null;
}

/** Use that a reference makes of a definition. */
export type ReferenceUse =
  /** The definition itself, or a declaration of it. */
  | "definition"
  /** A statement that imports it. */
  | "import"
  /** A call of it. */
  | "call"
  /** A use as a type. */
  | "type"
  /** An assignment to it. */
  | "write"
  /** Any other use, such as passing it on. */
  | "read";

/** Answer of the method `search.references`. */
export interface ReferencesAnswer {
  /** True if imports and symbols are currently indexed for the root. */
  complete: boolean;
  /** Definition whose references these are. */
  definition: SymbolItem;
  /** References by path, then by line. */
  items: Array<ReferenceItem>;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** True if there are more than `k`, or more candidate files than were read. */
  truncated: boolean;
  /** Other definitions of the name, which `path` and `line` can select. */
  others?: Array<SymbolItem>;
}

/** Parameters of the method `search.references`. */
export interface ReferencesParams {
  /** Maximum number of references, 1 to 2,000. */
  k?: number;
  /** Kinds of references to return; all when empty. */
  kinds?: Array<ReferenceUse>;
  /** Line of the definition in `path`, starting at 1; the innermost definition around it is used. */
  line?: number | null;
  /** File with the definition, relative to the root or absolute. */
  path?: string | null;
  /** Root to search: its id or path; needed when several roots are declared. */
  root?: string | null;
  /** Name of the definition, as `name` or `Type.name`; with `path` the one in that file. */
  symbol?: string | null;
}

/** A step whose result differed in the replay. */
export interface ReplayDifference {
  /** Value in the replay. */
  now: string;
  /** Location in the step, as a JSON pointer. */
  path: string;
  /** Value in the recorded trace. */
  recorded: string;
  /** Sequence number of the record concerned; 0 when none is. */
  seq: number;
  /** Kind of the step. */
  what: string;
  /** The file that the differing value is about, relative to the root, if it is about one. */
  file?: string | null;
}

/** Parameters of the method `trace.replay`. */
export interface ReplayParams {
  /** Id of the session to replay. */
  traceId: SessionId;
  /** Folder to replay in, which must be a declared root; the session's own root when omitted. */
  root?: string | null;
}

/** Answer of the method `trace.replay`. */
export interface ReplayReport {
  /** Number of compared steps. */
  compared: number;
  /** True if all compared steps were identical. */
  identical: boolean;
  /** Id of the session in which it was replayed. */
  replay: SessionId;
  /** Id of the session that was replayed. */
  traceId: SessionId;
  /** Number of all such files. */
  changedFileCount?: number;
  /** Files of an explore's root that are not as they were when it was recorded, at most 50. */
  changedFiles?: Array<ChangedFile>;
  /** The first step that differed. */
  first?: ReplayDifference | null;
}

/** Answer to an approval, with its author. */
export interface Resolution {
  /** Time of the answer. */
  at: Timestamp;
  /** Author of the answer: a client's name, `deadline` or `cancelled`. */
  by: string;
  /** The decision that was made. */
  decision: ApprovalDecision;
  /** Rules that were granted instead of the approval's own. */
  pattern?: Array<string> | null;
  /** Reason for the decision; shown to the model when the call is denied. */
  reason?: string | null;
}

/** Parameters of the method `permission.revoke`. */
export interface RevokeParams {
  /** The rule, as returned by `permission.list`. */
  rule: string;
  /** Folder of a project: only the rule of that project is revoked. */
  project?: string | null;
}

/** A right that a method requires of a client. */
export type Right =
  /** Read the state and follow events. */
  | "observe"
  /** Start and control work. */
  | "prompt"
  /** Answer requests for approval. */
  | "approve"
  /** Change the daemon's state and configuration. */
  | "admin";

/** Id of an indexed root: `root_` and the first 16 hex digits of the SHA-256 of its canonical path,
 * so that the same folder retains its index. */
export type RootId = string;

/** Parameters that name a root by its id or its absolute path. */
export interface RootRef {
  /** Root id or absolute path. */
  root: string;
  /** Retry key, and name for `index.progress` where work follows. */
  requestId?: string | null;
}

/** State of the index of one root. */
export interface RootStatus {
  /** Bytes of text in the indexed files. */
  bytes: number;
  /** Number of indexed chunks. */
  chunks: number;
  /** Counter that grows by one with each committed batch of changes. */
  clock: number;
  /** True when text, vectors and symbols are all up to date with the last scan. */
  complete: boolean;
  /** Name of the embedding model. */
  embedder: string;
  /** Number of indexed files. */
  files: number;
  /** Indexed files by language. */
  languages: Record<string, number>;
  /** Canonical path of the root. */
  path: string;
  /** Files waiting to be indexed. */
  pending: number;
  /** Id of the root. */
  root: RootId;
  /** Number of skipped files by reason: `binary`, `too_large`, `generated`, `unreadable`,
   * `invalid_name`, … */
  skipped: Record<string, number>;
  /** Current state of the index. */
  state: IndexState;
  /** Number of files whose symbols are indexed. */
  symbolFiles: number;
  /** Number of indexed definitions. */
  symbols: number;
  /** Number of chunks with a vector. */
  vectors: number;
  /** Detection of changes: immediate (`watching`), by sweeps only (`polling`) or none (`off`). */
  watch: string;
  /** Error of the last pass, if it failed. */
  error?: string | null;
}

/** Reason why a turn did not complete. */
export interface RunError {
  /** Advice on how to resolve the failure. */
  hint: string;
  /** Message for a person. */
  message: string;
  /** Stable reason, as in the error table. */
  reason: string;
  /** True if the same turn may succeed later. */
  retryable: boolean;
}

export type RunId = string;

/** Receipt of a started run. */
export interface RunReceipt {
  /** Id of the run. */
  runId: RunId;
  /** Sequence number of the run's durable `started` record. */
  seq: number;
  /** Id of the session to follow. */
  sessionId: SessionId;
}

/** Result of a turn. */
export interface RunResult {
  /** Id of the run. */
  runId: RunId;
  /** Id of the session. */
  sessionId: SessionId;
  /** Outcome of the turn. */
  status: Outcome;
  /** All tool calls in order. */
  toolTrace: Array<ToolTrace>;
  /** Id of the turn. */
  turnId: string;
  /** Token usage of all answers. */
  usage: TokenUsage;
  /** Reason why the turn did not complete. */
  error?: RunError | null;
  /** Last visible text of the model. */
  finalOutput?: string | null;
  /** Metadata that the client sent with the turn. */
  metadata?: Record<string, string>;
}

/** Parameters of the method `orchestrate.run.start`. */
export interface RunStartParams {
  /** Input of the turn. */
  input: Input;
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the turn, chosen by the client, 1 to 128 bytes: a repeated id returns the first
   * receipt. */
  turnId: string;
  /** Additional context for the model, placed before the input. */
  context?: TurnContext | null;
  /** Metadata that is stored with the turn and returned unchanged; at most 32 entries. */
  metadata?: Record<string, string>;
  /** Permissions and limits of the turn. */
  policy?: ExecutionPolicy | null;
}

/** State of a run. */
export type RunState =
  /** No run has started yet. */
  | "idle"
  /** The run is active. */
  | "running"
  /** The run finished with `completed`. */
  | "completed"
  /** The run finished with `stopped`. */
  | "stopped"
  /** The run finished with `error`. */
  | "failed"
  /** The daemon stopped during the run, which can be resumed. */
  | "interrupted";

/** Answer of the method `orchestrate.run.status`. */
export interface RunStatus {
  /** Sequence number of the newest record. */
  headSeq: number;
  /** Number of turns in the queue behind the active one. */
  queued: number;
  /** Id of the session. */
  sessionId: SessionId;
  /** State of the session. */
  state: RunState;
  /** Id of its latest turn's run. */
  runId?: RunId | null;
}

/** Answer of the method `sandbox.probe`. */
export interface SandboxProbe {
  /** True if a control group limits memory and processes of a command in total. */
  controlGroup: boolean;
  /** Limits of the confinement: actions that it does not prevent. */
  notes: Array<string>;
  /** True if system calls can be filtered. */
  seccomp: boolean;
  /** Confinement available: `full`, `weaker` or `none`. */
  tier: string;
  /** True if user namespaces can be created. */
  userNamespaces: boolean;
  /** Version text of bubblewrap; absent when it is not installed. */
  bubblewrap?: string | null;
  /** Version of the Landlock interface. */
  landlock?: number | null;
  /** Reason why the full tier is unavailable. */
  whyNotFull?: string | null;
}

/** Confinement of commands in a turn. */
export type SandboxUse =
  /** Commands are confined as the configuration says. */
  | "on"
  /** Commands run outside the sandbox. */
  | "off";

/** A request that starts at set times. */
export interface Schedule {
  /** Time at which it was added. */
  createdAt: Timestamp;
  /** The same times as a cron expression. */
  cron: string;
  /** The work of each run. */
  job: ScheduledJob;
  /** Treatment of times at which the daemon was off. */
  missed: MissedRuns;
  /** Id of the schedule. */
  scheduleId: ScheduleId;
  /** Name of the IANA time zone of these times. */
  timezone: string;
  /** Times as they were given. */
  when: string;
  /** Name of the client that added it. */
  client?: string | null;
  /** Its latest runs and skipped times, newest first, at most 20. */
  history?: Array<ScheduleEntry>;
  /** Next time at which it runs. */
  nextAt?: Timestamp | null;
}

/** Parameters of the method `schedule.add`. */
export interface ScheduleAddParams {
  /** The work of each run. */
  job: ScheduledJob;
  /** Times in words (`every weekday 7:00`), or as a cron expression of five fields. */
  when: string;
  /** Treatment of times at which the daemon was off; `once` when omitted. */
  missed?: MissedRuns;
  /** Name of the IANA time zone of these times; the daemon's when omitted. */
  timezone?: string | null;
}

/** A run of a schedule, or a time at which none started. */
export interface ScheduleEntry {
  /** Time for which it was scheduled; that of the request for `schedule.run`. */
  at: Timestamp;
  /** Outcome of the start. */
  outcome: ScheduleOutcome;
  /** Number of scheduled times that passed while the daemon was off, this one included. */
  missed?: number | null;
  /** Reason of a failure, for people. */
  reason?: string | null;
  /** Session of the run, if one was created. */
  sessionId?: SessionId | null;
}

export type ScheduleId = string;

/** Outcome of a scheduled time. */
export type ScheduleOutcome =
  /** A run started; its session has the rest. */
  | "started"
  /** The run could not be started. */
  | "failed"
  /** The run before it was still active. */
  | "overlapped"
  /** The daemon was off, and the schedule skips such times. */
  | "missed";

/** Parameters that name a schedule. */
export interface ScheduleRef {
  /** Id of the schedule. */
  scheduleId: ScheduleId;
}

/** The work of each run of a schedule. */
export interface ScheduledJob {
  /** The request, 1 byte to 64 KiB. */
  request: string;
  /** Declared root in which the runs work: a path or root id. */
  root: string;
  /** As `maxTurns` of `unattended.start`. */
  maxTurns?: number | null;
  /** As `maxUsd` of `unattended.start`, for each run. */
  maxUsd?: number | null;
  /** Permissions and limits of the turns. */
  policy?: ExecutionPolicy | null;
  /** As `until` of `unattended.start`. */
  until?: string | null;
  /** True if each run has a work tree of its own. */
  worktree?: boolean;
}

/** Answer of a search. */
export interface SearchAnswer {
  /** True if the index currently covers the complete scope. */
  complete: boolean;
  /** Results of the search, best first. */
  items: Array<SearchItem>;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** Missing or late parts (`vectors`, `symbols`, `indexing`, `rerank`, `script`); empty when the
   * answer is complete. `script`: the embedding table does not know the script of some words of
   * the query, so that these are compared as words only, and not at all by a semantic search. */
  degraded?: Array<string>;
  /** Kind of the query, which selects the weights. Only with `explain`. */
  kind?: QueryKind | null;
  /** Results that did not fit into `maxTokens`, if any. */
  omitted?: Omitted | null;
  /** Text of the answer within `maxTokens`, if that was given. */
  packed?: PackedText | null;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
  /** True if the items are the nearest ones but none of them contains much of the query, so that
   * they probably do not answer it. Never set for a semantic search. */
  weak?: boolean;
}

/** Filters of a search; a result must match all that are given. */
export interface SearchFilters {
  /** Glob patterns, of which a file matches any; a leading `!` excludes matching files. */
  globs?: Array<string>;
  /** True adds hidden files (`.github/…`, `.eslintrc`), by the same ignore rules; `.git` stays
   * left out. The first such request of a root indexes them. Not for `search.symbols`. */
  hidden?: boolean;
  /** Symbol kinds (`function`, `class`, …): only results inside such a symbol. */
  kinds?: Array<string>;
  /** Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names
   * (`c++`); a result matches any of them. */
  languages?: Array<string>;
  /** Path prefix relative to the root, compared by complete components. */
  pathPrefix?: string | null;
  /** Root ids or absolute root paths to search; all declared roots when empty. */
  roots?: Array<string>;
}

/** One result: a range of lines. */
export interface SearchItem {
  /** Index clock of the root when the file was indexed. */
  clock: number;
  /** SHA-256 (hex) of the file as indexed. */
  contentHash: string;
  /** Last line of the range, inclusive. */
  endLine: number;
  /** Path relative to its root, with `/` between components. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Score, higher is better; comparable within one answer only. */
  score: number;
  /** First line, starting at 1. */
  startLine: number;
  /** True when the file on disk differs from the indexed one. */
  changed?: boolean;
  /** Contribution of each feature to the score, largest first; the contributions add up to the
   * score. Only with `explain`. */
  explain?: Array<Share>;
  /** Byte ranges in `text` that match words of the query. */
  highlights?: Array<[number, number]>;
  /** Language of the file, if known. */
  lang?: string | null;
  /** Definition that contains the result, if known. */
  symbol?: SymbolRef | null;
  /** Text of the result, if requested. */
  text?: string | null;
  /** Line number of the first line of `text`, if context moved it. */
  textStartLine?: number | null;
}

/** Parameters of `search.lexical`, `search.semantic` and `search.hybrid`. */
export interface SearchParams {
  /** Words, an identifier, a path, a question or the text of an issue; at most 64 KiB. */
  query: string;
  /** Lines of context around the text, at most 50. */
  contextLines?: number;
  /** True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
   * of an issue) up to three times. */
  diversify?: boolean | null;
  /** Returns the kind of the query, and the contribution of each feature to the score of each
   * item. */
  explain?: boolean;
  /** Filters that restrict the scope. */
  filters?: SearchFilters | null;
  /** Fusion of the two lists of a hybrid search. */
  fusion?: Fusion | null;
  /** Returns the text of each item. */
  includeText?: boolean;
  /** Maximum number of results, 1 to 200. */
  k?: number;
  /** Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
   * `items` those results that it names, without a text of their own. */
  maxTokens?: number | null;
  /** Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only. */
  mmr?: number | null;
  /** Number of best results to skip, which continues an answer; `offset` + `k` is at most 200. */
  offset?: number;
  /** Name for `search.partial` notifications; none are sent when omitted. */
  requestId?: string | null;
}

/** Payload of the live notification `search.partial`. */
export interface SearchPartial {
  /** List that the items come from. */
  corpus: Corpus;
  /** True on the last partial. */
  done: boolean;
  /** The items of the list, best first; empty on the last partial only. */
  items: Array<SearchItem>;
  /** The `requestId` of the search. */
  requestId: string;
  /** Root that the list is of; omitted on the last partial, which has the answer of all roots. */
  root?: RootId | null;
}

/** Capabilities of a daemon. */
export interface ServerCapabilities {
  /** Methods available on this connection. */
  methods: Array<string>;
  /** Notifications that the daemon sends. */
  notifications: Array<string>;
}

/** Name, version and instance of the daemon. */
export interface ServerInfo {
  /** Id of this start of the daemon. */
  instanceId: InstanceId;
  /** Name of the server, always `cairn`. */
  name: string;
  /** Version of the daemon's binary. */
  version: string;
}

/** State of a session. */
export interface Session {
  /** Time at which the session was created. */
  createdAt: Timestamp;
  /** Sequence number of the newest record; 0 when there is none. */
  headSeq: number;
  /** Id of the session, which is also its trace id. */
  sessionId: SessionId;
  /** State of the latest run. */
  state: RunState;
  /** Title of the session. */
  title: string;
  /** Time at which the log last grew. */
  updatedAt: Timestamp;
  /** True if the session is archived, which hides it from lists. */
  archived?: boolean;
  /** Root in which the session's commands work. */
  root?: string | null;
  /** The work tree in which it works; set in the answer of `session.create` alone. */
  worktree?: Worktree | null;
}

/** Parameters of the method `session.create`. */
export interface SessionCreateParams {
  /** Revision at which the branch of a new work tree begins; the current commit if absent. */
  base?: string | null;
  /** Branch of the work tree: the name of the new one (`cairn/` and a random word if absent), or
   * that of the existing one. */
  branch?: string | null;
  /** Retry key of the request. */
  requestId?: string | null;
  /** Declared root in which the session's commands work: a path or root id. */
  root?: string | null;
  /** Title for people, at most 200 characters; the first line of the first turn's input if
   * absent or empty. */
  title?: string | null;
  /** Work tree of the repository in `root` in which the session works instead. */
  worktree?: WorktreeUse | null;
}

export type SessionId = string;

/** An MCP server of one session: a program, or an address. */
export interface SessionMcpServer {
  /** Name of the server, a part of the names of its tools. */
  name: string;
  /** Arguments of the program. */
  args?: Array<string>;
  /** Program of the server. */
  command?: string | null;
  /** Variables of the program, taken literally. */
  env?: Record<string, string>;
  /** Headers of every request, taken literally. */
  headers?: Record<string, string>;
  /** Address of the server, instead of a program. */
  url?: string | null;
}

/** Answer of the method `session.setMcpServers`. */
export interface SessionMcpServers {
  /** The servers and their state. */
  servers: Array<SessionMcpStatus>;
}

/** State of an MCP server of a session. */
export interface SessionMcpStatus {
  /** Name of the server. */
  name: string;
  /** Names of its tools in the session. */
  tools: Array<string>;
  /** Reason why it cannot be used. */
  error?: string | null;
}

/** Parameters that name a session. */
export interface SessionRef {
  /** Id of the session. */
  sessionId: SessionId;
}

/** Disk usage of one session. */
export interface SessionUsage {
  /** Bytes of its own records and of its blobs. Records that a fork has in common with its origin
   * count for the origin. */
  bytes: number;
  /** Id of the session. */
  sessionId: SessionId;
  /** Title of the session. */
  title: string;
  /** Time of the session's last record. */
  updatedAt: Timestamp;
  /** Root of the session, if it has one. */
  root?: string | null;
}

/** Parameters of the method `session.setMcpServers`. */
export interface SetMcpServersParams {
  /** The servers, at most 16, in place of those that were set before. */
  servers: Array<SessionMcpServer>;
  /** Id of the session. */
  sessionId: SessionId;
}

/** Contribution of one feature to a score. */
export interface Share {
  /** Name of the feature. `windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name` and
   * `exact` match words of the query in the window, its file, its path, the names in it, the
   * result itself and its name; `fileName` is set if the complete name of the file (of its
   * folder for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`
   * and `nameMeaning` are the similarity of the file's best window, the result and its name;
   * `line` is the part of the query, or of a line that it quotes, that one line covers, from
   * six tenths on; `definitionOf` marks the definition of the query's only name, and `literal`
   * a window that contains that name; `fileNames` counts the definitions of its file whose
   * names are in the query; `namedPath` is set if the file's path is in the query; `document`
   * marks a document; `definition`
   * marks a result that is a definition; `container` marks a type or module that contains
   * others; `size` is the length, up to ten lines; `rerank` is the similarity by the
   * re-scoring model; `repeat` is the reduction of a further result of the same file, with
   * the factor as its value; `prior` is the factor of the path when it is below 1, without
   * a share of its own. */
  feature: string;
  /** Part of the score: the value times its weight, times the factor of the path. */
  share: number;
  /** Value of the feature, mostly 0 to 1. */
  value: number;
}

/** A frozen index that several roots share. */
export interface SharedIndexUsage {
  /** Bytes of its folder on disk. */
  bytes: number;
  /** Ids of the declared roots whose indexes are upon it. */
  roots: Array<RootId>;
}

/** Content of a skill's `skill.json`; the skill's folder has the same name as its id. */
export interface SkillFile {
  /** Id of the skill: letters, digits, `-` and `_`, at most 64. */
  id: string;
  /** Description in one line. */
  description?: string;
  /** Rules that apply while the skill is enabled; they can only tighten the policy. */
  policy?: SkillPolicy;
  /** Instructions for the agent, at most 16 KiB; the file `prompt.md` beside it when absent. */
  promptBlock?: string | null;
  /** Names of the tools that the skill uses. The skill is disabled while all of them are
   * disabled or missing. */
  tools?: Array<string>;
  /** Version of the skill, in its author's numbering. */
  version?: string;
}

/** A skill as clients see it. */
export interface SkillInfo {
  /** True if the skill is part of the agent's instructions. */
  enabled: boolean;
  /** Content of the skill's file. */
  skill: SkillFile;
  /** Folder that the skill comes from; absent for a built-in skill. */
  folder?: string | null;
  /** Reason why the skill is disabled. */
  reason?: string | null;
}

/** Rules of a skill, in the syntax of `permissions`. */
export interface SkillPolicy {
  /** Rules for calls that require an approval. */
  confirm?: Array<string>;
  /** Rules for calls that are refused. */
  deny?: Array<string>;
}

/** A range of lines of a file. */
export interface Span {
  /** Last line returned; less than `startLine` when the file has no such line. */
  endLine: number;
  /** Path relative to its root. */
  path: string;
  /** First line that is returned. */
  startLine: number;
  /** Text of the lines, with invalid UTF-8 replaced. */
  text: string;
  /** True when a limit cut the range: 2,000 lines or 256 KiB. */
  truncated: boolean;
  /** True if the file differs from the given `contentHash`. */
  changed?: boolean | null;
  /** SHA-256 (hex) of the current file; absent for files over 8 MiB. */
  contentHash?: string | null;
  /** Number of lines of the file, when it was read to its end. */
  totalLines?: number | null;
}

/** Parameters of the method `content.getSpan`. */
export interface SpanParams {
  /** Last line of the range, inclusive. */
  end: number;
  /** Path, absolute or relative to `root` (to the session's root in a command). */
  path: string;
  /** First line, starting at 1. */
  start: number;
  /** Hash that a search returned; the answer then reports whether the file has changed since. */
  contentHash?: string | null;
  /** Lines of context before and after, at most 50. */
  context?: number | null;
  /** Root id or root path for a relative `path`; may be omitted when only one root is declared. */
  root?: string | null;
}

/** Statement of an overview. */
export interface Statement {
  /** Lines that bear it out, at least one. */
  citations: Array<Citation>;
  /** One or two sentences. */
  text: string;
}

/** Parameters of the method `orchestrate.run.steer`. */
export interface SteerParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Text that the model receives before its next answer; at most 16 KiB. */
  text: string;
}

/** Parameters of the method `orchestrate.subscribe`. */
export interface SubscribeParams {
  /** Id of the session. */
  sessionId: SessionId;
  /** Position to start at; the first record when omitted. */
  after?: After | null;
}

/** Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`. */
export interface SubscribeResult {
  /** Sequence number of the newest record. */
  headSeq: number;
  /** Sequence number of the oldest retained record. */
  oldestSeq: number;
  /** Id of the subscription, present in each of its notifications. */
  subscriptionId: SubscriptionId;
}

export type SubscriptionId = string;

/** A definition found in a file. */
export interface SymbolItem {
  /** Last line of the range, inclusive. */
  endLine: number;
  /** Kind of definition: `function`, `method`, `class`, `struct`, `enum`, `interface`, `type`,
   * `constant`, `module`, `macro`, … */
  kind: string;
  /** Language of the file. */
  lang: string;
  /** Name of the definition. */
  name: string;
  /** Path relative to its root. */
  path: string;
  /** Id of the root. */
  root: RootId;
  /** Match quality of the name, 0 to 1. */
  score: number;
  /** First line, starting at 1. */
  startLine: number;
  /** Name of the enclosing definition, if any. */
  container?: string | null;
}

/** Name and kind of a definition. */
export interface SymbolRef {
  /** Kind of definition: `function`, `method`, `class`, `struct`, … */
  kind: string;
  /** Name of the definition. */
  name: string;
}

/** Answer of the method `search.symbols`. */
export interface SymbolsAnswer {
  /** True if symbols are currently indexed for the complete scope. */
  complete: boolean;
  /** Definitions found, best first; those of an outline by line. */
  items: Array<SymbolItem>;
  /** Time spent, in microseconds. */
  tookUs: number;
  /** True if rules hide some of the requested paths, which are omitted. */
  restricted?: boolean;
}

/** Parameters of `search.symbols`: definitions by name, or the outline of a file. */
export interface SymbolsParams {
  /** Filters that restrict the scope. */
  filters?: SearchFilters | null;
  /** Maximum number of results, 1 to 200 (for an outline up to 2,000). */
  k?: number;
  /** Matching of names; the best of all three when omitted. */
  match?: NameMatch | null;
  /** File to outline, relative to the root or absolute. */
  path?: string | null;
  /** A name to search for; omit it and set `path` for the outline of a file. */
  query?: string | null;
}

/** Notification `orchestrate.synced`: the backlog was sent completely. */
export interface SyncedNotification {
  /** Sequence number of the last record sent. */
  seq: number;
  /** Id of the subscription. */
  subscriptionId: SubscriptionId;
}

export type Timestamp = string;

/** Token usage of one model call, or of several together. */
export interface TokenUsage {
  /** Tokens of the prompt, including cached ones. */
  inputTokens: number;
  /** Tokens of the answer. */
  outputTokens: number;
  /** Tokens of the prompt that were in the provider's cache. */
  cachedTokens?: number;
  /** Cost in millionths of a US dollar, of those calls whose price is known; absent if none is. */
  costMicroUsd?: number | null;
}

/** A call of a tool by name. */
export interface ToolCall {
  /** Name of the tool, as in `tool.list`. */
  name: string;
  /** Arguments that match the tool's input schema. */
  arguments?: unknown;
}

/** Parameters of the method `tool.call`. */
export interface ToolCallParams {
  /** Name of the tool. */
  name: string;
  /** Id of the session that records the call. */
  sessionId: SessionId;
  /** Arguments of the call. */
  arguments?: unknown;
}

/** Reason why a tool call failed. */
export interface ToolFailure {
  /** Message for a person. */
  message: string;
  /** Stable reason, as in the error table. */
  reason: string;
  /** True if the same call may succeed later. */
  retryable: boolean;
}

/** Description of a registered tool. */
export interface ToolInfo {
  /** Complete description of the tool. */
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: unknown;
  /** Name of the tool. */
  name: string;
  /** True when the tool uses the network. */
  network: boolean;
  /** True when the tool changes nothing outside Cairn's own state. */
  readOnly: boolean;
  /** True when the tool is not offered to models because another tool does the same for them. */
  hidden?: boolean;
  /** Short description in one line, for models. */
  short?: string;
}

/** Metadata of a tool's output. */
export interface ToolMeta {
  /** Duration of the call in milliseconds. */
  millis: number;
  /** Type of the `output`. */
  tag: string;
  /** True when the output was cut at a limit. */
  truncated: boolean;
}

/** Outcome of a tool call in a turn. */
export interface ToolOutcome {
  /** Id of the call. */
  callId: string;
  /** Duration of the call in milliseconds. */
  millis: number;
  /** Name of the tool. */
  name: string;
  /** Reference to a larger output; read it with `trace.blob`. */
  blob?: BlobRef | null;
  /** Files that the call changed. */
  changes?: Array<FileChange>;
  /** The failure, if the call failed. */
  error?: ToolFailure | null;
  /** The output, when it is at most 64 KiB. */
  output?: unknown;
  /** Type of the `output`. */
  tag?: string;
  /** True when the tool cut its output at a limit. */
  truncated?: boolean;
}

/** Result of a tool call. */
export interface ToolResult {
  /** Type of `output`, and its truncation. */
  meta: ToolMeta;
  /** True if the call succeeded. */
  ok: boolean;
  /** Output of the tool; `null` on failure. */
  output: unknown;
  /** The failure, if the call failed. */
  error?: ToolFailure | null;
}

/** One tool call of a turn. */
export interface ToolTrace {
  /** Id of the call. */
  callId: string;
  /** Duration in milliseconds, including the wait for an approval. */
  millis: number;
  /** Outcome of the call: `ok`, or the reason of its failure. */
  outcome: string;
  /** Name of the tool. */
  tool: string;
}

/** A tool call that the model requests. */
export interface ToolUse {
  /** Arguments of the call; a string when the model's text was not valid JSON, which the gate
   * then tries to repair. */
  arguments: unknown;
  /** The provider's id of the call, or a generated one if it has none; unique within a session. */
  id: string;
  /** Name of the tool. */
  name: string;
}

/** Names under which models are offered the tools for files, the web and memory. */
export type ToolsMode =
  /** Each tool by its own name. */
  | "split"
  /** `fs`, `web` and `memory`, which take the operation as an argument and replace the separate
   * tools. */
  | "unified"
  /** Both the separate and the unified tools. */
  | "both";

/** A file that is worth reading. */
export interface TopFile {
  /** Path of the file, relative to the root. */
  path: string;
  /** Number of files that refer to its definitions. */
  referringFiles: number;
  /** Share of the total centrality, 0 to 1. */
  score: number;
  /** Names of its most referenced definitions. */
  symbols: Array<string>;
  /** Reason to read it, as `event loop; 41 files depend on it`. */
  reason?: string;
}

/** Parameters of the method `trace.export`. */
export interface TraceExportParams {
  /** Id of the session (also accepted as `sessionId`). */
  traceId: SessionId;
  /** Cursor from the `nextCursor` of the previous part. */
  cursor?: string | null;
}

/** One part of an export as JSONL text; all parts in order form the complete file. */
export interface TraceExportPart {
  /** Lines with one JSON object each: a header, then the records, then the blobs that they refer
   * to by hash. */
  jsonl: string;
  /** Cursor of the next part; absent on the last. */
  nextCursor?: string | null;
}

/** Parameters of the method `trace.get`. */
export interface TraceGetParams {
  /** Id of the session. */
  traceId: SessionId;
  /** Sequence number after which records are returned. */
  after?: number;
  /** Maximum number of records, at most 500. */
  limit?: number | null;
}

/** Parameters of the method `trace.import`. */
export interface TraceImportParams {
  /** A complete export, or a part of one that ends after a complete line. The first part starts
   * with the header, each further one with the line after the last imported one. */
  jsonl: string;
}

/** Answer of the method `trace.get`. */
export interface TracePage {
  /** Records of the page. */
  data: Array<Envelope>;
  /** Value of `after` for the next page; absent on the last. */
  nextAfter?: number | null;
}

/** Parameters of the method `trust.get`. */
export interface TrustGetParams {
  /** Absolute path of the folder. */
  folder: string;
  /** Returns the differences from the trusted contents too. */
  diff?: boolean;
}

/** One item of a folder. */
export interface TrustItem {
  /** Its files, relative to the folder. */
  files: Array<string>;
  /** Kind of the item. */
  kind: TrustKind;
  /** Path of its file or folder, relative to the folder. */
  path: string;
  /** SHA-256 of the names and contents of its files, in hexadecimal. */
  sha256: string;
  /** State compared with the trusted content. */
  state: TrustState;
  /** Command lines that it runs. */
  commands?: Array<string>;
  /** The change from the trusted content as a unified diff, cut at 64 KiB; the complete text of
   * an item that is new. */
  diff?: string | null;
  /** Reason why it cannot be trusted, such as its size. */
  problem?: string | null;
  /** Parts for other programs, such as events of theirs, which are not run here. */
  unsupported?: Array<string>;
}

/** A thing that a folder brings and that runs, or that tells an agent what to do. */
export type TrustKind =
  /** Instructions for agents: `AGENTS.md` or `CLAUDE.md`. */
  | "instructions"
  /** The folder's own configuration, which may then loosen safety: `.cairn.json`. */
  | "settings"
  /** Hooks of a settings file, with the scripts that they name. */
  | "hooks"
  /** An agent plugin with all of its files. */
  | "plugin"
  /** A skill with all of its files. */
  | "skill";

/** Parameters of the method `trust.remove`. */
export interface TrustRemoveParams {
  /** Absolute path of the folder, which need not exist any more. */
  folder: string;
}

/** Answer of the method `trust.remove`. */
export interface TrustRemoved {
  /** True if the folder was trusted before. */
  removed: boolean;
}

/** Parameters of the method `trust.set`. */
export interface TrustSetParams {
  /** Absolute path of the folder. */
  folder: string;
  /** Items that are refused: they are not asked about again until they change. */
  refuse?: Array<TrustedContent>;
  /** Items that are trusted from now on. Their contents must still be these. */
  trust?: Array<TrustedContent>;
}

/** The state of an item compared with what was trusted. */
export type TrustState =
  /** Its content is the trusted one. */
  | "trusted"
  /** It was never trusted. */
  | "new"
  /** Its content differs from the trusted one: it is not used. */
  | "changed"
  /** This content was refused: it is not used, and not asked about again. */
  | "refused";

/** An item with exactly this content. */
export interface TrustedContent {
  /** Kind of the item. */
  kind: TrustKind;
  /** Path of its file or folder, relative to the folder. */
  path: string;
  /** The SHA-256 that `trust.get` answered. */
  sha256: string;
}

/** Context of a turn: a text, or items. */
export type TurnContext =
  /** Context of text alone. */
  | string
  /** Texts, files, selections and diagnostics. */
  | Array<ContextItem>;

/** Settings of one turn that override the configured ones. */
export interface TurnOverrides {
  /** Fill level of the context, 0 to 1, above which older turns are condensed, instead of
   * `context.compactionThreshold`. */
  compactionThreshold?: number | null;
  /** Maximum tokens of one answer, at least 1, instead of `llm.maxTokens`. */
  maxAnswerTokens?: number | null;
  /** Maximum tokens of the context, at least 1, instead of `context.maxTokens`. */
  maxContextTokens?: number | null;
  /** Maximum characters of a tool's output for the model, instead of
   * `context.maxToolOutputChars`. */
  maxToolOutputChars?: number | null;
  /** Tokens of the repository map, instead of `context.repoMapTokens`. */
  repoMapTokens?: number | null;
  /** Sampling temperature of the answers, 0 to 2, instead of `llm.temperature`. */
  temperature?: number | null;
}

/** Parameters that name an active turn; the session's current one when `turnId` is omitted. */
export interface TurnRef {
  /** Id of the session. */
  sessionId: SessionId;
  /** Id of the turn. */
  turnId?: string | null;
}

/** A run that goes on without a client, with its limits. */
export interface UnattendedRun {
  /** Maximum number of turns. */
  maxTurns: number;
  /** First line of its request. */
  request: string;
  /** Id of its session. */
  sessionId: SessionId;
  /** Time at which it started. */
  startedAt: Timestamp;
  /** Status of the run. */
  status: UnattendedStatus;
  /** Number of turns that started. */
  turns: number;
  /** Exit status of its latest check. */
  checkExitCode?: number | null;
  /** Time at which it ended. */
  finishedAt?: Timestamp | null;
  /** Maximum cost in US dollars. */
  maxUsd?: number | null;
  /** Reason for a status that is not success, for people. */
  reason?: string | null;
  /** Schedule that started it. */
  schedule?: ScheduleId | null;
  /** Command line that ends the run when it exits with 0. */
  until?: string | null;
}

/** Parameters of the method `unattended.start`. */
export interface UnattendedStartParams {
  /** The first turn. Later ones have its policy. */
  turn: RunStartParams;
  /** Maximum number of turns, 1 to 100; with `until` 10 when omitted, otherwise 1. */
  maxTurns?: number | null;
  /** Maximum cost of all turns in US dollars, by the known prices. */
  maxUsd?: number | null;
  /** Command line that runs in the sandbox after each turn. The run is complete when it exits
   * with 0; otherwise its output is the input of the next turn. */
  until?: string | null;
}

/** Status of an unattended run. */
export type UnattendedStatus =
  /** A turn or a check runs. */
  | "running"
  /** A turn waits for the answer to an approval. */
  | "waiting"
  /** The turn completed, or the check succeeded. */
  | "completed"
  /** A turn failed, or the check could not run. */
  | "failed"
  /** The number of turns or the budget is exhausted, and the check did not succeed. */
  | "exhausted"
  /** A client stopped it. */
  | "cancelled";

/** Parameters of the method `orchestrate.unsubscribe`. */
export interface UnsubscribeParams {
  /** Id of the subscription. */
  subscriptionId: SubscriptionId;
}

/** Parameters of the method `storage.usage`. */
export interface UsageParams {
  /** Number of sessions to list, largest first, at most 1,000; 10 if absent. */
  sessions?: number | null;
}

/** Answer of the method `viewer.link`. */
export interface ViewerLink {
  /** Seconds within which it must be opened, once. */
  expiresInSeconds: number;
  /** Path of the page on the daemon's address, with the code behind `#`, which browsers do not
   * send. */
  path: string;
}

/** A work tree that was created for a task. */
export interface Worktree {
  /** Hash of the commit at which it began. */
  base: string;
  /** Name of its branch. */
  branch: string;
  /** Path of the work tree, which is a declared root. */
  path: string;
  /** Path of the repository that it belongs to. */
  repository: string;
  /** Number of commits since its base; absent if its folder cannot be read. */
  commits?: number | null;
  /** Outcome of its set-up command; absent if none ran. */
  setup?: WorktreeSetup | null;
  /** Number of files with uncommitted changes; absent if its folder cannot be read. */
  uncommitted?: number | null;
}

/** Parameters of the method `worktree.create`. */
export interface WorktreeCreateParams {
  /** Declared root with the repository: a path or root id. */
  root: string;
  /** Revision at which the branch begins; the current commit if absent. */
  base?: string | null;
  /** Name of the branch to create; `cairn/` and a random word if absent. */
  branch?: string | null;
}

/** Changes of a work tree since its base. */
export interface WorktreeDiff {
  /** Unified diff of committed and uncommitted changes, cut at 1 MiB. */
  diff: string;
  /** Paths of the changed files. */
  paths: Array<string>;
  /** True when the diff was cut. */
  truncated: boolean;
}

/** Parameters that name a work tree. */
export interface WorktreeRef {
  /** Path of the work tree. */
  path: string;
}

/** Parameters of the method `worktree.remove`. */
export interface WorktreeRemoveParams {
  /** Path of the work tree. */
  path: string;
  /** True to lose uncommitted changes. */
  discard?: boolean;
}

/** Result of the method `worktree.remove`. */
export interface WorktreeRemoved {
  /** Name of its branch. */
  branch: string;
  /** True if the branch was removed too, because the repository's head has all of its commits. */
  branchRemoved: boolean;
}

/** Outcome of the set-up command of a work tree. */
export interface WorktreeSetup {
  /** The command line of `worktrees.setup`. */
  command: string;
  /** Reason why it did not run to its end. */
  error?: string | null;
  /** Exit status; absent if it did not run to its end. */
  exitCode?: number | null;
}

/** Work tree of a new session. */
export type WorktreeUse =
  /** A work tree that is created for it, and prepared by the command `worktrees.setup`. */
  | "new"
  /** A work tree that `worktree.list` lists: `root` is its path, or `branch` its branch. */
  | "existing";

/** Notifications of the daemon, with their params. */
export interface Notifications {
  "orchestrate.event": EventNotification;
  "orchestrate.synced": SyncedNotification;
  "orchestrate.lagged": LaggedNotification;
  "orchestrate.gone": GoneNotification;
  "index.progress": IndexProgress;
  "git.progress": GitProgress;
  "search.partial": AnyPartial;
  "approval.updated": ApprovalNotice;
}
