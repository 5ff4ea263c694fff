//! The effects of each method's params. Every params type is listed in this file.

use cairn_engine::Engine;
use cairn_protocol::{
    approval::{ApprovalListParams, ApprovalRef, ApprovalResolveParams},
    background::{BackgroundOutputParams, BackgroundRef},
    board::BoardParams,
    calls::CallsParams,
    config::ConfigGetParams,
    content::{ListDirParams, SpanParams},
    daemon::InitializeParams,
    error::Failure,
    explore::{ExploreStartParams, SessionRef},
    fleet::{
        FleetCallParams, FleetRecordsParams, FleetRunParams, FleetRunRef, FleetRunsParams,
        FleetWork,
    },
    git::{CloneParams, GitStatusParams, WorktreeCreateParams, WorktreeRef, WorktreeRemoveParams},
    history::HistoryParams,
    index::{AddRootParams, IndexStatusParams, RootRef},
    lines::GrepStreamParams,
    map::MapParams,
    mcp::{McpFinishLoginParams, McpServerRef},
    memory::{
        ProjectMemoryKeywordsParams, ProjectMemoryListParams, ProjectMemoryRef,
        ProjectMemorySearchParams, ProjectMemoryWriteParams,
    },
    prompt::{PromptAppendParams, PromptSetParams, PromptShowParams},
    remote::{DeviceRef, PairBeginParams},
    schedule::{ScheduleAddParams, ScheduleRef},
    search::{GrepParams, ImpactParams, ReferencesParams, SearchParams, SymbolsParams},
    session::{
        ArchiveParams, CommandParams, Empty, ForkParams, PageParams, SessionCreateParams,
        SetMcpServersParams, SubscribeParams, UnsubscribeParams, WorktreeUse,
    },
    tool::{NarrowParams, RevokeParams, ToolCallParams},
    trace::{
        AuditQueryParams, BlobParams, ReplayParams, TraceExportParams, TraceGetParams,
        TraceImportParams,
    },
    trust::{TrustGetParams, TrustRemoveParams, TrustSetParams},
    turn::{
        ExecutionMode, ExecutionPolicy, ModelListParams, ProviderCurrentParams, ProviderSetParams,
        RunStartParams, SandboxUse, SteerParams, TurnRef,
    },
    unattended::UnattendedStartParams,
    usage::{CollectParams, UsageParams},
};

use crate::rights::{Effect, Effects, Right};

/// Declares params whose calls have no effect beyond their method's.
macro_rules! no_effects {
    ($($params:ty),* $(,)?) => { $(impl Effects for $params {})* };
}

no_effects!(
    AddRootParams,
    ApprovalListParams,
    ApprovalRef,
    ArchiveParams,
    AuditQueryParams,
    BackgroundOutputParams,
    BackgroundRef,
    BlobParams,
    BoardParams,
    CallsParams,
    CloneParams,
    CollectParams,
    CommandParams,
    ConfigGetParams,
    DeviceRef,
    Empty,
    FleetCallParams,
    FleetRecordsParams,
    FleetRunRef,
    FleetRunsParams,
    ForkParams,
    GitStatusParams,
    GrepParams,
    GrepStreamParams,
    IndexStatusParams,
    InitializeParams,
    ListDirParams,
    MapParams,
    McpFinishLoginParams,
    McpServerRef,
    ProjectMemoryKeywordsParams,
    ProjectMemoryListParams,
    ProjectMemoryRef,
    ProjectMemorySearchParams,
    ProjectMemoryWriteParams,
    NarrowParams,
    ModelListParams,
    PageParams,
    PromptAppendParams,
    ImpactParams,
    PromptSetParams,
    PromptShowParams,
    ProviderCurrentParams,
    ReferencesParams,
    ReplayParams,
    RevokeParams,
    RootRef,
    ScheduleRef,
    SearchParams,
    SessionRef,
    SetMcpServersParams,
    SpanParams,
    SubscribeParams,
    SymbolsParams,
    ToolCallParams,
    TraceExportParams,
    TraceGetParams,
    TraceImportParams,
    TrustGetParams,
    TrustRemoveParams,
    TrustSetParams,
    TurnRef,
    UnsubscribeParams,
    UsageParams,
    HistoryParams,
    WorktreeCreateParams,
    WorktreeRef,
    WorktreeRemoveParams,
);

fn effect_if(has: bool, effect: Effect) -> Vec<Effect> {
    if has { vec![effect] } else { vec![] }
}

