//! Listing folders: bounded, by the ignore rules, level by level so that a truncation removes the
//! deepest entries first.

use std::collections::VecDeque;

use cairn_protocol::content::{DirEntry, DirListing, EntryKind, MAX_DIR_ENTRIES};

use crate::{
    WorkspaceError,
    guard::{IGNORE_FILES, rules_are_readable},
    root::{Root, failure, kind_of},
    walk::{WalkOptions, builder},
};

/// Largest depth of a listing.
const MAX_DEPTH: u32 = 16;
/// Most entries that are examined for one listing, ignored ones included.
const MAX_EXAMINED: usize = 200_000;

/// Returns the entries of the folder at `rel`, `depth` levels down (1 to 16): files that the ignore
/// rules exclude are left out, hidden ones are listed (but not `.git`), symlinks are listed and not
/// followed, all sorted by path. A folder that is itself ignored can be listed by naming it.
///
/// # Errors
/// `InvalidParams` for the depth, `NotADirectory`, and errors of [`Root::open_file`].
pub fn list_dir(root: &Root, rel: &str, depth: u32) -> Result<DirListing, WorkspaceError> {
    check_depth(depth)?;
    let (_, real) = root.open_dir(rel)?;
    let at = if rel.is_empty() { "." } else { rel };
    let mut rules = rules_are_readable(&real, &IGNORE_FILES)
        .then(|| {
            builder(root, &real, &WalkOptions::default())
                .hidden(false)
                .build_matchers()
                .into_iter()
                .next()
        })
        .flatten();
    let is_closed = root.closed();
    let mut listing = empty(root, at);
    let mut examined = 0;
    let mut queue = VecDeque::from([(String::new(), 1)]);
    while let Some((below, level)) = queue.pop_front() {
        let mut children = match read_folder(root, at, &below, &mut examined, true) {
            Ok(children) => children,
            Err(e) if below.is_empty() => return Err(e),
            // Deleted or made unreadable since its parent was read.
            Err(_) => continue,
        };
        listing.truncated |= examined >= MAX_EXAMINED;
        children.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind, size) in children {
            let inner = join(&below, &name);
            let is_dir = kind == EntryKind::Dir;
            if (is_dir && name == ".git") || is_closed(&real.join(&inner)) {
                continue;
            }
            let trap = is_dir && !rules_are_readable(&real.join(&inner), &IGNORE_FILES);
            if rules.as_mut().is_some_and(|r| r.matched(&inner, is_dir && !trap).is_ignore()) {
                continue;
            }
            if listing.entries.len() == MAX_DIR_ENTRIES {
                listing.truncated = true;
                break;
            }
            let path = if at == "." { inner.clone() } else { join(at, &inner) };
            listing.entries.push(DirEntry { path, kind, size });
            if is_dir && level < depth && !trap {
                queue.push_back((inner, level + 1));
            }
        }
    }
    listing.entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Extent of a search for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Examined {
    /// Number of examined folder entries.
    pub entries: usize,
    /// True if every entry was examined.
    pub complete: bool,
}

/// Passes the files below the folder at `rel` to `on_file`, relative to the root: those that
/// [`crate::walk`] would yield, and those of a folder that is ignored or hidden when it is named.
/// Each folder is opened beneath the root by the kernel, so that nothing that a link leads to
/// outside is named, even if it is swapped meanwhile.
///
/// # Errors
/// `NotADirectory`, and errors of [`Root::open_file`].
pub fn find_files(
    root: &Root,
    rel: &str,
    on_file: &mut dyn FnMut(String),
) -> Result<Examined, WorkspaceError> {
    let (_, real) = root.open_dir(rel)?;
    let at = if rel.is_empty() { "." } else { rel };
    let mut rules = rules_are_readable(&real, &IGNORE_FILES)
        .then(|| builder(root, &real, &WalkOptions::default()).build_matchers().into_iter().next())
        .flatten();
    let mut entries = 0;
    let mut queue = VecDeque::from([String::new()]);
    while let Some(below) = queue.pop_front() {
        let folder = match read_folder(root, at, &below, &mut entries, false) {
            Ok(folder) => folder,
            Err(e) if below.is_empty() => return Err(e),
            Err(_) => continue,
        };
        for (name, kind, _) in folder {
            let inner = join(&below, &name);
            let is_dir = kind == EntryKind::Dir;
            let child_path = real.join(&inner);
            let closed = name == ".git"
                || root.is_blocked(&child_path)
                || (is_dir && !rules_are_readable(&child_path, &IGNORE_FILES));
            if closed || rules.as_mut().is_some_and(|r| r.matched(&inner, is_dir).is_ignore()) {
                continue;
            }
            match kind {
                EntryKind::Dir => queue.push_back(inner),
                EntryKind::File => on_file(if at == "." { inner } else { join(at, &inner) }),
                _ => {}
            }
        }
        if entries >= MAX_EXAMINED {
            return Ok(Examined { entries, complete: false });
        }
    }
    Ok(Examined { entries, complete: true })
}

