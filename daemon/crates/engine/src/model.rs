//! Models as the engine uses them: their source, and the limits on requests to them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    model::TokenUsage,
    turn::{ModelChoice, ProviderInfo},
};

use tokio::sync::OnceCell;

use crate::spending;

pub use crate::spending::CostLimits;
pub use cairn_llm::{Chunk, ChunkStream, LlmError, ModelRequest, Provider, Recording, ToolOffer};

/// Source of models; the host implements it over its configuration.
pub trait Models: Send + Sync {
    /// Returns the model for sessions without a choice of their own.
    fn default_choice(&self) -> ModelChoice;

    /// Returns the named provider with the chosen model; its default model when `model` is empty.
    ///
    /// # Errors
    /// `provider_unknown` listing the available ones, `model_unauthorized` when its key is missing.
    fn provider(&self, choice: &ModelChoice) -> Result<Arc<dyn Provider>, Failure>;

    /// Returns the available providers.
    fn list(&self) -> Vec<ProviderInfo>;
}

/// Bounds on requests to models, over all sessions.
#[derive(Debug, Clone)]
pub struct ModelLimits {
    /// True if external models may be used at all.
    pub allow_external: bool,
    /// External providers that may be used; any when empty.
    pub providers: Vec<String>,
    /// External models that may be used; any when empty.
    pub models: Vec<String>,
    /// Most requests per minute.
    pub requests_per_minute: u32,
    /// Most tokens in 24 hours; no cap when `None`.
    pub tokens_per_day: Option<u64>,
    /// Limits on the cost of requests.
    pub cost: CostLimits,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            allow_external: false,
            providers: vec![],
            models: vec![],
            requests_per_minute: 60,
            tokens_per_day: None,
            cost: CostLimits::default(),
        }
    }
}

/// Counter of requests and tokens.
pub(crate) struct ModelGate {
    limits: RwLock<ModelLimits>,
    requests: Mutex<VecDeque<Instant>>,
    spent: Mutex<VecDeque<Spent>>,
    /// Set once the costs of the day before the start are among `spent`.
    pub loaded: OnceCell<()>,
}

/// Tokens and cost of about a minute.
struct Spent {
    /// Time at which they no longer count.
    expires: Instant,
    tokens: u64,
    micro_usd: u64,
}

