// Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.

import type {
  AddRootParams,
  Approval,
  ApprovalListParams,
  ApprovalRef,
  ApprovalResolveParams,
  ArchiveParams,
  AuditQueryParams,
  BackgroundCommand,
  BackgroundOutput,
  BackgroundOutputParams,
  BackgroundRef,
  BlobParams,
  BlobPart,
  Board,
  BoardParams,
  CallsAnswer,
  CallsParams,
  CloneParams,
  CloneReceipt,
  CollectParams,
  Collected,
  CommandParams,
  CommandReceipt,
  Compressed,
  ConfigAnswer,
  ConfigGetParams,
  ConfigReloaded,
  DaemonStats,
  DaemonStatus,
  DeviceRef,
  DirListing,
  DiskUsage,
  Empty,
  ExploreStartParams,
  ExploreStatus,
  FleetCallParams,
  FleetRecords,
  FleetRecordsParams,
  FleetRun,
  FleetRunParams,
  FleetRunRef,
  FleetRunsParams,
  FleetStatus,
  FolderTrust,
  ForkParams,
  GitStatus,
  GitStatusParams,
  GrepAnswer,
  GrepParams,
  GrepStreamEnd,
  GrepStreamParams,
  HistoryAnswer,
  HistoryParams,
  ImpactAnswer,
  ImpactParams,
  IndexReceipt,
  IndexStatus,
  IndexStatusParams,
  ListDirParams,
  MapAnswer,
  MapParams,
  McpAccount,
  McpFinishLoginParams,
  McpLogin,
  McpServerRef,
  MemoryChange,
  MemoryText,
  ModelChoice,
  ModelListParams,
  NarrowParams,
  PageOfApproval,
  PageOfAuditEntry,
  PageOfBackgroundCommand,
  PageOfDevice,
  PageOfFleetRun,
  PageOfGrantedRule,
  PageOfMcpServerInfo,
  PageOfMemoryEntry,
  PageOfMemoryKeyword,
  PageOfModelInfo,
  PageOfPluginInfo,
  PageOfProviderInfo,
  PageOfRootStatus,
  PageOfSchedule,
  PageOfSession,
  PageOfSkillInfo,
  PageOfToolInfo,
  PageOfUnattendedRun,
  PageOfWorktree,
  PageParams,
  PairBeginParams,
  PairOffer,
  PairStatus,
  ProjectMemoryKeywordsParams,
  ProjectMemoryListParams,
  ProjectMemoryRef,
  ProjectMemorySearchParams,
  ProjectMemoryWriteParams,
  PromptAppendParams,
  PromptSetParams,
  PromptShowParams,
  PromptShown,
  ProviderCurrentParams,
  ProviderSet,
  ProviderSetParams,
  ReferencesAnswer,
  ReferencesParams,
  ReplayParams,
  ReplayReport,
  RevokeParams,
  RootRef,
  RunReceipt,
  RunStartParams,
  RunStatus,
  SandboxProbe,
  Schedule,
  ScheduleAddParams,
  ScheduleEntry,
  ScheduleRef,
  SearchAnswer,
  SearchParams,
  Session,
  SessionCreateParams,
  SessionMcpServers,
  SessionRef,
  SetMcpServersParams,
  Span,
  SpanParams,
  SteerParams,
  SymbolsAnswer,
  SymbolsParams,
  ToolCallParams,
  ToolResult,
  TraceExportParams,
  TraceExportPart,
  TraceGetParams,
  TraceImportParams,
  TracePage,
  TrustGetParams,
  TrustRemoveParams,
  TrustRemoved,
  TrustSetParams,
  TurnRef,
  UnattendedRun,
  UnattendedStartParams,
  UsageParams,
  ViewerLink,
  Worktree,
  WorktreeCreateParams,
  WorktreeDiff,
  WorktreeRef,
  WorktreeRemoveParams,
  WorktreeRemoved,
} from "./types.js";

/** Every method of the daemon, typed. Each returns the result documented in the protocol reference, or rejects with `RpcError`. */
export abstract class Methods {
  /** Calls a method by its name on the wire. */
  abstract call<R = unknown>(method: string, params?: object): Promise<R>;

  /** `rpc.discover`: This table as an OpenRPC document. */
  discover(params: Empty = {}): Promise<unknown> {
    return this.call("rpc.discover", params);
  }

