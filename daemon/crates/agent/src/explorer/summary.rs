//! Builds the summary from the facts.

use cairn_protocol::explore::{ExploreDetails, ExploreStats, ExploreSummary, Finding, TopFile};

use super::{
    changes, commands, components, concepts, conventions, describe, entrypoints, facts::Facts,
    flows, followups, manifests, order, paths, purpose,
};

/// Most top files of a summary.
const TOP_FILES: usize = 15;

/// Returns the summary of the known facts.
pub fn converge(facts: &Facts, goals: &[String], since: Option<&str>) -> ExploreSummary {
    let manifests = manifests::read_all(facts);
    let entries = entrypoints::find(facts, &manifests);
    let commands = commands::find(facts, &manifests, &entries);
    let parts = facts.parts.clone().unwrap_or_else(|| components::parts(facts, &manifests));
    let components = components::describe(facts, &manifests, &parts);
    let secondary = components::secondary(facts);
    let owners = changes::Owners::new(&components, &secondary);
    let changes = since.and_then(|since| changes::report(facts, since, &owners, &entries));
    let mut top = order::top_files(facts, &entries);
    if top.is_empty() {
        top = documents(facts);
    }
    let queries: Vec<String> =
        goals.iter().filter(|g| facts.locations.contains_key(*g)).cloned().collect();
    let followups = followups::find(facts, &manifests, &entries, &commands, &queries);
    let finding = |goal: &String| Finding {
        goal: goal.clone(),
        places: facts.locations.get(goal).cloned().unwrap_or_default(),
    };
    let index = facts.index.as_ref();
    let stats = ExploreStats {
        files: index.map_or(0, |i| i.files),
        skipped: index.map_or(0, |i| i.skipped.values().sum()),
        chunks: index.map_or(0, |i| i.chunks),
        symbols: index.map_or(0, |i| i.symbols),
        ..ExploreStats::default()
    };
    ExploreSummary {
        repo_name: describe::name(facts),
        languages: facts.languages.clone(),
        entrypoints: entries.iter().map(|e| e.path.clone()).collect(),
        top_files: top.iter().map(|t| t.path.clone()).collect(),
        followups,
        details: ExploreDetails {
            description: describe::description(facts, &manifests),
            purpose: purpose::of(facts, &manifests),
            overview: None,
            components,
            secondary,
            flows: flows::find(facts),
            conventions: conventions::find(facts),
            hotspots: order::hotspots(facts),
            concepts: concepts::find(facts),
            projects: manifests::projects(&manifests),
            entrypoints: entries,
            top_files: top,
            commands,
            layout: describe::layout(facts),
            findings: queries.iter().map(finding).collect(),
            git: describe::git(facts),
            changes,
            stats,
        },
    }
}

/// Returns the documents of a repository without code.
fn documents(facts: &Facts) -> Vec<TopFile> {
    let document = |path: &str| TopFile {
        path: path.into(),
        score: 0.0,
        referring_files: 0,
        symbols: vec![],
        reason: String::new(),
    };
    let ends = [".md", ".rst", ".adoc", ".txt", ".org"];
    let mut documents: Vec<&str> = facts
        .known_files()
        .filter(|p| ends.iter().any(|e| p.to_ascii_lowercase().ends_with(e)))
        .collect();
    documents.sort_by_key(|p| {
        let name = paths::file_name(p).to_ascii_lowercase();
        (paths::depth(p), !name.starts_with("readme"), !name.starts_with("index"), p.to_owned())
    });
    documents.into_iter().take(TOP_FILES).map(document).collect()
}
