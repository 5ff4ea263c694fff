//! Changes since a revision: by component, the files that depend on them, and risks.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::{
    changes::{ChangeCommit, ChangeImpact, ChangeRisk, ComponentChanges, ExploreChanges},
    explore::{Component, Entrypoint},
    git::{GitChanges, GitFileChange},
};

use super::{facts::Facts, manifests, order, paths, planner::GRAPH_FILES};

/// Most changed files whose dependents are requested.
const MAX_IMPACTS: usize = 30;
/// Most changed files of a summary.
const MAX_FILES: usize = 200;
/// Most commits of a summary.
const MAX_SUBJECTS: usize = 100;
/// Most dependents that are named for a file.
const MAX_DEPENDENTS: usize = 12;
const MAX_RISKS: usize = 30;
/// Fewest files that import a central one.
const CENTRAL: u64 = 10;
/// Name of the files at the top that belong to no component.
const OTHER: &str = "other files";
/// Levels of the folder that stands for files in no component.
const FOLDER_LEVELS: usize = 2;

/// Names of files that define what a package or module offers to others.
const PUBLIC_ROOTS: &[&str] =
    &["lib.rs", "__init__.py", "index.ts", "index.js", "index.tsx", "index.mjs", "doc.go"];

/// Kinds of risks, the most urgent first.
const KINDS: &[&str] = &[
    "conflict",
    "entrypoint",
    "public_root",
    "central",
    "manifest",
    "deleted",
    "renamed",
    "workflow",
];

/// Returns the changed files whose dependents are worth a request, the most imported first.
pub fn files_with_dependents(facts: &Facts) -> Vec<&str> {
    let Some(changes) = facts.changes.as_ref().filter(|_| facts.has_graph) else { return vec![] };
    let dependents: BTreeMap<&str, u32> =
        facts.graph.files.iter().map(|file| (file.path.as_str(), file.dependents)).collect();
    // A graph with the most files that can be requested may lack others.
    let is_cut = facts.graph.files.len() >= GRAPH_FILES as usize;
    let count = |path: &str| match dependents.get(path) {
        Some(count) => *count,
        None => u32::from(is_cut && order::is_source(path) && !paths::secondary(path)),
    };
    let mut files: Vec<(u32, &str)> = changes
        .files
        .iter()
        .filter(|file| file.status != "deleted")
        .map(|file| (count(&file.path), file.path.as_str()))
        .filter(|(count, _)| *count > 0)
        .collect();
    files.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    files.into_iter().take(MAX_IMPACTS).map(|(_, path)| path).collect()
}

/// The parts of the repository that files belong to.
pub struct Owners<'a> {
    components: Vec<&'a Component>,
    secondary: BTreeSet<&'a str>,
}

/// The part of the repository that a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part<'a> {
    rank: PartRank,
    path: &'a str,
    name: &'a str,
}

/// Order of the parts in a report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PartRank {
    Component,
    /// A folder whose files belong to no component.
    Folder,
    Secondary,
    Top,
}

impl<'a> Owners<'a> {
    pub fn new(components: &'a [Component], secondary: &'a [Component]) -> Self {
        let mut all: Vec<&Component> = components.iter().chain(secondary).collect();
        // The innermost component owns a file.
        all.sort_by_key(|c| std::cmp::Reverse(c.path.trim_matches(['.', '/']).len()));
        Self { components: all, secondary: secondary.iter().map(|c| c.path.as_str()).collect() }
    }

    /// Returns the part of a file: its component, else its folder.
    fn part<'b>(&self, path: &'b str) -> Part<'b>
    where
        'a: 'b,
    {
        if let Some(owner) = self.of(path) {
            let is_secondary = self.secondary.contains(owner.path.as_str());
            let rank = if is_secondary { PartRank::Secondary } else { PartRank::Component };
            return Part { rank, path: &owner.path, name: name(owner) };
        }
        let ends = path.match_indices('/').map(|(at, _)| at).take(FOLDER_LEVELS);
        match ends.last() {
            Some(end) => Part { rank: PartRank::Folder, path: &path[..end], name: &path[..end] },
            None => Part { rank: PartRank::Top, path: "", name: OTHER },
        }
    }

    fn of(&self, path: &str) -> Option<&'a Component> {
        let contains = |component: &&&Component| {
            let folder = component.path.trim_end_matches('/');
            matches!(folder, "" | ".")
                || path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.components.iter().find(contains).copied()
    }
}