  /** `daemon.status`: Version, addresses, roots and data locations. */
  daemonStatus(params: Empty = {}): Promise<DaemonStatus> {
    return this.call("daemon.status", params);
  }

  /** `daemon.stats`: Memory, connections, log and index figures. */
  daemonStats(params: Empty = {}): Promise<DaemonStats> {
    return this.call("daemon.stats", params);
  }

  /** `daemon.stop`: Stops the daemon gracefully. */
  daemonStop(params: Empty = {}): Promise<Empty> {
    return this.call("daemon.stop", params);
  }

  /** `config.get`: The effective configuration and the source of each value. */
  configGet(params: ConfigGetParams = {}): Promise<ConfigAnswer> {
    return this.call("config.get", params);
  }

  /** `config.reload`: Reloads the configuration files. */
  configReload(params: Empty = {}): Promise<ConfigReloaded> {
    return this.call("config.reload", params);
  }

  /** `index.addRoot`: Declares a folder as a root and indexes it; `index.progress` follows. */
  indexAddRoot(params: AddRootParams): Promise<IndexReceipt> {
    return this.call("index.addRoot", params);
  }

  /** `index.removeRoot`: Removes a root and deletes its index. */
  indexRemoveRoot(params: RootRef): Promise<IndexReceipt> {
    return this.call("index.removeRoot", params);
  }

  /** `index.rebuild`: Rebuilds a root's index; `index.progress` follows. */
  indexRebuild(params: RootRef): Promise<IndexReceipt> {
    return this.call("index.rebuild", params);
  }

  /** `index.status`: The progress of each index. */
  indexStatus(params: IndexStatusParams = {}): Promise<IndexStatus> {
    return this.call("index.status", params);
  }

  /** `index.list`: The declared roots. */
  indexList(params: Empty = {}): Promise<PageOfRootStatus> {
    return this.call("index.list", params);
  }

  /** `search.lexical`: Passages by their words (BM25). */
  searchLexical(params: SearchParams): Promise<SearchAnswer> {
    return this.call("search.lexical", params);
  }

  /** `search.semantic`: Passages by meaning. */
  searchSemantic(params: SearchParams): Promise<SearchAnswer> {
    return this.call("search.semantic", params);
  }

  /** `search.hybrid`: Passages by words and meaning. */
  searchHybrid(params: SearchParams): Promise<SearchAnswer> {
    return this.call("search.hybrid", params);
  }

  /** `search.grep`: Lines by text or regular expression. */
  searchGrep(params: GrepParams): Promise<GrepAnswer> {
    return this.call("search.grep", params);
  }

  /** `search.grepStream`: All lines by text or regular expression, sent by `search.partial` while the search runs. */
  searchGrepStream(params: GrepStreamParams): Promise<GrepStreamEnd> {
    return this.call("search.grepStream", params);
  }

  /** `search.symbols`: Definitions by name, or the outline of a file. */
  searchSymbols(params: SymbolsParams = {}): Promise<SymbolsAnswer> {
    return this.call("search.symbols", params);
  }

  /** `search.references`: Uses of a definition, by scope and imports, with the certainty of each. */
  searchReferences(params: ReferencesParams = {}): Promise<ReferencesAnswer> {
    return this.call("search.references", params);
  }

  /** `search.callers`: Definitions that call a definition, with the certainty of each. */
  searchCallers(params: CallsParams = {}): Promise<CallsAnswer> {
    return this.call("search.callers", params);
  }

  /** `search.callees`: Definitions that a definition calls, with the certainty of each. */
  searchCallees(params: CallsParams = {}): Promise<CallsAnswer> {
    return this.call("search.callees", params);
  }

  /** `search.impact`: Files that import a file, directly or by others. */
  searchImpact(params: ImpactParams): Promise<ImpactAnswer> {
    return this.call("search.impact", params);
  }

  /** `search.map`: The files and definitions that others, or the files being edited, refer to most. */
  searchMap(params: MapParams = {}): Promise<MapAnswer> {
    return this.call("search.map", params);
  }

  /** `content.getSpan`: A bounded range of lines of a file. */
  contentGetSpan(params: SpanParams): Promise<Span> {
    return this.call("content.getSpan", params);
  }

  /** `fs.listDir`: A bounded listing of a folder. */
  fsListDir(params: ListDirParams): Promise<DirListing> {
    return this.call("fs.listDir", params);
  }

  /** `git.clone`: Clones into the workspaces folder; `git.progress` follows. */
  gitClone(params: CloneParams): Promise<CloneReceipt> {
    return this.call("git.clone", params);
  }

