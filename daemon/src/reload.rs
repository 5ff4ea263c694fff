//! Reloading of the configuration, on SIGHUP or a file change: some keys take effect at once,
//! others are reported as waiting for a restart.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use cairn_config::{Config, Loaded};
use cairn_engine::Engine;
use cairn_protocol::{
    config::{ConfigAnswer, ConfigReloaded, ConfigValue},
    error::Failure,
    id::RootId,
    index::AddRootParams,
    location::{DataRoot, Env},
};
use serde_json::Value;

use crate::{
    compose,
    extensions::Extensions,
    lifecycle,
    logging::Levels,
    root_config::{FILE, layer_files},
    serve::Options,
    settings,
};

/// Keys that take effect at once; a trailing dot means a section.
const LIVE_KEYS: &[&str] = &[
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
    "hooks.",
    "agentPlugins.",
    "git.",
    "mcp.",
    "safety.requireConfirmation",
    "safety.blockedCommands",
    "trust.folders",
    "worktrees.setup",
];

/// Interval between checks of the files.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// The effective configuration, and what applies it.
pub struct Reload {
    options: Options,
    root: DataRoot,
    levels: Arc<Levels>,
    /// Every value by key. Values that wait for a restart stay unchanged, so that they are
    /// reported again.
    effective: Mutex<BTreeMap<String, Value>>,
}

impl Reload {
    /// Starts from the daemon's initial configuration.
    pub fn new(loaded: &Loaded, options: Options, root: DataRoot, levels: Arc<Levels>) -> Self {
        let this = Self { options, root, levels, effective: Mutex::new(values(loaded)) };
        this.log_level(&loaded.config);
        this
    }

    fn log_level(&self, config: &Config) {
        // Flags and variables of this process take precedence over files.
        if !self.options.log_given {
            self.levels.set(&config.daemon.log);
        }
    }

    /// Reads the configuration again. If any of it is invalid, all settings stay unchanged.
    ///
    /// # Errors
    /// The first invalid file and key, in words.
    pub fn run(
        &self,
        env: &Env,
        engine: &Engine,
        extensions: &Extensions,
    ) -> Result<ConfigReloaded, String> {
        lifecycle::reloading();
        let loaded =
            settings::load(env, &self.options.flags, None).map_err(|errors| errors.to_string());
        let applied = loaded.and_then(|loaded| {
            self.apply(&loaded, engine, extensions).map(|()| loaded).map_err(|e| e.to_string())
        });
        let outcome = match applied {
            Ok(loaded) => {
                loaded.warnings.iter().for_each(|w| tracing::warn!("config: {w}"));
                let pending = self.pending_restart(&loaded);
                tracing::info!("configuration reloaded");
                if !pending.is_empty() {
                    tracing::warn!(
                        "these keys take effect at the next start: {}",
                        pending.join(", ")
                    );
                }
                let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
                Ok(ConfigReloaded { pending, warnings })
            }
            Err(error) => {
                tracing::error!("the configuration is unchanged: {error}");
                Err(error)
            }
        };
        lifecycle::notify(sd_notify::NotifyState::Ready);
        outcome
    }

    /// Returns the effective values for a newly read configuration: keys that wait for a restart
    /// have their initial values.
    pub fn in_force(&self, loaded: &Loaded) -> ConfigAnswer {
        let effective = self.effective.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let value = |row: cairn_config::Row| {
            let needs_restart = !is_live(&row.key) && !is_from_root(&row.source);
            let initial = effective
                .get(&row.key)
                .filter(|initial| needs_restart && **initial != row.value)
                .cloned();
            let pending = initial.is_some().then(|| row.value.clone());
            let value = initial.unwrap_or(row.value);
            (row.key, ConfigValue { value, source: row.source.to_string(), pending })
        };
        let values = cairn_config::rows(loaded).into_iter().map(value).collect();
        ConfigAnswer { values, warnings: loaded.warnings.iter().map(ToString::to_string).collect() }
    }

