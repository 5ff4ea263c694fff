//! Random work of a client on one data folder, with a model of what the daemon has acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cairn_test_support::Rng;
use serde_json::{Value, json};

use crate::{
    contents::check_integrity,
    sealed::{Raw, cairn, commit_all, git, seqs, tree},
};

/// Folders that may be declared as roots.
const ROOTS: usize = 3;
/// Names of entries in the knowledge store.
const ENTRIES: usize = 4;
/// Sessions that the model follows.
const SESSIONS: usize = 30;

/// Unfinished files that the next write replaces, so that they do not add up.
const REPLACED: [&str; 3] = ["state.json.tmp", "daemon.json.tmp", "token.tmp"];

/// Values that something may have: several while a change is not acknowledged.
type Possible<T> = BTreeSet<T>;

/// The connection ended before the answer.
pub struct Cut;

/// A model of the data folder, as its clients know it.
#[derive(Default)]
pub struct Workload {
    folder: PathBuf,
    /// Acknowledged calls of each session that was not deleted.
    calls: BTreeMap<String, u64>,
    /// Sessions whose deletion began or which the limits of the log may remove.
    removable: BTreeSet<String>,
    entries: BTreeMap<String, Possible<Option<String>>>,
    roots: BTreeMap<PathBuf, Possible<bool>>,
    /// Work trees that were created, and possibly removed.
    worktrees: BTreeMap<String, Possible<bool>>,
    /// Errors by method, of calls that failed.
    pub failures: Vec<(String, String)>,
    pub acknowledged: u64,
}

