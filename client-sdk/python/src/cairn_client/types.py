"""Types of the wire, as plain dictionaries."""
# Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-api --test generated.

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

PROTOCOL_VERSIONS = ["1"]
"""Versions of the protocol that this client speaks, best first."""

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
    "bad_url",
    "clone_failed",
    "authentication_required",
    "destination_exists",
    "git_failed",
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
]
"""Why a call failed: `error.data.reason`."""


class AddRootParams(TypedDict):
    """Parameters of `index.addRoot`."""

    path: str
    """Absolute path of a folder."""
    requestId: NotRequired[str | None]
    """Retry key and name for `index.progress`."""

After: TypeAlias = (
    "int | "
    "LiveWord"
)
"""Where a subscription starts."""


class AgentCmdFsListDir(TypedDict):
    """Lists a folder."""

    type: Literal["fs_list_dir"]
    path: str
    """Absolute, or relative to `root`."""
    depth: NotRequired[int]
    """Levels below it, 1 to 16."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`."""


class AgentCmdContentGetSpan(TypedDict):
    """Reads a bounded range of lines."""

    type: Literal["content_get_span"]
    end: int
    """Last line."""
    path: str
    """Absolute, or relative to `root` (to the session's root in a command)."""
    start: int
    """First line, from 1."""
    contentHash: NotRequired[str | None]
    """The hash a search gave: the answer then says whether the file changed since."""
    context: NotRequired[int | None]
    """Lines before and after, at most 50."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`; may be left out when one root is declared."""


class AgentCmdIndexAddRoot(TypedDict):
    """Makes a root of a clone and indexes it; a declared root stays as it is."""

    type: Literal["index_add_root"]
    path: str
    """Absolute path of the folder."""


class AgentCmdIndexBuild(TypedDict):
    """Brings the index of the session's root up to date and waits for it."""

    type: Literal["index_build"]
    maxConcurrency: NotRequired[int | None]
    """Indexes at work at once at most, this one among them: with as many others at work the build waits for them first.
    As many as there are when omitted."""
    timeoutSeconds: NotRequired[int | None]
    """Seconds to wait at most, up to 600; then the answer is the state reached."""


class AgentCmdSearchGrep(TypedDict):
    """Literal or regular-expression search over lines."""

    type: Literal["search_grep"]
    pattern: str
    """Text, or a regular expression with `isRegex`. At most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around each hit, at most 20."""
    countOnly: NotRequired[bool]
    """Only count: `items` stays empty, `counts` has the lines by file."""
    cursor: NotRequired[str | None]
    """Where to go on, from `nextCursor`."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """`ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline` (`U`), `dot_all` (`s`)."""
    isRegex: NotRequired[bool]
    """Whether `pattern` is a regular expression."""
    k: NotRequired[int]
    """Lines wanted, 1 to 10,000."""
    pathPrefix: NotRequired[str | None]
    """Only files under this path."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications, each with the next lines; none are sent when omitted or with `countOnly`."""


class AgentCmdSearchSemantic(TypedDict):
    """Search by meaning."""

    type: Literal["search_semantic"]
    query: str
    """Words, an identifier, a path or a question. At most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """Further results of a file count a fifth less each, not only 4 % and up to three times."""
    explain: NotRequired[bool]
    """Whether items tell what each feature gave to their score."""
    filters: NotRequired[SearchFilters | None]
    """Where to look."""
    fusion: NotRequired[Fusion | None]
    """How hybrid search fuses its two lists."""
    includeText: NotRequired[bool]
    """Whether items carry their text."""
    k: NotRequired[int]
    """Results wanted, 1 to 200."""
    mmr: NotRequired[float | None]
    """Maximal marginal relevance: 0 is all diversity, 1 all relevance."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class AgentCmdSearchHybrid(TypedDict):
    """Search by words and meaning, fused."""

    type: Literal["search_hybrid"]
    query: str
    """Words, an identifier, a path or a question. At most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """Further results of a file count a fifth less each, not only 4 % and up to three times."""
    explain: NotRequired[bool]
    """Whether items tell what each feature gave to their score."""
    filters: NotRequired[SearchFilters | None]
    """Where to look."""
    fusion: NotRequired[Fusion | None]
    """How hybrid search fuses its two lists."""
    includeText: NotRequired[bool]
    """Whether items carry their text."""
    k: NotRequired[int]
    """Results wanted, 1 to 200."""
    mmr: NotRequired[float | None]
    """Maximal marginal relevance: 0 is all diversity, 1 all relevance."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class AgentCmdGitClone(TypedDict):
    """Clones a repository into the workspaces folder."""

    type: Literal["git_clone"]
    remoteURL: str
    """`https://`, `ssh://`, `git://`, `user@host:path` or `file://`; nothing that begins with `-`."""
    branch: NotRequired[str | None]
    """The branch; the remote's default when omitted."""
    dest: NotRequired[str | None]
    """Name of the folder under the workspaces folder; made from the URL when omitted."""
    requestId: NotRequired[str | None]
    """Name for `git.progress` notifications and retry key."""


class AgentCmdGitStatus(TypedDict):
    """Branch, head and changed files of a repository."""

    type: Literal["git_status"]
    path: str
    """A folder inside a declared root."""


class AgentCmdLlmCall(TypedDict):
    """Asks a model one question."""

    type: Literal["llm_call"]
    prompt: str
    """What is asked."""
    expectsType: NotRequired[str | None]
    """The registered type that the answer must be: `ExplorePlan` or `ExploreSummary`."""
    instructions: NotRequired[str | None]
    """The system text."""
    policy: NotRequired[LlmPolicy]
    """How the model is asked."""
    provider: NotRequired[str | None]
    """The provider; the session's own when omitted."""
    streamStructured: NotRequired[bool]
    """Whether a typed answer is told while it is written, as `structured_snapshot` events; needs `expectsType`."""


class AgentCmdToolCall(TypedDict):
    """Any other registered tool, by name."""

    type: Literal["tool_call"]
    name: str
    """Name in `tool.list`."""
    arguments: NotRequired[Any]
    """Arguments, by the tool's input schema."""

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
    """Work began."""

    type: Literal["started"]
    op: str
    """What began: a tool's name, or `explore`."""
    details: NotRequired[str | None]
    """A line for people."""


class AgentEvtProgress(TypedDict):
    """How far it is."""

    type: Literal["progress"]
    op: str
    """What goes on."""
    percent: float
    """0 to 100."""
    message: NotRequired[str | None]
    """A line for people."""


class AgentEvtResult(TypedDict):
    """A tool's result."""

    type: Literal["result"]
    mime: str
    """Always `application/json` for inline data."""
    op: str
    """The tool."""
    tag: str
    """What `data` is: `search_answer`, `grep_answer`, `span`, `dir_listing`, …"""
    blob: NotRequired[BlobRef | None]
    """Where a larger one lies; read it with `trace.blob`."""
    data: NotRequired[Any]
    """The result itself, when it is 64 KiB or less."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class AgentEvtPlanSnapshot(TypedDict):
    """The plan as it stands after a revision."""

    type: Literal["plan_snapshot"]
    plan: ExplorePlan
    """The plan."""
    revision: int
    """1, 2, 3, …"""


class AgentEvtStructuredSnapshot(TypedDict):
    """A typed answer of `llm_call` as far as it is written: each holds what the one before it held, and the last is the
    answer itself. Live only: it has no number, is not in the log and is never replayed; the result follows."""

    type: Literal["structured_snapshot"]
    expectsType: str
    """The type that the answer will be."""
    op: str
    """Always `llm_call`."""
    revision: int
    """1, 2, 3, …"""
    value: Any
    """What is written so far; fields that it does not hold yet are missing."""


class AgentEvtWarning(TypedDict):
    """Something the user should know that did not stop the work."""

    type: Literal["warning"]
    message: str
    """The text."""
    op: str
    """What it concerns."""


class AgentEvtInterrupted(TypedDict):
    """The daemon ended while this was going on; the session can be resumed."""

    type: Literal["interrupted"]
    op: str
    """What was cut off."""


class AgentEvtResumed(TypedDict):
    """Interrupted work goes on."""

    type: Literal["resumed"]
    op: str
    """What goes on."""


class AgentEvtCompleted(TypedDict):
    """An explore ended well."""

    type: Literal["completed"]
    summary: ExploreSummary
    """What it found."""


class AgentEvtStopped(TypedDict):
    """The run was aborted."""

    type: Literal["stopped"]
    op: str
    """What was stopped."""
    reason: str
    """By whom or why."""


class AgentEvtError(TypedDict):
    """Work failed; terminal when `op` is the run's own."""

    type: Literal["error"]
    message: str
    """For people."""
    op: str
    """What failed."""
    retryable: bool
    """Whether the same again may succeed."""
    reason: NotRequired[str | None]
    """The stable reason, as in the error table."""


class AgentEvtTurnAccepted(TypedDict):
    """A turn was taken; it begins at once or waits for those before it."""

    type: Literal["turn_accepted"]
    input: list[Part]
    """What is asked, the context first."""
    runId: RunId
    """Its run."""
    turnId: str
    """The client's name for it."""
    metadata: NotRequired[dict[str, str]]
    """What the client sent with it."""
    policy: NotRequired[ExecutionPolicy | None]
    """What it may do."""


class AgentEvtRunStarted(TypedDict):
    """A turn began."""

    type: Literal["run_started"]
    model: ModelChoice
    """Whom it asks."""
    runId: RunId
    """Its run."""
    shownChars: int
    """Characters of a tool's output that the model is shown at most."""
    turnId: str
    """The client's name for it."""


class AgentEvtTokenDelta(TypedDict):
    """Text of a model as it comes. Live only: it has no number, is not in the log and is never replayed; [`AgentEvt::Text`]
    with the same text follows."""

    type: Literal["token_delta"]
    offset: int
    """Bytes of this answer's text (or thinking) before this one."""
    runId: RunId
    """The run."""
    text: str
    """The text."""
    reasoning: NotRequired[bool]
    """True for the model's thinking."""


class AgentEvtText(TypedDict):
    """Text of a model, put together: at most every 250 ms, and at the end of an answer."""

    type: Literal["text"]
    offset: int
    """Bytes of this answer's text (or thinking) before this one."""
    runId: RunId
    """The run."""
    text: str
    """The text."""
    reasoning: NotRequired[bool]
    """True for the model's thinking."""


class AgentEvtPromptProgress(TypedDict):
    """How far the model is in reading its prompt. Live only, like [`AgentEvt::TokenDelta`]."""

    type: Literal["prompt_progress"]
    processed: int
    """Tokens read."""
    runId: RunId
    """The run."""
    total: int
    """Tokens there are."""
    contextTokens: NotRequired[int | None]
    """Tokens of the model's context, where known."""


