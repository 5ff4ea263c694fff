//! Typed wrappers for all methods of the daemon.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalRef, ApprovalResolveParams},
    background::{BackgroundCommand, BackgroundOutput, BackgroundOutputParams, BackgroundRef},
    board::{Board, BoardParams},
    calls::{CallsAnswer, CallsParams},
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    content::{DirListing, ListDirParams, Span, SpanParams},
    daemon::{DaemonStats, DaemonStatus},
    explore::{ExploreStartParams, ExploreStatus, RunReceipt, SessionRef},
    fleet::{
        FleetCallParams, FleetRecords, FleetRecordsParams, FleetRun, FleetRunParams, FleetRunRef,
        FleetRunsParams, FleetStatus,
    },
    git::{
        CloneParams, CloneReceipt, GitStatus, GitStatusParams, Worktree, WorktreeCreateParams,
        WorktreeDiff, WorktreeRef, WorktreeRemoveParams, WorktreeRemoved,
    },
    history::{HistoryAnswer, HistoryParams},
    id::SessionId,
    index::{AddRootParams, IndexReceipt, IndexStatus, IndexStatusParams, RootRef, RootStatus},
    map::{MapAnswer, MapParams},
    mcp::{McpAccount, McpFinishLoginParams, McpLogin, McpServerInfo, McpServerRef},
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryText, ProjectMemoryKeywordsParams,
        ProjectMemoryListParams, ProjectMemoryRef, ProjectMemorySearchParams,
        ProjectMemoryWriteParams,
    },
    model::ModelInfo,
    plugin::PluginInfo,
    prompt::{PromptAppendParams, PromptSetParams, PromptShowParams, PromptShown},
    remote::{Device, DeviceRef, PairBeginParams, PairOffer, PairStatus},
    sandbox::SandboxProbe,
    schedule::{Schedule, ScheduleAddParams, ScheduleEntry, ScheduleRef},
    search::{
        GrepAnswer, GrepParams, ImpactAnswer, ImpactParams, ReferencesAnswer, ReferencesParams,
        SearchAnswer, SearchParams, SymbolsAnswer, SymbolsParams,
    },
    session::{
        ArchiveParams, CommandParams, CommandReceipt, Empty, ForkParams, Page, PageParams, Session,
        SessionCreateParams, SessionMcpServers, SetMcpServersParams,
    },
    skill::SkillInfo,
    tool::{GrantedRule, NarrowParams, RevokeParams, ToolCallParams, ToolInfo, ToolResult},
    trace::{
        AuditEntry, AuditQueryParams, BlobParams, BlobPart, ReplayParams, ReplayReport,
        TraceExportParams, TraceExportPart, TraceGetParams, TraceImportParams, TracePage,
    },
    trust::{FolderTrust, TrustGetParams, TrustRemoveParams, TrustRemoved, TrustSetParams},
    turn::{
        Compressed, ModelChoice, ModelListParams, ProviderCurrentParams, ProviderInfo, ProviderSet,
        ProviderSetParams, RunStartParams, RunStatus, SteerParams, TurnRef,
    },
    unattended::{UnattendedRun, UnattendedStartParams},
    usage::{CollectParams, Collected, DiskUsage, UsageParams},
};

use crate::{Client, ClientError};

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($params:ty) -> $result:ty = $method:literal;)*) => {
        /// Typed methods. Each returns the result that the protocol reference describes, or
        /// [`ClientError::Rpc`].
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// As [`Client::call`].
                pub async fn $name(&self, params: &$params) -> Result<$result, ClientError> {
                    self.call($method, params).await
                }
            )*
        }
    };
}

