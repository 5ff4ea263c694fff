//! The configuration as clients see it.

use std::sync::Arc;

use cairn_api::ConfigSource;
use cairn_engine::Engine;
use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    error::{Failure, Reason},
};

use crate::{extensions::Extensions, reload::Reload, root_config::RootConfigs};

/// The effective configuration of this process.
pub struct EffectiveConfig {
    pub engine: Engine,
    pub extensions: Extensions,
    pub reload: Arc<Reload>,
    pub roots: Arc<RootConfigs>,
}

fn invalid_params(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

impl ConfigSource for EffectiveConfig {
    fn show(&self, params: &ConfigGetParams) -> Result<ConfigAnswer, Failure> {
        let loaded = match &params.root {
            None => self.roots.load_base().map_err(invalid_params)?,
            Some(name) => {
                let matches_params = |root: &cairn_workspace::Root| {
                    *root.id.0 == **name || root.path == std::path::Path::new(name)
                };
                let missing = || {
                    Failure::new(Reason::RootNotFound, format!("'{name}' is not a declared root"))
                };
                let root =
                    self.engine.roots().into_iter().find(matches_params).ok_or_else(missing)?;
                self.roots.load(&root).map_err(invalid_params)?
            }
        };
        Ok(self.reload.in_force(&loaded))
    }

    fn reload(&self) -> Result<ConfigReloaded, Failure> {
        self.reload.run(self.roots.env(), &self.engine, &self.extensions).map_err(invalid_params)
    }
}
