"""Types of the wire, as plain dictionaries."""
# Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

PROTOCOL_VERSIONS = ["1"]
"""Versions of the protocol that this client supports, best first."""

Reason: TypeAlias = Literal[
    "parse_error",
    "invalid_request",
    "method_not_found",
    "invalid_params",
    "internal",
    "cancelled",
    "overloaded",
    "not_initialized",
    "already_initialized",
    "incompatible_version",
    "too_large",
    "shutting_down",
    "disk_full",
    "storage_failed",
    "not_supported",
    "path_not_found",
    "path_outside_roots",
    "path_blocked",
    "not_a_directory",
    "not_a_file",
    "path_unreadable",
    "root_not_found",
    "root_ambiguous",
    "bad_pattern",
    "index_failed",
    "no_roots",
    "session_not_found",
    "session_busy",
    "request_conflict",
    "after_beyond_head",
    "gone",
    "subscription_not_found",
    "not_resumable",
    "blob_not_found",
    "bad_trace",
    "approval_not_found",
    "approval_resolved",
    "run_not_found",
    "session_exists",
    "unknown_tool",
    "tool_denied",
    "tool_failed",
    "tool_timed_out",
    "audit_failed",
    "network_denied",
    "sandbox_missing",
    "file_changed",
    "denied_by_user",
    "no_approver",
    "budget_exceeded",
    "turn_limit",
    "stuck",
    "plugin_refused",
    "mcp_server_not_found",
    "login_failed",
    "bad_url",
    "clone_failed",
    "authentication_required",
    "destination_exists",
    "git_failed",
    "revision_not_found",
    "model_unavailable",
    "model_not_found",
    "model_unauthorized",
    "model_rate_limited",
    "context_overflow",
    "model_malformed",
    "model_cut",
    "model_timed_out",
    "model_rejected",
    "provider_unknown",
    "external_llm_denied",
    "schema_mismatch",
    "unauthorized",
    "origin_denied",
    "host_denied",
    "right_missing",
    "remote_off",
    "not_paired",
    "pairing_refused",
    "device_not_found",
    "fleet_off",
    "broker_unreachable",
    "daemon_not_found",
    "pool_run_not_found",
]
"""Why a call failed: `error.data.reason`."""


class AddRootParams(TypedDict):
    """Parameters of the method `index.addRoot`."""

    path: str
    """Absolute path of a folder."""
    requestId: NotRequired[str | None]
    """Retry key, and name for `index.progress`."""

After: TypeAlias = (
    "int | "
    "LiveWord"
)
"""Position at which a subscription starts."""


class AgentCmdFsListDir(TypedDict):
    """Lists the entries of a folder."""

    type: Literal["fs_list_dir"]
    path: str
    """Path, absolute or relative to `root`."""
    depth: NotRequired[int]
    """Levels below the folder, 1 to 16."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`."""


class AgentCmdContentGetSpan(TypedDict):
    """Reads a bounded range of lines."""

    type: Literal["content_get_span"]
    end: int
    """Last line of the range, inclusive."""
    path: str
    """Path, absolute or relative to `root` (to the session's root in a command)."""
    start: int
    """First line, starting at 1."""
    contentHash: NotRequired[str | None]
    """Hash that a search returned; the answer then reports whether the file has changed since."""
    context: NotRequired[int | None]
    """Lines of context before and after, at most 50."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`; may be omitted when only one root is declared."""


class AgentCmdIndexAddRoot(TypedDict):
    """Declares a clone as a root and indexes it; a root that is already declared stays unchanged."""

    type: Literal["index_add_root"]
    path: str
    """Absolute path of the folder."""


class AgentCmdIndexBuild(TypedDict):
    """Updates the index of the session's root and waits until it is complete."""

    type: Literal["index_build"]
    maxConcurrency: NotRequired[int | None]
    """Maximum number of indexes that run at once, including this one; while more are running, the
    build waits for them first. Unlimited when omitted."""
    timeoutSeconds: NotRequired[int | None]
    """Maximum time to wait, in seconds, up to 600; the answer then holds the state reached."""


