//! Small files of Cairn itself, readable by the user alone.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Replaces a file, or creates it: after a crash or a power cut it has the old content or the new
/// one, and the new one once this has returned. An unfinished file has one fixed name beside it,
/// which the next call replaces. Calls for one file must not overlap.
///
/// # Errors
/// Errors of the file system; the old content remains unless only the folder could not be
/// synchronised.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    let unfinished = Path::new(&unfinished);
    let written = write(unfinished, bytes).and_then(|()| std::fs::rename(unfinished, path));
    if written.is_err() {
        // The first error is the one to report.
        let _may_not_exist = std::fs::remove_file(unfinished);
        return written;
    }
    // The content is durable, but not yet its name.
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A file that exists would retain its mode.
    let _may_not_exist = std::fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.create_new(true).write(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn failed_replacement_leaves_the_old_content_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        replace_private_file(&path, b"old").unwrap();
        // A file that an earlier process left unfinished.
        std::fs::write(dir.path().join("state.json.tmp"), "a longer unfinished text").unwrap();
        replace_private_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let folder = dir.path().join("folder");
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        assert!(replace_private_file(&folder, b"x").is_err());
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["folder", "state.json"]);
    }
}
