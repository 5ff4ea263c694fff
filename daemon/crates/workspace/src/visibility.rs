//! Visibility of the paths of a root: the rules about reading, stored where every read passes.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use cairn_protocol::{content::EntryKind, id::RootId};

use crate::{PathPattern, ResolvedPath, Root, WorkspaceError, linked_files::HiddenFiles};

/// Most entries of a root in which hidden ones are looked for.
const MAX_SEARCHED: usize = 200_000;
/// Most paths that hidden patterns may name in one root.
const MAX_MASKED: usize = 4096;

/// Verdict of a rule about reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The path may be shown.
    Visible,
    /// Only a call that the user approved shows it.
    NeedsApproval,
    /// The path is never shown.
    Hidden,
}

/// One rule about reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRule {
    pub pattern: PathPattern,
    /// Verdict for those paths.
    pub reading: Reading,
    /// The rule as its author wrote it, for messages.
    pub rule: String,
}

/// Rules about reading in their order: the first that covers a path decides, and a path without a
/// rule is shown.
pub type ReadRules = Arc<Vec<ReadRule>>;

/// The rules of all roots.
#[derive(Debug, Clone, Default)]
pub struct Visibility {
    /// For every root without rules of its own.
    pub base: ReadRules,
    /// Rules of single roots, which replace the base rules.
    pub by_root: HashMap<RootId, ReadRules>,
}

impl Visibility {
    pub(crate) fn of(&self, id: &RootId) -> ReadRules {
        Arc::clone(self.by_root.get(id).unwrap_or(&self.base))
    }
}

/// The rules of one root with the symlinks that they name resolved, for the duration of one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    top: PathBuf,
    rules: ReadRules,
    /// For each rule, the target of its path if that is a different one.
    real: Vec<Option<PathPattern>>,
    hides: bool,
    files: HiddenFiles,
}

impl View {
    pub(crate) fn new(root: &Root, rules: ReadRules) -> Self {
        let hides = rules.iter().any(|r| r.reading != Reading::Visible);
        let real =
            if hides { rules.iter().map(|r| r.pattern.leads_to(root)).collect() } else { vec![] };
        Self { top: root.path.clone(), rules, real, hides, files: HiddenFiles::default() }
    }

    /// Returns true if nothing is hidden.
    pub fn is_complete(&self) -> bool {
        !self.hides
    }

    /// Returns true if the file at `rel` (resolved, relative to the root) may be shown to a caller
    /// that did not request that particular file.
    pub fn shows(&self, rel: &str) -> bool {
        self.hidden_by(rel).is_none()
    }

    /// Returns the rule that hides it.
    fn hidden_by(&self, rel: &str) -> Option<&ReadRule> {
        if !self.hides {
            return None;
        }
        let covers = |(at, rule): &(usize, &ReadRule)| {
            let real = self.real.get(*at).and_then(Option::as_ref);
            rule.pattern.covers_in(&self.top, rel) || real.is_some_and(|real| real.covers(rel))
        };
        let (_, rule) = self.rules.iter().enumerate().find(covers)?;
        (rule.reading != Reading::Visible).then_some(rule)
    }

    /// Returns the existing hidden paths, outermost first, for mounts over them. Globs are matched
    /// against the tree.
    pub fn masked(&self, root: &Root) -> Masked {
        let mut masked = Masked::default();
        if !self.hides {
            return masked;
        }
        let mut globs = false;
        for (at, rule) in
            self.rules.iter().enumerate().filter(|(_, r)| r.reading != Reading::Visible)
        {
            masked
                .paths
                .extend(self.real.get(at).and_then(Option::as_ref).and_then(PathPattern::prefix));
            match rule.pattern.prefix_in(&self.top) {
                Some(rel) => masked.paths.push(rel),
                None => globs |= rule.pattern.prefix().is_none(),
            }
        }
        // The target of a link is hidden by its own path.
        masked.paths.retain(|rel| {
            !rel.is_empty() && root.stat(rel).is_ok_and(|s| s.kind != EntryKind::Symlink)
        });
        if globs {
            self.search(root, "", &mut masked, &mut 0);
        }
        masked.paths.sort();
        masked.paths.dedup();
        masked
    }

    fn search(&self, root: &Root, folder: &str, masked: &mut Masked, seen: &mut usize) {
        for (name, is_dir) in root.names(folder) {
            *seen += 1;
            if *seen > MAX_SEARCHED || masked.paths.len() > MAX_MASKED {
                masked.cut = true;
                return;
            }
            let rel = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if !self.shows(&rel) {
                masked.paths.push(rel);
            } else if is_dir {
                self.search(root, &rel, masked, seen);
            }
        }
    }

    /// Rejects a path that may not be shown, and a further name of such a file. `approved` is true
    /// if the user approved this call.
    ///
    /// # Errors
    /// `path_blocked` with the rule.
    pub fn require(&self, path: &ResolvedPath, approved: bool) -> Result<(), WorkspaceError> {
        if self.is_complete() {
            return Ok(());
        }
        let refused = |rule: &&ReadRule| rule.reading == Reading::Hidden || !approved;
        let rule = path.spellings().filter_map(|spelling| self.hidden_by(spelling)).find(refused);
        let why = match rule {
            Some(rule) => rule.rule.as_str(),
            None if self.is_other_name_of_hidden(path.root(), path.real()) => {
                "it is another name of a hidden file"
            }
            None => return Ok(()),
        };
        Err(WorkspaceError::Hidden { path: path.requested().to_owned(), rule: why.to_owned() })
    }

    /// Returns true if a file that has several names has a hidden one. If the search takes too
    /// long, it counts as hidden.
    pub fn is_other_name_of_hidden(&self, root: &Root, real: &str) -> bool {
        if self.is_complete() {
            return false;
        }
        let Some(file) = root.linked(real) else { return false };
        let mut is_cut = false;
        let paths = || {
            let masked = self.masked(root);
            is_cut = masked.cut;
            masked.paths
        };
        self.files.contains(root, file, paths) || is_cut
    }
}

#[derive(Debug, Clone, Default)]
pub struct Masked {
    /// Paths relative to the root.
    pub paths: Vec<String>,
    /// True if there were too many to find all.
    pub cut: bool,
}