class AgentCmdSearchGrep(TypedDict):
    """Searches lines for a literal text or a regular expression."""

    type: Literal["search_grep"]
    pattern: str
    """Text, or a regular expression with `isRegex`; at most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around each match, at most 100."""
    countOnly: NotRequired[bool]
    """Counts only: `items` stays empty and `counts` has the lines per file."""
    cursor: NotRequired[str | None]
    """Cursor from the `nextCursor` of the previous page."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """Flags of the search: `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline`
    (`U`), `dot_all` (`s`), `invert` (`v`, lines that do not match). With `files` and
    `countOnly` nothing is searched: `counts` has each file of the scope, with 0 lines."""
    isRegex: NotRequired[bool]
    """True if `pattern` is a regular expression."""
    k: NotRequired[int]
    """Maximum number of lines, 1 to 10,000."""
    pathPrefix: NotRequired[str | None]
    """Restricts the search to files under this path."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications, each with the next lines; none are sent when
    omitted or with `countOnly`."""


class AgentCmdSearchSemantic(TypedDict):
    """Searches by meaning (dense vectors)."""

    type: Literal["search_semantic"]
    query: str
    """Words, an identifier, a path, a question or the text of an issue; at most 64 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
    of an issue) up to three times."""
    explain: NotRequired[bool]
    """Returns the kind of the query, and the contribution of each feature to the score of each
    item."""
    filters: NotRequired[SearchFilters | None]
    """Filters that restrict the scope."""
    fusion: NotRequired[Fusion | None]
    """Fusion of the two lists of a hybrid search."""
    includeText: NotRequired[bool]
    """Returns the text of each item."""
    k: NotRequired[int]
    """Maximum number of results, 1 to 200."""
    maxTokens: NotRequired[int | None]
    """Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
    `items` those results that it names, without a text of their own."""
    mmr: NotRequired[float | None]
    """Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only."""
    offset: NotRequired[int]
    """Number of best results to skip, which continues an answer; `offset` + `k` is at most 200."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class AgentCmdSearchHybrid(TypedDict):
    """Searches by words and by meaning, and fuses both lists."""

    type: Literal["search_hybrid"]
    query: str
    """Words, an identifier, a path, a question or the text of an issue; at most 64 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
    of an issue) up to three times."""
    explain: NotRequired[bool]
    """Returns the kind of the query, and the contribution of each feature to the score of each
    item."""
    filters: NotRequired[SearchFilters | None]
    """Filters that restrict the scope."""
    fusion: NotRequired[Fusion | None]
    """Fusion of the two lists of a hybrid search."""
    includeText: NotRequired[bool]
    """Returns the text of each item."""
    k: NotRequired[int]
    """Maximum number of results, 1 to 200."""
    maxTokens: NotRequired[int | None]
    """Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
    `items` those results that it names, without a text of their own."""
    mmr: NotRequired[float | None]
    """Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only."""
    offset: NotRequired[int]
    """Number of best results to skip, which continues an answer; `offset` + `k` is at most 200."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class AgentCmdGitClone(TypedDict):
    """Clones a repository into the workspaces folder."""

    type: Literal["git_clone"]
    remoteURL: str
    """URL of the repository: `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; it
    must not begin with `-`."""
    branch: NotRequired[str | None]
    """Branch to check out; the remote's default when omitted."""
    dest: NotRequired[str | None]
    """Name of the folder under the workspaces folder; derived from the URL when omitted."""
    requestId: NotRequired[str | None]
    """Retry key, and name for `git.progress` notifications."""


class AgentCmdGitStatus(TypedDict):
    """Returns branch, head and changed files of a repository."""

    type: Literal["git_status"]
    path: str
    """Path of a folder inside a declared root."""


class AgentCmdLlmCall(TypedDict):
    """Sends one request to a model."""

    type: Literal["llm_call"]
    prompt: str
    """Text of the request."""
    expectsType: NotRequired[str | None]
    """Registered type that the answer must match: `ExplorePlan` or `ExploreSummary`."""
    instructions: NotRequired[str | None]
    """System text of the request."""
    policy: NotRequired[LlmPolicy]
    """Limits and options of the model request."""
    provider: NotRequired[str | None]
    """Name of the provider; the session's own when omitted."""
    streamStructured: NotRequired[bool]
    """Emits a typed answer while it is written, as `structured_snapshot` events; requires
    `expectsType`."""


class AgentCmdToolCall(TypedDict):
    """Calls any other registered tool by its name."""

    type: Literal["tool_call"]
    name: str
    """Name of the tool, as in `tool.list`."""
    arguments: NotRequired[Any]
    """Arguments that match the tool's input schema."""

AgentCmd: TypeAlias = (
    "AgentCmdFsListDir | "
    "AgentCmdContentGetSpan | "
    "AgentCmdIndexAddRoot | "
    "AgentCmdIndexBuild | "
    "AgentCmdSearchGrep | "
    "AgentCmdSearchSemantic | "
    "AgentCmdSearchHybrid | "
    "AgentCmdGitClone | "
    "AgentCmdGitStatus | "
    "AgentCmdLlmCall | "
    "AgentCmdToolCall"
)
"""A command. Tags are snake_case; the camelCase tags of older clients are accepted on input."""


class AgentEvtStarted(TypedDict):
    """An operation or run started."""

    type: Literal["started"]
    op: str
    """Name of the operation: a tool's name, or `explore`."""
    details: NotRequired[str | None]
    """Details in one line, for a person."""


class AgentEvtProgress(TypedDict):
    """Progress of an operation."""

    type: Literal["progress"]
    op: str
    """Name of the operation."""
    percent: float
    """Progress in percent, 0 to 100."""
    message: NotRequired[str | None]
    """Message in one line, for a person."""


class AgentEvtResult(TypedDict):
    """Result of a tool call."""

    type: Literal["result"]
    mime: str
    """MIME type; always `application/json` for inline data."""
    op: str
    """Name of the tool."""
    tag: str
    """Type of `data`: `search_answer`, `grep_answer`, `span`, `dir_listing`, …"""
    blob: NotRequired[BlobRef | None]
    """Reference to a larger result; read it with `trace.blob`."""
    data: NotRequired[Any]
    """The result itself, when it is at most 64 KiB."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class AgentEvtPlanSnapshot(TypedDict):
    """The complete plan after a revision."""

    type: Literal["plan_snapshot"]
    plan: ExplorePlan
    """The plan after this revision."""
    revision: int
    """Revision number: 1, 2, 3, …"""


class AgentEvtStructuredSnapshot(TypedDict):
    """Partial typed answer of `llm_call`. Each snapshot extends the previous one, and the last is
    the complete answer. Live only: it has no sequence number, is not logged and is never
    replayed; the result follows."""

    type: Literal["structured_snapshot"]
    expectsType: str
    """Type that the answer will have."""
    op: str
    """Name of the operation, always `llm_call`."""
    revision: int
    """Revision number: 1, 2, 3, …"""
    value: Any
    """The value so far; fields that are not yet written are missing."""


class AgentEvtWarning(TypedDict):
    """A problem that did not stop the operation."""

    type: Literal["warning"]
    message: str
    """Text of the warning."""
    op: str
    """Name of the operation concerned."""


class AgentEvtInterrupted(TypedDict):
    """The daemon stopped during the operation; the session can be resumed."""

    type: Literal["interrupted"]
    op: str
    """Name of the interrupted operation."""


class AgentEvtResumed(TypedDict):
    """Interrupted work was resumed."""

    type: Literal["resumed"]
    op: str
    """Name of the resumed operation."""


class AgentEvtCompleted(TypedDict):
    """An explore finished successfully."""

    type: Literal["completed"]
    summary: ExploreSummary
    """Summary of the results."""


class AgentEvtStopped(TypedDict):
    """The run was aborted."""

    type: Literal["stopped"]
    op: str
    """Name of the stopped operation."""
    reason: str
    """Client or reason that stopped it."""


class AgentEvtError(TypedDict):
    """An operation failed; terminal when `op` is the run's own."""

    type: Literal["error"]
    message: str
    """Error message for a person."""
    op: str
    """Name of the failed operation."""
    retryable: bool
    """True if the same request may succeed later."""
    reason: NotRequired[str | None]
    """Stable reason, as in the error table."""


class AgentEvtTurnAccepted(TypedDict):
    """A turn was accepted; it starts at once or waits in the queue."""

    type: Literal["turn_accepted"]
    input: list[Part]
    """Input of the turn, with the context first."""
    runId: RunId
    """Id of the turn's run."""
    turnId: str
    """Id of the turn, chosen by the client."""
    metadata: NotRequired[dict[str, str]]
    """Metadata that the client sent with the turn."""
    policy: NotRequired[ExecutionPolicy | None]
    """Permissions and limits of the turn."""


class AgentEvtRunStarted(TypedDict):
    """A turn started to run."""

    type: Literal["run_started"]
    model: ModelChoice
    """Model that the turn uses."""
    runId: RunId
    """Id of the turn's run."""
    shownChars: int
    """Maximum characters of a tool's output that the model receives."""
    turnId: str
    """Id of the turn, chosen by the client."""


class AgentEvtTokenDelta(TypedDict):
    """Text of a model as it arrives. Live only: it has no sequence number, is not logged and is
    never replayed; [`AgentEvt::Text`] with the same text follows."""

    type: Literal["token_delta"]
    offset: int
    """Bytes of this answer's text (or reasoning) before this piece."""
    runId: RunId
    """Id of the run."""
    text: str
    """The piece of text."""
    reasoning: NotRequired[bool]
    """True for the model's reasoning."""


class AgentEvtText(TypedDict):
    """Text of a model in larger pieces: at most every 250 ms, and at the end of an answer."""

    type: Literal["text"]
    offset: int
    """Bytes of this answer's text (or reasoning) before this piece."""
    runId: RunId
    """Id of the run."""
    text: str
    """The piece of text."""
    reasoning: NotRequired[bool]
    """True for the model's reasoning."""


class AgentEvtPromptProgress(TypedDict):
    """Progress of the model in reading its prompt. Live only, like [`AgentEvt::TokenDelta`]."""

    type: Literal["prompt_progress"]
    processed: int
    """Number of prompt tokens read."""
    runId: RunId
    """Id of the run."""
    total: int
    """Number of tokens of the prompt."""
    contextTokens: NotRequired[int | None]
    """Context size of the model in tokens, if known."""


class AgentEvtModelAnswer(TypedDict):
    """The model's answer is complete; its text is in the preceding `text` records."""

    type: Literal["model_answer"]
    firstMillis: int
    """Milliseconds until the first piece arrived."""
    millis: int
    """Milliseconds until the answer was complete."""
    model: ModelChoice
    """Model that gave the answer."""
    requestDigest: str
    """SHA-256 (hex) of the request: system text, messages and tools."""
    runId: RunId
    """Id of the run."""
    tokensPerSecond: float
    """Tokens per second during the answer; 0 when it was too short to measure."""
    usage: TokenUsage
    """Token usage by the provider's count, or by the daemon's if the provider reports none."""
    calls: NotRequired[list[ToolUse]]
    """Tool calls that the model requests."""
    contextTokens: NotRequired[int | None]
    """Context size of the model in tokens, if known."""
    finish: NotRequired[FinishReason | None]
    """Reason why the model stopped; absent when the answer was cut off."""
    heardSeq: NotRequired[int]
    """Sequence number of the latest `steered` record included in the request; 0 if none."""
    raw: NotRequired[BlobRef | None]
    """Reference to the raw bytes of the answer, for replay."""
    reasoning: NotRequired[ProviderReasoning | None]
    """Reasoning that the provider requires back with the conversation."""


class AgentEvtToolCall(TypedDict):
    """The model requested a tool call, which now passes the gate."""

    type: Literal["tool_call"]
    arguments: Any
    """Arguments of the call, repaired where necessary."""
    callId: str
    """Id of the call, as in [`ModelAnswer::calls`]."""
    name: str
    """Name of the tool."""


class AgentEvtToolResult(TypedDict):
    """Outcome of a tool call."""

    type: Literal["tool_result"]
    callId: str
    """Id of the call."""
    millis: int
    """Duration of the call in milliseconds."""
    name: str
    """Name of the tool."""
    blob: NotRequired[BlobRef | None]
    """Reference to a larger output; read it with `trace.blob`."""
    changes: NotRequired[list[FileChange]]
    """Files that the call changed."""
    error: NotRequired[ToolFailure | None]
    """The failure, if the call failed."""
    output: NotRequired[Any]
    """The output, when it is at most 64 KiB."""
    tag: NotRequired[str]
    """Type of the `output`."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class AgentEvtCommandOutput(TypedDict):
    """Output of a command that a tool call runs, at most ten times a second. Live only, like
    [`AgentEvt::TokenDelta`]; the call's result follows."""

    type: Literal["command_output"]
    callId: str
    """Id of the call."""
    text: str
    """The output since the last event, both streams in the order of arrival."""
    dropped: NotRequired[int]
    """Bytes before `text` that were left out, because the command writes faster than events
    are sent."""


class AgentEvtBackgroundStarted(TypedDict):
    """A command was started in the background."""

    type: Literal["background_started"]
    command: str
    """Command line as it was given."""
    id: str
    """Id of the command."""


class AgentEvtBackgroundFinished(TypedDict):
    """A background command ended; the model is notified before its next answer."""

    type: Literal["background_finished"]
    command: str
    """Command line as it was given."""
    id: str
    """Id of the command."""
    state: BackgroundState
    """The way it ended."""
    exitCode: NotRequired[int | None]
    """Exit code; absent if it is not known."""
    tail: NotRequired[str]
    """The last lines of its output."""


class AgentEvtHookFinished(TypedDict):
    """A hook ran at an event of the session."""

    type: Literal["hook_finished"]
    command: str
    """Its command line, at most 1,000 characters."""
    event: str
    """The event, as hooks name it."""
    millis: int
    """Duration of its run in milliseconds."""
    sandboxed: bool
    """True if it ran in the sandbox."""
    source: str
    """The file or key that names the hook."""
    error: NotRequired[str | None]
    """Reason why it did not run or was stopped."""
    exitCode: NotRequired[int | None]
    """Exit code; absent if it has none."""


class AgentEvtApprovalRequired(TypedDict):
    """A tool call is pending until a client approves or denies it."""

    type: Literal["approval_required"]
    approval: Approval
    """The approval to answer."""


class AgentEvtApprovalResolved(TypedDict):
    """An approval was answered."""

    type: Literal["approval_resolved"]
    approvalId: ApprovalId
    """Id of the approval."""
    resolution: Resolution
    """The answer and its author."""


class AgentEvtSteered(TypedDict):
    """A client sent text to the model during its turn."""

    type: Literal["steered"]
    runId: RunId
    """Id of the run."""
    text: str
    """Text that the client sent."""


class AgentEvtCompacted(TypedDict):
    """The conversation so far is replaced by a summary in the model's context."""

    type: Literal["compacted"]
    kept: int
    """Number of messages at the end of the conversation that are retained unchanged."""
    summary: str
    """Summary that the model receives instead."""
    tokensAfter: int
    """Tokens after compaction, as counted by the daemon."""
    tokensBefore: int
    """Tokens before compaction, as counted by the daemon."""
    heardSeq: NotRequired[int]
    """Sequence number of the latest `steered` record included in the conversation here; 0 if
    none."""


class AgentEvtCleared(TypedDict):
    """The conversation was cleared; the following turns start an empty one."""

    type: Literal["cleared"]


class AgentEvtProviderChanged(TypedDict):
    """The session uses another model from this record on."""

    type: Literal["provider_changed"]
    model: ModelChoice
    """The model now in use."""


class AgentEvtPlanUpdate(TypedDict):
    """The agent updated its list of tasks."""

    type: Literal["plan_update"]
    items: list[PlanItem]
    """Items of the list, in order."""


class AgentEvtTurnDiff(TypedDict):
    """Changes of a turn to files, as one unified diff."""

    type: Literal["turn_diff"]
    diff: str
    """The diff, cut at 256 KiB with a note in its text."""
    paths: list[str]
    """Paths that were changed."""
    turnId: str
    """Id of the turn."""


class AgentEvtGitCommit(TypedDict):
    """The changes of a turn were committed, as `git.autoCommit` configures."""

    type: Literal["git_commit"]
    commit: str
    """Hash of the commit, 40 hex digits."""
    message: str
    """Message of the commit."""
    paths: list[str]
    """Paths in the commit, relative to the root."""
    turnId: str
    """Id of the turn."""


class AgentEvtRunCompleted(TypedDict):
    """A turn finished; the last record of its run."""

    type: Literal["run_completed"]
    result: RunResult
    """Result of the run."""

AgentEvt: TypeAlias = (
    "AgentEvtStarted | "
    "AgentEvtProgress | "
    "AgentEvtResult | "
    "AgentEvtPlanSnapshot | "
    "AgentEvtStructuredSnapshot | "
    "AgentEvtWarning | "
    "AgentEvtInterrupted | "
    "AgentEvtResumed | "
    "AgentEvtCompleted | "
    "AgentEvtStopped | "
    "AgentEvtError | "
    "AgentEvtTurnAccepted | "
    "AgentEvtRunStarted | "
    "AgentEvtTokenDelta | "
    "AgentEvtText | "
    "AgentEvtPromptProgress | "
    "AgentEvtModelAnswer | "
    "AgentEvtToolCall | "
    "AgentEvtToolResult | "
    "AgentEvtCommandOutput | "
    "AgentEvtBackgroundStarted | "
    "AgentEvtBackgroundFinished | "
    "AgentEvtHookFinished | "
    "AgentEvtApprovalRequired | "
    "AgentEvtApprovalResolved | "
    "AgentEvtSteered | "
    "AgentEvtCompacted | "
    "AgentEvtCleared | "
    "AgentEvtProviderChanged | "
    "AgentEvtPlanUpdate | "
    "AgentEvtTurnDiff | "
    "AgentEvtGitCommit | "
    "AgentEvtRunCompleted"
)
"""An event. A run starts with `started` and ends with exactly one of `completed`, `stopped` or
`error` whose `op` is the run's own."""


class AgentOpIndexRepo(TypedDict):
    """Updates the index of a root."""

    type: Literal["index_repo"]
    path: str
    """Path of the root."""


class AgentOpListDir(TypedDict):
    """Lists the entries of a folder."""

    type: Literal["list_dir"]
    depth: int
    """Levels below the folder."""
    path: str
    """Path of the folder, relative to the root."""


class AgentOpGrep(TypedDict):
    """Searches lines of text."""

    type: Literal["grep"]
    pattern: str
    """Regular expression to search for."""
    pathPrefix: NotRequired[str | None]
    """Restricts the search to files under this path."""


class AgentOpSemantic(TypedDict):
    """Searches by meaning (dense vectors)."""

    type: Literal["semantic"]
    k: int
    """Maximum number of results."""
    query: str
    """Text of the query."""


class AgentOpHybrid(TypedDict):
    """Searches by words and by meaning."""

    type: Literal["hybrid"]
    k: int
    """Maximum number of results."""
    query: str
    """Text of the query."""


class AgentOpReadSpan(TypedDict):
    """Reads lines of a file."""

    type: Literal["read_span"]
    endLine: int
    """Last line of the range, inclusive."""
    path: str
    """Path of the file, relative to the root."""
    startLine: int
    """First line, starting at 1."""
    context: NotRequired[int | None]
    """Lines of context before and after."""


class AgentOpSummarize(TypedDict):
    """Reads the beginnings of files."""

    type: Literal["summarize"]
    paths: list[str]
    """Paths of the files."""


class AgentOpTool(TypedDict):
    """Calls any other registered tool."""

    type: Literal["tool"]
    arguments: Any
    """Arguments of the tool."""
    name: str
    """Name of the tool, as in `tool.list`."""

AgentOp: TypeAlias = (
    "AgentOpIndexRepo | "
    "AgentOpListDir | "
    "AgentOpGrep | "
    "AgentOpSemantic | "
    "AgentOpHybrid | "
    "AgentOpReadSpan | "
    "AgentOpSummarize | "
    "AgentOpTool"
)
"""An operation of a plan. Tags are snake_case; camelCase tags are accepted on input."""

AnyPartial: TypeAlias = (
    "SearchPartial | "
    "GrepPartial | "
    "LinesPartial"
)
"""Parameters of the notification `search.partial`."""


class Approval(TypedDict):
    """A tool call that is pending until a client approves or denies it."""

    approvalId: ApprovalId
    """Id of the approval."""
    arguments: Any
    """Complete arguments of the call; empty if the approval is shortened."""
    createdAt: Timestamp
    """Time of the request."""
    expiresAt: Timestamp
    """Time after which an unanswered approval counts as denied."""
    grants: list[str]
    """Rules that `session`, `always` and `everywhere` would write; one rule may have several lines. Empty when
    no rule can be written for such a call, which can then be approved only once."""
    preview: Preview
    """Effects of the call, shown to the approver."""
    rule: str
    """The rule that requires the approval."""
    sessionId: SessionId
    """Id of the session that requests the call."""
    tool: str
    """Name of the tool."""
    form: NotRequired[Form | None]
    """Values that the user enters, for a question of an MCP server; such an approval is answered
    with `once` and the values, or denied."""
    patterns: NotRequired[list[list[str]]]
    """Lists of wider rules, of which an answer may name one instead."""
    project: NotRequired[str | None]
    """Folder of the project in which `always` would allow such calls: the root of the session, or
    the repository of which the root is a work tree. Absent for a session without a root, where
    `always` is refused."""
    resolution: NotRequired[Resolution | None]
    """The answer; absent while the approval is pending."""
    runId: NotRequired[RunId | None]
    """Id of the run that requests the call, if any."""
    shortened: NotRequired[bool]
    """True if the arguments and long texts of the preview are left out of a list, because the
    approvals before it have filled it. `approval.get` has the complete approval."""

ApprovalDecision: TypeAlias = Literal[
    "once",  # Approves this call only.
    "session",  # Approves this call and similar ones until the session ends.
    "always",  # Approves this call and similar ones from now on in the approval's project: writes a rule that can be listed and revoked.
    "everywhere",  # Approves this call and similar ones from now on in every project: writes a rule that can be listed and revoked.
    "deny",  # Denies the pending call.
]
"""An answer to an approval."""

ApprovalId: TypeAlias = "str"


class ApprovalListParams(TypedDict):
    """Parameters of the method `approval.list`."""

    resolved: NotRequired[bool]
    """Includes answered approvals, newest first; at most 500 in all."""
    sessionId: NotRequired[SessionId | None]
    """Lists only the approvals of this session."""


class ApprovalNotice(TypedDict):
    """Notification for clients that answer approvals: one of a session that they do not follow is
    pending, or was answered. A client that falls behind misses some; `approval.list` has all."""

    approvalId: ApprovalId
    """Id of the approval."""
    expiresAt: Timestamp
    """Time after which it counts as denied."""
    sessionId: SessionId
    """Id of the session that requests the call."""
    summary: str
    """Effect of the call in one line."""
    tool: str
    """Name of the tool."""
    decision: NotRequired[ApprovalDecision | None]
    """The answer; absent while the approval is pending."""


class ApprovalRef(TypedDict):
    """Reference to an approval, as parameters of a method."""

    approvalId: ApprovalId
    """Id of the approval."""


class ApprovalResolveParams(TypedDict):
    """Parameters of the method `approval.resolve`."""

    approvalId: ApprovalId
    """Id of the approval."""
    decision: ApprovalDecision
    """The decision to record."""
    pattern: NotRequired[list[str] | None]
    """One of the approval's `patterns`, granted instead of its `grants`; valid with `session`,
    `always` or `everywhere`."""
    reason: NotRequired[str | None]
    """Reason for the decision, at most 2,000 characters."""
    values: NotRequired[dict[str, Any]]
    """Values of the approval's `form` by the names of its fields; valid with `once`. They reach
    the server and are not recorded."""


class ArchiveParams(TypedDict):
    """Parameters of the method `session.archive`."""

    sessionId: SessionId
    """Id of the session."""
    archived: NotRequired[bool]
    """True (the default) archives the session, false restores it."""


class AuditEntry(TypedDict):
    """One entry of the audit, written before the action and completed after it."""

    argsDigest: str
    """SHA-256 (hex) of the arguments as JSON."""
    decision: str
    """Decision of the gate, `allow` or `deny`."""
    id: int
    """Position in the audit."""
    rule: str
    """The rule that led to the decision."""
    sessionId: SessionId
    """Id of the session; all digits are 0 for a direct call outside any session."""
    tool: str
    """Name of the tool, or the method of a direct call."""
    truncated: bool
    """True if the output was cut."""
    ts: Timestamp
    """Time of the request."""
    command: NotRequired[str | None]
    """Command line and folder of a shell call, or the code that a call runs, with secrets
    removed; else the paths of the call as it names them."""
    exitCode: NotRequired[int | None]
    """Exit code of the command, if any."""
    millis: NotRequired[int | None]
    """Duration in milliseconds; absent when the call was denied or interrupted."""
    outcome: NotRequired[str | None]
    """`ok`, or the reason of the failure; absent when the call was denied or interrupted."""


class AuditQueryParams(TypedDict):
    """Parameters of the method `audit.query`."""

    after: NotRequired[int]
    """Id after which entries are returned."""
    limit: NotRequired[int | None]
    """Maximum number of entries, at most 500."""
    sessionId: NotRequired[SessionId | None]
    """Returns only entries of this session."""
    tool: NotRequired[str | None]
    """Returns only entries of this tool."""


class BackgroundCommand(TypedDict):
    """A background command of a session."""

    bytes: int
    """Bytes of output so far."""
    command: str
    """Command line as it was given."""
    id: str
    """Id of the command, unique in its session."""
    startedAt: Timestamp
    """Time of the start."""
    state: BackgroundState
    """State of the command."""
    exitCode: NotRequired[int | None]
    """Exit code, once it has ended: 128 plus the number of the signal that killed it."""
    finishedAt: NotRequired[Timestamp | None]
    """Time of the end."""


class BackgroundOutput(TypedDict):
    """New output of a background command."""

    command: BackgroundCommand
    """The command with its state."""
    cursor: int
    """Position for the next call."""
    dropped: int
    """Bytes that are no longer stored, between the requested position and `output`."""
    more: bool
    """True if more output is already available at `cursor`."""
    output: str
    """Output from the position on, both streams in the order of arrival."""


class BackgroundOutputParams(TypedDict):
    """Parameters of the method `background.output`."""

    id: str
    """Id of the command."""
    sessionId: SessionId
    """Id of the session."""
    cursor: NotRequired[int]
    """Position to read from, as returned by an earlier call; 0 by default."""


class BackgroundRef(TypedDict):
    """A reference to a background command."""

    id: str
    """Id of the command."""
    sessionId: SessionId
    """Id of the session."""

BackgroundState: TypeAlias = Literal[
    "running",  # The command is running.
    "exited",  # The command exited by itself.
    "stopped",  # A client or the model stopped the command.
    "timed_out",  # The command reached the limit of its lifetime.
    "session_closed",  # The command was stopped when its session was deleted or archived.
    "daemon_stopped",  # The command ended with the daemon.
]
"""State of a background command."""


class BlobParams(TypedDict):
    """Parameters of the method `trace.blob`."""

    sha256: str
    """SHA-256 of the blob, in hex."""
    limit: NotRequired[int | None]
    """Maximum number of bytes, at most 256 KiB."""
    offset: NotRequired[int]
    """Offset of the first byte."""


class BlobPart(TypedDict):
    """Part of a blob. Blobs are UTF-8 JSON, and parts end between characters."""

    size: int
    """Size of the complete blob in bytes."""
    text: str
    """Text of this part."""
    nextOffset: NotRequired[int | None]
    """Offset of the next part; absent on the last."""


class BlobRef(TypedDict):
    """Reference to a result stored by the hash of its content."""

    sha256: str
    """SHA-256 of the content, in hex."""
    size: int
    """Size of the content in bytes."""


class Board(TypedDict):
    """Answer of the method `session.board`."""

    rows: list[BoardRow]
    """Sessions that wait for an answer, then running ones, then the latest others."""


class BoardParams(TypedDict):
    """Parameters of the method `session.board`."""

    limit: NotRequired[int | None]
    """Maximum number of sessions, 1 to 100; 20 when omitted."""


class BoardRow(TypedDict):
    """A session of the board."""

    queued: int
    """Number of turns in the queue."""
    session: Session
    """State of the session itself."""
    waiting: list[Approval]
    """Requests that wait for an answer."""
    branch: NotRequired[str | None]
    """Branch of the work tree in which it works; absent outside of created work trees."""
    costMicroUsd: NotRequired[int | None]
    """Cost of all its answers in millionths of a dollar; absent if no price is known."""
    parent: NotRequired[SessionId | None]
    """Session of the agent that started it as a subagent."""
    request: NotRequired[str | None]
    """First line of the input of its latest turn."""
    unattended: NotRequired[UnattendedRun | None]
    """Its unattended run, if it has one."""


class BoundPath(TypedDict):
    """A path that a command acts by, as it was when its approval was requested."""

    path: str
    """The path as the command has it, relative to the root."""
    role: BoundRole
    """Its part in the command."""
    state: str
    """Its content or identity, to compare; empty for a file that is written."""
    target: str
    """The path to which it leads."""

BoundRole: TypeAlias = Literal[
    "folder",  # The folder in which the command starts.
    "program",  # A program or script that runs.
    "output",  # A file that a redirection writes.
]
"""The part that a path plays in a command."""


class CallItem(TypedDict):
    """Definition that calls another, or is called by it."""

    confidence: ReferenceConfidence
    """Certainty that the calls mean the definition: the best of theirs."""
    kind: str
    """Kind of the definition, as in `search.symbols`; `module` for a file."""
    line: int
    """First line of the definition, starting at 1."""
    lines: list[int]
    """Lines of the first 20 calls, in the file of the caller."""
    name: str
    """Name of the definition; that of the file for calls outside of any definition."""
    path: str
    """Path relative to the root."""
    steps: int
    """Number of calls between it and the requested definition, 1 for a direct one."""
    container: NotRequired[str | None]
    """Name of the enclosing definition, if any."""
    via: NotRequired[int | None]
    """Index of the item that it calls, or is called by; none for the requested definition."""


class CallsAnswer(TypedDict):
    """Answer of the methods `search.callers` and `search.callees`."""

    complete: bool
    """True if imports and symbols are currently indexed for the root."""
    definition: SymbolItem
    """Definition whose callers or callees these are."""
    items: list[CallItem]
    """Definitions by their number of steps; callers then by path and line, callees in the order of
    their calls."""
    tookUs: int
    """Time spent, in microseconds."""
    truncated: bool
    """True if there are more than `k`, or more files or definitions than were read."""
    others: NotRequired[list[SymbolItem]]
    """Other definitions of the name, which `path` and `line` can select."""
    unresolved: NotRequired[int]
    """Number of calls in the bodies that were read which lead to no definition of the root, or to
    more than two of the same name; 0 for callers."""


class CallsParams(TypedDict):
    """Parameters of the methods `search.callers` and `search.callees`."""

    depth: NotRequired[int]
    """Steps of calls that are followed, 1 to 5."""
    k: NotRequired[int]
    """Maximum number of definitions, 1 to 2,000."""
    line: NotRequired[int | None]
    """Line of the definition in `path`, starting at 1; the innermost definition around it is used."""
    path: NotRequired[str | None]
    """File with the definition, relative to the root or absolute."""
    root: NotRequired[str | None]
    """Root to search: its id or path; needed when several roots are declared."""
    symbol: NotRequired[str | None]
    """Name of the definition, as `name` or `Type.name`; with `path` the one in that file."""


class ChangeCommit(TypedDict):
    """Commit since a revision."""

    id: str
    """Full hash of the commit."""
    subject: str
    """First line of the message."""


class ChangeImpact(TypedDict):
    """Changed file that other files import."""

    direct: int
    """Number of files that import it directly."""
    path: str
    """Path of the changed file, relative to the root."""
    total: int
    """Number of files that import it directly or by up to two others."""
    components: NotRequired[list[str]]
    """Names of the components of all these files, most files first."""
    dependents: NotRequired[list[str]]
    """Paths of some files that import it, nearest first."""
    truncated: NotRequired[bool]
    """True if there are more files than that."""


class ChangeRisk(TypedDict):
    """Change that deserves a closer look."""

    kind: str
    """Kind of risk: `entrypoint`, `manifest`, `public_root`, `central`, `deleted`, `renamed`,
    `conflict` or `workflow`."""
    path: str
    """Path of the changed file, relative to the root."""
    reason: str
    """Reason, as `entrypoint: command 'tidepool'`."""


class ChangedFile(TypedDict):
    """A file whose content differs from the recorded one."""

    path: str
    """Path relative to the root."""
    status: str
    """`added`, `modified` or `deleted` since the recording."""


class Citation(TypedDict):
    """Line that bears out a statement."""

    line: int
    """Line, starting at 1."""
    path: str
    """Path relative to the root."""


class ClientCapabilities(TypedDict):
    """Capabilities of a client."""

    approvals: NotRequired[bool]
    """True if the client answers approvals."""


class ClientInfo(TypedDict):
    """Name and version of a client."""

    name: str
    """Name of the client, at most 64 characters."""
    version: str
    """Version of the client."""


class CloneParams(TypedDict):
    """Parameters of the method `git.clone`."""

    remoteURL: str
    """URL of the repository: `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; it
    must not begin with `-`."""
    branch: NotRequired[str | None]
    """Branch to check out; the remote's default when omitted."""
    dest: NotRequired[str | None]
    """Name of the folder under the workspaces folder; derived from the URL when omitted."""
    requestId: NotRequired[str | None]
    """Retry key, and name for `git.progress` notifications."""


class CloneReceipt(TypedDict):
    """Receipt of `git.clone`; the result arrives as `git.progress` with `done`."""

    path: str
    """Path of the future clone."""
    requestId: str
    """Id of the request."""


