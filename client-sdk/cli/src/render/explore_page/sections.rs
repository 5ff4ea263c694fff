//! Sections that are lists. Each function returns an empty text if it has nothing to list.

use std::fmt::Write as _;

use cairn_explore_report::facts::{self, FileRow, count, position};
use cairn_protocol::explore::{ExploreDetails, ExploreSummary};

use super::markup::{code, escape, path, text};

/// Languages with a colour of their own; the others share one.
const COLOURS: usize = 7;

/// Renders entries as a list; empty without entries.
pub fn rows(entries: impl Iterator<Item = String>) -> String {
    let entries: String = entries.map(|entry| format!("<li>{entry}</li>\n")).collect();
    if entries.is_empty() { entries } else { format!("<ul class=\"rows\">\n{entries}</ul>\n") }
}

/// Renders a remark below an entry; empty without text.
pub fn remark(remark: &str) -> String {
    match text(remark) {
        remark if remark.is_empty() => remark,
        remark => format!("<span class=\"faint\">{remark}</span>"),
    }
}

/// A bar of shares with a legend.
pub fn languages(summary: &ExploreSummary) -> String {
    let all = facts::languages(summary);
    if all.is_empty() {
        return String::new();
    }
    let own = if all.len() == COLOURS + 1 { all.len() } else { all.len().min(COLOURS) };
    let mut parts: Vec<(String, u64, String)> =
        all[..own].iter().map(|l| (text(l.name), l.permille, l.percent())).collect();
    if all.len() > own {
        let rest = all[own..].iter().map(|language| language.permille).sum::<u64>();
        let percent = format!("{}.{} %", rest / 10, rest % 10);
        parts.push((format!("{} others", all.len() - own), rest, percent));
    }
    let mut bar = String::new();
    let mut legend = String::new();
    let mut from = 0;
    for (at, (name, share, percent)) in parts.iter().enumerate() {
        // A gap separates neighbours by more than their colours.
        let width = share.saturating_sub(2).max(u64::from(*share > 0));
        let _infallible = write!(
            bar,
            "<rect class=\"l{at}\" x=\"{from}\" y=\"0\" width=\"{width}\" height=\"12\"/>"
        );
        let _infallible = writeln!(
            legend,
            "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"l{at}\" \
             width=\"10\" height=\"10\" rx=\"2\"/></svg>{name} \
             <span class=\"faint\">{percent}</span></li>"
        );
        from += share;
    }
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 1000 12\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">{bar}</svg>\n<ul class=\"legend\">\n{legend}</ul>\n"
    )
}

pub fn findings(details: &ExploreDetails) -> String {
    let one = |finding: &cairn_protocol::explore::Finding| {
        let found = match rows(finding.places.iter().map(|found| path(found))) {
            found if found.is_empty() => "<p>Nothing was found.</p>\n".to_owned(),
            found => found,
        };
        format!("<h3>{}</h3>\n{found}", text(&finding.goal))
    };
    details.findings.iter().map(one).collect()
}

pub fn files(all: &[FileRow<'_>]) -> String {
    rows(all.iter().map(|row| format!("{}{}", path(&row.position()), remark(&row.reason))))
}

pub fn commands(details: &ExploreDetails) -> String {
    let all = facts::commands(details);
    let mut before = "";
    let entries: Vec<String> = all
        .iter()
        .map(|row| {
            let kind = if before == row.kind { "" } else { row.kind };
            before = row.kind;
            let source = row.source.map(|source| format!("stated in {source}")).unwrap_or_default();
            format!(
                "<div class=\"command\"><span>{kind}</span>{}{}</div>",
                code(row.command),
                remark(&source)
            )
        })
        .collect();
    rows(entries.into_iter())
}

/// Overview by a model, each statement with the lines that bear it out.
pub fn overview(details: &ExploreDetails) -> String {
    let Some(overview) = &details.overview else { return String::new() };
    let mut out = rows(overview.statements.iter().map(|statement| {
        let lines = statement.citations.iter().map(|c| path(&position(&c.path, Some(c.line))));
        let lines = lines.collect::<Vec<_>>().join(", ");
        format!("{}<br><span class=\"faint\">{lines}</span>", text(&statement.text))
    }));
    if let Some(note) = facts::dropped(overview) {
        let _infallible = writeln!(out, "<p class=\"faint\">{note}</p>");
    }
    out
}

/// Steps of each flow, with links to their components.
pub fn flows(details: &ExploreDetails) -> String {
    let positions = facts::positions(&details.components);
    let mut out = String::new();
    for flow in facts::flows(details) {
        let _infallible =
            write!(out, "<p>From {}</p>\n<ol class=\"flow\">\n", path(&flow.entrypoint));
        for step in &flow.steps {
            let component = step.component.as_deref().map_or_else(String::new, |component| {
                positions.get(component).map_or_else(
                    || format!(" {}", path(component)),
                    |at| {
                        let name = text(facts::name(&details.components[*at]));
                        format!(" <a href=\"#c-{at}\">{name}</a>")
                    },
                )
            });
            let _infallible = writeln!(
                out,
                "<li><strong>{}</strong>{component}<br>{}</li>",
                text(&step.name),
                path(&position(&step.path, Some(step.line)))
            );
        }
        out.push_str("</ol>\n");
    }
    out
}

pub fn conventions(details: &ExploreDetails) -> String {
    rows(details.conventions.iter().map(|convention| {
        let source = path(&convention.source);
        format!("<span>{}</span><span class=\"faint\">{source}</span>", text(&convention.text))
    }))
}

pub fn concepts(details: &ExploreDetails) -> String {
    rows(details.concepts.iter().map(|concept| {
        let used = match concept.files {
            0 => String::new(),
            files => format!("used by {}", count(files.into(), "file")),
        };
        format!(
            "<div><strong>{}</strong> <span class=\"tag\">{}</span></div>{}{}",
            text(&concept.name),
            text(&concept.kind),
            path(&position(&concept.path, Some(concept.line))),
            remark(&used)
        )
    }))
}

pub fn hotspots(details: &ExploreDetails) -> String {
    rows(details.hotspots.iter().map(|spot| {
        let subjects: String =
            spot.subjects.iter().map(|subject| format!("<li>{}</li>", text(subject))).collect();
        let subjects = match subjects.is_empty() {
            true => subjects,
            false => format!("<ul class=\"subjects\">{subjects}</ul>"),
        };
        let commits = remark(&count(spot.commits.into(), "commit"));
        format!("{}{commits}{subjects}", path(&spot.path))
    }))
}

pub fn questions(summary: &ExploreSummary) -> String {
    rows(summary.followups.iter().map(|question| format!("<span>{}</span>", text(question))))
}

pub fn packages(details: &ExploreDetails) -> String {
    rows(details.projects.iter().map(|project| {
        format!(
            "<div><strong>{}</strong> <span class=\"tag\">{}</span></div>{}{}",
            text(&project.name),
            text(&project.kind),
            path(&project.manifest),
            remark(project.description.as_deref().unwrap_or_default())
        )
    }))
}

pub fn layout(details: &ExploreDetails) -> String {
    rows(details.layout.iter().map(|folder| {
        let role = facts::single_line(&folder.role);
        let files = count(folder.files, "file");
        let about = if role.is_empty() { files } else { format!("{files} · {role}") };
        format!("{}{}", path(&folder.path), remark(&about))
    }))
}

pub fn commits(details: &ExploreDetails) -> String {
    let Some(git) = &details.git else { return String::new() };
    rows(git.recent.iter().map(|subject| escape(&facts::single_line(subject))))
}
