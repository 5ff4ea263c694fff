//! The summary of an explore as one HTML page that needs nothing else: no network, no other file,
//! no script from the repository. It depends on the summary alone.

mod cards;
mod changes;
mod diagram;
mod markup;
mod sections;
#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cairn_explore_report::facts::{self, count};
use cairn_protocol::explore::ExploreSummary;
use sha2::{Digest as _, Sha256};

use crate::render::explore_page::markup::text;

const STYLE: &str = include_str!("explore_page/style.css");
const SCRIPT: &str = include_str!("explore_page/page.js");

/// A section: its id, its title and its HTML, which is empty if there is nothing to list.
struct Section {
    id: &'static str,
    title: &'static str,
    html: String,
    /// Sections that may stand beside each other on wide screens.
    is_narrow: bool,
}

/// Renders the page. The same summary has the same page.
pub fn page(summary: &ExploreSummary) -> String {
    let mut sections = sections(summary);
    sections.retain(|section| !section.html.is_empty());
    let name = match text(&summary.repo_name) {
        name if name.is_empty() => "repository".to_owned(),
        name => name,
    };
    let links: String = sections
        .iter()
        .map(|section| format!("<li><a href=\"#{}\">{}</a></li>", section.id, section.title))
        .collect();
    let nav = if links.is_empty() {
        String::new()
    } else {
        format!("<nav aria-label=\"Sections\"><ul>{links}</ul></nav>\n")
    };
    let purpose = facts::purpose(&summary.details)
        .map(|purpose| format!("<p class=\"purpose\">{}</p>\n", text(&purpose)))
        .unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{name}: overview</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
         <header><div class=\"column\">\n<h1>{name}</h1>\n{purpose}\
         <p class=\"faint\">{figures}</p>\n{nav}</div></header>\n\
         <main id=\"main\" tabindex=\"-1\"><div class=\"column\">\n{body}</div></main>\n\
         <footer><div class=\"column\">Written by <code>cairn explore --html</code>.\
         </div></footer>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        policy = policy(),
        figures = figures(summary),
        body = body(&sections),
    )
}

/// Only the style and the script of this page are allowed, by their hashes.
fn policy() -> String {
    let hash = |content: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

fn figures(summary: &ExploreSummary) -> String {
    let stats = &summary.details.stats;
    let lines: u64 = summary.languages.values().fold(0, |sum, lines| sum.saturating_add(*lines));
    let mut parts: Vec<String> = facts::revision(&summary.details).into_iter().collect();
    for (n, noun) in [(stats.files, "file"), (lines, "line"), (stats.symbols, "definition")] {
        if n > 0 {
            parts.push(count(n, noun));
        }
    }
    text(&parts.join(" · "))
}

fn sections(summary: &ExploreSummary) -> Vec<Section> {
    let details = &summary.details;
    let wide = |id, title, html| Section { id, title, html, is_narrow: false };
    let narrow = |id, title, html| Section { id, title, html, is_narrow: true };
    vec![
        wide("changes", "Changes", changes::changes(details)),
        wide("diagram", "Components", diagram::figure(&details.components)),
        wide("overview", "Overview by the model", sections::overview(details)),
        wide("languages", "Languages", sections::languages(summary)),
        wide("goals", "Goals", sections::findings(details)),
        narrow("start", "Where it starts", sections::files(&facts::entrypoints(summary))),
        narrow("read", "Read first", sections::files(&facts::top_files(summary))),
        narrow("flows", "Flows", sections::flows(details)),
        narrow("commands", "Commands", sections::commands(details)),
        narrow("conventions", "Conventions", sections::conventions(details)),
        narrow("concepts", "Concepts", sections::concepts(details)),
        narrow("hotspots", "Hotspots", sections::hotspots(details)),
        narrow("questions", "Open questions", sections::questions(summary)),
        wide("parts", "Each component", cards::components(&details.components)),
        wide("secondary", "Secondary folders", cards::secondary(details)),
        narrow("changed-files", "Changed files", changes::files(details)),
        narrow("new-commits", "Commits since the revision", changes::commits(details)),
        narrow("packages", "Packages", sections::packages(details)),
        narrow("folders", "Folders", sections::layout(details)),
        narrow("commits", "Latest commits", sections::commits(details)),
    ]
}

/// Joins the sections; adjoining narrow ones share a grid.
fn body(sections: &[Section]) -> String {
    let mut out = String::new();
    for run in sections.chunk_by(|a, b| a.is_narrow && b.is_narrow) {
        if run[0].is_narrow {
            out.push_str("<div class=\"pair\">\n");
        }
        for section in run {
            out.push_str(&format!(
                "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n\
                 <h2 id=\"{id}-title\">{title}</h2>\n{html}</section>\n",
                id = section.id,
                title = section.title,
                html = section.html
            ));
        }
        if run[0].is_narrow {
            out.push_str("</div>\n");
        }
    }
    if out.is_empty() {
        out.push_str("<p>Nothing was found to describe.</p>\n");
    }
    out
}