class CloneResult(TypedDict):
    """Result of a finished clone."""

    head: str
    """Hash of the checked-out commit."""
    path: str
    """Absolute path of the checkout."""
    reused: bool
    """True when an earlier clone of the same remote existed; it is updated."""
    branch: NotRequired[str | None]
    """Name of the checked-out branch."""
    stale: NotRequired[str | None]
    """Reason why an earlier clone was not updated but returned unchanged; git's message when the
    network fails."""


class CollectParams(TypedDict):
    """Parameters of the method `storage.collect`."""

    dryRun: NotRequired[bool]
    """True to change nothing and return what would be removed."""


class Collected(TypedDict):
    """Result of the method `storage.collect`."""

    bytesAfter: int
    """Bytes of the log's files after."""
    bytesBefore: int
    """Bytes of the log's files before."""
    packed: int
    """Number of sessions whose records were packed."""
    removed: list[SessionUsage]
    """The removed sessions, least recently used first."""


class CommandEnvelope(TypedDict):
    """A command as a client sends it in `orchestrate.command`; only `payload` is required."""

    payload: AgentCmd
    """The command to execute."""
    id: NotRequired[str | None]
    """Id chosen by the client, returned as `parentId` of the resulting events; a new one when
    omitted."""
    kind: NotRequired[str | None]
    """Always `Cmd` when present."""
    parentId: NotRequired[str | None]
    """Id of the entry that led to this command."""
    ts: NotRequired[Timestamp | None]
    """Time by the client's clock; the log uses the daemon's."""


class CommandParams(TypedDict):
    """Parameters of the method `orchestrate.command`."""

    cmd: CommandEnvelope
    """The command in its envelope."""
    sessionId: SessionId
    """Id of the session."""
    requestId: NotRequired[str | None]
    """Retry key of the request."""


class CommandReceipt(TypedDict):
    """Receipt of `orchestrate.command`; the outcome arrives as events with this `commandId` as
    `parentId`."""

    commandId: str
    """Id of the command."""
    seq: int
    """Sequence number of the command's durable record."""
    sessionId: SessionId
    """Id of the session."""


class Component(TypedDict):
    """A part of a system."""

    kind: str
    """Kind: `program`, `library`, `module`, or for secondary folders `tests`, `examples`,
    `documents`, `vendored`, `generated` or `tools`."""
    name: str
    """Name for people: that of its manifest, else of its folder or file."""
    path: str
    """Path of its folder, or of the file that represents it, relative to the root."""
    role: str
    """Role in a few words."""
    dependsOn: NotRequired[list[str]]
    """Paths of the components that its files import."""
    evidence: NotRequired[str | None]
    """Source of the role, as `path:line`."""
    files: NotRequired[int]
    """Number of its files."""
    keyFiles: NotRequired[list[str]]
    """Paths of its files that most others depend on."""
    lines: NotRequired[int]
    """Lines of its files."""


class ComponentChanges(TypedDict):
    """Changes of a component."""

    added: int
    """Number of added files."""
    addedLines: int
    """Number of added lines."""
    commits: int
    """Number of commits that changed its files; merges are not counted."""
    deleted: int
    """Number of deleted files."""
    deletedLines: int
    """Number of deleted lines."""
    modified: int
    """Number of modified files."""
    name: str
    """Name of the component; for files outside of all components that of their folder, or `other
    files`."""
    path: str
    """Path of the component or folder; empty for other files at the top."""
    renamed: int
    """Number of renamed files."""


class Compressed(TypedDict):
    """Answer of the method `session.compress`."""

    tokensAfter: int
    """Tokens after; unchanged when there was nothing to condense."""
    tokensBefore: int
    """Tokens of the conversation before, as counted by the daemon."""


class Concept(TypedDict):
    """Name that a newcomer meets in many files."""

    files: int
    """Number of other files that use it."""
    kind: str
    """Kind of the definition, as in `search.symbols`."""
    line: int
    """Line of the definition, starting at 1."""
    name: str
    """Name of the definition."""
    path: str
    """Path of its file, relative to the root."""


class ConfigAnswer(TypedDict):
    """Answer of the method `config.get`."""

    values: dict[str, ConfigValue]
    """Values by dotted key; secrets read `'(set)'`."""
    warnings: list[str]
    """Warnings about settings that are ignored, with the reason."""

ConfigFolder: TypeAlias = Literal[
    "named",  # The variable `CAIRN_CONFIG` names it.
    "of_data_root",  # It is `<CAIRN_HOME>/config`, which exists.
    "of_user",  # It is the user's own configuration folder.
]
"""The reason why a configuration folder applies."""


class ConfigGetParams(TypedDict):
    """Parameters of the method `config.get`."""

    root: NotRequired[str | None]
    """Id or path of the root whose configuration is returned; the daemon's own when absent."""


class ConfigReloaded(TypedDict):
    """Answer of the method `config.reload`."""

    pending: list[str]
    """Keys whose new value takes effect only after a restart."""
    warnings: list[str]
    """Warnings about settings that are ignored, with the reason."""


class ConfigValue(TypedDict):
    """Value and source of a setting."""

    source: str
    """The file, variable or flag that sets it; `default` for the built-in value."""
    value: Any
    """The value that is in force."""
    pending: NotRequired[Any]
    """Value in the files, when it takes effect only after the daemon restarts."""


class ContextItemText(TypedDict):
    """A text that the client adds."""

    type: Literal["text"]
    text: str
    """The text, as the model receives it."""


class ContextItemFile(TypedDict):
    """A file that the user refers to; the model reads it when it needs it."""

    type: Literal["file"]
    path: str
    """Path of the file."""


class ContextItemSelection(TypedDict):
    """A part of a file that the user selected."""

    type: Literal["selection"]
    endLine: int
    """Last line of the selection."""
    path: str
    """Path of the file."""
    startLine: int
    """First line, from 1."""
    text: str
    """The selected text itself."""


class ContextItemDiagnostic(TypedDict):
    """A message of a compiler or a linter."""

    type: Literal["diagnostic"]
    line: int
    """Line of the message, from 1."""
    message: str
    """Text of the message."""
    path: str
    """Path of the file."""
    severity: str
    """Severity, such as `error`."""

ContextItem: TypeAlias = (
    "ContextItemText | "
    "ContextItemFile | "
    "ContextItemSelection | "
    "ContextItemDiagnostic"
)
"""An item of a turn's context."""


class Convention(TypedDict):
    """Rule of a project for its contributors."""

    source: str
    """Path of the file that states it, as `path` or `path:line`."""
    text: str
    """Statement of the rule, as `formatted with rustfmt`."""

Corpus: TypeAlias = Literal[
    "lex",  # Results of the lexical search.
    "sem",  # Results of the semantic search.
    "fused",  # Both lists after fusion.
]
"""List that a partial comes from."""


class DaemonStats(TypedDict):
    """Answer of the method `daemon.stats`."""

    anonymousBytes: int
    """Part of the resident memory that is not backed by files, in bytes."""
    callErrors: int
    """Calls that returned an error."""
    calls: int
    """Calls received since the start."""
    connections: int
    """Number of open connections."""
    indexChunks: int
    """Number of chunks in all indexes."""
    indexFiles: int
    """Number of files in all indexes."""
    indexPending: int
    """Files waiting to be indexed."""
    logBytes: int
    """Size of the log's database, in bytes."""
    logQueue: int
    """Records waiting for their commit."""
    recordsAppended: int
    """Records appended since the start."""
    residentBytes: int
    """Resident memory in bytes; 0 where it cannot be read."""
    running: int
    """Number of active runs."""
    sessions: int
    """Number of sessions in the log."""
    subscriptions: int
    """Number of active subscriptions."""
    uptimeSeconds: int
    """Seconds since the daemon started."""


class DaemonStatus(TypedDict):
    """Answer of the method `daemon.status`."""

    addresses: list[str]
    """Addresses that the daemon listens on."""
    dataRoot: str
    """Path of the data root."""
    index: IndexStatus
    """Declared roots and the state of their indexes."""
    instanceId: InstanceId
    """Id of this start of the daemon."""
    mode: str
    """Start mode: `on_demand`, `service` or `foreground`."""
    pid: int
    """Process id of the daemon."""
    runningSessions: int
    """Number of sessions with an active run."""
    startedAt: Timestamp
    """Start time of the daemon."""
    version: str
    """Version of the daemon's binary."""
    configDir: NotRequired[str | None]
    """Path of the user's configuration folder; absent when there is none."""
    configOrigin: NotRequired[ConfigFolder | None]
    """The reason why this configuration folder applies."""
    idleExitSeconds: NotRequired[int | None]
    """Seconds without a client after which the daemon exits; absent when it never exits by
    itself."""
    logFile: NotRequired[str | None]
    """Path of the log file; absent when the daemon logs to its terminal or the service manager."""


class Device(TypedDict):
    """A device that is paired with the daemon."""

    id: DeviceId
    """Id of the device at this daemon."""
    key: str
    """Hash of the device's public key; of its secret for a browser."""
    name: str
    """Name of the device."""
    pairedAt: Timestamp
    """Time of the pairing."""
    rights: list[Right]
    """Rights of the device."""
    browser: NotRequired[bool]
    """True for a browser, which proves itself by a secret of its own instead of a key."""
    connections: NotRequired[int]
    """Number of open connections."""

DeviceId: TypeAlias = "str"


class DeviceRef(TypedDict):
    """Parameters of the method `client.revoke`."""

    id: DeviceId
    """Id of the device."""


class DirEntry(TypedDict):
    """One entry of a listing."""

    kind: EntryKind
    """Kind of the entry."""
    path: str
    """Path relative to the root."""
    size: NotRequired[int | None]
    """Size in bytes, for files."""


class DirListing(TypedDict):
    """Bounded listing of a folder."""

    entries: list[DirEntry]
    """Entries sorted by path, without ignored files."""
    path: str
    """The folder, relative to its root (`.` for the root itself)."""
    truncated: bool
    """True when the listing was cut at 5,000 entries."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""


class DiskUsage(TypedDict):
    """Parts of the daemon's data, with their sizes."""

    expired: ExpiredUsage
    """Sessions that the limits of `retention` remove."""
    indexes: list[IndexUsage]
    """The indexes, largest first."""
    log: LogUsage
    """The log of sessions."""
    sharedIndexes: NotRequired[list[SharedIndexUsage]]
    """The frozen indexes that several roots share, largest first; not part of `indexes`."""


class Empty(TypedDict):
    """An object without fields."""

EntryKind: TypeAlias = Literal[
    "file",  # A regular file on disk.
    "dir",  # A folder on the disk.
    "symlink",  # A symbolic link, not followed.
    "other",  # A socket, device or pipe.
]
"""Kind of a listing entry."""


class Entrypoint(TypedDict):
    """A location where execution starts."""

    kind: str
    """Kind of entrypoint: `manifest`, `main`, `server`, `script`, `library` or `container`."""
    path: str
    """Path of the file, relative to the root."""
    reason: str
    """Reason why it is an entrypoint."""
    line: NotRequired[int | None]
    """Line of the entrypoint, if known."""


class EnvelopeCmd(TypedDict):
    """A command that was received."""

    kind: Literal["Cmd"]
    id: str
    """Id of this entry (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … without gaps."""
    sessionId: SessionId
    """Id of the session that the entry belongs to."""
    ts: Timestamp
    """Time at which the entry was appended."""
    cmd: AgentCmd
    """The command that was received."""
    origin: NotRequired[Origin | None]
    """Client, run and tool that caused the entry."""
    parentId: NotRequired[str | None]
    """Id of the entry that caused this one: events of a command carry the command's id."""


class EnvelopeEvt(TypedDict):
    """An event that happened."""

    kind: Literal["Evt"]
    id: str
    """Id of this entry (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … without gaps."""
    sessionId: SessionId
    """Id of the session that the entry belongs to."""
    ts: Timestamp
    """Time at which the entry was appended."""
    evt: AgentEvt
    """The event that happened."""
    origin: NotRequired[Origin | None]
    """Client, run and tool that caused the entry."""
    parentId: NotRequired[str | None]
    """Id of the entry that caused this one: events of a command carry the command's id."""

Envelope: TypeAlias = (
    "EnvelopeCmd | "
    "EnvelopeEvt"
)
"""One numbered entry of a session's log."""


class ErrorData(TypedDict):
    """`error.data` of a failed call."""

    hint: str
    """Advice on how to resolve the failure."""
    reason: str
    """Stable reason string, part of the contract."""
    retryable: bool
    """True if the same call may succeed later."""
    details: NotRequired[Any]
    """Further details: the versions of both sides, `oldestSeq`, the path of an invalid field."""
    retryAfterMs: NotRequired[int | None]
    """Time to wait before the next attempt, in milliseconds; set for `overloaded`."""


class EventNotificationCmd(TypedDict):
    """A command that was received."""

    kind: Literal["Cmd"]
    id: str
    """Id of this entry (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … without gaps."""
    sessionId: SessionId
    """Id of the session that the entry belongs to."""
    subscriptionId: SubscriptionId
    """Id of the subscription."""
    ts: Timestamp
    """Time at which the entry was appended."""
    cmd: AgentCmd
    """The command that was received."""
    origin: NotRequired[Origin | None]
    """Client, run and tool that caused the entry."""
    parentId: NotRequired[str | None]
    """Id of the entry that caused this one: events of a command carry the command's id."""


class EventNotificationEvt(TypedDict):
    """An event that happened."""

    kind: Literal["Evt"]
    id: str
    """Id of this entry (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … without gaps."""
    sessionId: SessionId
    """Id of the session that the entry belongs to."""
    subscriptionId: SubscriptionId
    """Id of the subscription."""
    ts: Timestamp
    """Time at which the entry was appended."""
    evt: AgentEvt
    """The event that happened."""
    origin: NotRequired[Origin | None]
    """Client, run and tool that caused the entry."""
    parentId: NotRequired[str | None]
    """Id of the entry that caused this one: events of a command carry the command's id."""

EventNotification: TypeAlias = (
    "EventNotificationCmd | "
    "EventNotificationEvt"
)
"""Payload of the notification `orchestrate.event`."""

ExecutionMode: TypeAlias = Literal[
    "plan",  # Only tools that change nothing may be called.
    "ask",  # Calls with an effect need an approval, unless a rule allows them.
    "accept-edits",  # Edits of files inside the root need no approval.
    "auto",  # Edits of files, and commands that the sandbox confines, need no approval.
]
"""Calls that a turn may make without an approval, and whether it may change anything at all.
Denials, required confirmations and protected paths apply in every mode."""


class ExecutionPolicy(TypedDict):
    """Permissions and limits of a turn."""

    allowExternalLLMs: NotRequired[bool]
    """True if models outside this machine may be used; the daemon's `models.allowExternal` must
    also allow it."""
    dryRun: NotRequired[bool]
    """Reports tool calls without running them."""
    maxIterations: NotRequired[int | None]
    """Maximum number of model answers; `agent.maxIterations` when omitted."""
    maxTokens: NotRequired[int | None]
    """Maximum number of input and output tokens over all answers."""
    maxUsd: NotRequired[float | None]
    """Maximum cost in US dollars, by the known prices; `models.maxUsdPerTurn` applies too."""
    mode: NotRequired[ExecutionMode | None]
    """Mode of the turn, `ask` when omitted. `accept-edits` and `auto` require the right `approve`."""
    network: NotRequired[bool]
    """True if tools may use the network."""
    ops: NotRequired[list[str] | None]
    """Names of the only tools that may be called; all registered ones when omitted."""
    paths: NotRequired[list[str] | None]
    """The only paths that tools may access, relative to the root; all when omitted."""
    promptProgress: NotRequired[bool | None]
    """True requests reports on the model's progress in reading its prompt; the daemon's setting
    when omitted."""
    sandbox: NotRequired[SandboxUse | None]
    """`off` runs commands outside the sandbox, which requires the right `admin` and is noted in
    the audit of each command."""
    settings: NotRequired[TurnOverrides | None]
    """Settings of this turn that override the configured ones."""
    timeoutSeconds: NotRequired[int | None]
    """Maximum duration in seconds, without the time spent waiting for approvals."""
    toolsMode: NotRequired[ToolsMode | None]
    """Names under which tools are offered; `tools.mode` when omitted."""


class ExpiredUsage(TypedDict):
    """Sessions that the limits of `retention` remove."""

    bytes: int
    """Bytes of the sessions."""
    sessions: int
    """Number of the sessions, at most 1,000."""
    removedFrom: NotRequired[Timestamp | None]
    """Time from which the daemon removes such sessions by itself: a week after it first found one."""


class ExploreChanges(TypedDict):
    """Changes between a revision and the work tree, and the code that they touch."""

    addedLines: int
    """Number of added lines."""
    base: str
    """Full hash of its commit."""
    commits: int
    """Number of commits since the revision."""
    deletedLines: int
    """Number of deleted lines."""
    files: int
    """Number of changed files."""
    since: str
    """Requested revision, as the caller wrote it."""
    behind: NotRequired[int]
    """Number of commits of the revision that the checked-out commit does not have."""
    changedFiles: NotRequired[list[GitFileChange]]
    """Changed files, most lines first; at most 200."""
    components: NotRequired[list[ComponentChanges]]
    """Changes by component, the system's own first, then most lines first."""
    impact: NotRequired[list[ChangeImpact]]
    """Changed files that other files import, most importing files first."""
    risks: NotRequired[list[ChangeRisk]]
    """Changes that deserve a closer look."""
    subjects: NotRequired[list[ChangeCommit]]
    """Commits since the revision, newest first; at most 100."""
    truncated: NotRequired[bool]
    """True if commits, files or contents could not be read; the numbers are then lower bounds."""


class ExploreDetails(TypedDict):
    """Reasons behind a summary."""

    commands: ProjectCommands
    """Commands that build, test and run the project."""
    entrypoints: list[Entrypoint]
    """Entrypoints, each with its reason."""
    layout: list[LayoutEntry]
    """Top-level folders and their roles."""
    projects: list[Project]
    """Packages, crates or modules of the repository."""
    stats: ExploreStats
    """Statistics of the explore."""
    topFiles: list[TopFile]
    """Top files, each with its reason."""
    changes: NotRequired[ExploreChanges | None]
    """Changes since the requested revision."""
    components: NotRequired[list[Component]]
    """Parts of the system, most important first."""
    concepts: NotRequired[list[Concept]]
    """Names that a newcomer meets in many files."""
    conventions: NotRequired[list[Convention]]
    """Rules of the project for its contributors, each with the file that states it."""
    description: NotRequired[str | None]
    """Description of the project from its manifest or readme."""
    findings: NotRequired[list[Finding]]
    """Results of the searches for the goals."""
    flows: NotRequired[list[Flow]]
    """Paths of the first request or command through the components."""
    git: NotRequired[GitFacts | None]
    """Git facts, when the root is a repository."""
    hotspots: NotRequired[list[Hotspot]]
    """Files that changed most often in the latest commits."""
    overview: NotRequired[Overview | None]
    """Overview of the findings by a model, if one was asked."""
    purpose: NotRequired[str | None]
    """One or two sentences: the purpose of the project, from manifests and the readme."""
    secondary: NotRequired[list[Component]]
    """Folders that are no part of the system: tests, examples, documents, vendored and generated
    code."""


