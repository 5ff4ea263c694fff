//! The file in a folder that stores its last chat: the session, and the last displayed record.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cairn_protocol::id::SessionId;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Name of the file.
const FILE_NAME: &str = ".cairn_session";
/// Maximum bytes of the file.
const MAX_BYTES: u64 = 4096;

/// The complete content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Local {
    pub session_id: SessionId,
    /// The last displayed record.
    pub seq: u64,
}

/// Returns the file's path in a folder.
pub fn path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// Reads the file of a folder.
pub fn read(folder: &Path) -> Result<Local, Failure> {
    let path = path(folder);
    let absent = || {
        Failure::with_reason(
            "session_not_found",
            format!("no chat is stored in {}", folder.display()),
        )
        .hint("start one with 'cairn chat', or name the folder where it was")
    };
    let size = match path.metadata() {
        Ok(meta) if meta.is_file() => meta.len(),
        Ok(_) => return Err(invalid_file(&path, "it is not a file")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent()),
        Err(error) => return Err(Failure::path(&path, &error)),
    };
    if size > MAX_BYTES {
        return Err(invalid_file(&path, "it is too large"));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| Failure::path(&path, &e))?;
    serde_json::from_str(&text).map_err(|e| invalid_file(&path, &e.to_string()))
}

fn invalid_file(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} cannot be used: {why}", path.display()))
        .hint("delete it, and start a new chat")
}

/// Writes the file atomically, readable by this user only.
pub fn write(folder: &Path, local: &Local) -> Result<(), Failure> {
    let path = path(folder);
    let fresh = folder.join(format!("{FILE_NAME}.{}", std::process::id()));
    let describe = |error: std::io::Error| {
        Failure::path(&path, &error).hint("--no-local-session stores no file in the folder")
    };
    let written = write_private(&fresh, local).and_then(|()| std::fs::rename(&fresh, &path));
    written.map_err(|error| {
        // A partial file is useless.
        let _best_effort = std::fs::remove_file(&fresh);
        describe(error)
    })
}

fn write_private(path: &Path, local: &Local) -> std::io::Result<()> {
    // Left by a killed process with the same id, or created by another user.
    let _best_effort = std::fs::remove_file(path);
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(serde_json::to_string(local)?.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// Makes `options` create a file that only its user can read.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_written_atomically_and_private() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().text().contains("no chat is stored"));
        let mut local = Local { session_id: SessionId::new(), seq: 7 };
        write(dir.path(), &local).unwrap();
        assert_eq!(read(dir.path()).unwrap(), local);
        local.seq = 8;
        write(dir.path(), &local).unwrap();
        assert_eq!(read(dir.path()).unwrap(), local);
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [FILE_NAME]);
        let text = std::fs::read_to_string(path(dir.path())).unwrap();
        assert_eq!(text, format!("{{\"sessionId\":\"{}\",\"seq\":8}}\n", local.session_id));
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &path(dir.path()).metadata().unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn invalid_files_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(5000);
        let id = SessionId::new();
        for (text, expected) in [
            ("", "EOF"),
            ("{}", "sessionId"),
            (long.as_str(), "too large"),
            (r#"{"sessionId":"../x","seq":1}"#, ""),
        ] {
            std::fs::write(path(dir.path()), text).unwrap();
            let failure = read(dir.path()).unwrap_err();
            assert!(failure.text().contains(expected), "{}", failure.text());
        }
        // A failed write leaves the previous file unchanged.
        std::fs::write(path(dir.path()), "before").unwrap();
        let missing = dir.path().join("gone");
        assert!(write(&missing, &Local { session_id: id, seq: 1 }).is_err());
    }
}
