//! An agent's view of its turn.

use std::{
    collections::{BTreeSet, HashSet},
    future::Future,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use cairn_harness::WaitClock;
use cairn_llm::Provider;
use cairn_protocol::{
    error::{Failure, Reason},
    event::{AgentEvt, PlanItem},
    id::{RunId, SessionId},
    model::{Message, TokenUsage},
    skill::SkillInfo,
    time::Timestamp,
    turn::{ExecutionPolicy, ToolTrace, TurnOverrides},
};
use cairn_trace::{Append, NewRecord};
use cairn_workspace::Root;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Conversation, PromptTier, ReplaySource, TurnHandle};
use crate::{Engine, prompts::SessionPrompt, run_core::RunCore, spending};

/// Settings of a turn; they do not change while it runs.
#[derive(Debug, Clone)]
pub struct TurnSettings {
    /// Most answers of the model in one turn.
    pub max_iterations: u32,
    /// Attempts after a stream that broke before anything was displayed.
    pub retry_attempts: u32,
    /// Wait before the first of them; doubled each time.
    pub retry_backoff: Duration,
    /// Sampling temperature, 0 to 2; the provider's own when absent.
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub max_answer_tokens: u32,
    /// Most tokens of the context; the model's own size when absent, and 32,000 if that is unknown.
    pub max_context_tokens: Option<u64>,
    /// Fraction of them, 0 to 1, after which older turns are condensed.
    pub compaction_threshold: f64,
    /// Most characters of one tool's output that the model receives.
    pub shown_chars: u64,
    /// Most tools of MCP servers that a model is offered before it has looked them up: of one
    /// server, and of all servers that have no more.
    pub listed_mcp_tools: usize,
    /// True if models are requested to report their progress in reading the prompt.
    pub prompt_progress: bool,
    /// Tokens of the repository map in the prompt; 0 for none.
    pub repo_map_tokens: u32,
    /// Prefix of the messages of automatic commits of a turn's changes; no commits when `None`.
    pub auto_commit: Option<String>,
    /// Access to the network by domain, for turns without the complete network.
    pub domains: DomainAccess,
    /// Longest duration of a turn, without the time spent waiting for approvers.
    pub timeout: Option<Duration>,
    /// Command line that prepares a new work tree, before the first turn of its session.
    pub worktree_setup: Option<String>,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            max_iterations: 25,
            retry_attempts: 3,
            retry_backoff: Duration::from_secs(1),
            temperature: None,
            max_answer_tokens: 4096,
            max_context_tokens: None,
            compaction_threshold: 0.95,
            shown_chars: 10_000,
            listed_mcp_tools: 20,
            prompt_progress: true,
            repo_map_tokens: 1024,
            auto_commit: None,
            domains: DomainAccess::Off,
            timeout: None,
            worktree_setup: None,
        }
    }
}

/// Access of a turn to the domains that rules allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DomainAccess {
    /// The network is closed.
    #[default]
    Off,
    /// Commands reach the domains; the model gets no tools for them.
    Commands,
    /// Commands reach them, and models are offered the tools that use the network.
    All,
}

/// Tokens of the context of a model that does not report them.
const UNKNOWN_CONTEXT: u64 = 32_000;
/// Most time for the query of a model's context before a turn.
const MAX_PREPARE: Duration = Duration::from_secs(2);

fn window(provider: &dyn Provider, settings: &TurnSettings) -> u64 {
    let own = settings.max_context_tokens;
    match (provider.context_tokens(), own) {
        (Some(theirs), Some(own)) => theirs.min(own),
        (theirs, own) => theirs.or(own).unwrap_or(UNKNOWN_CONTEXT),
    }
}

impl TurnSettings {
    /// Returns these settings with the overrides of a turn.
    #[must_use]
    pub(crate) fn with(&self, own: &TurnOverrides) -> Self {
        let mut settings = self.clone();
        settings.temperature = own.temperature.or(settings.temperature);
        settings.max_answer_tokens = own.max_answer_tokens.unwrap_or(settings.max_answer_tokens);
        settings.max_context_tokens =
            own.max_context_tokens.map(u64::from).or(settings.max_context_tokens);
        settings.compaction_threshold =
            own.compaction_threshold.unwrap_or(settings.compaction_threshold);
        settings.repo_map_tokens = own.repo_map_tokens.unwrap_or(settings.repo_map_tokens);
        settings.shown_chars = own.max_tool_output_chars.unwrap_or(settings.shown_chars);
        settings
    }
}

