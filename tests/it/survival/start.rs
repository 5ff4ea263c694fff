//! Data folders that a daemon cannot start on: of a newer version, read-only, on a full disk, in
//! use.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use super::disk::Mount;
use crate::{
    contents::{complete, index, sources},
    sealed::{Daemon, command, commit_all, git, tree},
};

/// Starts a daemon that must not start, and returns its last output.
fn refused_start(home: &Path) -> String {
    let mut command = command(home);
    command.args(["serve", "--port", "0"]).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the content of every file of a data folder, except those of each start.
fn files(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                folders.push(path);
            } else if !["test.log", "lock", "cairn.lock"].iter().any(|skipped| name == **skipped) {
                all.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    all
}

fn changed(
    before: &BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<PathBuf> {
    let paths = before.keys().chain(after.keys());
    let mut changed: Vec<_> = paths.filter(|p| before.get(*p) != after.get(*p)).cloned().collect();
    changed.dedup();
    changed
}

/// The log of a newer build is not changed by an older one, and neither is anything else.
#[tokio::test]
async fn downgrade_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    sources(&root, 5);
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    index(&mut raw, &root).await;
    assert!(daemon.stop().success());
    let set = |version: u32| {
        let log = cairn_store::rusqlite::Connection::open(home.join("trace.db")).unwrap();
        let known: u32 = log.pragma_query_value(None, "user_version", |r| r.get(0)).unwrap();
        log.pragma_update(None, "user_version", version).unwrap();
        known
    };
    let known = set(9_999);
    let before = files(&home);
    let error = refused_start(&home);
    assert!(error.contains("trace.db has version 9999"), "{error}");
    assert!(error.contains(&format!("this build supports up to {known}")), "{error}");
    assert_eq!(changed(&before, &files(&home)), Vec::<PathBuf>::new());
    set(known);
    let daemon = Daemon::start_in(&home, &[]);
    complete(&mut daemon.client().await).await;
}

/// A state file of a build whose format is unknown is an error, and is not replaced by an empty one.
#[test]
fn unreadable_state_file_is_refused_and_remains() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    assert!(Daemon::start_in(&home, &[]).stop().success());
    tree(&home, &[("state.json", "{\"roots\": 3}")]);
    let error = refused_start(&home);
    assert!(error.contains("state.json"), "{error}");
    assert_eq!(std::fs::read_to_string(home.join("state.json")).unwrap(), "{\"roots\": 3}");
}

#[test]
fn read_only_data_folder_is_reported_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    assert!(Daemon::start_in(&home, &[]).stop().success());
    let before = files(&home);
    let Some(mount) = Mount::read_only(&home) else { return };
    let error = refused_start(&home);
    assert!(error.contains(home.to_str().unwrap()), "{error}");
    assert!(error.to_lowercase().contains("read-only file system"), "{error}");
    drop(mount);
    assert_eq!(changed(&before, &files(&home)), Vec::<PathBuf>::new());
    Daemon::start_in(&home, &[]);
}

#[test]
fn full_disk_at_the_start_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    let Some(_mount) = Mount::memory(&disk, "4m") else { return };
    let home = disk.join("home");
    std::fs::create_dir_all(home.join("config")).unwrap();
    let filler = disk.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
    drop(file);
    let error = refused_start(&home);
    let names_the_cause = ["No space left on device", "no space left on the disk"];
    assert!(names_the_cause.iter().any(|cause| error.contains(cause)), "{error}");
    std::fs::remove_file(filler).unwrap();
    Daemon::start_in(&home, &[]);
}

/// A work tree and an index that a killed daemon was creating or removing are removed by the next
/// one; a folder that is not one of its work trees remains, whatever the file says.
#[tokio::test]
async fn unfinished_worktree_and_unused_index_are_removed_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (home, repository) = (dir.path().join("home"), dir.path().join("repository"));
    tree(&repository, &[("a.txt", "first\n")]);
    commit_all(&repository);
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": repository})).await;
    let created = raw.ok("worktree.create", json!({"root": repository})).await;
    let path = PathBuf::from(created["path"].as_str().unwrap());
    assert!(daemon.stop().success());
    let file = home.join("state.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let mut unfinished = state["worktrees"].take();
    let precious = dir.path().join("precious");
    tree(&precious, &[("work.txt", "work\n")]);
    let mut foreign = unfinished[0].clone();
    foreign["path"] = json!(precious);
    unfinished.as_array_mut().unwrap().push(foreign);
    state["worktrees"] = json!([]);
    state["roots"].as_array_mut().unwrap().retain(|root| *root != *path.to_str().unwrap());
    state["unfinishedWorktrees"] = unfinished;
    std::fs::write(&file, state.to_string()).unwrap();
    let indexes = || std::fs::read_dir(home.join("index")).unwrap().count();
    assert_eq!(indexes(), 2);
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    assert_eq!(raw.ok("worktree.list", json!({})).await["data"], json!([]));
    assert!(!path.exists() && precious.join("work.txt").exists());
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&repository, &["branch", "--list", "cairn/*"]), "");
    assert_eq!(indexes(), 1);
}