class ExplorePlan(TypedDict):
    """A plan: goals and the operations to run next."""

    goals: list[str]
    """Goals of the plan."""
    nextOps: list[AgentOp]
    """Operations to run, in order of importance."""


class ExplorePolicy(TypedDict):
    """Permissions of an explore beyond reading inside its root."""

    allowExternalLLMs: NotRequired[bool]
    """True if external models may be used."""
    network: NotRequired[bool]
    """True if the network may be used (for a clone)."""
    ops: NotRequired[list[str] | None]
    """Names of the only tools that may run; all read-only ones when omitted."""
    paths: NotRequired[list[str] | None]
    """The only paths that may be read, relative to the root; all when omitted. A request that
    covers more (a search of the complete root, its languages) is answered for these paths
    only."""


class ExploreStartParams(TypedDict):
    """Parameters of the method `orchestrate.explore.start`."""

    branch: NotRequired[str | None]
    """Name of the branch to clone."""
    goals: NotRequired[list[str]]
    """Goals of the explore. Known goals steer the planner; other text becomes searches."""
    planner: NotRequired[PlannerKind | None]
    """Planner to use; the built-in one when omitted."""
    policy: NotRequired[ExplorePolicy | None]
    """Permissions of the run; read-only when omitted."""
    remoteURL: NotRequired[str | None]
    """URL of a repository to clone first; requires `policy.network`."""
    requestId: NotRequired[str | None]
    """Retry key, up to 128 bytes: a repeated key returns the first receipt."""
    root: NotRequired[str | None]
    """Absolute path of the folder; not needed with `remoteURL`."""
    sessionId: NotRequired[SessionId | None]
    """Id of an existing session to run in; a new session when omitted."""
    since: NotRequired[str | None]
    """Git revision: the summary then has the changes between it and the work tree."""


class ExploreStats(TypedDict):
    """Statistics of an explore."""

    chunks: int
    """Number of indexed chunks."""
    failedOps: int
    """Number of operations that failed."""
    files: int
    """Number of indexed files."""
    millis: int
    """Milliseconds from start to summary."""
    ops: int
    """Number of operations run."""
    skipped: int
    """Number of files left out of the index."""
    symbols: int
    """Number of indexed symbols."""


class ExploreStatus(TypedDict):
    """Answer of the method `orchestrate.explore.status`."""

    headSeq: int
    """Sequence number of the newest record."""
    opsDone: int
    """Number of finished operations."""
    opsPending: int
    """Number of pending or running operations."""
    sessionId: SessionId
    """Id of the session."""
    state: RunState
    """State of the latest run."""
    runId: NotRequired[RunId | None]
    """Id of its latest explore run."""
    summary: NotRequired[ExploreSummary | None]
    """Summary of the explore, once completed."""


class ExploreSummary(TypedDict):
    """Results of an explore: the five fields of the plan's schema, and `details` with the reasons."""

    details: ExploreDetails
    """Reasons, commands and statistics."""
    entrypoints: list[str]
    """Paths of the entrypoints, most important first."""
    followups: list[str]
    """Open questions and how to answer them."""
    languages: dict[str, int]
    """Lines per language (code, comments and blanks), as tokei counts them."""
    repoName: str
    """Name of the repository."""
    topFiles: list[str]
    """Files to read first, ordered by how much other code refers to them."""


class FileChange(TypedDict):
    """A change of a file by a tool."""

    path: str
    """Path of the file, relative to the root."""
    after: NotRequired[str | None]
    """SHA-256 (hex) of the new content; absent when the file was deleted."""
    before: NotRequired[BlobRef | None]
    """Former content as base64 text; absent when the file did not exist."""
    lost: NotRequired[bool]
    """True if the file existed and its former content was not stored: the change cannot be
    undone."""


class FileLines(TypedDict):
    """Matching lines of one file; at least one."""

    lines: list[int]
    """Line numbers in ascending order."""
    path: str
    """Path relative to its root."""
    root: RootId
    """Id of the root."""
    text: str
    """Text of each line without its terminator, at most 2 KiB, invalid UTF-8 replaced; lines are
    separated by `\\n`."""
    ranges: NotRequired[list[list[list[int]]]]
    """Byte ranges of the matches in the text of each line; only with `withRanges`."""


class Finding(TypedDict):
    """Search results for a goal."""

    goal: str
    """Text of the goal."""
    places: list[str]
    """The best locations, as `path:line`."""

FinishReason: TypeAlias = Literal[
    "stop",  # The model finished its answer.
    "tool_calls",  # The model waits for the results of tool calls.
    "length",  # The answer reached its limit of tokens.
    "filtered",  # The provider withheld the answer.
]
"""Reason why a model stopped."""


class FleetApproval(TypedDict):
    """An approval that waits on a daemon of the fleet."""

    approvalId: ApprovalId
    """Id of the approval."""
    summary: str
    """Summary of the call in one line."""
    tool: str
    """Name of the tool."""


class FleetAttempt(TypedDict):
    """An attempt at a run."""

    daemon: str
    """Name of the daemon."""
    identity: str
    """Identity of the daemon's data folder."""
    sessionId: NotRequired[SessionId | None]
    """Id of the session on that daemon."""


class FleetCallParams(TypedDict):
    """Parameters of the method `fleet.call`."""

    daemon: str
    """Name of the daemon that is called."""
    method: str
    """Name of the method."""
    params: NotRequired[Any]
    """Parameters of the method."""


class FleetDaemon(TypedDict):
    """A daemon of the fleet."""

    identity: str
    """Identity of its data folder."""
    instance: str
    """Id of its process."""
    maxRuns: int
    """Maximum number of runs of pools that it takes at once."""
    name: str
    """Name of the daemon."""
    pools: list[str]
    """Pools of which it takes runs."""
    running: int
    """Number of its active sessions."""
    sessions: list[FleetSession]
    """Its latest sessions of which the records are mirrored, at most 20."""
    version: str
    """Version of its program."""
    waiting: int
    """Number of its approvals that wait for an answer."""
    seenAt: NotRequired[Timestamp | None]
    """Time at which it was last seen, by the broker's clock."""


class FleetRecords(TypedDict):
    """Answer of the method `fleet.records`."""

    records: list[Any]
    """Records in order, as the broker has them."""
    first: NotRequired[int | None]
    """Number of the first record that the broker has, if it is not the session's first one."""


class FleetRecordsParams(TypedDict):
    """Parameters of the method `fleet.records`."""

    daemon: str
    """Name of the daemon that has the session."""
    sessionId: SessionId
    """Id of the session."""
    after: NotRequired[int]
    """Number of the record after which records are returned; 0 for the first one."""
    limit: NotRequired[int | None]
    """Maximum number of records, 1 to 500; 100 when omitted."""
    waitMillis: NotRequired[int | None]
    """Longest wait for a record when there is none, in milliseconds, at most 30,000."""


class FleetRefusal(TypedDict):
    """A daemon's refusal of a run."""

    daemon: str
    """Name of the daemon."""
    reason: str
    """Reason of the refusal, for people."""


class FleetRepository(TypedDict):
    """A repository, whatever folder a daemon has it in."""

    remoteURL: str
    """URL of its remote."""
    commit: NotRequired[str | None]
    """Commit to work on, in a work tree of its own; the daemon's checkout when omitted."""


class FleetRun(TypedDict):
    """A run of a pool."""

    pool: str
    """Name of the pool."""
    request: str
    """First line of the request."""
    sentBy: str
    """Name of the daemon that added the run."""
    state: FleetRunState
    """State of the run."""
    turnId: str
    """Id of the run."""
    attempts: NotRequired[list[FleetAttempt]]
    """The attempts so far; the last one is the current one."""
    cancelling: NotRequired[bool]
    """True if a client cancelled the run while a daemon had it."""
    metadata: NotRequired[dict[str, str]]
    """Metadata of the run."""
    reason: NotRequired[str | None]
    """Reason for a state that is not success, for people."""
    refusals: NotRequired[list[FleetRefusal]]
    """Daemons that refused the run, with their reasons."""


class FleetRunParams(TypedDict):
    """Parameters of the method `fleet.run`."""

    pool: str
    """Name of the pool."""
    work: FleetWork
    """Work of the run."""
    metadata: NotRequired[dict[str, str]]
    """Metadata that is returned unchanged; at most 32 entries."""
    repository: NotRequired[FleetRepository | None]
    """Repository to work in. When omitted, `root` is a folder of this machine whose remote and
    commit are taken."""
    root: NotRequired[str | None]
    """Declared root: of this machine if its repository is taken, otherwise of the daemon that
    takes the run."""
    title: NotRequired[str | None]
    """Title of the session."""
    turnId: NotRequired[str | None]
    """Id of the run, chosen by the client, 1 to 128 letters, digits, `-` and `_`: a repeated id
    adds nothing and returns the state of the first one. A random one when omitted."""


class FleetRunRef(TypedDict):
    """Parameters that name a run of a pool."""

    pool: str
    """Name of the pool."""
    turnId: str
    """Id of the run."""

FleetRunState: TypeAlias = Literal[
    "queued",  # No daemon has taken it yet.
    "running",  # A daemon has taken it.
    "completed",  # The agent finished its work.
    "failed",  # The work failed, for the reason beside it.
    "cancelled",  # A client cancelled it.
    "refused",  # No daemon of the pool may or can do it.
]
"""State of a run of a pool."""


class FleetRunsParams(TypedDict):
    """Parameters of the method `fleet.runs`."""

    pool: str
    """Name of the pool."""
    cursor: NotRequired[str | None]
    """Cursor from the `nextCursor` of the previous page."""
    limit: NotRequired[int | None]
    """Most runs of the answer, 1 to 1000; 100 when absent."""
    turnId: NotRequired[str | None]
    """Id of the only run to return."""


class FleetSession(TypedDict):
    """A session of a daemon of the fleet."""

    sessionId: SessionId
    """Id of the session on its daemon."""
    state: RunState
    """State of the session."""
    title: str
    """Title of the session."""
    approvals: NotRequired[list[FleetApproval]]
    """Approvals that wait for an answer."""
    request: NotRequired[str | None]
    """First line of the input of its latest turn."""


class FleetStatus(TypedDict):
    """Answer of the method `fleet.status`."""

    connected: bool
    """True if the broker can be reached."""
    daemons: list[FleetDaemon]
    """Connected daemons by their names, this one included; at most 1,000, those that confirmed
    their state last."""
    name: str
    """Name of this daemon in the fleet."""
    pools: list[PoolStatus]
    """Pools of which this daemon takes runs, and those of the other daemons."""
    server: str
    """Address of the broker, without credentials."""
    error: NotRequired[str | None]
    """Reason why the broker cannot be used, or why this daemon does not take part."""
    mirror: NotRequired[MirrorStatus | None]
    """The copying of records to the broker; absent if nothing is mirrored."""
    truncated: NotRequired[bool]
    """True if more daemons are connected than are listed."""


class FleetWorkTurn(TypedDict):
    """A turn of an agent."""

    type: Literal["turn"]
    input: str
    """Input of the turn."""
    policy: NotRequired[ExecutionPolicy | None]
    """Permissions and limits of the turn."""


class FleetWorkExplore(TypedDict):
    """An explore of the repository."""

    type: Literal["explore"]
    goals: NotRequired[list[str]]
    """Goals of the explore."""

FleetWork: TypeAlias = (
    "FleetWorkTurn | "
    "FleetWorkExplore"
)
"""Work of a run."""


class Flow(TypedDict):
    """Path of the first request or command of an entrypoint through the components."""

    entrypoint: str
    """Path of the entrypoint."""
    steps: list[FlowStep]
    """Steps in order, up to eight."""


class FlowStep(TypedDict):
    """Step of a flow."""

    line: int
    """Line of the definition, starting at 1."""
    name: str
    """Name of the definition."""
    path: str
    """Path of its file, relative to the root."""
    component: NotRequired[str | None]
    """Path of the component that contains it."""


class FolderTrust(TypedDict):
    """The trust in a folder."""

    folder: str
    """Absolute path of the folder, or of the repository's for one of its work trees."""
    isConfigured: bool
    """True if `trust.folders` of the configuration names it, or a folder around it: instructions,
    skills and language servers are used then, and nothing that runs by itself."""
    isKnown: bool
    """True if the user trusted the folder by its content before."""
    items: list[TrustItem]
    """Everything that it brings."""


class ForkParams(TypedDict):
    """Parameters of the method `session.fork`."""

    sessionId: SessionId
    """Id of the session to fork."""
    beforeTurnId: NotRequired[str | None]
    """Id of the turn before which the new session diverges; the complete history when omitted."""
    title: NotRequired[str | None]
    """Title for people; the original's when omitted."""


class Form(TypedDict):
    """A question of an MCP server for the user. No model sees it or answers it."""

    fields: list[FormField]
    """The values that it requests, in order."""
    message: str
    """The server's own text: untrusted, without control characters."""
    server: str
    """Name of the server."""


class FormField(TypedDict):
    """One value of a form."""

    kind: FormFieldKind
    """Kind of the value."""
    name: str
    """Name of the value in the answer."""
    required: bool
    """True if the answer must have it."""
    default: NotRequired[Any]
    """Value that the server proposes."""
    description: NotRequired[str | None]
    """Explanation of the field, for people."""
    max: NotRequired[float | None]
    """Largest number, or most characters or chosen values."""
    min: NotRequired[float | None]
    """Smallest number, or fewest characters or chosen values."""
    options: NotRequired[list[FormOption]]
    """The values to choose from, for `choice` and `choices`."""
    title: NotRequired[str | None]
    """Title of the field, for people."""

FormFieldKind: TypeAlias = Literal[
    "text",  # A text of one line.
    "number",  # A number, with a fraction or without.
    "integer",  # A number without a fraction.
    "boolean",  # Either true or false.
    "choice",  # Exactly one of the options.
    "choices",  # Any number of the options.
]
"""Kind of a value of a form."""


class FormOption(TypedDict):
    """A value that the user may choose."""

    value: str
    """The value in the answer."""
    title: NotRequired[str | None]
    """Title of the value, for people."""

Fusion: TypeAlias = Literal[
    "rrf",  # Reciprocal rank fusion (RRF) of both lists.
    "minmax",  # Sum of scores scaled to 0..1 within each list.
]
"""Method that fuses two ranked lists."""


class GitChange(TypedDict):
    """One changed file of a repository."""

    path: str
    """Path relative to the repository."""
    status: str
    """Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or
    `conflicted`."""


class GitFacts(TypedDict):
    """Git facts of a repository."""

    activeFiles: list[str]
    """Files changed most often in the latest commits."""
    changedFiles: int
    """Number of files with uncommitted changes."""
    recent: list[str]
    """Subjects of the latest commits."""
    branch: NotRequired[str | None]
    """Current branch; absent when HEAD is detached."""
    head: NotRequired[str | None]
    """Hash of the checked-out commit."""


class GitFileChange(TypedDict):
    """Changed file with its numbers of lines."""

    addedLines: int
    """Number of added lines; zero for binary files."""
    deletedLines: int
    """Number of deleted lines; zero for binary files."""
    path: str
    """Path relative to the repository."""
    status: str
    """Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed` or `conflicted`."""
    previousPath: NotRequired[str | None]
    """Former path of a renamed file."""


class GitProgress(TypedDict):
    """Payload of the live notification `git.progress`."""

    done: bool
    """True on the last notification."""
    percent: float
    """Progress in percent, 0 to 100."""
    requestId: str
    """Id of the request."""
    stage: str
    """Stage of the clone: `receiving`, `resolving`, `checkout`, …"""
    error: NotRequired[str | None]
    """Error message of a failed clone."""
    reason: NotRequired[str | None]
    """Stable reason of a failure, as in the error table."""
    result: NotRequired[CloneResult | None]
    """Result of a successful clone."""


class GitStatus(TypedDict):
    """State of a repository."""

    changes: list[GitChange]
    """Changed files, at most 1,000."""
    isRepository: bool
    """False for a folder without git; the other fields are then empty."""
    truncated: bool
    """True when there were more changes."""
    branch: NotRequired[str | None]
    """Current branch; absent when HEAD is detached."""
    head: NotRequired[str | None]
    """Hash of the checked-out commit, if any."""
    remote: NotRequired[str | None]
    """URL of `origin`, without credentials."""
    top: NotRequired[str]
    """Path of the repository below the root; empty when it is the root. Changes are relative to
    it."""


class GitStatusParams(TypedDict):
    """Parameters of the method `git.status`."""

    path: str
    """Path of a folder inside a declared root."""


class GoneNotification(TypedDict):
    """Parameters of the notification `orchestrate.gone`."""

    message: str
    """Explanation of the end for a person."""
    reason: str
    """The constant value `gone`."""
    subscriptionId: SubscriptionId
    """The subscription that ended."""


class GrantedRule(TypedDict):
    """A rule that was granted permanently."""

    grantedAt: Timestamp
    """Time of the grant."""
    grantedBy: str
    """Name of the client that granted the rule."""
    rule: str
    """The rule, as in `permissions.allow`."""
    project: NotRequired[str | None]
    """Folder of the project in which it applies; absent for a rule that applies in every project."""


class GrepAnswer(TypedDict):
    """Answer of the method `search.grep`."""

    complete: bool
    """True if the file list currently covers the complete scope."""
    filesSearched: int
    """Number of files searched."""
    items: list[GrepItem]
    """Matching lines sorted by path, then by line."""
    tookUs: int
    """Time spent, in microseconds."""
    total: int
    """Number of matching lines seen (all of them in count mode)."""
    truncated: bool
    """True when `k` cut the answer; continue with `nextCursor`."""
    counts: NotRequired[list[GrepCount]]
    """Matching lines per file, in count mode."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""
    unreadable: NotRequired[list[str]]
    """Paths of files that could not be read."""

GrepCorpus: TypeAlias = Literal[
    "grep",  # The files themselves, line by line.
]
"""Source of the partials of `search.grep`."""


class GrepCount(TypedDict):
    """Number of matching lines of one file."""

    lines: int
    """Number of matching lines."""
    path: str
    """Path relative to its root."""
    root: RootId
    """Id of the root."""


class GrepItem(TypedDict):
    """One matching line of a file."""

    line: int
    """Line number, starting at 1."""
    path: str
    """Path relative to its root."""
    root: RootId
    """Id of the root."""
    text: str
    """Text of the line without its terminator, at most 2 KiB, invalid UTF-8 replaced."""
    after: NotRequired[list[str]]
    """Lines of context after the match."""
    before: NotRequired[list[str]]
    """Lines of context before the match."""
    ranges: NotRequired[list[list[int]]]
    """Byte ranges of the matches in `text`."""


class GrepParams(TypedDict):
    """Parameters of the method `search.grep`."""

    pattern: str
    """Text, or a regular expression with `isRegex`; at most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around each match, at most 100."""
    countOnly: NotRequired[bool]
    """Counts only: `items` stays empty and `counts` has the lines per file."""
    cursor: NotRequired[str | None]
    """Cursor from the `nextCursor` of the previous page."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """Flags of the search: `ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline`
    (`U`), `dot_all` (`s`), `invert` (`v`, lines that do not match). With `files` and
    `countOnly` nothing is searched: `counts` has each file of the scope, with 0 lines."""
    isRegex: NotRequired[bool]
    """True if `pattern` is a regular expression."""
    k: NotRequired[int]
    """Maximum number of lines, 1 to 10,000."""
    pathPrefix: NotRequired[str | None]
    """Restricts the search to files under this path."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications, each with the next lines; none are sent when
    omitted or with `countOnly`."""


class GrepPartial(TypedDict):
    """Live notification `search.partial` of a `search.grep`."""

    corpus: GrepCorpus
    """Always the value `grep`."""
    done: bool
    """True on the last partial."""
    items: list[GrepItem]
    """Lines that follow those of the previous partial."""
    requestId: str
    """The `requestId` of the search."""


class GrepStreamEnd(TypedDict):
    """Answer of `search.grepStream`, returned after all lines were sent."""

    complete: bool
    """True if the file list currently covers the complete scope."""
    filesSearched: int
    """Number of files searched."""
    tookUs: int
    """Time spent, in microseconds."""
    total: int
    """Number of lines sent."""
    truncated: bool
    """True when there are more lines than `k`."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""
    unreadable: NotRequired[list[str]]
    """Paths of files that could not be read."""