  /** `git.status`: Branch, head and changed files. */
  gitStatus(params: GitStatusParams): Promise<GitStatus> {
    return this.call("git.status", params);
  }

  /** `orchestrate.explore.start`: Starts an explore of a folder or a repository; events follow in the session. */
  exploreStart(params: ExploreStartParams = {}): Promise<RunReceipt> {
    return this.call("orchestrate.explore.start", params);
  }

  /** `orchestrate.explore.status`: The state of an explore. */
  exploreStatus(params: SessionRef): Promise<ExploreStatus> {
    return this.call("orchestrate.explore.status", params);
  }

  /** `orchestrate.explore.abort`: Stops an explore; `stopped` is its last event. */
  exploreAbort(params: SessionRef): Promise<ExploreStatus> {
    return this.call("orchestrate.explore.abort", params);
  }

  /** `orchestrate.command`: Runs one command in a session; its events follow. */
  command(params: CommandParams): Promise<CommandReceipt> {
    return this.call("orchestrate.command", params);
  }

  /** `session.create`: Creates a session. */
  sessionCreate(params: SessionCreateParams = {}): Promise<Session> {
    return this.call("session.create", params);
  }

  /** `session.list`: Sessions, newest first. */
  sessionList(params: PageParams = {}): Promise<PageOfSession> {
    return this.call("session.list", params);
  }

  /** `session.get`: One session. */
  sessionGet(params: SessionRef): Promise<Session> {
    return this.call("session.get", params);
  }

  /** `session.resume`: Resumes an interrupted session. */
  sessionResume(params: SessionRef): Promise<RunReceipt> {
    return this.call("session.resume", params);
  }

  /** `session.delete`: Deletes a session with its log. */
  sessionDelete(params: SessionRef): Promise<Empty> {
    return this.call("session.delete", params);
  }

  /** `session.search`: Searches the log: questions, answers, commands, approvals, commits, changed files. */
  sessionSearch(params: HistoryParams = {}): Promise<HistoryAnswer> {
    return this.call("session.search", params);
  }

  /** `session.export`: A session's log as JSONL, in parts. */
  sessionExport(params: TraceExportParams): Promise<TraceExportPart> {
    return this.call("session.export", params);
  }

  /** `session.setMcpServers`: Replaces the MCP servers of a session, which end with it. */
  sessionSetMcpServers(params: SetMcpServersParams): Promise<SessionMcpServers> {
    return this.call("session.setMcpServers", params);
  }

  /** `worktree.create`: Creates a work tree of a repository on a new branch, as a root. */
  worktreeCreate(params: WorktreeCreateParams): Promise<Worktree> {
    return this.call("worktree.create", params);
  }

  /** `worktree.list`: The work trees that were created, with their changes. */
  worktreeList(params: Empty = {}): Promise<PageOfWorktree> {
    return this.call("worktree.list", params);
  }

  /** `worktree.diff`: The changes of a work tree since it was created. */
  worktreeDiff(params: WorktreeRef): Promise<WorktreeDiff> {
    return this.call("worktree.diff", params);
  }

  /** `worktree.apply`: Applies the changes of a work tree to the files of its repository. */
  worktreeApply(params: WorktreeRef): Promise<WorktreeDiff> {
    return this.call("worktree.apply", params);
  }

  /** `worktree.remove`: Removes a work tree; its branch remains unless it is merged. */
  worktreeRemove(params: WorktreeRemoveParams): Promise<WorktreeRemoved> {
    return this.call("worktree.remove", params);
  }

  /** `tool.list`: The registered tools. */
  toolList(params: Empty = {}): Promise<PageOfToolInfo> {
    return this.call("tool.list", params);
  }

  /** `tool.call`: Calls a tool and waits for its result. */
  toolCall(params: ToolCallParams): Promise<ToolResult> {
    return this.call("tool.call", params);
  }

  /** `orchestrate.run.start`: Starts a turn of an agent in a session; `run_completed` is its last event. */
  runStart(params: RunStartParams): Promise<RunReceipt> {
    return this.call("orchestrate.run.start", params);
  }

  /** `orchestrate.run.status`: The state of a session's turns. */
  runStatus(params: SessionRef): Promise<RunStatus> {
    return this.call("orchestrate.run.status", params);
  }

