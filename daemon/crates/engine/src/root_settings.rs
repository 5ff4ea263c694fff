//! Settings that a root has of its own: what its folder's configuration makes of the host's.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use cairn_harness::Rules;
use cairn_protocol::{id::RootId, turn::ModelChoice};
use cairn_workspace::Root;

use crate::{Engine, TurnSettings};

/// Settings of one root in place of those of all.
#[derive(Debug, Clone)]
pub struct RootSettings {
    /// Rules of the gate.
    pub rules: Rules,
    /// How turns are taken.
    pub turns: TurnSettings,
    /// Whom sessions talk to that chose nobody.
    pub model: Option<ModelChoice>,
}

/// Reads the settings of a root; `None` for one that has none of its own. Blocks.
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
    /// Sets what reads the settings of roots, and reads those of the roots there are. Blocks.
    pub fn set_root_config(&self, config: Arc<RootConfig>) {
        *self.inner.root_settings.config.write().unwrap_or_else(PoisonError::into_inner) = Some(config);
        self.refresh_roots();
    }

    /// Reads the settings of every root again. Blocks.
    pub fn refresh_roots(&self) {
        self.inner.roots.list().iter().for_each(|root| self.refresh_root(root));
    }

    /// Reads the settings of a root again, for the calls and turns that come. Blocks.
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
        self.inner.root_settings.by_root.write().unwrap_or_else(PoisonError::into_inner).remove(root);
    }
}