class AgentEvtModelAnswer(TypedDict):
    """The model's answer is whole; its text is that of the `text` records before it."""

    type: Literal["model_answer"]
    firstMillis: int
    """Milliseconds to the first piece."""
    millis: int
    """Milliseconds to the end."""
    model: ModelChoice
    """Who answered."""
    requestDigest: str
    """SHA-256 (hex) of what was asked: system text, messages, tools."""
    runId: RunId
    """The run."""
    tokensPerSecond: float
    """Tokens a second while it answered; 0 when too short to tell."""
    usage: TokenUsage
    """Tokens, as the provider counts them; counted here where it does not tell."""
    calls: NotRequired[list[ToolUse]]
    """Tools it asks for."""
    contextTokens: NotRequired[int | None]
    """Tokens of the model's context, where known."""
    finish: NotRequired[FinishReason | None]
    """Why it stopped; absent when it was cut off."""
    heardSeq: NotRequired[int]
    """Number of the latest `steered` record that was in what was asked; 0 when there was none."""
    raw: NotRequired[BlobRef | None]
    """The answer's bytes as they came, for replay."""


class AgentEvtToolCall(TypedDict):
    """The model asked for a tool, which now goes through the gate."""

    type: Literal["tool_call"]
    arguments: Any
    """Its arguments, repaired where they had to be."""
    callId: str
    """The call, as in [`ModelAnswer::calls`]."""
    name: str
    """The tool."""


class AgentEvtToolResult(TypedDict):
    """What came of a tool call."""

    type: Literal["tool_result"]
    callId: str
    """The call."""
    millis: int
    """Milliseconds."""
    name: str
    """The tool."""
    blob: NotRequired[BlobRef | None]
    """Where a larger one lies; read it with `trace.blob`."""
    changes: NotRequired[list[FileChange]]
    """Files it changed."""
    error: NotRequired[ToolFailure | None]
    """What went wrong."""
    output: NotRequired[Any]
    """The output, when it is 64 KiB or less."""
    tag: NotRequired[str]
    """What `output` is."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class AgentEvtApprovalRequired(TypedDict):
    """Somebody must say whether a tool may act."""

    type: Literal["approval_required"]
    approval: Approval
    """The question."""


class AgentEvtApprovalResolved(TypedDict):
    """The question is answered."""

    type: Literal["approval_resolved"]
    approvalId: ApprovalId
    """Which."""
    resolution: Resolution
    """How."""


class AgentEvtSteered(TypedDict):
    """A client told the model something while it worked."""

    type: Literal["steered"]
    runId: RunId
    """The run."""
    text: str
    """The text."""


class AgentEvtCompacted(TypedDict):
    """The conversation up to here is replaced by a summary in what the model is shown."""

    type: Literal["compacted"]
    kept: int
    """Messages at the end of the conversation that are kept as they are."""
    summary: str
    """What the model is shown instead."""
    tokensAfter: int
    """Tokens after."""
    tokensBefore: int
    """Tokens before, as counted here."""
    heardSeq: NotRequired[int]
    """Number of the latest `steered` record that is part of the conversation here; 0 when there is none."""


class AgentEvtCleared(TypedDict):
    """The conversation was emptied; what follows starts afresh."""

    type: Literal["cleared"]


class AgentEvtProviderChanged(TypedDict):
    """The session talks to another model from here on."""

    type: Literal["provider_changed"]
    model: ModelChoice
    """Which."""


class AgentEvtPlanUpdate(TypedDict):
    """The agent's list of things to do."""

    type: Literal["plan_update"]
    items: list[PlanItem]
    """The items, in order."""


class AgentEvtTurnDiff(TypedDict):
    """What a turn changed in files, as one unified diff."""

    type: Literal["turn_diff"]
    diff: str
    """The diff; cut at 256 KiB, and then it says so."""
    paths: list[str]
    """Paths that changed."""
    turnId: str
    """The turn."""


class AgentEvtGitCommit(TypedDict):
    """What a turn changed was committed, as `git.auto_commit` says."""

    type: Literal["git_commit"]
    commit: str
    """The commit's id, 40 hex digits."""
    message: str
    """Its message."""
    paths: list[str]
    """Paths it holds, relative to the root."""
    turnId: str
    """The turn."""


class AgentEvtRunCompleted(TypedDict):
    """A turn ended; the last record of its run."""

    type: Literal["run_completed"]
    result: RunResult
    """How."""

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
"""An event. A run begins with `started` and ends with exactly one of `completed`, `stopped` or `error` whose
`op` is the run's own."""


class AgentOpIndexRepo(TypedDict):
    """Bring the index up to date."""

    type: Literal["index_repo"]
    path: str
    """The root."""


class AgentOpListDir(TypedDict):
    """List a folder."""

    type: Literal["list_dir"]
    depth: int
    """Levels below it."""
    path: str
    """The folder, relative to the root."""


class AgentOpGrep(TypedDict):
    """Search lines."""

    type: Literal["grep"]
    pattern: str
    """A regular expression."""
    pathPrefix: NotRequired[str | None]
    """Only under this path."""


class AgentOpSemantic(TypedDict):
    """Search by meaning."""

    type: Literal["semantic"]
    k: int
    """Results wanted."""
    query: str
    """The question."""


class AgentOpHybrid(TypedDict):
    """Search by words and meaning."""

    type: Literal["hybrid"]
    k: int
    """Results wanted."""
    query: str
    """The question."""


class AgentOpReadSpan(TypedDict):
    """Read lines of a file."""

    type: Literal["read_span"]
    endLine: int
    """Last line."""
    path: str
    """The file, relative to the root."""
    startLine: int
    """First line."""
    context: NotRequired[int | None]
    """Lines before and after."""


class AgentOpSummarize(TypedDict):
    """Summarise files (needs a model)."""

    type: Literal["summarize"]
    paths: list[str]
    """The files."""


class AgentOpTool(TypedDict):
    """Any other registered tool."""

    type: Literal["tool"]
    arguments: Any
    """Its arguments."""
    name: str
    """Name in `tool.list`."""

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
"""Params of `search.partial`."""


class Approval(TypedDict):
    """A tool call that waits for leave."""

    approvalId: ApprovalId
    """Its id."""
    arguments: Any
    """Its arguments, whole."""
    createdAt: Timestamp
    """When it was asked."""
    expiresAt: Timestamp
    """When silence becomes a no."""
    grants: str
    """The rules that `session` and `always` would write, one a line; empty when there is none for such a call, which is then
    approved once."""
    preview: Preview
    """What would be done."""
    rule: str
    """The rule that makes it a question."""
    sessionId: SessionId
    """The session that wants to act."""
    tool: str
    """The tool."""
    patterns: NotRequired[list[str]]
    """Wider rules that an answer may name instead, as they would be stored, one a line each."""
    resolution: NotRequired[Resolution | None]
    """The answer, once there is one."""
    runId: NotRequired[RunId | None]
    """The run, when one asks."""

ApprovalDecision: TypeAlias = Literal[
    "once",  # This call.
    "session",  # This and those like it, for the life of the session.
    "always",  # This and those like it, from now on: a rule is written that can be read and revoked.
    "deny",  # Not.
]
"""An answer to an approval."""

ApprovalId: TypeAlias = "str"


class ApprovalListParams(TypedDict):
    """Parameters of `approval.list`."""

    resolved: NotRequired[bool]
    """Also those that are answered, newest first; at most 500 in all."""
    sessionId: NotRequired[SessionId | None]
    """Only those of this session."""


class ApprovalResolveParams(TypedDict):
    """Parameters of `approval.resolve`."""

    approvalId: ApprovalId
    """The approval."""
    decision: ApprovalDecision
    """The answer."""
    pattern: NotRequired[str | None]
    """With `session` or `always`: one of the approval's `patterns`, granted in place of its `grants`."""
    reason: NotRequired[str | None]
    """Why, at most 2,000 characters."""


class ArchiveParams(TypedDict):
    """Parameters of `session.archive`."""

    sessionId: SessionId
    """The session."""
    archived: NotRequired[bool]
    """Whether to put it away (so when omitted) or to take it out again."""


class AuditEntry(TypedDict):
    """One entry of the audit: written before the action, completed after it."""

    argsDigest: str
    """SHA-256 (hex) of the arguments' JSON."""
    decision: str
    """`allow` or `deny`."""
    id: int
    """Position."""
    rule: str
    """The rule that decided."""
    sessionId: SessionId
    """The session; its digits are all 0 for a direct call that concerns none."""
    tool: str
    """The tool, or the method of a direct call."""
    truncated: bool
    """Whether the output was cut."""
    ts: Timestamp
    """When it was asked for."""
    command: NotRequired[str | None]
    """The command line and its folder, for a shell; secrets are taken out."""
    exitCode: NotRequired[int | None]
    """Exit code, where there is one."""
    millis: NotRequired[int | None]
    """Milliseconds it took; absent when it was denied or cut off."""
    outcome: NotRequired[str | None]
    """`ok`, or the reason of the failure; absent when it was denied or cut off."""


class AuditQueryParams(TypedDict):
    """Parameters of `audit.query`."""

    after: NotRequired[int]
    """Entries after this one."""
    limit: NotRequired[int | None]
    """Entries wanted, at most 500."""
    sessionId: NotRequired[SessionId | None]
    """Only this session."""
    tool: NotRequired[str | None]
    """Only this tool."""


class BlobParams(TypedDict):
    """Parameters of `trace.blob`."""

    sha256: str
    """SHA-256, hex."""
    limit: NotRequired[int | None]
    """Bytes wanted, at most 256 KiB."""
    offset: NotRequired[int]
    """First byte."""


class BlobPart(TypedDict):
    """Part of a blob; blobs are UTF-8 JSON and parts end between characters."""

    size: int
    """Bytes of the whole."""
    text: str
    """The text."""
    nextOffset: NotRequired[int | None]
    """Offset of the next part; absent on the last."""


class BlobRef(TypedDict):
    """A result stored by the hash of its content."""

    sha256: str
    """SHA-256, hex."""
    size: int
    """Bytes."""


class ClientCapabilities(TypedDict):
    """What a client can do."""

    approvals: NotRequired[bool]
    """Whether it answers approvals."""


class ClientInfo(TypedDict):
    """A client's name and version."""

    name: str
    """Name, at most 64 characters."""
    version: str
    """Version."""


class CloneParams(TypedDict):
    """Parameters of `git.clone`."""

    remoteURL: str
    """`https://`, `ssh://`, `git://`, `user@host:path` or `file://`; nothing that begins with `-`."""
    branch: NotRequired[str | None]
    """The branch; the remote's default when omitted."""
    dest: NotRequired[str | None]
    """Name of the folder under the workspaces folder; made from the URL when omitted."""
    requestId: NotRequired[str | None]
    """Name for `git.progress` notifications and retry key."""


