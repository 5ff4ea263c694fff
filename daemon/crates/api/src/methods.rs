//! The method table: every method once, with its types.

use std::sync::atomic::Ordering;

use cairn_engine::SearchKind;
use cairn_protocol::{
    PROTOCOL_VERSIONS,
    calls::CallsParams,
    content::{ListDirParams, SpanParams},
    daemon::{
        DaemonStats, DaemonStatus, InitializeParams, InitializeResult, ServerCapabilities,
        ServerInfo,
    },
    error::{Failure, Reason},
    explore::{ExploreStartParams, SessionRef},
    git::{CloneParams, GitStatusParams, WorktreeCreateParams, WorktreeRef, WorktreeRemoveParams},
    history::HistoryParams,
    index::{AddRootParams, IndexReceipt, IndexStatusParams, RootRef},
    lines::GrepStreamParams,
    map::MapParams,
    rpc,
    search::{
        GrepParams, ImpactParams, ReferencesParams, SearchAnswer, SearchParams, SymbolsParams,
    },
    session::{CommandParams, Empty, Page, PageParams, SessionCreateParams, SetMcpServersParams},
    tool::{ToolCallParams, ToolInfo},
    trace::{
        AuditEntry, AuditQueryParams, BlobParams, TraceExportParams, TraceGetParams,
        TraceImportParams, TracePage,
    },
    usage::{CollectParams, UsageParams},
};

use crate::{
    connection::Caller,
    host, message,
    method::{Audit, FollowUp, Method, Scope},
    rights::{self, Right},
    subscription,
};

/// The handshake, which must be the first message and cannot be part of a batch.
pub const INITIALIZE: &str = "initialize";

/// Lists every method, in the order of the reference.
pub fn table() -> Vec<Method> {
    let mut all = daemon();
    all.extend(crate::config::methods());
    all.extend(index());
    all.extend(search());
    all.extend(content());
    all.extend(orchestrate());
    all.extend(session());
    all.extend(worktree());
    all.extend(tool());
    all.extend(crate::turns::methods());
    all.extend(crate::unattended::methods());
    all.extend(crate::knowledge::methods());
    all.extend(crate::trust::methods());
    all.extend(crate::mcp::methods());
    all.extend(trace());
    all.extend(crate::viewer::methods());
    all.extend(crate::remote::methods());
    all.extend(crate::fleet::methods());
    all
}

