//! One running server: its start, the texts that it receives, and the diagnostics of an edit.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cairn_harness::{Permit, ServiceProcess, ServiceSpec, ServiceStop};
use cairn_protocol::error::Failure;
use cairn_workspace::View;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use url::Url;

use super::{
    Limits,
    connection::{self, Connection, RequestError},
    diagnostic::{Diagnostic, Pulled, new_ones, stored},
    documents::Sync,
    framing::Decoder,
    spec::{Program, ServerSpec, language_of},
};

/// Time without a report after which the diagnostics of a version are complete.
const QUIET: Duration = Duration::from_millis(150);
/// Wait before a request is repeated that the server cancelled itself.
const RETRY: Duration = Duration::from_millis(50);
/// Errors of a request that the server cancelled because its state changed.
const CANCELLED: [i64; 2] = [-32801, -32802];

/// Result of an edit of one file.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Diagnostics that the file did not have before.
    New {
        diagnostics: Vec<Diagnostic>,
        /// False if the diagnostics before the edit are not known: all are reported then.
        is_compared: bool,
        /// False if the server was still working.
        is_complete: bool,
    },
    /// No answer in time.
    Unanswered,
    /// The server has ended, for this reason.
    Failed(String),
}

/// State of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Ready { pulls: bool },
}

/// A program that was started; edits in progress and the table of servers share it.
pub struct Server {
    pub spec: Arc<ServerSpec>,
    /// Rules about reading when it was started, by which its view of the workspace was built.
    pub view: View,
    connection: Arc<Connection>,
    phase: watch::Receiver<Phase>,
    stop: ServiceStop,
    last_used: Mutex<Instant>,
    is_stopped: AtomicBool,
    // Dropping it stops the program.
    _process: ServiceProcess,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    capabilities: Capabilities,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(default)]
    diagnostic_provider: Option<Value>,
}

impl Server {
    /// Starts a server for a folder; it is ready later.
    pub async fn start(
        spec: Arc<ServerSpec>,
        program: Program,
        (folder, cache): (&Path, &Path),
        permit: &Permit,
        view: View,
        limits: Limits,
    ) -> Result<Arc<Self>, Failure> {
        let address = address(folder);
        let (connection, queue) = Connection::new(address.clone());
        let reading = Arc::clone(&connection);
        let mut decoder = Decoder::default();
        let service = ServiceSpec {
            name: spec.name.clone(),
            rule: "diagnostics.mode, trust.folders",
            argv: program.argv,
            folder: folder.to_owned(),
            cache: cache.to_owned(),
            readable: program.readable,
            env: environment(cache),
        };
        let output = Box::new(move |bytes: &[u8]| reading.read(&mut decoder, bytes));
        let mut process = permit.start_service(&service, output).await?;
        let stop = process.stopper();
        connection.set_stop(stop.clone());
        if let Some(input) = process.input.take() {
            tokio::spawn(connection::write(input, queue));
        }
        let mut exit = process.exit();
        let exited = Arc::clone(&connection);
        tokio::spawn(async move {
            if let Ok(exit) = exit.wait_for(Option::is_some).await
                && let Some(exit) = exit.as_ref()
            {
                exited.fail(&format!("it {}", exit.reason));
            }
        });
        let (phase_sender, phase) = watch::channel(Phase::Starting);
        let params = initialize_params(&spec, &address);
        tokio::spawn(initialize(Arc::clone(&connection), params, phase_sender, limits.initialize));
        let server = Arc::new(Self {
            spec,
            view,
            connection,
            phase,
            stop,
            last_used: Mutex::new(Instant::now()),
            is_stopped: AtomicBool::new(false),
            _process: process,
        });
        tokio::spawn(stop_when_idle(Arc::downgrade(&server), limits.idle));
        Ok(server)
    }

    /// Returns the reason and the time of its end, unless it was stopped from here.
    pub fn failure(&self) -> Option<(String, std::time::Instant)> {
        let failure = self.connection.state().failure.clone();
        failure.filter(|_| !self.is_stopped())
    }