class CloneReceipt(TypedDict):
    """Receipt of `git.clone`: the end comes as `git.progress` with `done`."""

    path: str
    """Where the clone will be."""
    requestId: str
    """The request."""


class CloneResult(TypedDict):
    """Result of a finished clone."""

    head: str
    """Commit checked out."""
    path: str
    """Absolute path of the checkout."""
    reused: bool
    """True when an earlier clone of the same remote was there already; it is brought up to date."""
    branch: NotRequired[str | None]
    """Branch checked out."""
    stale: NotRequired[str | None]
    """Why an earlier clone was not brought up to date: it is given as it was. Without a network, what git says of it."""


class CommandEnvelope(TypedDict):
    """A command as a client sends it in `orchestrate.command`; only `payload` is required."""

    payload: AgentCmd
    """The command."""
    id: NotRequired[str | None]
    """Made by the client; the events that answer carry it as `parentId`. A fresh one when omitted."""
    kind: NotRequired[str | None]
    """`Cmd`, when given."""
    parentId: NotRequired[str | None]
    """What led to this command."""
    ts: NotRequired[Timestamp | None]
    """The client's own time; the log uses the daemon's."""


class CommandParams(TypedDict):
    """Parameters of `orchestrate.command`."""

    cmd: CommandEnvelope
    """The command in its envelope."""
    sessionId: SessionId
    """The session."""
    requestId: NotRequired[str | None]
    """Retry key."""


class CommandReceipt(TypedDict):
    """Receipt of `orchestrate.command`; the outcome comes as events with this `commandId` as `parentId`."""

    commandId: str
    """The command's id."""
    seq: int
    """Sequence number of the command's record; it is durable."""
    sessionId: SessionId
    """The session."""


class Compressed(TypedDict):
    """Answer of `session.compress`."""

    tokensAfter: int
    """Tokens after; the same as before when there was nothing to condense."""
    tokensBefore: int
    """Tokens of the conversation before, as counted here."""


class ConfigAnswer(TypedDict):
    """Answer of `config.get`."""

    values: dict[str, ConfigValue]
    """Each setting by its dotted key; secrets read `'(set)'`."""
    warnings: list[str]
    """Lines about settings that are not taken, and why."""

ConfigFolder: TypeAlias = Literal[
    "named",  # `CAIRN_CONFIG` names it.
    "of_data_root",  # It is `<CAIRN_HOME>/config`, which exists.
    "of_user",  # It is the user's own.
]
"""The reason why a configuration folder applies."""


class ConfigGetParams(TypedDict):
    """Parameters of `config.get`."""

    root: NotRequired[str | None]
    """The root whose configuration is meant, by id or path; that of the daemon itself when absent."""


class ConfigReloaded(TypedDict):
    """Answer of `config.reload`."""

    pending: list[str]
    """Keys whose new value takes effect at the next start."""
    warnings: list[str]
    """Lines about settings that are not taken, and why."""


class ConfigValue(TypedDict):
    """One setting."""

    source: str
    """The file, variable or flag that set it; `default` for the built-in one."""
    value: Any
    """The value in force."""
    pending: NotRequired[Any]
    """The value in the files, when it takes effect at the next start of the daemon."""

Corpus: TypeAlias = Literal[
    "lex",  # Lexical.
    "sem",  # Semantic.
    "fused",  # Both, fused.
]
"""The list a partial comes from."""


class DaemonStats(TypedDict):
    """Answer of `daemon.stats`."""

    anonymousBytes: int
    """Of it, memory that is not file pages."""
    callErrors: int
    """Calls that ended with an error."""
    calls: int
    """Calls since start."""
    connections: int
    """Connections now."""
    indexChunks: int
    """Chunks in all indexes."""
    indexFiles: int
    """Files in all indexes."""
    indexPending: int
    """Files waiting to be indexed."""
    logBytes: int
    """Bytes of the log's database."""
    logQueue: int
    """Records waiting for their commit."""
    recordsAppended: int
    """Records appended since start."""
    residentBytes: int
    """Resident memory in bytes; 0 where it cannot be read."""
    running: int
    """Runs at work."""
    sessions: int
    """Sessions in the log."""
    subscriptions: int
    """Subscriptions now."""
    uptimeSeconds: int
    """Seconds since start."""


class DaemonStatus(TypedDict):
    """Answer of `daemon.status`."""

    addresses: list[str]
    """Addresses it listens on."""
    dataRoot: str
    """Where its data lies."""
    index: IndexStatus
    """Declared roots and their indexes."""
    instanceId: InstanceId
    """This start of the daemon."""
    mode: str
    """`on_demand`, `service` or `foreground`."""
    pid: int
    """Process id."""
    runningSessions: int
    """Sessions at work."""
    startedAt: Timestamp
    """When it started."""
    version: str
    """Version of the binary."""
    configDir: NotRequired[str | None]
    """The folder of the user's configuration; absent when there is none."""
    configOrigin: NotRequired[ConfigFolder | None]
    """The reason why this folder applies."""
    idleExitSeconds: NotRequired[int | None]
    """Seconds without a client after which it leaves by itself; absent when it stays."""
    logFile: NotRequired[str | None]
    """Where it logs; absent when it logs to its terminal or the service manager."""


class Device(TypedDict):
    """A paired device."""

    id: DeviceId
    """Its id here."""
    key: str
    """Its key, by its hash."""
    name: str
    """What it is called."""
    pairedAt: Timestamp
    """When it was paired."""
    rights: list[Right]
    """What it may do."""
    connections: NotRequired[int]
    """Its open connections."""

DeviceId: TypeAlias = "str"


class DeviceRef(TypedDict):
    """Parameters of `client.revoke`."""

    id: DeviceId
    """Its id."""


class DirEntry(TypedDict):
    """One entry of a listing."""

    kind: EntryKind
    """What it is."""
    path: str
    """Path relative to the root."""
    size: NotRequired[int | None]
    """Bytes, for files."""


class DirListing(TypedDict):
    """A bounded listing."""

    entries: list[DirEntry]
    """What is in it, ignored files left out, by path."""
    path: str
    """The folder, relative to its root (`.` for the root itself)."""
    truncated: bool
    """True when the limit of 5,000 entries cut it."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""


class Empty(TypedDict):
    """An empty object."""

EntryKind: TypeAlias = Literal[
    "file",  # A file.
    "dir",  # A folder.
    "symlink",  # A symbolic link, not followed.
    "other",  # A socket, device or pipe.
]
"""Kind of an entry."""


class Entrypoint(TypedDict):
    """A place where execution begins."""

    kind: str
    """`manifest`, `main`, `server`, `script`, `ci`, `library`, `container`."""
    path: str
    """The file, relative to the root."""
    reason: str
    """Why it is one."""
    line: NotRequired[int | None]
    """The line, when known."""


class EnvelopeCmd(TypedDict):
    """Something was asked for."""

    kind: Literal["Cmd"]
    id: str
    """This entry's own id (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … with no gap."""
    sessionId: SessionId
    """The session it belongs to."""
    ts: Timestamp
    """When it was appended."""
    cmd: AgentCmd
    """The command."""
    origin: NotRequired[Origin | None]
    """Who caused it."""
    parentId: NotRequired[str | None]
    """The entry that caused this one: events of a command carry the command's id."""


class EnvelopeEvt(TypedDict):
    """Something happened."""

    kind: Literal["Evt"]
    id: str
    """This entry's own id (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … with no gap."""
    sessionId: SessionId
    """The session it belongs to."""
    ts: Timestamp
    """When it was appended."""
    evt: AgentEvt
    """The event."""
    origin: NotRequired[Origin | None]
    """Who caused it."""
    parentId: NotRequired[str | None]
    """The entry that caused this one: events of a command carry the command's id."""

Envelope: TypeAlias = (
    "EnvelopeCmd | "
    "EnvelopeEvt"
)
"""One numbered entry of a session's log."""


class ErrorData(TypedDict):
    """`error.data` of every failed call."""

    hint: str
    """The way out."""
    reason: str
    """Stable string; the contract."""
    retryable: bool
    """Whether the same call may succeed later."""
    details: NotRequired[Any]
    """Further facts: the versions of both sides, `oldestSeq`, the path of a wrong field."""
    retryAfterMs: NotRequired[int | None]
    """When to try again, for `overloaded`."""


class EventNotificationCmd(TypedDict):
    """Something was asked for."""

    kind: Literal["Cmd"]
    id: str
    """This entry's own id (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … with no gap."""
    sessionId: SessionId
    """The session it belongs to."""
    subscriptionId: SubscriptionId
    """The subscription."""
    ts: Timestamp
    """When it was appended."""
    cmd: AgentCmd
    """The command."""
    origin: NotRequired[Origin | None]
    """Who caused it."""
    parentId: NotRequired[str | None]
    """The entry that caused this one: events of a command carry the command's id."""


class EventNotificationEvt(TypedDict):
    """Something happened."""

    kind: Literal["Evt"]
    id: str
    """This entry's own id (bare UUIDv7)."""
    seq: int
    """Position in the session's log: 1, 2, 3, … with no gap."""
    sessionId: SessionId
    """The session it belongs to."""
    subscriptionId: SubscriptionId
    """The subscription."""
    ts: Timestamp
    """When it was appended."""
    evt: AgentEvt
    """The event."""
    origin: NotRequired[Origin | None]
    """Who caused it."""
    parentId: NotRequired[str | None]
    """The entry that caused this one: events of a command carry the command's id."""

EventNotification: TypeAlias = (
    "EventNotificationCmd | "
    "EventNotificationEvt"
)
"""Notification `orchestrate.event`."""


class ExecutionPolicy(TypedDict):
    """What a turn may do."""

    allowExternalLLMs: NotRequired[bool]
    """Whether models outside this machine may be asked. The daemon's `models.allowExternal` must say so too."""
    dryRun: NotRequired[bool]
    """Tool calls are shown and not made."""
    maxIterations: NotRequired[int | None]
    """Answers of the model at most; `agent.max_iterations` when omitted."""
    maxTokens: NotRequired[int | None]
    """Tokens in and out at most, over all answers."""
    network: NotRequired[bool]
    """Whether tools may use the network."""
    ops: NotRequired[list[str] | None]
    """The only tools that may be called; all registered ones when omitted."""
    paths: NotRequired[list[str] | None]
    """The only paths that may be touched, relative to the root; everything when omitted."""
    promptProgress: NotRequired[bool | None]
    """Whether the model is asked how far it is in reading its prompt; as the daemon has it when omitted."""
    sandbox: NotRequired[SandboxUse | None]
    """`off` runs commands outside the sandbox. Needs the right `admin`, and the audit says so of each."""
    settings: NotRequired[TurnOverrides | None]
    """Settings of this turn in place of the configured ones."""
    timeoutSeconds: NotRequired[int | None]
    """Seconds at most, the waiting for approvals left out."""
    toolsMode: NotRequired[ToolsMode | None]
    """Under which names tools are offered; `tools.mode` when omitted."""


