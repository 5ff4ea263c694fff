//! The order in which files are read first, and the files that changed most.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::explore::{Entrypoint, Hotspot, TopFile};

use super::{components, facts::Facts, library, paths};

/// Most files of a summary.
const MAX: usize = 20;
/// A commit that changed more files is a move or a mass edit.
const MASS: usize = 40;
/// Commits that hotspots are counted in.
const LATELY: usize = 200;
/// Most hotspots of a summary.
const MAX_HOTSPOTS: usize = 8;

/// Most bytes of a word in a document that may be a path.
const MAX_WORD: usize = 300;

/// Share of its score that a file counts in a language beside the project's own, or a tool.
const SECONDARY_SHARE: f64 = 0.6;

/// The evidence for a file.
#[derive(Debug, Default, Clone)]
struct Evidence {
    commits: u32,
    dependents: u32,
    dependencies: u32,
    bytes: u64,
    rank: f64,
    is_entrypoint: bool,
    is_documented: bool,
}

/// True if a file of the history is known to be there still.
fn is_there(facts: &Facts, path: &str) -> bool {
    facts.exists(path)
        || facts.graph.files.iter().any(|file| file.path == path)
        || facts.ranking.iter().any(|file| file.path == path)
}

/// Returns the commits that changed each file, newest first, without mass edits.
fn commits(facts: &Facts, most: usize) -> BTreeMap<&str, Vec<usize>> {
    let mut all: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, commit) in facts.commits.iter().enumerate().take(most) {
        if commit.paths.len() <= MASS {
            for path in &commit.paths {
                all.entry(path).or_default().push(at);
            }
        }
    }
    all
}

