//! Construction of a provider from settings.

use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use cairn_model_presets::Presets;

use crate::{
    Effort, Key, Launcher, Limits, LlmError, Provider, Scripted,
    anthropic::Anthropic,
    apple,
    catalog::{self, KnownProvider},
    endpoint::Endpoint,
    gemini::Gemini,
    llama,
    ollama::Ollama,
    openai::{OpenAi, OpenAiApi},
    optional::RefusedFields,
    program::{Kind, Program},
    refusal::way_out,
    remote::{Dialect, Remote},
    retry::Schedule,
    schema_calls::SchemaCalls,
    server::{Server, client},
};

/// Form in which a model makes tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolCalls {
    /// The form of the provider.
    #[default]
    Native,
    /// JSON that a schema forces, for models that fail at the native form.
    Schema,
}

/// Model to use, with its time limits and retries.
#[derive(Clone)]
pub struct Settings {
    /// Name or alias from [`crate::providers`].
    pub provider: String,
    /// Name of the model. If empty, the provider's default; for `openai-compatible`, the first one
    /// that the server lists.
    pub model: String,
    /// URL, with or without scheme and version; the provider's own when absent. For `scripted`,
    /// the path of the script.
    pub endpoint: Option<String>,
    pub key: Option<Key>,
    /// API of `openai` and `openai-compatible`.
    pub api: OpenAiApi,
    /// Effort of reasoning; the model's own when absent.
    pub reasoning_effort: Option<Effort>,
    /// Form of tool calls.
    pub tool_calls: ToolCalls,
    /// Known facts about models.
    pub presets: Arc<Presets>,
    /// Context size of the model in tokens, where the user overrides the provider's value. Ollama
    /// is configured with that size.
    pub context_tokens: Option<u64>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Maximum time without a byte, including the time before the first one.
    pub idle_timeout: Duration,
    /// Maximum time of an answer including all attempts.
    pub total_timeout: Duration,
    /// Attempts before the first chunk, limited to 1..=101.
    pub attempts: u32,
    /// Pause before the second attempt; it doubles each time, up to one minute.
    pub backoff: Duration,
    /// Maximum sizes of lines and answers.
    pub limits: Limits,
    /// URL of a proxy for endpoints outside the private network. The environment is ignored.
    pub proxy: Option<String>,
    /// Launcher for the programs of `claudeCode` and `codex`; without one they are unavailable.
    pub launcher: Option<Arc<dyn Launcher>>,
}

impl fmt::Debug for Settings {
    /// Omits everything that may hold a password: the key, and the part before an `@` in a URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redacted = |url: &Option<String>| {
            let url = url.as_deref()?;
            Some(
                url.rsplit_once('@')
                    .map_or_else(|| url.to_owned(), |(_, host)| format!("***@{host}")),
            )
        };
        f.debug_struct("Settings")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("endpoint", &redacted(&self.endpoint))
            .field("key", &self.key)
            .field("api", &self.api)
            .field("reasoning_effort", &self.reasoning_effort)
            .field("context_tokens", &self.context_tokens)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("attempts", &self.attempts)
            .field("backoff", &self.backoff)
            .field("limits", &self.limits)
            .field("proxy", &redacted(&self.proxy))
            .finish()
    }
}

impl Default for Settings {
    /// Ollama on this machine; 10 s to connect, 120 s without a byte, 15 minutes in total, and 3
    /// attempts with half a second before the second one.
    fn default() -> Self {
        Self {
            provider: "ollama".into(),
            model: String::new(),
            endpoint: None,
            key: None,
            api: OpenAiApi::default(),
            reasoning_effort: None,
            tool_calls: ToolCalls::default(),
            presets: Arc::new(Presets::bundled().clone()),
            context_tokens: None,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(15 * 60),
            attempts: 3,
            backoff: Duration::from_millis(500),
            limits: Limits::default(),
            proxy: None,
            launcher: None,
        }
    }
}

/// Maximum number of attempts that can be set.
const MAX_ATTEMPTS: u32 = 101;

/// Creates a provider from settings, without network access.
///
/// # Errors
/// [`LlmError::UnknownProvider`]; [`LlmError::Unauthorized`] without a key where one is required;
/// [`LlmError::Rejected`] for an unusable endpoint or an unreadable script;
/// [`LlmError::NotSupported`] for `apple`, for `llamaCpp` in a build without it, and for a
/// command-line agent that is not configured.
pub fn connect(settings: &Settings) -> Result<Arc<dyn Provider>, LlmError> {
    let provider = connect_native(settings)?;
    Ok(match settings.tool_calls {
        ToolCalls::Native => provider,
        ToolCalls::Schema => Arc::new(SchemaCalls(provider)),
    })
}

