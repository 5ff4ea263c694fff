//! Table of the supported providers.

/// Properties of a provider that are known without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    pub name: &'static str,
    /// Default endpoint; `None` when a URL (or a file) must be configured, or none is required.
    pub endpoint: Option<&'static str>,
    /// Default model; empty to use the server's first one.
    pub default_model: &'static str,
    /// Environment variables that may hold the key, in order of preference.
    pub key_variables: &'static [&'static str],
    /// True if the provider's own service requires a key; a server on this machine or its network
    /// does not.
    pub needs_key: bool,
    /// True if calls to the default endpoint leave this machine.
    pub external: bool,
    /// Alternative names of the provider.
    pub aliases: &'static [&'static str],
}

const PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "ollama",
        endpoint: Some("http://localhost:11434"),
        default_model: "qwen3:14b",
        key_variables: &["OLLAMA_API_KEY"],
        needs_key: false,
        external: false,
        aliases: &[],
    },
    KnownProvider {
        name: "openai",
        endpoint: Some("https://api.openai.com/v1"),
        default_model: "gpt-5.6-terra",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        external: true,
        aliases: &[],
    },
    KnownProvider {
        name: "anthropic",
        endpoint: Some("https://api.anthropic.com"),
        default_model: "claude-sonnet-5-5",
        key_variables: &["ANTHROPIC_API_KEY"],
        needs_key: true,
        external: true,
        aliases: &[],
    },
    KnownProvider {
        name: "gemini",
        endpoint: Some("https://generativelanguage.googleapis.com/v1beta"),
        default_model: "gemini-3.8-flash",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        needs_key: true,
        external: true,
        aliases: &["google"],
    },
    KnownProvider {
        name: "openrouter",
        endpoint: Some("https://openrouter.ai/api/v1"),
        default_model: "openrouter/auto",
        key_variables: &["OPENROUTER_API_KEY"],
        needs_key: true,
        external: true,
        aliases: &[],
    },
    KnownProvider {
        name: "openai-compatible",
        endpoint: None,
        default_model: "",
        key_variables: &["OPENAI_COMPATIBLE_API_KEY"],
        needs_key: false,
        external: true,
        aliases: &["openaiCompatible"],
    },
    KnownProvider {
        name: "apple",
        endpoint: None,
        default_model: "foundation",
        key_variables: &[],
        needs_key: false,
        external: false,
        aliases: &["appleOnDevice"],
    },
    KnownProvider {
        name: "llamaCpp",
        endpoint: None,
        default_model: "",
        key_variables: &[],
        needs_key: false,
        external: false,
        aliases: &["llama-cpp"],
    },
    KnownProvider {
        name: "claudeCode",
        endpoint: None,
        default_model: "",
        key_variables: &[],
        needs_key: false,
        external: true,
        aliases: &["claude-code"],
    },
    KnownProvider {
        name: "codex",
        endpoint: None,
        default_model: "",
        key_variables: &[],
        needs_key: false,
        external: true,
        aliases: &[],
    },
    KnownProvider {
        name: "scripted",
        endpoint: None,
        default_model: "script",
        key_variables: &[],
        needs_key: false,
        external: false,
        aliases: &[],
    },
];

pub fn providers() -> &'static [KnownProvider] {
    PROVIDERS
}

/// Finds a provider by name or alias.
pub fn find_provider(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

/// Context sizes of model families, for models that neither the provider nor the presets know: name
/// prefix and tokens. The longest matching prefix wins.
const CONTEXTS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gemini-", 1_048_576),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 272_000),
    ("gpt-6", 272_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// Returns the context size of a hosted model in tokens, if its family is known.
pub(crate) fn family_context(model: &str) -> Option<u64> {
    let fitting = CONTEXTS.iter().filter(|(beginning, _)| model.starts_with(beginning));
    fitting.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens)
}