/// Returns the files to read first, each with the reason.
pub fn top_files(facts: &Facts, entries: &[Entrypoint]) -> Vec<TopFile> {
    let evidence = collect(facts, entries);
    let languages = library::Languages::new(facts);
    let most =
        |value: fn(&Evidence) -> f64| evidence.values().map(value).fold(0.0_f64, f64::max).max(1.0);
    let maxima = [
        most(|e| f64::from(e.commits)),
        most(|e| f64::from(e.dependents)),
        most(|e| f64::from(e.dependencies)),
        most(|e| e.bytes as f64),
        most(|e| e.rank * 1e6) / 1e6,
    ];
    let mut scored: Vec<(f64, &str, &Evidence)> = evidence
        .iter()
        .map(|(path, evidence)| {
            let is_secondary = languages.is_minor(path) || components::is_tool(path);
            let share = if is_secondary { SECONDARY_SHARE } else { 1.0 };
            (share * score(evidence, maxima), path.as_str(), evidence)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    show_start(&mut scored, entries);
    let total: f64 = scored.iter().map(|(score, ..)| score).sum::<f64>().max(f64::MIN_POSITIVE);
    scored
        .into_iter()
        .take(MAX)
        .map(|(score, path, evidence)| {
            let symbols = facts.ranking.iter().find(|file| file.path == path);
            let symbols = symbols.map(|file| file.symbols.clone()).unwrap_or_default();
            TopFile {
                path: path.to_owned(),
                score: score / total,
                referring_files: evidence.dependents,
                reason: reason(evidence, &symbols),
                symbols,
            }
        })
        .collect()
}

/// Lists the first program among the files, as the last one if it is small.
fn show_start(scored: &mut Vec<(f64, &str, &Evidence)>, entries: &[Entrypoint]) {
    let is_listed = |path: &str| scored.iter().take(MAX).any(|(_, known, _)| *known == path);
    let mut programs =
        entries.iter().filter(|entry| ["manifest", "main", "server"].contains(&&*entry.kind));
    let first = programs.next().filter(|entry| !is_listed(&entry.path));
    if first.is_none() || programs.any(|entry| is_listed(&entry.path)) {
        return;
    }
    let at = scored.iter().position(|(_, path, _)| first.is_some_and(|e| e.path == *path));
    if let Some(at) = at.filter(|at| *at >= MAX) {
        let mut entry = scored.remove(at);
        entry.0 = scored[MAX - 1].0;
        scored.insert(MAX - 1, entry);
    }
}

fn collect(facts: &Facts, entries: &[Entrypoint]) -> BTreeMap<String, Evidence> {
    let mut all: BTreeMap<String, Evidence> = BTreeMap::new();
    let is_candidate = |path: &str| !paths::secondary(path) && is_source(path);
    for file in facts.graph.files.iter().filter(|file| is_candidate(&file.path)) {
        let evidence = all.entry(file.path.clone()).or_default();
        evidence.dependents = file.dependents;
        evidence.dependencies = file.dependencies;
        evidence.bytes = file.bytes;
    }
    for (path, commits) in commits(facts, usize::MAX) {
        let is_imported = facts.graph.files.is_empty() || all.contains_key(path);
        if is_candidate(path) && is_imported && is_there(facts, path) {
            all.entry(path.to_owned()).or_default().commits = commits.len() as u32;
        }
    }
    for file in facts.ranking.iter().filter(|file| is_candidate(&file.path)) {
        let evidence = all.entry(file.path.clone()).or_default();
        evidence.rank = file.score;
        evidence.dependents = evidence.dependents.max(file.referring_files / 4);
    }
    for entry in entries.iter().filter(|e| is_candidate(&e.path)) {
        all.entry(entry.path.clone()).or_default().is_entrypoint = true;
    }
    let documented = documented(facts);
    for (path, evidence) in &mut all {
        evidence.is_documented = documented.contains(path.as_str());
    }
    pair_headers(&mut all);
    all
}

/// The paths that documents name, also at the end of an address.
fn documented(facts: &Facts) -> BTreeSet<&str> {
    const ENDS: &[char] = &[
        '(', ')', '[', ']', '<', '>', '"', '\'', '`', ',', ':', ';', '#', '|', '*', '!', '?', '=',
    ];
    let is_document = |path: &str| path.ends_with(".md") || path.ends_with(".rst");
    let mut all = BTreeSet::new();
    for (_, text) in facts.texts.iter().filter(|(path, _)| is_document(path)) {
        let words = text.split(|c: char| c.is_whitespace() || ENDS.contains(&c));
        for word in words.map(|word| word.trim_end_matches(['.', '/'])) {
            if (1..=MAX_WORD).contains(&word.len()) {
                all.insert(word);
                all.extend(word.match_indices('/').map(|(at, _)| &word[at + 1..]));
            }
        }
    }
    all
}

/// A header and its source count as one file, named by the source.
fn pair_headers(all: &mut BTreeMap<String, Evidence>) {
    let headers: Vec<String> = all
        .keys()
        .filter(|path| [".h", ".hpp", ".hh"].iter().any(|end| path.ends_with(end)))
        .cloned()
        .collect();
    for header in headers {
        let stem = header.rsplit_once('.').map_or("", |(stem, _)| stem);
        let source = ["c", "cc", "cpp", "cxx"]
            .iter()
            .map(|end| format!("{stem}.{end}"))
            .find(|source| all.contains_key(source));
        if let Some(source) = source
            && let Some(of_header) = all.remove(&header)
            && let Some(of_source) = all.get_mut(&source)
        {
            of_source.dependents += of_header.dependents;
            of_source.commits = of_source.commits.max(of_header.commits);
            of_source.rank = of_source.rank.max(of_header.rank);
            of_source.is_documented |= of_header.is_documented;
            of_source.is_entrypoint |= of_header.is_entrypoint;
        }
    }
}

pub fn is_source(path: &str) -> bool {
    const ENDS: &[&str] = &[
        "rs", "py", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "c", "h", "cc", "cpp", "cxx",
        "hpp", "hh", "java", "kt", "kts", "scala", "rb", "cs", "php", "swift", "lua", "ex", "exs",
        "erl", "hs", "ml", "vue", "svelte", "dart", "zig", "sh", "pl", "proto", "sql",
    ];
    let name = paths::file_name(path);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let is_generated =
        [".pb.go", ".pb.gw.go", ".generated.", "_generated.", ".min.js", ".d.ts", "_pb2.py"]
            .iter()
            .any(|mark| name.contains(mark));
    ENDS.contains(&end) && !is_generated
}

fn score(evidence: &Evidence, [commits, dependents, dependencies, bytes, rank]: [f64; 5]) -> f64 {
    let log = |value: f64, most: f64| (1.0 + value).ln() / (1.0 + most).ln();
    // Weights were fitted on eleven labelled repositories.
    2.6 * (f64::from(evidence.commits) / commits).powf(0.7)
        + 1.5 * log(f64::from(evidence.dependents), dependents)
        + 1.8 * log(f64::from(evidence.dependencies), dependencies)
        + 3.9 * log(evidence.bytes as f64, bytes)
        + 1.0 * (evidence.rank / rank).sqrt()
        + if evidence.is_entrypoint { 0.2 } else { 0.0 }
        + if evidence.is_documented { 0.2 } else { 0.0 }
}

fn reason(evidence: &Evidence, symbols: &[String]) -> String {
    let mut parts = Vec::new();
    if evidence.is_entrypoint {
        parts.push("entrypoint".to_owned());
    }
    if let Some(first) = symbols.first() {
        parts.push(format!("defines {first}"));
    }
    let plural = |count: u32, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    if evidence.dependents > 0 {
        parts.push(plural(evidence.dependents, "file depends on it", "files depend on it"));
    }
    if evidence.commits > 1 {
        parts.push(format!("changed in {} commits", evidence.commits));
    }
    if evidence.is_documented {
        parts.push("named in the documents".to_owned());
    }
    if parts.is_empty() {
        parts.push("large source file".to_owned());
    }
    parts.join("; ")
}

/// Returns the files that changed most often lately, with subjects of the commits.
pub fn hotspots(facts: &Facts) -> Vec<Hotspot> {
    let mut all: Vec<(&str, Vec<usize>)> = commits(facts, LATELY)
        .into_iter()
        .filter(|(path, commits)| commits.len() > 2 && is_source(path) && !paths::secondary(path))
        .filter(|(path, _)| is_there(facts, path))
        .collect();
    all.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(b.0)));
    all.truncate(MAX_HOTSPOTS);
    all.into_iter()
        .map(|(path, commits)| Hotspot {
            path: path.to_owned(),
            commits: commits.len() as u32,
            subjects: commits
                .iter()
                .filter_map(|at| facts.commits.get(*at))
                .take(3)
                .map(|commit| commit.subject.clone())
                .collect(),
        })
        .collect()
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
