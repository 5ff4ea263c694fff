//! The files of a root: a parallel walk by the same ignore rules as ripgrep, and the same check for
//! one path.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use cairn_protocol::content::EntryKind;
use ignore::{
    IncrementalIgnore, WalkBuilder, WalkState,
    overrides::{Override, OverrideBuilder},
};

use crate::{
    WorkspaceError,
    guard::{IGNORE_FILES, rules_are_readable},
    root::{FileStat, Root},
};

/// Most paths that [`WalkReport::unreadable`] names.
pub const MAX_UNREADABLE: usize = 100;

/// Most hidden files that a walk yields.
pub const MAX_HIDDEN: u64 = 5_000;

/// Folders of version control, or the file in their place.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Options of a walk.
#[derive(Debug, Clone, Default)]
pub struct WalkOptions {
    /// Globs of paths to leave out, as in a `.gitignore` at the root. A leading `!` is ignored.
    pub exclude: Vec<String>,
    /// Threads to use; 0 for as many as there are processors, at most 12.
    pub threads: usize,
    /// Yields the files that are left out only because they or their folders are hidden, and no
    /// others, at most [`MAX_HIDDEN`] of them. The folders of version control stay left out.
    pub hidden_only: bool,
}

impl WalkOptions {
    /// The options of the walk that leaves hidden files out.
    fn visible(&self) -> Self {
        Self { hidden_only: false, ..self.clone() }
    }

    /// Checks the globs.
    ///
    /// # Errors
    /// `BadPattern` that names the first invalid one; a walk ignores invalid ones.
    pub fn check(&self) -> Result<(), WorkspaceError> {
        for glob in &self.exclude {
            if let Err(e) = globset::GlobBuilder::new(glob).literal_separator(true).build() {
                let (glob, cause) = (glob.clone(), e.kind().clone());
                return Err(WorkspaceError::BadExclusion { glob, cause });
            }
        }
        Ok(())
    }
}

/// A file that a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Path relative to the root, `/` between names.
    pub rel: String,
    /// Metadata of the file.
    pub stat: FileStat,
}

/// Result of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalkReport {
    /// Number of files passed to the sink.
    pub files: u64,
    /// Number of files left out because their path is not valid UTF-8.
    pub invalid_names: u64,
    /// Paths that could not be read, with the cause; at most [`MAX_UNREADABLE`].
    pub unreadable: Vec<String>,
    /// Total number of paths that could not be read.
    pub unreadable_count: u64,
}

/// Passes every file of `root` to `sink`, from several threads at once: regular files only, by
/// `.gitignore`, `.ignore`, `.rgignore`, `.git/info/exclude`, the ignore files of parent folders
/// and the user's global excludes; hidden files left out, symlinks not followed, blocked paths
/// skipped.
pub fn walk(root: &Root, opts: &WalkOptions, sink: &(dyn Fn(Walked) + Sync)) -> WalkReport {
    let unreadable = Arc::new(Unreadable::default());
    let (files, invalid) = (AtomicU64::new(0), AtomicU64::new(0));
    let refuse = |text: String| unreadable.add(text);
    if rules_are_readable(&root.path, &IGNORE_FILES) {
        let list = unreadable.clone();
        let visible = opts.hidden_only.then(|| Ignore::build(root, &opts.visible()));
        let mut walk = builder(root, &root.path, opts);
        pass_traps(&mut walk, root, &IGNORE_FILES, move |dir| list.add(trapped(dir)));
        walk.build_parallel().run(|| {
            Box::new(|entry| {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(e) => {
                        refuse(e.to_string());
                        return WalkState::Continue;
                    }
                };
                let Some(kind) = entry.file_type() else { return WalkState::Continue };
                if !kind.is_file() {
                    return WalkState::Continue;
                }
                let Some(rel) = rel_of(&root.path, entry.path()) else {
                    invalid.fetch_add(1, Ordering::Relaxed);
                    return WalkState::Continue;
                };
                if let Some(visible) = &visible {
                    if !is_hidden(&rel) || visible.is_walked(&rel, false) {
                        return WalkState::Continue;
                    }
                    if files.load(Ordering::Relaxed) >= MAX_HIDDEN {
                        refuse(format!("more than {MAX_HIDDEN} hidden files: the others"));
                        return WalkState::Quit;
                    }
                }
                match entry.metadata() {
                    Ok(meta) => {
                        let stat = FileStat::of_std(&meta);
                        if stat.kind == EntryKind::File {
                            files.fetch_add(1, Ordering::Relaxed);
                            sink(Walked { rel, stat });
                        }
                    }
                    // A file deleted during the walk is no failure: it does not exist.
                    Err(e)
                        if e.io_error()
                            .is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound) => {}
                    Err(e) => refuse(e.to_string()),
                }
                WalkState::Continue
            })
        });
    } else {
        refuse(trapped(&root.path));
    }
    let mut names =
        std::mem::take(&mut *unreadable.names.lock().unwrap_or_else(|e| e.into_inner()));
    names.sort();
    WalkReport {
        files: files.into_inner(),
        invalid_names: invalid.into_inner(),
        unreadable: names,
        unreadable_count: unreadable.count.load(Ordering::Relaxed),
    }
}

