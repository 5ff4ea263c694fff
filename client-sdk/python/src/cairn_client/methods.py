"""Every method of the daemon, typed."""
# Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.

from __future__ import annotations

from typing import Any, Mapping, Unpack

from . import types as t


class Methods:
    """Each returns the result documented in the protocol reference, or raises `RpcError`."""

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Calls a method by its name on the wire."""
        raise NotImplementedError

    async def discover(self, **params: Unpack[t.Empty]) -> Any:
        """`rpc.discover`: This table as an OpenRPC document."""
        answer: Any = await self.call("rpc.discover", params)
        return answer

    async def daemon_status(self, **params: Unpack[t.Empty]) -> t.DaemonStatus:
        """`daemon.status`: Version, addresses, roots and data locations."""
        answer: t.DaemonStatus = await self.call("daemon.status", params)
        return answer

    async def daemon_stats(self, **params: Unpack[t.Empty]) -> t.DaemonStats:
        """`daemon.stats`: Memory, connections, log and index figures."""
        answer: t.DaemonStats = await self.call("daemon.stats", params)
        return answer

    async def daemon_stop(self, **params: Unpack[t.Empty]) -> t.Empty:
        """`daemon.stop`: Stops the daemon gracefully."""
        answer: t.Empty = await self.call("daemon.stop", params)
        return answer

    async def config_get(self, **params: Unpack[t.ConfigGetParams]) -> t.ConfigAnswer:
        """`config.get`: The effective configuration and the source of each value."""
        answer: t.ConfigAnswer = await self.call("config.get", params)
        return answer

    async def config_reload(self, **params: Unpack[t.Empty]) -> t.ConfigReloaded:
        """`config.reload`: Reloads the configuration files."""
        answer: t.ConfigReloaded = await self.call("config.reload", params)
        return answer

    async def index_add_root(self, **params: Unpack[t.AddRootParams]) -> t.IndexReceipt:
        """`index.addRoot`: Declares a folder as a root and indexes it; `index.progress` follows."""
        answer: t.IndexReceipt = await self.call("index.addRoot", params)
        return answer

    async def index_remove_root(self, **params: Unpack[t.RootRef]) -> t.IndexReceipt:
        """`index.removeRoot`: Removes a root and deletes its index."""
        answer: t.IndexReceipt = await self.call("index.removeRoot", params)
        return answer

    async def index_rebuild(self, **params: Unpack[t.RootRef]) -> t.IndexReceipt:
        """`index.rebuild`: Rebuilds a root's index; `index.progress` follows."""
        answer: t.IndexReceipt = await self.call("index.rebuild", params)
        return answer

    async def index_status(self, **params: Unpack[t.IndexStatusParams]) -> t.IndexStatus:
        """`index.status`: The progress of each index."""
        answer: t.IndexStatus = await self.call("index.status", params)
        return answer

    async def index_list(self, **params: Unpack[t.Empty]) -> t.PageOfRootStatus:
        """`index.list`: The declared roots."""
        answer: t.PageOfRootStatus = await self.call("index.list", params)
        return answer

    async def search_lexical(self, **params: Unpack[t.SearchParams]) -> t.SearchAnswer:
        """`search.lexical`: Passages by their words (BM25)."""
        answer: t.SearchAnswer = await self.call("search.lexical", params)
        return answer

    async def search_semantic(self, **params: Unpack[t.SearchParams]) -> t.SearchAnswer:
        """`search.semantic`: Passages by meaning."""
        answer: t.SearchAnswer = await self.call("search.semantic", params)
        return answer

    async def search_hybrid(self, **params: Unpack[t.SearchParams]) -> t.SearchAnswer:
        """`search.hybrid`: Passages by words and meaning."""
        answer: t.SearchAnswer = await self.call("search.hybrid", params)
        return answer

    async def search_grep(self, **params: Unpack[t.GrepParams]) -> t.GrepAnswer:
        """`search.grep`: Lines by text or regular expression."""
        answer: t.GrepAnswer = await self.call("search.grep", params)
        return answer

    async def search_grep_stream(self, **params: Unpack[t.GrepStreamParams]) -> t.GrepStreamEnd:
        """`search.grepStream`: All lines by text or regular expression, sent by `search.partial` while the search runs."""
        answer: t.GrepStreamEnd = await self.call("search.grepStream", params)
        return answer

    async def search_symbols(self, **params: Unpack[t.SymbolsParams]) -> t.SymbolsAnswer:
        """`search.symbols`: Definitions by name, or the outline of a file."""
        answer: t.SymbolsAnswer = await self.call("search.symbols", params)
        return answer

    async def search_references(self, **params: Unpack[t.ReferencesParams]) -> t.ReferencesAnswer:
        """`search.references`: Uses of a definition, by scope and imports, with the certainty of each."""
        answer: t.ReferencesAnswer = await self.call("search.references", params)
        return answer

    async def search_callers(self, **params: Unpack[t.CallsParams]) -> t.CallsAnswer:
        """`search.callers`: Definitions that call a definition, with the certainty of each."""
        answer: t.CallsAnswer = await self.call("search.callers", params)
        return answer

    async def search_callees(self, **params: Unpack[t.CallsParams]) -> t.CallsAnswer:
        """`search.callees`: Definitions that a definition calls, with the certainty of each."""
        answer: t.CallsAnswer = await self.call("search.callees", params)
        return answer

    async def search_impact(self, **params: Unpack[t.ImpactParams]) -> t.ImpactAnswer:
        """`search.impact`: Files that import a file, directly or by others."""
        answer: t.ImpactAnswer = await self.call("search.impact", params)
        return answer

    async def search_map(self, **params: Unpack[t.MapParams]) -> t.MapAnswer:
        """`search.map`: The files and definitions that others, or the files being edited, refer to most."""
        answer: t.MapAnswer = await self.call("search.map", params)
        return answer

    async def content_get_span(self, **params: Unpack[t.SpanParams]) -> t.Span:
        """`content.getSpan`: A bounded range of lines of a file."""
        answer: t.Span = await self.call("content.getSpan", params)
        return answer

    async def fs_list_dir(self, **params: Unpack[t.ListDirParams]) -> t.DirListing:
        """`fs.listDir`: A bounded listing of a folder."""
        answer: t.DirListing = await self.call("fs.listDir", params)
        return answer

    async def git_clone(self, **params: Unpack[t.CloneParams]) -> t.CloneReceipt:
        """`git.clone`: Clones into the workspaces folder; `git.progress` follows."""
        answer: t.CloneReceipt = await self.call("git.clone", params)
        return answer

    async def git_status(self, **params: Unpack[t.GitStatusParams]) -> t.GitStatus:
        """`git.status`: Branch, head and changed files."""
        answer: t.GitStatus = await self.call("git.status", params)
        return answer

    async def explore_start(self, **params: Unpack[t.ExploreStartParams]) -> t.RunReceipt:
        """`orchestrate.explore.start`: Starts an explore of a folder or a repository; events follow in the session."""
        answer: t.RunReceipt = await self.call("orchestrate.explore.start", params)
        return answer

    async def explore_status(self, **params: Unpack[t.SessionRef]) -> t.ExploreStatus:
        """`orchestrate.explore.status`: The state of an explore."""
        answer: t.ExploreStatus = await self.call("orchestrate.explore.status", params)
        return answer

    async def explore_abort(self, **params: Unpack[t.SessionRef]) -> t.ExploreStatus:
        """`orchestrate.explore.abort`: Stops an explore; `stopped` is its last event."""
        answer: t.ExploreStatus = await self.call("orchestrate.explore.abort", params)
        return answer

    async def command(self, **params: Unpack[t.CommandParams]) -> t.CommandReceipt:
        """`orchestrate.command`: Runs one command in a session; its events follow."""
        answer: t.CommandReceipt = await self.call("orchestrate.command", params)
        return answer

    async def session_create(self, **params: Unpack[t.SessionCreateParams]) -> t.Session:
        """`session.create`: Creates a session."""
        answer: t.Session = await self.call("session.create", params)
        return answer

    async def session_list(self, **params: Unpack[t.PageParams]) -> t.PageOfSession:
        """`session.list`: Sessions, newest first."""
        answer: t.PageOfSession = await self.call("session.list", params)
        return answer

    async def session_get(self, **params: Unpack[t.SessionRef]) -> t.Session:
        """`session.get`: One session."""
        answer: t.Session = await self.call("session.get", params)
        return answer

    async def session_resume(self, **params: Unpack[t.SessionRef]) -> t.RunReceipt:
        """`session.resume`: Resumes an interrupted session."""
        answer: t.RunReceipt = await self.call("session.resume", params)
        return answer

    async def session_delete(self, **params: Unpack[t.SessionRef]) -> t.Empty:
        """`session.delete`: Deletes a session with its log."""
        answer: t.Empty = await self.call("session.delete", params)
        return answer

    async def session_search(self, **params: Unpack[t.HistoryParams]) -> t.HistoryAnswer:
        """`session.search`: Searches the log: questions, answers, commands, approvals, commits, changed files."""
        answer: t.HistoryAnswer = await self.call("session.search", params)
        return answer

    async def session_export(self, **params: Unpack[t.TraceExportParams]) -> t.TraceExportPart:
        """`session.export`: A session's log as JSONL, in parts."""
        answer: t.TraceExportPart = await self.call("session.export", params)
        return answer

    async def session_set_mcp_servers(self, **params: Unpack[t.SetMcpServersParams]) -> t.SessionMcpServers:
        """`session.setMcpServers`: Replaces the MCP servers of a session, which end with it."""
        answer: t.SessionMcpServers = await self.call("session.setMcpServers", params)
        return answer

    async def worktree_create(self, **params: Unpack[t.WorktreeCreateParams]) -> t.Worktree:
        """`worktree.create`: Creates a work tree of a repository on a new branch, as a root."""
        answer: t.Worktree = await self.call("worktree.create", params)
        return answer

    async def worktree_list(self, **params: Unpack[t.Empty]) -> t.PageOfWorktree:
        """`worktree.list`: The work trees that were created, with their changes."""
        answer: t.PageOfWorktree = await self.call("worktree.list", params)
        return answer

    async def worktree_diff(self, **params: Unpack[t.WorktreeRef]) -> t.WorktreeDiff:
        """`worktree.diff`: The changes of a work tree since it was created."""
        answer: t.WorktreeDiff = await self.call("worktree.diff", params)
        return answer

    async def worktree_apply(self, **params: Unpack[t.WorktreeRef]) -> t.WorktreeDiff:
        """`worktree.apply`: Applies the changes of a work tree to the files of its repository."""
        answer: t.WorktreeDiff = await self.call("worktree.apply", params)
        return answer

    async def worktree_remove(self, **params: Unpack[t.WorktreeRemoveParams]) -> t.WorktreeRemoved:
        """`worktree.remove`: Removes a work tree; its branch remains unless it is merged."""
        answer: t.WorktreeRemoved = await self.call("worktree.remove", params)
        return answer

    async def tool_list(self, **params: Unpack[t.Empty]) -> t.PageOfToolInfo:
        """`tool.list`: The registered tools."""
        answer: t.PageOfToolInfo = await self.call("tool.list", params)
        return answer

    async def tool_call(self, **params: Unpack[t.ToolCallParams]) -> t.ToolResult:
        """`tool.call`: Calls a tool and waits for its result."""
        answer: t.ToolResult = await self.call("tool.call", params)
        return answer

    async def run_start(self, **params: Unpack[t.RunStartParams]) -> t.RunReceipt:
        """`orchestrate.run.start`: Starts a turn of an agent in a session; `run_completed` is its last event."""
        answer: t.RunReceipt = await self.call("orchestrate.run.start", params)
        return answer

    async def run_status(self, **params: Unpack[t.SessionRef]) -> t.RunStatus:
        """`orchestrate.run.status`: The state of a session's turns."""
        answer: t.RunStatus = await self.call("orchestrate.run.status", params)
        return answer

    async def run_cancel(self, **params: Unpack[t.TurnRef]) -> t.RunStatus:
        """`orchestrate.run.cancel`: Cancels a running or queued turn."""
        answer: t.RunStatus = await self.call("orchestrate.run.cancel", params)
        return answer

    async def run_steer(self, **params: Unpack[t.SteerParams]) -> t.RunStatus:
        """`orchestrate.run.steer`: Adds a message to a running turn, which its model receives next."""
        answer: t.RunStatus = await self.call("orchestrate.run.steer", params)
        return answer

    async def session_fork(self, **params: Unpack[t.ForkParams]) -> t.Session:
        """`session.fork`: Creates a session from the history of another, up to a turn."""
        answer: t.Session = await self.call("session.fork", params)
        return answer

    async def session_archive(self, **params: Unpack[t.ArchiveParams]) -> t.Session:
        """`session.archive`: Archives a session, or restores it."""
        answer: t.Session = await self.call("session.archive", params)
        return answer

    async def session_clear(self, **params: Unpack[t.SessionRef]) -> t.Empty:
        """`session.clear`: Clears a session's conversation; its log is retained."""
        answer: t.Empty = await self.call("session.clear", params)
        return answer

    async def session_compress(self, **params: Unpack[t.SessionRef]) -> t.Compressed:
        """`session.compress`: Replaces a session's conversation with a summary."""
        answer: t.Compressed = await self.call("session.compress", params)
        return answer

    async def background_list(self, **params: Unpack[t.SessionRef]) -> t.PageOfBackgroundCommand:
        """`background.list`: Background commands of a session, oldest first."""
        answer: t.PageOfBackgroundCommand = await self.call("background.list", params)
        return answer

    async def background_output(self, **params: Unpack[t.BackgroundOutputParams]) -> t.BackgroundOutput:
        """`background.output`: New output of a background command."""
        answer: t.BackgroundOutput = await self.call("background.output", params)
        return answer

    async def background_stop(self, **params: Unpack[t.BackgroundRef]) -> t.BackgroundCommand:
        """`background.stop`: Stops a background command, and waits until it has ended."""
        answer: t.BackgroundCommand = await self.call("background.stop", params)
        return answer

    async def approval_list(self, **params: Unpack[t.ApprovalListParams]) -> t.PageOfApproval:
        """`approval.list`: Pending approvals, newest first."""
        answer: t.PageOfApproval = await self.call("approval.list", params)
        return answer

    async def approval_get(self, **params: Unpack[t.ApprovalRef]) -> t.Approval:
        """`approval.get`: One approval, complete."""
        answer: t.Approval = await self.call("approval.get", params)
        return answer

    async def approval_resolve(self, **params: Unpack[t.ApprovalResolveParams]) -> t.Approval:
        """`approval.resolve`: Answers an approval; the first answer counts."""
        answer: t.Approval = await self.call("approval.resolve", params)
        return answer

    async def sandbox_probe(self, **params: Unpack[t.Empty]) -> t.SandboxProbe:
        """`sandbox.probe`: The sandbox for commands on this machine, and what it does not prevent."""
        answer: t.SandboxProbe = await self.call("sandbox.probe", params)
        return answer

    async def permission_list(self, **params: Unpack[t.Empty]) -> t.PageOfGrantedRule:
        """`permission.list`: Permanently granted rules."""
        answer: t.PageOfGrantedRule = await self.call("permission.list", params)
        return answer

    async def permission_revoke(self, **params: Unpack[t.RevokeParams]) -> t.Empty:
        """`permission.revoke`: Revokes a granted rule."""
        answer: t.Empty = await self.call("permission.revoke", params)
        return answer

    async def permission_narrow(self, **params: Unpack[t.NarrowParams]) -> t.Empty:
        """`permission.narrow`: Replaces a granted rule by one that covers less."""
        answer: t.Empty = await self.call("permission.narrow", params)
        return answer

    async def provider_list(self, **params: Unpack[t.Empty]) -> t.PageOfProviderInfo:
        """`provider.list`: The available model providers."""
        answer: t.PageOfProviderInfo = await self.call("provider.list", params)
        return answer

    async def provider_current(self, **params: Unpack[t.ProviderCurrentParams]) -> t.ModelChoice:
        """`provider.current`: The model of a session."""
        answer: t.ModelChoice = await self.call("provider.current", params)
        return answer

    async def provider_set(self, **params: Unpack[t.ProviderSetParams]) -> t.ProviderSet:
        """`provider.set`: Changes the model of a session from its next turn on."""
        answer: t.ProviderSet = await self.call("provider.set", params)
        return answer

    async def model_list(self, **params: Unpack[t.ModelListParams]) -> t.PageOfModelInfo:
        """`model.list`: The models of a provider."""
        answer: t.PageOfModelInfo = await self.call("model.list", params)
        return answer

    async def prompt_show(self, **params: Unpack[t.PromptShowParams]) -> t.PromptShown:
        """`prompt.show`: The system text of a session's next turn."""
        answer: t.PromptShown = await self.call("prompt.show", params)
        return answer

    async def prompt_set(self, **params: Unpack[t.PromptSetParams]) -> t.PromptShown:
        """`prompt.set`: Replaces the base of a session's system text; its conversation is cleared."""
        answer: t.PromptShown = await self.call("prompt.set", params)
        return answer

    async def prompt_append(self, **params: Unpack[t.PromptAppendParams]) -> t.PromptShown:
        """`prompt.append`: Adds to a session's system text."""
        answer: t.PromptShown = await self.call("prompt.append", params)
        return answer

    async def prompt_refresh(self, **params: Unpack[t.SessionRef]) -> t.PromptShown:
        """`prompt.refresh`: Refreshes the time, the project and the map in a session's system text."""
        answer: t.PromptShown = await self.call("prompt.refresh", params)
        return answer

    async def session_board(self, **params: Unpack[t.BoardParams]) -> t.Board:
        """`session.board`: The sessions with what they work on, what they cost, and who waits for an answer."""
        answer: t.Board = await self.call("session.board", params)
        return answer

    async def unattended_start(self, **params: Unpack[t.UnattendedStartParams]) -> t.RunReceipt:
        """`unattended.start`: Starts a turn that goes on without the client, and further ones until a check succeeds."""
        answer: t.RunReceipt = await self.call("unattended.start", params)
        return answer

    async def unattended_list(self, **params: Unpack[t.Empty]) -> t.PageOfUnattendedRun:
        """`unattended.list`: The unattended runs, newest first."""
        answer: t.PageOfUnattendedRun = await self.call("unattended.list", params)
        return answer

    async def unattended_stop(self, **params: Unpack[t.SessionRef]) -> t.UnattendedRun:
        """`unattended.stop`: Stops an unattended run: cancels its turn, and starts no other."""
        answer: t.UnattendedRun = await self.call("unattended.stop", params)
        return answer

    async def schedule_add(self, **params: Unpack[t.ScheduleAddParams]) -> t.Schedule:
        """`schedule.add`: Adds a schedule: a request that starts at set times."""
        answer: t.Schedule = await self.call("schedule.add", params)
        return answer

    async def schedule_list(self, **params: Unpack[t.Empty]) -> t.PageOfSchedule:
        """`schedule.list`: The schedules with their next times, latest runs and missed times."""
        answer: t.PageOfSchedule = await self.call("schedule.list", params)
        return answer

    async def schedule_remove(self, **params: Unpack[t.ScheduleRef]) -> t.Empty:
        """`schedule.remove`: Removes a schedule; its active run continues."""
        answer: t.Empty = await self.call("schedule.remove", params)
        return answer

    async def schedule_run(self, **params: Unpack[t.ScheduleRef]) -> t.ScheduleEntry:
        """`schedule.run`: Starts a run of a schedule now."""
        answer: t.ScheduleEntry = await self.call("schedule.run", params)
        return answer

    async def memory_search(self, **params: Unpack[t.ProjectMemorySearchParams]) -> t.PageOfMemoryEntry:
        """`memory.search`: Searches the knowledge store."""
        answer: t.PageOfMemoryEntry = await self.call("memory.search", params)
        return answer

    async def memory_list(self, **params: Unpack[t.ProjectMemoryListParams]) -> t.PageOfMemoryEntry:
        """`memory.list`: Entries of the knowledge store, by name."""
        answer: t.PageOfMemoryEntry = await self.call("memory.list", params)
        return answer

    async def memory_keywords(self, **params: Unpack[t.ProjectMemoryKeywordsParams]) -> t.PageOfMemoryKeyword:
        """`memory.keywords`: Keywords of the knowledge store, most used first."""
        answer: t.PageOfMemoryKeyword = await self.call("memory.keywords", params)
        return answer

    async def memory_load(self, **params: Unpack[t.ProjectMemoryRef]) -> t.MemoryText:
        """`memory.load`: An entry of the knowledge store."""
        answer: t.MemoryText = await self.call("memory.load", params)
        return answer

    async def memory_save(self, **params: Unpack[t.ProjectMemoryWriteParams]) -> t.MemoryChange:
        """`memory.save`: Creates or replaces an entry."""
        answer: t.MemoryChange = await self.call("memory.save", params)
        return answer

    async def memory_append(self, **params: Unpack[t.ProjectMemoryWriteParams]) -> t.MemoryChange:
        """`memory.append`: Appends to an entry, or creates it."""
        answer: t.MemoryChange = await self.call("memory.append", params)
        return answer

    async def memory_delete(self, **params: Unpack[t.ProjectMemoryRef]) -> t.MemoryChange:
        """`memory.delete`: Deletes an entry."""
        answer: t.MemoryChange = await self.call("memory.delete", params)
        return answer

    async def skill_list(self, **params: Unpack[t.Empty]) -> t.PageOfSkillInfo:
        """`skill.list`: All skills, and whether they are offered to agents."""
        answer: t.PageOfSkillInfo = await self.call("skill.list", params)
        return answer

    async def plugin_list(self, **params: Unpack[t.Empty]) -> t.PageOfPluginInfo:
        """`plugin.list`: The agent plugins of the user, and what each brings."""
        answer: t.PageOfPluginInfo = await self.call("plugin.list", params)
        return answer

    async def trust_get(self, **params: Unpack[t.TrustGetParams]) -> t.FolderTrust:
        """`trust.get`: What a folder brings that runs or instructs agents, compared with what was trusted."""
        answer: t.FolderTrust = await self.call("trust.get", params)
        return answer

    async def trust_set(self, **params: Unpack[t.TrustSetParams]) -> t.FolderTrust:
        """`trust.set`: Trusts or refuses items of a folder with exactly these contents."""
        answer: t.FolderTrust = await self.call("trust.set", params)
        return answer

    async def trust_remove(self, **params: Unpack[t.TrustRemoveParams]) -> t.TrustRemoved:
        """`trust.remove`: Removes the trust in a folder: nothing that it brings is used then."""
        answer: t.TrustRemoved = await self.call("trust.remove", params)
        return answer

    async def mcp_list(self, **params: Unpack[t.Empty]) -> t.PageOfMcpServerInfo:
        """`mcp.list`: The MCP servers of the configuration, with their state and logins."""
        answer: t.PageOfMcpServerInfo = await self.call("mcp.list", params)
        return answer

    async def mcp_login(self, **params: Unpack[t.McpServerRef]) -> t.McpLogin:
        """`mcp.login`: Starts a login to an MCP server; the user opens the address that is returned."""
        answer: t.McpLogin = await self.call("mcp.login", params)
        return answer

    async def mcp_finish_login(self, **params: Unpack[t.McpFinishLoginParams]) -> t.McpAccount:
        """`mcp.finishLogin`: Waits until the user has logged in, and stores the login."""
        answer: t.McpAccount = await self.call("mcp.finishLogin", params)
        return answer

    async def mcp_logout(self, **params: Unpack[t.McpServerRef]) -> t.McpAccount:
        """`mcp.logout`: Deletes the login to an MCP server."""
        answer: t.McpAccount = await self.call("mcp.logout", params)
        return answer

    async def trace_list(self, **params: Unpack[t.PageParams]) -> t.PageOfSession:
        """`trace.list`: Traces, newest first; a trace id is a session id."""
        answer: t.PageOfSession = await self.call("trace.list", params)
        return answer

    async def trace_get(self, **params: Unpack[t.TraceGetParams]) -> t.TracePage:
        """`trace.get`: A page of records."""
        answer: t.TracePage = await self.call("trace.get", params)
        return answer

    async def trace_export(self, **params: Unpack[t.TraceExportParams]) -> t.TraceExportPart:
        """`trace.export`: A trace as JSONL, in parts."""
        answer: t.TraceExportPart = await self.call("trace.export", params)
        return answer

    async def trace_import(self, **params: Unpack[t.TraceImportParams]) -> t.Session:
        """`trace.import`: Imports an export, at once or in parts."""
        answer: t.Session = await self.call("trace.import", params)
        return answer

    async def trace_replay(self, **params: Unpack[t.ReplayParams]) -> t.ReplayReport:
        """`trace.replay`: Replays a trace without the network and names the first difference."""
        answer: t.ReplayReport = await self.call("trace.replay", params)
        return answer

    async def trace_blob(self, **params: Unpack[t.BlobParams]) -> t.BlobPart:
        """`trace.blob`: A part of a large result."""
        answer: t.BlobPart = await self.call("trace.blob", params)
        return answer

    async def storage_usage(self, **params: Unpack[t.UsageParams]) -> t.DiskUsage:
        """`storage.usage`: What the data on disk consists of."""
        answer: t.DiskUsage = await self.call("storage.usage", params)
        return answer

    async def storage_collect(self, **params: Unpack[t.CollectParams]) -> t.Collected:
        """`storage.collect`: Removes the sessions beyond the limits of `retention`, packs old ones and frees their space."""
        answer: t.Collected = await self.call("storage.collect", params)
        return answer

    async def audit_query(self, **params: Unpack[t.AuditQueryParams]) -> t.PageOfAuditEntry:
        """`audit.query`: The audit of tool calls."""
        answer: t.PageOfAuditEntry = await self.call("audit.query", params)
        return answer

    async def viewer_link(self, **params: Unpack[t.Empty]) -> t.ViewerLink:
        """`viewer.link`: Creates a link that opens the viewer in a browser, once and within a minute."""
        answer: t.ViewerLink = await self.call("viewer.link", params)
        return answer

    async def pair_begin(self, **params: Unpack[t.PairBeginParams]) -> t.PairOffer:
        """`pair.begin`: Creates a code that pairs one device, once."""
        answer: t.PairOffer = await self.call("pair.begin", params)
        return answer

    async def pair_status(self, **params: Unpack[t.Empty]) -> t.PairStatus:
        """`pair.status`: The state of the latest code."""
        answer: t.PairStatus = await self.call("pair.status", params)
        return answer

    async def pair_cancel(self, **params: Unpack[t.Empty]) -> t.PairStatus:
        """`pair.cancel`: Cancels the latest code."""
        answer: t.PairStatus = await self.call("pair.cancel", params)
        return answer

    async def client_list(self, **params: Unpack[t.Empty]) -> t.PageOfDevice:
        """`client.list`: The paired devices."""
        answer: t.PageOfDevice = await self.call("client.list", params)
        return answer

    async def client_revoke(self, **params: Unpack[t.DeviceRef]) -> t.Empty:
        """`client.revoke`: Removes a paired device and closes its connections."""
        answer: t.Empty = await self.call("client.revoke", params)
        return answer

    async def fleet_status(self, **params: Unpack[t.Empty]) -> t.FleetStatus:
        """`fleet.status`: The daemons that share a broker with this one, their sessions and pools."""
        answer: t.FleetStatus = await self.call("fleet.status", params)
        return answer

    async def fleet_run(self, **params: Unpack[t.FleetRunParams]) -> t.FleetRun:
        """`fleet.run`: Adds a run to a pool, which one of its daemons takes."""
        answer: t.FleetRun = await self.call("fleet.run", params)
        return answer

    async def fleet_runs(self, **params: Unpack[t.FleetRunsParams]) -> t.PageOfFleetRun:
        """`fleet.runs`: The runs of a pool, those that changed last first."""
        answer: t.PageOfFleetRun = await self.call("fleet.runs", params)
        return answer

    async def fleet_cancel(self, **params: Unpack[t.FleetRunRef]) -> t.FleetRun:
        """`fleet.cancel`: Cancels a waiting or active run of a pool."""
        answer: t.FleetRun = await self.call("fleet.cancel", params)
        return answer

    async def fleet_call(self, **params: Unpack[t.FleetCallParams]) -> Any:
        """`fleet.call`: Calls a method of another daemon, with the caller's rights."""
        answer: Any = await self.call("fleet.call", params)
        return answer

    async def fleet_records(self, **params: Unpack[t.FleetRecordsParams]) -> t.FleetRecords:
        """`fleet.records`: Records of a session of any daemon, as the broker has them."""
        answer: t.FleetRecords = await self.call("fleet.records", params)
        return answer
