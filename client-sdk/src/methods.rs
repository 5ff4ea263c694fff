//! Every method of the daemon, typed.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalResolveParams},
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    content::{DirListing, ListDirParams, Span, SpanParams},
    daemon::{DaemonStats, DaemonStatus},
    explore::{ExploreStartParams, ExploreStatus, RunReceipt, SessionRef},
    git::{CloneParams, CloneReceipt, GitStatus, GitStatusParams},
    id::SessionId,
    index::{AddRootParams, IndexReceipt, IndexStatus, IndexStatusParams, RootRef, RootStatus},
    map::{MapAnswer, MapParams},
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryRef,
        MemorySearchParams, MemoryText, MemoryWriteParams,
    },
    model::ModelInfo,
    prompt::{PromptAppendParams, PromptSetParams, PromptShown},
    remote::{Device, DeviceRef, PairBeginParams, PairOffer, PairStatus},
    sandbox::SandboxProbe,
    search::{GrepAnswer, GrepParams, SearchAnswer, SearchParams, SymbolsAnswer, SymbolsParams},
    session::{
        ArchiveParams, CommandParams, CommandReceipt, Empty, ForkParams, Page, PageParams, Session,
        SessionCreateParams,
    },
    skill::SkillInfo,
    tool::{GrantedRule, RevokeParams, ToolCallParams, ToolInfo, ToolResult},
    trace::{
        AuditEntry, AuditQueryParams, BlobParams, BlobPart, ReplayParams, ReplayReport, TraceExportParams,
        TraceExportPart, TraceGetParams, TraceImportParams, TracePage,
    },
    turn::{
        Compressed, ModelChoice, ModelListParams, ProviderCurrentParams, ProviderInfo, ProviderSet,
        ProviderSetParams, RunStartParams, RunStatus, SteerParams, TurnRef,
    },
};

