//! Models as the engine uses them: their source, and the limits on requests to them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    turn::{ModelChoice, ProviderInfo},
};

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
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            allow_external: false,
            providers: vec![],
            models: vec![],
            requests_per_minute: 60,
            tokens_per_day: None,
        }
    }
}

/// Counter of requests and tokens.
pub(crate) struct ModelGate {
    limits: RwLock<ModelLimits>,
    requests: Mutex<VecDeque<Instant>>,
    spent: Mutex<VecDeque<(Instant, u64)>>,
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl ModelGate {
    pub fn new(limits: ModelLimits) -> Self {
        Self { limits: RwLock::new(limits), requests: Mutex::default(), spent: Mutex::default() }
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
        if let Some(cap) = limits.tokens_per_day {
            let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
            while spent.front().is_some_and(|(at, _)| now.duration_since(*at) > DAY) {
                spent.pop_front();
            }
            let sum: u64 = spent.iter().map(|(_, tokens)| tokens).sum();
            if sum >= cap {
                let text = format!(
                    "{sum} tokens were used within 24 hours; models.maxTokensPerDay is reached"
                );
                return Err(Failure::new(Reason::BudgetExceeded, text));
            }
        }
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

    /// Counts the tokens of an answer.
    pub fn spend(&self, tokens: u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        // One entry per minute is precise enough to expire them after a day.
        match spent.back_mut().filter(|(at, _)| at.elapsed() < MINUTE) {
            Some((_, sum)) => *sum += tokens,
            None => spent.push_back((Instant::now(), tokens)),
        }
        while spent.len() > 2000 {
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
        gate.spend(10);
        assert_eq!(gate.wait(now + MINUTE).unwrap_err().reason, Reason::BudgetExceeded);
    }
}
