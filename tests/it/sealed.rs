//! A daemon in a sealed home, and a client that knows only the protocol reference.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{self, Message, client::IntoClientRequest, http::HeaderValue},
};

/// Maximum wait for any expected event.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Returns the binary: the one that `CAIRN_TEST_BINARY` names, else one that is built once.
pub fn binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("CAIRN_TEST_BINARY") {
        Some(given) => given.into(),
        None => built(&["-p", "cairn-daemon", "--bin", "cairn"], "cairn"),
    })
}

/// Returns the path of a target; `file` is its path in the profile's folder. It is built if it is
/// missing or older than a source: `cargo test --workspace` has built it already, and another build
/// would choose other features.
pub fn built(target: &[&str], file: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join(file);
    let built_at = path.metadata().and_then(|m| m.modified());
    if !built_at.is_ok_and(|built_at| built_at >= newest_source()) {
        let build = Command::new(env!("CARGO")).args(["build", "--quiet"]).args(target).status();
        assert!(build.unwrap().success(), "{target:?} does not build");
    }
    path
}

/// Returns the time of the latest change to a source of the binary.
fn newest_source() -> std::time::SystemTime {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut waiting = ["Cargo.toml", "Cargo.lock", "protocol", "pairing", "client-sdk", "daemon"]
        .map(|p| root.join(p))
        .to_vec();
    let mut newest = std::time::UNIX_EPOCH;
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let inside = std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path());
            // Tests and documents do not change the binary.
            waiting.extend(inside.filter(|p| {
                !["tests", "docs", "schema", "python", "typescript", "proptest-regressions"]
                    .iter()
                    .any(|skip| p.ends_with(skip))
            }));
        } else {
            newest = newest.max(path.metadata().unwrap().modified().unwrap());
        }
    }
    newest
}

/// Prints a line to the log of a test run, even if the test passes.
#[expect(clippy::print_stderr, reason = "a notice is for the reader of the run")]
pub fn note(line: &str) {
    eprintln!("note: {line}");
}

/// Reports a missing requirement of a test: a notice, or a failure if everything is required.
pub fn missing(what: &str) {
    let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|v| v == "required");
    assert!(!required, "{what} is required and missing");
    note(&format!("left out: {what} is missing"));
}

/// Returns a Python that has a package; `None` after a notice.
pub fn python(package: &str) -> Option<String> {
    let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = Command::new(&python)
        .args(["-c", &format!("import {package}")])
        .stderr(Stdio::null())
        .status();
    if probe.is_ok_and(|s| s.success()) {
        return Some(python);
    }
    missing(&format!("python's {package}"));
    None
}

/// A running daemon, which is killed on drop.
pub struct Daemon {
    pub home: PathBuf,
    child: Child,
    _dir: Option<tempfile::TempDir>,
}

/// Content of the file `daemon.json`.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonFile {
    pub pid: u32,
    pub addresses: Vec<String>,
    pub token_path: PathBuf,
}