/// True if a path has a hidden component, which is none of version control.
fn is_hidden(rel: &str) -> bool {
    let mut parts = rel.split('/').filter(|part| part.starts_with('.')).peekable();
    parts.peek().is_some() && parts.all(|part| !VERSION_CONTROL.contains(&part))
}

/// Paths that could not be read.
#[derive(Default)]
struct Unreadable {
    names: Mutex<Vec<String>>,
    count: AtomicU64,
}

impl Unreadable {
    fn add(&self, text: String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock().unwrap_or_else(|e| e.into_inner());
        if names.len() < MAX_UNREADABLE {
            names.push(text);
        }
    }
}

fn trapped(dir: &Path) -> String {
    format!("{}: its ignore files cannot be read", dir.display())
}

/// The rules of a walk, for checks of single paths.
pub struct Ignore {
    root: Root,
    rules: Mutex<Rules>,
    /// The rules of the walk that leaves hidden files out, if this one yields only those.
    visible: Option<Box<Self>>,
}

struct Rules {
    matcher: Option<IncrementalIgnore>,
    /// Folders whose ignore files were checked, and true if they can be read.
    readable: HashMap<String, bool>,
}

impl Ignore {
    /// Reads the current rules: each folder's ignore files are read when a path in it is first
    /// checked, and not again. Build a new one when they change.
    pub fn build(root: &Root, opts: &WalkOptions) -> Ignore {
        let matcher = builder(root, &root.path, opts).build_matchers().into_iter().next();
        Ignore {
            root: root.clone(),
            rules: Mutex::new(Rules { matcher, readable: HashMap::new() }),
            visible: opts.hidden_only.then(|| Box::new(Self::build(root, &opts.visible()))),
        }
    }

    /// Returns true if [`walk`] would yield this file, or enter this folder. `rel` as in
    /// [`Walked::rel`].
    pub fn is_walked(&self, rel: &str, is_dir: bool) -> bool {
        if rel.is_empty() || rel == "." {
            return is_dir;
        }
        if self.root.is_blocked(&self.root.path.join(rel)) {
            return false;
        }
        if let Some(visible) = &self.visible
            && !is_dir
            && (!is_hidden(rel) || visible.is_walked(rel, false))
        {
            return false;
        }
        let mut rules = self.rules.lock().unwrap_or_else(|e| e.into_inner());
        let parent = rel.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !rules.chain_readable(&self.root.path, parent)
            || (is_dir && !rules.readable(&self.root.path, rel))
        {
            return false;
        }
        rules.matcher.as_mut().is_some_and(|m| !m.matched(rel, is_dir).is_ignore())
    }
}

impl Rules {
    fn chain_readable(&mut self, root: &Path, dir: &str) -> bool {
        if self.readable.get(dir).copied() == Some(true) {
            return true;
        }
        let above =
            (!dir.is_empty()).then(|| dir.rsplit_once('/').map_or("", |(parent, _)| parent));
        above.is_none_or(|parent| self.chain_readable(root, parent)) && self.readable(root, dir)
    }

    fn readable(&mut self, root: &Path, dir: &str) -> bool {
        *self
            .readable
            .entry(dir.to_owned())
            .or_insert_with(|| rules_are_readable(&root.join(dir), &IGNORE_FILES))
    }
}

/// Returns `path` relative to `root`, when it is valid UTF-8.
pub(crate) fn rel_of(root: &Path, path: &Path) -> Option<String> {
    path.strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

/// Builds the walk of `base`, a folder of `root`, by the root's rules.
pub(crate) fn builder(root: &Root, base: &Path, opts: &WalkOptions) -> WalkBuilder {
    let mut walk = WalkBuilder::new(base);
    walk.threads(opts.threads).current_dir(&root.path).add_custom_ignore_filename(".rgignore");
    walk.overrides(exclusions(root, &opts.exclude)).hidden(!opts.hidden_only);
    walk
}

/// Compiles the globs to leave out.
pub(crate) fn exclusions(root: &Root, globs: &[String]) -> Override {
    let mut overrides = OverrideBuilder::new(&root.path);
    for glob in globs {
        // An invalid glob excludes nothing; `WalkOptions::check` reports it beforehand.
        let _ = overrides.add(&format!("!{}", glob.trim_start_matches('!')));
    }
    overrides.build().unwrap_or_else(|_| Override::empty())
}

/// Excludes blocked paths and folders whose ignore files (any of `names`) would never end from a
/// walk; `trap` receives the latter. The walk's reader would open them before it yields the folder,
/// so this check comes first.
pub(crate) fn pass_traps(
    walk: &mut WalkBuilder,
    root: &Root,
    names: &'static [&'static str],
    trap: impl Fn(&Path) + Send + Sync + 'static,
) {
    let root = root.clone();
    walk.filter_entry(move |entry| {
        let is_version_control = || {
            let name = entry.file_name().to_str();
            name.is_some_and(|name| VERSION_CONTROL.contains(&name)) && entry.depth() > 0
        };
        if root.is_blocked(entry.path()) || is_version_control() {
            return false;
        }
        let fine = !entry.file_type().is_some_and(|t| t.is_dir())
            || rules_are_readable(entry.path(), names);
        if !fine {
            trap(entry.path());
        }
        fine
    });
}
