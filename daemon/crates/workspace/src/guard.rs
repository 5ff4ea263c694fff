//! A check of ignore files before they are read: a tree may contain a `.gitignore` that is a pipe
//! or a link to an endless device, and the readers of ignore files open any file with that name.

use std::path::Path;

/// Names of files from which a walk reads rules.
pub(crate) const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];

/// Most bytes of an ignore file; a person or a generator would not write larger ones.
const MAX_IGNORE_BYTES: u64 = 4 * 1024 * 1024;

/// Returns true if the ignore files of `dir` can be read completely without blocking.
pub(crate) fn rules_are_readable(dir: &Path, names: &[&str]) -> bool {
    let mut path = dir.join(".git");
    let safe = |path: &Path| match std::fs::metadata(path) {
        Ok(meta) => meta.is_dir() || (meta.is_file() && meta.len() <= MAX_IGNORE_BYTES),
        Err(_) => true,
    };
    // `.git` is a folder in a repository and a short file in a worktree or submodule; both lead to
    // an exclude file.
    if let Ok(meta) = std::fs::symlink_metadata(&path) {
        if !meta.is_dir() && !safe(&path) {
            return false;
        }
        if !safe(&path.join("info/exclude")) {
            return false;
        }
    }
    names.iter().all(|name| {
        path.set_file_name(name);
        safe(&path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_huge_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".gitignore");
        assert!(rules_are_readable(dir.path(), &IGNORE_FILES));
        std::fs::write(&file, "target\n").unwrap();
        assert!(rules_are_readable(dir.path(), &IGNORE_FILES));
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(!rules_are_readable(dir.path(), &IGNORE_FILES));
        std::fs::remove_file(&file).unwrap();
        let giant = std::fs::File::create(&file).unwrap();
        giant.set_len(1 << 40).unwrap();
        assert!(!rules_are_readable(dir.path(), &IGNORE_FILES));
    }
}