class ExploreDetails(TypedDict):
    """The reasons behind a summary."""

    commands: ProjectCommands
    """How to build, test and run it."""
    entrypoints: list[Entrypoint]
    """Each entrypoint with its reason."""
    layout: list[LayoutEntry]
    """Top-level folders and what they hold."""
    projects: list[Project]
    """Packages, crates or modules of the repository."""
    stats: ExploreStats
    """Figures."""
    topFiles: list[TopFile]
    """Each top file with its reason."""
    description: NotRequired[str | None]
    """What the project says it is, in its own words (manifest or readme)."""
    findings: NotRequired[list[Finding]]
    """What the goals' searches found."""
    git: NotRequired[GitFacts | None]
    """Git facts, when it is a repository."""


class ExplorePlan(TypedDict):
    """A plan: goals and the operations to run next."""

    goals: list[str]
    """What the plan is for."""
    nextOps: list[AgentOp]
    """Operations to run, in order of importance."""


class ExplorePolicy(TypedDict):
    """What an explore may do beyond reading inside its root."""

    allowExternalLLMs: NotRequired[bool]
    """Whether external models may be asked."""
    network: NotRequired[bool]
    """Whether the network may be used (a clone)."""
    ops: NotRequired[list[str] | None]
    """The only operations that may run, by tool name; all read-only ones when omitted."""
    paths: NotRequired[list[str] | None]
    """The only paths that may be read, relative to the root; everything when omitted. What asks for more (a search of the
    whole root, its languages) is answered for these paths."""


class ExploreStartParams(TypedDict):
    """Parameters of `orchestrate.explore.start`."""

    branch: NotRequired[str | None]
    """The branch to clone."""
    goals: NotRequired[list[str]]
    """What to find out. Known goals steer the planner, other text becomes searches."""
    planner: NotRequired[PlannerKind | None]
    """Who plans; the built-in planner when omitted."""
    policy: NotRequired[ExplorePolicy | None]
    """What the run may do; nothing beyond reading when omitted."""
    remoteURL: NotRequired[str | None]
    """A repository to clone first; needs `policy.network`."""
    requestId: NotRequired[str | None]
    """Retry key, up to 128 bytes: the same again returns the first receipt."""
    root: NotRequired[str | None]
    """Absolute path of the folder; not needed with `remoteURL`."""
    sessionId: NotRequired[SessionId | None]
    """An existing session to run in; a fresh one when omitted."""


class ExploreStats(TypedDict):
    """Figures of an explore."""

    chunks: int
    """Chunks."""
    failedOps: int
    """Operations that failed."""
    files: int
    """Files seen by the index."""
    millis: int
    """Milliseconds from start to summary."""
    ops: int
    """Operations run."""
    skipped: int
    """Files left out of the index."""
    symbols: int
    """Symbols."""


class ExploreStatus(TypedDict):
    """Answer of `orchestrate.explore.status`."""

    headSeq: int
    """Sequence number of the newest record."""
    opsDone: int
    """Operations finished."""
    opsPending: int
    """Operations waiting or running."""
    sessionId: SessionId
    """The session."""
    state: RunState
    """Where the run stands."""
    runId: NotRequired[RunId | None]
    """Its latest explore run."""
    summary: NotRequired[ExploreSummary | None]
    """The summary, once completed."""


class ExploreSummary(TypedDict):
    """What an explore found: the five fields of the plan's schema and `details` with the reasons."""

    details: ExploreDetails
    """Reasons, commands and figures."""
    entrypoints: list[str]
    """Paths where execution begins, most important first."""
    followups: list[str]
    """What is not known yet and how to find out."""
    languages: dict[str, int]
    """Lines by language (code, comments and blanks), as tokei counts them."""
    repoName: str
    """Name of the repository."""
    topFiles: list[str]
    """Files to read first, by how much the rest of the code refers to them."""


class FileChange(TypedDict):
    """A file that a tool changed."""

    path: str
    """The file, relative to the root."""
    after: NotRequired[str | None]
    """SHA-256 (hex) of what it held afterwards; absent when it was deleted."""
    before: NotRequired[BlobRef | None]
    """What it held before, as base64 text; absent when it was not there."""
    lost: NotRequired[bool]
    """Whether it was there before and what it held was not kept: such a change cannot be undone."""


class FileLines(TypedDict):
    """Matching lines of one file, at least one."""

    lines: list[int]
    """Their numbers, ascending."""
    path: str
    """Path relative to its root."""
    root: RootId
    """The root."""
    text: str
    """The text of each without its end, at most 2 KiB, invalid UTF-8 replaced; with `\\n` between one and the next."""
    ranges: NotRequired[list[list[list[int]]]]
    """With `withRanges`: for each of them the byte ranges of the matches in its text."""


class Finding(TypedDict):
    """An answer to a goal."""

    goal: str
    """The goal."""
    places: list[str]
    """`path:line` of the best places."""

FinishReason: TypeAlias = Literal[
    "stop",  # It was done.
    "tool_calls",  # It waits for tools.
    "length",  # It reached its limit of tokens.
    "filtered",  # The provider held the answer back.
]
"""Why a model stopped."""


class ForkParams(TypedDict):
    """Parameters of `session.fork`."""

    sessionId: SessionId
    """The session."""
    beforeTurnId: NotRequired[str | None]
    """The turn before which the new session begins to differ; the whole past when omitted."""
    title: NotRequired[str | None]
    """A name for people; the old one's when omitted."""

Fusion: TypeAlias = Literal[
    "rrf",  # Reciprocal rank fusion.
    "minmax",  # Sum of scores scaled to 0..1 within each list.
]
"""How two lists become one."""


class GitChange(TypedDict):
    """One changed file."""

    path: str
    """Path relative to the repository."""
    status: str
    """`added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or `conflicted`."""


class GitFacts(TypedDict):
    """Git facts of a repository."""

    activeFiles: list[str]
    """Files changed most often in the latest commits."""
    changedFiles: int
    """Files changed and not committed."""
    recent: list[str]
    """Subjects of the latest commits."""
    branch: NotRequired[str | None]
    """Current branch, when on one."""
    head: NotRequired[str | None]
    """Commit checked out."""


class GitProgress(TypedDict):
    """Live notification `git.progress`."""

    done: bool
    """True on the last one."""
    percent: float
    """0 to 100."""
    requestId: str
    """The request."""
    stage: str
    """`receiving`, `resolving`, `checkout`, …"""
    error: NotRequired[str | None]
    """What failed, on a bad end."""
    reason: NotRequired[str | None]
    """The stable reason of a bad end, as in the error table."""
    result: NotRequired[CloneResult | None]
    """The result, on a good end."""


class GitStatus(TypedDict):
    """State of a repository."""

    changes: list[GitChange]
    """Changed files, at most 1,000."""
    isRepository: bool
    """False for a folder without git; the rest is empty then."""
    truncated: bool
    """True when there were more."""
    branch: NotRequired[str | None]
    """Current branch, when on one."""
    head: NotRequired[str | None]
    """Commit checked out, when there is one."""
    remote: NotRequired[str | None]
    """URL of `origin`, without credentials."""
    top: NotRequired[str]
    """Where the repository lies below the root; empty when it is the root. Changes are relative to it."""


class GitStatusParams(TypedDict):
    """Parameters of `git.status`."""

    path: str
    """A folder inside a declared root."""


class GoneNotification(TypedDict):
    """Params of `orchestrate.gone`."""

    message: str
    """Human-readable explanation."""
    reason: str
    """Always `gone`."""
    subscriptionId: SubscriptionId
    """The subscription that ended."""


class GrantedRule(TypedDict):
    """A rule that somebody granted for good."""

    grantedAt: Timestamp
    """When."""
    grantedBy: str
    """The client that answered."""
    rule: str
    """The rule, as in `permissions.allow`."""


class GrepAnswer(TypedDict):
    """Answer of `search.grep`."""

    complete: bool
    """Whether the file list covers its whole scope now."""
    filesSearched: int
    """Files looked into."""
    items: list[GrepItem]
    """Matching lines by path, then line."""
    tookUs: int
    """Microseconds spent."""
    total: int
    """Matching lines seen (all of them in count mode)."""
    truncated: bool
    """True when `k` cut the answer; go on with `nextCursor`."""
    counts: NotRequired[list[GrepCount]]
    """Matching lines by file, in count mode."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""
    unreadable: NotRequired[list[str]]
    """Files that could not be read."""

GrepCorpus: TypeAlias = Literal[
    "grep",  # The files themselves.
]
"""What the partials of `search.grep` come from."""


class GrepCount(TypedDict):
    """Matching lines of one file."""

    lines: int
    """Matching lines."""
    path: str
    """Path relative to its root."""
    root: RootId
    """The root."""


class GrepItem(TypedDict):
    """One matching line."""

    line: int
    """Line number."""
    path: str
    """Path relative to its root."""
    root: RootId
    """The root."""
    text: str
    """The line without its end, at most 2 KiB; invalid UTF-8 replaced."""
    after: NotRequired[list[str]]
    """Lines after."""
    before: NotRequired[list[str]]
    """Lines before."""
    ranges: NotRequired[list[list[int]]]
    """Byte ranges of the matches in `text`."""


class GrepParams(TypedDict):
    """Parameters of `search.grep`."""

    pattern: str
    """Text, or a regular expression with `isRegex`. At most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around each hit, at most 20."""
    countOnly: NotRequired[bool]
    """Only count: `items` stays empty, `counts` has the lines by file."""
    cursor: NotRequired[str | None]
    """Where to go on, from `nextCursor`."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """`ignore_case` (`i`), `smart_case` (`S`), `word` (`w`), `multiline` (`U`), `dot_all` (`s`)."""
    isRegex: NotRequired[bool]
    """Whether `pattern` is a regular expression."""
    k: NotRequired[int]
    """Lines wanted, 1 to 10,000."""
    pathPrefix: NotRequired[str | None]
    """Only files under this path."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications, each with the next lines; none are sent when omitted or with `countOnly`."""


class GrepPartial(TypedDict):
    """Live notification `search.partial` of a `search.grep`."""

    corpus: GrepCorpus
    """Always `grep`."""
    done: bool
    """True on the last one."""
    items: list[GrepItem]
    """The lines that come after those of the partial before."""
    requestId: str
    """The `requestId` of the search."""


