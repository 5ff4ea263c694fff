//! The data folder: one daemon at a time, private, with clear errors for newer versions and full
//! disks.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    contents::{check_integrity, complete, index, sources, until},
    sealed::{Daemon, command, missing, tree, wait_for},
};

fn serve(home: &Path, flags: &[&str]) -> Child {
    command(home).args(["serve", "--port", "0"]).args(flags).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns exit code and last output of a process.
fn wait_exit(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn one_of_many_concurrent_starts_survives() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut all: Vec<Child> = (0..4).map(|_| serve(&home, &[])).collect();
    until("the end of three", || all.iter_mut().filter_map(|c| c.try_wait().unwrap()).count() == 3);
    let holder = all.iter_mut().position(|c| c.try_wait().unwrap().is_none()).unwrap();
    let mut holder = all.swap_remove(holder);
    let file = wait_for("daemon.json", || std::fs::read(home.join("daemon.json")).ok());
    let file: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(file["pid"], holder.id());
    for child in all {
        let (code, err) = wait_exit(child);
        assert_ne!(code, Some(0));
        assert!(err.contains("another cairn daemon is running"), "{err}");
        assert!(err.contains(home.to_str().unwrap()), "{err}");
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn newer_database_is_refused_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    assert!(Daemon::start_in(&home, &[]).stop().success());
    let log = home.join("trace.db");
    let version = |set: Option<u32>| {
        let connection = cairn_store::rusqlite::Connection::open(&log).unwrap();
        if let Some(set) = set {
            connection.pragma_update(None, "user_version", set).unwrap();
        }
        connection.pragma_query_value(None, "user_version", |r| r.get::<_, u32>(0)).unwrap()
    };
    let known = version(None);
    version(Some(9_999));
    let (code, err) = wait_exit(serve(&home, &[]));
    assert_ne!(code, Some(0));
    assert!(err.contains("trace.db") && err.contains("newer"), "{err}");
    version(Some(known));
    assert!(Daemon::start_in(&home, &[]).stop().success());
}

#[tokio::test]
async fn data_root_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    sources(&root, 5);
    let mut child = serve(&home, &[]);
    wait_for("daemon.json", || std::fs::read(home.join("daemon.json")).ok());
    let daemon =
        serde_json::from_slice::<Value>(&std::fs::read(home.join("daemon.json")).unwrap()).unwrap();
    let token = std::fs::read_to_string(home.join("token")).unwrap();
    let address = daemon["addresses"][0].as_str().unwrap();
    let authorization = format!("Bearer {token}");
    let mut raw =
        crate::sealed::Raw::connect(address, &[("authorization", &authorization)]).await.unwrap();
    raw.ok("initialize", crate::sealed::hello()).await;
    index(&mut raw, &root).await;
    let mut wrong = Vec::new();
    let mut folders = vec![home.clone()];
    while let Some(folder) = folders.pop() {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        if mode != 0o700 {
            wrong.push(format!("{mode:o} {}", folder.display()));
        }
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            let mode = meta.permissions().mode() & 0o777;
            if meta.is_dir() {
                folders.push(entry.path());
            } else if mode & 0o077 != 0 {
                wrong.push(format!("{mode:o} {}", entry.path().display()));
            }
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn idle_daemon_exits() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start_in(&dir.path().join("home"), &["--idle-exit", "1"]);
    let mut raw = daemon.client().await;
    let began = std::time::Instant::now();
    // A client that only listens keeps the daemon running too.
    while began.elapsed() < std::time::Duration::from_millis(1_600) {
        raw.ok("daemon.status", json!({})).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    drop(raw);
    assert!(daemon.wait_exit().success());
    assert!(daemon.file().is_none());
}

/// A small file system in memory, unmounted when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(at)
            .stderr(Stdio::null());
        mount.status().is_ok_and(|s| s.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ignored = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn full_disk_is_reported_and_survived() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&dir.path().join("disk"), "24m") else {
        return missing("a mount of tmpfs");
    };
    let (home, root) = (disk.0.join("home"), dir.path().join("root"));
    sources(&root, 20);
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.explore(&root, &[]).await;
    complete(&mut raw).await;
    let filler = disk.0.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    let full = loop {
        if let Err(error) = std::io::Write::write_all(&mut file, &[7; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(file);
    let mut attempts = 0;
    let title = "t".repeat(190);
    let reason = loop {
        let answer = raw.call("session.create", json!({"title": title})).await;
        if let Some(reason) = answer["error"]["data"]["reason"].as_str() {
            break reason.to_owned();
        }
        attempts += 1;
        assert!(attempts < 20_000, "the disk is never full");
    };
    assert_eq!(reason, "disk_full");
    raw.ok("session.list", json!({"limit": 5})).await;
    assert!(raw.ok("search.lexical", json!({"query": "ledger7"})).await["items"][0].is_object());
    tree(&root, &[("late.py", "def pangolin():\n    pass\n")]);
    std::fs::remove_file(&filler).unwrap();
    let began = std::time::Instant::now();
    loop {
        if raw.call("session.create", json!({"title": "again"})).await["result"].is_object()
            && raw.ok("search.lexical", json!({"query": "pangolin"})).await["items"][0].is_object()
        {
            break;
        }
        assert!(began.elapsed() < crate::sealed::PATIENCE, "it does not work again");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    raw.explore(&root, &[]).await;
    check_integrity(&home);
    drop(daemon);
}

/// Returns the output of `cairn config` in a folder.
fn config(home: &Path, project: &Path) -> Value {
    let mut command = command(home);
    command.current_dir(project).args(["config", "--json"]).stdout(Stdio::piped());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn project_can_tighten_safety_but_not_loosen_it() {
    let dir = tempfile::tempdir().unwrap();
    let (home, project) = (dir.path().join("home"), dir.path().join("project"));
    std::fs::create_dir_all(home.join("config")).unwrap();
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let before = config(&home, &project)["values"].clone();
    let loose = json!({
        "safety": {"sandboxEnabled": false, "sandboxBlockedPaths": ["/srv/secrets"]},
        "listen": {"address": "0.0.0.0"},
        "permissions": {"defaultAction": "deny"},
    });
    std::fs::write(project.join(".cairn.json"), loose.to_string()).unwrap();
    let after = config(&home, &project);
    let value = |key: &str| after["values"][key]["value"].clone();
    for key in ["safety.sandboxEnabled", "listen.address"] {
        assert_eq!(value(key), before[key]["value"], "{key}");
        assert!(after["warnings"].to_string().contains(key), "{key}: {}", after["warnings"]);
    }
    let blocked = value("safety.sandboxBlockedPaths");
    assert!(blocked.as_array().unwrap().contains(&json!("/srv/secrets")), "{blocked}");
    let initial = before["safety.sandboxBlockedPaths"]["value"].as_array().unwrap();
    assert!(initial.iter().all(|p| blocked.as_array().unwrap().contains(p)), "{blocked}");
    assert_eq!(value("permissions.defaultAction"), "deny");
}
