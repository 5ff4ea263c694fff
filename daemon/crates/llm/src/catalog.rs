//! The providers there are, as data.

/// What is known of a provider before anything is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    /// Its name.
    pub name: &'static str,
    /// Where it is reached unless told otherwise; `None` when a URL (or a file) must be given, or none is needed.
    pub endpoint: Option<&'static str>,
    /// The model that is used unless told otherwise; empty when the server's first one is.
    pub default_model: &'static str,
    /// Environment variables that may hold its key, best first.
    pub key_variables: &'static [&'static str],
    /// Whether its own service wants a key. A server on this machine or network does not.
    pub needs_key: bool,
    /// Whether calls leave this machine and its network, as long as the endpoint is the one named here.
    pub external: bool,
    /// Other names it goes by.
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
        default_model: "gpt-5-mini",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        external: true,
        aliases: &[],
    },
    KnownProvider {
        name: "anthropic",
        endpoint: Some("https://api.anthropic.com"),
        default_model: "claude-sonnet-4-5",
        key_variables: &["ANTHROPIC_API_KEY"],
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

/// Every provider.
pub fn providers() -> &'static [KnownProvider] {
    PROVIDERS
}

/// The provider of that name or alias.
pub fn find_provider(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

/// Context of model families whose providers do not tell it: beginning of the model's name, tokens. The longest
/// beginning counts.
const CONTEXTS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// Tokens of a hosted model's context, where its family is known.
pub(crate) fn family_context(model: &str) -> Option<u64> {
    let fitting = CONTEXTS.iter().filter(|(beginning, _)| model.starts_with(beginning));
    fitting.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens)
}