  /** `orchestrate.run.cancel`: Cancels a running or queued turn. */
  runCancel(params: TurnRef): Promise<RunStatus> {
    return this.call("orchestrate.run.cancel", params);
  }

  /** `orchestrate.run.steer`: Adds a message to a running turn, which its model receives next. */
  runSteer(params: SteerParams): Promise<RunStatus> {
    return this.call("orchestrate.run.steer", params);
  }

  /** `session.fork`: Creates a session from the history of another, up to a turn. */
  sessionFork(params: ForkParams): Promise<Session> {
    return this.call("session.fork", params);
  }

  /** `session.archive`: Archives a session, or restores it. */
  sessionArchive(params: ArchiveParams): Promise<Session> {
    return this.call("session.archive", params);
  }

  /** `session.clear`: Clears a session's conversation; its log is retained. */
  sessionClear(params: SessionRef): Promise<Empty> {
    return this.call("session.clear", params);
  }

  /** `session.compress`: Replaces a session's conversation with a summary. */
  sessionCompress(params: SessionRef): Promise<Compressed> {
    return this.call("session.compress", params);
  }

  /** `background.list`: Background commands of a session, oldest first. */
  backgroundList(params: SessionRef): Promise<PageOfBackgroundCommand> {
    return this.call("background.list", params);
  }

  /** `background.output`: New output of a background command. */
  backgroundOutput(params: BackgroundOutputParams): Promise<BackgroundOutput> {
    return this.call("background.output", params);
  }

  /** `background.stop`: Stops a background command, and waits until it has ended. */
  backgroundStop(params: BackgroundRef): Promise<BackgroundCommand> {
    return this.call("background.stop", params);
  }

  /** `approval.list`: Pending approvals, newest first. */
  approvalList(params: ApprovalListParams = {}): Promise<PageOfApproval> {
    return this.call("approval.list", params);
  }

  /** `approval.get`: One approval, complete. */
  approvalGet(params: ApprovalRef): Promise<Approval> {
    return this.call("approval.get", params);
  }

  /** `approval.resolve`: Answers an approval; the first answer counts. */
  approvalResolve(params: ApprovalResolveParams): Promise<Approval> {
    return this.call("approval.resolve", params);
  }

  /** `sandbox.probe`: The sandbox for commands on this machine, and what it does not prevent. */
  sandboxProbe(params: Empty = {}): Promise<SandboxProbe> {
    return this.call("sandbox.probe", params);
  }

  /** `permission.list`: Permanently granted rules. */
  permissionList(params: Empty = {}): Promise<PageOfGrantedRule> {
    return this.call("permission.list", params);
  }

  /** `permission.revoke`: Revokes a granted rule. */
  permissionRevoke(params: RevokeParams): Promise<Empty> {
    return this.call("permission.revoke", params);
  }

  /** `permission.narrow`: Replaces a granted rule by one that covers less. */
  permissionNarrow(params: NarrowParams): Promise<Empty> {
    return this.call("permission.narrow", params);
  }

  /** `provider.list`: The available model providers. */
  providerList(params: Empty = {}): Promise<PageOfProviderInfo> {
    return this.call("provider.list", params);
  }

  /** `provider.current`: The model of a session. */
  providerCurrent(params: ProviderCurrentParams = {}): Promise<ModelChoice> {
    return this.call("provider.current", params);
  }

  /** `provider.set`: Changes the model of a session from its next turn on. */
  providerSet(params: ProviderSetParams): Promise<ProviderSet> {
    return this.call("provider.set", params);
  }

  /** `model.list`: The models of a provider. */
  modelList(params: ModelListParams = {}): Promise<PageOfModelInfo> {
    return this.call("model.list", params);
  }

  /** `prompt.show`: The system text of a session's next turn. */
  promptShow(params: PromptShowParams): Promise<PromptShown> {
    return this.call("prompt.show", params);
  }

  /** `prompt.set`: Replaces the base of a session's system text; its conversation is cleared. */
  promptSet(params: PromptSetParams): Promise<PromptShown> {
    return this.call("prompt.set", params);
  }

  /** `prompt.append`: Adds to a session's system text. */
  promptAppend(params: PromptAppendParams): Promise<PromptShown> {
    return this.call("prompt.append", params);
  }

  /** `prompt.refresh`: Refreshes the time, the project and the map in a session's system text. */
  promptRefresh(params: SessionRef): Promise<PromptShown> {
    return this.call("prompt.refresh", params);
  }