    /// Applies changes of the files until the daemon stops.
    pub async fn follow(self: Arc<Self>, env: Env, engine: Engine, extensions: Extensions) {
        let mut tick = tokio::time::interval(SCAN_INTERVAL);
        let files = layer_files(&env, &self.options.flags);
        let mut seen: Option<FileSnapshot> = None;
        loop {
            tick.tick().await;
            let this = Arc::clone(&self);
            let env = env.clone();
            let engine = engine.clone();
            let extensions = extensions.clone();
            let files = files.clone();
            let before = seen.take();
            let scan = tokio::task::spawn_blocking(move || {
                let effective = FileSnapshot::scan(&files, &engine);
                let changed = |before: &FileSnapshot| before.layers != effective.layers;
                if before.as_ref().is_some_and(changed) {
                    let _logged = this.run(&env, &engine, &extensions);
                } else if let Some(before) = &before {
                    let other =
                        |(id, stamp): &(&RootId, &Stamp)| before.roots.get(*id) != Some(*stamp);
                    let roots = engine.roots();
                    for (id, _) in effective.roots.iter().filter(other) {
                        roots
                            .iter()
                            .filter(|root| root.id == *id)
                            .for_each(|root| engine.refresh_root(root));
                    }
                }
                effective
            });
            match scan.await {
                Ok(effective) => seen = Some(effective),
                Err(error) => {
                    return tracing::error!(%error, "configuration files are no longer watched");
                }
            }
        }
    }

    fn apply(
        &self,
        loaded: &Loaded,
        engine: &Engine,
        extensions: &Extensions,
    ) -> Result<(), Failure> {
        let config = &loaded.config;
        // Everything that can fail happens before anything takes effect.
        let live = compose::live(config)?;
        compose::limit_memory(config)?;
        engine.reconfigure(live);
        compose::set_models(engine, config, &self.root);
        extensions.configure(engine, config);
        self.log_level(config);
        let engine = engine.clone();
        let roots = config.roots.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(()) };
        runtime.spawn(async move {
            for path in roots {
                let path = path.to_string_lossy().into_owned();
                if let Err(error) = engine.add_root(AddRootParams { path, request_id: None }).await
                {
                    tracing::warn!(%error, "root is not available");
                }
            }
        });
        Ok(())
    }

    /// Lists the keys whose new value waits for a restart, and records those that took effect.
    fn pending_restart(&self, loaded: &Loaded) -> Vec<String> {
        let mut effective =
            self.effective.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fresh = values(loaded);
        let keys: std::collections::BTreeSet<String> =
            effective.keys().chain(fresh.keys()).cloned().collect();
        let changed = keys.into_iter().filter(|key| effective.get(key) != fresh.get(key));
        let (live, pending_restart): (Vec<String>, Vec<String>) =
            changed.partition(|key| is_live(key));
        for key in live {
            match fresh.get(&key) {
                Some(value) => effective.insert(key, value.clone()),
                None => effective.remove(&key),
            };
        }
        pending_restart
    }
}

/// Identifies a version of a file: modification time, size, inode; `None` if it does not exist.
type Stamp = Option<(SystemTime, u64, u64)>;

/// The files at the last check.
#[derive(Default)]
struct FileSnapshot {
    layers: Vec<Stamp>,
    roots: BTreeMap<RootId, Stamp>,
}

impl FileSnapshot {
    fn scan(layers: &[PathBuf], engine: &Engine) -> Self {
        let own = |root: cairn_workspace::Root| (root.id.clone(), stamp(&root.path.join(FILE)));
        Self {
            layers: layers.iter().map(|path| stamp(path)).collect(),
            roots: engine.roots().into_iter().map(own).collect(),
        }
    }
}

fn stamp(path: &std::path::Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

/// Returns true if the value comes from the file of a root, which takes effect at once.
fn is_from_root(source: &cairn_config::Source) -> bool {
    matches!(source, cairn_config::Source::File(path) if path.ends_with(FILE))
}

fn is_live(key: &str) -> bool {
    let switch = key.starts_with("tools.builtin.") && key.ends_with(".enabled");
    switch
        || LIVE_KEYS
            .iter()
            .any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
}

fn values(loaded: &Loaded) -> BTreeMap<String, Value> {
    cairn_config::rows(loaded).into_iter().map(|row| (row.key, row.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_keys_exist() {
        let inputs = cairn_config::Inputs::default();
        let loaded = cairn_config::load(&inputs, &cairn_config::DiskFiles).unwrap();
        let keys = values(&loaded);
        // `mcp.` has no keys until a server is configured.
        for live in LIVE_KEYS.iter().filter(|live| **live != "mcp.") {
            assert!(
                keys.keys()
                    .any(|key| key == live || (live.ends_with('.') && key.starts_with(live))),
                "{live}"
            );
        }
        assert!(is_live("permissions.deny") && !is_live("listen.port") && !is_live("permissionsx"));
    }
}
