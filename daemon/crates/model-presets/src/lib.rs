//! Facts about language models that no request tells: context window, maximum answer, prices and
//! abilities.
//!
//! The program brings a file of them ([`Presets::bundled`]); a newer one, written by
//! [`Presets::import`] from the table that the package `litellm` carries, replaces it.

mod import;

use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use serde::{Deserialize, Serialize};

pub use import::ImportError;

/// Maximum bytes of a file of presets.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Providers in whose tables a model of a compatible server is looked up.
const HOSTED: &[&str] = &["openai", "anthropic", "gemini", "deepseek", "mistral", "xai"];

/// Facts about one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preset {
    /// Tokens of prompt and answer together, or of the prompt where a provider counts it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Prices of a request whose prompt is longer than a number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_price: Option<LongPrice>,
    #[serde(skip_serializing_if = "is_false")]
    pub images: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub tools: bool,
    /// The model thinks before it answers, or can.
    #[serde(skip_serializing_if = "is_false")]
    pub reasoning: bool,
    /// Thinking is set by an effort, instead of by a number of tokens.
    #[serde(skip_serializing_if = "is_false")]
    pub adaptive_thinking: bool,
    /// The provider refuses a temperature.
    #[serde(skip_serializing_if = "is_false")]
    pub fixed_sampling: bool,
    /// The provider takes a JSON Schema for the answer.
    #[serde(skip_serializing_if = "is_false")]
    pub structured_output: bool,
    /// Last day on which the provider serves the model, as `2026-12-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated_from: Option<String>,
}

/// Prices in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Prompt tokens read from the provider's cache; as `input` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}

/// Prices above a length of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LongPrice {
    /// Prompt tokens above which these prices apply to the request.
    pub above_tokens: u64,
    #[serde(flatten)]
    pub price: Price,
}

/// A file of presets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presets {
    /// Origin of the facts, with its version.
    pub source: String,
    /// Day of the facts, as `2026-11-26`.
    pub date: String,
    /// Models by provider and name.
    pub providers: BTreeMap<String, BTreeMap<String, Preset>>,
}

/// A file of presets that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PresetsError {
    #[error("{path} cannot be read: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error("{path} has {bytes} bytes; at most {MAX_FILE} are read")]
    TooLarge { path: String, bytes: u64 },
    #[error("{path} is not a file of presets: {error}")]
    Malformed { path: String, error: serde_json::Error },
}

fn is_false(value: &bool) -> bool {
    !value
}

static BUNDLED: LazyLock<Presets> = LazyLock::new(|| {
    // A test reads the same bytes, so the default is never taken.
    serde_json::from_str(include_str!("presets.json")).unwrap_or_default()
});

impl Presets {
    /// Returns the presets that the program brings.
    pub fn bundled() -> &'static Self {
        &BUNDLED
    }

    /// Reads a file of presets; `None` if there is none.
    ///
    /// # Errors
    /// See [`PresetsError`].
    pub fn read(path: &Path) -> Result<Option<Self>, PresetsError> {
        let name = || path.display().to_string();
        let text = match std::fs::metadata(path) {
            Ok(data) if data.len() > MAX_FILE => {
                return Err(PresetsError::TooLarge { path: name(), bytes: data.len() });
            }
            Ok(_) => std::fs::read_to_string(path),
            Err(error) => Err(error),
        };
        match text {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| PresetsError::Malformed { path: name(), error }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PresetsError::Unreadable { path: name(), error }),
        }
    }

    /// Writes a file of presets: complete, or not at all.
    ///
    /// # Errors
    /// Fails when the folder is not writable.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        let partial = path.with_extension("json.partial");
        std::fs::write(&partial, text)?;
        std::fs::rename(&partial, path)
    }

    /// Finds a model of a provider: by its name, or by the longest name of which it is a version,
    /// as `claude-haiku-4-5` of `claude-haiku-4-5-20251001`. A compatible server's models are found
    /// by their exact names only.
    pub fn find(&self, provider: &str, model: &str) -> Option<&Preset> {
        if provider == "openai-compatible" {
            let mut tables = HOSTED.iter().filter_map(|name| self.providers.get(*name));
            return tables.find_map(|models| models.get(model));
        }
        let models = self.providers.get(provider)?;
        models.get(model).or_else(|| {
            let is_version_of = |name: &str| {
                let rest = model.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
                rest.is_some_and(is_version)
            };
            let fitting = models.iter().filter(|(name, _)| is_version_of(name));
            fitting.max_by_key(|(name, _)| name.len()).map(|(_, preset)| preset)
        })
    }

    /// Number of models of all providers.
    pub fn len(&self) -> usize {
        self.providers.values().map(BTreeMap::len).sum()
    }

    /// True if there is no model.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// True for the rest of a name that is a date, a number, `latest` or `preview`.
