//! The summary of an explore, for people.

use std::fmt::Write as _;

use cairn_protocol::{
    explore::{ExploreDetails, ExploreSummary, TopFile},
    id::SessionId,
};
use console::{Style, style};

use crate::render::output::{millis, number, plain};

/// Maximum number of languages.
const LANGUAGES: usize = 8;
/// Maximum entries of a long list.
const ENTRIES: usize = 10;
/// Maximum characters of a description.
const DESCRIPTION: usize = 400;
/// Maximum cells of a bar.
const BAR_CELLS: u64 = 20;

/// Renders the summary, coloured if standard output supports it.
pub fn text(summary: &ExploreSummary, session: &SessionId) -> String {
    let mut out = Page(String::new());
    let details = &summary.details;
    out.line(&format!("{}", style(plain(&summary.repo_name)).bold().cyan()));
    if let Some(description) = &details.description {
        out.line(&truncate(&plain(&description.replace('\n', " ")), DESCRIPTION));
    }
    languages(&mut out, summary);
    projects(&mut out, details);
    entrypoints(&mut out, summary);
    commands(&mut out, details);
    top_files(&mut out, summary);
    layout(&mut out, details);
    findings(&mut out, details);
    git(&mut out, details);
    out.list("Open questions", summary.followups.iter().map(|f| plain(f)));
    let stats = &details.stats;
    let figures = format!(
        "{} files, {} chunks, {} symbols, {} operations in {}; session {session}",
        number(stats.files),
        number(stats.chunks),
        number(stats.symbols),
        number(stats.ops),
        millis(stats.millis),
    );
    out.line("");
    out.line(&style(figures).dim().to_string());
    out.0
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn title(&mut self, text: &str) {
        let _infallible = write!(self.0, "\n{}\n", Style::new().bold().apply_to(text));
    }

    /// Adds a titled list, unless it is empty.
    fn list(&mut self, title: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.collect();
        if items.is_empty() {
            return;
        }
        self.title(title);
        for item in items.iter().take(ENTRIES) {
            self.line(&format!("  {item}"));
        }
        if items.len() > ENTRIES {
            self.line(&style(format!("  … {} more", items.len() - ENTRIES)).dim().to_string());
        }
    }
}

