//! The model providers of the configuration.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::{AgentConfig, Config, LlmApi, LlmConfig, LlmToolCalls};
use cairn_engine::model::{Models, Provider};
use cairn_llm::{Effort, Key, Launcher, OpenAiApi, Settings, ToolCalls};
use cairn_model_presets::Presets;
use cairn_protocol::{
    error::{Failure, Reason},
    turn::{ModelChoice, ProviderInfo},
};

use crate::keychain::Keychain;

/// Maximum time for one answer, however much of it arrives.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(30 * 60);

/// The providers of a configuration.
pub struct ConfiguredProviders {
    llm: LlmConfig,
    agent: AgentConfig,
    /// The endpoint, if the user set one.
    endpoint: Option<String>,
    allow_external: bool,
    /// The source of the key, if the user set a command.
    keychain: Option<Keychain>,
    /// The size of the context in tokens, for Ollama: the client sets it, and the server cuts longer
    /// prompts silently. Other providers report theirs.
    context: Option<u64>,
    /// Known facts about models.
    presets: Arc<Presets>,
    /// Launcher that starts command-line agents.
    launcher: Arc<dyn Launcher>,
    /// Connected providers, which retain their connections (and a scripted one its position).
    connected: Mutex<HashMap<String, Arc<dyn Provider>>>,
}

/// Maximum number of connected providers.
const MAX_CONNECTED: usize = 64;

impl ConfiguredProviders {
    /// Creates the providers of `config`; `launcher` starts its command-line agents.
    pub fn new(config: &Config, presets: Arc<Presets>, launcher: Arc<dyn Launcher>) -> Self {
        let llm = config.llm.clone();
        // The default endpoint is Ollama's; it must not apply to other providers.
        let set = llm.endpoint.clone().filter(|e| {
            llm.provider == "ollama" || Some(e) != LlmConfig::default().endpoint.as_ref()
        });
        let allow_external = config.models.allow_external;
        let limit = config.context.max_tokens;
        let context = (limit > 0).then(|| u64::from(limit));
        let command = llm.api_key_command.clone();
        let keychain = (!command.is_empty()).then(|| Keychain::start(command));
        let agent = config.agent.clone();
        let connected = Mutex::default();
        Self {
            endpoint: set,
            llm,
            agent,
            allow_external,
            keychain,
            context,
            presets,
            launcher,
            connected,
        }
    }

    fn endpoint(&self, choice: &ModelChoice) -> Option<String> {
        let configured =
            (choice.provider == self.llm.provider).then(|| self.endpoint.clone()).flatten();
        choice.endpoint.clone().or(configured)
    }

    /// Returns the key of a provider. A client with a custom endpoint gets none, because keys are
    /// meant for the configured one.
    fn key(&self, choice: &ModelChoice) -> Result<Option<Key>, Failure> {
        let own = choice.provider == self.llm.provider;
        if choice.endpoint.is_some() && choice.endpoint != self.endpoint {
            return Ok(None);
        }
        if let Some(key) = self.llm.api_key.as_ref().filter(|_| own) {
            return Ok(Key::new(key.clone()));
        }
        let file = self.llm.api_key_file.clone().filter(|_| own);
        let configured_key = cairn_llm::find_key(
            &choice.provider,
            |name| std::env::var(name).ok(),
            file.as_deref(),
        )?;
        match (&self.keychain, configured_key) {
            (Some(keychain), None) if own => keychain.key().map(Some),
            (_, configured_key) => Ok(configured_key),
        }
    }

