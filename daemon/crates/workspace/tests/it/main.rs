//! The workspace crate on real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic where it stands")]

mod changes;
mod gits;
mod linked;
mod paths;
mod spans;
mod walks;
mod watches;

use std::path::Path;

use cairn_workspace::{Root, Roots};

/// Creates a declared root in a temporary folder.
fn root() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = Roots::new(vec![]).declare(dir.path()).unwrap();
    (dir, root)
}

/// Writes a file and creates the folders above it.
fn put(dir: &Path, rel: &str, text: &str) {
    let path = dir.join(rel);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Creates a named pipe.
fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