class GrepStreamEnd(TypedDict):
    """Answer of `search.grepStream`: it comes when all lines are told."""

    complete: bool
    """Whether the file list covers its whole scope now."""
    filesSearched: int
    """Files looked into."""
    tookUs: int
    """Microseconds spent."""
    total: int
    """Lines told."""
    truncated: bool
    """True when there are more lines than `k`."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""
    unreadable: NotRequired[list[str]]
    """Files that could not be read."""


class GrepStreamParams(TypedDict):
    """Parameters of `search.grepStream`."""

    pattern: str
    """Text, or a regular expression with `isRegex`. At most 4 KiB."""
    requestId: str
    """Name of the `search.partial` notifications that bring the lines."""
    cursor: NotRequired[str | None]
    """Where to go on, from a partial's `cursor`."""
    filters: NotRequired[SearchFilters | None]
    """Further filters; `kinds` does not apply."""
    flags: NotRequired[list[str]]
    """As those of `search.grep`."""
    isRegex: NotRequired[bool]
    """Whether `pattern` is a regular expression."""
    k: NotRequired[int | None]
    """Lines wanted at most; all when omitted."""
    pathPrefix: NotRequired[str | None]
    """Only files under this path."""
    withRanges: NotRequired[bool]
    """Whether `ranges` are told: each line is then looked at once more."""


class IndexAddRoot(TypedDict):
    """Arguments of `index_add_root`."""

    path: str
    """Absolute path of the folder."""


class IndexBuild(TypedDict):
    """Arguments of `index_build`."""

    maxConcurrency: NotRequired[int | None]
    """Indexes at work at once at most, this one among them: with as many others at work the build waits for them first.
    As many as there are when omitted."""
    timeoutSeconds: NotRequired[int | None]
    """Seconds to wait at most, up to 600; then the answer is the state reached."""


class IndexProgress(TypedDict):
    """Live notification `index.progress`."""

    chunks: int
    """Chunks so far."""
    done: bool
    """True when everything is up to date, or the pass failed."""
    filesIndexed: int
    """Files indexed so far."""
    path: str
    """Path of the root."""
    state: IndexState
    """What it does now."""
    requestId: NotRequired[str | None]
    """The request, when it was named."""


class IndexReceipt(TypedDict):
    """Receipt of an index command; the work is reported by `index.progress` and `index.status`."""

    path: str
    """Its canonical path."""
    root: RootId
    """The root."""
    requestId: NotRequired[str | None]
    """The request, when it was named."""

IndexState: TypeAlias = Literal[
    "indexing",  # Walking and indexing text.
    "enriching",  # Lexical search is complete; vectors or symbols are being added.
    "ready",  # Up to date.
    "failed",  # The last pass failed; see `error`.
]
"""What a root's index does."""


class IndexStatus(TypedDict):
    """Answer of `index.status`."""

    roots: list[RootStatus]
    """One for each root."""


class IndexStatusParams(TypedDict):
    """Parameters of `index.status`."""

    root: NotRequired[str | None]
    """Root id or absolute path; all roots when omitted."""


class InitializeParams(TypedDict):
    """Parameters of `initialize`, the first message of a connection."""

    client: ClientInfo
    """Who it is."""
    protocolVersions: list[str]
    """Versions the client speaks, best first."""
    capabilities: NotRequired[ClientCapabilities]
    """What it can do."""


class InitializeResult(TypedDict):
    """Answer of `initialize`."""

    capabilities: ServerCapabilities
    """What the daemon can do."""
    limits: Limits
    """Limits of this connection."""
    protocolVersion: str
    """The version both speak."""
    server: ServerInfo
    """Who answers."""
    version: str
    """Version of the daemon, as in its Bonjour record."""

Input: TypeAlias = (
    "str | "
    "list[Part]"
)
"""The input of a turn: a text, or parts."""

InstanceId: TypeAlias = "str"


class LaggedNotification(TypedDict):
    """Notification `orchestrate.lagged`: this client fell behind and now reads from the log."""

    fromSeq: int
    """The next record it will be sent, from the log."""
    subscriptionId: SubscriptionId
    """The subscription."""


class LayoutEntry(TypedDict):
    """A top-level folder."""

    files: int
    """Files in it."""
    path: str
    """The folder."""
    role: str
    """Its main language, or what it is for."""


class Limits(TypedDict):
    """Limits; over them there is an immediate error."""

    maxBatch: int
    """Calls in one batch."""
    maxConnections: int
    """Connections of the daemon."""
    maxInFlight: int
    """Calls of one connection at work at once."""
    maxK: int
    """Results of one search."""
    maxMessageBytes: int
    """Bytes of one message to the daemon."""
    maxPage: int
    """Entries of one page."""
    maxSubscriptions: int
    """Subscriptions of one connection."""

LinesCorpus: TypeAlias = Literal[
    "lines",  # The files themselves, line by line.
]
"""What the partials of `search.grepStream` come from."""


class LinesPartial(TypedDict):
    """Live notification `search.partial` of a `search.grepStream`."""

    corpus: LinesCorpus
    """Always `lines`."""
    done: bool
    """True on the last one."""
    files: list[FileLines]
    """The lines that come after those of the partial before; the first file may be the last one of that."""
    requestId: str
    """The `requestId` of the search."""
    cursor: NotRequired[str | None]
    """Where to go on after these lines, should the connection end."""


class ListDirParams(TypedDict):
    """Parameters of `fs.listDir`."""

    path: str
    """Absolute, or relative to `root`."""
    depth: NotRequired[int]
    """Levels below it, 1 to 16."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`."""

LiveWord: TypeAlias = Literal[
    "live",  # From the head.
]
"""The word `live`."""


class LlmCall(TypedDict):
    """Arguments of `llm_call`."""

    prompt: str
    """What is asked."""
    expectsType: NotRequired[str | None]
    """The registered type that the answer must be: `ExplorePlan` or `ExploreSummary`."""
    instructions: NotRequired[str | None]
    """The system text."""
    policy: NotRequired[LlmPolicy]
    """How the model is asked."""
    provider: NotRequired[str | None]
    """The provider; the session's own when omitted."""
    streamStructured: NotRequired[bool]
    """Whether a typed answer is told while it is written, as `structured_snapshot` events; needs `expectsType`."""


class LlmPolicy(TypedDict):
    """How a model is asked."""

    allowExternalLLMs: NotRequired[bool]
    """Whether a model outside this machine may be asked. The daemon's `models.allowExternal` must say so too."""
    maxTokens: NotRequired[int | None]
    """Tokens of the answer, at most 8,192; 1,024 when omitted."""
    model: NotRequired[str | None]
    """The model; the provider's default when omitted."""
    temperature: NotRequired[float | None]
    """0 to 2; the provider's own when omitted."""


class MapAnswer(TypedDict):
    """Answer of `search.map`."""

    complete: bool
    """False while symbols are missing, and for trees with more definitions than a map can weigh."""
    files: list[MapFile]
    """The same, best file first."""
    text: str
    """The map as a model reads it: a line for each file, under it one for each definition: line number, kind, name."""
    tokens: int
    """Tokens of `text`, one for four bytes; at most the budget."""
    tookUs: int
    """Microseconds spent."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""


class MapDefinition(TypedDict):
    """A definition of a map."""

    kind: str
    """`function`, `class`, …"""
    line: int
    """Its first line."""
    name: str
    """Its name."""


class MapFile(TypedDict):
    """A file of a map."""

    definitions: list[MapDefinition]
    """Its definitions that fit, by line."""
    path: str
    """Path relative to its root."""
    root: RootId
    """The root."""
    score: float
    """Its part of all attention, 0 to 1."""


class MapParams(TypedDict):
    """Parameters of `search.map`."""

    budget: NotRequired[int]
    """Tokens that the text may take, 1 to 16,384; a token is taken for four bytes."""
    files: NotRequired[list[str]]
    """Files being worked on, relative to their root or absolute, at most 200: what they refer to comes first."""
    query: NotRequired[str | None]
    """What is being worked on, in words or names: what a search for it finds comes first. At most 4 KiB."""
    roots: NotRequired[list[str]]
    """Root ids or absolute root paths; all declared roots when empty."""


class MemoryChange(TypedDict):
    """What a change of the store did."""

    bytes: int
    """Bytes of its text now; 0 when it was deleted."""
    message: str
    """In a sentence."""
    name: str
    """The entry's name."""


class MemoryEntry(TypedDict):
    """An entry without its text."""

    bytes: int
    """Bytes of its text."""
    fixed: bool
    """True when it cannot be changed or deleted through Cairn: its name begins with `fix-`."""
    keywords: list[str]
    """The same as a list."""
    modified: Timestamp
    """When it was last written."""
    name: str
    """Its sorted keywords, joined by `_`: the name of its file without `.md`."""
    excerpt: NotRequired[str | None]
    """The part of its text that a search found, in one line."""


class MemoryKeyword(TypedDict):
    """A keyword."""

    entries: int
    """Entries that bear it."""
    keyword: str
    """The word."""


class MemoryKeywordsParams(TypedDict):
    """Parameters of `memory.keywords`."""

    limit: NotRequired[int | None]
    """Keywords: 200 by default, at most 500; those with most entries first."""


class MemoryListParams(TypedDict):
    """Parameters of `memory.list`."""

    cursor: NotRequired[str | None]
    """From an earlier page."""
    limit: NotRequired[int | None]
    """Entries a page: 50 by default, at most 200."""


class MemoryRef(TypedDict):
    """Names an entry."""

    keywords: str
    """Its keywords, in any order, or its name."""


class MemorySearchParams(TypedDict):
    """Parameters of `memory.search`."""

    query: str
    """What is looked for."""
    cursor: NotRequired[str | None]
    """From an earlier page."""
    limit: NotRequired[int | None]
    """Results a page: 10 by default, at most 20."""


class MemoryText(TypedDict):
    """An entry with its text."""

    content: str
    """Its text."""
    fixed: bool
    """True when it cannot be changed or deleted."""
    name: str
    """Its name."""


class MemoryWriteParams(TypedDict):
    """Parameters of `memory.save` and `memory.append`."""

    content: str
    """Text, at most 256 KiB with what the entry holds already."""
    keywords: str
    """The entry's keywords, in any order: 1 to 8 words. They are its only name."""


class ModelAnswer(TypedDict):
    """A whole answer of a model."""

    firstMillis: int
    """Milliseconds to the first piece."""
    millis: int
    """Milliseconds to the end."""
    model: ModelChoice
    """Who answered."""
    requestDigest: str
    """SHA-256 (hex) of what was asked: system text, messages, tools."""
    runId: RunId
    """The run."""
    tokensPerSecond: float
    """Tokens a second while it answered; 0 when too short to tell."""
    usage: TokenUsage
    """Tokens, as the provider counts them; counted here where it does not tell."""
    calls: NotRequired[list[ToolUse]]
    """Tools it asks for."""
    contextTokens: NotRequired[int | None]
    """Tokens of the model's context, where known."""
    finish: NotRequired[FinishReason | None]
    """Why it stopped; absent when it was cut off."""
    heardSeq: NotRequired[int]
    """Number of the latest `steered` record that was in what was asked; 0 when there was none."""
    raw: NotRequired[BlobRef | None]
    """The answer's bytes as they came, for replay."""