/// Rejects settings of a turn that are out of range.
///
/// # Errors
/// `invalid_params` that names the setting.
pub(crate) fn check_overrides(policy: Option<&ExecutionPolicy>) -> Result<(), Failure> {
    let cost = policy.and_then(|policy| policy.max_usd);
    if cost.is_some_and(|cost| !(cost > 0.0 && cost.is_finite())) {
        return Err(Failure::new(Reason::InvalidParams, "policy.maxUsd must be greater than 0"));
    }
    let Some(own) = policy.and_then(|policy| policy.settings.as_ref()) else { return Ok(()) };
    let within = |value: Option<f64>, most: f64| value.is_none_or(|v| (0.0..=most).contains(&v));
    let positive = |value: Option<u32>| value != Some(0);
    for (fine, text) in [
        (within(own.temperature, 2.0), "temperature must be 0 to 2"),
        (within(own.compaction_threshold, 1.0), "compactionThreshold must be 0 to 1"),
        (positive(own.max_answer_tokens), "maxAnswerTokens must be at least 1"),
        (positive(own.max_context_tokens), "maxContextTokens must be at least 1"),
    ] {
        if !fine {
            return Err(Failure::new(Reason::InvalidParams, format!("policy.settings.{text}")));
        }
    }
    Ok(())
}

/// One turn's view of the engine. Clones share it.
#[derive(Clone)]
pub struct TurnContext {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub core: RunCore,
    pub handle: TurnHandle,
    pub created_at: Timestamp,
    /// Start time of the turn; in a replay, that of the recorded one.
    pub began: Timestamp,
    pub policy: ExecutionPolicy,
    pub settings: Arc<TurnSettings>,
    pub provider: Result<Arc<dyn Provider>, Failure>,
    pub resumed: bool,
    /// True if its time limit has expired.
    pub timed_out: AtomicBool,
    pub received_seq: AtomicU64,
    pub usage: Mutex<TokenUsage>,
    pub tools: Mutex<Vec<ToolTrace>>,
    pub ids: Mutex<HashSet<String>>,
    /// Names, or parts of them, that the model has looked up.
    pub lookups: Mutex<BTreeSet<String>>,
    /// Records of its last steps, which are appended with its terminal record.
    pub closing: Mutex<Vec<AgentEvt>>,
    /// In a replay: the recorded answers and results.
    pub feed: Option<Arc<ReplaySource>>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TurnContext {
    /// Returns the engine, for operations beyond a turn: searches, maps.
    pub fn engine(&self) -> &Engine {
        &self.core().engine
    }

    /// Returns the session of the turn.
    pub fn session(&self) -> &SessionId {
        &self.core().session
    }

    /// Returns the run of the turn.
    pub fn run(&self) -> &RunId {
        &self.inner.handle.run
    }

    /// Returns the absolute path of the root the turn works in.
    pub fn root_path(&self) -> Option<&Path> {
        self.core().root.as_ref().map(|r| r.path.as_path())
    }

    /// Returns the policy of the turn.
    pub fn policy(&self) -> &ExecutionPolicy {
        &self.inner.policy
    }

    /// Returns the settings of the turn.
    pub fn settings(&self) -> &TurnSettings {
        &self.inner.settings
    }

    /// Returns a token that is cancelled when a client cancels the turn, its time limit expires, or
    /// the daemon stops.
    pub fn cancel(&self) -> &CancellationToken {
        &self.inner.handle.cancel
    }

    /// Returns the most answers of the model that this turn may have.
    pub fn max_iterations(&self) -> u32 {
        self.policy().max_iterations.unwrap_or(self.settings().max_iterations)
    }

    /// Returns the provider that the turn uses.
    ///
    /// # Errors
    /// The reason why there is none: an unknown provider, a missing key.
    pub fn provider(&self) -> Result<Arc<dyn Provider>, Failure> {
        self.inner.provider.clone()
    }

    /// Returns the conversation so far, with the steering texts of clients.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn conversation(&self) -> Result<Conversation, Failure> {
        let (mut talk, steering) =
            Conversation::read(&self.engine().inner.trace, self.session()).await?;
        *locked(&self.inner.ids) = talk.call_ids().into_iter().map(str::to_owned).collect();
        self.note_lookups(&talk.messages);
        if talk.open.is_empty() {
            for (seq, text) in steering {
                self.inner.received_seq.fetch_max(seq, Ordering::SeqCst);
                talk.messages.push(Message::user(text));
            }
            locked(&self.inner.handle.steering).clear();
        } else {
            // The calls have their results first.
            locked(&self.inner.handle.steering).extend(steering);
        }
        self.end_lost_commands(talk.running.clone()).await?;
        Ok(talk)
    }