    /// Returns true if it was stopped from here.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.connection.notify("exit", Value::Null);
        self.stop.stop();
    }

    pub fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the server is in use.
    pub fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until the server is ready; `None` if it is not by then.
    async fn ready(&self, until: Instant) -> Option<bool> {
        let mut phase = self.phase.clone();
        let ready = phase.wait_for(|phase| *phase != Phase::Starting);
        match tokio::time::timeout_at(until, ready).await {
            Ok(Ok(phase)) => match *phase {
                Phase::Ready { pulls } => Some(pulls),
                Phase::Starting => None,
            },
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Sends the texts that files have before an edit, and stores their diagnostics to compare
    /// with. A file without a text does not exist.
    pub async fn before(&self, files: &[(PathBuf, Option<String>)], until: Instant) {
        self.touch();
        let Some(pulls) = self.ready(until).await else { return };
        let known: Vec<PathBuf> = files
            .iter()
            .filter_map(|(path, text)| {
                self.set_text(path, text.as_deref()?);
                Some(path.clone())
            })
            .collect();
        self.settle(&known, pulls, until).await;
        let mut state = self.connection.state();
        for path in known {
            let baseline = state.documents.current(&path, pulls);
            let is_loading = self.spec.reports_status && state.is_quiescent != Some(true);
            state.documents.set_baseline(&path, baseline.filter(|_| !is_loading));
        }
    }

    /// Sends the texts that files have after an edit, and returns their new diagnostics in the same
    /// order. A file without a text was deleted. `created` are files that did not exist before.
    pub async fn after(
        &self,
        files: &[(PathBuf, Option<String>)],
        created: &[PathBuf],
        until: Instant,
    ) -> Vec<Outcome> {
        self.touch();
        for (path, _) in files {
            let mut state = self.connection.state();
            if created.contains(path) {
                state.documents.set_created(path);
            }
            state.documents.set_edited(path);
        }
        let Some(pulls) = self.ready(until).await else {
            return files.iter().map(|_| self.unanswered()).collect();
        };
        let mut events = Vec::new();
        let mut changed = Vec::new();
        for (path, text) in files {
            let kind = match text {
                None => 3,
                Some(_) if created.contains(path) => 1,
                Some(_) => 2,
            };
            events.push(json!({"uri": address(path), "type": kind}));
            let Some(text) = text else {
                self.close(path);
                continue;
            };
            self.set_text(path, text);
            let document = json!({"uri": address(path)});
            self.connection.notify("textDocument/didSave", json!({"textDocument": document}));
            changed.push(path.clone());
        }
        self.connection.notify("workspace/didChangeWatchedFiles", json!({"changes": events}));
        self.settle(&changed, pulls, until).await;
        files.iter().map(|(path, text)| self.outcome(path, text.is_some(), pulls)).collect()
    }

    fn unanswered(&self) -> Outcome {
        let failure = self.connection.state().failure.clone();
        failure.map_or(Outcome::Unanswered, |(reason, _)| Outcome::Failed(reason))
    }

    fn outcome(&self, path: &Path, exists: bool, pulls: bool) -> Outcome {
        if !exists {
            let (diagnostics, is_compared, is_complete) = (vec![], true, true);
            return Outcome::New { diagnostics, is_compared, is_complete };
        }
        let mut state = self.connection.state();
        let is_loading = self.spec.reports_status && state.is_quiescent != Some(true);
        let current = state.documents.current(path, pulls).filter(|_| !is_loading);
        let Some(current) = current else {
            drop(state);
            return self.unanswered();
        };
        let baseline = state.documents.take_baseline(path);
        let is_compared = baseline.is_some();
        let diagnostics = new_ones(&baseline.unwrap_or_default(), &current);
        Outcome::New { diagnostics, is_compared, is_complete: !state.is_busy() }
    }

    /// Sends a text that the server does not have.
    fn set_text(&self, path: &Path, text: &str) {
        let sync = self.connection.state().documents.set_text(path, text);
        let uri = address(path);
        match sync {
            Sync::Unchanged => {}
            Sync::Open => {
                let language = language_of(path);
                let document =
                    json!({"uri": uri, "languageId": language, "version": 1, "text": text});
                self.connection.notify("textDocument/didOpen", json!({"textDocument": document}));
                let surplus = self.connection.state().documents.surplus();
                if let Some(surplus) = surplus {
                    self.close(&surplus);
                }
            }
            Sync::Change(version) => {
                let document = json!({"uri": uri, "version": version});
                let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
                self.connection.notify("textDocument/didChange", params);
            }
        }
    }

    fn close(&self, path: &Path) {
        if self.connection.state().documents.close(path) {
            let document = json!({"uri": address(path)});
            self.connection.notify("textDocument/didClose", json!({"textDocument": document}));
        }
    }

    /// Waits until the server has reported the current versions and is quiet.
    async fn settle(&self, paths: &[PathBuf], pulls: bool, until: Instant) {
        if paths.is_empty() {
            return;
        }
        if self.spec.reports_status {
            self.wait(until, |state| state.is_quiescent == Some(true)).await;
        }
        if pulls {
            for path in paths {
                let pulled = self.pull(path);
                // The deadline is checked again below.
                let _expired = tokio::time::timeout_at(until, pulled).await;
            }
        }
        self.wait(until, |state| {
            let is_known = |path: &PathBuf| state.documents.current(path, pulls).is_some();
            !state.is_busy() && state.quiet_for() >= QUIET && paths.iter().all(is_known)
        })
        .await;
    }

    /// Waits until a condition holds, the connection ends or the time is over.
    async fn wait(&self, until: Instant, is_met: impl Fn(&super::connection::State) -> bool) {
        let mut changes = self.connection.changes();
        loop {
            let rest = {
                let state = self.connection.state();
                if state.failure.is_some() || is_met(&state) {
                    return;
                }
                QUIET.saturating_sub(state.quiet_for())
            };
            if Instant::now() >= until {
                return;
            }
            let rest = if rest.is_zero() { QUIET } else { rest };
            let next = until.min(Instant::now() + rest);
            // Either end leads to the conditions above.
            let _elapsed = tokio::time::timeout_at(next, changes.changed()).await;
        }
    }

    /// Requests the diagnostics of a file.
    async fn pull(&self, path: &Path) {
        let params = json!({"textDocument": {"uri": address(path)}});
        loop {
            let version = self.connection.state().documents.version(path);
            let Some(version) = version else { return };
            match self.connection.request("textDocument/diagnostic", params.clone()).await {
                Ok(result) => {
                    let pulled = serde_json::from_str::<Pulled>(result.get());
                    let items = pulled.map(|pulled| pulled.items).unwrap_or_default();
                    self.connection.state().documents.set_pulled(path, version, stored(items));
                    return;
                }
                Err(RequestError::Refused(error)) if CANCELLED.contains(&error.code) => {
                    tokio::time::sleep(RETRY).await;
                }
                Err(RequestError::Refused(_) | RequestError::Closed) => return,
            }
        }
    }
}

/// Performs the handshake. A server that does not complete it in time is stopped.
async fn initialize(
    connection: Arc<Connection>,
    params: Value,
    phase: watch::Sender<Phase>,
    limit: Duration,
) {
    let request = connection.request("initialize", params);
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(result)) => {
            let Ok(result) = serde_json::from_str::<Initialized>(result.get()) else {
                return connection.fail("its answer to initialize is invalid");
            };
            let provider = result.capabilities.diagnostic_provider;
            let pulls = provider.is_some_and(|p| !p.is_null() && p != Value::Bool(false));
            connection.notify("initialized", json!({}));
            connection.notify("workspace/didChangeConfiguration", json!({"settings": {}}));
            phase.send_replace(Phase::Ready { pulls });
        }
        Ok(Err(RequestError::Refused(error))) => {
            connection.fail(&format!("it refused to initialize: {}", error.message));
        }
        Ok(Err(RequestError::Closed)) => {}
        Err(_) => connection.fail(&format!("it did not initialize within {} s", limit.as_secs())),
    }
}