  /** `session.board`: The sessions with what they work on, what they cost, and who waits for an answer. */
  sessionBoard(params: BoardParams = {}): Promise<Board> {
    return this.call("session.board", params);
  }

  /** `unattended.start`: Starts a turn that goes on without the client, and further ones until a check succeeds. */
  unattendedStart(params: UnattendedStartParams): Promise<RunReceipt> {
    return this.call("unattended.start", params);
  }

  /** `unattended.list`: The unattended runs, newest first. */
  unattendedList(params: Empty = {}): Promise<PageOfUnattendedRun> {
    return this.call("unattended.list", params);
  }

  /** `unattended.stop`: Stops an unattended run: cancels its turn, and starts no other. */
  unattendedStop(params: SessionRef): Promise<UnattendedRun> {
    return this.call("unattended.stop", params);
  }

  /** `schedule.add`: Adds a schedule: a request that starts at set times. */
  scheduleAdd(params: ScheduleAddParams): Promise<Schedule> {
    return this.call("schedule.add", params);
  }

  /** `schedule.list`: The schedules with their next times, latest runs and missed times. */
  scheduleList(params: Empty = {}): Promise<PageOfSchedule> {
    return this.call("schedule.list", params);
  }

  /** `schedule.remove`: Removes a schedule; its active run continues. */
  scheduleRemove(params: ScheduleRef): Promise<Empty> {
    return this.call("schedule.remove", params);
  }

  /** `schedule.run`: Starts a run of a schedule now. */
  scheduleRun(params: ScheduleRef): Promise<ScheduleEntry> {
    return this.call("schedule.run", params);
  }

  /** `memory.search`: Searches the knowledge store. */
  memorySearch(params: ProjectMemorySearchParams): Promise<PageOfMemoryEntry> {
    return this.call("memory.search", params);
  }

  /** `memory.list`: Entries of the knowledge store, by name. */
  memoryList(params: ProjectMemoryListParams = {}): Promise<PageOfMemoryEntry> {
    return this.call("memory.list", params);
  }

  /** `memory.keywords`: Keywords of the knowledge store, most used first. */
  memoryKeywords(params: ProjectMemoryKeywordsParams = {}): Promise<PageOfMemoryKeyword> {
    return this.call("memory.keywords", params);
  }

  /** `memory.load`: An entry of the knowledge store. */
  memoryLoad(params: ProjectMemoryRef): Promise<MemoryText> {
    return this.call("memory.load", params);
  }

  /** `memory.save`: Creates or replaces an entry. */
  memorySave(params: ProjectMemoryWriteParams): Promise<MemoryChange> {
    return this.call("memory.save", params);
  }

  /** `memory.append`: Appends to an entry, or creates it. */
  memoryAppend(params: ProjectMemoryWriteParams): Promise<MemoryChange> {
    return this.call("memory.append", params);
  }

  /** `memory.delete`: Deletes an entry. */
  memoryDelete(params: ProjectMemoryRef): Promise<MemoryChange> {
    return this.call("memory.delete", params);
  }

  /** `skill.list`: All skills, and whether they are offered to agents. */
  skillList(params: Empty = {}): Promise<PageOfSkillInfo> {
    return this.call("skill.list", params);
  }

  /** `plugin.list`: The agent plugins of the user, and what each brings. */
  pluginList(params: Empty = {}): Promise<PageOfPluginInfo> {
    return this.call("plugin.list", params);
  }

  /** `trust.get`: What a folder brings that runs or instructs agents, compared with what was trusted. */
  trustGet(params: TrustGetParams): Promise<FolderTrust> {
    return this.call("trust.get", params);
  }

  /** `trust.set`: Trusts or refuses items of a folder with exactly these contents. */
  trustSet(params: TrustSetParams): Promise<FolderTrust> {
    return this.call("trust.set", params);
  }

  /** `trust.remove`: Removes the trust in a folder: nothing that it brings is used then. */
  trustRemove(params: TrustRemoveParams): Promise<TrustRemoved> {
    return this.call("trust.remove", params);
  }

  /** `mcp.list`: The MCP servers of the configuration, with their state and logins. */
  mcpList(params: Empty = {}): Promise<PageOfMcpServerInfo> {
    return this.call("mcp.list", params);
  }

  /** `mcp.login`: Starts a login to an MCP server; the user opens the address that is returned. */
  mcpLogin(params: McpServerRef): Promise<McpLogin> {
    return this.call("mcp.login", params);
  }