    /// Returns the steering texts since the last call.
    pub fn steering(&self) -> Vec<Message> {
        if let Some(feed) = &self.inner.feed {
            // The agent repeats its own notes; they are in the record too.
            locked(&self.inner.handle.steering).clear();
            return feed.take_steering().into_iter().map(|(_, text)| Message::user(text)).collect();
        }
        let mut texts = std::mem::take(&mut *locked(&self.inner.handle.steering));
        texts.sort_by_key(|(seq, _)| *seq);
        let unreceived = |(seq, text): (u64, String)| {
            // A text that the conversation already has from the log is not delivered twice.
            let before = self.inner.received_seq.fetch_max(seq, Ordering::SeqCst);
            (before < seq).then(|| Message::user(text))
        };
        texts.into_iter().filter_map(unreceived).collect()
    }

    /// Delivers a text that is in the log; a turn that has finished does not receive it, the
    /// session's next turn does.
    pub(crate) fn deliver(&self, seq: u64, text: String) {
        locked(&self.inner.handle.steering).push((seq, text));
    }

    /// Returns the skills of the host, and those of the project if its folder is trusted.
    pub fn skills(&self) -> Vec<SkillInfo> {
        self.engine().skills(self.root_path())
    }

    /// Returns true if the user trusts the root of the turn.
    pub fn is_trusted(&self) -> bool {
        self.root_path().is_some_and(|root| self.engine().is_trusted(root))
    }

