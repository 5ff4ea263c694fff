//! What every command needs: the flags, the environment, the way to the daemon.

use std::{
    cell::OnceCell,
    path::{Component, Path, PathBuf},
};

use cairn_client_sdk::{Client, ClientError, Connector, Starter, ensure_daemon};
use cairn_protocol::{
    index::IndexStatusParams,
    location::{DataRoot, Env},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    Globals, Host,
    args::Sessions,
    exit::Failure,
    output,
    overrides::{self, Overrides},
    scope,
};

/// One run of a command.
pub struct App<'a> {
    pub host: &'a dyn Host,
    pub globals: Globals,
    pub env: Env,
    /// The sessions that the command takes turns in.
    pub sessions: Sessions,
    overrides: OnceCell<Overrides>,
}

impl<'a> App<'a> {
    pub fn new(host: &'a dyn Host, mut globals: Globals, sessions: Sessions) -> Self {
        globals.config = globals.config.map(|path| std::path::absolute(&path).unwrap_or(path));
        Self { host, globals, env: Env::from_process(), sessions, overrides: OnceCell::new() }
    }

    /// How this program connects.
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

    /// Whether the daemon is another machine's, and paths are that machine's.
    pub fn is_remote(&self) -> bool {
        self.globals.host.is_some() || self.globals.address.is_some()
    }

    /// Where the user is: the current folder; on another machine, its only root, or its top folder.
    pub async fn here(&self, client: &Client) -> Result<PathBuf, Failure> {
        if !self.is_remote() {
            return current_dir();
        }
        let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
        match roots.as_slice() {
            [only] => Ok(PathBuf::from(&only.path)),
            _ => Ok(PathBuf::from("/")),
        }
    }

    /// The daemon, started if need be, and where the user is. A folder that is gone is told of first.
    pub async fn start_here(&self) -> Result<(Client, PathBuf), Failure> {
        if !self.is_remote() {
            current_dir()?;
        }
        let client = self.client().await?;
        let here = self.here(&client).await?;
        Ok((client, here))
    }

    /// A path as the daemon knows it. On another machine nothing can be looked up: it must be written out.
    pub fn canonical(&self, path: &Path) -> Result<PathBuf, Failure> {
        if !self.is_remote() {
            return scope::canonical(path);
        }
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    let text = format!("{}: '..' cannot be looked up on another machine", path.display());
                    return Err(Failure::usage(text));
                }
                part => plain.push(part),
            }
        }
        Ok(plain)
    }

    /// For commands that are about this machine alone.
    pub fn only_here(&self, command: &str) -> Result<(), Failure> {
        match self.is_remote() {
            false => Ok(()),
            true => Err(Failure::usage(format!(
                "'{command}' is about this machine: leave --host and --address out"
            ))),
        }
    }

    /// The daemon, started if need be.
    pub async fn client(&self) -> Result<Client, Failure> {
        self.client_of(self.connector()).await
    }

    /// The daemon, started if need be, connected to by `connector`. The settings of this command are checked first: a daemon
    /// that is started gets none of them.
    pub async fn client_of(&self, connector: Connector) -> Result<Client, Failure> {
        let overrides = self.overrides()?;
        let client = self.connected(connector).await?;
        if !self.is_remote() {
            overrides::check_folder(self)?;
        }
        overrides.check(self, &client).await?;
        Ok(client)
    }

    /// The settings that this command brings along, read once.
    ///
    /// # Errors
    /// A file that cannot be read, or a value of the wrong type.
    pub fn overrides(&self) -> Result<&Overrides, Failure> {
        if let Some(known) = self.overrides.get() {
            return Ok(known);
        }
        let read = Overrides::read(self)?;
        Ok(self.overrides.get_or_init(|| read))
    }

    async fn connected(&self, connector: Connector) -> Result<Client, ClientError> {
        if connector.is_remote() {
            return connector.connect().await;
        }
        let exe = std::env::current_exe().map_err(|e| ClientError::Start {
            cause: format!("this program's own path is not known: {e}"),
            log: PathBuf::new(),
        })?;
        let args = vec!["serve".into(), "--on-demand".into()];
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
