//! Open questions after an explore: each names the subject and the way to find out.

use cairn_protocol::explore::{Entrypoint, ProjectCommands};

use super::{
    describe, entrypoints,
    facts::{Facts, FailedOp},
    manifests::Manifest,
    paths,
};

/// Most followups of a summary.
const MAX: usize = 12;

/// Returns the open questions of this explore.
pub fn find(
    facts: &Facts,
    manifests: &[Manifest],
    entries: &[Entrypoint],
    commands: &ProjectCommands,
    questions: &[String],
) -> Vec<String> {
    let mut all = Vec::new();
    let lines: u64 = facts.languages.values().sum();
    if lines == 0 && facts.known_files().next().is_none() {
        return vec!["the folder contains only ignored files: is this the right root?".into()];
    }
    index(facts, &mut all);
    promises(facts, manifests, &mut all);
    let code = code_lines(facts) > 0;
    if entries.is_empty() && code {
        all.push(
            "no entrypoint was found: is this a library, and which file is its public interface?"
                .into(),
        );
    }
    let mains = entries.iter().filter(|e| e.kind == "main" || e.kind == "manifest").count();
    if mains > 3 {
        all.push(format!("there are {mains} entrypoints: which one do users run?"));
    }
    if code && commands.build.is_empty() && commands.test.is_empty() {
        all.push(
            "no build or test command was found: look for scripts, or ask how it is built".into(),
        );
    } else if code && commands.test.is_empty() {
        all.push("no test command was found: how is it tested?".into());
    }
    if describe::readmes(facts).is_empty() {
        all.push("there is no top-level readme: what is this for?".into());
    }
    if facts.exists(".gitmodules") || facts.listed.contains_key(".gitmodules") {
        all.push(
            "it has git submodules, which may not be checked out: git submodule status".into(),
        );
    }
    for question in questions {
        if facts.locations.get(question).is_some_and(Vec::is_empty) {
            all.push(format!(
                "nothing was found for '{question}': try other words, or search.grep"
            ));
        }
    }
    for failed in facts.failures.iter().filter(|failed| !is_expected(failed)).take(3) {
        all.push(format!("{} failed: {}", failed.tool, failed.message));
    }
    all.truncate(MAX);
    all
}

/// Returns true for a folder that most repositories do not have.
fn is_expected(failed: &FailedOp) -> bool {
    failed.tool == "fs_list_dir"
        && failed.path.as_deref().is_some_and(|path| path.starts_with(".github"))
}

fn code_lines(facts: &Facts) -> u64 {
    const PROSE: &[&str] = &[
        "Markdown",
        "Plain Text",
        "ReStructuredText",
        "AsciiDoc",
        "JSON",
        "YAML",
        "TOML",
        "XML",
        "HTML",
        "SVG",
        "Org",
        "TeX",
    ];
    facts
        .languages
        .iter()
        .filter(|(name, _)| !PROSE.contains(&name.as_str()))
        .map(|(_, lines)| lines)
        .sum()
}

fn index(facts: &Facts, all: &mut Vec<String>) {
    match &facts.index {
        None => all.push("the index could not be built: see index.status".into()),
        Some(status) if !status.complete => {
            let (pending, files) = (status.pending, status.files);
            all.push(format!(
                "the index was not complete yet ({files} files indexed, {pending} pending): explore \
                again for the full ranking"
            ));
        }
        Some(_) => {}
    }
    let skipped = facts.index.as_ref().map(|s| &s.skipped);
    for (reason, count) in skipped.into_iter().flatten().filter(|(reason, n)| {
        **n > 0 && ["too_large", "unreadable", "invalid_name"].contains(&reason.as_str())
    }) {
        let (files, they) =
            if *count == 1 { ("file is", "does it") } else { ("files are", "do they") };
        all.push(format!(
            "{count} {files} not in the index ({}): {they} matter?",
            reason.replace('_', " ")
        ));
    }
    if facts.listing_cut {
        all.push("the listing was truncated: deeper folders were found by the index only".into());
    }
    if facts.cut {
        all.push("the limit of operations was reached: explore a subfolder for more".into());
    }
}

/// Adds files that a manifest names and the tree does not contain.
fn promises(facts: &Facts, manifests: &[Manifest], all: &mut Vec<String>) {
    let broken = manifests.iter().filter(|m| !paths::secondary(&m.path)).flat_map(|m| {
        let open =
            m.starts.iter().filter(|s| s.promised && entrypoints::resolve(facts, s).is_none());
        open.map(move |s| {
            format!(
                "{} refers to {}, but {} is not in the tree: is it generated?",
                m.path, s.reason, s.candidates[0]
            )
        })
    });
    all.extend(broken.take(3));
}
