//! Paths that a command line only names: its working folder, the scripts that it runs, the files
//! that its redirections write. An approval is of these as they were when it was requested, and they are
//! compared when the command starts.

use std::collections::BTreeSet;

use cairn_harness::command::{CommandLine, Direction, Part};
use cairn_protocol::approval::{BoundPath, BoundRole};
use cairn_workspace::Root;
use sha2::{Digest as _, Sha256};

/// Largest script whose content is compared; a larger one is compared by size, time and inode.
const MAX_SCRIPT: u64 = 8 * 1024 * 1024;
/// Most paths of one command line.
const MAX_PATHS: usize = 64;
/// Programs whose first argument that is a file is run.
const INTERPRETERS: &[&str] = &[
    ".", "awk", "bash", "bun", "dash", "deno", "fish", "gawk", "ksh", "lua", "node", "perl", "php",
    "python", "python2", "python3", "ruby", "sh", "source", "tsx", "zsh",
];
/// Programs that read a file of these names without being told.
const IMPLIED: &[(&str, &[&str])] = &[
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
];

/// Returns the paths that a command line acts by, in a folder relative to the root.
pub fn bound(root: &Root, folder: &str, line: &CommandLine) -> Vec<BoundPath> {
    let mut all = vec![folder_state(root, folder)];
    // A command may change into a folder first.
    let mut folders = vec![folder.to_owned()];
    for part in &line.parts {
        if matches!(part.program(), "cd" | "pushd")
            && let Some(target) = part.words.get(1)
        {
            folders.push(joined(folder, &target.text));
        }
    }
    let mut seen = BTreeSet::new();
    for part in &line.parts {
        for (role, path) in named(part) {
            for at in &folders {
                let path = joined(at, &path);
                if all.len() < MAX_PATHS && seen.insert((role as u8, path.clone())) {
                    all.extend(state(root, role, &path));
                }
            }
        }
    }
    all
}

fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder.is_empty() || folder == "." {
        return path.to_owned();
    }
    format!("{folder}/{path}")
}

/// Returns the paths that a part runs or writes, as it names them.
fn named(part: &Part) -> Vec<(BoundRole, String)> {
    let mut all = Vec::new();
    let program = part.program();
    if let Some(first) = part.words.first().filter(|word| word.text.contains('/')) {
        all.push((BoundRole::Program, first.text.clone()));
    }
    // `python3.11` is `python`.
    let versionless = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if INTERPRETERS.contains(&program) || INTERPRETERS.contains(&versionless) {
        let arguments = part.words.iter().skip(1).filter(|word| !word.text.starts_with('-'));
        all.extend(arguments.map(|word| (BoundRole::Program, word.text.clone())));
    }
    let implied = IMPLIED.iter().filter(|(name, _)| *name == program);
    for name in implied.flat_map(|(_, names)| *names) {
        all.push((BoundRole::Program, (*name).to_owned()));
    }
    let written = part.redirections.iter().filter(|r| r.direction == Direction::Write);
    all.extend(written.map(|r| (BoundRole::Output, r.target.text.clone())));
    all
}

/// Returns the state of a folder.
fn folder_state(root: &Root, folder: &str) -> BoundPath {
    let located = root.locate(folder);
    let target = located.as_ref().map_or_else(|_| folder.to_owned(), |path| path.real().to_owned());
    let state = match root.identity_of(&target) {
        Ok((device, inode)) => format!("folder {device}:{inode}"),
        Err(_) => "absent".to_owned(),
    };
    BoundPath { role: BoundRole::Folder, path: folder.to_owned(), target, state }
}

/// Returns the state of a file that runs or is written; `None` for one that is neither in the root
/// nor could be.
fn state(root: &Root, role: BoundRole, path: &str) -> Option<BoundPath> {
    let rel = match path.strip_prefix('/') {
        Some(_) => std::path::Path::new(path).strip_prefix(&root.path).ok()?.to_str()?.to_owned(),
        None => path.to_owned(),
    };
    let located = root.locate(&rel).ok()?;
    let target = located.real().to_owned();
    let state = match (role, root.stat(&target)) {
        // The file that a redirection writes matters, not its content.
        (BoundRole::Output, _) => String::new(),
        (_, Err(_)) => return None,
        (_, Ok(stat)) if stat.size > MAX_SCRIPT => {
            format!("inode {} of {} bytes at {}", stat.inode, stat.size, stat.mtime_ns)
        }
        (_, Ok(_)) => match root.read_file(&target, MAX_SCRIPT) {
            Ok(Some(bytes)) => format!("sha256 {}", hex::encode(Sha256::digest(&bytes))),
            // A folder is data, such as for an interpreter of modules.
            Ok(None) | Err(_) => return None,
        },
    };
    Some(BoundPath { role, path: path.to_owned(), target, state })
}