class ModelChoice(TypedDict):
    """Which model a session talks to."""

    model: str
    """The model there."""
    provider: str
    """The provider's name here."""
    endpoint: NotRequired[str | None]
    """Where it is called, when that is not the configured place."""


class ModelInfo(TypedDict):
    """A model that a provider offers."""

    model: str
    """The model's name there."""
    provider: str
    """The provider's name here: `ollama`, `openai`, …"""
    contextTokens: NotRequired[int | None]
    """Tokens of its context, where the provider tells."""
    sizeBytes: NotRequired[int | None]
    """Bytes of its weights, where the provider tells."""


class ModelListParams(TypedDict):
    """Parameters of `model.list`."""

    provider: NotRequired[str | None]
    """The provider; the configured one when omitted."""

NameMatch: TypeAlias = Literal[
    "exact",  # Equal.
    "prefix",  # Begins with it.
    "fuzzy",  # Close to it.
]
"""How a name matches."""


class Origin(TypedDict):
    """Where an entry comes from, as far as it is known."""

    client: NotRequired[str | None]
    """Name of the client that asked."""
    runId: NotRequired[RunId | None]
    """The run it belongs to."""
    tool: NotRequired[str | None]
    """The tool that made it."""

Outcome: TypeAlias = Literal[
    "completed",  # The model was done.
    "failed",  # Something failed; `error` tells what.
    "cancelled",  # A client stopped it.
    "denied",  # A call was denied for good, or nobody could be asked.
    "timed_out",  # Its time was used up. A turn whose tokens were used up `failed` with the reason `budget_exceeded`.
]
"""How a turn ended."""


class PageOfApproval(TypedDict):
    """A page of a list."""

    data: list[Approval]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfAuditEntry(TypedDict):
    """A page of a list."""

    data: list[AuditEntry]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfDevice(TypedDict):
    """A page of a list."""

    data: list[Device]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfGrantedRule(TypedDict):
    """A page of a list."""

    data: list[GrantedRule]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfMemoryEntry(TypedDict):
    """A page of a list."""

    data: list[MemoryEntry]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfMemoryKeyword(TypedDict):
    """A page of a list."""

    data: list[MemoryKeyword]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfModelInfo(TypedDict):
    """A page of a list."""

    data: list[ModelInfo]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfProviderInfo(TypedDict):
    """A page of a list."""

    data: list[ProviderInfo]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfRootStatus(TypedDict):
    """A page of a list."""

    data: list[RootStatus]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfSession(TypedDict):
    """A page of a list."""

    data: list[Session]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfSkillInfo(TypedDict):
    """A page of a list."""

    data: list[SkillInfo]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageOfToolInfo(TypedDict):
    """A page of a list."""

    data: list[ToolInfo]
    """The entries."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next page; absent on the last."""


class PageParams(TypedDict):
    """Page parameters of lists."""

    archived: NotRequired[bool]
    """Whether those that are put away are listed too."""
    cursor: NotRequired[str | None]
    """Where to go on, from `nextCursor`."""
    limit: NotRequired[int | None]
    """Entries wanted, at most 500."""


class PairBeginParams(TypedDict):
    """Parameters of `pair.begin`."""

    rights: list[Right]
    """What the device may do; none that the caller has not."""
    name: NotRequired[str | None]
    """What the device is to be called; absent to take its own word."""


class PairOffer(TypedDict):
    """Answer of `pair.begin`: what a person carries to the other machine."""

    addresses: list[str]
    """`host:port` of each listener for devices."""
    code: str
    """Eight digits, good for one pairing."""
    expiresAt: Timestamp
    """When it is void."""
    key: str
    """The daemon's key, by its hash."""
    tries: int
    """Wrong tries after which it is void."""

PairState: TypeAlias = Literal[
    "none",  # No code was asked for.
    "waiting",  # A code waits for its device.
    "paired",  # A device is paired; the code is used up.
    "void",  # Too many wrong tries.
    "expired",  # Nobody came in time.
    "cancelled",  # It was called off.
]
"""How a pairing stands."""


class PairStatus(TypedDict):
    """Answer of `pair.status` and `pair.cancel`."""

    state: PairState
    """How the latest code stands."""
    triesLeft: int
    """Tries that are left of it."""
    device: NotRequired[Device | None]
    """The device that used it."""


class PartText(TypedDict):
    """Text."""

    type: Literal["text"]
    text: str
    """The text."""


class PartImage(TypedDict):
    """An image, for models that take them."""

    type: Literal["image"]
    data: str
    """The bytes in base64."""
    mime: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""

Part: TypeAlias = (
    "PartText | "
    "PartImage"
)
"""A part of a user's message."""


class PlanItem(TypedDict):
    """One thing to do."""

    text: str
    """What."""
    status: NotRequired[PlanStatus]
    """`pending`, `in_progress` or `done`."""

PlanStatus: TypeAlias = Literal[
    "pending",  # Not begun.
    "in_progress",  # Being done.
    "done",  # Done.
]
"""How far a thing to do is."""

PlannerKind: TypeAlias = Literal[
    "default",  # The built-in planner alone: deterministic, without a model.
    "model",  # The built-in planner, then the session's model with what was found.
]
"""Who plans an explore."""


class Preview(TypedDict):
    """Exactly what a call would do."""

    summary: str
    """One line."""
    command: NotRequired[str | None]
    """The command line, for a shell."""
    diff: NotRequired[str | None]
    """The change as a unified diff; cut at 64 KiB, and then it says so."""
    folder: NotRequired[str | None]
    """The folder the command runs in, relative to the root."""
    network: NotRequired[bool]
    """Whether it uses the network."""
    paths: NotRequired[list[str]]
    """Paths it touches, relative to the root."""
    warnings: NotRequired[list[str]]
    """What else the reader should know: no sandbox, a file that was not read before."""


class Project(TypedDict):
    """A package, crate or module."""

    kind: str
    """`cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, …"""
    manifest: str
    """Path of the manifest."""
    name: str
    """Its name by the manifest."""
    description: NotRequired[str | None]
    """What its manifest says it is."""


class ProjectCommands(TypedDict):
    """Commands of a project, most trusted first."""

    build: list[str]
    """Build it."""
    run: list[str]
    """Run it."""
    test: list[str]
    """Test it."""


class PromptAppendParams(TypedDict):
    """Parameters of `prompt.append`."""

    sessionId: SessionId
    """The session."""
    text: str
    """What goes after the tools' own texts; at most 16 KiB of it are used."""


class PromptSetParams(TypedDict):
    """Parameters of `prompt.set`."""

    sessionId: SessionId
    """The session; its conversation is emptied."""
    system: NotRequired[str | None]
    """Stands in place of the built-in base; the empty text for no base. When omitted, the built-in one is back and nothing
    is appended."""


class PromptShown(TypedDict):
    """A resolved system text."""

    system: str
    """The text as the model gets it."""


class ProviderCurrentParams(TypedDict):
    """Parameters of `provider.current`."""

    sessionId: NotRequired[SessionId | None]
    """The session; the daemon's default when omitted."""


class ProviderInfo(TypedDict):
    """A provider as clients see it."""

    available: bool
    """Whether it can be called as things are; else why not."""
    external: bool
    """Whether calling it leaves this machine."""
    name: str
    """Its name."""
    defaultModel: NotRequired[str | None]
    """The model it is called with when none is named."""
    endpoint: NotRequired[str | None]
    """Where it is called."""
    images: NotRequired[bool]
    """Whether images can be sent to it; a model there may still refuse them. `false` for one that cannot be called."""
    reason: NotRequired[str | None]
    """Why not."""


class ProviderSet(TypedDict):
    """Answer of `provider.set`."""

    model: str
    """The model there."""
    provider: str
    """The provider's name here."""
    contextTokens: NotRequired[int | None]
    """Tokens of its context, where known."""
    endpoint: NotRequired[str | None]
    """Where it is called, when that is not the configured place."""
    warnings: NotRequired[list[str]]
    """What the user should know: a smaller context than before."""


class ProviderSetParams(TypedDict):
    """Parameters of `provider.set`."""

    sessionId: SessionId
    """The session."""
    endpoint: NotRequired[str | None]
    """Another place to call it; no key that was set up for the configured one goes there."""
    model: NotRequired[str | None]
    """The model; the provider's default when omitted."""
    provider: NotRequired[str | None]
    """The provider; the session's own when omitted."""


class ReplayDifference(TypedDict):
    """A step that came out differently."""

    now: str
    """What is there now."""
    path: str
    """Where in it, as a JSON pointer."""
    recorded: str
    """What the record has there."""
    seq: int
    """The record it is about; 0 when it is about none."""
    what: str
    """Which step."""


class ReplayParams(TypedDict):
    """Parameters of `trace.replay`."""

    traceId: SessionId
    """The session's id."""
    root: NotRequired[str | None]
    """The folder to replay it in; the session's own root when omitted. It must be a declared root."""


class ReplayReport(TypedDict):
    """Answer of `trace.replay`."""

    compared: int
    """Steps that were compared."""
    identical: bool
    """Whether everything was the same."""
    replay: SessionId
    """The session in which it was."""
    traceId: SessionId
    """What was replayed."""
    first: NotRequired[ReplayDifference | None]
    """The first step that was not."""


class Resolution(TypedDict):
    """How an approval ended."""

    at: Timestamp
    """When."""
    by: str
    """Who gave it: a client's name, `deadline`, or `cancelled`."""
    decision: ApprovalDecision
    """The answer."""
    pattern: NotRequired[str | None]
    """The rules that were granted in place of the approval's own."""
    reason: NotRequired[str | None]
    """Why; the model sees it when the answer is no."""


class RevokeParams(TypedDict):
    """Parameters of `permission.revoke`."""

    rule: str
    """The rule, as `permission.list` tells it."""

Right: TypeAlias = Literal[
    "observe",  # Look.
    "prompt",  # Start work.
    "approve",  # Answer approvals.
    "admin",  # Change the daemon.
]
"""What a client must be allowed to."""

RootId: TypeAlias = "str"
"""The id of an indexed root: `root_` and the first 16 hex digits of the SHA-256 of its canonical path, so that
the same folder keeps its index."""