impl Daemon {
    /// Starts a daemon in a new home.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut daemon = Self::start_in(&dir.path().join("home"), &[]);
        daemon._dir = Some(dir);
        daemon
    }

    /// Starts a daemon in an existing home.
    pub fn start_in(home: &Path, flags: &[&str]) -> Self {
        Self::begin(home, flags, &[])
    }

    /// Starts a daemon with variables in its environment.
    pub fn start_with(home: &Path, variables: &[(&str, &str)]) -> Self {
        Self::begin(home, &[], variables)
    }

    /// Starts a daemon whose standard output is returned.
    pub fn start_piped(home: &Path, flags: &[&str]) -> (Self, std::process::ChildStdout) {
        let mut daemon = Self::begin_with(home, flags, &[], Stdio::piped());
        let output = daemon.child.stdout.take().unwrap();
        (daemon, output)
    }

    fn begin(home: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::begin_with(home, flags, variables, Stdio::null())
    }

    fn begin_with(home: &Path, flags: &[&str], variables: &[(&str, &str)], stdout: Stdio) -> Self {
        let mut command = command(home);
        // Work that runs when a test stops the daemon is interrupted, unless the test wants it to
        // finish.
        command.env("CAIRN_DAEMON_DRAIN_SECONDS", "0");
        command.args(["serve", "--port", "0"]).args(flags).envs(variables.iter().copied());
        let child = command.stdout(stdout).stderr(log(home)).spawn().unwrap();
        let daemon = Self { home: home.to_owned(), child, _dir: None };
        let pid = daemon.child.id();
        wait_for("daemon.json", || daemon.file().filter(|f| f.pid == pid));
        daemon
    }

    /// Starts a daemon by a program that runs it in its own process, with its arguments. Returns the
    /// exit code if the daemon exits before it is ready.
    pub fn start_under(home: &Path, program: &[&str]) -> Result<Self, Option<i32>> {
        let plain = command(home);
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(plain.get_program()).args(["serve", "--port", "0"]);
        command.env_clear().env("CAIRN_DAEMON_DRAIN_SECONDS", "0");
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(home));
        let child = command.spawn().unwrap();
        let mut daemon = Self { home: home.to_owned(), child, _dir: None };
        let pid = daemon.child.id();
        wait_for("daemon.json or an exit", || match daemon.child.try_wait().unwrap() {
            Some(status) => Some(Err(status.code())),
            None => daemon.file().filter(|f| f.pid == pid).map(|_| Ok(())),
        })?;
        Ok(daemon)
    }

    pub fn file(&self) -> Option<DaemonFile> {
        serde_json::from_slice(&std::fs::read(self.home.join("daemon.json")).ok()?).ok()
    }

    pub fn address(&self) -> String {
        self.file().unwrap().addresses[0].clone()
    }

    pub fn token(&self) -> String {
        std::fs::read_to_string(self.file().unwrap().token_path).unwrap()
    }

    /// Sends SIGKILL, like `kill -9`.
    pub fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.wait_exit()
    }

    /// Sends SIGHUP to the daemon.
    pub fn hang_up(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// Waits until the daemon exits by itself.
    pub fn wait_exit(&mut self) -> std::process::ExitStatus {
        wait_for("the end of the daemon", || self.child.try_wait().unwrap())
    }

    /// Connects a client and performs the handshake.
    pub async fn client(&self) -> Raw {
        self.client_with(hello()).await
    }

    /// Connects a client that answers approvals.
    pub async fn approver(&self) -> Raw {
        let mut hello = hello();
        hello["capabilities"] = json!({"approvals": true});
        self.client_with(hello).await
    }

    /// Connects a client to a daemon that may be about to exit.
    pub async fn try_client(&self) -> Option<Raw> {
        let file = self.file()?;
        let bearer = format!("Bearer {}", std::fs::read_to_string(file.token_path).ok()?);
        let headers = [("authorization", &*bearer)];
        let mut raw = Raw::connect(file.addresses.first()?, &headers).await.ok()?;
        raw.try_call("initialize", hello()).await?;
        Some(raw)
    }

    async fn client_with(&self, hello: Value) -> Raw {
        let bearer = format!("Bearer {}", self.token());
        let mut raw = Raw::connect(&self.address(), &[("authorization", &bearer)]).await.unwrap();
        raw.ok("initialize", hello).await;
        raw
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ignored = self.child.kill();
        let _ignored = self.child.wait();
    }
}

