//! The context of every command: flags, environment, and connection to the daemon.

use std::{
    cell::OnceCell,
    path::{Component, Path, PathBuf},
};

use cairn_client_sdk::{Client, ClientError, Connector, Starter, ensure_daemon};
use cairn_protocol::{
    index::IndexStatusParams,
    location::{DataRoot, Env},
    session::Empty,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    Globals, Host,
    args::Sessions,
    commands::stop,
    exit::Failure,
    overrides::{self, Overrides},
    render::output,
    scope, version,
};

/// One run of a command.
pub struct App<'a> {
    pub host: &'a dyn Host,
    pub globals: Globals,
    pub env: Env,
    /// The sessions in which the command starts turns.
    pub sessions: Sessions,
    overrides: OnceCell<Overrides>,
}

impl<'a> App<'a> {
    pub fn new(host: &'a dyn Host, mut globals: Globals, sessions: Sessions) -> Self {
        globals.config = globals.config.map(|path| std::path::absolute(&path).unwrap_or(path));
        Self { host, globals, env: Env::from_process(), sessions, overrides: OnceCell::new() }
    }

    /// Builds the connector for this program.
    pub fn connector(&self) -> Connector {
        let connector = match &self.globals.host {
            Some(host) => Connector::remote(self.env.clone(), host),
            None => match (&self.globals.address, &self.globals.token_file) {
                (Some(address), Some(token)) => Connector::at(address, token),
                _ => Connector::local(self.env.clone()),
            },
        };
        connector.named("cairn-cli", env!("CARGO_PKG_VERSION"))
    }

    /// Returns true if the daemon runs on another machine, so that paths belong to that machine.
    pub fn is_remote(&self) -> bool {
        self.globals.host.is_some() || self.globals.address.is_some()
    }

    /// Returns the user's location: the current folder, or on another machine its only root or its
    /// top folder.
    pub async fn location(&self, client: &Client) -> Result<PathBuf, Failure> {
        if !self.is_remote() {
            return current_dir();
        }
        let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
        match roots.as_slice() {
            [only] => Ok(PathBuf::from(&only.path)),
            _ => Ok(PathBuf::from("/")),
        }
    }

    /// Connects to the daemon, starting it if necessary, and returns the user's location. A missing
    /// current folder is reported before the daemon is started.
    pub async fn connect_here(&self) -> Result<(Client, PathBuf), Failure> {
        if !self.is_remote() {
            current_dir()?;
        }
        let client = self.connect().await?;
        let here = self.location(&client).await?;
        Ok((client, here))
    }

    /// Converts a path to the form that the daemon knows. A path on another machine cannot be
    /// resolved here and must be complete.
    pub fn canonical(&self, path: &Path) -> Result<PathBuf, Failure> {
        if !self.is_remote() {
            return scope::canonical(path);
        }
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    let text =
                        format!("{}: '..' cannot be resolved on another machine", path.display());
                    return Err(Failure::usage(text));
                }
                part => plain.push(part),
            }
        }
        Ok(plain)
    }

    /// Refuses `--host` and similar flags for commands that concern this machine only.
    pub fn require_local(&self, command: &str) -> Result<(), Failure> {
        match self.is_remote() {
            false => Ok(()),
            true => Err(Failure::usage(format!(
                "'{command}' only works on this machine: omit --host and --address"
            ))),
        }
    }

    /// Connects to the daemon, starting it if necessary.
    pub async fn connect(&self) -> Result<Client, Failure> {
        self.connect_with(self.connector()).await
    }

    /// Connects with `connector`, starting the daemon if necessary. The settings of this command
    /// are checked first, because a started daemon does not receive them.
    pub async fn connect_with(&self, connector: Connector) -> Result<Client, Failure> {
        let overrides = self.overrides()?;
        let client = self.connected(connector).await?;
        if !self.is_remote() {
            overrides::check_folder(self)?;
        }
        overrides.check(self, &client).await?;
        Ok(client)
    }

    /// Returns the settings of this command, read once.
    ///
    /// # Errors
    /// An unreadable file, or a value of the wrong type.
    pub fn overrides(&self) -> Result<&Overrides, Failure> {
        if let Some(known) = self.overrides.get() {
            return Ok(known);
        }
        let read = Overrides::read(self)?;
        Ok(self.overrides.get_or_init(|| read))
    }

    async fn connected(&self, connector: Connector) -> Result<Client, Failure> {
        if connector.is_remote() {
            return Ok(connector.connect().await?);
        }
        let exe = std::env::current_exe()
            .map_err(|e| Failure::failed(format!("this program's own path is unknown: {e}")))?;
        let starter = Starter { exe, args: vec!["serve".into(), "--on-demand".into()] };
        let found = ensure_daemon(&self.env, &connector, &starter).await;
        let daemon = match &found {
            Ok(client) => client.server().server.version.clone(),
            // A daemon of another version may share no protocol version with this program.
            Err(ClientError::Incompatible { daemon, .. }) => daemon.clone(),
            Err(_) => return Ok(found?),
        };
        if !version::is_older(&daemon, version::OWN) || !self.may_restart(found.as_ref()).await {
            return Ok(found?);
        }
        drop(found);
        self.info(&format!(
            "the daemon has version {daemon}: restarting it as {}; interrupted sessions can be resumed",
            version::OWN
        ));
        stop::stop(self).await?;
        Ok(ensure_daemon(&self.env, &connector, &starter).await?)
    }

    /// Returns true if an older daemon was started by a client, so that another client may replace
    /// it. A service belongs to its manager.
    async fn may_restart(&self, found: Result<&Client, &ClientError>) -> bool {
        let Ok(client) = found else { return true };
        let Ok(status) = client.daemon_status(&Empty {}).await else { return false };
        if status.mode != "on_demand" {
            self.info(&format!(
                "the daemon has version {} and was not started on demand: restart it to use {}",
                status.version,
                version::OWN
            ));
        }
        status.mode == "on_demand"
    }

    /// Returns the files of this user's data root.
    pub fn data_root(&self) -> Result<DataRoot, ClientError> {
        self.env.data_root().map(DataRoot).ok_or(ClientError::NoHome)
    }

    /// Prints a note to standard error, unless `--quiet` is set.
    pub fn info(&self, text: &str) {
        if !self.globals.quiet {
            // Standard error may be closed.
            let _closed =
                std::io::Write::write_all(&mut std::io::stderr(), format!("{text}\n").as_bytes());
        }
    }

    /// Prints a failure that does not end the program.
    pub fn warn(&self, failure: &Failure) {
        // Standard error may be closed.
        let _closed = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("{}\n", failure.text()).as_bytes(),
        );
    }

    /// Calls a method. With `--json` its answer is printed unchanged, and `None` is returned.
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

pub fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|e| Failure::failed(format!("the current folder cannot be read: {e}")))
}