fn daemon() -> Vec<Method> {
    vec![
        Method::new(
            INITIALIZE,
            "Starts a connection; must be the first message, not in a batch.",
            initialize,
        ),
        Method::new("rpc.discover", "This table as an OpenRPC document.", |_, _: Empty| async {
            Ok(crate::discover::openrpc())
        }),
        Method::new("daemon.status", "Version, addresses, roots and data locations.", status),
        Method::new("daemon.stats", "Memory, connections, log and index figures.", stats),
        Method::new("daemon.stop", "Stops the daemon gracefully.", |cx, _: Empty| async move {
            let stop = cx.api().engine.clone();
            cx.after_answer(move || stop.ask_to_stop());
            Ok(Empty {})
        })
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn index() -> Vec<Method> {
    vec![
        Method::new(
            "index.addRoot",
            "Declares a folder as a root and indexes it; `index.progress` follows.",
            |cx, p: AddRootParams| async move { with_progress(&cx, cx.api().engine.add_root(p).await?) },
        )
        .followed_by(FollowUp::IndexProgress)
        .detached(Right::Admin)
        .scope(Scope::Global),
        Method::new(
            "index.removeRoot",
            "Removes a root and deletes its index.",
            |cx, p: RootRef| async move { cx.api().engine.remove_root(p).await },
        )
        .detached(Right::Admin)
        .scope(Scope::Global),
        Method::new(
            "index.rebuild",
            "Rebuilds a root's index; `index.progress` follows.",
            |cx, p: RootRef| async move {
                // Subscribed before the work begins: the final notification is sent when the new
                // index answers.
                let (path, old) = cx.api().engine.index_of(&p.root)?;
                let barrier = cx.connection.subscribe_rebuild(&path, p.request_id.clone(), old);
                let receipt = cx.api().engine.rebuild(p).await;
                cx.after_answer(move || drop(barrier));
                receipt
            },
        )
        .followed_by(FollowUp::IndexProgress)
        .detached(Right::Admin)
        .scope(Scope::Global),
        Method::new("index.status", "The progress of each index.", |cx, p: IndexStatusParams| async move {
            cx.api().engine.index_status(p.root.as_deref())
        }),
        Method::new("index.list", "The declared roots.", |cx, _: Empty| async move {
            Ok(Page { data: cx.api().engine.index_status(None)?.roots, next_cursor: None })
        }),
    ]
}

/// Subscribes the caller to the progress of an index. An up-to-date index is checked once more, so
/// that a final notification always follows.
fn with_progress(cx: &Caller, receipt: IndexReceipt) -> Result<IndexReceipt, Failure> {
    let barrier = cx.connection.subscribe_index(&receipt.path, receipt.request_id.clone());
    let engine = cx.api().engine.clone();
    let root = receipt.root.clone();
    cx.after_answer(move || {
        drop(barrier);
        engine.rescan_root(&root);
    });
    Ok(receipt)
}

fn search() -> Vec<Method> {
    let find = |kind| move |cx: Caller, p: SearchParams| find(cx, kind, p);
    vec![
        Method::new("search.lexical", "Passages by their words (BM25).", find(SearchKind::Lexical)),
        Method::new("search.semantic", "Passages by meaning.", find(SearchKind::Semantic)),
        Method::new("search.hybrid", "Passages by words and meaning.", find(SearchKind::Hybrid)),
        Method::new(
            "search.grep",
            "Lines by text or regular expression.",
            |cx, p: GrepParams| async move {
                let on_partial = p
                    .request_id
                    .is_some()
                    .then(|| Box::new(partial_sender(&cx)) as cairn_engine::OnLines);
                cx.api().engine.grep(p, on_partial).await
            },
        ),
        Method::new(
            "search.grepStream",
            "All lines by text or regular expression, sent by `search.partial` while the search runs.",
            |cx, p: GrepStreamParams| async move {
                let send_lines = Box::new(line_sender(&cx)) as cairn_engine::TakeLines;
                cx.api().engine.grep_stream(p, send_lines).await
            },
        ),
        Method::new(
            "search.symbols",
            "Definitions by name, or the outline of a file.",
            |cx, p: SymbolsParams| async move { cx.api().engine.symbols(p).await },
        ),
        Method::new(
            "search.references",
            "Uses of a definition, by scope and imports, with the certainty of each.",
            |cx, p: ReferencesParams| async move { cx.api().engine.references(p).await },
        ),
        Method::new(
            "search.callers",
            "Definitions that call a definition, with the certainty of each.",
            |cx, p: CallsParams| async move { cx.api().engine.callers(p).await },
        ),
        Method::new(
            "search.callees",
            "Definitions that a definition calls, with the certainty of each.",
            |cx, p: CallsParams| async move { cx.api().engine.callees(p).await },
        ),
        Method::new(
            "search.impact",
            "Files that import a file, directly or by others.",
            |cx, p: ImpactParams| async move { cx.api().engine.impact(p).await },
        ),
        Method::new(
            "search.map",
            "The files and definitions that others, or the files being edited, refer to most.",
            |cx, p: MapParams| async move { cx.api().engine.map(p).await },
        ),
    ]
}

async fn find(cx: Caller, kind: SearchKind, params: SearchParams) -> Result<SearchAnswer, Failure> {
    let on_partial = params
        .request_id
        .is_some()
        .then(|| Box::new(partial_sender(&cx)) as cairn_engine::OnPartial);
    cx.api().engine.search(kind, params, on_partial).await
}

/// Returns a function that sends partial results to the caller.
fn partial_sender<T: serde::Serialize>(cx: &Caller) -> impl Fn(T) + Send + Sync + 'static {
    let connection = cx.connection.clone();
    move |partial| {
        // Partial results may be dropped when the queue is full: the answer contains them all.
        let text = message::notification(rpc::SEARCH_PARTIAL, &partial);
        let _full = connection.inner.out.try_send(crate::Outgoing::One(text));
    }
}

/// Time that a search waits for a client that does not read before it ends.
const MAX_UNREAD: std::time::Duration = std::time::Duration::from_secs(30);

/// Returns a function that sends lines to the caller and waits for space in the queue, because the
/// answer does not repeat them. It must not be called on async threads.
fn line_sender<T: serde::Serialize>(cx: &Caller) -> impl Fn(T) -> bool + Send + Sync + 'static {
    let connection = cx.connection.clone();
    let runtime = tokio::runtime::Handle::current();
    move |lines| {
        let text = crate::Outgoing::One(message::notification(rpc::SEARCH_PARTIAL, &lines));
        runtime.block_on(connection.inner.out.send_timeout(text, MAX_UNREAD)).is_ok()
    }
}

