//! Extensions that the user adds as files: external tools, MCP servers, skills, switches, plugins.
//! Changes take effect without a restart.

mod external_tools;
pub mod mcp;
mod plugins;
mod skills;

use std::{sync::Arc, time::Duration};

use cairn_config::Config;
use cairn_engine::Engine;
use cairn_protocol::location::{DataRoot, Env};
use tokio_util::sync::CancellationToken;

use self::{
    external_tools::ExternalTools,
    mcp::{Servers, SessionServers},
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
}

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
    ) -> Result<Self, String> {
        let dir = env.config_dir();
        let copies = root.path().join("external");
        let extensions = Self {
            programs: ExternalTools::new(dir.as_deref(), copies, config.tools.external.clone()),
            skills: Skills::new(dir.as_deref(), env.home.as_deref()),
            servers: Arc::default(),
            session_servers: SessionServers::new(engine.registry()),
        };
        engine.set_session_servers(Arc::clone(&extensions.session_servers) as _);
        extensions.servers.configure(engine, &config.mcp.servers);
        engine.set_plugins(plugins::from_config(&config.plugins));
        let skills = Arc::clone(&extensions.skills);
        let known = engine.clone();
        engine.set_skills(Arc::new(move |root| skills.list(&known, root)));
        extensions.scan(engine).await?;
        Ok(extensions)
    }

    /// Applies a changed configuration.
    pub fn configure(&self, engine: &Engine, config: &Config) {
        self.programs.configure(engine, config.tools.external.clone());
        self.servers.configure(engine, &config.mcp.servers);
        engine.set_plugins(plugins::from_config(&config.plugins));
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
