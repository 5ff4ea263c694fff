//! The configuration as clients see it.

use std::sync::Arc;

use cairn_api::ConfigSource;
use cairn_engine::Engine;
use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    error::{Failure, Reason},
};

use crate::{extras::Extras, reload::Reload, root_config::RootConfigs};

/// Over what is in force in this process.
pub struct InForce {
    pub engine: Engine,
    pub extras: Extras,
    pub reload: Arc<Reload>,
    pub roots: Arc<RootConfigs>,
}

fn wrong(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

impl ConfigSource for InForce {
    fn show(&self, params: &ConfigGetParams) -> Result<ConfigAnswer, Failure> {
        let loaded = match &params.root {
            None => self.roots.load_base().map_err(wrong)?,
            Some(name) => {
                let found = |root: &cairn_workspace::Root| {
                    *root.id.0 == **name || root.path == std::path::Path::new(name)
                };
                let missing =
                    || Failure::new(Reason::RootNotFound, format!("'{name}' is not a declared root"));
                let root = self.engine.roots().into_iter().find(found).ok_or_else(missing)?;
                self.roots.load(&root).map_err(wrong)?
            }
        };
        Ok(self.reload.in_force(&loaded))
    }

    fn reload(&self) -> Result<ConfigReloaded, Failure> {
        self.reload.run(self.roots.env(), &self.engine, &self.extras).map_err(wrong)
    }
}