/// Truncates to `limit` characters.
fn truncate(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

fn languages(out: &mut Page, summary: &ExploreSummary) {
    let total: u64 = summary.languages.values().sum();
    if total == 0 {
        return;
    }
    let mut all: Vec<(&String, u64)> =
        summary.languages.iter().map(|(name, lines)| (name, *lines)).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let listed = &all[..all.len().min(LANGUAGES)];
    let width = listed.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let largest = listed.first().map_or(1, |(_, lines)| (*lines).max(1));
    out.title("Languages (lines)");
    for (name, lines) in listed {
        let tenths = lines * 1000 / total;
        let cells = usize::try_from((lines * BAR_CELLS).div_ceil(largest)).unwrap_or_default();
        let bar = style("▪".repeat(cells)).cyan();
        out.line(&format!(
            "  {name:<width$}  {:>10}  {:>3}.{} %  {bar}",
            number(*lines),
            tenths / 10,
            tenths % 10
        ));
    }
    if all.len() > listed.len() {
        let rest: u64 = all[listed.len()..].iter().map(|(_, lines)| lines).sum();
        out.line(
            &style(format!("  … {} more, {} lines", all.len() - listed.len(), number(rest)))
                .dim()
                .to_string(),
        );
    }
}

fn projects(out: &mut Page, details: &ExploreDetails) {
    if details.projects.len() < 2 {
        return;
    }
    out.list(
        "Packages",
        details.projects.iter().map(|p| {
            let what = p
                .description
                .as_deref()
                .map_or_else(String::new, |d| format!(": {}", truncate(&plain(d), 80)));
            format!(
                "{} {}{what}",
                plain(&p.name),
                style(format!("({}, {})", p.kind, plain(&p.manifest))).dim()
            )
        }),
    );
}

fn entrypoints(out: &mut Page, summary: &ExploreSummary) {
    out.list(
        "Entrypoints",
        summary.details.entrypoints.iter().map(|e| {
            let line = e.line.map_or_else(String::new, |l| format!(":{l}"));
            format!("{}{line}  {}", style(plain(&e.path)).green(), style(plain(&e.reason)).dim())
        }),
    );
}

fn commands(out: &mut Page, details: &ExploreDetails) {
    let commands = &details.commands;
    let rows = [("build", &commands.build), ("test", &commands.test), ("run", &commands.run)];
    let lines = rows.iter().flat_map(|(name, all)| {
        all.iter().take(3).enumerate().map(move |(at, command)| {
            let name = if at == 0 { *name } else { "" };
            format!("{name:<6} {}", style(plain(command)).yellow())
        })
    });
    out.list("Commands", lines);
}

fn top_files(out: &mut Page, summary: &ExploreSummary) {
    let file = |f: &TopFile| {
        let symbols: Vec<String> = f.symbols.iter().take(4).map(|s| plain(s)).collect();
        let files = if f.referring_files == 1 { "file" } else { "files" };
        let used =
            format!("used by {} {files}: {}", number(f.referring_files.into()), symbols.join(", "));
        format!(
            "{}  {}",
            style(plain(&f.path)).green(),
            style(used.trim_end_matches([':', ' '])).dim()
        )
    };
    if summary.details.top_files.is_empty() {
        return out.list("Read first", summary.top_files.iter().map(|f| plain(f)));
    }
    out.list("Read first", summary.details.top_files.iter().map(file));
}

fn layout(out: &mut Page, details: &ExploreDetails) {
    let width =
        details.layout.iter().take(ENTRIES).map(|l| l.path.chars().count()).max().unwrap_or(0);
    out.list(
        "Layout",
        details.layout.iter().map(|l| {
            format!(
                "{:<width$}  {:>6} files  {}",
                plain(&l.path),
                number(l.files),
                style(plain(&l.role)).dim()
            )
        }),
    );
}

fn findings(out: &mut Page, details: &ExploreDetails) {
    for finding in &details.findings {
        let title = format!("Goal: {}", plain(&finding.goal));
        if finding.places.is_empty() {
            out.list(&title, std::iter::once("nothing was found".to_owned()));
        } else {
            out.list(&title, finding.places.iter().map(|p| plain(p)));
        }
    }
}

fn git(out: &mut Page, details: &ExploreDetails) {
    let Some(git) = &details.git else { return };
    let head = git.head.as_deref().map(|h| h.chars().take(12).collect::<String>());
    let on = git
        .branch
        .as_deref()
        .map_or_else(|| "no branch".to_owned(), |b| format!("branch {}", plain(b)));
    let mut lines = vec![match head {
        Some(head) => format!("{on} at {head}, {} changed files", number(git.changed_files)),
        None => format!("{on}, no commit yet"),
    }];
    lines.extend(git.recent.iter().take(3).map(|s| format!("{} {}", style("·").dim(), plain(s))));
    if !git.active_files.is_empty() {
        let active: Vec<String> = git.active_files.iter().take(4).map(|f| plain(f)).collect();
        lines.push(format!("most active: {}", active.join(", ")));
    }
    out.list("Git", lines.into_iter());
}

#[cfg(test)]
mod tests {
    use cairn_protocol::explore::{Entrypoint, ExploreStats, ProjectCommands};

    use super::*;

    #[test]
    fn summary_is_rendered() {
        console::set_colors_enabled(false);
        let details = ExploreDetails {
            description: Some("does\nthings".into()),
            entrypoints: vec![Entrypoint {
                path: "src/main.rs".into(),
                line: Some(3),
                kind: "main".into(),
                reason: "a main function".into(),
            }],
            commands: ProjectCommands {
                build: vec!["cargo build".into()],
                ..ProjectCommands::default()
            },
            stats: ExploreStats { files: 1234, millis: 1500, ..ExploreStats::default() },
            ..ExploreDetails::default()
        };
        let summary = ExploreSummary {
            repo_name: "thing\u{1b}".into(),
            languages: [("Rust".to_owned(), 900), ("TOML".to_owned(), 100)].into(),
            followups: (0..12).map(|n| format!("question {n}")).collect(),
            details,
            ..ExploreSummary::default()
        };
        let text = text(&summary, &SessionId::new());
        for expected in [
            "thing\\u{1b}\ndoes things\n",
            "Rust         900   90.0 %",
            "src/main.rs:3  a main function",
            "build  cargo build",
            "… 2 more",
            "1,234 files",
            "1.5 s",
        ] {
            assert!(text.contains(expected), "{expected} is not in:\n{text}");
        }
        for absent in ["Read first", "Layout", "Git", "Packages", "Goal"] {
            assert!(!text.contains(absent), "{absent} is in:\n{text}");
        }
    }

    #[test]
    fn empty_summary_has_no_sections() {
        console::set_colors_enabled(false);
        let text = text(
            &ExploreSummary { repo_name: "empty".into(), ..Default::default() },
            &SessionId::new(),
        );
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
