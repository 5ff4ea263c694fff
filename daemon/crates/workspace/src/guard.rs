//! A look at ignore files before anything reads them: a tree may hold a `.gitignore` that is a pipe or a link to
//! an endless device, and the readers of ignore files open whatever has the name.

use std::path::Path;

/// Names that walking reads rules from.
pub(crate) const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];

/// Most bytes of an ignore file; larger ones are not rules that a person or a generator would write.
const MAX_IGNORE_BYTES: u64 = 4 * 1024 * 1024;

/// Whether the ignore files of `dir` can be read without waiting and to an end.
pub(crate) fn rules_are_readable(dir: &Path, names: &[&str]) -> bool {
    let mut path = dir.join(".git");
    let safe = |path: &Path| match std::fs::metadata(path) {
        Ok(meta) => meta.is_dir() || (meta.is_file() && meta.len() <= MAX_IGNORE_BYTES),
        Err(_) => true,
    };
    // `.git` is a folder in a repository and a short file in a worktree or submodule; both name an exclude file.
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
    fn pipes_devices_and_giants_are_refused() {
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