    /// Returns the changes to the session's system text.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn session_prompt(&self) -> Result<SessionPrompt, Failure> {
        self.engine().session_prompt(self.session()).await
    }

    /// Returns a text stored with the session under `name`, which `make` creates the first time:
    /// for content that must stay the same from turn to turn.
    ///
    /// # Errors
    /// Errors of `make` and of the log.
    pub async fn artifact_or_create<F>(&self, name: &str, make: F) -> Result<String, Failure>
    where
        F: Future<Output = Result<String, Failure>>,
    {
        if let Some(text) = self.engine().inner.trace.artifact(self.session(), name).await? {
            return Ok(text);
        }
        let text = make.await?;
        let append = Append::new(self.session(), vec![]).artifact(name, text.clone());
        self.engine().inner.trace.append(append).await?;
        Ok(text)
    }

    /// Removes the text stored under `name`: it is created again when it is next needed.
    ///
    /// # Errors
    /// Errors of the log.
    pub async fn remove_artifact(&self, name: &str) -> Result<(), Failure> {
        // The recorded text stays for the rest of a replay.
        if self.feed().is_none() {
            self.engine().inner.trace.remove_artifact(self.session(), name).await?;
        }
        Ok(())
    }

    /// Returns the creation time of the session.
    pub fn session_began(&self) -> Timestamp {
        self.inner.created_at
    }

    /// Returns the start time of the turn. In a replay: that of the recorded one, so that the model
    /// sees the same date.
    pub fn began(&self) -> Timestamp {
        self.inner.began
    }

    /// Emits a warning for the user and continues.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn warn(&self, op: &str, message: String) -> Result<(), Failure> {
        self.emit_all(vec![AgentEvt::Warning { op: op.to_owned(), message }]).await
    }

    /// Sends a text to the model in the user's place, like a client's steering: the model receives
    /// it before its next answer.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn note(&self, text: &str) -> Result<(), Failure> {
        let evt = AgentEvt::Steered { run_id: self.run().clone(), text: text.to_owned() };
        let append = Append::new(self.session(), vec![self.record(None, None, evt)]);
        let seq = self.engine().inner.trace.append(append).await?.first;
        self.deliver(seq, text.to_owned());
        Ok(())
    }

    /// Emits the to-do list of the turn.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn plan(&self, items: Vec<PlanItem>) -> Result<(), Failure> {
        self.emit_all(vec![AgentEvt::PlanUpdate { items }]).await
    }

    /// Returns the tokens of all answers so far.
    pub fn usage(&self) -> TokenUsage {
        *locked(&self.inner.usage)
    }

    /// Makes the configuration alone decide about external models.
    pub(crate) fn allow_external(&mut self) {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.policy.allow_external_llms = true;
        }
    }

    pub(crate) fn core(&self) -> &RunCore {
        &self.inner.core
    }

    pub(super) fn root(&self) -> Option<&Root> {
        self.core().root.as_ref()
    }

    pub(super) fn clock(&self) -> Arc<WaitClock> {
        Arc::clone(&self.inner.handle.clock)
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.inner.resumed
    }

    pub(super) fn feed(&self) -> Option<&ReplaySource> {
        self.inner.feed.as_deref()
    }

    pub(super) fn heard_seq(&self) -> u64 {
        self.inner.received_seq.load(Ordering::SeqCst)
    }

    pub(super) fn context_tokens(&self, provider: &dyn Provider) -> Option<u64> {
        provider.context_tokens()
    }

    /// Returns the tokens that a prompt and its answer may have together.
    pub(super) fn window(&self, provider: &dyn Provider) -> u64 {
        window(provider, self.settings())
    }

    /// Returns the most tokens of one answer: a quarter of the context at most, so that the prompt
    /// has room.
    pub(super) fn answer_tokens(&self, provider: &dyn Provider) -> u32 {
        let quarter = u32::try_from(self.window(provider) / 4).unwrap_or(u32::MAX);
        self.settings().max_answer_tokens.min(quarter.max(1))
    }

    /// Returns the tokens that a prompt and its answer may have together.
    pub fn context_window(&self) -> u64 {
        let own = self.settings().max_context_tokens;
        self.provider().map_or(own.unwrap_or(UNKNOWN_CONTEXT), |model| self.window(&*model))
    }

    /// Returns the size of the fixed part of the prompt that suits the model.
    pub fn tier(&self) -> PromptTier {
        PromptTier::of(self.context_window())
    }

    /// Queries the size of the model's context, on which the prompt depends, if it is unknown and
    /// the model may be used. A model that does not answer in time has an unknown size.
    pub(super) async fn with_known_window(self) -> Self {
        if let Ok(provider) = self.provider()
            && provider.context_tokens().is_none()
            && self
                .engine()
                .inner
                .models
                .admit(&*provider, self.policy().allow_external_llms)
                .is_ok()
        {
            let _unknown = tokio::time::timeout(MAX_PREPARE, provider.prepare()).await;
        }
        let Ok(provider) = self.provider() else { return self };
        let settings = self.settings();
        if provider.context_tokens().or(settings.max_context_tokens).is_none() {
            return self;
        }
        // One output takes about a tenth of the context, a read of a file a third.
        let share = (self.window(&*provider) * 5 / 16).max(1000);
        let shown_chars = settings.shown_chars.min(share);
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => {
                let settings = TurnSettings { shown_chars, ..(*inner.settings).clone() };
                Self { inner: Arc::new(Inner { settings: Arc::new(settings), ..inner }) }
            }
            Err(inner) => Self { inner },
        }
    }

    pub(super) fn spend(&self, usage: TokenUsage) {
        *locked(&self.inner.usage) += usage;
    }

    pub(super) fn require_budget(&self) -> Result<(), Failure> {
        let (cap, spent) = (self.policy().max_tokens, self.usage());
        let sum = spent.input_tokens + spent.output_tokens;
        if let Some(cap) = cap.filter(|cap| sum >= *cap) {
            let text = format!("the turn has used {sum} tokens, policy.maxTokens is {cap}");
            return Err(Failure::new(Reason::BudgetExceeded, text));
        }
        Ok(())
    }

    /// Checks the limits on costs; a replay costs nothing.
    ///
    /// # Errors
    /// `budget_exceeded`; an error of the log.
    pub(super) async fn require_money(&self) -> Result<(), Failure> {
        let limits = self.engine().inner.models.limits().cost;
        let own = self.policy().max_usd;
        if (!limits.is_set() && own.is_none()) || self.feed().is_some() {
            return Ok(());
        }
        let spent = self.usage().cost_micro_usd.unwrap_or(0);
        spending::require(spent, own, "the turn", "policy.maxUsd")?;
        spending::require(spent, limits.turn, "the turn", "models.maxUsdPerTurn")?;
        if limits.session.is_some() {
            let cost = self.engine().cost_of(self.session()).await?;
            spending::require(cost, limits.session, "the session", "models.maxUsdPerSession")?;
        }
        self.engine().load_costs().await
    }

    pub(super) fn trace_tool(&self, tool: ToolTrace) {
        locked(&self.inner.tools).push(tool);
    }

    pub(super) fn tool_trace(&self) -> Vec<ToolTrace> {
        locked(&self.inner.tools).clone()
    }

    /// Returns the id itself, or one with a number if the session has it already.
    pub(super) fn unique(&self, id: String) -> String {
        let mut ids = locked(&self.inner.ids);
        let mut unique_id = id.clone();
        let mut n = 1;
        while unique_id.is_empty() || !ids.insert(unique_id.clone()) {
            n += 1;
            unique_id = format!("{}_{n}", if id.is_empty() { "call" } else { &id });
        }
        unique_id
    }

    pub(super) async fn pause(&self, time: Duration) -> Result<(), Failure> {
        tokio::select! {
            () = self.cancel().cancelled() => Err(super::drive::cancelled()),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    pub(super) fn pass(&self, evt: &AgentEvt) {
        self.engine().inner.trace.pass(self.session(), self.core().origin(None), None, evt);
    }

    pub(super) async fn emit_all(&self, evts: Vec<AgentEvt>) -> Result<(), Failure> {
        self.core().emit_all(evts).await
    }

    pub(crate) fn record(
        &self,
        parent_id: Option<Uuid>,
        tool: Option<&str>,
        evt: AgentEvt,
    ) -> NewRecord {
        self.core().record(parent_id, tool, evt)
    }
}
