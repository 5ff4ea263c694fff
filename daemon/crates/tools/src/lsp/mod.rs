//! Language servers: started by the first edit of a file of their language, in the sandbox, and
//! shared by the sessions of a folder. After an edit they report the errors that it introduced.

mod connection;
mod diagnostic;
mod documents;
mod framing;
mod report;
mod server;
mod spec;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cairn_harness::Permit;
use cairn_workspace::{ResolvedPath, Root};
use sha2::{Digest as _, Sha256};
use tokio::{sync::Mutex, time::Instant};

pub use report::Report;
use server::Server;
pub use spec::{Program, ServerSpec, known_servers};

/// Largest file that a server receives, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Most files of one edit that servers check.
const MAX_FILES: usize = 20;
/// Failures after which a server is not started for some time.
const MAX_FAILURES: usize = 3;
/// Most projects whose failures are stored.
const MAX_SLOTS: usize = 64;

/// Limits of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait of an edit.
    pub wait: Duration,
    /// Most servers that run at once, over all projects.
    pub running: usize,
    /// Time after its last use at which a server is stopped.
    pub idle: Duration,
    /// Time within which a server must be ready.
    pub initialize: Duration,
    /// Time within which failures are counted, and for which a server is then off.
    pub off: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(3),
            running: 4,
            idle: Duration::from_secs(600),
            initialize: Duration::from_secs(60),
            off: Duration::from_secs(3600),
        }
    }
}

/// Finds the program of a server; `None` if it is not installed. It may block.
pub type FindProgram = dyn Fn(&ServerSpec) -> Option<Program> + Send + Sync;
/// Returns true if the user trusts a folder, so that programs may run code in it. It may block.
pub type Trusted = dyn Fn(&Path) -> bool + Send + Sync;

/// The language servers of all sessions. Clones share them.
#[derive(Clone)]
pub struct LanguageServers(Arc<Inner>);

struct Inner {
    specs: Vec<Arc<ServerSpec>>,
    /// Parent of the folders to which servers write.
    caches: PathBuf,
    find: Box<FindProgram>,
    trusted: Box<Trusted>,
    limits: Limits,
    slots: Mutex<HashMap<Key, Slot>>,
}

/// Name of the server, and folder of the project.
type Key = (String, PathBuf);

#[derive(Default)]
struct Slot {
    server: Option<Arc<Server>>,
    /// Times of failures within the limit.
    failures: Vec<std::time::Instant>,
    last_reason: String,
}

impl std::fmt::Debug for LanguageServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LanguageServers").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

/// A file of an edit, with its content before it.
pub struct EditedFile {
    pub target: ResolvedPath,
    /// Content before the edit; `None` if the file did not exist.
    pub before: Option<Vec<u8>>,
}

/// An edit that servers check.
#[derive(Default)]
pub struct CheckedEdit {
    groups: Vec<Group>,
    report: Report,
    /// Time of the wait before the edit.
    waited: Duration,
}

/// The files of one server.
struct Group {
    server: Arc<Server>,
    files: Vec<(ResolvedPath, Option<String>)>,
}

impl LanguageServers {
    /// Creates servers that write to folders in `caches`.
    pub fn new(
        specs: Vec<ServerSpec>,
        caches: PathBuf,
        limits: Limits,
        find: Box<FindProgram>,
        trusted: Box<Trusted>,
    ) -> Self {
        let specs = specs.into_iter().map(Arc::new).collect();
        let slots = Mutex::default();
        Self(Arc::new(Inner { specs, caches, find, trusted, limits, slots }))
    }

    /// Returns the longest wait of an edit.
    pub fn wait(&self) -> Duration {
        self.0.limits.wait
    }

