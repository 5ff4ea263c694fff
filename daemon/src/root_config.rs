//! The configuration of roots: the user's layers and the file in the root's own folder, which can
//! only tighten until the user trusts that folder.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_config::Loaded;
use cairn_engine::{RootSettings, Rules, TurnSettings};
use cairn_protocol::{id::RootId, location::Env};
use cairn_workspace::Root;

use crate::{compose, settings, trust::TrustStore};

/// The name of a folder's own configuration file.
pub const FILE: &str = ".cairn.json";

/// Reads configurations of roots, and caches the last valid settings for a file that becomes
/// invalid.
pub struct RootConfigs {
    env: Env,
    flags: settings::Flags,
    last: Mutex<HashMap<RootId, RootSettings>>,
    trust: Arc<TrustStore>,
}

impl RootConfigs {
    pub fn new(env: &Env, flags: settings::Flags, trust: Arc<TrustStore>) -> Arc<Self> {
        Arc::new(Self { env: env.clone(), flags, last: Mutex::default(), trust })
    }

    /// Returns a reader of root settings for the engine.
    pub fn reader(self: &Arc<Self>) -> Arc<cairn_engine::RootConfig> {
        let configs = Arc::clone(self);
        Arc::new(move |root| configs.settings(root))
    }

    /// The environment of this process.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Loads the layers without the file of any root.
    ///
    /// # Errors
    /// As [`RootConfigs::load`].
    pub fn load_base(&self) -> Result<Loaded, String> {
        settings::load(&self.env, &self.flags, None).map_err(|errors| errors.to_string())
    }

    /// Loads all layers including the root's own file.
    ///
    /// # Errors
    /// A description of an unreadable layer or invalid value.
    pub fn load(&self, root: &Root) -> Result<Loaded, String> {
        settings::load_project(&self.env, &self.flags, root.path.clone(), &self.trust)
            .map_err(|errors| errors.to_string())
    }

    /// Returns the settings of a root; `None` if its folder has no file. If a file becomes invalid,
    /// the previous settings stay effective; if there are none, the root is closed to every tool,
    /// because the file may contain denials.
    pub fn settings(&self, root: &Root) -> Option<RootSettings> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if std::fs::symlink_metadata(root.path.join(FILE)).is_err() {
            last.remove(&root.id);
            return None;
        }
        match self.read(root) {
            Ok(settings) => {
                last.insert(root.id.clone(), settings.clone());
                Some(settings)
            }
            Err(why) => {
                let known = last.get(&root.id).cloned();
                let cached = if known.is_some() {
                    "the previous settings stay in force"
                } else {
                    "no tool may be used there"
                };
                tracing::error!(root = %root.path.display(), "{cached}: {why}");
                Some(known.unwrap_or_else(|| closed_settings(why)))
            }
        }
    }

    fn read(&self, root: &Root) -> Result<RootSettings, String> {
        let loaded = self.load(root)?;
        for warning in loaded.warnings.iter().filter(|w| is_from(w, root)) {
            tracing::warn!("config: {warning}");
        }
        let base = self.load_base()?;
        compose::root_settings(&loaded.config, &base.config).map_err(|e| e.to_string())
    }
}

fn is_from(warning: &cairn_config::Warning, root: &Root) -> bool {
    warning.source == cairn_config::Source::File(root.path.join(FILE))
}

fn closed_settings(why: String) -> RootSettings {
    let rules = Rules { unreadable: Some(why), ..Rules::default() };
    RootSettings { rules, turns: TurnSettings::default(), model: None }
}

/// Paths that no tool may access.
#[derive(Debug, Clone, Default)]
pub struct Guarded {
    /// The files of the user's own layers, and every folder that some environment uses for
    /// configuration.
    pub layers: Vec<PathBuf>,
    /// Every folder that some environment uses for data: another daemon of the user may run there.
    pub data_folders: Vec<PathBuf>,
}

/// Lists the paths that no tool may access.
pub fn guarded(env: &Env, flags: &settings::Flags) -> Guarded {
    let layers = layer_files(env, flags).into_iter().chain(env.config_candidates()).collect();
    Guarded { layers, data_folders: env.data_candidates() }
}

/// Lists the files of the user's own layers.
pub fn layer_files(env: &Env, flags: &settings::Flags) -> Vec<PathBuf> {
    let inputs = settings::inputs(env, flags, None);
    let home = inputs.home.map(|home| home.join(FILE));
    let user = inputs.config_dir.map(|dir| dir.join("config.json"));
    let system = inputs.system.unwrap_or_else(|| "/etc/cairn/config.json".into());
    [Some(system), user, home, inputs.explicit].into_iter().flatten().collect()
}
