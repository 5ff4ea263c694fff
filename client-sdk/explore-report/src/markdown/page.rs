//! The summary as one page for a model: bounded, without a diagram.

use cairn_protocol::explore::{Component, ExploreDetails, ExploreSummary};

use super::{
    Document, changes, command,
    escape::{code, text},
    explained, rule,
};
use crate::facts::{self, position, single_line};

/// Most bytes of a page, some 3,000 tokens.
pub const MAX_BYTES: usize = 12 * 1024;
/// Most entries of each list.
const COMPONENTS: usize = 16;
const ENTRIES: usize = 10;
const COMMANDS_OF_KIND: usize = 3;
const QUESTIONS: usize = 5;
/// Most locations of a goal.
const LOCATIONS: usize = 5;

/// Renders the page: purpose, changes, goals, components, entrypoints, files to read first, commands,
/// conventions, concepts and open questions.
pub fn page(summary: &ExploreSummary) -> String {
    let details = &summary.details;
    let mut out = Document::new(&summary.repo_name);
    if let Some(purpose) = facts::purpose(details) {
        out.paragraph(&text(&purpose));
    }
    let mut about: Vec<String> = facts::revision(details).iter().map(|at| text(at)).collect();
    let shares = facts::languages(summary);
    let shares = shares.iter().take(6).filter(|share| share.permille > 0);
    about.extend(shares.map(|share| format!("{} {}", text(share.name), share.percent())));
    if !about.is_empty() {
        out.paragraph(&about.join(", "));
    }
    if let Some(changes) = &details.changes {
        changes::sections(&mut out, changes, &changes::PAGE);
    }
    for finding in &details.findings {
        let title = format!("Goal: {}", text(&finding.goal));
        if finding.places.is_empty() {
            out.list(&title, std::iter::once("nothing was found".to_owned()));
        }
        out.bounded(&title, LOCATIONS, finding.places.iter().map(|found| code(found)));
    }
    components(&mut out, details);
    let starts = facts::entrypoints(summary);
    let row = |row: &facts::FileRow<'_>| explained(&row.position(), &row.reason);
    out.bounded("Where it starts", ENTRIES, starts.iter().map(row));
    out.bounded("Read first", ENTRIES, facts::top_files(summary).iter().map(row));
    commands(&mut out, details);
    if let Some(flow) = facts::flows(details).next() {
        let step = |step: &cairn_protocol::explore::FlowStep| {
            explained(&position(&step.path, Some(step.line)), &step.name)
        };
        let title = format!("Flow from {}", text(&flow.entrypoint));
        out.bounded(&title, ENTRIES, flow.steps.iter().map(step));
    }
    out.bounded("Conventions", ENTRIES, details.conventions.iter().map(rule));
    let concept = |concept: &cairn_protocol::explore::Concept| {
        let at = code(&position(&concept.path, Some(concept.line)));
        format!("{} ({}): {at}", code(&concept.name), text(&concept.kind))
    };
    out.bounded("Concepts", ENTRIES, details.concepts.iter().map(concept));
    let questions = summary.followups.iter().map(|question| text(question));
    out.bounded("Open questions", QUESTIONS, questions);
    truncated(out.text)
}

/// Components with their dependencies, else the folders.
fn components(out: &mut Document, details: &ExploreDetails) {
    let all = &details.components;
    if all.is_empty() {
        let folders = details.layout.iter();
        out.bounded("Folders", ENTRIES, folders.map(|l| explained(&l.path, &single_line(&l.role))));
        return;
    }
    let names = facts::short_names(all);
    let component = |component: &Component| {
        let role = single_line(&component.role);
        let mut about = if role.is_empty() { single_line(&component.kind) } else { role };
        let dependencies = facts::named_dependencies(all, &names, component);
        if !dependencies.is_empty() {
            let listed = dependencies.iter().take(6).copied().collect::<Vec<_>>().join(", ");
            let rest = match dependencies.len().saturating_sub(6) {
                0 => String::new(),
                rest => format!(", +{rest}"),
            };
            about = format!("{about} → {listed}{rest}");
        }
        explained(&component.path, &about)
    };
    out.bounded("Components and what they depend on", COMPONENTS, all.iter().map(component));
}

/// The first commands of each kind.
fn commands(out: &mut Document, details: &ExploreDetails) {
    let all = facts::commands(details);
    let listed: Vec<String> = all
        .chunk_by(|a, b| a.kind == b.kind)
        .flat_map(|of_kind| of_kind.iter().take(COMMANDS_OF_KIND))
        .map(command)
        .collect();
    out.list("Commands", listed.into_iter());
}

/// Cuts a page of unusually long texts at the end of a line.
fn truncated(mut page: String) -> String {
    if page.len() <= MAX_BYTES {
        return page;
    }
    let mut end = MAX_BYTES;
    while !page.is_char_boundary(end) {
        end -= 1;
    }
    page.truncate(page[..end].rfind('\n').map_or(end, |at| at + 1));
    page.push_str("\n… truncated\n");
    page
}
