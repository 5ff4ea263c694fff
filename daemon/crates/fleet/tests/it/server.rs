//! A real broker in a temporary folder, and daemons in this process that connect to it.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use cairn_api::{Api, HostInfo};
use cairn_engine::{Agent, Engine, EngineOptions, RunContext};
use cairn_fleet::{Fleet, Login, Mirrored, Settings};
use cairn_protocol::{
    daemon::Limits, error::Failure, explore::ExploreSummary, fleet::FleetRun, index::AddRootParams,
};
use cairn_test_support::engine::{deps, index_options, options};
use tokio::sync::Semaphore;

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The broker's program, beside the Python of the peers. `None` if it is not installed; with
/// `CAIRN_TEST_PEERS=required` that fails the test.
pub fn program() -> Option<PathBuf> {
    let python = std::env::var_os("CAIRN_TEST_PYTHON").map(PathBuf::from);
    let beside = python.and_then(|python| Some(python.parent()?.join("nats-server")));
    let found = beside.filter(|path| path.exists());
    let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|value| value == "required");
    assert!(found.is_some() || !required, "nats-server is not installed");
    found
}

/// A running broker; stopped when dropped.
pub struct Server {
    program: PathBuf,
    pub dir: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

impl Server {
    /// Starts a broker without accounts. `None` if it is not installed.
    pub fn start() -> Option<Self> {
        Self::with_config("")
    }

    /// Starts a broker with further lines of its configuration.
    pub fn with_config(more: &str) -> Option<Self> {
        let mut server = Self::stopped(more)?;
        server.resume();
        Some(server)
    }

    /// Prepares a broker without starting it.
    pub fn stopped(more: &str) -> Option<Self> {
        let program = program()?;
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = dir.path().join("store");
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n{more}\n",
            store.display()
        );
        std::fs::write(dir.path().join("nats.conf"), text).unwrap();
        Some(Self { program, dir, port, child: None })
    }

    /// Starts the program again on the same port and files.
    pub fn resume(&mut self) {
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(self.dir.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < PATIENCE, "the broker does not listen");
            std::thread::yield_now();
        }
    }

    /// Kills the program, without a chance to write what it has not written.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stores a copy of the files of a stopped broker.
    pub fn save_copy(&self) {
        self.copy("store", "copy");
    }

    /// Replaces the files of a stopped broker by the stored copy.
    pub fn restore_copy(&self) {
        self.copy("copy", "store");
    }

    fn copy(&self, from: &str, to: &str) {
        let target = self.dir.path().join(to);
        if target.exists() {
            std::fs::remove_dir_all(&target).unwrap();
        }
        let copy =
            Command::new("cp").arg("-a").arg(self.dir.path().join(from)).arg(target).status();
        assert!(copy.unwrap().success(), "cp");
    }

    pub fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Connects a client that is no daemon.
    pub async fn client(&self) -> async_nats::Client {
        async_nats::connect(self.address()).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An explorer that waits for a permit of its gate.
struct GatedExplorer(Arc<Semaphore>);

#[async_trait::async_trait]
impl Agent for GatedExplorer {
    async fn explore(&self, _: &RunContext, _: &[String]) -> Result<ExploreSummary, Failure> {
        self.0.acquire().await.unwrap().forget();
        Ok(ExploreSummary::default())
    }
}

/// A daemon in this process.
pub struct Daemon {
    pub engine: Engine,
    pub fleet: Arc<Fleet>,
    /// Explores wait for its permits.
    pub gate: Arc<Semaphore>,
    _dir: Arc<tempfile::TempDir>,
}

/// Settings of a daemon, with a short lease.
pub fn settings(server: &Server, name: &str) -> Settings {
    Settings {
        server: server.address(),
        login: Login::None,
        ca_file: None,
        name: name.to_owned(),
        pools: vec!["ci".to_owned()],
        mirror: Mirrored::All,
        mirror_folders: vec![],
        blobs: false,
        replicas: 1,
        clone_from: vec![],
        max_runs: 4,
        lease: Duration::from_secs(3),
    }
}

impl Daemon {
    pub async fn start(server: &Server, name: &str) -> Self {
        Self::with(settings(server, name), Arc::new(tempfile::tempdir().unwrap())).await
    }

    /// Starts a daemon on the files of an earlier one.
    pub async fn with(settings: Settings, dir: Arc<tempfile::TempDir>) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let options = EngineOptions { max_runs: 4, ..options(dir.path()) };
        let engine = Engine::open(deps(dir.path(), index_options()), options).await.unwrap();
        engine.set_explorer(Arc::new(GatedExplorer(Arc::clone(&gate))));
        let host = HostInfo::in_process("0", dir.path());
        let instance = host.instance_id.to_string();
        let api = Api::new(engine.clone(), host, Limits::default());
        let fleet = Fleet::start(settings, Arc::clone(&api), dir.path(), &instance).await.unwrap();
        api.set_fleet(fleet.clone());
        Self { engine, fleet, gate, _dir: dir }
    }

    /// Declares a folder as a root and returns its path.
    pub async fn add_root(&self, folder: &Path) -> String {
        std::fs::create_dir_all(folder).unwrap();
        let mut file = std::fs::File::create(folder.join("notes.txt")).unwrap();
        file.write_all(b"a note\n").unwrap();
        let params = AddRootParams { path: folder.to_str().unwrap().into(), request_id: None };
        self.engine.add_root(params).await.unwrap().path
    }

    /// Waits until a run has the state that `is` describes.
    pub async fn until_run(&self, turn_id: &str, is: impl Fn(&FleetRun) -> bool) -> FleetRun {
        let params = cairn_protocol::fleet::FleetRunsParams {
            pool: "ci".into(),
            turn_id: Some(turn_id.into()),
            ..Default::default()
        };
        let started = Instant::now();
        loop {
            let runs = cairn_api::Fleet::runs(&*self.fleet, params.clone()).await;
            if let Some(run) = runs.ok().and_then(|runs| runs.data.into_iter().next())
                && is(&run)
            {
                return run;
            }
            assert!(started.elapsed() < PATIENCE, "the run {turn_id} does not get there");
            tokio::task::yield_now().await;
        }
    }
}
