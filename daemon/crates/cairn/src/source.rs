//! The single model of a session.

use std::sync::Arc;

use cairn_engine::model::{Models, Provider};
use cairn_protocol::{
    error::{Failure, Reason},
    turn::{ModelChoice, ProviderInfo},
};

/// A single provider for every request.
pub struct Single(pub Arc<dyn Provider>);

impl Models for Single {
    fn default_choice(&self) -> ModelChoice {
        ModelChoice { provider: self.0.name().into(), model: self.0.model().into(), endpoint: None }
    }

    fn provider(&self, choice: &ModelChoice) -> Result<Arc<dyn Provider>, Failure> {
        if choice.provider == self.0.name() || choice.provider.is_empty() {
            return Ok(Arc::clone(&self.0));
        }
        let text = format!("this session has one provider, {}", self.0.name());
        Err(Failure::new(Reason::ProviderUnknown, text))
    }

    fn list(&self) -> Vec<ProviderInfo> {
        vec![ProviderInfo {
            name: self.0.name().into(),
            endpoint: None,
            external: self.0.external(),
            available: true,
            reason: None,
            default_model: Some(self.0.model().into()),
            images: self.0.takes_images(),
        }]
    }
}