methods! {
    /// Returns the method table as an OpenRPC document.
    discover(Empty) -> serde_json::Value = "rpc.discover";
    /// Returns version, addresses, roots and paths of the daemon.
    daemon_status(Empty) -> DaemonStatus = "daemon.status";
    /// Returns memory, connection, log and index statistics.
    daemon_stats(Empty) -> DaemonStats = "daemon.stats";
    /// Returns the configuration in force, and the source of each value.
    config_get(ConfigGetParams) -> ConfigAnswer = "config.get";
    /// Reloads the configuration files.
    config_reload(Empty) -> ConfigReloaded = "config.reload";
    /// Creates a code that pairs one device, once.
    pair_begin(PairBeginParams) -> PairOffer = "pair.begin";
    /// Returns the state of the latest code.
    pair_status(Empty) -> PairStatus = "pair.status";
    /// Invalidates the latest code.
    pair_cancel(Empty) -> PairStatus = "pair.cancel";
    /// Lists the paired devices.
    client_list(Empty) -> Page<Device> = "client.list";
    /// Revokes a paired device and closes its connections.
    client_revoke(DeviceRef) -> Empty = "client.revoke";
    /// Returns the daemons that share a broker with this one, their sessions and pools.
    fleet_status(Empty) -> FleetStatus = "fleet.status";
    /// Adds a run to a pool, which one of its daemons takes.
    fleet_run(FleetRunParams) -> FleetRun = "fleet.run";
    /// Lists the runs of a pool.
    fleet_runs(FleetRunsParams) -> Page<FleetRun> = "fleet.runs";
    /// Cancels a waiting or active run of a pool.
    fleet_cancel(FleetRunRef) -> FleetRun = "fleet.cancel";
    /// Calls a method of another daemon, with the caller's rights.
    fleet_call(FleetCallParams) -> serde_json::Value = "fleet.call";
    /// Returns records of a session of any daemon, as the broker has them.
    fleet_records(FleetRecordsParams) -> FleetRecords = "fleet.records";
    /// Stops the daemon gracefully.
    daemon_stop(Empty) -> Empty = "daemon.stop";
    /// Lists the available skills.
    skill_list(Empty) -> Page<SkillInfo> = "skill.list";
    /// Searches entries of the knowledge store.
    memory_search(ProjectMemorySearchParams) -> Page<MemoryEntry> = "memory.search";
    /// Lists entries of the knowledge store by name.
    memory_list(ProjectMemoryListParams) -> Page<MemoryEntry> = "memory.list";
    /// Lists keywords of the knowledge store.
    memory_keywords(ProjectMemoryKeywordsParams) -> Page<MemoryKeyword> = "memory.keywords";
    /// Returns an entry of the knowledge store.
    memory_load(ProjectMemoryRef) -> MemoryText = "memory.load";
    /// Creates or replaces an entry of the knowledge store.
    memory_save(ProjectMemoryWriteParams) -> MemoryChange = "memory.save";
    /// Appends to an entry of the knowledge store, or creates it.
    memory_append(ProjectMemoryWriteParams) -> MemoryChange = "memory.append";
    /// Deletes an entry of the knowledge store.
    memory_delete(ProjectMemoryRef) -> MemoryChange = "memory.delete";
    /// Declares a folder as a root and indexes it.
    index_add_root(AddRootParams) -> IndexReceipt = "index.addRoot";
    /// Removes a root and deletes its index.
    index_remove_root(RootRef) -> IndexReceipt = "index.removeRoot";
    /// Rebuilds the index of a root.
    index_rebuild(RootRef) -> IndexReceipt = "index.rebuild";
    /// Returns the state of each index.
    index_status(IndexStatusParams) -> IndexStatus = "index.status";
    /// Lists the declared roots.
    index_list(Empty) -> Page<RootStatus> = "index.list";
    /// Searches passages by words.
    search_lexical(SearchParams) -> SearchAnswer = "search.lexical";
    /// Searches passages by meaning.
    search_semantic(SearchParams) -> SearchAnswer = "search.semantic";
    /// Searches passages by words and by meaning.
    search_hybrid(SearchParams) -> SearchAnswer = "search.hybrid";
    /// Searches lines for a text or a regular expression.
    search_grep(GrepParams) -> GrepAnswer = "search.grep";
    /// Finds definitions by name, or outlines a file.
    search_symbols(SymbolsParams) -> SymbolsAnswer = "search.symbols";
    /// Finds the uses of a definition, by scope and imports.
    search_references(ReferencesParams) -> ReferencesAnswer = "search.references";
    /// Lists the definitions that call a definition.
    search_callers(CallsParams) -> CallsAnswer = "search.callers";
    /// Lists the definitions that a definition calls.
    search_callees(CallsParams) -> CallsAnswer = "search.callees";
    /// Lists the files that import a file, directly or by others.
    search_impact(ImpactParams) -> ImpactAnswer = "search.impact";
    /// Returns the files and definitions most relevant to the repository, or to the given files and
    /// query.
    search_map(MapParams) -> MapAnswer = "search.map";
    /// Returns a bounded range of lines of a file.
    content_get_span(SpanParams) -> Span = "content.getSpan";
    /// Returns a bounded listing of a folder.
    fs_list_dir(ListDirParams) -> DirListing = "fs.listDir";
    /// Clones a repository into the workspaces folder.
    git_clone(CloneParams) -> CloneReceipt = "git.clone";
    /// Returns branch, head and changed files of a repository.
    git_status(GitStatusParams) -> GitStatus = "git.status";
    /// Starts a turn of an agent in a session.
    run_start(RunStartParams) -> RunReceipt = "orchestrate.run.start";
    /// Returns the state of a session's turns.
    run_status(SessionRef) -> RunStatus = "orchestrate.run.status";
    /// Cancels a turn of a session.
    run_cancel(TurnRef) -> RunStatus = "orchestrate.run.cancel";
    /// Sends text to the model of an active turn.
    run_steer(SteerParams) -> RunStatus = "orchestrate.run.steer";
    /// Creates a session with the history of another.
    session_fork(ForkParams) -> Session = "session.fork";
    /// Archives a session, or restores it.
    session_archive(ArchiveParams) -> Session = "session.archive";
    /// Returns the available confinement of commands.
    sandbox_probe(Empty) -> SandboxProbe = "sandbox.probe";
    /// Clears the conversation of a session.
    session_clear(SessionRef) -> Empty = "session.clear";
    /// Condenses the conversation of a session.
    session_compress(SessionRef) -> Compressed = "session.compress";
    /// Lists the background commands of a session.
    background_list(SessionRef) -> Page<BackgroundCommand> = "background.list";
    /// Returns new output of a background command.
    background_output(BackgroundOutputParams) -> BackgroundOutput = "background.output";
    /// Stops a background command.
    background_stop(BackgroundRef) -> BackgroundCommand = "background.stop";
    /// Lists pending and, on request, answered approvals.
    approval_list(ApprovalListParams) -> Page<Approval> = "approval.list";
    /// Returns one approval, complete.
    approval_get(ApprovalRef) -> Approval = "approval.get";
    /// Answers a pending approval.
    approval_resolve(ApprovalResolveParams) -> Approval = "approval.resolve";
    /// Lists rules that were granted permanently.
    permission_list(Empty) -> Page<GrantedRule> = "permission.list";
    /// Revokes a granted rule.
    permission_revoke(RevokeParams) -> Empty = "permission.revoke";
    /// Replaces a granted rule by a narrower one.
    permission_narrow(NarrowParams) -> Empty = "permission.narrow";
    /// Lists the model providers.
    provider_list(Empty) -> Page<ProviderInfo> = "provider.list";
    /// Returns the model that a session uses.
    provider_current(ProviderCurrentParams) -> ModelChoice = "provider.current";
    /// Changes the model of a session.
    provider_set(ProviderSetParams) -> ProviderSet = "provider.set";
    /// Lists the models of a provider.
    model_list(ModelListParams) -> Page<ModelInfo> = "model.list";
    /// Returns the system text of a session's next turn.
    prompt_show(PromptShowParams) -> PromptShown = "prompt.show";
    /// Replaces the base of a session's system text.
    prompt_set(PromptSetParams) -> PromptShown = "prompt.set";
    /// Appends to the system text of a session.
    prompt_append(PromptAppendParams) -> PromptShown = "prompt.append";
    /// Renders the variable parts of a session's system text again.
    prompt_refresh(SessionRef) -> PromptShown = "prompt.refresh";
    /// Replays a recorded trace.
    trace_replay(ReplayParams) -> ReplayReport = "trace.replay";
    /// Starts an explore run.
    explore_start(ExploreStartParams) -> RunReceipt = "orchestrate.explore.start";
    /// Returns the state of an explore.
    explore_status(SessionRef) -> ExploreStatus = "orchestrate.explore.status";
    /// Aborts a running explore.
    explore_abort(SessionRef) -> ExploreStatus = "orchestrate.explore.abort";
    /// Runs one command in a session.
    command(CommandParams) -> CommandReceipt = "orchestrate.command";
    /// Creates a new session.
    session_create(SessionCreateParams) -> Session = "session.create";
    /// Lists sessions, newest first.
    session_list(PageParams) -> Page<Session> = "session.list";
    /// Returns one session by id.
    session_get(SessionRef) -> Session = "session.get";
    /// Resumes an interrupted session.
    session_resume(SessionRef) -> RunReceipt = "session.resume";
    /// Deletes a session with its log.
    session_delete(SessionRef) -> Empty = "session.delete";
    /// Creates a work tree with a new branch.
    worktree_create(WorktreeCreateParams) -> Worktree = "worktree.create";
    /// Lists the work trees with their changes.
    worktree_list(Empty) -> Page<Worktree> = "worktree.list";
    /// Returns the changes of a work tree.
    worktree_diff(WorktreeRef) -> WorktreeDiff = "worktree.diff";
    /// Applies the changes of a work tree to its repository.
    worktree_apply(WorktreeRef) -> WorktreeDiff = "worktree.apply";
    /// Removes a work tree.
    worktree_remove(WorktreeRemoveParams) -> WorktreeRemoved = "worktree.remove";
    /// Returns the sessions with their work, their cost and their questions.
    session_board(BoardParams) -> Board = "session.board";
    /// Starts a turn that goes on without this client.
    unattended_start(UnattendedStartParams) -> RunReceipt = "unattended.start";
    /// Lists the unattended runs.
    unattended_list(Empty) -> Page<UnattendedRun> = "unattended.list";
    /// Stops an unattended run.
    unattended_stop(SessionRef) -> UnattendedRun = "unattended.stop";
    /// Adds a request that starts at set times.
    schedule_add(ScheduleAddParams) -> Schedule = "schedule.add";
    /// Lists the schedules with their next times and latest runs.
    schedule_list(Empty) -> Page<Schedule> = "schedule.list";
    /// Removes a schedule; its active run continues.
    schedule_remove(ScheduleRef) -> Empty = "schedule.remove";
    /// Starts a run of a schedule now.
    schedule_run(ScheduleRef) -> ScheduleEntry = "schedule.run";
    /// Searches the log of all sessions.
    session_search(HistoryParams) -> HistoryAnswer = "session.search";
    /// Replaces the MCP servers of a session, which end with it.
    session_set_mcp_servers(SetMcpServersParams) -> SessionMcpServers = "session.setMcpServers";
    /// Compares what a folder brings with what was trusted.
    trust_get(TrustGetParams) -> FolderTrust = "trust.get";
    /// Trusts or refuses items of a folder with exactly these contents.
    trust_set(TrustSetParams) -> FolderTrust = "trust.set";
    /// Removes the trust in a folder.
    trust_remove(TrustRemoveParams) -> TrustRemoved = "trust.remove";
    /// Lists the agent plugins of the user.
    plugin_list(Empty) -> Page<PluginInfo> = "plugin.list";
    /// Lists the MCP servers of the configuration.
    mcp_list(Empty) -> Page<McpServerInfo> = "mcp.list";
    /// Starts a login to an MCP server.
    mcp_login(McpServerRef) -> McpLogin = "mcp.login";
    /// Waits until the user has logged in to an MCP server.
    mcp_finish_login(McpFinishLoginParams) -> McpAccount = "mcp.finishLogin";
    /// Deletes the login to an MCP server.
    mcp_logout(McpServerRef) -> McpAccount = "mcp.logout";
    /// Lists the registered tools.
    tool_list(Empty) -> Page<ToolInfo> = "tool.list";
    /// Calls a tool and waits for its result.
    tool_call(ToolCallParams) -> ToolResult = "tool.call";
    /// Lists traces, newest first.
    trace_list(PageParams) -> Page<Session> = "trace.list";
    /// Returns a page of records.
    trace_get(TraceGetParams) -> TracePage = "trace.get";
    /// Returns one part of a trace as JSONL.
    trace_export(TraceExportParams) -> TraceExportPart = "trace.export";
    /// Imports an exported trace.
    trace_import(TraceImportParams) -> Session = "trace.import";
    /// Returns one part of a blob.
    trace_blob(BlobParams) -> BlobPart = "trace.blob";
    /// Returns what the data on disk consists of.
    storage_usage(UsageParams) -> DiskUsage = "storage.usage";
    /// Removes old sessions and frees their space.
    storage_collect(CollectParams) -> Collected = "storage.collect";
    /// Queries the audit of tool calls.
    audit_query(AuditQueryParams) -> Page<AuditEntry> = "audit.query";
}

/// Constructors of common parameters.
impl Client {
    /// Returns the parameters that name `session`.
    pub fn session(session: &SessionId) -> SessionRef {
        SessionRef { session_id: session.clone() }
    }
}
