//! The section about the changes since a revision.

use cairn_explore_report::facts::{self, count};
use cairn_protocol::{
    changes::{ComponentChanges, ExploreChanges},
    explore::ExploreDetails,
    git::GitFileChange,
};

use super::{
    markup::{path, text},
    sections::{remark, rows},
};

/// Most entries of the lists of files and commits.
const FILES: usize = 60;
const COMMITS: usize = 50;

pub fn changes(details: &ExploreDetails) -> String {
    let Some(changes) = &details.changes else { return String::new() };
    let mut out = format!(
        "<p>Since <code>{}</code>, commit <code>{}</code>: {}</p>\n",
        text(&changes.since),
        text(facts::short_hash(&changes.base)),
        text(&facts::change_totals(changes))
    );
    for note in facts::change_notes(changes) {
        out.push_str(&format!("<p class=\"faint\">{}</p>\n", text(&note)));
    }
    out.push_str(&components(changes));
    let risks = changes.risks.iter().map(|risk| entry(&risk.path, &risk.reason));
    let impact = changes.impact.iter().map(|one| entry(&one.path, &facts::impact(one)));
    let lists =
        [titled("Risky changes", rows(risks)), titled("Affected by the changes", rows(impact))];
    let lists: Vec<String> = lists.into_iter().filter(|list| !list.is_empty()).collect();
    if !lists.is_empty() {
        let lists: String = lists.iter().map(|list| format!("<div>{list}</div>\n")).collect();
        out.push_str(&format!("<div class=\"pair\">\n{lists}</div>\n"));
    }
    out
}

/// The changed files, most lines first.
pub fn files(details: &ExploreDetails) -> String {
    let Some(changes) = &details.changes else { return String::new() };
    let files = changes.changed_files.iter().take(FILES).map(file);
    let rest = changes.files.saturating_sub(changes.changed_files.len().min(FILES) as u64);
    rows(files.chain(more(rest)))
}

/// The commits since the revision, newest first.
pub fn commits(details: &ExploreDetails) -> String {
    let Some(changes) = &details.changes else { return String::new() };
    let commit = |commit: &cairn_protocol::changes::ChangeCommit| {
        let hash = text(facts::short_hash(&commit.id));
        format!("<div><code>{hash}</code> {}</div>", text(&commit.subject))
    };
    let commits = changes.subjects.iter().take(COMMITS).map(commit);
    let rest = changes.commits.saturating_sub(changes.subjects.len().min(COMMITS) as u64);
    rows(commits.chain(more(rest)))
}

fn components(changes: &ExploreChanges) -> String {
    let card = |component: &ComponentChanges| {
        let tag = match component.commits {
            0 => String::new(),
            n => format!(" <span class=\"tag\">{}</span>", count(n, "commit")),
        };
        let lines = facts::line_change(component.added_lines, component.deleted_lines);
        let about = format!("{}, {lines} lines", facts::changed_files(component));
        let folder = match component.path.as_str() {
            "" => String::new(),
            folder if folder == component.name => String::new(),
            folder => format!("<p>{}</p>\n", path(folder)),
        };
        format!(
            "<article class=\"card\">\n<h3>{}{tag}</h3>\n{folder}<p class=\"faint\">{}</p>\n\
             </article>\n",
            text(&component.name),
            text(&about)
        )
    };
    let cards: String = changes.components.iter().map(card).collect();
    if cards.is_empty() { cards } else { format!("<div class=\"cards\">\n{cards}</div>\n") }
}

fn file(file: &GitFileChange) -> String {
    let from = file.previous_path.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
    let lines = facts::line_change(file.added_lines, file.deleted_lines);
    entry(&file.path, &format!("{}{from}, {lines} lines", file.status.replace('_', " ")))
}

fn entry(at: &str, about: &str) -> String {
    format!("{}{}", path(at), remark(about))
}

fn more(rest: u64) -> Option<String> {
    (rest > 0).then(|| format!("<span class=\"faint\">{} more</span>", facts::number(rest)))
}

fn titled(title: &str, list: String) -> String {
    if list.is_empty() { list } else { format!("<h3>{title}</h3>\n{list}") }
}
