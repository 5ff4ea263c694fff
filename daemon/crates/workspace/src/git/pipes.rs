//! Named pipes in repositories. Opening one blocks until its other end is opened, and git opens any
//! file with the right name.

use std::{
    fs::File,
    io::Read as _,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{Mode, OFlags, open};

/// Most entries examined in one search, and its time limit.
const MAX_ENTRIES: usize = 200_000;
const MAX_TIME: Duration = Duration::from_secs(2);
/// Most pipes that are stored.
const MAX_PIPES: usize = 1_000;
/// Most bytes of a configuration that are read, values of it that are examined, and nested
/// includes.
const MAX_CONFIG: u64 = 256 * 1024;
const MAX_VALUES: usize = 1_000;
const MAX_DEPTH: usize = 4;

/// Returns the path because of which a repository cannot be read without blocking: a file that git
/// opens is a pipe, a socket or a device. Cheap; entries deeper in the tree are left to
/// [`release`].
pub(super) fn find_trap(top: &Path, git_dir: &Path, read: &[&str]) -> Option<PathBuf> {
    read.iter()
        .map(|name| git_dir.join(name))
        .find(|path| is_trap(path))
        .or_else(|| trap_in_config(top, &git_dir.join("config"), MAX_DEPTH))
        .or_else(|| trap_in_references(git_dir))
}

/// Returns true if the path, links followed, is neither a file nor a folder.
fn is_trap(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// Returns a path in the configuration that is a pipe: an include, a file of excludes or
/// attributes.
fn trap_in_config(top: &Path, file: &Path, depth: usize) -> Option<PathBuf> {
    if is_trap(file) {
        return Some(file.to_path_buf());
    }
    let mut text = String::new();
    let _short = File::open(file).ok()?.take(MAX_CONFIG).read_to_string(&mut text).ok()?;
    for line in text.lines().take(MAX_VALUES) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches('"').replace("\\\\", "\\");
        let value = value.split([';', '#']).next().unwrap_or_default().trim().trim_end_matches('"');
        if value.is_empty() || value.len() > 4096 {
            continue;
        }
        let home = value.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest)));
        let beside = file.parent().unwrap_or(top).join(value);
        for path in [Some(beside), Some(top.join(value)), home].into_iter().flatten() {
            if is_trap(&path) {
                return Some(path);
            }
            let key = key.trim().rsplit([' ', '\t', ']']).next().unwrap_or_default();
            let nested = depth > 0 && key.eq_ignore_ascii_case("path") && path.is_file();
            if nested && let Some(trap) = trap_in_config(top, &path, depth - 1) {
                return Some(trap);
            }
        }
    }
    None
}

fn trap_in_references(git_dir: &Path) -> Option<PathBuf> {
    let mut first_match = None;
    let deadline = Instant::now() + MAX_TIME;
    let mut remaining = MAX_ENTRIES / 10;
    each_below(&git_dir.join("refs"), &mut remaining, deadline, &mut |path, kind| {
        if !kind.is_file() && !kind.is_dir() && is_trap(path) {
            first_match = Some(path.to_path_buf());
        }
        first_match.is_none()
    });
    first_match
}

/// Returns the path because of which nothing may be written into a git folder: an entry that is
/// neither a file nor a folder of its own. The files of loose objects are excluded: the name of
/// each is determined by its content, and git writes a temporary file and renames it.
pub(super) fn find_foreign(git_dir: &Path) -> Option<PathBuf> {
    if !std::fs::symlink_metadata(git_dir).is_ok_and(|meta| meta.is_dir()) {
        return Some(git_dir.to_path_buf());
    }
    let (mut first_match, mut remaining) = (None, MAX_ENTRIES);
    let objects = git_dir.join("objects");
    let complete =
        each_below(git_dir, &mut remaining, Instant::now() + MAX_TIME, &mut |path, kind| {
            if !kind.is_file() && !kind.is_dir() {
                first_match = Some(path.to_path_buf());
            }
            let loose = kind.is_dir()
                && path.parent() == Some(&objects)
                && path.file_name().is_some_and(|name| name.len() == 2);
            first_match.is_none() && !loose
        });
    first_match.or_else(|| (!complete).then(|| git_dir.to_path_buf()))
}

/// Passes everything below a folder to `visit`, links not followed; a folder is entered if the
/// answer is true. Returns true if all of it was visited.
fn each_below(
    folder: &Path,
    remaining: &mut usize,
    deadline: Instant,
    visit: &mut dyn FnMut(&Path, std::fs::FileType) -> bool,
) -> bool {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if *remaining == 0 || Instant::now() > deadline {
                return false;
            }
            *remaining -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if visit(&path, kind) && kind.is_dir() {
                folders.push(path);
            }
        }
    }
    true
}

/// Returns every named pipe below these folders.
pub(super) fn below(folders: &[PathBuf]) -> Vec<PathBuf> {
    let (mut pipes, mut remaining, deadline) = (Vec::new(), MAX_ENTRIES, Instant::now() + MAX_TIME);
    for folder in folders {
        each_below(folder, &mut remaining, deadline, &mut |path, kind| {
            if kind.is_fifo() && pipes.len() < MAX_PIPES {
                pipes.push(path.to_path_buf());
            }
            true
        });
    }
    pipes
}

/// Opens and closes the other end of pipes that block a thread: a reader then finds them empty, a
/// writer closed.
pub(super) fn release(pipes: &[PathBuf]) {
    for pipe in pipes {
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Without a reader this fails, and without a writer nothing blocks.
        if open(pipe, OFlags::WRONLY | flags, Mode::empty()).is_err() {
            let _writer = open(pipe, OFlags::RDONLY | flags, Mode::empty());
        }
    }
}