fn name(component: &Component) -> &str {
    if component.name.is_empty() { &component.path } else { &component.name }
}

/// Returns the changes since a revision, if they are known.
pub fn report(
    facts: &Facts,
    since: &str,
    owners: &Owners<'_>,
    entries: &[Entrypoint],
) -> Option<ExploreChanges> {
    let changes = facts.changes.as_ref()?;
    let impact = impact(facts, owners);
    let mut files = changes.files.clone();
    files.sort_by(|a, b| lines(b).cmp(&lines(a)).then(a.path.cmp(&b.path)));
    let sum =
        |of: fn(&GitFileChange) -> u64| changes.files.iter().map(of).fold(0, u64::saturating_add);
    let subject = |commit: &cairn_protocol::git::GitCommit| ChangeCommit {
        id: commit.id.clone(),
        subject: commit.subject.clone(),
    };
    files.truncate(MAX_FILES);
    Some(ExploreChanges {
        since: since.to_owned(),
        base: changes.base.clone(),
        commits: changes.ahead,
        behind: changes.behind,
        files: changes.files.len() as u64,
        added_lines: sum(|file| file.added_lines),
        deleted_lines: sum(|file| file.deleted_lines),
        components: by_component(changes, owners),
        changed_files: files,
        subjects: changes.commits.iter().take(MAX_SUBJECTS).map(subject).collect(),
        risks: risks(changes, owners, entries, &impact),
        impact,
        truncated: changes.truncated,
    })
}

fn lines(file: &GitFileChange) -> u64 {
    file.added_lines.saturating_add(file.deleted_lines)
}

fn by_component(changes: &GitChanges, owners: &Owners<'_>) -> Vec<ComponentChanges> {
    let mut all: BTreeMap<Part<'_>, ComponentChanges> = BTreeMap::new();
    for file in &changes.files {
        let part = owners.part(&file.path);
        let entry = all.entry(part).or_insert_with(|| ComponentChanges {
            name: part.name.to_owned(),
            path: part.path.to_owned(),
            ..ComponentChanges::default()
        });
        let count = match file.status.as_str() {
            "added" => &mut entry.added,
            "deleted" => &mut entry.deleted,
            "renamed" => &mut entry.renamed,
            _ => &mut entry.modified,
        };
        *count += 1;
        entry.added_lines = entry.added_lines.saturating_add(file.added_lines);
        entry.deleted_lines = entry.deleted_lines.saturating_add(file.deleted_lines);
    }
    for commit in &changes.commits {
        let touched: BTreeSet<Part<'_>> =
            commit.paths.iter().map(|path| owners.part(path)).collect();
        for part in touched {
            // A change that a later commit undid leaves no changed file.
            if let Some(entry) = all.get_mut(&part) {
                entry.commits += 1;
            }
        }
    }
    let mut all: Vec<(PartRank, ComponentChanges)> =
        all.into_iter().map(|(part, changes)| (part.rank, changes)).collect();
    let lines = |c: &ComponentChanges| c.added_lines.saturating_add(c.deleted_lines);
    all.sort_by(|(a_rank, a), (b_rank, b)| {
        a_rank.cmp(b_rank).then(lines(b).cmp(&lines(a))).then(a.path.cmp(&b.path))
    });
    all.into_iter().map(|(_, changes)| changes).collect()
}

fn impact(facts: &Facts, owners: &Owners<'_>) -> Vec<ChangeImpact> {
    let mut all: Vec<ChangeImpact> = facts
        .impacts
        .iter()
        .filter(|(_, answer)| !answer.items.is_empty())
        .map(|(path, answer)| {
            let mut components: BTreeMap<&str, usize> = BTreeMap::new();
            for item in &answer.items {
                *components.entry(owners.part(&item.path).name).or_default() += 1;
            }
            let mut components: Vec<(&str, usize)> = components.into_iter().collect();
            components.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            ChangeImpact {
                path: path.clone(),
                direct: answer.items.iter().filter(|item| item.steps == 1).count() as u64,
                total: answer.items.len() as u64,
                truncated: answer.truncated,
                dependents: answer
                    .items
                    .iter()
                    .take(MAX_DEPENDENTS)
                    .map(|item| item.path.clone())
                    .collect(),
                components: components.into_iter().map(|(name, _)| name.to_owned()).collect(),
            }
        })
        .collect();
    all.sort_by(|a, b| (b.direct, b.total).cmp(&(a.direct, a.total)).then(a.path.cmp(&b.path)));
    all
}