class RootRef(TypedDict):
    """Parameters that name a root by its id or its absolute path."""

    root: str
    """Root id or absolute path."""
    requestId: NotRequired[str | None]
    """Retry key and name for `index.progress`, where work follows."""


class RootStatus(TypedDict):
    """State of one root's index."""

    bytes: int
    """Bytes of their text."""
    chunks: int
    """Chunks."""
    clock: int
    """Grows by one with each committed batch of changes."""
    complete: bool
    """True when lexical, vectors and symbols are all up to date with the last scan."""
    embedder: str
    """Model of the vectors."""
    files: int
    """Indexed files."""
    languages: dict[str, int]
    """Indexed files by language."""
    path: str
    """Its canonical path."""
    pending: int
    """Files waiting to be indexed."""
    root: RootId
    """The root."""
    skipped: dict[str, int]
    """Files left out, by reason: `binary`, `too_large`, `generated`, `unreadable`, `invalid_name`, …"""
    state: IndexState
    """What it does now."""
    symbolFiles: int
    """Files whose symbols are known."""
    symbols: int
    """Definitions."""
    vectors: int
    """Chunks that have a vector."""
    watch: str
    """Whether changes are noticed at once (`watching`), by sweeps only (`polling`), or not (`off`)."""
    error: NotRequired[str | None]
    """The last error, when the last pass had one."""


class RunError(TypedDict):
    """Why a turn did not complete."""

    hint: str
    """The way out."""
    message: str
    """For people."""
    reason: str
    """Stable reason, as in the error table."""
    retryable: bool
    """Whether the same again may succeed."""

RunId: TypeAlias = "str"


class RunReceipt(TypedDict):
    """Receipt of a started run."""

    runId: RunId
    """The run."""
    seq: int
    """Sequence number of the run's `started` record; it is durable."""
    sessionId: SessionId
    """The session to follow."""


class RunResult(TypedDict):
    """The end of a turn."""

    runId: RunId
    """The run."""
    sessionId: SessionId
    """The session."""
    status: Outcome
    """How it ended."""
    toolTrace: list[ToolTrace]
    """Every tool call, in order."""
    turnId: str
    """The turn."""
    usage: TokenUsage
    """Tokens of all answers."""
    error: NotRequired[RunError | None]
    """Why it did not complete."""
    finalOutput: NotRequired[str | None]
    """The model's last visible text."""
    metadata: NotRequired[dict[str, str]]
    """What the client sent with the turn."""


class RunStartParams(TypedDict):
    """Parameters of `orchestrate.run.start`."""

    input: Input
    """What is asked."""
    sessionId: SessionId
    """The session."""
    turnId: str
    """The client's name for the turn, 1 to 128 bytes: the same again returns the first receipt."""
    context: NotRequired[str | None]
    """What the model should know beside it; goes before the input."""
    metadata: NotRequired[dict[str, str]]
    """Kept with the turn and returned as it is; at most 32 entries."""
    policy: NotRequired[ExecutionPolicy | None]
    """What the turn may do and how long."""

RunState: TypeAlias = Literal[
    "idle",  # Nothing has run.
    "running",  # At work.
    "completed",  # Ended with `completed`.
    "stopped",  # Ended with `stopped`.
    "failed",  # Ended with `error`.
    "interrupted",  # Cut off by the end of the daemon; can be resumed.
]
"""Where a run stands."""


class RunStatus(TypedDict):
    """Answer of `orchestrate.run.status`."""

    headSeq: int
    """Sequence number of the newest record."""
    queued: int
    """Turns that wait behind the one at work."""
    sessionId: SessionId
    """The session."""
    state: RunState
    """State of the session."""
    runId: NotRequired[RunId | None]
    """Its latest turn."""


class SandboxProbe(TypedDict):
    """Answer of `sandbox.probe`."""

    controlGroup: bool
    """Whether memory and processes are bounded by a control group, for all of a command together."""
    notes: list[str]
    """What it does not stop."""
    seccomp: bool
    """Whether system calls can be filtered."""
    tier: str
    """`full`, `weaker` or `none`."""
    userNamespaces: bool
    """Whether user namespaces can be made."""
    bubblewrap: NotRequired[str | None]
    """What bubblewrap calls itself; absent where it is not there."""
    landlock: NotRequired[int | None]
    """Version of Landlock's interface."""
    whyNotFull: NotRequired[str | None]
    """Why the full tier does not work."""

SandboxUse: TypeAlias = Literal[
    "on",  # As the configuration says.
    "off",  # Not at all.
]
"""Whether commands are confined."""


class SearchAnswer(TypedDict):
    """Answer of a search."""

    complete: bool
    """Whether the index covers its whole scope now."""
    items: list[SearchItem]
    """Best first."""
    tookUs: int
    """Microseconds spent."""
    degraded: NotRequired[list[str]]
    """What is missing or late, in words (`vectors`, `symbols`, `indexing`, `rerank`); empty when nothing is."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""


class SearchFilters(TypedDict):
    """Filters; every one given must hold."""

    globs: NotRequired[list[str]]
    """Glob patterns, any of them; with `!` in front: none of them."""
    kinds: NotRequired[list[str]]
    """Symbol kinds (`function`, `class`, …): only results inside such a symbol."""
    languages: NotRequired[list[str]]
    """Language names as in `index.status` (`rust`, `python`, …), extensions (`js`) or other names (`c++`), any of them."""
    pathPrefix: NotRequired[str | None]
    """Only files under this path, by whole components, relative to the root."""
    roots: NotRequired[list[str]]
    """Root ids or absolute root paths, any of them; all declared roots when empty."""


class SearchItem(TypedDict):
    """One result: a range of lines."""

    clock: int
    """Index clock of the root when this was indexed."""
    contentHash: str
    """SHA-256 (hex) of the file as indexed."""
    endLine: int
    """Last line."""
    path: str
    """Path relative to its root, `/` between components."""
    root: RootId
    """The root."""
    score: float
    """Higher is better; comparable within one answer only."""
    startLine: int
    """First line."""
    changed: NotRequired[bool]
    """True when the file on disk differs from what was indexed."""
    explain: NotRequired[list[Share]]
    """With `explain`: what each feature gave to the score, the most telling first; together they are the score."""
    highlights: NotRequired[list[list[int]]]
    """Byte ranges in `text` that match words of the query."""
    lang: NotRequired[str | None]
    """Language, when known."""
    symbol: NotRequired[SymbolRef | None]
    """The definition it lies in, when known."""
    text: NotRequired[str | None]
    """The text, when asked for."""
    textStartLine: NotRequired[int | None]
    """Line number of the first line of `text`, when context moved it."""


class SearchParams(TypedDict):
    """Parameters of `search.lexical`, `search.semantic` and `search.hybrid`."""

    query: str
    """Words, an identifier, a path or a question. At most 4 KiB."""
    contextLines: NotRequired[int]
    """Lines of context around the text, at most 50."""
    diversify: NotRequired[bool | None]
    """Further results of a file count a fifth less each, not only 4 % and up to three times."""
    explain: NotRequired[bool]
    """Whether items tell what each feature gave to their score."""
    filters: NotRequired[SearchFilters | None]
    """Where to look."""
    fusion: NotRequired[Fusion | None]
    """How hybrid search fuses its two lists."""
    includeText: NotRequired[bool]
    """Whether items carry their text."""
    k: NotRequired[int]
    """Results wanted, 1 to 200."""
    mmr: NotRequired[float | None]
    """Maximal marginal relevance: 0 is all diversity, 1 all relevance."""
    requestId: NotRequired[str | None]
    """Name for `search.partial` notifications; none are sent when omitted."""


class SearchPartial(TypedDict):
    """Live notification `search.partial`."""

    corpus: Corpus
    """Which list."""
    done: bool
    """True on the last one."""
    items: list[SearchItem]
    """The items so far."""
    requestId: str
    """The `requestId` of the search."""


class ServerCapabilities(TypedDict):
    """What a daemon can do."""

    methods: list[str]
    """Methods it answers on this connection."""
    notifications: list[str]
    """Notifications it sends."""


class ServerInfo(TypedDict):
    """The daemon's name and instance."""

    instanceId: InstanceId
    """This start of the daemon."""
    name: str
    """Always `cairn`."""
    version: str
    """Version of the binary."""


class Session(TypedDict):
    """A session."""

    createdAt: Timestamp
    """When it was made."""
    headSeq: int
    """Sequence number of the newest record, 0 when there is none."""
    sessionId: SessionId
    """Its id, which is also its trace id."""
    state: RunState
    """State of its latest run."""
    title: str
    """Its name."""
    updatedAt: Timestamp
    """When its log last grew."""
    archived: NotRequired[bool]
    """Whether it is put away: lists leave it out."""
    root: NotRequired[str | None]
    """The root its commands work in."""


class SessionCreateParams(TypedDict):
    """Parameters of `session.create`."""

    requestId: NotRequired[str | None]
    """Retry key."""
    root: NotRequired[str | None]
    """The declared root its commands work in: a path or root id."""
    title: NotRequired[str | None]
    """A name for people, at most 200 characters."""

SessionId: TypeAlias = "str"


class SessionRef(TypedDict):
    """Parameters that name a session."""

    sessionId: SessionId
    """The session."""


class Share(TypedDict):
    """What one feature gave to a score."""

    feature: str
    """`windowWords`, `fileWords`, `path`, `windowNames`, `words`, `name`, `exact`: words of the query in the window, its
    file, its path, the names in it, the answer itself and its name; `fileName`: whether its file's whole name (its
    folder's for `mod`, `index`, `main` and the like) is in the query; `fileMeaning`, `meaning`, `nameMeaning`: nearness
    of the file's best window, the answer and its name; `line`: how far one line covers the query, from six tenths on;
    `definition`: what an answer that is a definition must outweigh; `container`: a type or module, which holds others;
    `size`: its length, up to ten lines; `rerank`: nearness by the model that re-scores;
    `repeat`: what a further answer of a file counts less, its value the factor;
    `prior`: the factor of the path when it is below 1, with no share of its own."""
    share: float
    """Its part of the score: the value times its weight, times the factor of the path."""
    value: float
    """Its value, mostly 0 to 1."""


class SkillFile(TypedDict):
    """A skill's `skill.json`. The folder it lies in bears its id."""

    id: str
    """Its name: letters, digits, `-` and `_`, at most 64."""
    description: NotRequired[str]
    """One line."""
    policy: NotRequired[SkillPolicy]
    """Rules that hold while it is on; they can only tighten."""
    promptBlock: NotRequired[str | None]
    """What the agent is told, at most 16 KiB; `prompt.md` beside the file when absent."""
    tools: NotRequired[list[str]]
    """Names of tools it uses. While all of them are switched off or missing, the skill is off."""
    version: NotRequired[str]
    """Its version, as its author counts."""


