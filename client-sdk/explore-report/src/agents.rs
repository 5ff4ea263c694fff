//! A draft of `AGENTS.md` from the summary of an explore: facts of the repository alone.

use cairn_protocol::explore::{Component, ExploreDetails, ExploreSummary};

use crate::{
    facts::{self, position},
    markdown::{
        Document, command,
        escape::{code, text},
        explained, rule,
    },
};

/// Maximum entries of a list: agents read the file in every session.
const ENTRIES: usize = 12;

/// Comment below the title.
pub const NOTE: &str = "<!-- A draft by cairn explore --agents-md; review it. -->";

/// Renders the draft. The same summary has the same draft.
pub fn draft(summary: &ExploreSummary) -> String {
    let details = &summary.details;
    let mut out = Document::new(&summary.repo_name);
    if let Some(purpose) = facts::purpose(details) {
        out.paragraph(&text(&purpose));
    }
    out.paragraph(NOTE);
    out.list("Commands", facts::commands(details).iter().map(command));
    layout(&mut out, details);
    out.list("Conventions", details.conventions.iter().map(rule));
    locations(&mut out, summary);
    out.text
}

/// Components and secondary folders, else the folders.
fn layout(out: &mut Document, details: &ExploreDetails) {
    if details.components.is_empty() {
        let folders = details.layout.iter().take(ENTRIES);
        out.list("Layout", folders.map(|l| explained(&l.path, &facts::single_line(&l.role))));
        return;
    }
    let component = |c: &Component| {
        let role = facts::single_line(&c.role);
        let about = if role.is_empty() { facts::single_line(&c.kind) } else { role };
        explained(&c.path, &about)
    };
    let all = details.components.iter().chain(&details.secondary);
    out.list("Layout", all.map(component));
}

fn locations(out: &mut Document, summary: &ExploreSummary) {
    let starts = facts::entrypoints(summary);
    let starts = starts.iter().take(ENTRIES).map(|row| explained(&row.position(), &row.reason));
    let concepts = summary.details.concepts.iter().take(ENTRIES).map(|concept| {
        let at = code(&position(&concept.path, Some(concept.line)));
        format!("{} ({}): {at}", code(&concept.name), text(&concept.kind))
    });
    let files = facts::top_files(summary);
    let files = files.iter().take(ENTRIES).map(|row| explained(row.path, &row.reason));
    out.list("Where execution starts", starts);
    out.list("Where things are defined", concepts);
    out.list("Files that most others depend on", files);
}
