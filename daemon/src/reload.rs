//! SIGHUP: what of the configuration is taken without a restart, and what is named as waiting for one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use cairn_config::{Config, Loaded};
use cairn_engine::Engine;
use cairn_protocol::{
    error::Failure,
    index::AddRootParams,
    location::{DataRoot, Env},
};
use serde_json::Value;

use crate::{compose, extras::Extras, lifecycle, logging::Levels, serve::Options, settings};

/// Keys that take effect at once; a dot at the end stands for a whole section.
const LIVE: &[&str] = &[
    "roots",
    "permissions.",
    "resources.maxRuns",
    "resources.memoryMb",
    "daemon.log",
    "models.",
    "llm.",
    "agent.",
    "context.",
    "tools.external",
    "plugins",
    "git.",
    "mcp.",
    "safety.require_confirmation",
];

/// The configuration as it is in effect.
pub struct Reload {
    options: Options,
    root: DataRoot,
    levels: Arc<Levels>,
    /// Every value by key. Those that wait for a restart stay as they were, so that they are named again.
    now: Mutex<BTreeMap<String, Value>>,
}

impl Reload {
    /// What the daemon began with.
    pub fn new(loaded: &Loaded, options: Options, root: DataRoot, levels: Arc<Levels>) -> Self {
        let this = Self { options, root, levels, now: Mutex::new(values(loaded)) };
        this.log_level(&loaded.config);
        this
    }

    fn log_level(&self, config: &Config) {
        // A flag or variable of this process says more than a file.
        if !self.options.log_given {
            self.levels.set(&config.daemon.log);
        }
    }

    /// Reads the configuration again. When any of it is wrong, all of it stays as it was.
    pub fn run(&self, env: &Env, engine: &Engine, extras: &Extras) {
        lifecycle::reloading();
        let loaded = settings::load(env, &self.options.flags, None).map_err(|errors| errors.to_string());
        match loaded
            .and_then(|loaded| self.take(&loaded, engine, extras).map(|()| loaded).map_err(|e| e.to_string()))
        {
            Ok(loaded) => {
                loaded.warnings.iter().for_each(|w| tracing::warn!("config: {w}"));
                let waiting = self.waiting(&loaded);
                tracing::info!("configuration read again");
                if !waiting.is_empty() {
                    tracing::warn!("these keys take effect at the next start: {}", waiting.join(", "));
                }
            }
            Err(error) => tracing::error!("the configuration stays as it was: {error}"),
        }
        lifecycle::tell(sd_notify::NotifyState::Ready);
    }

    fn take(&self, loaded: &Loaded, engine: &Engine, extras: &Extras) -> Result<(), Failure> {
        let config = &loaded.config;
        engine.reconfigure(compose::live(config)?);
        compose::set_models(engine, config, &self.root);
        compose::limit_memory(config)?;
        extras.configure(engine, config);
        self.log_level(config);
        let (engine, roots) = (engine.clone(), config.roots.clone());
        tokio::spawn(async move {
            for path in roots {
                let path = path.to_string_lossy().into_owned();
                if let Err(error) = engine.add_root(AddRootParams { path, request_id: None }).await {
                    tracing::warn!(%error, "root is not available");
                }
            }
        });
        Ok(())
    }

    /// The keys whose new value waits for a restart; those that took effect are noted.
    fn waiting(&self, loaded: &Loaded) -> Vec<String> {
        let mut now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fresh = values(loaded);
        let keys: std::collections::BTreeSet<String> = now.keys().chain(fresh.keys()).cloned().collect();
        let changed = keys.into_iter().filter(|key| now.get(key) != fresh.get(key));
        let (live, waiting): (Vec<String>, Vec<String>) = changed.partition(|key| is_live(key));
        for key in live {
            match fresh.get(&key) {
                Some(value) => now.insert(key, value.clone()),
                None => now.remove(&key),
            };
        }
        waiting
    }
}

fn is_live(key: &str) -> bool {
    LIVE.iter().any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
}

fn values(loaded: &Loaded) -> BTreeMap<String, Value> {
    cairn_config::rows(loaded).into_iter().map(|row| (row.key, row.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_live_is_a_key() {
        let inputs = cairn_config::Inputs::default();
        let loaded = cairn_config::load(&inputs, &cairn_config::DiskFiles).unwrap();
        let keys = values(&loaded);
        // Has no keys until a server is named.
        for live in LIVE.iter().filter(|live| **live != "mcp.") {
            assert!(
                keys.keys().any(|key| key == live || (live.ends_with('.') && key.starts_with(live))),
                "{live}"
            );
        }
        assert!(is_live("permissions.deny") && !is_live("listen.port") && !is_live("permissionsx"));
    }
}
