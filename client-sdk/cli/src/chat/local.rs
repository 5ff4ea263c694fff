//! The file in a folder that remembers its last chat: the session, and how far it was read.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cairn_protocol::id::SessionId;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Its name.
const NAME: &str = ".cairn_session";
/// Bytes that are read of it at most.
const MAX: u64 = 4096;

/// What it holds, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Local {
    /// The session.
    pub session_id: SessionId,
    /// The last record that was seen.
    pub seq: u64,
}

/// Where it is in a folder.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Reads the file of a folder.
pub fn read(folder: &Path) -> Result<Local, Failure> {
    let path = path(folder);
    let absent = || {
        Failure::told("session_not_found", format!("no chat was kept in {}", folder.display()))
            .hint("start one with 'cairn chat', or name the folder where it was")
    };
    let size = match path.metadata() {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Err(unfit(&path, "it is no file")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent()),
        Err(error) => return Err(Failure::path(&path, &error)),
    };
    if size > MAX {
        return Err(unfit(&path, "it is too large"));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::path(&path, &e))?;
    serde_json::from_str(&text).map_err(|e| unfit(&path, &e.to_string()))
}

fn unfit(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} cannot be used: {why}", path.display()))
        .hint("delete it, and start a new chat")
}

/// Writes it: whole or not at all, for this user alone.
pub fn write(folder: &Path, local: &Local) -> Result<(), Failure> {
    let path = path(folder);
    let fresh = folder.join(format!("{NAME}.{}", std::process::id()));
    let said = |error: std::io::Error| {
        Failure::path(&path, &error).hint("--no-local-session keeps no file in the folder")
    };
    let written = write_private(&fresh, local).and_then(|()| std::fs::rename(&fresh, &path));
    written.map_err(|error| {
        // What is left of it is of no use to anybody.
        let _gone = std::fs::remove_file(&fresh);
        said(error)
    })
}

fn write_private(path: &Path, local: &Local) -> std::io::Result<()> {
    // Left by a process of the same number that was killed, or put there by somebody else.
    let _gone = std::fs::remove_file(path);
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(serde_json::to_string(local)?.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// The same options, for a file that only its user may read.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().text().contains("no chat was kept"));
        let mut local = Local { session_id: SessionId::new(), seq: 7 };
        write(dir.path(), &local).unwrap();
        assert_eq!(read(dir.path()).unwrap(), local);
        local.seq = 8;
        write(dir.path(), &local).unwrap();
        assert_eq!(read(dir.path()).unwrap(), local);
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [NAME]);
        let text = std::fs::read_to_string(path(dir.path())).unwrap();
        assert_eq!(text, format!("{{\"sessionId\":\"{}\",\"seq\":8}}\n", local.session_id));
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&path(dir.path()).metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_is_unfit_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let (long, id) = ("x".repeat(5000), SessionId::new());
        for (text, want) in [
            ("", "EOF"),
            ("{}", "sessionId"),
            (long.as_str(), "too large"),
            (r#"{"sessionId":"../x","seq":1}"#, ""),
        ] {
            std::fs::write(path(dir.path()), text).unwrap();
            let failure = read(dir.path()).unwrap_err();
            assert!(failure.text().contains(want), "{}", failure.text());
        }
        // The file of before is left as it was when a new one cannot be written.
        std::fs::write(path(dir.path()), "before").unwrap();
        let gone = dir.path().join("gone");
        assert!(write(&gone, &Local { session_id: id, seq: 1 }).is_err());
    }
}