impl Effects for ExploreStartParams {
    const ALL: &'static [Effect] =
        &[Effect::DeclareRoot, Effect::OpenNetwork, Effect::CloneToExplore];

    async fn effects(&self, engine: &Engine) -> Result<Vec<Effect>, Failure> {
        let root = self.root.as_ref().filter(|_| self.remote_url.is_none());
        let declares = root.is_some_and(|root| !engine.is_declared(root));
        let mut effects = effect_if(declares, Effect::DeclareRoot);
        let opens = self.policy.as_ref().is_some_and(|policy| policy.network);
        let by_clone = self.remote_url.is_some();
        let effect = if by_clone { Effect::CloneToExplore } else { Effect::OpenNetwork };
        effects.extend(effect_if(opens, effect));
        Ok(effects)
    }
}

impl Effects for SessionCreateParams {
    const ALL: &'static [Effect] = &[Effect::CreateWorktree];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(effect_if(self.worktree == Some(WorktreeUse::New), Effect::CreateWorktree))
    }
}

/// Returns the effects of a turn with this policy.
fn effects_of(policy: Option<&ExecutionPolicy>) -> Vec<Effect> {
    let Some(policy) = policy else { return vec![] };
    let mut effects = effect_if(policy.sandbox == Some(SandboxUse::Off), Effect::LeaveSandbox);
    effects.extend(effect_if(policy.network, Effect::OpenNetwork));
    if policy.mode.is_some_and(ExecutionMode::is_raised) {
        effects.push(Effect::RaiseMode);
    }
    effects
}

impl Effects for RunStartParams {
    const ALL: &'static [Effect] = &[Effect::LeaveSandbox, Effect::OpenNetwork, Effect::RaiseMode];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(effects_of(self.policy.as_ref()))
    }
}

impl Effects for UnattendedStartParams {
    const ALL: &'static [Effect] =
        &[Effect::LeaveSandbox, Effect::OpenNetwork, Effect::RaiseMode, Effect::RunCheck];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        let mut effects = effects_of(self.turn.policy.as_ref());
        effects.extend(effect_if(self.until.is_some(), Effect::RunCheck));
        Ok(effects)
    }
}

// The daemon that takes the run checks the rights again, by the subject on which it came.
impl Effects for FleetRunParams {
    const ALL: &'static [Effect] = &[Effect::LeaveSandbox, Effect::OpenNetwork, Effect::RaiseMode];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(match &self.work {
            FleetWork::Turn { policy, .. } => effects_of(policy.as_deref()),
            FleetWork::Explore { .. } => vec![],
        })
    }
}

impl Effects for ScheduleAddParams {
    const ALL: &'static [Effect] =
        &[Effect::LeaveSandbox, Effect::OpenNetwork, Effect::RaiseMode, Effect::RunCheck];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        let mut effects = effects_of(self.job.policy.as_ref());
        effects.extend(effect_if(self.job.until.is_some(), Effect::RunCheck));
        Ok(effects)
    }
}

impl Effects for SteerParams {
    const ALL: &'static [Effect] = &[Effect::SteerOutsideSandbox, Effect::SteerRaised];

    async fn effects(&self, engine: &Engine) -> Result<Vec<Effect>, Failure> {
        let session = &self.session_id;
        let mut effects =
            effect_if(engine.is_unconfined(session).await?, Effect::SteerOutsideSandbox);
        effects.extend(effect_if(engine.is_raised(session).await?, Effect::SteerRaised));
        Ok(effects)
    }
}

impl Effects for ApprovalResolveParams {
    const ALL: &'static [Effect] = &[Effect::GrantRule];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(effect_if(self.decision.is_permanent(), Effect::GrantRule))
    }
}

impl Effects for ProviderSetParams {
    const ALL: &'static [Effect] = &[Effect::MoveModel];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(effect_if(self.endpoint.is_some(), Effect::MoveModel))
    }
}

impl Effects for PairBeginParams {
    const ALL: &'static [Effect] = &[
        Effect::GiveRight(Right::Observe),
        Effect::GiveRight(Right::Prompt),
        Effect::GiveRight(Right::Approve),
        Effect::GiveRight(Right::Admin),
    ];

    async fn effects(&self, _: &Engine) -> Result<Vec<Effect>, Failure> {
        Ok(self.rights.iter().map(|right| Effect::GiveRight(*right)).collect())
    }
}
