//! Settings of a single root: the host's settings with the configuration of its folder.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use cairn_harness::Rules;
use cairn_protocol::{id::RootId, turn::ModelChoice};
use cairn_workspace::Root;

use crate::{Engine, TurnSettings};

/// Settings of one root, which replace the general ones.
#[derive(Debug, Clone)]
pub struct RootSettings {
    /// Rules of the tool gate.
    pub rules: Rules,
    /// Settings of every turn.
    pub turns: TurnSettings,
    /// Model of sessions without a choice of their own.
    pub model: Option<ModelChoice>,
}

/// Reader of the settings of a root; returns `None` for one without any. Blocks.
pub type RootConfig = dyn Fn(&Root) -> Option<RootSettings> + Send + Sync;

/// The settings of all roots.
#[derive(Default)]
pub(crate) struct RootSettingsMap {
    config: RwLock<Option<Arc<RootConfig>>>,
    by_root: RwLock<HashMap<RootId, Arc<RootSettings>>>,
}

impl RootSettingsMap {
    pub fn of(&self, root: Option<&Root>) -> Option<Arc<RootSettings>> {
        let all = self.by_root.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&root?.id).cloned()
    }
}

impl Engine {
    /// Sets the reader of root settings, and reads those of the declared roots. Blocks.
    pub fn set_root_config(&self, config: Arc<RootConfig>) {
        *self.inner.root_settings.config.write().unwrap_or_else(PoisonError::into_inner) =
            Some(config);
        self.refresh_roots();
    }

    /// Reloads the settings of every root. Blocks.
    pub fn refresh_roots(&self) {
        self.inner.roots.list().iter().for_each(|root| self.refresh_root(root));
    }

    /// Reloads the settings of a root, for later calls and turns. Blocks.
    pub fn refresh_root(&self, root: &Root) {
        let map = &self.inner.root_settings;
        let config = map.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let own = config.and_then(|config| config(root));
        self.inner.harness.set_root_rules(&root.id, own.as_ref().map(|own| own.rules.clone()));
        let mut all = map.by_root.write().unwrap_or_else(PoisonError::into_inner);
        match own {
            Some(own) => all.insert(root.id.clone(), Arc::new(own)),
            None => all.remove(&root.id),
        };
    }

    pub(crate) fn forget_root_settings(&self, root: &RootId) {
        self.inner.harness.set_root_rules(root, None);
        self.inner
            .root_settings
            .by_root
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(root);
    }
}