/// Most entries of tokens and costs.
const MAX_SPENT: usize = 4000;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl ModelGate {
    pub fn new(limits: ModelLimits) -> Self {
        Self {
            limits: RwLock::new(limits),
            requests: Mutex::default(),
            spent: Mutex::default(),
            loaded: OnceCell::new(),
        }
    }

    pub fn limits(&self) -> ModelLimits {
        self.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, limits: ModelLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Checks that `provider` may be used by a run; `run_allows` comes from its policy.
    ///
    /// # Errors
    /// `external_llm_denied` naming the rule that forbids it.
    pub fn admit(&self, provider: &dyn Provider, run_allows: bool) -> Result<(), Failure> {
        if !provider.external() {
            return Ok(());
        }
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let (name, model) = (provider.name(), provider.model());
        let listed =
            |list: &[String], what: &str| list.is_empty() || list.iter().any(|l| l == what);
        let why = if !limits.allow_external {
            "models.allowExternal is not set"
        } else if !run_allows {
            "policy.allowExternalLLMs is not set for this run"
        } else if !listed(&limits.providers, name) {
            "models.providers does not name the provider"
        } else if !listed(&limits.models, model) {
            "models.models does not name the model"
        } else {
            return Ok(());
        };
        Err(Failure::new(
            Reason::ExternalDenied,
            format!("{name} runs outside this machine, and {why}"),
        ))
    }

    /// Returns the time to wait before the next request; `None` when it may be made now, which
    /// counts it.
    pub fn wait(&self, now: Instant) -> Result<Option<Duration>, Failure> {
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner);
        let (tokens, micro_usd) = self.day(now);
        if limits.tokens_per_day.is_some_and(|cap| tokens >= cap) {
            let text = format!(
                "{tokens} tokens were used within 24 hours; models.maxTokensPerDay is reached"
            );
            return Err(Failure::new(Reason::BudgetExceeded, text));
        }
        spending::require(micro_usd, limits.cost.day, "the last day", "models.maxUsdPerDay")?;
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        while requests.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            requests.pop_front();
        }
        let full = requests.len() >= limits.requests_per_minute.max(1) as usize;
        match requests.front().copied().filter(|_| full) {
            Some(first) => Ok(Some(MINUTE.saturating_sub(now.duration_since(first)))),
            None => {
                requests.push_back(now);
                Ok(None)
            }
        }
    }

    /// Returns the tokens and the cost of the last 24 hours, in millionths of a dollar.
    fn day(&self, now: Instant) -> (u64, u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.retain(|one| one.expires > now);
        spent.iter().fold((0, 0), |(tokens, cost), one| (tokens + one.tokens, cost + one.micro_usd))
    }

    /// Counts the tokens and the cost of an answer.
    pub fn spend(&self, usage: TokenUsage) {
        let tokens = usage.input_tokens + usage.output_tokens;
        self.add(Instant::now() + DAY, tokens, usage.cost_micro_usd.unwrap_or(0));
    }

    /// Adds the cost of an answer that was recorded `millis` ago, by an earlier daemon.
    pub fn add_earlier(&self, millis: u64, micro_usd: u64) {
        let rest = DAY.saturating_sub(Duration::from_millis(millis));
        self.add(Instant::now() + rest, 0, micro_usd);
    }

    fn add(&self, expires: Instant, tokens: u64, micro_usd: u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        // One entry per minute is precise enough to expire them after a day.
        let recent = |one: &&mut Spent| {
            expires.saturating_duration_since(one.expires) < MINUTE
                && one.expires.saturating_duration_since(expires) < MINUTE
        };
        match spent.back_mut().filter(recent) {
            Some(last) => {
                last.tokens += tokens;
                last.micro_usd += micro_usd;
            }
            None => spent.push_back(Spent { expires, tokens, micro_usd }),
        }
        while spent.len() > MAX_SPENT {
            spent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_token_limits_use_sliding_windows() {
        let gate = ModelGate::new(ModelLimits {
            requests_per_minute: 2,
            tokens_per_day: Some(10),
            ..ModelLimits::default()
        });
        let now = Instant::now();
        assert_eq!((gate.wait(now).unwrap(), gate.wait(now).unwrap()), (None, None));
        assert_eq!(gate.wait(now).unwrap(), Some(MINUTE));
        assert_eq!(gate.wait(now + MINUTE).unwrap(), None);
        gate.spend(TokenUsage { input_tokens: 4, output_tokens: 6, ..TokenUsage::default() });
        assert_eq!(gate.wait(now + MINUTE).unwrap_err().reason, Reason::BudgetExceeded);
    }

    #[test]
    fn cost_of_a_day_counts_what_an_earlier_daemon_spent() {
        let cost = CostLimits { day: Some(2.0), ..CostLimits::default() };
        let gate = ModelGate::new(ModelLimits { cost, ..ModelLimits::default() });
        let usage = TokenUsage { cost_micro_usd: Some(1_000_000), ..TokenUsage::default() };
        gate.spend(usage);
        gate.add_earlier(DAY.as_millis() as u64 - 5_000, 999_999);
        assert_eq!(gate.wait(Instant::now()).unwrap(), None);
        gate.add_earlier(DAY.as_millis() as u64 - 5_000, 1);
        let failure = gate.wait(Instant::now()).unwrap_err();
        assert!(failure.message.contains("2.00 USD") && failure.message.contains("maxUsdPerDay"));
        // The earlier part expires first.
        assert_eq!(gate.wait(Instant::now() + MINUTE).unwrap(), None);
    }
}
