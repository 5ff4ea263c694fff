//! Line counts by language, computed by the tokei library.

use std::{
    collections::{BTreeMap, HashMap},
    fs::Metadata,
    hash::{DefaultHasher, Hasher as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ignore::WalkState;
use tokei::{Config, LanguageType};

use crate::{
    guard::{IGNORE_FILES, rules_are_readable},
    root::Root,
    walk::{exclusions, pass_traps},
};

/// Largest file that is counted, in bytes: tokei reads a file completely.
pub const MAX_COUNTED_BYTES: u64 = 64 * 1024 * 1024;

/// Most files whose counts are cached.
const MAX_CACHED: usize = 200_000;

/// The counts of a root's files: reading them is most of the cost, and few change. A path and the
/// size, time and inode of a file are stored as hashes.
#[derive(Debug, Default)]
pub(crate) struct LineCounts(Mutex<HashMap<u64, (u64, Counted)>>);

/// A language with the lines of one file; `None` for a file that is not counted.
type Counted = Option<(LanguageType, u64)>;

impl LineCounts {
    fn files(&self) -> MutexGuard<'_, HashMap<u64, (u64, Counted)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The count of a file, read only if the file has changed.
    fn of(&self, path: &Path, metadata: &Metadata, config: &Config) -> Counted {
        let key = hash(&path);
        let (size, inode) = (metadata.size(), metadata.ino());
        let stamp = hash(&(size, inode, metadata.mtime(), metadata.mtime_nsec()));
        if let Some((known, counted)) = self.files().get(&key)
            && *known == stamp
        {
            return *counted;
        }
        let counted = count(path, config);
        let mut files = self.files();
        if files.len() >= MAX_CACHED {
            files.clear();
        }
        files.insert(key, (stamp, counted));
        counted
    }
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

const NAMES: [&str; 4] = [IGNORE_FILES[0], IGNORE_FILES[1], IGNORE_FILES[2], ".tokeignore"];

/// Returns lines (blanks + code + comments) by language, named as tokei names them: the counts of
/// the tokei library in its default walk of the root. Its own walk follows ignore files to any
/// target, so this one walks by the same rules and leaves out blocked paths, folders whose ignore
/// files would never end, and files over [`MAX_COUNTED_BYTES`]. `exclude` adds globs to leave out,
/// as in a `.gitignore` at the root; none for tokei's default. With `parts`, only files that are
/// one of them or lie beneath one are counted.
///
/// Reads every source file that has changed since the last count, with as many threads as there are
/// processors (at most 12), and cannot be cancelled: call it where blocking is allowed.
pub fn count_languages(
    root: &Root,
    exclude: &[String],
    parts: Option<&[String]>,
) -> BTreeMap<String, u64> {
    let parts: Option<Vec<PathBuf>> =
        parts.map(|all| all.iter().map(|part| root.path.join(part)).collect());
    let counts: Mutex<BTreeMap<LanguageType, u64>> = Mutex::default();
    let is_closed = root.closed();
    if rules_are_readable(&root.path, &NAMES) {
        let mut walk = ignore::WalkBuilder::new(&root.path);
        walk.add_custom_ignore_filename(".tokeignore")
            .threads(0)
            .overrides(exclusions(root, exclude));
        pass_traps(&mut walk, root, &NAMES, |_| {});
        let config = Config::default();
        walk.build_parallel().run(|| {
            Box::new(|entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                let (within, on_the_way) = match &parts {
                    None => (true, true),
                    Some(parts) => (
                        parts.iter().any(|part| entry.path().starts_with(part)),
                        parts.iter().any(|part| part.starts_with(entry.path())),
                    ),
                };
                if !within {
                    return if on_the_way { WalkState::Continue } else { WalkState::Skip };
                }
                if is_closed(entry.path()) {
                    return WalkState::Skip;
                }
                let metadata = || entry.metadata().ok().filter(|m| m.len() <= MAX_COUNTED_BYTES);
                if entry.file_type().is_some_and(|t| t.is_file())
                    && let Some(metadata) = metadata()
                    && let Some((language, lines)) =
                        root.line_counts().of(entry.path(), &metadata, &config)
                {
                    *counts
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .entry(language)
                        .or_default() += lines;
                }
                WalkState::Continue
            })
        });
    }
    let counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    counts.into_iter().map(|(language, lines)| (language.to_string(), lines)).collect()
}

fn count(path: &Path, config: &Config) -> Option<(LanguageType, u64)> {
    let language = LanguageType::from_path(path, config)?;
    let lines =
        language.parse(path.to_path_buf(), config).map_or(0, |report| report.stats.lines() as u64);
    Some((language, lines))
}