    fn settings(&self, choice: &ModelChoice) -> Result<Settings, Failure> {
        let own = choice.provider == self.llm.provider;
        let configured = if own { self.llm.model.clone() } else { String::new() };
        // The default model is Ollama's, like the default endpoint.
        let foreign = self.llm.provider != "ollama" && configured == LlmConfig::default().model;
        let configured = if foreign { String::new() } else { configured };
        // An agent sends little before its answer, so only the total time is limited.
        let agent = self
            .llm
            .agents
            .get(&choice.provider)
            .map(|a| Duration::from_secs(a.timeout_seconds.max(1)));
        Ok(Settings {
            provider: choice.provider.clone(),
            model: if choice.model.is_empty() { configured } else { choice.model.clone() },
            endpoint: self.endpoint(choice),
            key: self.key(choice)?,
            api: match self.llm.api {
                LlmApi::Chat => OpenAiApi::Chat,
                LlmApi::Responses => OpenAiApi::Responses,
            },
            reasoning_effort: self
                .llm
                .reasoning_effort
                .as_deref()
                .map(Effort::parse)
                .transpose()?,
            tool_calls: match self.llm.tool_calls {
                LlmToolCalls::Native => ToolCalls::Native,
                LlmToolCalls::Schema => ToolCalls::Schema,
            },
            presets: Arc::clone(&self.presets),
            idle_timeout: agent.unwrap_or(Duration::from_secs(self.llm.timeout_seconds.max(1))),
            total_timeout: agent.unwrap_or(MAX_ANSWER_TIME),
            context_tokens: self.context.filter(|_| choice.provider == "ollama"),
            attempts: self.agent.retry_attempts.saturating_add(1),
            backoff: Duration::from_millis(self.agent.retry_backoff_base_ms),
            launcher: Some(Arc::clone(&self.launcher)),
            ..Settings::default()
        })
    }
}

impl Models for ConfiguredProviders {
    fn default_choice(&self) -> ModelChoice {
        let provider = self.llm.provider.clone();
        let mut choice = ModelChoice { provider, ..ModelChoice::default() };
        choice.model = self.settings(&choice).map(|s| s.model).unwrap_or_default();
        choice
    }

    fn provider(&self, choice: &ModelChoice) -> Result<Arc<dyn Provider>, Failure> {
        if choice.provider.is_empty() {
            return Err(Failure::new(Reason::ProviderUnknown, "no provider is chosen"));
        }
        let key = serde_json::to_string(choice).unwrap_or_default();
        let connected = || self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = connected().get(&key) {
            return Ok(Arc::clone(provider));
        }
        let provider = cairn_llm::connect(&self.settings(choice)?)?;
        let mut all = connected();
        if all.len() >= MAX_CONNECTED {
            all.clear();
        }
        // If another task connected meanwhile, all share one provider.
        Ok(Arc::clone(all.entry(key).or_insert(provider)))
    }

    fn list(&self) -> Vec<ProviderInfo> {
        let info = |known: &cairn_llm::KnownProvider| {
            let choice = ModelChoice { provider: known.name.into(), ..ModelChoice::default() };
            let endpoint = self.endpoint(&choice).or(known.endpoint.map(str::to_owned));
            let external = cairn_llm::is_external(known.name, endpoint.as_deref());
            let ready = self.provider(&choice);
            let images = ready.as_ref().is_ok_and(|p| p.takes_images());
            let ready = ready.map(|p| p.model().to_owned());
            let reason = match &ready {
                Err(failure) => Some(failure.message.clone()),
                Ok(_) if external && !self.allow_external => Some(
                    "it runs outside this machine, and models.allowExternal is not set".to_owned(),
                ),
                Ok(_) => None,
            };
            let default_model =
                ready.ok().or(Some(known.default_model.to_owned())).filter(|m| !m.is_empty());
            ProviderInfo {
                name: known.name.into(),
                endpoint,
                external,
                available: reason.is_none(),
                reason,
                default_model,
                images,
            }
        };
        cairn_llm::providers().iter().map(info).collect()
    }
}

#[cfg(test)]
mod tests {
    use cairn_llm::{Launch, LlmError, Running};

    use super::*;

    struct NoPrograms;

