//! Extensions that the user adds as files: external tools, MCP servers, skills, switches, plugins,
//! hooks.
//! Changes take effect without a restart.

pub mod agent_plugins;
mod external_tools;
pub mod hooks;
pub mod mcp;
mod plugins;
mod skills;

pub use skills::agent_skills;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use cairn_config::{Config, McpServer};
use cairn_engine::Engine;
use cairn_protocol::{
    location::{DataRoot, Env},
    plugin::PluginInfo,
    trust::TrustKind,
};
use tokio_util::sync::CancellationToken;

use crate::trust::{ConfiguredPrograms, TrustStore};

use self::{
    agent_plugins::AgentPlugin,
    external_tools::ExternalTools,
    hooks::{Hooks, Sources},
    mcp::{Logins, Servers, SessionServers},
    skills::Skills,
};

/// Interval between scans of the folders.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// All extensions. Clones share them.
#[derive(Clone)]
pub struct Extensions {
    programs: Arc<ExternalTools>,
    skills: Arc<Skills>,
    servers: Arc<Servers>,
    session_servers: Arc<SessionServers>,
    plugins: Arc<RwLock<UserPlugins>>,
    home: Option<PathBuf>,
    trust: Arc<TrustStore>,
    named: Arc<ConfiguredPrograms>,
}

/// The agent plugins of the user, and their folders in the configuration.
type UserPlugins = Vec<(PathBuf, Result<AgentPlugin, String>)>;

impl Extensions {
    /// Loads the extensions, so that they are available to the first client.
    ///
    /// # Errors
    /// Scanning the folders fails.
    pub async fn open(
        env: &Env,
        root: &DataRoot,
        config: &Config,
        engine: &Engine,
        trust: Arc<TrustStore>,
    ) -> Result<Self, String> {
        let dir = env.config_dir();
        let copies = root.path().join("external");
        let extensions = Self {
            programs: ExternalTools::new(dir.as_deref(), copies, config.tools.external.clone()),
            skills: Skills::new(dir.as_deref(), env.home.as_deref()),
            servers: Arc::new(Servers::new(Logins::new(root.mcp_logins()))),
            session_servers: SessionServers::new(engine.registry()),
            plugins: Arc::default(),
            home: env.home.clone(),
            trust: Arc::clone(&trust),
            named: Arc::default(),
        };
        engine.set_named_programs(Arc::clone(&extensions.named) as _);
        engine.set_session_servers(Arc::clone(&extensions.session_servers) as _);
        extensions.apply(engine, config);
        let skills = Arc::clone(&extensions.skills);
        let known = engine.clone();
        let judge = Arc::clone(&trust);
        engine.set_skills(Arc::new(move |root| {
            let trusted = |folder: &Path| {
                root.is_some_and(|root| {
                    judge.is_configured(root) || judge.trusts_folder(root, TrustKind::Skill, folder)
                })
            };
            skills.list(&known, root, &trusted, &judge)
        }));
        let plugins = Arc::clone(&extensions.plugins);
        engine.set_plugin_list(Arc::new(move |root| list_plugins(&plugins, &trust, root)));
        extensions.scan(engine).await?;
        Ok(extensions)
    }

    /// Returns the MCP servers of the configuration.
    pub fn mcp_servers(&self) -> Arc<Servers> {
        Arc::clone(&self.servers)
    }

    /// Applies a changed configuration.
    pub fn configure(&self, engine: &Engine, config: &Config) {
        self.programs.configure(engine, config.tools.external.clone());
        self.apply(engine, config);
    }

    /// Applies hooks, plugins, and the servers and skills that they bring.
    fn apply(&self, engine: &Engine, config: &Config) {
        let user = agent_plugins::of_user(&config.agent_plugins.folders);
        for (folder, plugin) in &user {
            if let Err(error) = plugin {
                tracing::warn!("plugin {}: {error}", folder.display());
            }
        }
        let loaded: Vec<AgentPlugin> =
            user.iter().filter_map(|(_, plugin)| plugin.as_ref().ok().cloned()).collect();
        let mut servers: BTreeMap<String, McpServer> =
            loaded.iter().flat_map(|plugin| plugin.servers.clone()).collect();
        // A server that the configuration names comes before one of a plugin.
        servers.extend(config.mcp.servers.clone());
        self.servers.configure(engine, &servers);
        self.skills.set_plugins(loaded.iter().map(|plugin| plugin.skills.clone()).collect());
        self.named.configure(config);
        let trust = Arc::clone(&self.trust);
        let sources = Sources::new(config, self.home.as_deref(), loaded, trust);
        let mut all = plugins::from_config(&config.plugins);
        all.push(Arc::new(Hooks::new(engine, sources)));
        engine.set_plugins(all);
        *self.plugins.write().unwrap_or_else(PoisonError::into_inner) = user;
    }

    /// Stops the MCP servers.
    pub async fn close(&self) {
        self.session_servers.close().await;
        self.servers.close().await;
    }

    /// Scans repeatedly until `stop`.
    pub async fn follow(self, engine: Engine, stop: CancellationToken) {
        let mut tick = tokio::time::interval(SCAN_INTERVAL);
        while tokio::select! { _ = tick.tick() => true, () = stop.cancelled() => false } {
            if let Err(error) = self.scan(&engine).await {
                tracing::error!("{error}");
            }
        }
    }

    async fn scan(&self, engine: &Engine) -> Result<(), String> {
        let this = self.clone();
        let engine = engine.clone();
        let looked = tokio::task::spawn_blocking(move || {
            this.programs.scan(&engine);
            this.skills.scan(&engine);
        });
        looked.await.map_err(|e| format!("scanning the tools and skills failed: {e}"))
    }
}

/// Lists the plugins of the user, and those of a project whose content is trusted. This blocks on
/// file I/O.
fn list_plugins(
    user: &RwLock<UserPlugins>,
    trust: &TrustStore,
    root: Option<&Path>,
) -> Vec<PluginInfo> {
    let user = user.read().unwrap_or_else(PoisonError::into_inner).clone();
    let info = |(folder, plugin): (PathBuf, Result<AgentPlugin, String>)| match plugin {
        Ok(plugin) => plugin.info(),
        Err(error) => agent_plugins::broken(&folder, &error),
    };
    let project = root.map(|root| hooks::trusted_plugins(trust, root)).unwrap_or_default();
    user.into_iter().map(info).chain(project.iter().map(AgentPlugin::info)).collect()
}
