//! What every command needs: the flags, the environment, the way to the daemon.

use std::path::PathBuf;

use cairn_client_sdk::{Client, ClientError, Connector, Starter, ensure_daemon};
use cairn_protocol::location::{DataRoot, Env};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Globals, Host, exit::Failure, output};

/// One run of a command.
pub struct App<'a> {
    pub host: &'a dyn Host,
    pub globals: Globals,
    pub env: Env,
}

impl<'a> App<'a> {
    pub fn new(host: &'a dyn Host, mut globals: Globals) -> Self {
        // A daemon that is started works in another folder.
        globals.config = globals.config.map(|path| std::path::absolute(&path).unwrap_or(path));
        Self { host, globals, env: Env::from_process() }
    }

    /// How this program connects.
    pub fn connector(&self) -> Connector {
        Connector::local(self.env.clone()).named("cairn-cli", env!("CARGO_PKG_VERSION"))
    }

    /// The daemon, started if need be.
    pub async fn client(&self) -> Result<Client, ClientError> {
        self.client_of(self.connector()).await
    }

    /// The daemon, started if need be, connected to by `connector`.
    pub async fn client_of(&self, connector: Connector) -> Result<Client, ClientError> {
        let exe = std::env::current_exe().map_err(|e| ClientError::Start {
            cause: format!("this program's own path is not known: {e}"),
            log: PathBuf::new(),
        })?;
        let mut args = vec!["serve".into(), "--on-demand".into()];
        if let Some(config) = &self.globals.config {
            args.extend(["--config".into(), config.clone().into_os_string()]);
        }
        ensure_daemon(&self.env, &connector, &Starter { exe, args }).await
    }

    /// The files of this user's data root.
    pub fn data_root(&self) -> Result<DataRoot, ClientError> {
        self.env.data_root().map(DataRoot).ok_or(ClientError::NoHome)
    }

    /// Tells something beside the result.
    pub fn remark(&self, text: &str) {
        if !self.globals.quiet {
            // A remark that cannot be shown is no loss.
            let _closed = std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
        }
    }

    /// Tells of a failure that does not end the program.
    pub fn complain(&self, failure: &Failure) {
        // With standard error closed there is nobody to tell.
        let _closed =
            std::io::Write::write_all(&mut std::io::stderr(), format!("{}\n", failure.text()).as_bytes());
    }

    /// Calls a method. With `--json` its answer is printed as it came and nothing is given back.
    pub async fn answer<R: DeserializeOwned>(
        &self,
        client: &Client,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Option<R>, Failure> {
        if !self.globals.json {
            return Ok(Some(client.call(method, params).await?));
        }
        let raw: Box<RawValue> = client.call(method, params).await?;
        output::line(raw.get())?;
        Ok(None)
    }
}

/// The current folder.
pub fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|e| Failure::failed(format!("the current folder cannot be read: {e}")))
}
