//! Trust in what folders bring, by content: the record of what the user has trusted, compared with
//! what is there now at each use. A folder's path alone never makes anything run.

pub mod items;
mod programs;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use cairn_harness::diff;
use cairn_protocol::{
    error::{Failure, Reason},
    trust::{FolderTrust, TrustItem, TrustKind, TrustSetParams, TrustState, TrustedContent},
};
use cairn_workspace::replace_private_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use items::FolderStamp;
pub use items::Item;
pub use programs::ConfiguredPrograms;

/// File of the records in the folder of the store.
const FILE: &str = "folders.json";
/// Folder of trusted contents, for differences.
const CONTENTS: &str = "contents";
/// Most bytes of the file, and most folders in it.
const MAX_FILE: u64 = 16 * 1024 * 1024;
const MAX_FOLDERS: usize = 4096;
/// Most bytes of one content that is stored.
const MAX_CONTENT: usize = 256 * 1024;
/// Most folders whose last decision is stored.
const MAX_RECENT: usize = 1024;

/// Returns the folder of a repository that a folder in one of its work trees is judged as.
pub type Repositories = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Records {
    folders: BTreeMap<PathBuf, Folder>,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Folder {
    /// True once anything of it was trusted, or the folder itself without any item.
    #[serde(default)]
    trusted: bool,
    items: Vec<Record>,
}

/// The decision about one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    kind: TrustKind,
    path: String,
    /// SHA-256 of the content that is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trusted: Option<String>,
    /// SHA-256 of each trusted file, for differences.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// A content that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Recent decisions about folders. A decision of before a change of the records is not stored after
/// it.
#[derive(Default)]
struct Recent {
    changes: u64,
    known: HashMap<PathBuf, (FolderStamp, bool)>,
}

/// The store of a data folder.
pub struct TrustStore {
    folder: PathBuf,
    configured: Box<dyn Fn(&Path) -> bool + Send + Sync>,
    repositories: OnceLock<Arc<Repositories>>,
    has_records: AtomicBool,
    /// One change at a time.
    changing: Mutex<()>,
    /// Decisions about folders of files, with what they looked like: reading all of them at each
    /// event of a session would slow every call down.
    recent: Mutex<Recent>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

impl TrustStore {
    /// Opens the store in a folder, which need not exist. `configured` judges a folder by the paths
    /// of the user's configuration, for what only instructs.
    pub fn new(
        folder: PathBuf,
        configured: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        let store = Self {
            folder,
            configured: Box::new(configured),
            repositories: OnceLock::new(),
            has_records: AtomicBool::new(false),
            changing: Mutex::default(),
            recent: Mutex::default(),
        };
        let records = store.records();
        store.has_records.store(!records.folders.is_empty(), Ordering::Relaxed);
        Arc::new(store)
    }

    /// Sets the source of the repositories of work trees. Later calls have no effect; before the
    /// first, work trees are judged by their own folders.
    pub fn set_repositories(&self, repositories: Arc<Repositories>) {
        if self.repositories.set(repositories).is_err() {
            tracing::warn!("the repositories of work trees are already set");
        }
    }

    /// Returns true if anything was ever trusted: hooks of projects can exist only then.
    pub fn has_records(&self) -> bool {
        self.has_records.load(Ordering::Relaxed)
    }

    /// Returns the folder whose record decides about `folder`.
    fn judged_as(&self, folder: &Path) -> PathBuf {
        let repository = self.repositories.get().and_then(|find| find(folder));
        let folder = repository.unwrap_or_else(|| folder.to_owned());
        folder.canonicalize().unwrap_or(folder)
    }

    fn read(&self) -> Result<Records, String> {
        let path = self.folder.join(FILE);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Records::default()),
            Err(error) => return Err(format!("{}: {error}", path.display())),
            Ok(meta) if meta.len() > MAX_FILE => {
                return Err(format!("{} has more than {MAX_FILE} bytes", path.display()));
            }
            Ok(_) => {}
        }
        let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_slice(&text).map_err(|e| {
            format!("{}: {e}; move it away to start without any trust", path.display())
        })
    }

    /// Returns the records; none if they cannot be read, which trusts nothing.
    fn records(&self) -> Records {
        self.read().unwrap_or_else(|error| {
            tracing::error!("nothing is trusted: {error}");
            Records::default()
        })
    }

    /// Returns true if a folder may instruct agents and start language servers: its path is in the
    /// configuration, or it is in a folder whose content the user trusted, up to the top of its
    /// repository.
    pub fn covers(&self, folder: &Path) -> bool {
        let judged = self.judged_as(folder);
        if (self.configured)(&judged) {
            return true;
        }
        if !self.has_records() {
            return false;
        }
        let records = self.records();
        for at in judged.ancestors() {
            if records.folders.get(at).is_some_and(|known| known.trusted) {
                return true;
            }
            if at.join(".git").symlink_metadata().is_ok() {
                return false;
            }
        }
        false
    }

    /// Returns true if the configuration names the path of a folder.
    pub fn is_configured(&self, folder: &Path) -> bool {
        (self.configured)(&self.judged_as(folder))
    }

    /// Returns true if the user trusted exactly this content in this folder.
    pub fn trusts(&self, folder: &Path, item: &Item) -> bool {
        if item.problem.is_some() || !self.has_records() {
            return false;
        }
        let records = self.records();
        let Some(known) = records.folders.get(&self.judged_as(folder)) else { return false };
        let sha256 = item.sha256();
        known.items.iter().any(|record| {
            (record.kind, &record.path, record.trusted.as_ref())
                == (item.kind, &item.path, Some(&sha256))
        })
    }

    /// Returns true if the user trusted exactly the files of a plugin or skill now.
    pub fn trusts_folder(&self, folder: &Path, kind: TrustKind, inner: &Path) -> bool {
        if !self.has_records() {
            return false;
        }
        let stamp = items::stamp_of(inner);
        let changes = {
            let recent = locked(&self.recent);
            match (&stamp, recent.known.get(inner)) {
                (Some(stamp), Some((last, known))) if last == stamp => return *known,
                _ => recent.changes,
            }
        };
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let item = items::folder_item(&real, kind, inner);
        let trusted = item.is_some_and(|item| self.trusts(folder, &item));
        let mut recent = locked(&self.recent);
        if recent.known.len() >= MAX_RECENT {
            recent.known.clear();
        }
        if let Some(stamp) = stamp.filter(|_| recent.changes == changes) {
            recent.known.insert(inner.to_owned(), (stamp, trusted));
        }
        trusted
    }

    /// Returns true if the user trusted exactly this text of a project's own configuration.
    pub fn trusts_settings(&self, folder: &Path, text: &str) -> bool {
        let item = Item {
            kind: TrustKind::Settings,
            path: crate::root_config::FILE.to_owned(),
            files: BTreeMap::from([(
                crate::root_config::FILE.to_owned(),
                text.as_bytes().to_vec(),
            )]),
            commands: vec![],
            unsupported: vec![],
            problem: None,
        };
        self.trusts(folder, &item)
    }

    /// Compares what a folder brings with what was trusted. This blocks on file I/O.
    ///
    /// # Errors
    /// `invalid_params` for a folder that cannot be trusted, `path_not_found`, `storage_failed`.
    pub fn state(&self, folder: &Path, with_diff: bool) -> Result<FolderTrust, Failure> {
        let (real, judged) = self.checked(folder)?;
        let records = self.read().map_err(|e| Failure::new(Reason::StorageFailed, e))?;
        let known = records.folders.get(&judged);
        let items = items::items(&real);
        let one = |item: &Item| {
            let record = known.and_then(|known| {
                known.items.iter().find(|r| r.kind == item.kind && r.path == item.path)
            });
            self.compared(item, record, with_diff)
        };
        Ok(FolderTrust {
            folder: judged.to_string_lossy().into_owned(),
            is_known: known.is_some_and(|known| known.trusted),
            is_configured: (self.configured)(&judged),
            items: items.iter().map(one).collect(),
        })
    }

    fn compared(&self, item: &Item, record: Option<&Record>, with_diff: bool) -> TrustItem {
        let sha256 = item.sha256();
        let is = |known: Option<&String>| known == Some(&sha256);
        let state = match record {
            Some(record) if is(record.trusted.as_ref()) => TrustState::Trusted,
            Some(record) if is(record.refused.as_ref()) => TrustState::Refused,
            Some(record) if record.trusted.is_some() => TrustState::Changed,
            _ => TrustState::New,
        };
        let has_diff = with_diff && state != TrustState::Trusted;
        TrustItem {
            kind: item.kind,
            path: item.path.clone(),
            state,
            commands: item.commands.clone(),
            unsupported: item.unsupported.clone(),
            files: item.files.keys().cloned().collect(),
            diff: has_diff.then(|| self.diff(item, record)),
            problem: item.problem.clone(),
            sha256,
        }
    }

    fn diff(&self, item: &Item, record: Option<&Record>) -> String {
        let mut out = String::new();
        let was = record.map(|record| record.files.clone()).unwrap_or_default();
        let paths: std::collections::BTreeSet<&String> =
            item.files.keys().chain(was.keys()).collect();
        for path in paths {
            let now = item.files.get(path).map(Vec::as_slice);
            let stored = was.get(path);
            if now.map(sha256).as_ref() == stored {
                continue;
            }
            let before = stored.map(|name| {
                fs::read(self.folder.join(CONTENTS).join(name))
                    .unwrap_or_else(|_| b"(the trusted content is not stored)\n".to_vec())
            });
            let room = diff::MAX_DIFF.saturating_sub(out.len());
            out.push_str(&diff::unified(path, before.as_deref(), now, room));
        }
        out
    }

    /// Returns the canonical path of a folder, and that of the folder whose record decides.
    fn checked(&self, folder: &Path) -> Result<(PathBuf, PathBuf), Failure> {
        let text = folder.display();
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        if !folder.is_absolute() {
            return Err(bad(format!("'{text}' is not an absolute path")));
        }
        let real = folder.canonicalize().map_err(|e| {
            Failure::new(Reason::PathNotFound, format!("'{text}' cannot be opened: {e}"))
        })?;
        if !real.is_dir() {
            return Err(Failure::new(Reason::NotADirectory, format!("'{text}' is not a folder")));
        }
        if real.parent().is_none() {
            return Err(bad("'/' is not a project: name the folder of one".into()));
        }
        let judged = self.judged_as(&real);
        Ok((real, judged))
    }

    /// Stores decisions about items that still have the named content.
    ///
    /// # Errors
    /// As [`TrustStore::state`]; `file_changed` for an item with another content, `too_large` at
    /// the limit of folders. Nothing is stored then.
    pub fn set(&self, params: &TrustSetParams) -> Result<FolderTrust, Failure> {
        let folder = Path::new(&params.folder);
        let (real, judged) = self.checked(folder)?;
        let now = items::items(&real);
        let find = |requested: &TrustedContent| {
            let item = now.iter().find(|i| i.kind == requested.kind && i.path == requested.path);
            let changed = || {
                let text =
                    format!("'{}' has another content now: look at it again", requested.path);
                Failure::new(Reason::FileChanged, text)
            };
            item.filter(|item| item.sha256() == requested.sha256).ok_or_else(changed)
        };
        let _one_at_a_time = locked(&self.changing);
        let mut records = self.read().map_err(|e| Failure::new(Reason::StorageFailed, e))?;
        if records.folders.len() >= MAX_FOLDERS && !records.folders.contains_key(&judged) {
            let text = format!("{MAX_FOLDERS} folders are trusted already: remove some");
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let known = records.folders.entry(judged).or_default();
        known.trusted |= !params.trust.is_empty() || params.refuse.is_empty();
        for requested in &params.trust {
            let item = find(requested)?;
            if let Some(problem) = &item.problem {
                let text = format!("'{}' cannot be trusted: {problem}", requested.path);
                return Err(Failure::new(Reason::InvalidParams, text));
            }
            self.store_contents(item)?;
            known.items.retain(|r| !(r.kind == requested.kind && r.path == requested.path));
            known.items.push(Record {
                kind: item.kind,
                path: item.path.clone(),
                trusted: Some(requested.sha256.clone()),
                files: item.files.iter().map(|(p, bytes)| (p.clone(), sha256(bytes))).collect(),
                refused: None,
            });
        }
        for requested in &params.refuse {
            let item = find(requested)?;
            let at = known.items.iter().position(|r| r.kind == item.kind && r.path == item.path);
            let refused = Some(requested.sha256.clone());
            match at {
                Some(at) => known.items[at].refused = refused,
                None => known.items.push(Record {
                    kind: item.kind,
                    path: item.path.clone(),
                    trusted: None,
                    files: BTreeMap::new(),
                    refused,
                }),
            }
        }
        self.write(&records)?;
        self.state(folder, false)
    }

    /// Removes the record of a folder; returns true if there was one.
    ///
    /// # Errors
    /// `storage_failed`.
    pub fn remove(&self, folder: &Path) -> Result<bool, Failure> {
        let _one_at_a_time = locked(&self.changing);
        let mut records = self.read().map_err(|e| Failure::new(Reason::StorageFailed, e))?;
        let known = [folder.to_owned(), self.judged_as(folder)];
        let removed = known.iter().any(|path| records.folders.remove(path).is_some());
        if removed {
            self.write(&records)?;
        }
        Ok(removed)
    }

    fn store_contents(&self, item: &Item) -> Result<(), Failure> {
        let folder = self.folder.join(CONTENTS);
        let failed = |e: std::io::Error| {
            let text = format!("the trust cannot be stored in {}: {e}", folder.display());
            Failure::new(Reason::StorageFailed, text)
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        for bytes in item.files.values().filter(|bytes| bytes.len() <= MAX_CONTENT) {
            let path = folder.join(sha256(bytes));
            if !path.exists() {
                replace_private_file(&path, bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes the stored contents that no record names any more.
    fn remove_unnamed_contents(&self, records: &Records) {
        let items = records.folders.values().flat_map(|folder| &folder.items);
        let named: std::collections::HashSet<&str> =
            items.flat_map(|record| record.files.values().map(String::as_str)).collect();
        let stored = fs::read_dir(self.folder.join(CONTENTS)).into_iter().flatten().flatten();
        for entry in stored.filter(|e| !e.file_name().to_str().is_some_and(|n| named.contains(n))) {
            let _stays_until_next_time = fs::remove_file(entry.path());
        }
    }

    fn write(&self, records: &Records) -> Result<(), Failure> {
        let path = self.folder.join(FILE);
        let failed = |e: std::io::Error| {
            let text = format!("the trust cannot be stored in {}: {e}", path.display());
            Failure::new(Reason::StorageFailed, text)
        };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let text = serde_json::to_vec_pretty(records).map_err(std::io::Error::other);
        replace_private_file(&path, &text.map_err(failed)?).map_err(failed)?;
        self.has_records.store(!records.folders.is_empty(), Ordering::Relaxed);
        let mut recent = locked(&self.recent);
        recent.changes += 1;
        recent.known.clear();
        drop(recent);
        self.remove_unnamed_contents(records);
        Ok(())
    }
}

impl cairn_engine::Trust for TrustStore {
    fn covers(&self, folder: &Path) -> bool {
        TrustStore::covers(self, folder)
    }

    fn state(&self, folder: &Path, with_diff: bool) -> Result<FolderTrust, Failure> {
        TrustStore::state(self, folder, with_diff)
    }

    fn set(&self, params: &TrustSetParams) -> Result<FolderTrust, Failure> {
        TrustStore::set(self, params)
    }

    fn remove(&self, folder: &Path) -> Result<bool, Failure> {
        TrustStore::remove(self, folder)
    }
}
