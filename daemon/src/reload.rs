//! SIGHUP: what of the configuration is taken without a restart, and what is named as waiting for one.

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
    extras::Extras,
    lifecycle,
    logging::Levels,
    root_config::{FILE, layer_files},
    serve::Options,
    settings,
};

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
    "safety.blocked_commands",
    "trust.folders",
];

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

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
    ///
    /// # Errors
    /// The first wrong file and key, in words.
    pub fn run(&self, env: &Env, engine: &Engine, extras: &Extras) -> Result<ConfigReloaded, String> {
        lifecycle::reloading();
        let loaded = settings::load(env, &self.options.flags, None).map_err(|errors| errors.to_string());
        let taken = loaded.and_then(|loaded| {
            self.take(&loaded, engine, extras).map(|()| loaded).map_err(|e| e.to_string())
        });
        let outcome = match taken {
            Ok(loaded) => {
                loaded.warnings.iter().for_each(|w| tracing::warn!("config: {w}"));
                let pending = self.waiting(&loaded);
                tracing::info!("configuration read again");
                if !pending.is_empty() {
                    tracing::warn!("these keys take effect at the next start: {}", pending.join(", "));
                }
                let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
                Ok(ConfigReloaded { pending, warnings })
            }
            Err(error) => {
                tracing::error!("the configuration stays as it was: {error}");
                Err(error)
            }
        };
        lifecycle::tell(sd_notify::NotifyState::Ready);
        outcome
    }

    /// The values in force of a configuration that was just read: keys that wait for a restart have the value they began with.
    pub fn in_force(&self, loaded: &Loaded) -> ConfigAnswer {
        let now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let value = |row: cairn_config::Row| {
            let waits = !is_live(&row.key) && !is_of_root(&row.source);
            let began = now.get(&row.key).filter(|began| waits && **began != row.value).cloned();
            let pending = began.is_some().then(|| row.value.clone());
            let value = began.unwrap_or(row.value);
            (row.key, ConfigValue { value, source: row.source.to_string(), pending })
        };
        let values = cairn_config::rows(loaded).into_iter().map(value).collect();
        ConfigAnswer { values, warnings: loaded.warnings.iter().map(ToString::to_string).collect() }
    }

    /// Reads what changed of the files, again and again, to the end of the daemon.
    pub async fn follow(self: Arc<Self>, env: Env, engine: Engine, extras: Extras) {
        let mut tick = tokio::time::interval(LOOK);
        let files = layer_files(&env, &self.options.flags);
        let mut seen: Option<Seen> = None;
        loop {
            tick.tick().await;
            let (this, env, engine, extras) =
                (Arc::clone(&self), env.clone(), engine.clone(), extras.clone());
            let (files, before) = (files.clone(), seen.take());
            let look = tokio::task::spawn_blocking(move || {
                let now = Seen::look(&files, &engine);
                let changed = |before: &Seen| before.layers != now.layers;
                if before.as_ref().is_some_and(changed) {
                    let _logged = this.run(&env, &engine, &extras);
                } else if let Some(before) = &before {
                    let other = |(id, stamp): &(&RootId, &Stamp)| before.roots.get(*id) != Some(*stamp);
                    let roots = engine.roots();
                    for (id, _) in now.roots.iter().filter(other) {
                        roots.iter().filter(|root| root.id == *id).for_each(|root| engine.refresh_root(root));
                    }
                }
                now
            });
            match look.await {
                Ok(now) => seen = Some(now),
                Err(error) => return tracing::error!(%error, "configuration files are not watched any more"),
            }
        }
    }

    fn take(&self, loaded: &Loaded, engine: &Engine, extras: &Extras) -> Result<(), Failure> {
        let config = &loaded.config;
        // Everything that can be wrong is found before anything takes effect.
        let live = compose::live(config)?;
        compose::limit_memory(config)?;
        engine.reconfigure(live);
        compose::set_models(engine, config, &self.root);
        extras.configure(engine, config);
        self.log_level(config);
        let (engine, roots) = (engine.clone(), config.roots.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(()) };
        runtime.spawn(async move {
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

/// Identity of a version of a file: time of change, size, inode; `None` for one that is not there.
type Stamp = Option<(SystemTime, u64, u64)>;

/// The files as they were when they were looked at.
#[derive(Default)]
struct Seen {
    layers: Vec<Stamp>,
    roots: BTreeMap<RootId, Stamp>,
}

impl Seen {
    fn look(layers: &[PathBuf], engine: &Engine) -> Self {
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

/// True if a value comes from the file of a root, which takes effect at once.
fn is_of_root(source: &cairn_config::Source) -> bool {
    matches!(source, cairn_config::Source::File(path) if path.ends_with(FILE))
}

fn is_live(key: &str) -> bool {
    let switch = key.starts_with("tools.builtin.") && key.ends_with(".enabled");
    switch || LIVE.iter().any(|live| key == *live || (live.ends_with('.') && key.starts_with(live)))
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