impl Workload {
    /// Creates the folders on which the work is done.
    pub fn new(folder: &Path) -> Self {
        for n in 0..ROOTS {
            let files = [("a.py", "def first():\n    return 1\n"), ("b.md", "# Title\n")];
            tree(&folder.join(format!("root{n}")), &files);
        }
        let repository = folder.join("repository");
        tree(&repository, &[("notes.txt", "first\n")]);
        commit_all(&repository);
        Self { folder: folder.canonicalize().unwrap(), ..Self::default() }
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Calls a method. An error is stored and returned as `None`.
    async fn call(
        &mut self,
        raw: &mut Raw,
        method: &str,
        params: Value,
    ) -> Result<Option<Value>, Cut> {
        let mut answer = raw.try_call(method, params).await.ok_or(Cut)?;
        if let Some(reason) = answer["error"]["data"]["reason"].as_str() {
            self.failures.push((method.to_owned(), reason.to_owned()));
            return Ok(None);
        }
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        self.acknowledged += 1;
        Ok(Some(answer["result"].take()))
    }

    /// Does one random piece of work.
    pub async fn step(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        match rng.u8(..20) {
            0..2 => self.create_session(raw).await,
            2..9 => self.append(raw, rng).await,
            9 => self.delete_session(raw, rng).await,
            10..14 => self.change_entry(raw, rng).await,
            14..16 => self.change_root(raw, rng).await,
            16..18 => self.change_worktree(raw, rng).await,
            18 => self.rebuild(raw).await,
            _ => self.call(raw, "storage.collect", json!({})).await.map(drop),
        }
    }

    /// Does every kind of work once, in a fixed order.
    pub async fn every_step(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        self.create_session(raw).await?;
        self.append(raw, rng).await?;
        for _ in 0..2 {
            self.change_entry(raw, rng).await?;
            self.change_root(raw, rng).await?;
            self.change_worktree(raw, rng).await?;
        }
        self.create_session(raw).await?;
        self.append(raw, rng).await?;
        self.call(raw, "storage.collect", json!({})).await?;
        self.delete_session(raw, rng).await
    }

    async fn create_session(&mut self, raw: &mut Raw) -> Result<(), Cut> {
        if self.calls.len() >= SESSIONS {
            return Ok(());
        }
        let title = format!("session {}", self.acknowledged);
        if let Some(session) = self.call(raw, "session.create", json!({"title": title})).await? {
            self.calls.insert(session["sessionId"].as_str().unwrap().to_owned(), 0);
        }
        Ok(())
    }

    fn some_session(&self, rng: &mut Rng) -> Option<String> {
        let known: Vec<_> = self.calls.keys().filter(|id| !self.removable.contains(*id)).collect();
        (!known.is_empty()).then(|| known[rng.usize(..known.len())].clone())
    }

    /// Has a tool run, which appends its call and its result to the log.
    async fn append(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        let Some(session) = self.some_session(rng) else { return self.create_session(raw).await };
        let params = json!({"sessionId": session, "name": "datetime", "arguments": {}});
        if let Some(outcome) = self.call(raw, "tool.call", params).await? {
            let is_logged = outcome["error"].is_null();
            *self.calls.get_mut(&session).unwrap() += u64::from(is_logged);
        }
        Ok(())
    }

    async fn delete_session(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        let Some(session) = self.some_session(rng) else { return Ok(()) };
        self.removable.insert(session.clone());
        let deleted = self.call(raw, "session.delete", json!({"sessionId": session})).await?;
        if deleted.is_some() {
            self.calls.remove(&session);
        }
        Ok(())
    }

    async fn change_entry(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        let name = format!("entry{}", rng.usize(..ENTRIES));
        let is_deletion = rng.u8(..4) == 0;
        let content = format!("text {} {}", self.acknowledged, "x".repeat(rng.usize(1..9000)));
        let next = (!is_deletion).then(|| content.clone());
        let possible = self.entries.entry(name.clone()).or_insert_with(|| Possible::from([None]));
        let may_be_absent = possible.contains(&None);
        possible.insert(next.clone());
        let answer = if is_deletion {
            self.call(raw, "memory.delete", json!({"keywords": name})).await?
        } else {
            let params = json!({"keywords": name, "content": content});
            self.call(raw, "memory.save", params).await?
        };
        if answer.is_some() {
            self.entries.insert(name, Possible::from([next]));
        } else if is_deletion && may_be_absent {
            self.failures.pop();
        }
        Ok(())
    }

    async fn change_root(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        let path = self.folder.join(format!("root{}", rng.usize(..ROOTS)));
        let possible = self.roots.entry(path.clone()).or_insert_with(|| Possible::from([false]));
        let adds = !possible.contains(&true);
        possible.insert(adds);
        let answer = if adds {
            self.call(raw, "index.addRoot", json!({"path": path})).await?
        } else {
            self.call(raw, "index.removeRoot", json!({"root": path})).await?
        };
        if answer.is_some() {
            self.roots.insert(path, Possible::from([adds]));
        }
        Ok(())
    }

    async fn rebuild(&mut self, raw: &mut Raw) -> Result<(), Cut> {
        let is_declared = |possible: &Possible<bool>| *possible == Possible::from([true]);
        let root = self.roots.iter().find(|(_, possible)| is_declared(possible));
        let Some(root) = root.map(|(path, _)| path.clone()) else { return Ok(()) };
        self.call(raw, "index.rebuild", json!({"root": root})).await.map(drop)
    }

    /// Creates a work tree, or removes one if there are three.
    async fn change_worktree(&mut self, raw: &mut Raw, rng: &mut Rng) -> Result<(), Cut> {
        if self.worktrees.len() >= 3 {
            let at = rng.usize(..self.worktrees.len());
            let path = self.worktrees.keys().nth(at).unwrap().clone();
            self.worktrees.get_mut(&path).unwrap().insert(false);
            if self.call(raw, "worktree.remove", json!({"path": path})).await?.is_some() {
                self.worktrees.remove(&path);
            }
            return Ok(());
        }
        let repository = self.repository();
        if self.call(raw, "index.addRoot", json!({"path": repository})).await?.is_none() {
            return Ok(());
        }
        let created = self.call(raw, "worktree.create", json!({"root": repository})).await?;
        if let Some(created) = created {
            let path = created["path"].as_str().unwrap().to_owned();
            self.worktrees.insert(path, Possible::from([true]));
        }
        Ok(())
    }

    /// Makes the log's sessions older, so that the limits of retention apply to some of them.
    pub fn age(&mut self, home: &Path) {
        let conn = cairn_store::rusqlite::Connection::open(home.join("trace.db")).unwrap();
        conn.execute("UPDATE session SET updated_ms = updated_ms - 20 * 86400000", []).unwrap();
        self.removable.extend(self.calls.keys().cloned());
    }

    /// Checks that the daemon has everything that was acknowledged, and nothing half done.
    pub async fn check(&mut self, raw: &mut Raw, home: &Path) {
        check_integrity(home);
        self.check_doctor(home);
        self.check_sessions(raw).await;
        self.check_entries(raw, home).await;
        self.check_roots(raw, home).await;
        self.check_worktrees(raw, home).await;
        check_leftovers(home);
    }

    fn check_doctor(&self, home: &Path) {
        let (_, page, err) = cairn(home, &self.folder, &["--json", "doctor"]);
        let page: Value = serde_json::from_str(&page).unwrap_or_else(|_| panic!("{page}{err}"));
        for check in page["checks"].as_array().unwrap() {
            let is_ours = ["config", "data folder", "log", "daemon"]
                .iter()
                .any(|name| check["name"] == *name);
            assert!(!is_ours || check["outcome"] == "ok", "{check}");
        }
    }

    async fn check_sessions(&mut self, raw: &mut Raw) {
        let mut gone = Vec::new();
        for (session, calls) in &self.calls {
            let params = json!({"traceId": session, "limit": 500});
            let answer = raw.call("trace.get", params).await;
            if answer["error"]["data"]["reason"] == "session_not_found" {
                assert!(self.removable.contains(session), "session {session} is lost");
                gone.push(session.clone());
                continue;
            }
            let records = answer["result"]["data"].as_array().unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(seqs(records), (1..=records.len() as u64).collect::<Vec<_>>());
            let results = records.iter().filter(|r| r["evt"]["type"] == "result").count() as u64;
            assert!(results >= *calls, "{calls} acknowledged, {results} in the log: {records:?}");
        }
        for session in gone {
            self.calls.remove(&session);
        }
    }

    async fn check_entries(&mut self, raw: &mut Raw, home: &Path) {
        let mut present = 0;
        for (name, possible) in &mut self.entries {
            let answer = raw.call("memory.load", json!({"keywords": name})).await;
            let content = answer["result"]["content"].as_str().map(|text| text.trim_end().into());
            assert!(possible.contains(&content), "{name}: {answer}");
            present += usize::from(content.is_some());
            *possible = Possible::from([content]);
        }
        let files = std::fs::read_dir(home.join("memory")).into_iter().flatten().count();
        assert_eq!(files, present, "files of the knowledge store without an entry");
    }

    async fn check_roots(&mut self, raw: &mut Raw, home: &Path) {
        let list = raw.ok("index.list", json!({})).await;
        let listed: BTreeSet<PathBuf> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|root| PathBuf::from(root["path"].as_str().unwrap()))
            .collect();
        for (path, possible) in &mut self.roots {
            let is_declared = listed.contains(path);
            assert!(possible.contains(&is_declared), "{}: {list}", path.display());
            *possible = Possible::from([is_declared]);
        }
        let indexes = std::fs::read_dir(home.join("index")).unwrap().count();
        // A rebuild that continues has a second folder.
        assert!(indexes <= 2 * listed.len(), "{indexes} indexes of {listed:?}");
    }

