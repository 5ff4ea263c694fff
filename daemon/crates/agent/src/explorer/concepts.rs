//! Names that a newcomer meets in many files, with their definitions.

use cairn_protocol::{explore::Concept, search::SymbolItem};

use super::{facts::Facts, paths};

/// Most concepts of a summary.
const MAX: usize = 10;
/// Ranked files whose names are considered.
const FILES: usize = 60;
/// Names of one file that are considered.
const NAMES: usize = 2;
/// Least length of a name: shorter ones are seldom looked up.
const MIN_NAME: usize = 4;

/// Returns the names whose definitions are to be found, each with its file and the number of files
/// that use the file's definitions; types before functions.
pub fn names(facts: &Facts) -> Vec<(&str, &str, u32)> {
    let mut names: Vec<(&str, &str, u32)> = Vec::new();
    let files = facts.ranking.iter().filter(|file| !paths::secondary(&file.path)).take(FILES);
    for file in files {
        let is_name = |name: &&String| name.len() >= MIN_NAME && !name.contains(['(', ' ']);
        for name in file.symbols.iter().filter(is_name).take(NAMES) {
            if names.iter().all(|(known, ..)| known != name) {
                names.push((name, &file.path, file.referring_files));
            }
        }
    }
    names.sort_by_key(|(name, _, files)| {
        (!name.starts_with(char::is_uppercase), std::cmp::Reverse(*files))
    });
    names.truncate(MAX);
    names
}

/// Returns the definition in `path` among those that a search found; else the first.
pub fn definition<'a>(found: &'a [SymbolItem], path: &str) -> Option<&'a SymbolItem> {
    found.iter().find(|item| item.path == path).or_else(|| found.first())
}

/// Returns the concepts whose definitions were found, the most used first.
pub fn find(facts: &Facts) -> Vec<Concept> {
    let concept = |(name, path, files): (&str, &str, u32)| {
        let item = definition(facts.definitions.get(name)?, path)?;
        Some(Concept {
            name: name.to_owned(),
            kind: item.kind.clone(),
            path: item.path.clone(),
            line: item.start_line,
            files,
        })
    };
    let mut all: Vec<Concept> = names(facts).into_iter().filter_map(concept).collect();
    all.sort_by(|a, b| b.files.cmp(&a.files).then(a.name.cmp(&b.name)));
    all
}
