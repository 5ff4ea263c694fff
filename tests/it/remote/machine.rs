//! Two machines: one with the daemon, and one that uses it remotely.

use std::{
    io::BufRead as _,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use cairn_client_sdk::{Client, ClientError, Connector, KnownHost};
use cairn_pairing::Pin;
use cairn_protocol::{
    location::{DataRoot, Env},
    remote::{PairBeginParams, PairOffer, Right},
};
use tokio::net::{TcpListener, TcpStream};

use crate::sealed::{Daemon, command, tree};

/// A machine whose daemon accepts paired devices.
pub struct Den {
    pub daemon: Daemon,
    /// Address of the listener for devices.
    pub lan: String,
    _dir: tempfile::TempDir,
}

impl Den {
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Starts a daemon with a configuration of the user.
    pub async fn start_with(config: &serde_json::Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        tree(&dir.path().join("home"), &[("config/config.json", &config.to_string())]);
        Self::start_in(dir, "127.0.0.1:0")
    }

    /// Starts a daemon with the given address for devices.
    pub async fn start_at(lan: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), lan)
    }

    fn start_in(dir: tempfile::TempDir, lan: &str) -> Self {
        let daemon = Daemon::start_in(&dir.path().join("home"), &["--lan", lan, "--name", "den"]);
        let lan = daemon.file().unwrap().addresses[1].clone();
        Self { daemon, lan, _dir: dir }
    }

    /// Restarts the daemon of the same data root at the same address.
    pub async fn restart(mut self) -> Self {
        self.daemon.stop();
        let flags = ["--lan", &self.lan, "--name", "den"];
        let daemon = Daemon::start_in(&self.daemon.home.clone(), &flags);
        assert_eq!(daemon.file().unwrap().addresses[1], self.lan);
        Self { daemon, ..self }
    }

    pub async fn client(&self) -> Client {
        Connector::local(env(&self.daemon.home)).connect().await.unwrap()
    }

    pub async fn begin(&self, rights: &[Right]) -> Result<PairOffer, ClientError> {
        let params = PairBeginParams { rights: rights.to_vec(), name: None };
        self.client().await.pair_begin(&params).await
    }

    pub fn ok(&self, args: &[&str]) -> String {
        ok(&self.daemon.home, args)
    }

    /// Starts `cairn pair`, and returns the process and the code that it shows.
    pub fn offer_by_command(&self, args: &[&str]) -> (Child, String) {
        let mut pair = command(&self.daemon.home);
        let mut pair = pair.arg("pair").args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut lines = std::io::BufReader::new(pair.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        let code = first.trim().strip_prefix("code").unwrap().trim().to_owned();
        // The remaining output is for the caller that waits for its exit.
        pair.stdout = Some(lines.into_inner());
        (pair, code)
    }
}

/// A machine without a daemon.
pub struct Laptop(tempfile::TempDir);

impl Laptop {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn home(&self) -> &Path {
        self.0.path()
    }

    pub fn root(&self) -> DataRoot {
        DataRoot(self.home().to_owned())
    }

    /// Pairs with the daemon, which must succeed.
    pub async fn pair(&self, den: &Den, rights: &[Right], as_name: &str) -> KnownHost {
        let offer = den.begin(rights).await.unwrap();
        let known = self.try_code(&den.lan, None, &offer.code, as_name).await.unwrap();
        assert_eq!((known.key.to_string(), &*known.rights), (offer.key, rights));
        known
    }

    pub async fn try_code(
        &self,
        at: &str,
        key: Option<Pin>,
        code: &str,
        as_name: &str,
    ) -> Result<KnownHost, ClientError> {
        cairn_client_sdk::pair(&self.root(), at, key, code, "laptop", Some(as_name)).await
    }

    pub async fn connect(&self, host: &str) -> Result<Client, ClientError> {
        Connector::remote(env(self.home()), host).connect().await
    }

    pub fn ok(&self, args: &[&str]) -> String {
        ok(self.home(), args)
    }

    /// Returns exit code and combined output of a command.
    pub fn run(&self, args: &[&str]) -> (i32, String) {
        run(self.home(), args)
    }
}

fn env(home: &Path) -> Env {
    Env { cairn_home: Some(PathBuf::from(home)), ..Env::default() }
}

fn run(home: &Path, args: &[&str]) -> (i32, String) {
    let output = command(home)
        .current_dir("/")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let bytes = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&bytes).into_owned())
}

fn ok(home: &Path, args: &[&str]) -> String {
    let output = command(home)
        .current_dir("/")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Forwards bytes between each client and `to`, and returns the address to connect to.
pub async fn forward(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut one, _)) = listener.accept().await {
            let to = to.clone();
            tokio::spawn(async move {
                let mut other = TcpStream::connect(to).await.unwrap();
                // Either side may close first.
                let _ignored = tokio::io::copy_bidirectional(&mut one, &mut other).await;
            });
        }
    });
    near
}