    async fn check_worktrees(&mut self, raw: &mut Raw, home: &Path) {
        let list = raw.ok("worktree.list", json!({})).await;
        let listed: BTreeSet<String> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|worktree| worktree["path"].as_str().unwrap().to_owned())
            .collect();
        for (path, possible) in &self.worktrees {
            assert!(possible.contains(&listed.contains(path)), "{path}: {list}");
        }
        for worktree in list["data"].as_array().unwrap() {
            assert_eq!(worktree["uncommitted"], 0, "it cannot be used: {worktree}");
        }
        let folder = home.join("workspaces/worktrees");
        let folders: BTreeSet<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path().to_string_lossy().into_owned())
            .collect();
        assert_eq!(folders, listed, "folders of work trees and their list");
        let known = git(&self.repository(), &["worktree", "list", "--porcelain"]);
        let known = known.lines().filter(|line| line.starts_with("worktree ")).count();
        assert_eq!(known, listed.len() + 1, "work trees of git and their list");
        let branches = git(&self.repository(), &["branch", "--list", "cairn/*"]);
        assert_eq!(branches.lines().count(), listed.len(), "branches: {branches}");
        self.worktrees = listed.into_iter().map(|path| (path, Possible::from([true]))).collect();
    }
}

/// Checks that no unfinished file remains in the data folder.
fn check_leftovers(home: &Path) {
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !path.starts_with(home.join("workspaces/worktrees")) {
                folders.push(path.clone());
            }
            let is_unfinished = name.ends_with(".tmp") && !REPLACED.contains(&&*name);
            let is_unfinished = is_unfinished || name.starts_with(".new");
            assert!(!is_unfinished, "unfinished: {}", path.display());
        }
    }
}