fn risks(
    changes: &GitChanges,
    owners: &Owners<'_>,
    entries: &[Entrypoint],
    impact: &[ChangeImpact],
) -> Vec<ChangeRisk> {
    let users = |path: &str| impact.iter().find(|one| one.path == path).map(|one| one.direct);
    let rank = |risk: &ChangeRisk| {
        let kind = KINDS.iter().position(|kind| *kind == risk.kind);
        (kind, std::cmp::Reverse(users(&risk.path)))
    };
    let mut all: Vec<ChangeRisk> = changes
        .files
        .iter()
        .filter_map(|file| {
            let reasons = reasons(file, owners, entries, impact);
            let kind = reasons.first()?.0.to_owned();
            let texts: Vec<String> = reasons.into_iter().map(|(_, text)| text).collect();
            Some(ChangeRisk { path: file.path.clone(), kind, reason: texts.join("; ") })
        })
        .collect();
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.path.cmp(&b.path)));
    all.truncate(MAX_RISKS);
    all
}

/// Returns the kinds of risk of a file with their reasons, the most urgent first.
fn reasons(
    file: &GitFileChange,
    owners: &Owners<'_>,
    entries: &[Entrypoint],
    impact: &[ChangeImpact],
) -> Vec<(&'static str, String)> {
    let path = file.path.as_str();
    let mut all = Vec::new();
    if file.status == "conflicted" {
        all.push(("conflict", "has unresolved conflicts".to_owned()));
    }
    let is_product = !paths::secondary(path);
    if let Some(entry) = entries.iter().find(|entry| entry.path == path && is_product) {
        let new = if file.status == "added" { "new " } else { "" };
        all.push(match entry.kind.as_str() {
            "library" => ("public_root", format!("{new}public root: {}", entry.reason)),
            _ => ("entrypoint", format!("{new}entrypoint: {}", entry.reason)),
        });
    } else if is_product && let Some(component) = public_root_of(path, owners) {
        all.push(("public_root", format!("public root of {}", name(component))));
    }
    let users = impact.iter().find(|one| one.path == path && one.direct >= CENTRAL);
    if let Some(users) = users {
        let more = if users.truncated { "more than " } else { "" };
        let text = format!("{more}{} files depend on it, {} directly", users.total, users.direct);
        all.push(("central", text));
    }
    if is_product && manifests::is_manifest(path) && !PUBLIC_ROOTS.contains(&paths::file_name(path))
    {
        let has_entry = all.iter().any(|(kind, _)| *kind == "entrypoint" || *kind == "public_root");
        if !has_entry {
            all.push(("manifest", "manifest: dependencies, targets or build steps".to_owned()));
        }
    }
    let is_code = is_product && order::is_source(path);
    match file.status.as_str() {
        "deleted" if is_code => all.push(("deleted", "deleted source file".to_owned())),
        "renamed" if is_code => {
            let from = file.previous_path.as_deref().unwrap_or("another path");
            all.push(("renamed", format!("renamed from {from}")));
        }
        _ => {}
    }
    if path.starts_with(".github/workflows/") || path == ".gitlab-ci.yml" {
        all.push(("workflow", "workflow of the continuous integration".to_owned()));
    }
    all
}

/// Returns the component whose interface a file defines.
fn public_root_of<'a>(path: &str, owners: &Owners<'a>) -> Option<&'a Component> {
    let owner = owners.of(path).filter(|_| PUBLIC_ROOTS.contains(&paths::file_name(path)))?;
    let folder = paths::folder(path);
    let top = owner.path.trim_end_matches('/');
    let inner = folder.strip_prefix(top).map(|rest| rest.trim_start_matches('/'));
    matches!(inner, Some("" | "src")).then_some(owner)
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
