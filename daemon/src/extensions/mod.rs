//! What the user adds in files: programs and servers that bring tools, skills, switches, plugins. They come and go without a restart.

use std::{sync::Arc, time::Duration};

use cairn_config::Config;
use cairn_engine::Engine;
use cairn_protocol::location::{DataRoot, Env};
use tokio_util::sync::CancellationToken;

use crate::{external::Programs, mcp::Servers, plugins, skills::Skills};

/// How often the folders are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// All of them. Clones share it.
#[derive(Clone)]
pub struct Extras {
    programs: Arc<Programs>,
    skills: Arc<Skills>,
    /// Servers of the Model Context Protocol.
    servers: Arc<Servers>,
}

impl Extras {
    /// Reads the files, so that what they add is there before anybody asks.
    ///
    /// # Errors
    /// When looking at them fails in itself.
    pub async fn open(env: &Env, root: &DataRoot, config: &Config, engine: &Engine) -> Result<Self, String> {
        let dir = env.config_dir();
        let copies = root.path().join("external");
        let extras = Self {
            programs: Programs::new(dir.as_deref(), copies, config.tools.external.clone()),
            skills: Skills::new(dir.as_deref()),
            servers: Arc::default(),
        };
        extras.servers.configure(engine, &config.mcp.servers);
        engine.set_plugins(plugins::configured(&config.plugins));
        let (skills, known) = (Arc::clone(&extras.skills), engine.clone());
        engine.set_skills(Arc::new(move || skills.list(&known)));
        extras.look(engine).await?;
        Ok(extras)
    }

    /// Takes another configuration.
    pub fn configure(&self, engine: &Engine, config: &Config) {
        self.programs.configure(engine, config.tools.external.clone());
        self.servers.configure(engine, &config.mcp.servers);
        engine.set_plugins(plugins::configured(&config.plugins));
    }

    /// Ends the servers.
    pub async fn close(&self) {
        self.servers.close().await;
    }

    /// Looks again and again until `stop`.
    pub async fn follow(self, engine: Engine, stop: CancellationToken) {
        let mut tick = tokio::time::interval(LOOK);
        while tokio::select! { _ = tick.tick() => true, () = stop.cancelled() => false } {
            if let Err(error) = self.look(&engine).await {
                tracing::error!("{error}");
            }
        }
    }

    async fn look(&self, engine: &Engine) -> Result<(), String> {
        let (this, engine) = (self.clone(), engine.clone());
        let looked = tokio::task::spawn_blocking(move || {
            this.programs.look(&engine);
            this.skills.look(&engine);
        });
        looked.await.map_err(|e| format!("looking at the tools and skills failed: {e}"))
    }
}