use crate::{Client, ClientError};

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($params:ty) -> $result:ty = $method:literal;)*) => {
        /// The methods. Each answers what the protocol reference says, or [`ClientError::Rpc`].
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
    /// The method table as an OpenRPC document.
    discover(Empty) -> serde_json::Value = "rpc.discover";
    /// Version, addresses, roots and where things lie.
    daemon_status(Empty) -> DaemonStatus = "daemon.status";
    /// Memory, connections, log and index figures.
    daemon_stats(Empty) -> DaemonStats = "daemon.stats";
    /// The configuration in force, and where each value comes from.
    config_get(ConfigGetParams) -> ConfigAnswer = "config.get";
    /// Reads the configuration files again.
    config_reload(Empty) -> ConfigReloaded = "config.reload";
    /// Makes a code that lets one device in, once.
    pair_begin(PairBeginParams) -> PairOffer = "pair.begin";
    /// How the latest code stands.
    pair_status(Empty) -> PairStatus = "pair.status";
    /// Makes the latest code void.
    pair_cancel(Empty) -> PairStatus = "pair.cancel";
    /// The paired devices.
    client_list(Empty) -> Page<Device> = "client.list";
    /// Forgets a paired device; its connections are cut.
    client_revoke(DeviceRef) -> Empty = "client.revoke";
    /// Stops the daemon politely.
    daemon_stop(Empty) -> Empty = "daemon.stop";
    /// The skills there are.
    skill_list(Empty) -> Page<SkillInfo> = "skill.list";
    /// Entries of the knowledge store that fit a query.
    memory_search(MemorySearchParams) -> Page<MemoryEntry> = "memory.search";
    /// Entries of the knowledge store, by name.
    memory_list(MemoryListParams) -> Page<MemoryEntry> = "memory.list";
    /// Keywords of the knowledge store.
    memory_keywords(MemoryKeywordsParams) -> Page<MemoryKeyword> = "memory.keywords";
    /// An entry of the knowledge store.
    memory_load(MemoryRef) -> MemoryText = "memory.load";
    /// Makes an entry, or replaces it.
    memory_save(MemoryWriteParams) -> MemoryChange = "memory.save";
    /// Adds to an entry, or makes it.
    memory_append(MemoryWriteParams) -> MemoryChange = "memory.append";
    /// Deletes an entry.
    memory_delete(MemoryRef) -> MemoryChange = "memory.delete";
    /// Declares a folder as a root and indexes it.
    index_add_root(AddRootParams) -> IndexReceipt = "index.addRoot";
    /// Forgets a root and deletes its index.
    index_remove_root(RootRef) -> IndexReceipt = "index.removeRoot";
    /// Makes a root's index anew.
    index_rebuild(RootRef) -> IndexReceipt = "index.rebuild";
    /// How far each index is.
    index_status(IndexStatusParams) -> IndexStatus = "index.status";
    /// The declared roots.
    index_list(Empty) -> Page<RootStatus> = "index.list";
    /// Passages by their words.
    search_lexical(SearchParams) -> SearchAnswer = "search.lexical";
    /// Passages by meaning.
    search_semantic(SearchParams) -> SearchAnswer = "search.semantic";
    /// Passages by words and meaning.
    search_hybrid(SearchParams) -> SearchAnswer = "search.hybrid";
    /// Lines by text or regular expression.
    search_grep(GrepParams) -> GrepAnswer = "search.grep";
    /// Definitions by name, or the outline of a file.
    search_symbols(SymbolsParams) -> SymbolsAnswer = "search.symbols";
    /// The files and definitions that the rest, or what is worked on, refers to most.
    search_map(MapParams) -> MapAnswer = "search.map";
    /// A bounded range of lines of a file.
    content_get_span(SpanParams) -> Span = "content.getSpan";
    /// A bounded listing of a folder.
    fs_list_dir(ListDirParams) -> DirListing = "fs.listDir";
    /// Clones into the workspaces folder.
    git_clone(CloneParams) -> CloneReceipt = "git.clone";
    /// Branch, head and changed files.
    git_status(GitStatusParams) -> GitStatus = "git.status";
    /// Takes a turn of an agent in a session.
    run_start(RunStartParams) -> RunReceipt = "orchestrate.run.start";
    /// Where a session's turns stand.
    run_status(SessionRef) -> RunStatus = "orchestrate.run.status";
    /// Stops a turn.
    run_cancel(TurnRef) -> RunStatus = "orchestrate.run.cancel";
    /// Tells a turn at work something.
    run_steer(SteerParams) -> RunStatus = "orchestrate.run.steer";
    /// Makes a session with the past of another.
    session_fork(ForkParams) -> Session = "session.fork";
    /// Puts a session away, or takes it out again.
    session_archive(ArchiveParams) -> Session = "session.archive";
    /// How commands are confined.
    sandbox_probe(Empty) -> SandboxProbe = "sandbox.probe";
    /// Empties a session's conversation.
    session_clear(SessionRef) -> Empty = "session.clear";
    /// Condenses a session's conversation.
    session_compress(SessionRef) -> Compressed = "session.compress";
    /// Calls that wait for leave.
    approval_list(ApprovalListParams) -> Page<Approval> = "approval.list";
    /// Answers one.
    approval_resolve(ApprovalResolveParams) -> Approval = "approval.resolve";
    /// Rules that were granted for good.
    permission_list(Empty) -> Page<GrantedRule> = "permission.list";
    /// Takes a granted rule back.
    permission_revoke(RevokeParams) -> Empty = "permission.revoke";
    /// The model providers there are.
    provider_list(Empty) -> Page<ProviderInfo> = "provider.list";
    /// Which model a session talks to.
    provider_current(ProviderCurrentParams) -> ModelChoice = "provider.current";
    /// Changes the model of a session.
    provider_set(ProviderSetParams) -> ProviderSet = "provider.set";
    /// The models of a provider.
    model_list(ModelListParams) -> Page<ModelInfo> = "model.list";
    /// The system text of a session's next turn.
    prompt_show(SessionRef) -> PromptShown = "prompt.show";
    /// Replaces the base of a session's system text.
    prompt_set(PromptSetParams) -> PromptShown = "prompt.set";
    /// Adds to a session's system text.
    prompt_append(PromptAppendParams) -> PromptShown = "prompt.append";
    /// Makes what changes in a session's system text anew.
    prompt_refresh(SessionRef) -> PromptShown = "prompt.refresh";
    /// Replays a trace.
    trace_replay(ReplayParams) -> ReplayReport = "trace.replay";
    /// Starts to explore.
    explore_start(ExploreStartParams) -> RunReceipt = "orchestrate.explore.start";
    /// Where an explore stands.
    explore_status(SessionRef) -> ExploreStatus = "orchestrate.explore.status";
    /// Ends an explore.
    explore_abort(SessionRef) -> ExploreStatus = "orchestrate.explore.abort";
    /// Runs one command in a session.
    command(CommandParams) -> CommandReceipt = "orchestrate.command";
    /// Makes a session.
    session_create(SessionCreateParams) -> Session = "session.create";
    /// Sessions, newest first.
    session_list(PageParams) -> Page<Session> = "session.list";
    /// One session.
    session_get(SessionRef) -> Session = "session.get";
    /// Goes on with an interrupted session.
    session_resume(SessionRef) -> RunReceipt = "session.resume";
    /// Deletes a session with its log.
    session_delete(SessionRef) -> Empty = "session.delete";
    /// The registered tools.
    tool_list(Empty) -> Page<ToolInfo> = "tool.list";
    /// Calls a tool and waits for its result.
    tool_call(ToolCallParams) -> ToolResult = "tool.call";
    /// Traces, newest first.
    trace_list(PageParams) -> Page<Session> = "trace.list";
    /// A page of records.
    trace_get(TraceGetParams) -> TracePage = "trace.get";
    /// A part of a trace as JSONL.
    trace_export(TraceExportParams) -> TraceExportPart = "trace.export";
    /// Brings in an export.
    trace_import(TraceImportParams) -> Session = "trace.import";
    /// A part of a large result.
    trace_blob(BlobParams) -> BlobPart = "trace.blob";
    /// The audit of tool calls.
    audit_query(AuditQueryParams) -> Page<AuditEntry> = "audit.query";
}

/// Names a session.
impl Client {
    /// The parameters that name `session`.
    pub fn session(session: &SessionId) -> SessionRef {
        SessionRef { session_id: session.clone() }
    }
}