class GrepStreamParams(TypedDict):
    """Parameters of the method `search.grepStream`."""

    pattern: str
    """Text, or a regular expression with `isRegex`; at most 4 KiB."""
    requestId: str
    """Name of the `search.partial` notifications that carry the lines."""
    cursor: NotRequired[str | None]
    """Cursor of a partial after which the search continues."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """Same flags as in `search.grep`."""
    isRegex: NotRequired[bool]
    """True if `pattern` is a regular expression."""
    k: NotRequired[int | None]
    """Maximum number of lines; unlimited when omitted."""
    pathPrefix: NotRequired[str | None]
    """Restricts the search to files under this path."""
    withRanges: NotRequired[bool]
    """Returns `ranges`; each line is then matched a second time."""


class HistoryAnswer(TypedDict):
    """Result of the method `session.search`."""

    data: list[HistoryEntry]
    """The entries, best first; for a file without a query, newest first."""
    pending: int
    """Number of sessions whose latest records are not searched yet; 0 for a complete answer."""


class HistoryEntry(TypedDict):
    """An entry of the history."""

    kind: HistoryKind
    """Kind of the entry."""
    seq: int
    """Number of the record in the session."""
    sessionId: SessionId
    """Id of the session."""
    text: str
    """The part of the text around the first word that was found, at most some 300 characters."""
    title: str
    """Title of the session."""
    ts: Timestamp
    """Time of the record."""
    root: NotRequired[str | None]
    """Root of the session, if it has one."""

HistoryKind: TypeAlias = Literal[
    "question",  # A message of the user.
    "answer",  # The last text of a turn, or the purpose that an explore found.
    "command",  # A command line that was run.
    "approval",  # A call that waited for an approval.
    "file",  # Paths of files that a turn changed.
    "commit",  # Message of a commit.
]
"""Kind of an entry of the history."""


class HistoryParams(TypedDict):
    """Parameters of the method `session.search`: a query, a file, or both; the newest entries without."""

    file: NotRequired[str | None]
    """Path of a file, or its end: only sessions that changed it."""
    kinds: NotRequired[list[HistoryKind] | None]
    """Kinds of entries; all if absent."""
    limit: NotRequired[int | None]
    """Maximum number of entries, at most 100; 20 if absent."""
    query: NotRequired[str]
    """Words, of which an entry has all, or some if none has all; at most 1,000 characters. A word
    also finds longer ones that begin with it."""
    root: NotRequired[str | None]
    """Path of a root: only its sessions."""


class Hotspot(TypedDict):
    """File that changed often lately."""

    commits: int
    """Number of the latest commits that changed it."""
    path: str
    """Path of the file, relative to the root."""
    subjects: list[str]
    """Subjects of some of these commits, newest first."""


class ImpactAnswer(TypedDict):
    """Answer of the method `search.impact`."""

    complete: bool
    """True if imports are currently indexed for the root."""
    items: list[ImpactItem]
    """Files that import it, directly or by others, nearest first."""
    path: str
    """Path of the file, relative to the root."""
    tookUs: int
    """Time spent, in microseconds."""
    truncated: bool
    """True if there are more than `k`."""


class ImpactItem(TypedDict):
    """A file that depends on another."""

    path: str
    """Path relative to the root."""
    steps: int
    """Number of imports between the two, 1 for a direct one."""


class ImpactParams(TypedDict):
    """Parameters of the method `search.impact`."""

    path: str
    """File whose dependents are requested, relative to the root or absolute."""
    depth: NotRequired[int]
    """Steps of imports that are followed, 1 to 20."""
    k: NotRequired[int]
    """Maximum number of files, 1 to 2,000."""
    root: NotRequired[str | None]
    """Root to search: its id or path; needed when several roots are declared."""


class IndexAddRoot(TypedDict):
    """Arguments of the tool `index_add_root`."""

    path: str
    """Absolute path of the folder."""


class IndexBuild(TypedDict):
    """Arguments of the tool `index_build`."""

    maxConcurrency: NotRequired[int | None]
    """Maximum number of indexes that run at once, including this one; while more are running, the
    build waits for them first. Unlimited when omitted."""
    timeoutSeconds: NotRequired[int | None]
    """Maximum time to wait, in seconds, up to 600; the answer then holds the state reached."""


class IndexProgress(TypedDict):
    """Payload of the live notification `index.progress`."""

    chunks: int
    """Number of chunks so far."""
    done: bool
    """True when everything is up to date, or the pass failed."""
    filesIndexed: int
    """Number of files indexed so far."""
    path: str
    """Path of the root."""
    state: IndexState
    """Current state of the index."""
    requestId: NotRequired[str | None]
    """Id of the request, if it was given."""


class IndexReceipt(TypedDict):
    """Receipt of an index command; the work is reported by `index.progress` and `index.status`."""

    path: str
    """Canonical path of the root."""
    root: RootId
    """Id of the root."""
    requestId: NotRequired[str | None]
    """Id of the request, if it was given."""

IndexState: TypeAlias = Literal[
    "indexing",  # The index is walking the root and indexing text.
    "enriching",  # Lexical search is complete; vectors or symbols are being added.
    "ready",  # The index is up to date.
    "failed",  # The last pass failed; see `error`.
]
"""State of the index of a root."""


class IndexStatus(TypedDict):
    """Answer of the method `index.status`."""

    roots: list[RootStatus]
    """One entry for each root."""


class IndexStatusParams(TypedDict):
    """Parameters of the method `index.status`."""

    root: NotRequired[str | None]
    """Root id or absolute path; all roots when omitted."""


class IndexUsage(TypedDict):
    """Disk usage of one index."""

    bytes: int
    """Bytes of the index on disk."""
    path: str
    """Path of the root."""
    root: RootId
    """Id of the root."""


class InitializeParams(TypedDict):
    """Parameters of `initialize`, the first message of a connection."""

    client: ClientInfo
    """Name and version of the client."""
    protocolVersions: list[str]
    """Protocol versions that the client supports, best first."""
    capabilities: NotRequired[ClientCapabilities]
    """Capabilities of the client."""


class InitializeResult(TypedDict):
    """Answer of the method `initialize`."""

    capabilities: ServerCapabilities
    """Capabilities of the daemon."""
    limits: Limits
    """Limits of this connection."""
    protocolVersion: str
    """The protocol version that both sides use."""
    server: ServerInfo
    """Name and instance of the daemon."""
    version: str
    """Version of the daemon, as in its Bonjour record."""

Input: TypeAlias = (
    "str | "
    "list[Part]"
)
"""Input of a turn: a text, or parts."""

InstanceId: TypeAlias = "str"


class LaggedNotification(TypedDict):
    """Notification `orchestrate.lagged`: this client fell behind and is now served from the log."""

    fromSeq: int
    """Sequence number of the next record, read from the log."""
    subscriptionId: SubscriptionId
    """Id of the subscription."""


class LayoutEntry(TypedDict):
    """A top-level folder of the repository."""

    files: int
    """Number of files in the folder."""
    path: str
    """Path of the folder."""
    role: str
    """Its main language, or its purpose."""


class Limits(TypedDict):
    """Limits of a connection; exceeding one returns an error at once."""

    maxBatch: int
    """Maximum calls in one batch."""
    maxConnections: int
    """Maximum connections of the daemon."""
    maxInFlight: int
    """Maximum calls of one connection that run at once."""
    maxK: int
    """Maximum results of one search."""
    maxMessageBytes: int
    """Maximum bytes of one message to the daemon."""
    maxPage: int
    """Maximum entries of one page."""
    maxSubscriptions: int
    """Maximum subscriptions of one connection."""

LinesCorpus: TypeAlias = Literal[
    "lines",  # The files themselves, line by line.
]
"""Source of the partials of `search.grepStream`."""


class LinesPartial(TypedDict):
    """Live notification `search.partial` of a `search.grepStream`."""

    corpus: LinesCorpus
    """Always the value `lines`."""
    done: bool
    """True on the last partial."""
    files: list[FileLines]
    """Lines that follow those of the previous partial; the first file may be the last one of that
    partial."""
    requestId: str
    """The `requestId` of the search."""
    cursor: NotRequired[str | None]
    """Cursor after these lines, to continue if the connection breaks."""


class ListDirParams(TypedDict):
    """Parameters of the method `fs.listDir`."""

    path: str
    """Path, absolute or relative to `root`."""
    depth: NotRequired[int]
    """Levels below the folder, 1 to 16."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`."""

LiveWord: TypeAlias = Literal[
    "live",  # Records after the current head.
]
"""The literal word `live`."""


class LlmCall(TypedDict):
    """Arguments of the tool `llm_call`."""

    prompt: str
    """Text of the request."""
    expectsType: NotRequired[str | None]
    """Registered type that the answer must match: `ExplorePlan` or `ExploreSummary`."""
    instructions: NotRequired[str | None]
    """System text of the request."""
    policy: NotRequired[LlmPolicy]
    """Limits and options of the model request."""
    provider: NotRequired[str | None]
    """Name of the provider; the session's own when omitted."""
    streamStructured: NotRequired[bool]
    """Emits a typed answer while it is written, as `structured_snapshot` events; requires
    `expectsType`."""


class LlmPolicy(TypedDict):
    """Limits and options of a model request."""

    allowExternalLLMs: NotRequired[bool]
    """True if models outside this machine may be used; the daemon's `models.allowExternal` must
    also allow it."""
    maxTokens: NotRequired[int | None]
    """Maximum tokens of the answer, at most 8,192; 1,024 when omitted."""
    model: NotRequired[str | None]
    """Name of the model; the provider's default when omitted."""
    temperature: NotRequired[float | None]
    """Sampling temperature, 0 to 2; the provider's default when omitted."""


class LogUsage(TypedDict):
    """Parts of the log, with their sizes."""

    artifactBytes: int
    """Bytes of artifacts: the state of explores, and system texts."""
    auditRows: int
    """Number of rows of the audit."""
    blobBytes: int
    """Bytes of blobs: large results, and contents of files from before changes."""
    fileBytes: int
    """Bytes of the database and its write-ahead log on disk."""
    freeBytes: int
    """Bytes of the database that are not used."""
    largest: list[SessionUsage]
    """The largest sessions, largest first."""
    packedBytes: int
    """Bytes of the packed records among them, compressed."""
    recordBytes: int
    """Bytes of these records, of packed ones compressed. Records that a fork has in common with
    its origin count once."""
    records: int
    """Number of records of all sessions."""
    sessions: int
    """Number of sessions in the log."""
    unpackedBytes: int
    """Bytes of packed records before their compression."""


class MapAnswer(TypedDict):
    """Answer of the method `search.map`."""

    complete: bool
    """False while symbols are missing, and for trees with more definitions than a map can rank."""
    files: list[MapFile]
    """Files of the map, best first."""
    text: str
    """The map for a model: one line for each file, and under it one for each definition with line
    number and signature, or kind and name."""
    tokens: int
    """Tokens of `text`, counted as one per four bytes; at most the budget."""
    tookUs: int
    """Time spent, in microseconds."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""


class MapDefinition(TypedDict):
    """One definition of a map."""

    kind: str
    """Kind of definition: `function`, `class`, …"""
    line: int
    """First line of the definition."""
    name: str
    """Name of the definition."""
    signature: NotRequired[str | None]
    """Its first lines without the body and without the value of a constant, on one line of at most
    100 characters. Absent if the budget was used up, if the file has changed since, and for
    modules and sections."""


class MapFile(TypedDict):
    """One file of a map."""

    definitions: list[MapDefinition]
    """Definitions that fit the budget, sorted by line."""
    path: str
    """Path relative to its root."""
    root: RootId
    """Id of the root."""
    score: float
    """Share of the total rank, 0 to 1."""


class MapParams(TypedDict):
    """Parameters of the method `search.map`."""

    budget: NotRequired[int]
    """Maximum tokens of the text, 1 to 16,384, counted as one per four bytes."""
    files: NotRequired[list[str]]
    """Files being edited, relative to their root or absolute, at most 200: files that they refer
    to rank first."""
    query: NotRequired[str | None]
    """Text or names that describe the task: files that a search for it finds rank first. At most
    4 KiB."""
    roots: NotRequired[list[str]]
    """Root ids or absolute root paths; all declared roots when empty."""


class McpAccount(TypedDict):
    """Outcome of a login or logout."""

    loggedIn: bool
    """True if a login is stored now."""
    name: str
    """Name of the server in the configuration."""
    wasLoggedIn: bool
    """True if a login was stored before."""


class McpFinishLoginParams(TypedDict):
    """Parameters of the method `mcp.finishLogin`."""

    loginId: McpLoginId
    """Id of the login."""
    redirectUrl: NotRequired[str | None]
    """Address to which the browser was sent, if it could not reach the daemon: it runs on another
    machine."""


class McpLogin(TypedDict):
    """A login that waits for the user's browser."""

    expiresAt: Timestamp
    """Time after which the login is abandoned."""
    loginId: McpLoginId
    """Id of the login."""
    url: str
    """Address that the user opens in a browser."""

McpLoginId: TypeAlias = "str"


class McpServerInfo(TypedDict):
    """An MCP server of the configuration."""

    loggedIn: bool
    """True if a login to it is stored."""
    name: str
    """Name of the server in the configuration."""
    state: McpServerState
    """State of its connection."""
    tools: int
    """Number of its tools that can be called."""
    error: NotRequired[str | None]
    """Reason why it cannot be used, with the way out."""
    url: NotRequired[str | None]
    """Its address without query; absent for a program."""


class McpServerRef(TypedDict):
    """Parameters that name an MCP server of the configuration."""

    name: str
    """Name of the server in the configuration."""

McpServerState: TypeAlias = Literal[
    "starting",  # The server was started and has not answered yet.
    "connected",  # Calls of its tools reach the server.
    "login_required",  # The server refuses calls without a login.
    "failed",  # The server cannot be reached, for the reason in `error`.
    "disabled",  # The configuration switches the server off.
]
"""State of an MCP server of the configuration."""


class MemoryChange(TypedDict):
    """Result of a change to the store."""

    bytes: int
    """Size of the text in bytes after the change; 0 when the entry was deleted."""
    message: str
    """Message in one sentence for a person."""
    name: str
    """Name of the changed entry."""


class MemoryEntry(TypedDict):
    """An entry without its text."""

    bytes: int
    """Size of the text in bytes."""
    fixed: bool
    """True when the entry cannot be changed or deleted through Cairn: its name begins with
    `fix-`."""
    keywords: list[str]
    """Keywords of the entry as a list."""
    modified: Timestamp
    """Time of the last write."""
    name: str
    """Sorted keywords joined by `_`: the name of the entry's file without `.md`."""
    excerpt: NotRequired[str | None]
    """Part of the text that matched the search, in one line."""
    general: NotRequired[bool]
    """True for a general entry, which every project reads and no tool changes."""


class MemoryKeyword(TypedDict):
    """A keyword and its frequency."""

    entries: int
    """Number of entries with the keyword."""
    keyword: str
    """The keyword as a word."""


class MemoryText(TypedDict):
    """An entry with its text."""

    content: str
    """Text of the entry."""
    fixed: bool
    """True when the entry cannot be changed or deleted."""
    name: str
    """Name of the entry."""
    general: NotRequired[bool]
    """True for a general entry, which every project reads and no tool changes."""


class MirrorStatus(TypedDict):
    """State of the copying of records."""

    confirmed: int
    """Records that the broker confirmed since the daemon's start."""
    refused: int
    """Messages that the broker refused because of their order."""
    waiting: int
    """Sessions with records that the broker does not have yet."""
    error: NotRequired[str | None]
    """Reason why no record is copied."""

MissedRuns: TypeAlias = Literal[
    "once",  # One run follows when the daemon starts, however many were missed.
    "skip",  # No run follows; the times are listed.
]
"""Treatment of times at which the daemon was off."""


class ModelAnswer(TypedDict):
    """A complete answer of a model."""

    firstMillis: int
    """Milliseconds until the first piece arrived."""
    millis: int
    """Milliseconds until the answer was complete."""
    model: ModelChoice
    """Model that gave the answer."""
    requestDigest: str
    """SHA-256 (hex) of the request: system text, messages and tools."""
    runId: RunId
    """Id of the run."""
    tokensPerSecond: float
    """Tokens per second during the answer; 0 when it was too short to measure."""
    usage: TokenUsage
    """Token usage by the provider's count, or by the daemon's if the provider reports none."""
    calls: NotRequired[list[ToolUse]]
    """Tool calls that the model requests."""
    contextTokens: NotRequired[int | None]
    """Context size of the model in tokens, if known."""
    finish: NotRequired[FinishReason | None]
    """Reason why the model stopped; absent when the answer was cut off."""
    heardSeq: NotRequired[int]
    """Sequence number of the latest `steered` record included in the request; 0 if none."""
    raw: NotRequired[BlobRef | None]
    """Reference to the raw bytes of the answer, for replay."""
    reasoning: NotRequired[ProviderReasoning | None]
    """Reasoning that the provider requires back with the conversation."""


class ModelChoice(TypedDict):
    """The model that a session uses."""

    model: str
    """Name of the model at the provider."""
    provider: str
    """Name of the provider in Cairn."""
    endpoint: NotRequired[str | None]
    """URL of the endpoint, when it differs from the configured one."""


class ModelInfo(TypedDict):
    """A model that a provider offers."""

    model: str
    """The provider's name of the model."""
    provider: str
    """Cairn's name of the provider: `ollama`, `openai`, …"""
    contextTokens: NotRequired[int | None]
    """Context size of the model in tokens, if it is known."""
    images: NotRequired[bool | None]
    """True if the model reads images; absent if that is not known."""
    maxOutputTokens: NotRequired[int | None]
    """Maximum tokens of an answer, if it is known."""
    price: NotRequired[ModelPrice | None]
    """Price of the model, if it is known."""
    reasoning: NotRequired[bool | None]
    """True if the model reasons before it answers; absent if that is not known."""
    sizeBytes: NotRequired[int | None]
    """Size of the weights in bytes, if the provider reports it."""
    tools: NotRequired[bool | None]
    """True if the model calls tools; absent if that is not known."""


