//! `cairn doctor --repair`: rescues what is intact of damaged files, and moves the rest away. Without
//! `--yes` it only shows what it would do.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use cairn_cli::{FAILED, Globals, OK, UNREACHABLE};
use cairn_protocol::{location::DataRoot, time::Timestamp};
use cairn_store::StoreError;
use serde::Serialize;

use super::state;
use crate::instance::Instance;

/// One damaged part, and its repair.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Repair {
    name: &'static str,
    damage: String,
    /// Sentence about the change that is or would be made.
    action: String,
    lost: Vec<String>,
    #[serde(skip)]
    change: Change,
}

/// The change of the data folder that a repair makes.
#[derive(Debug)]
enum Change {
    /// A rescued file takes the place of a damaged one.
    Replace { damaged: PathBuf, rescued: PathBuf },
    /// A folder is deleted, because its content is derived.
    Delete(PathBuf),
}

/// Runs the repair; the exit code is 1 if damage remains.
pub fn run(root: &DataRoot, applies: bool, globals: &Globals) -> ExitCode {
    // Nothing else may write meanwhile; a look alone needs no lock.
    let _instance = match applies.then(|| Instance::claim(root)).transpose() {
        Ok(instance) => instance,
        Err(error) => return failed(&format!("{error}")),
    };
    let folder = root.damaged_dir().join(moment());
    let outcome = find(root, &folder).and_then(|repairs| {
        if applies {
            repairs.iter().try_for_each(|repair| apply(&repair.change, &folder))?;
        }
        Ok(repairs)
    });
    // A look alone leaves nothing that it has rescued.
    let is_empty_or_unused = !applies || std::fs::read_dir(&folder).is_ok_and(|d| d.count() == 0);
    if is_empty_or_unused {
        let _absent = std::fs::remove_dir_all(&folder);
        let _has_others = std::fs::remove_dir(root.damaged_dir());
    }
    match outcome {
        Ok(repairs) => {
            let text = if globals.json {
                let value = serde_json::json!({
                    "damaged": !repairs.is_empty(), "repaired": applies, "repairs": repairs,
                });
                format!("{value}\n")
            } else {
                report(&repairs, applies, &folder)
            };
            // If the reader of the output is gone, the exit code is enough.
            let _closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(if repairs.is_empty() || applies { OK } else { FAILED })
        }
        Err(error) => failed(&error),
    }
}

fn failed(text: &str) -> ExitCode {
    let _closed = writeln!(std::io::stderr(), "error: {text}");
    ExitCode::from(UNREACHABLE)
}

/// Returns the time as part of a name.
fn moment() -> String {
    let text = Timestamp::now().to_string();
    text.chars().filter(char::is_ascii_digit).take(14).collect()
}

/// Finds what is damaged, and writes what is intact of it into `folder`.
fn find(root: &DataRoot, folder: &Path) -> Result<Vec<Repair>, String> {
    let mut repairs = Vec::new();
    repairs.extend(trace(&root.trace_db(), folder)?);
    repairs.extend(state_file(&root.state_json(), folder)?);
    for folder in state::index_folders(root) {
        let database = folder.join("index.db");
        let damage = match cairn_store::check_length(&database) {
            Err(StoreError::Corrupt(what)) => Some(what),
            _ => None,
        };
        if let Some(damage) = damage.or_else(|| structural(&database)) {
            repairs.push(Repair {
                name: "index",
                damage,
                action: format!("{} is deleted, and built again by the daemon", folder.display()),
                lost: vec![],
                change: Change::Delete(folder),
            });
        }
    }
    Ok(repairs)
}

fn structural(database: &Path) -> Option<String> {
    let check = || {
        let conn = cairn_store::open_read_only(database)?;
        cairn_store::integrity_check(&conn)
    };
    match check() {
        Ok(text) => (text != "ok").then_some(text),
        Err(StoreError::Corrupt(what)) => Some(what),
        // Another process may have it locked.
        Err(_) => None,
    }
}

fn private_folder(folder: &Path) -> Result<(), String> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

fn trace(path: &Path, folder: &Path) -> Result<Option<Repair>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let damage = match cairn_trace::inspect(path) {
        Ok(findings) if findings.is_empty() => return Ok(None),
        Ok(findings) => findings.join("; "),
        Err(StoreError::Corrupt(what)) => format!("trace.db: {what}"),
        Err(error) => return Err(error.to_string()),
    };
    private_folder(folder)?;
    let rescued = folder.join("rescued.db");
    let (action, lost) = match cairn_trace::rescue(path, &rescued) {
        Ok(rescue) => (
            format!(
                "a new trace.db has {} sessions with {} records and {} blobs of it",
                rescue.sessions, rescue.records, rescue.blobs
            ),
            rescue.lost,
        ),
        Err(error @ StoreError::Newer { .. }) => return Err(error.to_string()),
        Err(error @ (StoreError::DiskFull(_) | StoreError::Io { .. })) => {
            return Err(error.to_string());
        }
        Err(error) => {
            // The daemon creates a new log where there is none.
            let _absent = std::fs::remove_file(&rescued);
            let lost = vec![format!("all sessions: {error}")];
            ("the next start of the daemon creates a new trace.db".to_owned(), lost)
        }
    };
    let change = Change::Replace { damaged: path.to_owned(), rescued };
    Ok(Some(Repair { name: "log", damage, action, lost, change }))
}

