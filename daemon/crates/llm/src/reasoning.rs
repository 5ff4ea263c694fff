//! Reasoning that a provider requires back: signed, encrypted, and of use to its own model only.

use cairn_protocol::model::{ProviderReasoning, ReasoningItem};

/// Returns the items of an answer, if this model of this provider gave it.
pub(crate) fn items_of<'a>(
    reasoning: Option<&'a ProviderReasoning>,
    provider: &str,
    model: &str,
) -> &'a [ReasoningItem] {
    reasoning
        .filter(|reasoning| reasoning.provider == provider && reasoning.model == model)
        .map_or(&[], |reasoning| reasoning.items.as_slice())
}