/// Returns the binary with that home, without variables of this machine that could affect it.
pub fn command(home: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("CAIRN_HOME", home)
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap());
    // With this folder the configuration lies beside the data, and a test can write it while the
    // daemon runs.
    let mut private = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    private.recursive(true).create(home.join("config")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns exit code, standard output and standard error of a command in a folder.
pub fn cairn(home: &Path, folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = command(home);
    command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn log(home: &Path) -> Stdio {
    std::fs::create_dir_all(home).unwrap();
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.join("test.log"))
        .unwrap()
        .into()
}

/// Returns the log of the daemons in that home.
pub fn logged(home: &Path) -> String {
    std::fs::read_to_string(home.join("test.log")).unwrap()
}

/// Returns the parameters of `initialize`.
pub fn hello() -> Value {
    json!({"protocolVersions": ["1"], "client": {"name": "it", "version": "0"}})
}

/// Polls until there is a value; panics after [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A minimal WebSocket client.
pub struct Raw {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
    /// Messages that arrived while another one was expected.
    pub backlog: Vec<Value>,
}

impl Raw {
    /// Calls a method repeatedly until `pick` finds a value in its answer.
    pub async fn poll<T>(
        &mut self,
        method: &str,
        params: Value,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ok(method, params.clone()).await;
            if let Some(picked) = pick(&answer) {
                return picked;
            }
            assert!(Instant::now() < until, "{method} {params}: {answer}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn connect(
        address: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, tungstenite::Error> {
        Self::connect_at(&format!("{address}/rpc"), headers).await
    }

    /// Connects to another path.
    pub async fn connect_at(
        endpoint: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, tungstenite::Error> {
        let mut request = format!("ws://{endpoint}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let (socket, _) = connect_async(request).await?;
        Ok(Self { socket, next: 0, backlog: Vec::new() })
    }

    pub async fn send(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// Sends to a peer that may close the connection before it has read everything.
    pub async fn send_in_vain(&mut self, message: Message) {
        let _cut = self.socket.send(message).await;
    }

    pub async fn send_json(&mut self, value: &Value) {
        self.send(Message::text(value.to_string())).await;
    }

    /// Returns the next frame except pings; `None` at the end.
    pub async fn frame(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next())
                .await
                .expect("a frame in time")?;
            match next {
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(message) => return Some(message),
                Err(_) => return None,
            }
        }
    }

    /// Returns the next JSON message.
    pub async fn json(&mut self) -> Value {
        match self.frame().await {
            Some(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
            other => panic!("text was expected, not {other:?}"),
        }
    }

    /// Returns the close code; panics if another frame arrives.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            match self.frame().await {
                Some(Message::Close(frame)) => return frame.map(|f| f.code.into()),
                None => return None,
                Some(_) => {}
            }
        }
    }

    /// Returns the complete answer of a call. Notifications before it are stored in `backlog`.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        self.answer(&json!(id)).await
    }

    /// Returns the complete answer of a call; `None` if the connection ends before it.
    pub async fn try_call(&mut self, method: &str, params: Value) -> Option<Value> {
        self.next += 1;
        let id = json!(self.next);
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_in_vain(Message::text(call.to_string())).await;
        loop {
            let Some(Message::Text(text)) = self.frame().await else { return None };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message.get("id") == Some(&id) {
                return Some(message);
            }
        }
    }

    /// Returns the answer with that id.
    pub async fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.backlog.iter().position(|m| m.get("id") == Some(id)) {
            return self.backlog.remove(at);
        }
        loop {
            let message = self.json().await;
            if message.get("id") == Some(id) {
                return message;
            }
            self.backlog.push(message);
        }
    }

    /// Returns the result of a call that must succeed.
    pub async fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Adds a root and creates a session in it; returns the session's id.
    pub async fn open_session(&mut self, root: &Path) -> Value {
        self.ok("index.addRoot", json!({"path": root})).await;
        self.ok("session.create", json!({"root": root})).await["sessionId"].clone()
    }

    /// Starts the turn `t` in a new session of a root; returns the session's id.
    pub async fn start_turn(&mut self, root: &Path) -> String {
        let session = self.open_session(root).await.as_str().unwrap().to_owned();
        self.ok(
            "orchestrate.run.start",
            json!({"sessionId": session, "turnId": "t", "input": "go"}),
        )
        .await;
        session
    }

    /// Returns the first 500 records of a session.
    pub async fn records(&mut self, session: &str) -> Vec<Value> {
        let page = self.ok("trace.get", json!({"traceId": session, "limit": 500})).await;
        page["data"].as_array().unwrap().clone()
    }

    /// Returns the outcome of a tool, which may be an error.
    pub async fn call_tool(&mut self, session: &Value, name: &str, arguments: Value) -> Value {
        self.ok("tool.call", json!({"sessionId": session, "name": name, "arguments": arguments}))
            .await
    }

    /// Returns the reason of a call that must fail.
    pub async fn refused(&mut self, method: &str, params: Value) -> String {
        let answer = self.call(method, params).await;
        answer["error"]["data"]["reason"]
            .as_str()
            .unwrap_or_else(|| panic!("{method}: {answer}"))
            .to_owned()
    }

    /// Returns the next notification of that method.
    pub async fn notification(&mut self, method: &str) -> Value {
        if let Some(at) = self.backlog.iter().position(|m| m["method"] == method) {
            return self.backlog.remove(at)["params"].clone();
        }
        loop {
            let message = self.json().await;
            if message["method"] == method {
                return message["params"].clone();
            }
            self.backlog.push(message);
        }
    }

    /// Starts an explore of `root` and reads its complete stream; the last record is its end.
    pub async fn explore(&mut self, root: &Path, goals: &[&str]) -> Vec<Value> {
        let receipt =
            self.ok("orchestrate.explore.start", json!({"root": root, "goals": goals})).await;
        self.follow(receipt["sessionId"].as_str().unwrap(), 0).await
    }

    /// Follows a session after a record until its run ends.
    pub async fn follow(&mut self, session: &str, after: u64) -> Vec<Value> {
        let given =
            self.ok("orchestrate.subscribe", json!({"sessionId": session, "after": after})).await;
        let mut records = Vec::new();
        loop {
            let mut record = self.notification("orchestrate.event").await;
            assert_eq!(record["subscriptionId"], given["subscriptionId"]);
            record.as_object_mut().unwrap().remove("subscriptionId");
            let end = ends(&record);
            records.push(record);
            if end {
                self.ok(
                    "orchestrate.unsubscribe",
                    json!({"subscriptionId": given["subscriptionId"]}),
                )
                .await;
                self.backlog.retain(|m| m["params"]["subscriptionId"] != given["subscriptionId"]);
                return records;
            }
        }
    }
}

/// True if a record is the last of an explore.
pub fn ends(record: &Value) -> bool {
    let evt = &record["evt"];
    evt["type"] == "completed"
        || (["stopped", "error"].iter().any(|t| evt["type"] == *t) && evt["op"] == "explore")
}

/// Returns the sequence numbers of records.
pub fn seqs(records: &[Value]) -> Vec<u64> {
    records.iter().map(|r| r["seq"].as_u64().unwrap()).collect()
}

/// Writes a tree of files.
pub fn tree(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Writes a program from another process: if this process wrote it, a child starting concurrently
/// could inherit the open file, and the program could not be run ("text file busy").
pub fn program(file: &Path, text: &str) {
    use std::io::Write as _;
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(file).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success(), "{}", file.display());
}

/// Makes a folder a repository whose only commit has all of its files.
pub fn commit_all(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
}

/// Runs git in a folder without any user's configuration.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_NAME", "it"),
        ("GIT_AUTHOR_EMAIL", "it@example.org"),
        ("GIT_COMMITTER_NAME", "it"),
        ("GIT_COMMITTER_EMAIL", "it@example.org"),
    ] {
        command.env(name, value);
    }
    let output = command.arg("-C").arg(folder).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
