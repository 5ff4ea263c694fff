//! Effort of a model's reasoning, in the words that providers share.

use crate::{LlmError, remote::Target};

/// Effort of a model's reasoning before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

/// Names of the efforts in requests and settings.
const NAMES: &[(&str, Effort)] = &[
    ("none", Effort::None),
    ("minimal", Effort::Minimal),
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("xhigh", Effort::XHigh),
    ("max", Effort::Max),
];

impl Effort {
    /// Parses a name.
    ///
    /// # Errors
    /// [`LlmError::Rejected`], which lists the names.
    pub fn parse(name: &str) -> Result<Self, LlmError> {
        let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, effort)| *effort);
        found.ok_or_else(|| {
            let all: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            let all = all.join(", ");
            LlmError::Rejected(format!("llm.reasoningEffort is {name:?}, not one of {all}"))
        })
    }

    /// Returns the name in requests.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, effort)| *effort == self).map_or("medium", |(name, _)| name)
    }

    /// Returns the tokens of reasoning for models that take a number instead of an effort.
    pub(crate) fn budget(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal => 1024,
            Self::Low => 2048,
            Self::Medium => 8192,
            Self::High => 16_384,
            Self::XHigh => 24_576,
            Self::Max => 32_768,
        }
    }
}

/// Returns the limit of tokens to request for an answer of at most `answer` tokens: reasoning counts
/// against it at every provider, so its tokens are added, up to the maximum of the model.
pub(crate) fn with_reasoning(answer: u32, target: &Target<'_>) -> u32 {
    let reasons = target.preset.is_some_and(|preset| preset.reasoning) || target.effort.is_some();
    if answer == 0 || !reasons {
        return answer;
    }
    let total = answer.saturating_add(target.effort.unwrap_or(Effort::High).budget());
    let most = target.preset.and_then(|preset| preset.max_output_tokens);
    let most = most.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX);
    total.min(most)
}

#[cfg(test)]
mod tests {
    use cairn_model_presets::Preset;

    use super::*;

    #[test]
    fn names_are_parsed_and_written() {
        for (name, effort) in NAMES {
            assert_eq!((Effort::parse(name).unwrap(), effort.name()), (*effort, *name));
        }
        let error = Effort::parse("lots").unwrap_err().to_string();
        assert!(error.contains("\"lots\"") && error.contains("xhigh"), "{error}");
    }

    #[test]
    fn reasoning_is_added_to_the_limit() {
        let preset =
            Preset { reasoning: true, max_output_tokens: Some(10_000), ..Preset::default() };
        let plain = Preset::default();
        for (answer, effort, preset, expected) in [
            (4096, None, None, 4096),
            (4096, None, Some(&plain), 4096),
            (4096, Some(Effort::Low), None, 6144),
            (4096, Some(Effort::None), Some(&preset), 4096),
            (1000, Some(Effort::Medium), Some(&preset), 9192),
            (4096, None, Some(&preset), 10_000),
            (0, Some(Effort::Max), Some(&preset), 0),
        ] {
            let target = Target { model: "m", context: None, preset, effort };
            assert_eq!(with_reasoning(answer, &target), expected, "{answer} {effort:?}");
        }
    }
}