    /// Starts the servers of files that will be edited, and sends them the texts before the edit:
    /// diagnostics that exist now are not new later. Waits at most half of the limit.
    pub async fn before(&self, permit: &Permit, files: Vec<EditedFile>) -> CheckedEdit {
        let started = Instant::now();
        let mut edit = CheckedEdit::default();
        let mut by_server: Vec<(Arc<ServerSpec>, PathBuf, Vec<EditedFile>)> = Vec::new();
        for file in files.into_iter().take(MAX_FILES) {
            let Some(spec) = self.spec_of(file.target.real()) else {
                edit.report.add_unchecked();
                continue;
            };
            let folder = project_folder(&file.target, &spec.markers);
            match by_server.iter_mut().find(|(s, f, _)| s.name == spec.name && *f == folder) {
                Some((_, _, group)) => group.push(file),
                None => by_server.push((spec, folder, vec![file])),
            }
        }
        for (spec, folder, files) in by_server {
            let until = started + self.0.limits.wait / 2;
            let server = tokio::time::timeout_at(until, self.server(permit, &spec, &folder));
            let server = match server.await.unwrap_or(Err(Unavailable::Late)) {
                Ok(server) => server,
                Err(reason) => {
                    edit.report.add_unavailable(&spec.name, reason, self.0.limits.wait);
                    continue;
                }
            };
            let files = files.into_iter().filter_map(|file| {
                let before = match file.before {
                    Some(bytes) => Some(text_of(bytes)?),
                    None => None,
                };
                Some((file.target, before))
            });
            let files: Vec<_> = files.collect();
            if !files.is_empty() {
                edit.groups.push(Group { server, files });
            }
        }
        let until = started + self.0.limits.wait / 2;
        for group in &edit.groups {
            group.server.before(&texts(&group.files), until).await;
        }
        edit.waited = started.elapsed();
        edit
    }

    /// Sends the texts after the edit and returns the new diagnostics of its files.
    pub async fn after(&self, permit: &Permit, edit: CheckedEdit) -> Report {
        let CheckedEdit { groups, mut report, waited } = edit;
        let until = Instant::now() + self.0.limits.wait.saturating_sub(waited);
        for group in groups {
            let created: Vec<PathBuf> = group
                .files
                .iter()
                .filter(|(_, before)| before.is_none())
                .map(|(target, _)| target.absolute())
                .collect();
            let mut now: Vec<(ResolvedPath, Option<String>)> = Vec::new();
            for (target, _) in group.files {
                match permit.read_file(&target, MAX_TEXT as u64).map(|read| read.map(text_of)) {
                    Ok(Some(Some(text))) => now.push((target, Some(text))),
                    Ok(None) => now.push((target, None)),
                    // It is too large, or not text.
                    Ok(Some(None)) | Err(_) => report.add_unchecked(),
                }
            }
            let outcomes = group.server.after(&texts(&now), &created, until).await;
            for ((target, _), outcome) in now.iter().zip(outcomes) {
                let name = &group.server.spec.name;
                report.add(name, target.real(), outcome, self.0.limits.wait);
            }
        }
        report
    }

    fn spec_of(&self, rel: &str) -> Option<Arc<ServerSpec>> {
        let (_, extension) = rel.rsplit_once('.')?;
        let is_for = |spec: &&Arc<ServerSpec>| {
            !spec.commands.is_empty() && spec.extensions.iter().any(|known| known == extension)
        };
        self.0.specs.iter().find(is_for).cloned()
    }

    /// Returns the running server of a project, or starts one.
    async fn server(
        &self,
        permit: &Permit,
        spec: &Arc<ServerSpec>,
        folder: &Path,
    ) -> Result<Arc<Server>, Unavailable> {
        let root = permit.root().ok_or(Unavailable::NotApplicable)?;
        let view = permit.service_view().ok_or(Unavailable::NotApplicable)?;
        let program = self.program(root, spec).await?;
        let mut slots = self.0.slots.lock().await;
        self.sweep(&mut slots);
        let key = (spec.name.clone(), folder.to_owned());
        if let Some(server) = slots.get(&key).and_then(|slot| slot.server.clone()) {
            if server.view == view {
                server.touch();
                return Ok(server);
            }
            // The rules about reading have changed.
            server.stop();
        }
        if !slots.contains_key(&key) && slots.len() >= MAX_SLOTS {
            return Err(Unavailable::Full(MAX_SLOTS));
        }
        let slot = slots.entry(key.clone()).or_default();
        slot.server = None;
        if slot.failures.len() >= MAX_FAILURES {
            return Err(Unavailable::Off(slot.last_reason.clone()));
        }
        self.check_capacity(&mut slots)?;
        let cache = self.0.caches.join(cache_name(&key));
        let folders = (folder, cache.as_path());
        let started =
            Server::start(Arc::clone(spec), program, folders, permit, view, self.0.limits).await;
        let slot = slots.entry(key).or_default();
        match started {
            Ok(server) => {
                slot.server = Some(Arc::clone(&server));
                Ok(server)
            }
            Err(failure) => {
                slot.failures.push(std::time::Instant::now());
                slot.last_reason.clone_from(&failure.message);
                Err(Unavailable::Failed(failure.message))
            }
        }
    }

