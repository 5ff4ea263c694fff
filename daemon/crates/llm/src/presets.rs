//! Facts of the presets in the descriptions of models.

use cairn_model_presets::{Preset, Presets};
use cairn_protocol::model::{ModelInfo, ModelPrice};

/// Adds what the presets know and the provider did not report.
pub(crate) fn complete(model: &mut ModelInfo, presets: &Presets) {
    let Some(preset) = presets.find(&model.provider, &model.model) else { return };
    model.context_tokens = model.context_tokens.or(preset.context_tokens);
    model.max_output_tokens = model.max_output_tokens.or(preset.max_output_tokens);
    model.price = model.price.or_else(|| price(preset));
    model.images = model.images.or(Some(preset.images));
    model.tools = model.tools.or(Some(preset.tools));
    model.reasoning = model.reasoning.or(Some(preset.reasoning));
}

fn price(preset: &Preset) -> Option<ModelPrice> {
    let price = preset.price?;
    Some(ModelPrice { input: price.input, output: price.output, cached: price.cached })
}