class ModelListParams(TypedDict):
    """Parameters of the method `model.list`."""

    provider: NotRequired[str | None]
    """Name of the provider; the configured one when omitted."""


class ModelPrice(TypedDict):
    """Price of a model in US dollars for a million tokens."""

    input: float
    """Price of the prompt's tokens."""
    output: float
    """Price of the answer's tokens."""
    cached: NotRequired[float | None]
    """Price of the prompt's tokens that are read from the provider's cache."""

NameMatch: TypeAlias = Literal[
    "exact",  # The name equals the query.
    "prefix",  # The name begins with the query.
    "fuzzy",  # The name is similar to the query.
]
"""Method that matches names."""


class NarrowParams(TypedDict):
    """Parameters of the method `permission.narrow`."""

    rule: str
    """The rule, as returned by `permission.list`."""
    to: str
    """The rule that replaces it. It must cover nothing that the first one does not."""
    project: NotRequired[str | None]
    """Folder of a project: only the rule of that project is replaced."""


class Omitted(TypedDict):
    """The part of an answer that `maxTokens` left out."""

    hint: str
    """Description of a request that returns the omitted part."""
    items: int
    """Number of results that are neither in `items` nor in the text."""
    lines: int
    """Number of lines of the named results that the text leaves out."""
    nextOffset: NotRequired[int | None]
    """Value of `offset` that continues the answer, if results were left out."""


class Origin(TypedDict):
    """Client, run and tool that caused an entry, as far as known."""

    client: NotRequired[str | None]
    """Name of the client that made the request."""
    runId: NotRequired[RunId | None]
    """Id of the run that the entry belongs to."""
    tool: NotRequired[str | None]
    """Name of the tool that produced the entry."""

Outcome: TypeAlias = Literal[
    "completed",  # The model finished its answer.
    "failed",  # The turn failed; `error` holds the reason.
    "cancelled",  # A client cancelled the turn.
    "denied",  # A call was finally denied, or no approver was available.
    "timed_out",  # The time limit was exceeded. A turn that exceeds its token limit ends as `failed` with the reason `budget_exceeded`.
]
"""Outcome of a turn."""


class Overview(TypedDict):
    """Overview that a model wrote; lines of the tree bear out every statement."""

    droppedCitations: int
    """Number of citations that were dropped: no such line, or none of the statement's words near it."""
    droppedStatements: int
    """Number of statements that were dropped because none of their citations was valid."""
    statements: list[Statement]
    """Statements in reading order, at most 12."""


class PackedLines(TypedDict):
    """A range of lines in a packed text."""

    endLine: int
    """Last line of the range, inclusive."""
    item: int
    """Index in `items` of the result in whose file the lines are."""
    startLine: int
    """First line of the range, starting at 1."""


class PackedText(TypedDict):
    """An answer as text of bounded size: for each result its location and its most relevant lines,
    with `…` and the number of lines where some are left out."""

    lines: list[PackedLines]
    """Ranges of lines that `text` contains."""
    text: str
    """Complete text, best result first. Locations are relative to the root if one root was
    searched, absolute otherwise."""
    tokens: int
    """Upper estimate of the tokens of `text`, at most `maxTokens`."""