fn content() -> Vec<Method> {
    vec![
        Method::new(
            "content.getSpan",
            "A bounded range of lines of a file.",
            |cx, p: SpanParams| async move { cx.api().engine.get_span(p).await },
        )
        // The call returns text of a file, as the audited `read_span` does.
        .audit(Audit::Required),
        Method::new(
            "fs.listDir",
            "A bounded listing of a folder.",
            |cx, p: ListDirParams| async move { cx.api().engine.list_dir(p).await },
        ),
        Method::new(
            "git.clone",
            "Clones into the workspaces folder; `git.progress` follows.",
            |cx, p: CloneParams| async move {
                let receipt = cx.api().engine.git_clone(p, cx.audit.take()).await?;
                let barrier = cx.connection.subscribe_clone(&receipt.request_id);
                cx.after_answer(move || drop(barrier));
                Ok(receipt)
            },
        )
        .followed_by(FollowUp::CloneProgress)
        .detached(Right::Admin),
        Method::new(
            "git.status",
            "Branch, head and changed files.",
            |cx, p: GitStatusParams| async move { cx.api().engine.git_status(p).await },
        ),
    ]
}

fn orchestrate() -> Vec<Method> {
    vec![
        Method::new(
            "orchestrate.explore.start",
            "Starts an explore of a folder or a repository; events follow in the session.",
            |cx, p: ExploreStartParams| async move {
                let engine = &cx.api().engine;
                let client = cx.client_name();
                match rights::can_declare_roots(cx.rights()) {
                    true => engine.start_explore(p, client).await,
                    false => engine.explore_declared_root(p, client).await,
                }
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "orchestrate.explore.status",
            "The state of an explore.",
            |cx, p: SessionRef| async move { cx.api().engine.explore_status(&p.session_id).await },
        ),
        Method::new(
            "orchestrate.explore.abort",
            "Stops an explore; `stopped` is its last event.",
            |cx, p: SessionRef| async move { cx.api().engine.abort_explore(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
        Method::new(
            "orchestrate.command",
            "Runs one command in a session; its events follow.",
            |cx, p: CommandParams| async move {
                let client = cx.client_name();
                cx.api().engine.command(p, client).await
            },
        )
        .detached(Right::Prompt)
        .audit(Audit::ByGate)
        .scope(Scope::PerSession),
        Method::new(
            "orchestrate.subscribe",
            "Follows a session from any position; `orchestrate.event` follows.",
            subscription::subscribe,
        )
        .followed_by(FollowUp::Events),
        Method::new("orchestrate.unsubscribe", "Stops following.", subscription::unsubscribe),
    ]
}

fn session() -> Vec<Method> {
    vec![
        Method::new(
            "session.create",
            "Creates a session.",
            |cx, p: SessionCreateParams| async move { cx.api().engine.create_session(p).await },
        )
        .detached(Right::Prompt),
        Method::new("session.list", "Sessions, newest first.", |cx, p: PageParams| async move {
            cx.api().engine.sessions(p).await
        }),
        Method::new("session.get", "One session.", |cx, p: SessionRef| async move {
            cx.api().engine.session(&p.session_id).await
        }),
        Method::new(
            "session.resume",
            "Resumes an interrupted session.",
            |cx, p: SessionRef| async move { cx.api().engine.resume_session(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.delete",
            "Deletes a session with its log.",
            |cx, p: SessionRef| async move {
                cx.api().engine.delete_session(&p.session_id).await.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .scope(Scope::PerSession),
        Method::new(
            "session.search",
            "Searches the log: questions, answers, commands, approvals, commits, changed files.",
            |cx, p: HistoryParams| async move { cx.api().engine.search_history(p).await },
        ),
        Method::new("session.export", "A session's log as JSONL, in parts.", export),
        Method::new(
            "session.setMcpServers",
            "Replaces the MCP servers of a session, which end with it.",
            |cx, p: SetMcpServersParams| async move { cx.api().engine.set_mcp_servers(p).await },
        )
        .detached(Right::Admin)
        .scope(Scope::PerSession),
    ]
}

fn worktree() -> Vec<Method> {
    vec![
        Method::new(
            "worktree.create",
            "Creates a work tree of a repository on a new branch, as a root.",
            |cx, p: WorktreeCreateParams| async move { cx.api().engine.create_worktree(p).await },
        )
        .detached(Right::Admin),
        Method::new(
            "worktree.list",
            "The work trees that were created, with their changes.",
            |cx, p: Empty| async move { cx.api().engine.worktrees(p).await },
        ),
        Method::new(
            "worktree.diff",
            "The changes of a work tree since it was created.",
            |cx, p: WorktreeRef| async move { cx.api().engine.worktree_diff(p).await },
        ),
        Method::new(
            "worktree.apply",
            "Applies the changes of a work tree to the files of its repository.",
            |cx, p: WorktreeRef| async move { cx.api().engine.apply_worktree(p).await },
        )
        .detached(Right::Admin),
        Method::new(
            "worktree.remove",
            "Removes a work tree; its branch remains unless it is merged.",
            |cx, p: WorktreeRemoveParams| async move { cx.api().engine.remove_worktree(p).await },
        )
        .detached(Right::Admin),
    ]
}

fn tool() -> Vec<Method> {
    vec![
        Method::new("tool.list", "The registered tools.", |cx, _: Empty| async move {
            Ok(Page::<ToolInfo> { data: cx.api().engine.tools(), next_cursor: None })
        }),
        Method::new(
            "tool.call",
            "Calls a tool and waits for its result.",
            |cx, p: ToolCallParams| async move {
                let client = cx.client_name();
                cx.api().engine.call_tool(p, client).await
            },
        )
        // Shared, because reading tools may run concurrently.
        .detached(Right::Prompt)
        .audit(Audit::ByGate)
        .cancellable(),
    ]
}

fn trace() -> Vec<Method> {
    vec![
        Method::new(
            "trace.list",
            "Traces, newest first; a trace id is a session id.",
            |cx, p: PageParams| async move { cx.api().engine.sessions(p).await },
        ),
        Method::new("trace.get", "A page of records.", |cx, p: TraceGetParams| async move {
            cx.api().engine.session(&p.trace_id).await?;
            let limit = p.limit.unwrap_or(100).clamp(1, cairn_engine::record::PAGE);
            let data = cx.api().engine.trace().records(&p.trace_id, p.after, limit).await?;
            let full = data.len() == limit as usize;
            Ok(TracePage { next_after: data.last().filter(|_| full).map(|r| r.seq), data })
        }),
        Method::new("trace.export", "A trace as JSONL, in parts.", export),
        Method::new(
            "trace.import",
            "Imports an export, at once or in parts.",
            |cx, p: TraceImportParams| async move { Ok(cx.api().engine.trace().import(&p.jsonl).await?) },
        )
        .detached(Right::Admin),
        Method::new(
            "trace.replay",
            "Replays a trace without the network and names the first difference.",
            |cx, p: cairn_protocol::trace::ReplayParams| async move { cx.api().engine.replay(p).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::None),
        Method::new("trace.blob", "A part of a large result.", |cx, p: BlobParams| async move {
            Ok(cx.api().engine.trace().blob(p).await?)
        }),
        Method::new(
            "storage.usage",
            "What the data on disk consists of.",
            |cx, p: UsageParams| async move { cx.api().engine.usage(p).await },
        ),
        Method::new(
            "storage.collect",
            "Removes the sessions beyond the limits of `retention`, packs old ones and frees their space.",
            |cx, p: CollectParams| async move { cx.api().engine.collect(p).await },
        )
        .detached(Right::Admin),
        Method::new("audit.query", "The audit of tool calls.", |cx, p: AuditQueryParams| async move {
            let data: Vec<AuditEntry> = cx.api().engine.trace().audit_query(p).await?;
            Ok(Page { data, next_cursor: None })
        }),
    ]
}

async fn export(
    cx: Caller,
    p: TraceExportParams,
) -> Result<cairn_protocol::trace::TraceExportPart, Failure> {
    Ok(cx.api().engine.trace().export(&p.trace_id, p.cursor.as_deref()).await?)
}

async fn initialize(cx: Caller, params: InitializeParams) -> Result<InitializeResult, Failure> {
    let common =
        PROTOCOL_VERSIONS.iter().find(|v| params.protocol_versions.iter().any(|c| c == *v));
    let Some(version) = common else {
        let text = format!(
            "the client supports protocol {}, this daemon supports {}",
            params.protocol_versions.join(", "),
            PROTOCOL_VERSIONS.join(", ")
        );
        let details =
            serde_json::json!({"client": params.protocol_versions, "server": PROTOCOL_VERSIONS});
        return Err(Failure::new(Reason::IncompatibleVersion, text).with_details(details));
    };
    if params.client.name.is_empty() || params.client.name.chars().count() > 64 {
        return Err(Failure::new(
            Reason::InvalidParams,
            "client.name must have 1 to 64 characters",
        ));
    }
    if cx.connection.inner.client.set(params.client).is_err() {
        return Err(Failure::new(Reason::AlreadyInitialized, "initialize was already sent"));
    }
    let api = cx.api();
    if params.capabilities.approvals && cx.rights().contains(Right::Approve) {
        crate::approver::join(&cx);
    }
    Ok(InitializeResult {
        protocol_version: (*version).to_owned(),
        version: api.host.version.clone(),
        server: ServerInfo {
            name: "cairn".into(),
            version: api.host.version.clone(),
            instance_id: api.host.instance_id.clone(),
        },
        capabilities: ServerCapabilities {
            methods: api
                .table
                .iter()
                .filter(|m| cx.connection.may_call(m))
                .map(|m| m.name.to_owned())
                .collect(),
            notifications: rpc::NOTIFICATIONS.iter().map(|n| (*n).to_owned()).collect(),
        },
        limits: api.limits.clone(),
    })
}

async fn status(cx: Caller, _: Empty) -> Result<DaemonStatus, Failure> {
    let api = cx.api();
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Ok(DaemonStatus {
        version: api.host.version.clone(),
        instance_id: api.host.instance_id.clone(),
        pid: std::process::id(),
        started_at: api.host.started_at,
        addresses: api.host.addresses.clone(),
        data_root: text(&api.host.data_root),
        log_file: api.host.log_file.as_deref().map(text),
        config_dir: api.host.config.as_ref().map(|(folder, _)| text(folder)),
        config_origin: api.host.config.as_ref().map(|(_, origin)| *origin),
        mode: api.host.mode.clone(),
        idle_exit_seconds: api.host.idle_exit_seconds,
        index: api.engine.index_status(None)?,
        running_sessions: api.engine.running(),
    })
}

async fn stats(cx: Caller, _: Empty) -> Result<DaemonStats, Failure> {
    cx.api().stats().await
}

impl crate::Api {
    /// Collects the daemon's statistics.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn stats(&self) -> Result<DaemonStats, Failure> {
        let (resident_bytes, anonymous_bytes) = host::memory();
        let counters = &self.counters;
        Ok(DaemonStats {
            uptime_seconds: counters.started.elapsed().as_secs(),
            resident_bytes,
            anonymous_bytes,
            connections: counters.connections.load(Ordering::Relaxed),
            subscriptions: counters.subscriptions.load(Ordering::Relaxed),
            calls: counters.calls.load(Ordering::Relaxed),
            call_errors: counters.errors.load(Ordering::Relaxed),
            ..self.engine.stats().await?
        })
    }
}
