//! Import of the table of models that the Python package `litellm` carries:
//! `model_prices_and_context_window.json`, an object from names to facts, prices in US dollars for
//! a token.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{LongPrice, Preset, Presets, Price};

/// Names of providers: the table's and Cairn's.
const PROVIDERS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("xai", "xai"),
];
/// Kinds of models that chat.
const MODES: &[&str] = &["chat", "responses"];
/// Smallest number of models that a table must have: fewer are a sign of another format.
const MIN_MODELS: usize = 10;

/// A table that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the file is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "the file has {0} models of the known providers: it is neither a file of presets nor \
        litellm's model_prices_and_context_window.json"
    )]
    NoModels(usize),
}

impl Presets {
    /// Reads presets from a table of `litellm`, or from a file of presets.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn import(text: &str, source: &str, date: &str) -> Result<Self, ImportError> {
        let value: Value = serde_json::from_str(text)?;
        if value.get("providers").is_some() {
            let presets: Self = serde_json::from_value(value)?;
            return if presets.is_empty() { Err(ImportError::NoModels(0)) } else { Ok(presets) };
        }
        let mut presets =
            Self { source: source.to_owned(), date: date.to_owned(), providers: BTreeMap::new() };
        for (name, model) in value.as_object().into_iter().flatten() {
            let Some(model) = model.as_object() else { continue };
            let text = |field: &str| model.get(field).and_then(Value::as_str).unwrap_or_default();
            let provider = PROVIDERS.iter().find(|(theirs, _)| *theirs == text("litellm_provider"));
            let Some((theirs, ours)) = provider.filter(|_| MODES.contains(&text("mode"))) else {
                continue;
            };
            let prefix = format!("{theirs}/");
            let name = name.strip_prefix(&prefix).unwrap_or(name);
            // Fine-tuned models, and models of a region, which have a second prefix.
            if name.contains(['/', ':']) {
                continue;
            }
            // An entry without a window is a price of something else, such as a container.
            let preset = preset(model);
            if preset.context_tokens.is_some() {
                let models = presets.providers.entry((*ours).to_owned()).or_default();
                models.insert(name.to_owned(), preset);
            }
        }
        match presets.len() {
            few @ ..MIN_MODELS => Err(ImportError::NoModels(few)),
            _ => Ok(presets),
        }
    }
}

fn preset(model: &Map<String, Value>) -> Preset {
    let has = |field: &str| model.get(field).and_then(Value::as_bool);
    let tokens = |field: &str| model.get(field).and_then(Value::as_u64).filter(|n| *n > 0);
    Preset {
        context_tokens: tokens("max_input_tokens").or_else(|| tokens("max_tokens")),
        max_output_tokens: tokens("max_output_tokens"),
        price: price(model, ""),
        long_price: long_price(model),
        images: has("supports_vision") == Some(true),
        tools: has("supports_function_calling") == Some(true),
        reasoning: has("supports_reasoning") == Some(true),
        adaptive_thinking: has("supports_adaptive_thinking") == Some(true),
        fixed_sampling: has("supports_sampling_params") == Some(false),
        structured_output: has("supports_native_structured_output")
            .or_else(|| has("supports_response_schema"))
            == Some(true),
        deprecated_from: model
            .get("deprecation_date")
            .and_then(Value::as_str)
            .filter(|date| date.len() == 10)
            .map(str::to_owned),
    }
}

/// Returns the prices whose fields end with `suffix`.
fn price(model: &Map<String, Value>, suffix: &str) -> Option<Price> {
    let million = |field: &str| {
        let dollars = model.get(&format!("{field}{suffix}"))?.as_f64()?;
        // Rounded to a thousandth of a cent, which removes the noise of binary fractions.
        Some((dollars * 1e11).round() / 1e5)
    };
    Some(Price {
        input: million("input_cost_per_token")?,
        output: million("output_cost_per_token")?,
        cached: million("cache_read_input_token_cost"),
    })
}

fn long_price(model: &Map<String, Value>) -> Option<LongPrice> {
    let suffix = model.keys().find_map(|field| {
        let suffix = field.strip_prefix("input_cost_per_token")?;
        let number = suffix.strip_prefix("_above_")?.strip_suffix("k_tokens")?;
        Some((suffix, number.parse::<u64>().ok()?))
    });
    let (suffix, thousands) = suffix?;
    Some(LongPrice { above_tokens: thousands * 1000, price: price(model, suffix)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(extra: Value) -> String {
        let mut table = Map::new();
        for number in 0..MIN_MODELS {
            let model = json!({ "litellm_provider": "openai", "mode": "chat", "max_tokens": 5 });
            table.insert(format!("m{number}"), model);
        }
        table.extend(extra.as_object().unwrap().clone());
        Value::Object(table).to_string()
    }

    #[test]
    fn table_of_litellm_is_converted() {
        let text = table(json!({
            "gemini/g-1": {
                "litellm_provider": "gemini", "mode": "chat", "max_input_tokens": 1_048_576,
                "max_output_tokens": 65_536, "input_cost_per_token": 1.25e-6,
                "output_cost_per_token": 1e-5, "cache_read_input_token_cost": 1.25e-7,
                "input_cost_per_token_above_200k_tokens": 2.5e-6,
                "output_cost_per_token_above_200k_tokens": 1.5e-5,
                "supports_vision": true, "supports_function_calling": true,
                "supports_reasoning": true, "supports_sampling_params": false,
                "supports_response_schema": true, "deprecation_date": "2026-12-31"
            },
            "gemini/embed": { "litellm_provider": "gemini", "mode": "embedding" },
            "ft:gpt-4": { "litellm_provider": "openai", "mode": "chat" },
            "us/claude": { "litellm_provider": "anthropic", "mode": "chat" },
            "sample_spec": { "mode": "one of: chat, embedding" }
        }));
        let presets = Presets::import(&text, "a table", "2026-11-26").unwrap();
        assert_eq!((presets.source.as_str(), presets.len()), ("a table", MIN_MODELS + 1));
        let price = Price { input: 1.25, output: 10.0, cached: Some(0.125) };
        let long = Price { input: 2.5, output: 15.0, cached: None };
        let expected = Preset {
            context_tokens: Some(1_048_576),
            max_output_tokens: Some(65_536),
            price: Some(price),
            long_price: Some(LongPrice { above_tokens: 200_000, price: long }),
            images: true,
            tools: true,
            reasoning: true,
            adaptive_thinking: false,
            fixed_sampling: true,
            structured_output: true,
            deprecated_from: Some("2026-12-31".into()),
        };
        assert_eq!(presets.providers["gemini"]["g-1"], expected);
        assert_eq!(presets.providers["openai"]["m0"].context_tokens, Some(5));
        // The written form can be imported again.
        let text = serde_json::to_string(&presets).unwrap();
        assert_eq!(Presets::import(&text, "", "").unwrap(), presets);
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "[", "[]", "{}", "{\"a\": 1}", "{\"providers\": {}}", "{\"providers\": 1}"]
        {
            assert!(Presets::import(text, "", "").is_err(), "{text}");
        }
    }
}