class PageOfApproval(TypedDict):
    """One page of a list."""

    data: list[Approval]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfAuditEntry(TypedDict):
    """One page of a list."""

    data: list[AuditEntry]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfBackgroundCommand(TypedDict):
    """One page of a list."""

    data: list[BackgroundCommand]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfDevice(TypedDict):
    """One page of a list."""

    data: list[Device]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfFleetRun(TypedDict):
    """One page of a list."""

    data: list[FleetRun]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfGrantedRule(TypedDict):
    """One page of a list."""

    data: list[GrantedRule]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfMcpServerInfo(TypedDict):
    """One page of a list."""

    data: list[McpServerInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfMemoryEntry(TypedDict):
    """One page of a list."""

    data: list[MemoryEntry]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfMemoryKeyword(TypedDict):
    """One page of a list."""

    data: list[MemoryKeyword]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfModelInfo(TypedDict):
    """One page of a list."""

    data: list[ModelInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfPluginInfo(TypedDict):
    """One page of a list."""

    data: list[PluginInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfProviderInfo(TypedDict):
    """One page of a list."""

    data: list[ProviderInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfRootStatus(TypedDict):
    """One page of a list."""

    data: list[RootStatus]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfSchedule(TypedDict):
    """One page of a list."""

    data: list[Schedule]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfSession(TypedDict):
    """One page of a list."""

    data: list[Session]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfSkillInfo(TypedDict):
    """One page of a list."""

    data: list[SkillInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfToolInfo(TypedDict):
    """One page of a list."""

    data: list[ToolInfo]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfUnattendedRun(TypedDict):
    """One page of a list."""

    data: list[UnattendedRun]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfWorktree(TypedDict):
    """One page of a list."""

    data: list[Worktree]
    """Entries of the page."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageParams(TypedDict):
    """Page parameters of lists."""

    archived: NotRequired[bool]
    """Includes archived entries in the list."""
    cursor: NotRequired[str | None]
    """Cursor from the `nextCursor` of the previous page."""
    id: NotRequired[str | None]
    """Lists only entries whose id begins or ends with this, 4 to 36 characters; `ses_` may be
    omitted at the beginning."""
    limit: NotRequired[int | None]
    """Maximum number of entries, at most 500."""


class PairBeginParams(TypedDict):
    """Parameters of the method `pair.begin`."""

    rights: list[Right]
    """Rights of the new device, all of which the caller must have."""
    name: NotRequired[str | None]
    """Name for the device; the device's own name when omitted."""


class PairOffer(TypedDict):
    """Answer of `pair.begin`: a person enters it on the other machine."""

    addresses: list[str]
    """`host:port` of each listener for devices."""
    code: str
    """Code of eight digits, valid for one pairing."""
    expiresAt: Timestamp
    """Time at which the code expires."""
    key: str
    """Hash of the daemon's public key."""
    tries: int
    """Number of wrong attempts after which the code becomes void."""
    certificate: NotRequired[str | None]
    """SHA-256 of the listener's certificate, which browsers show with their warning."""
    page: NotRequired[str | None]
    """Path of the viewer on each address, with a code behind `#` that pairs one browser; it is
    valid as long as `code`, and instead of it."""

PairState: TypeAlias = Literal[
    "none",  # No code was requested yet.
    "waiting",  # A code waits for its device.
    "paired",  # A device is paired; the code is used up.
    "void",  # Too many wrong attempts made the code void.
    "expired",  # No device used the code in time.
    "cancelled",  # The pairing was cancelled.
]
"""State of a pairing."""


class PairStatus(TypedDict):
    """Answer of `pair.status` and `pair.cancel`."""

    state: PairState
    """State of the latest code."""
    triesLeft: int
    """Number of attempts that remain."""
    device: NotRequired[Device | None]
    """Device that used the code."""


class PartText(TypedDict):
    """A part of plain text."""

    type: Literal["text"]
    text: str
    """Text of the part."""


class PartImage(TypedDict):
    """An image, for models that accept images."""

    type: Literal["image"]
    data: str
    """Bytes of the image in base64."""
    mime: str
    """MIME type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`."""

Part: TypeAlias = (
    "PartText | "
    "PartImage"
)
"""One part of a user's message."""


class PlanItem(TypedDict):
    """One item of the agent's task list."""

    text: str
    """Text of the item."""
    status: NotRequired[PlanStatus]
    """Status of the item: `pending`, `in_progress` or `done`."""

PlanStatus: TypeAlias = Literal[
    "pending",  # The task is not started.
    "in_progress",  # The task is in progress.
    "done",  # The task is done.
]
"""Status of a task."""

PlannerKind: TypeAlias = Literal[
    "default",  # The built-in planner alone: deterministic, without a model.
    "model",  # The built-in planner, followed by the session's model with the results so far.
]
"""Planner of an explore."""


class PluginInfo(TypedDict):
    """A folder of skills, MCP servers, commands and hooks."""

    folder: str
    """Path of its folder."""
    name: str
    """Name of the plugin."""
    commands: NotRequired[list[str]]
    """Names of its commands."""
    description: NotRequired[str]
    """Description in one line."""
    error: NotRequired[str | None]
    """Reason why it is not loaded."""
    hooks: NotRequired[list[str]]
    """Events that its hooks handle."""
    mcpServers: NotRequired[list[str]]
    """Names of its MCP servers."""
    skills: NotRequired[list[str]]
    """Names of its skills."""
    version: NotRequired[str]
    """Version in its author's numbering."""


class PoolStatus(TypedDict):
    """State of a pool."""

    active: int
    """Number of runs that daemons have taken and not finished."""
    daemons: list[str]
    """Names of the connected daemons that take its runs."""
    name: str
    """Name of the pool."""
    queued: int
    """Number of runs that no daemon has taken."""


class Preview(TypedDict):
    """The exact effects of a call."""

    summary: str
    """Summary in one line."""
    bound: NotRequired[list[BoundPath]]
    """Paths that a command acts by as they were at the request: its working folder, the scripts
    that it runs, the files that its redirections write. The command does not start when they differ."""
    command: NotRequired[str | None]
    """The command line, for a shell call."""
    diff: NotRequired[str | None]
    """The change as a unified diff, cut at 64 KiB with a note in its text."""
    domains: NotRequired[list[str]]
    """Domains that the call can reach without a further approval, as patterns."""
    folder: NotRequired[str | None]
    """Working folder of the command, relative to the root."""
    network: NotRequired[bool]
    """True if the call uses the network."""
    paths: NotRequired[list[str]]
    """Paths that the call touches, relative to the root."""
    warnings: NotRequired[list[str]]
    """Warnings for the approver, such as a missing sandbox or a file that was not read before."""


class Project(TypedDict):
    """A package, crate or module of the repository."""

    kind: str
    """Kind of project: `cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, …"""
    manifest: str
    """Path of the manifest."""
    name: str
    """Name in the manifest."""
    description: NotRequired[str | None]
    """Description in the manifest."""


class ProjectCommands(TypedDict):
    """Commands of a project, most trusted first."""

    build: list[str]
    """Commands that build the project."""
    run: list[str]
    """Commands that run the project."""
    test: list[str]
    """Commands that test the project."""
    format: NotRequired[list[str]]
    """Commands that format the code."""
    lint: NotRequired[list[str]]
    """Commands that check the style or types of the code."""
    sources: NotRequired[dict[str, str]]
    """The file that states each command."""


class ProjectMemoryKeywordsParams(TypedDict):
    """Parameters of the method `memory.keywords`."""

    limit: NotRequired[int | None]
    """Maximum number of keywords: 200 by default, at most 500; the most frequent first."""
    project: NotRequired[str | None]
    """Folder of the project, absolute; without it only general entries are counted."""


class ProjectMemoryListParams(TypedDict):
    """Parameters of the method `memory.list`."""

    cursor: NotRequired[str | None]
    """Cursor from an earlier page."""
    limit: NotRequired[int | None]
    """Entries per page: 50 by default, at most 200."""
    project: NotRequired[str | None]
    """Folder of the project, absolute; without it only general entries are listed."""


class ProjectMemoryRef(TypedDict):
    """Parameters of `memory.load` and `memory.delete`."""

    keywords: str
    """Keywords of the entry in any order, or its name."""
    project: NotRequired[str | None]
    """Folder of the project, absolute; without it the entry is a general one."""


class ProjectMemorySearchParams(TypedDict):
    """Parameters of the method `memory.search`.
    
    Only a method can name a project: a tool works in the project of its session."""

    query: str
    """Text to search for."""
    cursor: NotRequired[str | None]
    """Cursor from an earlier page."""
    limit: NotRequired[int | None]
    """Results per page: 10 by default, at most 20."""
    project: NotRequired[str | None]
    """Folder of the project, absolute; without it only general entries are searched."""


class ProjectMemoryWriteParams(TypedDict):
    """Parameters of `memory.save` and `memory.append`."""

    content: str
    """Text to write; at most 256 KiB, including the existing text of the entry."""
    keywords: str
    """Keywords of the entry, in any order: 1 to 8 words. They are its only name."""
    project: NotRequired[str | None]
    """Folder of the project, absolute; without it the entry is a general one."""


class PromptAppendParams(TypedDict):
    """Parameters of the method `prompt.append`."""

    sessionId: SessionId
    """Id of the session."""
    text: str
    """Text appended after the tools' own texts; at most 16 KiB of it are used."""


class PromptSetParams(TypedDict):
    """Parameters of the method `prompt.set`."""

    sessionId: SessionId
    """Id of the session, whose conversation is cleared."""
    system: NotRequired[str | None]
    """Text that replaces the built-in base; an empty text removes the base. When omitted, the
    built-in base is restored and appended text is removed."""


class PromptShowParams(TypedDict):
    """Parameters of the method `prompt.show`."""

    sessionId: SessionId
    """Id of the session."""
    policy: NotRequired[ExecutionPolicy | None]
    """Permissions and limits of the turn whose text is returned; they decide which tools it lists."""


class PromptShown(TypedDict):
    """The resolved system text of a session."""

    system: str
    """The text as the model receives it."""


class ProviderCurrentParams(TypedDict):
    """Parameters of the method `provider.current`."""

    sessionId: NotRequired[SessionId | None]
    """Id of the session; the daemon's default model when omitted."""


class ProviderInfo(TypedDict):
    """A provider as clients see it."""

    available: bool
    """True if the provider can currently be called."""
    external: bool
    """True if requests leave this machine."""
    name: str
    """Name of the provider."""
    defaultModel: NotRequired[str | None]
    """Name of the model used when a request names none."""
    endpoint: NotRequired[str | None]
    """URL of the provider's endpoint."""
    images: NotRequired[bool]
    """True if the provider accepts images, although a model may still refuse them. Always false
    for an unavailable provider."""
    reason: NotRequired[str | None]
    """Reason why the provider is unavailable."""


class ProviderReasoning(TypedDict):
    """Reasoning of an answer in the provider's own form: signed or encrypted, of use to this provider's
    model only, and to no other one."""

    items: list[ReasoningItem]
    """Items in the order of their arrival."""
    model: str
    """The provider's name of the model."""
    provider: str
    """Cairn's name of the provider."""


class ProviderSet(TypedDict):
    """Answer of the method `provider.set`."""

    model: str
    """Name of the model at the provider."""
    provider: str
    """Name of the provider in Cairn."""
    contextTokens: NotRequired[int | None]
    """Context size of the model in tokens, if known."""
    endpoint: NotRequired[str | None]
    """URL of the endpoint, when it differs from the configured one."""
    warnings: NotRequired[list[str]]
    """Warnings for the user, such as a smaller context than before."""


class ProviderSetParams(TypedDict):
    """Parameters of the method `provider.set`."""

    sessionId: SessionId
    """Id of the session."""
    endpoint: NotRequired[str | None]
    """URL of another endpoint, to which no key configured for the regular one is sent."""
    model: NotRequired[str | None]
    """Name of the model; the provider's default when omitted."""
    provider: NotRequired[str | None]
    """Name of the provider; the session's own when omitted."""

QueryKind: TypeAlias = Literal[
    "identifier",  # One identifier, possibly qualified: `TypeAdapter`, `Foo::bar`, `parse_header()`. The definitions of exactly that name come first.
    "path",  # One path, possibly with a line: `src/main.rs:42`.
    "use",  # A question about use (`how do I run this with docker`), which documents answer.
    "text",  # Words, a sentence, or another question.
    "issue",  # A text of several lines: an issue, a log, a stack trace. Its title, the names, paths and messages in it count more than the rest.
]
"""Kind of a query. Each kind has its own candidates and weights."""


class ReasoningItem(TypedDict):
    """One item of a provider's reasoning."""

    beforeCall: int
    """Number of the answer's tool calls before the item."""
    item: Any
    """The item as the provider sent it."""

ReferenceConfidence: TypeAlias = Literal[
    "exact",  # Scopes and imports lead to it.
    "likely",  # Types that are written in the file, or the only definition of the name, lead to it.
    "ambiguous",  # A member of a value whose type is not known.
]
"""Certainty that a reference means the definition."""


class ReferenceItem(TypedDict):
    """A reference to a definition."""

    column: int
    """Column in bytes, starting at 0."""
    confidence: ReferenceConfidence
    """Certainty that the definition is meant."""
    kind: ReferenceUse
    """Use that it makes of the definition."""
    line: int
    """Line of the reference, starting at 1."""
    path: str
    """Path relative to the root."""
    text: str
    """Text of the line, shortened to 300 characters."""
    enclosing: NotRequired[SymbolRef | None]
    """Definition that contains the reference."""

ReferenceUse: TypeAlias = Literal[
    "definition",  # The definition itself, or a declaration of it.
    "import",  # A statement that imports it.
    "call",  # A call of it.
    "type",  # A use as a type.
    "write",  # An assignment to it.
    "read",  # Any other use, such as passing it on.
]
"""Use that a reference makes of a definition."""


class ReferencesAnswer(TypedDict):
    """Answer of the method `search.references`."""

    complete: bool
    """True if imports and symbols are currently indexed for the root."""
    definition: SymbolItem
    """Definition whose references these are."""
    items: list[ReferenceItem]
    """References by path, then by line."""
    tookUs: int
    """Time spent, in microseconds."""
    truncated: bool
    """True if there are more than `k`, or more candidate files than were read."""
    others: NotRequired[list[SymbolItem]]
    """Other definitions of the name, which `path` and `line` can select."""


class ReferencesParams(TypedDict):
    """Parameters of the method `search.references`."""

    k: NotRequired[int]
    """Maximum number of references, 1 to 2,000."""
    kinds: NotRequired[list[ReferenceUse]]
    """Kinds of references to return; all when empty."""
    line: NotRequired[int | None]
    """Line of the definition in `path`, starting at 1; the innermost definition around it is used."""
    path: NotRequired[str | None]
    """File with the definition, relative to the root or absolute."""
    root: NotRequired[str | None]
    """Root to search: its id or path; needed when several roots are declared."""
    symbol: NotRequired[str | None]
    """Name of the definition, as `name` or `Type.name`; with `path` the one in that file."""


class ReplayDifference(TypedDict):
    """A step whose result differed in the replay."""

    now: str
    """Value in the replay."""
    path: str
    """Location in the step, as a JSON pointer."""
    recorded: str
    """Value in the recorded trace."""
    seq: int
    """Sequence number of the record concerned; 0 when none is."""
    what: str
    """Kind of the step."""
    file: NotRequired[str | None]
    """The file that the differing value is about, relative to the root, if it is about one."""


class ReplayParams(TypedDict):
    """Parameters of the method `trace.replay`."""

    traceId: SessionId
    """Id of the session to replay."""
    root: NotRequired[str | None]
    """Folder to replay in, which must be a declared root; the session's own root when omitted."""


class ReplayReport(TypedDict):
    """Answer of the method `trace.replay`."""

    compared: int
    """Number of compared steps."""
    identical: bool
    """True if all compared steps were identical."""
    replay: SessionId
    """Id of the session in which it was replayed."""
    traceId: SessionId
    """Id of the session that was replayed."""
    changedFileCount: NotRequired[int]
    """Number of all such files."""
    changedFiles: NotRequired[list[ChangedFile]]
    """Files of an explore's root that are not as they were when it was recorded, at most 50."""
    first: NotRequired[ReplayDifference | None]
    """The first step that differed."""


class Resolution(TypedDict):
    """Answer to an approval, with its author."""

    at: Timestamp
    """Time of the answer."""
    by: str
    """Author of the answer: a client's name, `deadline` or `cancelled`."""
    decision: ApprovalDecision
    """The decision that was made."""
    pattern: NotRequired[list[str] | None]
    """Rules that were granted instead of the approval's own."""
    reason: NotRequired[str | None]
    """Reason for the decision; shown to the model when the call is denied."""


class RevokeParams(TypedDict):
    """Parameters of the method `permission.revoke`."""

    rule: str
    """The rule, as returned by `permission.list`."""
    project: NotRequired[str | None]
    """Folder of a project: only the rule of that project is revoked."""

Right: TypeAlias = Literal[
    "observe",  # Read the state and follow events.
    "prompt",  # Start and control work.
    "approve",  # Answer requests for approval.
    "admin",  # Change the daemon's state and configuration.
]
"""A right that a method requires of a client."""

RootId: TypeAlias = "str"
"""Id of an indexed root: `root_` and the first 16 hex digits of the SHA-256 of its canonical path,
so that the same folder retains its index."""


class RootRef(TypedDict):
    """Parameters that name a root by its id or its absolute path."""

    root: str
    """Root id or absolute path."""
    requestId: NotRequired[str | None]
    """Retry key, and name for `index.progress` where work follows."""


class RootStatus(TypedDict):
    """State of the index of one root."""

    bytes: int
    """Bytes of text in the indexed files."""
    chunks: int
    """Number of indexed chunks."""
    clock: int
    """Counter that grows by one with each committed batch of changes."""
    complete: bool
    """True when text, vectors and symbols are all up to date with the last scan."""
    embedder: str
    """Name of the embedding model."""
    files: int
    """Number of indexed files."""
    languages: dict[str, int]
    """Indexed files by language."""
    path: str
    """Canonical path of the root."""
    pending: int
    """Files waiting to be indexed."""
    root: RootId
    """Id of the root."""
    skipped: dict[str, int]
    """Number of skipped files by reason: `binary`, `too_large`, `generated`, `unreadable`,
    `invalid_name`, …"""
    state: IndexState
    """Current state of the index."""
    symbolFiles: int
    """Number of files whose symbols are indexed."""
    symbols: int
    """Number of indexed definitions."""
    vectors: int
    """Number of chunks with a vector."""
    watch: str
    """Detection of changes: immediate (`watching`), by sweeps only (`polling`) or none (`off`)."""
    error: NotRequired[str | None]
    """Error of the last pass, if it failed."""


class RunError(TypedDict):
    """Reason why a turn did not complete."""

    hint: str
    """Advice on how to resolve the failure."""
    message: str
    """Message for a person."""
    reason: str
    """Stable reason, as in the error table."""
    retryable: bool
    """True if the same turn may succeed later."""

RunId: TypeAlias = "str"


class RunReceipt(TypedDict):
    """Receipt of a started run."""

    runId: RunId
    """Id of the run."""
    seq: int
    """Sequence number of the run's durable `started` record."""
    sessionId: SessionId
    """Id of the session to follow."""


class RunResult(TypedDict):
    """Result of a turn."""

    runId: RunId
    """Id of the run."""
    sessionId: SessionId
    """Id of the session."""
    status: Outcome
    """Outcome of the turn."""
    toolTrace: list[ToolTrace]
    """All tool calls in order."""
    turnId: str
    """Id of the turn."""
    usage: TokenUsage
    """Token usage of all answers."""
    error: NotRequired[RunError | None]
    """Reason why the turn did not complete."""
    finalOutput: NotRequired[str | None]
    """Last visible text of the model."""
    metadata: NotRequired[dict[str, str]]
    """Metadata that the client sent with the turn."""


class RunStartParams(TypedDict):
    """Parameters of the method `orchestrate.run.start`."""

    input: Input
    """Input of the turn."""
    sessionId: SessionId
    """Id of the session."""
    turnId: str
    """Id of the turn, chosen by the client, 1 to 128 bytes: a repeated id returns the first
    receipt."""
    context: NotRequired[TurnContext | None]
    """Additional context for the model, placed before the input."""
    metadata: NotRequired[dict[str, str]]
    """Metadata that is stored with the turn and returned unchanged; at most 32 entries."""
    policy: NotRequired[ExecutionPolicy | None]
    """Permissions and limits of the turn."""

RunState: TypeAlias = Literal[
    "idle",  # No run has started yet.
    "running",  # The run is active.
    "completed",  # The run finished with `completed`.
    "stopped",  # The run finished with `stopped`.
    "failed",  # The run finished with `error`.
    "interrupted",  # The daemon stopped during the run, which can be resumed.
]
"""State of a run."""


class RunStatus(TypedDict):
    """Answer of the method `orchestrate.run.status`."""

    headSeq: int
    """Sequence number of the newest record."""
    queued: int
    """Number of turns in the queue behind the active one."""
    sessionId: SessionId
    """Id of the session."""
    state: RunState
    """State of the session."""
    runId: NotRequired[RunId | None]
    """Id of its latest turn's run."""


class SandboxProbe(TypedDict):
    """Answer of the method `sandbox.probe`."""

    controlGroup: bool
    """True if a control group limits memory and processes of a command in total."""
    notes: list[str]
    """Limits of the confinement: actions that it does not prevent."""
    seccomp: bool
    """True if system calls can be filtered."""
    tier: str
    """Confinement available: `full`, `weaker` or `none`."""
    userNamespaces: bool
    """True if user namespaces can be created."""
    bubblewrap: NotRequired[str | None]
    """Version text of bubblewrap; absent when it is not installed."""
    landlock: NotRequired[int | None]
    """Version of the Landlock interface."""
    whyNotFull: NotRequired[str | None]
    """Reason why the full tier is unavailable."""

SandboxUse: TypeAlias = Literal[
    "on",  # Commands are confined as the configuration says.
    "off",  # Commands run outside the sandbox.
]
"""Confinement of commands in a turn."""


class Schedule(TypedDict):
    """A request that starts at set times."""

    createdAt: Timestamp
    """Time at which it was added."""
    cron: str
    """The same times as a cron expression."""
    job: ScheduledJob
    """The work of each run."""
    missed: MissedRuns
    """Treatment of times at which the daemon was off."""
    scheduleId: ScheduleId
    """Id of the schedule."""
    timezone: str
    """Name of the IANA time zone of these times."""
    when: str
    """Times as they were given."""
    client: NotRequired[str | None]
    """Name of the client that added it."""
    history: NotRequired[list[ScheduleEntry]]
    """Its latest runs and skipped times, newest first, at most 20."""
    nextAt: NotRequired[Timestamp | None]
    """Next time at which it runs."""


class ScheduleAddParams(TypedDict):
    """Parameters of the method `schedule.add`."""

    job: ScheduledJob
    """The work of each run."""
    when: str
    """Times in words (`every weekday 7:00`), or as a cron expression of five fields."""
    missed: NotRequired[MissedRuns]
    """Treatment of times at which the daemon was off; `once` when omitted."""
    timezone: NotRequired[str | None]
    """Name of the IANA time zone of these times; the daemon's when omitted."""


class ScheduleEntry(TypedDict):
    """A run of a schedule, or a time at which none started."""

    at: Timestamp
    """Time for which it was scheduled; that of the request for `schedule.run`."""
    outcome: ScheduleOutcome
    """Outcome of the start."""
    missed: NotRequired[int | None]
    """Number of scheduled times that passed while the daemon was off, this one included."""
    reason: NotRequired[str | None]
    """Reason of a failure, for people."""
    sessionId: NotRequired[SessionId | None]
    """Session of the run, if one was created."""

ScheduleId: TypeAlias = "str"

ScheduleOutcome: TypeAlias = Literal[
    "started",  # A run started; its session has the rest.
    "failed",  # The run could not be started.
    "overlapped",  # The run before it was still active.
    "missed",  # The daemon was off, and the schedule skips such times.
]
"""Outcome of a scheduled time."""


class ScheduleRef(TypedDict):
    """Parameters that name a schedule."""

    scheduleId: ScheduleId
    """Id of the schedule."""


class ScheduledJob(TypedDict):
    """The work of each run of a schedule."""

    request: str
    """The request, 1 byte to 64 KiB."""
    root: str
    """Declared root in which the runs work: a path or root id."""
    maxTurns: NotRequired[int | None]
    """As `maxTurns` of `unattended.start`."""
    maxUsd: NotRequired[float | None]
    """As `maxUsd` of `unattended.start`, for each run."""
    policy: NotRequired[ExecutionPolicy | None]
    """Permissions and limits of the turns."""
    until: NotRequired[str | None]
    """As `until` of `unattended.start`."""
    worktree: NotRequired[bool]
    """True if each run has a work tree of its own."""


class SearchAnswer(TypedDict):
    """Answer of a search."""

    complete: bool
    """True if the index currently covers the complete scope."""
    items: list[SearchItem]
    """Results of the search, best first."""
    tookUs: int
    """Time spent, in microseconds."""
    degraded: NotRequired[list[str]]
    """Missing or late parts (`vectors`, `symbols`, `indexing`, `rerank`, `script`); empty when the
    answer is complete. `script`: the embedding table does not know the script of some words of
    the query, so that these are compared as words only, and not at all by a semantic search."""
    kind: NotRequired[QueryKind | None]
    """Kind of the query, which selects the weights. Only with `explain`."""
    omitted: NotRequired[Omitted | None]
    """Results that did not fit into `maxTokens`, if any."""
    packed: NotRequired[PackedText | None]
    """Text of the answer within `maxTokens`, if that was given."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""
    weak: NotRequired[bool]
    """True if the items are the nearest ones but none of them contains much of the query, so that
    they probably do not answer it. Never set for a semantic search."""


class SearchFilters(TypedDict):
    """Filters of a search; a result must match all that are given."""

    globs: NotRequired[list[str]]
    """Glob patterns, of which a file matches any; a leading `!` excludes matching files."""
    hidden: NotRequired[bool]
    """True adds hidden files (`.github/…`, `.eslintrc`), by the same ignore rules; `.git` stays
    left out. The first such request of a root indexes them. Not for `search.symbols`."""
    kinds: NotRequired[list[str]]
    """Symbol kinds (`function`, `class`, …): only results inside such a symbol."""
    languages: NotRequired[list[str]]
    """Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names
    (`c++`); a result matches any of them."""
    pathPrefix: NotRequired[str | None]
    """Path prefix relative to the root, compared by complete components."""
    roots: NotRequired[list[str]]
    """Root ids or absolute root paths to search; all declared roots when empty."""


class SearchItem(TypedDict):
    """One result: a range of lines."""

    clock: int
    """Index clock of the root when the file was indexed."""
    contentHash: str
    """SHA-256 (hex) of the file as indexed."""
    endLine: int
    """Last line of the range, inclusive."""
    path: str
    """Path relative to its root, with `/` between components."""
    root: RootId
    """Id of the root."""
    score: float
    """Score, higher is better; comparable within one answer only."""
    startLine: int
    """First line, starting at 1."""
    changed: NotRequired[bool]
    """True when the file on disk differs from the indexed one."""
    explain: NotRequired[list[Share]]
    """Contribution of each feature to the score, largest first; the contributions add up to the
    score. Only with `explain`."""
    highlights: NotRequired[list[list[int]]]
    """Byte ranges in `text` that match words of the query."""
    lang: NotRequired[str | None]
    """Language of the file, if known."""
    symbol: NotRequired[SymbolRef | None]
    """Definition that contains the result, if known."""
    text: NotRequired[str | None]
    """Text of the result, if requested."""
    textStartLine: NotRequired[int | None]
    """Line number of the first line of `text`, if context moved it."""


class SearchParams(TypedDict):
    """Parameters of `search.lexical`, `search.semantic` and `search.hybrid`."""

    query: str
    """Words, an identifier, a path, a question or the text of an issue; at most 64 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """True reduces each further result of a file by a fifth, instead of by 6 % (8 % for the text
    of an issue) up to three times."""
    explain: NotRequired[bool]
    """Returns the kind of the query, and the contribution of each feature to the score of each
    item."""
    filters: NotRequired[SearchFilters | None]
    """Filters that restrict the scope."""
    fusion: NotRequired[Fusion | None]
    """Fusion of the two lists of a hybrid search."""
    includeText: NotRequired[bool]
    """Returns the text of each item."""
    k: NotRequired[int]
    """Maximum number of results, 1 to 200."""
    maxTokens: NotRequired[int | None]
    """Packs the answer into at most this many tokens, 200 to 100,000: `packed` has the text, and
    `items` those results that it names, without a text of their own."""
    mmr: NotRequired[float | None]
    """Weight of maximal marginal relevance: 0 is diversity only, 1 relevance only."""
    offset: NotRequired[int]
    """Number of best results to skip, which continues an answer; `offset` + `k` is at most 200."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class SearchPartial(TypedDict):
    """Payload of the live notification `search.partial`."""

    corpus: Corpus
    """List that the items come from."""
    done: bool
    """True on the last partial."""
    items: list[SearchItem]
    """The items of the list, best first; empty on the last partial only."""
    requestId: str
    """The `requestId` of the search."""
    root: NotRequired[RootId | None]
    """Root that the list is of; omitted on the last partial, which has the answer of all roots."""


class ServerCapabilities(TypedDict):
    """Capabilities of a daemon."""

    methods: list[str]
    """Methods available on this connection."""
    notifications: list[str]
    """Notifications that the daemon sends."""


class ServerInfo(TypedDict):
    """Name, version and instance of the daemon."""

    instanceId: InstanceId
    """Id of this start of the daemon."""
    name: str
    """Name of the server, always `cairn`."""
    version: str
    """Version of the daemon's binary."""


class Session(TypedDict):
    """State of a session."""

    createdAt: Timestamp
    """Time at which the session was created."""
    headSeq: int
    """Sequence number of the newest record; 0 when there is none."""
    sessionId: SessionId
    """Id of the session, which is also its trace id."""
    state: RunState
    """State of the latest run."""
    title: str
    """Title of the session."""
    updatedAt: Timestamp
    """Time at which the log last grew."""
    archived: NotRequired[bool]
    """True if the session is archived, which hides it from lists."""
    root: NotRequired[str | None]
    """Root in which the session's commands work."""
    worktree: NotRequired[Worktree | None]
    """The work tree in which it works; set in the answer of `session.create` alone."""


class SessionCreateParams(TypedDict):
    """Parameters of the method `session.create`."""

    base: NotRequired[str | None]
    """Revision at which the branch of a new work tree begins; the current commit if absent."""
    branch: NotRequired[str | None]
    """Branch of the work tree: the name of the new one (`cairn/` and a random word if absent), or
    that of the existing one."""
    requestId: NotRequired[str | None]
    """Retry key of the request."""
    root: NotRequired[str | None]
    """Declared root in which the session's commands work: a path or root id."""
    title: NotRequired[str | None]
    """Title for people, at most 200 characters; the first line of the first turn's input if
    absent or empty."""
    worktree: NotRequired[WorktreeUse | None]
    """Work tree of the repository in `root` in which the session works instead."""

SessionId: TypeAlias = "str"


class SessionMcpServer(TypedDict):
    """An MCP server of one session: a program, or an address."""

    name: str
    """Name of the server, a part of the names of its tools."""
    args: NotRequired[list[str]]
    """Arguments of the program."""
    command: NotRequired[str | None]
    """Program of the server."""
    env: NotRequired[dict[str, str]]
    """Variables of the program, taken literally."""
    headers: NotRequired[dict[str, str]]
    """Headers of every request, taken literally."""
    url: NotRequired[str | None]
    """Address of the server, instead of a program."""


class SessionMcpServers(TypedDict):
    """Answer of the method `session.setMcpServers`."""

    servers: list[SessionMcpStatus]
    """The servers and their state."""


class SessionMcpStatus(TypedDict):
    """State of an MCP server of a session."""

    name: str
    """Name of the server."""
    tools: list[str]
    """Names of its tools in the session."""
    error: NotRequired[str | None]
    """Reason why it cannot be used."""


class SessionRef(TypedDict):
    """Parameters that name a session."""

    sessionId: SessionId
    """Id of the session."""


class SessionUsage(TypedDict):
    """Disk usage of one session."""

    bytes: int
    """Bytes of its own records and of its blobs. Records that a fork has in common with its origin
    count for the origin."""
    sessionId: SessionId
    """Id of the session."""
    title: str
    """Title of the session."""
    updatedAt: Timestamp
    """Time of the session's last record."""
    root: NotRequired[str | None]
    """Root of the session, if it has one."""


class SetMcpServersParams(TypedDict):
    """Parameters of the method `session.setMcpServers`."""

    servers: list[SessionMcpServer]
    """The servers, at most 16, in place of those that were set before."""
    sessionId: SessionId
    """Id of the session."""


class Share(TypedDict):
    """Contribution of one feature to a score."""

    feature: str
    """Name of the feature. `windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name` and
    `exact` match words of the query in the window, its file, its path, the names in it, the
    result itself and its name; `fileName` is set if the complete name of the file (of its
    folder for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`
    and `nameMeaning` are the similarity of the file's best window, the result and its name;
    `line` is the part of the query, or of a line that it quotes, that one line covers, from
    six tenths on; `definitionOf` marks the definition of the query's only name, and `literal`
    a window that contains that name; `fileNames` counts the definitions of its file whose
    names are in the query; `namedPath` is set if the file's path is in the query; `document`
    marks a document; `definition`
    marks a result that is a definition; `container` marks a type or module that contains
    others; `size` is the length, up to ten lines; `rerank` is the similarity by the
    re-scoring model; `repeat` is the reduction of a further result of the same file, with
    the factor as its value; `prior` is the factor of the path when it is below 1, without
    a share of its own."""
    share: float
    """Part of the score: the value times its weight, times the factor of the path."""
    value: float
    """Value of the feature, mostly 0 to 1."""


class SharedIndexUsage(TypedDict):
    """A frozen index that several roots share."""

    bytes: int
    """Bytes of its folder on disk."""
    roots: list[RootId]
    """Ids of the declared roots whose indexes are upon it."""


class SkillFile(TypedDict):
    """Content of a skill's `skill.json`; the skill's folder has the same name as its id."""

    id: str
    """Id of the skill: letters, digits, `-` and `_`, at most 64."""
    description: NotRequired[str]
    """Description in one line."""
    policy: NotRequired[SkillPolicy]
    """Rules that apply while the skill is enabled; they can only tighten the policy."""
    promptBlock: NotRequired[str | None]
    """Instructions for the agent, at most 16 KiB; the file `prompt.md` beside it when absent."""
    tools: NotRequired[list[str]]
    """Names of the tools that the skill uses. The skill is disabled while all of them are
    disabled or missing."""
    version: NotRequired[str]
    """Version of the skill, in its author's numbering."""


class SkillInfo(TypedDict):
    """A skill as clients see it."""

    enabled: bool
    """True if the skill is part of the agent's instructions."""
    skill: SkillFile
    """Content of the skill's file."""
    folder: NotRequired[str | None]
    """Folder that the skill comes from; absent for a built-in skill."""
    reason: NotRequired[str | None]
    """Reason why the skill is disabled."""


class SkillPolicy(TypedDict):
    """Rules of a skill, in the syntax of `permissions`."""

    confirm: NotRequired[list[str]]
    """Rules for calls that require an approval."""
    deny: NotRequired[list[str]]
    """Rules for calls that are refused."""


class Span(TypedDict):
    """A range of lines of a file."""

    endLine: int
    """Last line returned; less than `startLine` when the file has no such line."""
    path: str
    """Path relative to its root."""
    startLine: int
    """First line that is returned."""
    text: str
    """Text of the lines, with invalid UTF-8 replaced."""
    truncated: bool
    """True when a limit cut the range: 2,000 lines or 256 KiB."""
    changed: NotRequired[bool | None]
    """True if the file differs from the given `contentHash`."""
    contentHash: NotRequired[str | None]
    """SHA-256 (hex) of the current file; absent for files over 8 MiB."""
    totalLines: NotRequired[int | None]
    """Number of lines of the file, when it was read to its end."""


class SpanParams(TypedDict):
    """Parameters of the method `content.getSpan`."""

    end: int
    """Last line of the range, inclusive."""
    path: str
    """Path, absolute or relative to `root` (to the session's root in a command)."""
    start: int
    """First line, starting at 1."""
    contentHash: NotRequired[str | None]
    """Hash that a search returned; the answer then reports whether the file has changed since."""
    context: NotRequired[int | None]
    """Lines of context before and after, at most 50."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`; may be omitted when only one root is declared."""


class Statement(TypedDict):
    """Statement of an overview."""

    citations: list[Citation]
    """Lines that bear it out, at least one."""
    text: str
    """One or two sentences."""


class SteerParams(TypedDict):
    """Parameters of the method `orchestrate.run.steer`."""

    sessionId: SessionId
    """Id of the session."""
    text: str
    """Text that the model receives before its next answer; at most 16 KiB."""


class SubscribeParams(TypedDict):
    """Parameters of the method `orchestrate.subscribe`."""

    sessionId: SessionId
    """Id of the session."""
    after: NotRequired[After | None]
    """Position to start at; the first record when omitted."""


class SubscribeResult(TypedDict):
    """Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`."""

    headSeq: int
    """Sequence number of the newest record."""
    oldestSeq: int
    """Sequence number of the oldest retained record."""
    subscriptionId: SubscriptionId
    """Id of the subscription, present in each of its notifications."""

SubscriptionId: TypeAlias = "str"


class SymbolItem(TypedDict):
    """A definition found in a file."""

    endLine: int
    """Last line of the range, inclusive."""
    kind: str
    """Kind of definition: `function`, `method`, `class`, `struct`, `enum`, `interface`, `type`,
    `constant`, `module`, `macro`, …"""
    lang: str
    """Language of the file."""
    name: str
    """Name of the definition."""
    path: str
    """Path relative to its root."""
    root: RootId
    """Id of the root."""
    score: float
    """Match quality of the name, 0 to 1."""
    startLine: int
    """First line, starting at 1."""
    container: NotRequired[str | None]
    """Name of the enclosing definition, if any."""


class SymbolRef(TypedDict):
    """Name and kind of a definition."""

    kind: str
    """Kind of definition: `function`, `method`, `class`, `struct`, …"""
    name: str
    """Name of the definition."""


class SymbolsAnswer(TypedDict):
    """Answer of the method `search.symbols`."""

    complete: bool
    """True if symbols are currently indexed for the complete scope."""
    items: list[SymbolItem]
    """Definitions found, best first; those of an outline by line."""
    tookUs: int
    """Time spent, in microseconds."""
    restricted: NotRequired[bool]
    """True if rules hide some of the requested paths, which are omitted."""


class SymbolsParams(TypedDict):
    """Parameters of `search.symbols`: definitions by name, or the outline of a file."""

    filters: NotRequired[SearchFilters | None]
    """Filters that restrict the scope."""
    k: NotRequired[int]
    """Maximum number of results, 1 to 200 (for an outline up to 2,000)."""
    match: NotRequired[NameMatch | None]
    """Matching of names; the best of all three when omitted."""
    path: NotRequired[str | None]
    """File to outline, relative to the root or absolute."""
    query: NotRequired[str | None]
    """A name to search for; omit it and set `path` for the outline of a file."""


class SyncedNotification(TypedDict):
    """Notification `orchestrate.synced`: the backlog was sent completely."""

    seq: int
    """Sequence number of the last record sent."""
    subscriptionId: SubscriptionId
    """Id of the subscription."""

Timestamp: TypeAlias = "str"


class TokenUsage(TypedDict):
    """Token usage of one model call, or of several together."""

    inputTokens: int
    """Tokens of the prompt, including cached ones."""
    outputTokens: int
    """Tokens of the answer."""
    cachedTokens: NotRequired[int]
    """Tokens of the prompt that were in the provider's cache."""
    costMicroUsd: NotRequired[int | None]
    """Cost in millionths of a US dollar, of those calls whose price is known; absent if none is."""


class ToolCall(TypedDict):
    """A call of a tool by name."""

    name: str
    """Name of the tool, as in `tool.list`."""
    arguments: NotRequired[Any]
    """Arguments that match the tool's input schema."""


class ToolCallParams(TypedDict):
    """Parameters of the method `tool.call`."""

    name: str
    """Name of the tool."""
    sessionId: SessionId
    """Id of the session that records the call."""
    arguments: NotRequired[Any]
    """Arguments of the call."""


class ToolFailure(TypedDict):
    """Reason why a tool call failed."""

    message: str
    """Message for a person."""
    reason: str
    """Stable reason, as in the error table."""
    retryable: bool
    """True if the same call may succeed later."""


class ToolInfo(TypedDict):
    """Description of a registered tool."""

    description: str
    """Complete description of the tool."""
    inputSchema: Any
    """JSON Schema of the arguments."""
    name: str
    """Name of the tool."""
    network: bool
    """True when the tool uses the network."""
    readOnly: bool
    """True when the tool changes nothing outside Cairn's own state."""
    hidden: NotRequired[bool]
    """True when the tool is not offered to models because another tool does the same for them."""
    short: NotRequired[str]
    """Short description in one line, for models."""


class ToolMeta(TypedDict):
    """Metadata of a tool's output."""

    millis: int
    """Duration of the call in milliseconds."""
    tag: str
    """Type of the `output`."""
    truncated: bool
    """True when the output was cut at a limit."""


class ToolOutcome(TypedDict):
    """Outcome of a tool call in a turn."""

    callId: str
    """Id of the call."""
    millis: int
    """Duration of the call in milliseconds."""
    name: str
    """Name of the tool."""
    blob: NotRequired[BlobRef | None]
    """Reference to a larger output; read it with `trace.blob`."""
    changes: NotRequired[list[FileChange]]
    """Files that the call changed."""
    error: NotRequired[ToolFailure | None]
    """The failure, if the call failed."""
    output: NotRequired[Any]
    """The output, when it is at most 64 KiB."""
    tag: NotRequired[str]
    """Type of the `output`."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class ToolResult(TypedDict):
    """Result of a tool call."""

    meta: ToolMeta
    """Type of `output`, and its truncation."""
    ok: bool
    """True if the call succeeded."""
    output: Any
    """Output of the tool; `null` on failure."""
    error: NotRequired[ToolFailure | None]
    """The failure, if the call failed."""


class ToolTrace(TypedDict):
    """One tool call of a turn."""

    callId: str
    """Id of the call."""
    millis: int
    """Duration in milliseconds, including the wait for an approval."""
    outcome: str
    """Outcome of the call: `ok`, or the reason of its failure."""
    tool: str
    """Name of the tool."""


class ToolUse(TypedDict):
    """A tool call that the model requests."""

    arguments: Any
    """Arguments of the call; a string when the model's text was not valid JSON, which the gate
    then tries to repair."""
    id: str
    """The provider's id of the call, or a generated one if it has none; unique within a session."""
    name: str
    """Name of the tool."""

ToolsMode: TypeAlias = Literal[
    "split",  # Each tool by its own name.
    "unified",  # `fs`, `web` and `memory`, which take the operation as an argument and replace the separate tools.
    "both",  # Both the separate and the unified tools.
]
"""Names under which models are offered the tools for files, the web and memory."""


class TopFile(TypedDict):
    """A file that is worth reading."""

    path: str
    """Path of the file, relative to the root."""
    referringFiles: int
    """Number of files that refer to its definitions."""
    score: float
    """Share of the total centrality, 0 to 1."""
    symbols: list[str]
    """Names of its most referenced definitions."""
    reason: NotRequired[str]
    """Reason to read it, as `event loop; 41 files depend on it`."""


class TraceExportParams(TypedDict):
    """Parameters of the method `trace.export`."""

    traceId: SessionId
    """Id of the session (also accepted as `sessionId`)."""
    cursor: NotRequired[str | None]
    """Cursor from the `nextCursor` of the previous part."""


class TraceExportPart(TypedDict):
    """One part of an export as JSONL text; all parts in order form the complete file."""

    jsonl: str
    """Lines with one JSON object each: a header, then the records, then the blobs that they refer
    to by hash."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next part; absent on the last."""


class TraceGetParams(TypedDict):
    """Parameters of the method `trace.get`."""

    traceId: SessionId
    """Id of the session."""
    after: NotRequired[int]
    """Sequence number after which records are returned."""
    limit: NotRequired[int | None]
    """Maximum number of records, at most 500."""


class TraceImportParams(TypedDict):
    """Parameters of the method `trace.import`."""

    jsonl: str
    """A complete export, or a part of one that ends after a complete line. The first part starts
    with the header, each further one with the line after the last imported one."""


class TracePage(TypedDict):
    """Answer of the method `trace.get`."""

    data: list[Envelope]
    """Records of the page."""
    nextAfter: NotRequired[int | None]
    """Value of `after` for the next page; absent on the last."""


class TrustGetParams(TypedDict):
    """Parameters of the method `trust.get`."""

    folder: str
    """Absolute path of the folder."""
    diff: NotRequired[bool]
    """Returns the differences from the trusted contents too."""


class TrustItem(TypedDict):
    """One item of a folder."""

    files: list[str]
    """Its files, relative to the folder."""
    kind: TrustKind
    """Kind of the item."""
    path: str
    """Path of its file or folder, relative to the folder."""
    sha256: str
    """SHA-256 of the names and contents of its files, in hexadecimal."""
    state: TrustState
    """State compared with the trusted content."""
    commands: NotRequired[list[str]]
    """Command lines that it runs."""
    diff: NotRequired[str | None]
    """The change from the trusted content as a unified diff, cut at 64 KiB; the complete text of
    an item that is new."""
    problem: NotRequired[str | None]
    """Reason why it cannot be trusted, such as its size."""
    unsupported: NotRequired[list[str]]
    """Parts for other programs, such as events of theirs, which are not run here."""

TrustKind: TypeAlias = Literal[
    "instructions",  # Instructions for agents: `AGENTS.md` or `CLAUDE.md`.
    "settings",  # The folder's own configuration, which may then loosen safety: `.cairn.json`.
    "hooks",  # Hooks of a settings file, with the scripts that they name.
    "plugin",  # An agent plugin with all of its files.
    "skill",  # A skill with all of its files.
]
"""A thing that a folder brings and that runs, or that tells an agent what to do."""


class TrustRemoveParams(TypedDict):
    """Parameters of the method `trust.remove`."""

    folder: str
    """Absolute path of the folder, which need not exist any more."""


class TrustRemoved(TypedDict):
    """Answer of the method `trust.remove`."""

    removed: bool
    """True if the folder was trusted before."""


class TrustSetParams(TypedDict):
    """Parameters of the method `trust.set`."""

    folder: str
    """Absolute path of the folder."""
    refuse: NotRequired[list[TrustedContent]]
    """Items that are refused: they are not asked about again until they change."""
    trust: NotRequired[list[TrustedContent]]
    """Items that are trusted from now on. Their contents must still be these."""

TrustState: TypeAlias = Literal[
    "trusted",  # Its content is the trusted one.
    "new",  # It was never trusted.
    "changed",  # Its content differs from the trusted one: it is not used.
    "refused",  # This content was refused: it is not used, and not asked about again.
]
"""The state of an item compared with what was trusted."""


class TrustedContent(TypedDict):
    """An item with exactly this content."""

    kind: TrustKind
    """Kind of the item."""
    path: str
    """Path of its file or folder, relative to the folder."""
    sha256: str
    """The SHA-256 that `trust.get` answered."""

TurnContext: TypeAlias = (
    "str | "
    "list[ContextItem]"
)
"""Context of a turn: a text, or items."""


class TurnOverrides(TypedDict):
    """Settings of one turn that override the configured ones."""

    compactionThreshold: NotRequired[float | None]
    """Fill level of the context, 0 to 1, above which older turns are condensed, instead of
    `context.compactionThreshold`."""
    maxAnswerTokens: NotRequired[int | None]
    """Maximum tokens of one answer, at least 1, instead of `llm.maxTokens`."""
    maxContextTokens: NotRequired[int | None]
    """Maximum tokens of the context, at least 1, instead of `context.maxTokens`."""
    maxToolOutputChars: NotRequired[int | None]
    """Maximum characters of a tool's output for the model, instead of
    `context.maxToolOutputChars`."""
    repoMapTokens: NotRequired[int | None]
    """Tokens of the repository map, instead of `context.repoMapTokens`."""
    temperature: NotRequired[float | None]
    """Sampling temperature of the answers, 0 to 2, instead of `llm.temperature`."""


class TurnRef(TypedDict):
    """Parameters that name an active turn; the session's current one when `turnId` is omitted."""

    sessionId: SessionId
    """Id of the session."""
    turnId: NotRequired[str | None]
    """Id of the turn."""


class UnattendedRun(TypedDict):
    """A run that goes on without a client, with its limits."""

    maxTurns: int
    """Maximum number of turns."""
    request: str
    """First line of its request."""
    sessionId: SessionId
    """Id of its session."""
    startedAt: Timestamp
    """Time at which it started."""
    status: UnattendedStatus
    """Status of the run."""
    turns: int
    """Number of turns that started."""
    checkExitCode: NotRequired[int | None]
    """Exit status of its latest check."""
    finishedAt: NotRequired[Timestamp | None]
    """Time at which it ended."""
    maxUsd: NotRequired[float | None]
    """Maximum cost in US dollars."""
    reason: NotRequired[str | None]
    """Reason for a status that is not success, for people."""
    schedule: NotRequired[ScheduleId | None]
    """Schedule that started it."""
    until: NotRequired[str | None]
    """Command line that ends the run when it exits with 0."""


class UnattendedStartParams(TypedDict):
    """Parameters of the method `unattended.start`."""

    turn: RunStartParams
    """The first turn. Later ones have its policy."""
    maxTurns: NotRequired[int | None]
    """Maximum number of turns, 1 to 100; with `until` 10 when omitted, otherwise 1."""
    maxUsd: NotRequired[float | None]
    """Maximum cost of all turns in US dollars, by the known prices."""
    until: NotRequired[str | None]
    """Command line that runs in the sandbox after each turn. The run is complete when it exits
    with 0; otherwise its output is the input of the next turn."""

UnattendedStatus: TypeAlias = Literal[
    "running",  # A turn or a check runs.
    "waiting",  # A turn waits for the answer to an approval.
    "completed",  # The turn completed, or the check succeeded.
    "failed",  # A turn failed, or the check could not run.
    "exhausted",  # The number of turns or the budget is exhausted, and the check did not succeed.
    "cancelled",  # A client stopped it.
]
"""Status of an unattended run."""


class UnsubscribeParams(TypedDict):
    """Parameters of the method `orchestrate.unsubscribe`."""

    subscriptionId: SubscriptionId
    """Id of the subscription."""


class UsageParams(TypedDict):
    """Parameters of the method `storage.usage`."""

    sessions: NotRequired[int | None]
    """Number of sessions to list, largest first, at most 1,000; 10 if absent."""


class ViewerLink(TypedDict):
    """Answer of the method `viewer.link`."""

    expiresInSeconds: int
    """Seconds within which it must be opened, once."""
    path: str
    """Path of the page on the daemon's address, with the code behind `#`, which browsers do not
    send."""


class Worktree(TypedDict):
    """A work tree that was created for a task."""

    base: str
    """Hash of the commit at which it began."""
    branch: str
    """Name of its branch."""
    path: str
    """Path of the work tree, which is a declared root."""
    repository: str
    """Path of the repository that it belongs to."""
    commits: NotRequired[int | None]
    """Number of commits since its base; absent if its folder cannot be read."""
    setup: NotRequired[WorktreeSetup | None]
    """Outcome of its set-up command; absent if none ran."""
    uncommitted: NotRequired[int | None]
    """Number of files with uncommitted changes; absent if its folder cannot be read."""


class WorktreeCreateParams(TypedDict):
    """Parameters of the method `worktree.create`."""

    root: str
    """Declared root with the repository: a path or root id."""
    base: NotRequired[str | None]
    """Revision at which the branch begins; the current commit if absent."""
    branch: NotRequired[str | None]
    """Name of the branch to create; `cairn/` and a random word if absent."""


class WorktreeDiff(TypedDict):
    """Changes of a work tree since its base."""

    diff: str
    """Unified diff of committed and uncommitted changes, cut at 1 MiB."""
    paths: list[str]
    """Paths of the changed files."""
    truncated: bool
    """True when the diff was cut."""


class WorktreeRef(TypedDict):
    """Parameters that name a work tree."""

    path: str
    """Path of the work tree."""


class WorktreeRemoveParams(TypedDict):
    """Parameters of the method `worktree.remove`."""

    path: str
    """Path of the work tree."""
    discard: NotRequired[bool]
    """True to lose uncommitted changes."""


class WorktreeRemoved(TypedDict):
    """Result of the method `worktree.remove`."""

    branch: str
    """Name of its branch."""
    branchRemoved: bool
    """True if the branch was removed too, because the repository's head has all of its commits."""


class WorktreeSetup(TypedDict):
    """Outcome of the set-up command of a work tree."""

    command: str
    """The command line of `worktrees.setup`."""
    error: NotRequired[str | None]
    """Reason why it did not run to its end."""
    exitCode: NotRequired[int | None]
    """Exit status; absent if it did not run to its end."""

WorktreeUse: TypeAlias = Literal[
    "new",  # A work tree that is created for it, and prepared by the command `worktrees.setup`.
    "existing",  # A work tree that `worktree.list` lists: `root` is its path, or `branch` its branch.
]
"""Work tree of a new session."""