  /** `mcp.finishLogin`: Waits until the user has logged in, and stores the login. */
  mcpFinishLogin(params: McpFinishLoginParams): Promise<McpAccount> {
    return this.call("mcp.finishLogin", params);
  }

  /** `mcp.logout`: Deletes the login to an MCP server. */
  mcpLogout(params: McpServerRef): Promise<McpAccount> {
    return this.call("mcp.logout", params);
  }

  /** `trace.list`: Traces, newest first; a trace id is a session id. */
  traceList(params: PageParams = {}): Promise<PageOfSession> {
    return this.call("trace.list", params);
  }

  /** `trace.get`: A page of records. */
  traceGet(params: TraceGetParams): Promise<TracePage> {
    return this.call("trace.get", params);
  }

  /** `trace.export`: A trace as JSONL, in parts. */
  traceExport(params: TraceExportParams): Promise<TraceExportPart> {
    return this.call("trace.export", params);
  }

  /** `trace.import`: Imports an export, at once or in parts. */
  traceImport(params: TraceImportParams): Promise<Session> {
    return this.call("trace.import", params);
  }

  /** `trace.replay`: Replays a trace without the network and names the first difference. */
  traceReplay(params: ReplayParams): Promise<ReplayReport> {
    return this.call("trace.replay", params);
  }

  /** `trace.blob`: A part of a large result. */
  traceBlob(params: BlobParams): Promise<BlobPart> {
    return this.call("trace.blob", params);
  }

  /** `storage.usage`: What the data on disk consists of. */
  storageUsage(params: UsageParams = {}): Promise<DiskUsage> {
    return this.call("storage.usage", params);
  }

  /** `storage.collect`: Removes the sessions beyond the limits of `retention`, packs old ones and frees their space. */
  storageCollect(params: CollectParams = {}): Promise<Collected> {
    return this.call("storage.collect", params);
  }

  /** `audit.query`: The audit of tool calls. */
  auditQuery(params: AuditQueryParams = {}): Promise<PageOfAuditEntry> {
    return this.call("audit.query", params);
  }

  /** `viewer.link`: Creates a link that opens the viewer in a browser, once and within a minute. */
  viewerLink(params: Empty = {}): Promise<ViewerLink> {
    return this.call("viewer.link", params);
  }

  /** `pair.begin`: Creates a code that pairs one device, once. */
  pairBegin(params: PairBeginParams): Promise<PairOffer> {
    return this.call("pair.begin", params);
  }

  /** `pair.status`: The state of the latest code. */
  pairStatus(params: Empty = {}): Promise<PairStatus> {
    return this.call("pair.status", params);
  }

  /** `pair.cancel`: Cancels the latest code. */
  pairCancel(params: Empty = {}): Promise<PairStatus> {
    return this.call("pair.cancel", params);
  }

  /** `client.list`: The paired devices. */
  clientList(params: Empty = {}): Promise<PageOfDevice> {
    return this.call("client.list", params);
  }

  /** `client.revoke`: Removes a paired device and closes its connections. */
  clientRevoke(params: DeviceRef): Promise<Empty> {
    return this.call("client.revoke", params);
  }

  /** `fleet.status`: The daemons that share a broker with this one, their sessions and pools. */
  fleetStatus(params: Empty = {}): Promise<FleetStatus> {
    return this.call("fleet.status", params);
  }

  /** `fleet.run`: Adds a run to a pool, which one of its daemons takes. */
  fleetRun(params: FleetRunParams): Promise<FleetRun> {
    return this.call("fleet.run", params);
  }

  /** `fleet.runs`: The runs of a pool, those that changed last first. */
  fleetRuns(params: FleetRunsParams): Promise<PageOfFleetRun> {
    return this.call("fleet.runs", params);
  }

  /** `fleet.cancel`: Cancels a waiting or active run of a pool. */
  fleetCancel(params: FleetRunRef): Promise<FleetRun> {
    return this.call("fleet.cancel", params);
  }

  /** `fleet.call`: Calls a method of another daemon, with the caller's rights. */
  fleetCall(params: FleetCallParams): Promise<unknown> {
    return this.call("fleet.call", params);
  }

  /** `fleet.records`: Records of a session of any daemon, as the broker has them. */
  fleetRecords(params: FleetRecordsParams): Promise<FleetRecords> {
    return this.call("fleet.records", params);
  }
}