class SkillInfo(TypedDict):
    """A skill as clients see it."""

    enabled: bool
    """Whether the agent is told of it."""
    skill: SkillFile
    """What its file says."""
    folder: NotRequired[str | None]
    """The folder it comes from; absent for one that is built in."""
    reason: NotRequired[str | None]
    """Why not."""


class SkillPolicy(TypedDict):
    """Rules of a skill, written as in `permissions`."""

    confirm: NotRequired[list[str]]
    """Asked about."""
    deny: NotRequired[list[str]]
    """Refused."""


class Span(TypedDict):
    """A range of lines of a file."""

    endLine: int
    """Last line returned; less than `startLine` when the file has no such line."""
    path: str
    """Path relative to its root."""
    startLine: int
    """First line returned."""
    text: str
    """The lines; invalid UTF-8 replaced."""
    truncated: bool
    """True when a limit cut the range: 2,000 lines or 256 KiB."""
    changed: NotRequired[bool | None]
    """Whether the file differs from the `contentHash` that was given."""
    contentHash: NotRequired[str | None]
    """SHA-256 (hex) of the file now; left out for files over 8 MiB."""
    totalLines: NotRequired[int | None]
    """Lines of the file, when it was read to its end."""


class SpanParams(TypedDict):
    """Parameters of `content.getSpan`."""

    end: int
    """Last line."""
    path: str
    """Absolute, or relative to `root` (to the session's root in a command)."""
    start: int
    """First line, from 1."""
    contentHash: NotRequired[str | None]
    """The hash a search gave: the answer then says whether the file changed since."""
    context: NotRequired[int | None]
    """Lines before and after, at most 50."""
    root: NotRequired[str | None]
    """Root id or root path for a relative `path`; may be left out when one root is declared."""


class SteerParams(TypedDict):
    """Parameters of `orchestrate.run.steer`."""

    sessionId: SessionId
    """The session."""
    text: str
    """What the model should hear before its next answer; at most 16 KiB."""


class SubscribeParams(TypedDict):
    """Parameters of `orchestrate.subscribe`."""

    sessionId: SessionId
    """The session."""
    after: NotRequired[After | None]
    """Where to start; from the beginning when omitted."""


class SubscribeResult(TypedDict):
    """Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`."""

    headSeq: int
    """Newest record now."""
    oldestSeq: int
    """Oldest record that is kept."""
    subscriptionId: SubscriptionId
    """Carried by every notification of this subscription."""

SubscriptionId: TypeAlias = "str"


class SymbolItem(TypedDict):
    """A definition."""

    endLine: int
    """Last line."""
    kind: str
    """`function`, `method`, `class`, `struct`, `enum`, `interface`, `type`, `constant`, `module`, `macro`, …"""
    lang: str
    """Language."""
    name: str
    """Its name."""
    path: str
    """Path relative to its root."""
    root: RootId
    """The root."""
    score: float
    """How well the name fits, 0 to 1."""
    startLine: int
    """First line."""
    container: NotRequired[str | None]
    """The definition it lies in, when any."""


class SymbolRef(TypedDict):
    """A definition's name and kind."""

    kind: str
    """`function`, `method`, `class`, `struct`, …"""
    name: str
    """Its name."""


class SymbolsAnswer(TypedDict):
    """Answer of `search.symbols`."""

    complete: bool
    """Whether symbols are known for the whole scope now."""
    items: list[SymbolItem]
    """Best first; an outline by line."""
    tookUs: int
    """Microseconds spent."""
    restricted: NotRequired[bool]
    """Whether rules hide paths of what was asked for, which are left out."""


class SymbolsParams(TypedDict):
    """Parameters of `search.symbols`: definitions by name, or the outline of a file."""

    filters: NotRequired[SearchFilters | None]
    """Where to look."""
    k: NotRequired[int]
    """Results wanted, 1 to 200 (an outline: up to 2,000)."""
    match: NotRequired[NameMatch | None]
    """How names match; best of all three when omitted."""
    path: NotRequired[str | None]
    """The file of an outline, relative to the root or absolute."""
    query: NotRequired[str | None]
    """A name; with `path` and no `query` the outline of that file."""


class SyncedNotification(TypedDict):
    """Notification `orchestrate.synced`: the backlog is sent."""

    seq: int
    """The last record sent."""
    subscriptionId: SubscriptionId
    """The subscription."""

Timestamp: TypeAlias = "str"


class TokenUsage(TypedDict):
    """Tokens of one model call, or of several together."""

    inputTokens: int
    """Tokens of the prompt, cached ones among them."""
    outputTokens: int
    """Tokens of the answer."""
    cachedTokens: NotRequired[int]
    """Tokens of the prompt that the provider had in its cache."""


class ToolCall(TypedDict):
    """A call of a tool by name."""

    name: str
    """Name in `tool.list`."""
    arguments: NotRequired[Any]
    """Arguments, by the tool's input schema."""


class ToolCallParams(TypedDict):
    """Parameters of `tool.call`."""

    name: str
    """The tool."""
    sessionId: SessionId
    """The session it is recorded in."""
    arguments: NotRequired[Any]
    """Its arguments."""


class ToolFailure(TypedDict):
    """Why a tool call failed."""

    message: str
    """For people."""
    reason: str
    """Stable reason, as in the error table."""
    retryable: bool
    """Whether the same again may succeed."""


class ToolInfo(TypedDict):
    """A registered tool."""

    description: str
    """All there is to say."""
    inputSchema: Any
    """JSON Schema of the arguments."""
    name: str
    """Its name."""
    network: bool
    """True when it uses the network."""
    readOnly: bool
    """True when it changes nothing outside Cairn's own state."""
    hidden: NotRequired[bool]
    """True when models are not offered it: another tool does the same for them."""
    short: NotRequired[str]
    """One line: what a model is told of it."""


class ToolMeta(TypedDict):
    """About a tool's output."""

    millis: int
    """Milliseconds."""
    tag: str
    """The type of `output`."""
    truncated: bool
    """True when it was cut at a limit."""


class ToolOutcome(TypedDict):
    """What came of a tool call in a turn."""

    callId: str
    """The call."""
    millis: int
    """Milliseconds."""
    name: str
    """The tool."""
    blob: NotRequired[BlobRef | None]
    """Where a larger one lies; read it with `trace.blob`."""
    changes: NotRequired[list[FileChange]]
    """Files it changed."""
    error: NotRequired[ToolFailure | None]
    """What went wrong."""
    output: NotRequired[Any]
    """The output, when it is 64 KiB or less."""
    tag: NotRequired[str]
    """What `output` is."""
    truncated: NotRequired[bool]
    """True when the tool cut its output at a limit."""


class ToolResult(TypedDict):
    """A tool's result."""

    meta: ToolMeta
    """What `output` is and what was cut."""
    ok: bool
    """Whether it did what was asked."""
    output: Any
    """The output; `null` on failure."""
    error: NotRequired[ToolFailure | None]
    """What went wrong."""


class ToolTrace(TypedDict):
    """One tool call of a turn."""

    callId: str
    """The call."""
    millis: int
    """Milliseconds, the waiting for approval among them."""
    outcome: str
    """`ok`, or the reason of its failure."""
    tool: str
    """The tool."""


class ToolUse(TypedDict):
    """A tool the model asks for."""

    arguments: Any
    """Its arguments. A string when the model's text was no JSON: the gate tries to repair it."""
    id: str
    """The provider's id for it, or one made here where it has none; unique within a session."""
    name: str
    """The tool's name."""

ToolsMode: TypeAlias = Literal[
    "split",  # Each by its own name.
    "unified",  # `fs`, `web` and `memory`, which take the operation as an argument, in place of what they stand for.
    "both",  # Both ways.
]
"""Under which names models are offered what tools do with files, the web and memory."""


class TopFile(TypedDict):
    """A file worth reading."""

    path: str
    """The file, relative to the root."""
    referringFiles: int
    """Files that refer to its definitions."""
    score: float
    """Share of the centrality, 0 to 1."""
    symbols: list[str]
    """Its most referred-to definitions."""


class TraceExportParams(TypedDict):
    """Parameters of `trace.export`."""

    traceId: SessionId
    """The session's id (also taken as `sessionId`)."""
    cursor: NotRequired[str | None]
    """Where to go on, from `nextCursor`."""


class TraceExportPart(TypedDict):
    """One part of an export: JSONL text. The parts in order are the whole file."""

    jsonl: str
    """Lines, each one JSON object: first a header, then the records, then what records refer to by its hash."""
    nextCursor: NotRequired[str | None]
    """Cursor of the next part; absent on the last."""


class TraceGetParams(TypedDict):
    """Parameters of `trace.get`."""

    traceId: SessionId
    """The session's id."""
    after: NotRequired[int]
    """Records after this one."""
    limit: NotRequired[int | None]
    """Records wanted, at most 500."""


class TraceImportParams(TypedDict):
    """Parameters of `trace.import`."""

    jsonl: str
    """A whole export, or a part of one that ends after a whole line: the first begins with the header, each further one with
    the line after the last that is here."""


class TracePage(TypedDict):
    """Answer of `trace.get`."""

    data: list[Envelope]
    """The records."""
    nextAfter: NotRequired[int | None]
    """Pass as `after` for the next page; absent on the last."""


class TurnOverrides(TypedDict):
    """Settings of one turn in place of those that the configuration has."""

    compactionThreshold: NotRequired[float | None]
    """Part of the context, 0 to 1, after which older turns are condensed, in place of `context.compaction_threshold`."""
    maxAnswerTokens: NotRequired[int | None]
    """Tokens of one answer, at least 1, in place of `llm.max_tokens`."""
    maxContextTokens: NotRequired[int | None]
    """Tokens of the context, at least 1, in place of `context.max_tokens`."""
    maxToolOutputChars: NotRequired[int | None]
    """Characters of a tool's output that the model gets, in place of `context.max_tool_output_chars`."""
    repoMapTokens: NotRequired[int | None]
    """Tokens of the repository map, in place of `context.repo_map_tokens`."""
    temperature: NotRequired[float | None]
    """Randomness of the answers, 0 to 2, in place of `llm.temperature`."""


class TurnRef(TypedDict):
    """Parameters that name a turn at work; the session's current one when `turnId` is omitted."""

    sessionId: SessionId
    """The session."""
    turnId: NotRequired[str | None]
    """The turn."""


class UnsubscribeParams(TypedDict):
    """Parameters of `orchestrate.unsubscribe`."""

    subscriptionId: SubscriptionId
    """The subscription."""


class ViewerLink(TypedDict):
    """Answer of `viewer.link`."""

    expiresInSeconds: int
    """Seconds within which it must be opened, once."""
    path: str
    """Path of the page on the daemon's address, with the code behind `#`, which browsers do not
    send."""