fn empty(root: &Root, rel: &str) -> DirListing {
    let restricted = !root.view().is_complete();
    DirListing { path: rel.to_owned(), entries: Vec::new(), truncated: false, restricted }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}

fn check_depth(depth: u32) -> Result<(), WorkspaceError> {
    if (1..=MAX_DEPTH).contains(&depth) {
        return Ok(());
    }
    Err(WorkspaceError::BadDepth { depth, limit: MAX_DEPTH })
}

type FolderEntry = (String, EntryKind, Option<u64>);

/// Returns the entries of one folder: name, kind, size of files if requested. Names that are not
/// UTF-8 are left out.
fn read_folder(
    root: &Root,
    at: &str,
    below: &str,
    examined: &mut usize,
    sizes: bool,
) -> Result<Vec<FolderEntry>, WorkspaceError> {
    let rel = if below.is_empty() { at.to_owned() } else { join(at, below) };
    let (dir, _) = root.open_dir(&rel)?;
    let mut children = Vec::new();
    for entry in dir.entries().map_err(|e| failure(e, &rel))? {
        if *examined >= MAX_EXAMINED {
            break;
        }
        *examined += 1;
        let Ok(entry) = entry else { continue };
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
            continue;
        };
        let kind = kind_of(kind.is_file(), kind.is_dir(), kind.is_symlink());
        let size = (sizes && kind == EntryKind::File)
            .then(|| entry.metadata().map(|m| m.len()).ok())
            .flatten();
        children.push((name, kind, size));
    }
    Ok(children)
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

/// Returns a listing that contains only `parts` (paths beneath `rel`, relative to the root), their
/// contents, and the folders that lead to them. Missing parts are left out.
///
/// # Errors
/// As [`list_dir`].
pub fn list_parts(
    root: &Root,
    rel: &str,
    depth: u32,
    parts: &[String],
) -> Result<DirListing, WorkspaceError> {
    let above = names(rel).count();
    let mut listing = empty(root, rel);
    check_depth(depth)?;
    root.open_dir(rel)?;
    for part in parts {
        let names: Vec<&str> = names(part).collect();
        for end in above + 1..=names.len().min(above + depth as usize) {
            let path = names[..end].join("/");
            if let Ok(stat) = root.stat(&path) {
                let size = (stat.kind == EntryKind::File).then_some(stat.size);
                listing.entries.push(DirEntry { path, kind: stat.kind, size });
            }
        }
        let remaining_depth = depth
            .saturating_sub(u32::try_from(names.len().saturating_sub(above)).unwrap_or(u32::MAX));
        if remaining_depth > 0
            && let Ok(inner) = list_dir(root, &names.join("/"), remaining_depth)
        {
            listing.truncated |= inner.truncated;
            listing.entries.extend(inner.entries);
        }
    }
    listing.entries.sort_by(|a, b| a.path.cmp(&b.path));
    listing.entries.dedup_by(|a, b| a.path == b.path);
    if listing.entries.len() > MAX_DIR_ENTRIES {
        listing.truncated = true;
        listing.entries.truncate(MAX_DIR_ENTRIES);
    }
    Ok(listing)
}