fn is_version(rest: &str) -> bool {
    let mut words = rest.split('-');
    words.all(|word| {
        matches!(word, "latest" | "preview" | "exp")
            || (!word.is_empty() && word.chars().all(|c| c.is_ascii_digit()))
    })
}

impl Preset {
    /// Returns the cost of a request in millionths of a US dollar, rounded up; `None` if the price
    /// is not known. `input_tokens` include the `cached_tokens`.
    pub fn cost(&self, input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> Option<u64> {
        let long = self.long_price.filter(|long| input_tokens > long.above_tokens);
        let price = long.map(|long| long.price).or(self.price)?;
        let cached = cached_tokens.min(input_tokens);
        // Tokens times dollars for a million tokens are millionths of a dollar.
        let cost = (input_tokens - cached) as f64 * price.input
            + cached as f64 * price.cached.unwrap_or(price.input)
            + output_tokens as f64 * price.output;
        Some(cost.ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_presets_have_the_default_models() {
        let presets: Presets = serde_json::from_str(include_str!("presets.json")).unwrap();
        assert_eq!(&presets, Presets::bundled());
        assert!(presets.len() > 100 && presets.source.contains("litellm"), "{}", presets.len());
        for provider in ["openai", "anthropic", "gemini"] {
            for (name, preset) in &presets.providers[provider] {
                let price = preset.price.unwrap_or_default();
                assert!(price.output >= price.input, "{name}: {price:?}");
                assert!(preset.context_tokens.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn model_is_found_by_name_or_version() {
        let preset =
            |context_tokens| Preset { context_tokens: Some(context_tokens), ..Preset::default() };
        let models = [("m-1", 1), ("m-1-mini", 2), ("other", 3)];
        let models = models.map(|(name, tokens)| (name.to_owned(), preset(tokens)));
        let presets = Presets {
            providers: [("openai".to_owned(), BTreeMap::from(models))].into(),
            ..Presets::default()
        };
        for (provider, model, tokens) in [
            ("openai", "m-1", Some(1)),
            ("openai", "m-1-2026-01-02", Some(1)),
            ("openai", "m-1-preview-05", Some(1)),
            ("openai", "m-1-mini-20260102", Some(2)),
            ("openai", "m-1-nano", None),
            ("openai", "m-12", None),
            ("openai-compatible", "other", Some(3)),
            ("openai-compatible", "other-1", None),
            ("ollama", "m-1", None),
        ] {
            let found = presets.find(provider, model).and_then(|preset| preset.context_tokens);
            assert_eq!(found, tokens, "{provider} {model}");
        }
    }

    #[test]
    fn cost_counts_cached_and_long_prompts() {
        let price = Price { input: 3.0, output: 15.0, cached: Some(0.3) };
        let long = LongPrice { above_tokens: 200_000, price: Price { input: 6.0, ..price } };
        let preset = Preset { price: Some(price), long_price: Some(long), ..Preset::default() };
        assert_eq!(preset.cost(1_000, 0, 100), Some(4_500));
        assert_eq!(preset.cost(1_000, 900, 0), Some(570));
        assert_eq!(preset.cost(1, 0, 0), Some(3));
        assert_eq!(preset.cost(200_001, 0, 0), Some(1_200_006));
        // More cached tokens than tokens are a provider's mistake.
        assert_eq!(preset.cost(10, 20, 0), Some(3));
        assert_eq!(Preset::default().cost(1, 0, 1), None);
    }

    #[test]
    fn file_is_read_or_its_error_names_it() {
        let folder = std::env::temp_dir().join(format!("cairn-presets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("presets.json");
        assert!(Presets::read(&path).unwrap().is_none());
        std::fs::write(&path, serde_json::to_vec(Presets::bundled()).unwrap()).unwrap();
        assert_eq!(Presets::read(&path).unwrap().as_ref(), Some(Presets::bundled()));
        std::fs::write(&path, "{\"source\": 1}").unwrap();
        let error = Presets::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("presets.json") && error.contains("not a file of presets"),
            "{error}"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