/// Stops a server that was not used for some time.
async fn stop_when_idle(server: std::sync::Weak<Server>, idle: Duration) {
    loop {
        let until = match server.upgrade() {
            Some(server) if server.connection.state().failure.is_none() => {
                // The table has one reference and this task another; further ones are edits.
                if Arc::strong_count(&server) > 2 {
                    server.touch();
                }
                let until = server.last_used() + idle;
                if until <= Instant::now() {
                    return server.stop();
                }
                until
            }
            _ => return,
        };
        tokio::time::sleep_until(until).await;
    }
}

/// Returns the address of a file or folder, as servers have it.
fn address(path: &Path) -> String {
    // Only a relative path has none, and roots are absolute.
    Url::from_file_path(path).map_or_else(|()| String::new(), String::from)
}

/// Variables that lead the caches of build tools into the folder of the server.
fn environment(cache: &Path) -> Vec<(String, String)> {
    let inner = |name: &str| cache.join(name).to_string_lossy().into_owned();
    [
        ("XDG_CACHE_HOME", inner("cache")),
        ("CARGO_TARGET_DIR", inner("target")),
        ("GOCACHE", inner("go-build")),
        ("GOFLAGS", "-mod=readonly".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn initialize_params(spec: &ServerSpec, folder: &str) -> Value {
    json!({
        // The process lives in a namespace of its own, where the number of this one means nothing.
        "processId": null,
        "clientInfo": {"name": "cairn", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": folder,
        "workspaceFolders": [{"uri": folder, "name": "workspace"}],
        "initializationOptions": spec.options,
        "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeConfiguration": {"dynamicRegistration": false},
                "didChangeWatchedFiles": {"dynamicRegistration": false},
            },
            "textDocument": {
                "synchronization": {"didSave": true, "dynamicRegistration": false},
                "publishDiagnostics": {"versionSupport": true},
                "diagnostic": {"dynamicRegistration": false, "relatedDocumentSupport": false},
            },
            "window": {"workDoneProgress": true},
            "experimental": {"serverStatusNotification": true},
        },
    })
}