    /// Finds the program of a server in a folder that the user trusts.
    async fn program(&self, root: &Root, spec: &Arc<ServerSpec>) -> Result<Program, Unavailable> {
        let (this, spec, folder) = (self.clone(), Arc::clone(spec), root.path.clone());
        let found = tokio::task::spawn_blocking(move || {
            if !(this.0.trusted)(&folder) {
                return Err(Unavailable::Untrusted);
            }
            (this.0.find)(&spec).ok_or(Unavailable::NotInstalled)
        });
        found.await.unwrap_or(Err(Unavailable::NotApplicable))
    }

    /// Removes servers that have ended, and failures that no longer count.
    fn sweep(&self, slots: &mut HashMap<Key, Slot>) {
        for slot in slots.values_mut() {
            if let Some(server) = &slot.server {
                if let Some((reason, at)) = server.failure() {
                    slot.failures.push(at);
                    slot.last_reason = reason;
                    slot.server = None;
                } else if server.is_stopped() {
                    slot.server = None;
                }
            }
            slot.failures.retain(|at| at.elapsed() < self.0.limits.off);
        }
        slots.retain(|_, slot| slot.server.is_some() || !slot.failures.is_empty());
    }

    /// Makes room for another server: the one that is unused for longest is stopped, unless all
    /// are in use.
    fn check_capacity(&self, slots: &mut HashMap<Key, Slot>) -> Result<(), Unavailable> {
        let running = slots.values().filter(|slot| slot.server.is_some()).count();
        if running < self.0.limits.running {
            return Ok(());
        }
        let used = |slot: &Slot| slot.server.as_ref().map(|server| server.last_used());
        let oldest =
            slots.values_mut().filter(|slot| slot.server.is_some()).min_by_key(|s| used(s));
        let in_use = Unavailable::Full(self.0.limits.running);
        let Some(slot) = oldest else { return Err(in_use) };
        match slot.server.take() {
            // An edit in progress has a reference of its own.
            Some(server)
                if Arc::strong_count(&server) == 1
                    && server.last_used().elapsed() > 2 * self.0.limits.wait =>
            {
                server.stop();
                Ok(())
            }
            server => {
                slot.server = server;
                Err(in_use)
            }
        }
    }
}

/// Reason why a file has no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The run is limited to paths, or has no root.
    NotApplicable,
    Untrusted,
    NotInstalled,
    Full(usize),
    /// It was not started in time.
    Late,
    Off(String),
    Failed(String),
}

/// Returns the outermost folder above a file with a marker, else the root.
fn project_folder(target: &ResolvedPath, markers: &[String]) -> PathBuf {
    let root = target.root();
    let parts: Vec<&str> = target.real().split('/').collect();
    for depth in 0..parts.len() {
        let folder = parts.get(..depth).unwrap_or_default().join("/");
        let inner = |marker: &String| {
            if folder.is_empty() { marker.clone() } else { format!("{folder}/{marker}") }
        };
        if markers.iter().any(|marker| root.stat(&inner(marker)).is_ok()) {
            return if folder.is_empty() { root.path.clone() } else { root.path.join(folder) };
        }
    }
    root.path.clone()
}

fn cache_name((name, folder): &Key) -> String {
    let digest = Sha256::digest(folder.to_string_lossy().as_bytes());
    format!("{name}-{}", hex::encode(digest.get(..8).unwrap_or_default()))
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    if bytes.len() > MAX_TEXT {
        return None;
    }
    String::from_utf8(bytes).ok()
}

fn texts(files: &[(ResolvedPath, Option<String>)]) -> Vec<(PathBuf, Option<String>)> {
    files.iter().map(|(target, text)| (target.absolute(), text.clone())).collect()
}