    #[async_trait::async_trait]
    impl Launcher for NoPrograms {
        fn check(&self, provider: &str) -> Result<(), LlmError> {
            Err(LlmError::NotSupported(format!("{provider} is not set up")))
        }
        async fn launch(&self, launch: Launch) -> Result<Running, LlmError> {
            self.check(launch.provider).map(|()| unreachable!())
        }
    }

    fn presets() -> Arc<Presets> {
        Arc::new(Presets::bundled().clone())
    }

    fn configured(
        provider: &str,
        endpoint: Option<&str>,
        key: Option<&str>,
    ) -> ConfiguredProviders {
        let mut config = Config::default();
        config.llm.provider = provider.into();
        if let Some(endpoint) = endpoint {
            config.llm.endpoint = Some(endpoint.into());
        }
        config.llm.api_key = key.map(str::to_owned);
        ConfiguredProviders::new(&config, presets(), Arc::new(NoPrograms))
    }

    fn choice(provider: &str, model: &str, endpoint: Option<&str>) -> ModelChoice {
        ModelChoice {
            provider: provider.into(),
            model: model.into(),
            endpoint: endpoint.map(str::to_owned),
        }
    }

    #[test]
    fn provider_defaults_do_not_apply_to_others() {
        let models = configured("anthropic", None, Some("k"));
        assert_eq!(models.endpoint(&choice("anthropic", "", None)), None);
        assert!(
            models.default_choice().model.is_empty()
                || models.default_choice().model.starts_with("claude")
        );
        let models = configured("ollama", None, None);
        assert_eq!(models.endpoint(&choice("ollama", "", None)).unwrap(), "http://localhost:11434");
        assert_eq!(models.endpoint(&choice("openai", "", None)), None);
        assert_eq!(models.default_choice().model, "qwen3:14b");
    }

    #[test]
    fn ollama_gets_its_context_size_whichever_provider_is_configured() {
        for provider in ["ollama", "openai", "anthropic"] {
            let models = configured(provider, None, Some("k"));
            let settings = |name: &str| models.settings(&choice(name, "m", None)).unwrap();
            assert_eq!(settings("ollama").context_tokens, None, "{provider}: the model's own");
            let mut config = Config::default();
            config.llm.provider = provider.into();
            config.context.max_tokens = 20_000;
            let models = ConfiguredProviders::new(&config, presets(), Arc::new(NoPrograms));
            let settings = |name: &str| models.settings(&choice(name, "m", None)).unwrap();
            assert_eq!(settings("ollama").context_tokens, Some(20_000), "{provider}");
            assert_eq!(settings("anthropic").context_tokens, None, "{provider}");
        }
    }

    #[test]
    fn custom_endpoint_receives_no_key() {
        let models = configured("openai", None, Some("sk-secret"));
        assert!(models.key(&choice("openai", "", None)).unwrap().is_some());
        assert!(
            models.key(&choice("openai", "", Some("https://elsewhere.example"))).unwrap().is_none()
        );
    }

    #[test]
    fn key_command_applies_only_to_its_provider() {
        let mut config = Config::default();
        config.llm.provider = "openai-compatible".into();
        config.llm.api_key_command = vec!["/bin/echo".into(), "sk-from-the-keychain".into()];
        let models = ConfiguredProviders::new(&config, presets(), Arc::new(NoPrograms));
        assert!(models.key(&choice("openai-compatible", "", None)).unwrap().is_some());
        assert!(models.key(&choice("ollama", "", None)).unwrap().is_none());
        let elsewhere = choice("openai-compatible", "", Some("https://elsewhere.example"));
        assert!(models.key(&elsewhere).unwrap().is_none());
    }

    #[test]
    fn unknown_provider_error_lists_providers() {
        let failure =
            configured("ollama", None, None).provider(&choice("olama", "", None)).err().unwrap();
        assert_eq!(failure.reason, Reason::ProviderUnknown);
        assert!(
            failure.message.contains("ollama") && failure.message.contains("anthropic"),
            "{failure}"
        );
    }
}