fn state_file(path: &Path, folder: &Path) -> Result<Option<Repair>, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let (intact, lost) = cairn_engine::rescue_state(&bytes);
    let Some(damage) = lost.first().cloned() else { return Ok(None) };
    private_folder(folder)?;
    let rescued = folder.join("rescued.json");
    cairn_workspace::replace_private_file(&rescued, &intact)
        .map_err(|e| format!("{}: {e}", rescued.display()))?;
    Ok(Some(Repair {
        name: "state",
        damage: format!("state.json: {damage}"),
        action: "a new state.json has the parts that can be read".to_owned(),
        lost,
        change: Change::Replace { damaged: path.to_owned(), rescued },
    }))
}

fn apply(change: &Change, folder: &Path) -> Result<(), String> {
    match change {
        Change::Delete(folder) => {
            std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
        }
        Change::Replace { damaged, rescued } => replace(damaged, rescued, folder)
            .map_err(|e| format!("{} cannot be replaced: {e}", damaged.display())),
    }
}

/// Puts a rescued file in the place of a damaged one, which remains in `folder`. There is a file at
/// every moment, so that a daemon never starts with an empty log.
fn replace(damaged: &Path, rescued: &Path, folder: &Path) -> std::io::Result<()> {
    let name = damaged.file_name().unwrap_or_default();
    std::fs::hard_link(damaged, folder.join(name))
        .or_else(|_| std::fs::copy(damaged, folder.join(name)).map(drop))?;
    // The log of changes belongs to the damaged file, and would be applied to the new one.
    for suffix in ["-wal", "-shm"] {
        let with_suffix = |path: &Path| {
            let mut path = path.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        match std::fs::rename(with_suffix(damaged), with_suffix(&folder.join(name))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if rescued.exists() { std::fs::rename(rescued, damaged) } else { std::fs::remove_file(damaged) }
}

fn report(repairs: &[Repair], applied: bool, folder: &Path) -> String {
    if repairs.is_empty() {
        return "nothing is damaged\n".to_owned();
    }
    let mut out = String::new();
    for repair in repairs {
        out.push_str(&format!("{}: {}\n", repair.name, repair.damage));
        out.push_str(&format!("  {}\n", repair.action));
        for lost in &repair.lost {
            out.push_str(&format!("  lost: {lost}\n"));
        }
    }
    out.push_str(&if applied {
        format!("Done. The damaged files are in {}\n", folder.display())
    } else {
        "Nothing was changed. To do it: cairn stop; cairn doctor --repair --yes\n".to_owned()
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globals() -> Globals {
        Globals::default()
    }

    fn entries(root: &DataRoot) -> Vec<String> {
        let names = std::fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn damaged_files_are_rescued_after_a_look() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().join("home"));
        std::fs::create_dir(root.path()).unwrap();
        assert_eq!(run(&root, false, &globals()), ExitCode::from(OK));
        let trace = cairn_trace::Trace::open(&root.trace_db()).unwrap();
        let new = cairn_trace::NewSession { title: "kept".into(), ..Default::default() };
        let id = trace.create_session(new).await.unwrap().session_id;
        drop(trace);
        let conn = cairn_store::rusqlite::Connection::open(root.trace_db()).unwrap();
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(conn);
        let is_closed = || !root.path().join("trace.db-wal").exists();
        while !is_closed() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let healthy = std::fs::read(root.trace_db()).unwrap();
        let mut damaged = healthy.clone();
        damaged[..100].fill(7);
        std::fs::write(root.trace_db(), &damaged).unwrap();
        std::fs::write(root.state_json(), "{\"roots\": [\"/a\"], \"remotes\": 5}").unwrap();
        let index = root.index_dir().join("root_x");
        std::fs::create_dir_all(&index).unwrap();
        std::fs::write(index.join("index.db"), &healthy[..healthy.len() / 2]).unwrap();
        let before = entries(&root);
        assert_eq!(run(&root, false, &globals()), ExitCode::from(FAILED));
        assert_eq!(entries(&root), before, "a look changes nothing");
        assert!(std::fs::read(root.trace_db()).unwrap() == damaged);
        assert_eq!(run(&root, true, &globals()), ExitCode::from(OK));
        assert!(!index.exists());
        let state = std::fs::read_to_string(root.state_json()).unwrap();
        assert!(state.contains("\"/a\""), "{state}");
        let trace = cairn_trace::Trace::open(&root.trace_db()).unwrap();
        assert_eq!(trace.session(&id).await.unwrap().title, "kept");
        drop(trace);
        let mut asides = std::fs::read_dir(root.damaged_dir()).unwrap();
        let folder = asides.next().unwrap().unwrap().path();
        let moved = std::fs::read(folder.join("trace.db")).unwrap();
        assert!(moved == damaged);
        assert!(folder.join("state.json").exists());
        assert_eq!(run(&root, false, &globals()), ExitCode::from(OK), "nothing is damaged now");
    }

    #[test]
    fn repair_is_refused_while_a_daemon_runs() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().to_owned());
        let _daemon = Instance::claim(&root).unwrap();
        assert_eq!(run(&root, true, &globals()), ExitCode::from(UNREACHABLE));
    }
}
