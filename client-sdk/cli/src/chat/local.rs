//! The last chat of a folder: the session, and the last displayed record. Its file is in the data
//! root, so that no file lies in the user's repositories.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use cairn_protocol::id::SessionId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::exit::Failure;

/// Folder of the files in the data root.
const FOLDER: &str = "chats";
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

/// Returns the path of a folder's file.
pub fn path(data_root: &Path, folder: &Path) -> PathBuf {
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    data_root.join(FOLDER).join(format!("{name}.json"))
}

/// Reads the file of `folder` at `path`.
pub fn read(path: &Path, folder: &Path) -> Result<Local, Failure> {
    let absent = || {
        Failure::with_reason(
            "session_not_found",
            format!("no chat is stored in {}", folder.display()),
        )
        .hint("start one with 'cairn chat', or name the folder where it was")
    };
    let size = match path.metadata() {
        Ok(meta) if meta.is_file() => meta.len(),
        Ok(_) => return Err(invalid_file(path, "it is not a file")),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent()),
        Err(error) => return Err(Failure::path(path, &error)),
    };
    if size > MAX_BYTES {
        return Err(invalid_file(path, "it is too large"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Failure::path(path, &e))?;
    serde_json::from_str(&text).map_err(|e| invalid_file(path, &e.to_string()))
}

fn invalid_file(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} cannot be used: {why}", path.display()))
        .hint("delete it, and start a new chat")
}

/// Writes the file atomically, readable by this user only.
pub fn write(path: &Path, local: &Local) -> Result<(), Failure> {
    let fresh = path.with_extension(std::process::id().to_string());
    let describe = |error: std::io::Error| {
        Failure::path(path, &error).hint("--no-local-session stores no file for --continue")
    };
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| write_private(&fresh, local))
        .and_then(|()| std::fs::rename(&fresh, path));
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
        let (root, folder) = (dir.path(), Path::new("/some/folder"));
        let file = path(root, folder);
        assert_ne!(file, path(root, Path::new("/some/other")));
        assert!(read(&file, folder).unwrap_err().text().contains("no chat is stored"));
        let mut local = Local { session_id: SessionId::new(), seq: 7 };
        write(&file, &local).unwrap();
        assert_eq!(read(&file, folder).unwrap(), local);
        local.seq = 8;
        write(&file, &local).unwrap();
        assert_eq!(read(&file, folder).unwrap(), local);
        assert_eq!(std::fs::read_dir(root.join(FOLDER)).unwrap().count(), 1);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{{\"sessionId\":\"{}\",\"seq\":8}}\n", local.session_id));
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn invalid_files_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.json");
        let long = "x".repeat(5000);
        let id = SessionId::new();
        for (text, expected) in [
            ("", "EOF"),
            ("{}", "sessionId"),
            (long.as_str(), "too large"),
            (r#"{"sessionId":"../x","seq":1}"#, ""),
        ] {
            std::fs::write(&file, text).unwrap();
            let failure = read(&file, dir.path()).unwrap_err();
            assert!(failure.text().contains(expected), "{}", failure.text());
        }
        // A file in the place of the folder.
        assert!(write(&file.join("x.json"), &Local { session_id: id, seq: 1 }).is_err());
    }
}