fn connect_native(settings: &Settings) -> Result<Arc<dyn Provider>, LlmError> {
    let known =
        catalog::find_provider(&settings.provider).ok_or_else(|| LlmError::UnknownProvider {
            name: settings.provider.clone(),
            known: catalog::providers().iter().map(|known| known.name.to_owned()).collect(),
        })?;
    match known.name {
        "apple" => Err(apple::not_supported()),
        "scripted" => script(settings).map(|script| Arc::new(script) as Arc<dyn Provider>),
        "llamaCpp" => llama::connect(settings),
        "claudeCode" => program(settings, known, Kind::ClaudeCode),
        "codex" => program(settings, known, Kind::Codex),
        "ollama" => remote(settings, known, Box::new(Ollama)),
        "anthropic" => remote(settings, known, Box::new(Anthropic)),
        "gemini" => remote(settings, known, Box::new(Gemini)),
        name => remote(settings, known, Box::new(OpenAi { name, api: settings.api })),
    }
}

/// True if calls with these settings leave this machine, decided without connecting. True if that
/// is unknown.
pub fn is_external(provider: &str, endpoint: Option<&str>) -> bool {
    let Some(known) = catalog::find_provider(provider) else { return true };
    match known.name {
        "apple" | "llamaCpp" | "scripted" => return false,
        // The program itself runs locally, but sends the prompt to its vendor.
        "claudeCode" | "codex" => return true,
        _ => {}
    }
    let endpoint = endpoint
        .or(known.endpoint)
        .and_then(|text| Endpoint::parse(text, version(known.name)).ok());
    endpoint.is_none_or(|endpoint| endpoint.external())
}

/// Returns the version in the paths of a provider's API, where the address has none.
fn version(provider: &str) -> Option<&'static str> {
    match provider {
        "ollama" => None,
        "gemini" => Some("/v1beta"),
        _ => Some("/v1"),
    }
}

fn script(settings: &Settings) -> Result<Scripted, LlmError> {
    let missing =
        || LlmError::Rejected("scripted requires the path of a script as its endpoint".into());
    let path = settings.endpoint.as_deref().ok_or_else(missing)?;
    let script = Scripted::read(Path::new(path.strip_prefix("file://").unwrap_or(path)))?;
    Ok(if settings.model.is_empty() { script } else { script.with_model(&settings.model) })
}

fn program(
    settings: &Settings,
    known: &KnownProvider,
    kind: Kind,
) -> Result<Arc<dyn Provider>, LlmError> {
    let none =
        || LlmError::NotSupported(format!("{}: this host does not start programs", known.name));
    let launcher = settings.launcher.clone().ok_or_else(none)?;
    if settings.endpoint.is_some() {
        let text =
            format!("{} is a local program and has no endpoint: remove llm.endpoint", known.name);
        return Err(LlmError::Rejected(text));
    }
    launcher.check(known.name)?;
    Ok(Arc::new(Program {
        kind,
        model: settings.model.clone(),
        launcher,
        context: settings.context_tokens,
        limits: settings.limits,
        idle: settings.idle_timeout,
        total: settings.total_timeout,
    }))
}

fn remote(
    settings: &Settings,
    known: &'static KnownProvider,
    dialect: Box<dyn Dialect>,
) -> Result<Arc<dyn Provider>, LlmError> {
    let missing =
        || LlmError::Rejected(format!("{} needs an endpoint: set llm.endpoint", known.name));
    let address = settings.endpoint.as_deref().or(known.endpoint).ok_or_else(missing)?;
    let endpoint = Endpoint::parse(address, version(known.name))?;
    let who = format!("{} at {endpoint}", known.name);
    let key_variable = known.key_variables.first().copied();
    if settings.key.is_none() && known.needs_key && endpoint.distant() {
        let text = format!("{} needs a key{}", known.name, way_out(key_variable));
        return Err(LlmError::Unauthorized(text));
    }
    if settings.key.is_some() && endpoint.distant() && !endpoint.encrypted() {
        return Err(LlmError::Rejected(format!(
            "the key would be sent to {who} unencrypted: use https"
        )));
    }
    let headers = dialect.headers(settings.key.as_ref())?;
    // Created last because reading the system's certificates takes a while.
    let client = client(&endpoint, settings.connect_timeout, settings.proxy.as_deref())?;
    let provider = known.name;
    let is_easyai = Default::default();
    let server = Server { client, headers, who, provider, key_variable, is_easyai };
    let model = if settings.model.is_empty() { known.default_model } else { &settings.model };
    Ok(Arc::new(Remote {
        dialect,
        server: Arc::new(server),
        endpoint,
        key: settings.key.clone(),
        model: model.to_owned(),
        chosen: OnceLock::new(),
        context: settings.context_tokens,
        effort: settings.reasoning_effort,
        presets: Arc::clone(&settings.presets),
        learnt: 0.into(),
        context_queries: 0.into(),
        is_llama: false.into(),
        refused: RefusedFields::default(),
        schedule: Schedule {
            attempts: settings.attempts.clamp(1, MAX_ATTEMPTS),
            base: settings.backoff,
        },
        limits: settings.limits,
        idle: settings.idle_timeout,
        total: settings.total_timeout,
    }))
}
