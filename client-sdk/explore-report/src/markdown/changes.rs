//! Sections about the changes since a revision.

use cairn_protocol::changes::{
    ChangeCommit, ChangeImpact, ChangeRisk, ComponentChanges, ExploreChanges,
};

use super::{
    Document,
    escape::{code, text},
    explained,
};
use crate::facts::{self, number};

/// Most entries of each list.
pub struct Limits {
    components: usize,
    risks: usize,
    impact: usize,
    commits: usize,
}

pub const DOCUMENT: Limits = Limits { components: 40, risks: 30, impact: 20, commits: 50 };
pub const PAGE: Limits = Limits { components: 12, risks: 10, impact: 8, commits: 10 };

pub fn sections(out: &mut Document, changes: &ExploreChanges, limits: &Limits) {
    let since = text(&changes.since);
    out.title(&format!("Changes since {since}"));
    let base = code(facts::short_hash(&changes.base));
    out.paragraph(&format!("Compared with commit {base}: {}", facts::change_totals(changes)));
    for note in facts::change_notes(changes) {
        out.paragraph(&note);
    }
    let listed = &changes.components[..changes.components.len().min(limits.components)];
    let rows: Vec<Vec<String>> = listed.iter().map(component).collect();
    out.table(&["Component", "Path", "Commits", "Files", "Lines"], &rows);
    let risk = |risk: &ChangeRisk| explained(&risk.path, &risk.reason);
    out.bounded("Risky changes", limits.risks, changes.risks.iter().map(risk));
    let impact = |impact: &ChangeImpact| explained(&impact.path, &facts::impact(impact));
    out.bounded("Affected by the changes", limits.impact, changes.impact.iter().map(impact));
    let commit = |commit: &ChangeCommit| {
        format!("{} {}", code(facts::short_hash(&commit.id)), text(&commit.subject))
    };
    let title = format!("Commits since {since}");
    let rest = changes.commits.saturating_sub(changes.subjects.len().min(limits.commits) as u64);
    let rest = (rest > 0).then(|| format!("… {} more", number(rest)));
    out.list(&title, changes.subjects.iter().take(limits.commits).map(commit).chain(rest));
}

fn component(component: &ComponentChanges) -> Vec<String> {
    vec![
        text(&component.name),
        code(&component.path),
        number(component.commits),
        facts::changed_files(component),
        facts::line_change(component.added_lines, component.deleted_lines),
    ]
}
