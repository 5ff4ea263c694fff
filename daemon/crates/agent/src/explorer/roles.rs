//! The role of a part in a few words, with the line that states it.

use cairn_protocol::explore::GraphGroup;

use super::{
    comments, components::Part, describe, facts::Facts, manifests::Manifest, paths, prose,
};

/// Most characters of a role.
const MAX_ROLE: usize = 160;

/// A role with its source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    pub text: String,
    /// The source as `path:line`.
    pub evidence: Option<String>,
}

impl Role {
    fn new(text: &str, path: &str, line: usize) -> Option<Self> {
        let text = prose::shortened(&prose::plain(text), MAX_ROLE);
        let is_useful = prose::word_count(&text) >= 2;
        is_useful.then(|| Self { text, evidence: Some(format!("{path}:{line}")) })
    }
}

/// Returns the role of a part: of its manifest, a document, the comment of its root, its readme,
/// the comment of its main definition, or of its name.
pub fn of(
    facts: &Facts,
    part: &Part,
    manifest: Option<&Manifest>,
    group: Option<&GraphGroup>,
) -> Role {
    of_manifest(facts, manifest)
        .or_else(|| of_documents(facts, part))
        .or_else(|| of_roots(facts, part))
        .or_else(|| of_readme(facts, part))
        .or_else(|| of_key_file(facts, part, group))
        .unwrap_or_else(|| of_name(facts, part))
}

fn of_manifest(facts: &Facts, manifest: Option<&Manifest>) -> Option<Role> {
    let manifest = manifest?;
    let description = manifest.description.as_deref()?;
    let text = facts.text(&manifest.path).unwrap_or_default();
    Role::new(description, &manifest.path, line_of(text, description))
}

/// The line of a text that has the first words of `words`, counted from 1; else the first.
fn line_of(text: &str, words: &str) -> usize {
    let first = words.trim().lines().next().unwrap_or("").trim();
    let first: String = first.chars().take(40).collect();
    if first.is_empty() {
        return 1;
    }
    text.lines().position(|line| line.contains(&first)).map_or(1, |at| at + 1)
}

/// A line of a document that begins with the part's path or name and goes on with words.
fn of_documents(facts: &Facts, part: &Part) -> Option<Role> {
    let name = paths::file_name(&part.path);
    let documents = facts.texts.iter().filter(|(path, _)| is_document(path));
    let mut best: Option<(usize, Role)> = None;
    for (path, text) in documents {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            for (rank, word) in [(0, part.path.as_str()), (1, name)] {
                // The name of the project means all of it.
                if rank == 1 && word.eq_ignore_ascii_case(&facts.folder) {
                    continue;
                }
                let nested = || prose::nested(line, word, lines.get(at + 1).copied()?);
                let Some(rest) = prose::described(line, word).or_else(nested) else { continue };
                if best.as_ref().is_some_and(|(known, _)| rank >= *known) {
                    continue;
                }
                let text = continued(rest, &lines[at + 1..]);
                if let Some(role) = Role::new(&text, path, at + 1) {
                    best = Some((rank, role));
                }
            }
        }
    }
    best.map(|(_, role)| role)
}

/// The rest of an item with its following lines, which are indented.
fn continued(rest: &str, following: &[&str]) -> String {
    let mut text = rest.to_owned();
    if rest.contains('|') || rest.ends_with('.') {
        return text;
    }
    for line in following.iter().take(4) {
        let is_indented = line.starts_with([' ', '\t']);
        let trimmed = line.trim();
        let is_item = trimmed.starts_with(['-', '*', '|', '#', '+', '│', '├', '└'])
            || trimmed.split_whitespace().next().is_some_and(|word| word.ends_with('/'));
        let is_listing = trimmed.contains("  ");
        if !is_indented || is_item || is_listing || trimmed.is_empty() {
            break;
        }
        text.push(' ');
        text.push_str(trimmed);
    }
    text
}

fn is_document(path: &str) -> bool {
    [".md", ".rst", ".adoc", ".txt"].iter().any(|end| path.ends_with(end))
}

/// The comment at the head of the part's root module.
fn of_roots(facts: &Facts, part: &Part) -> Option<Role> {
    let inside = |path: &str| {
        path == part.path
            || path.strip_prefix(part.path.as_str()).is_some_and(|rest| {
                let rest = rest.trim_start_matches('/');
                let is_package = ["package-info.java", "doc.go"].contains(&paths::file_name(rest));
                super::manifests::MODULE_ROOTS.contains(&rest) || is_package
            })
    };
    let mut roots: Vec<(&String, &String)> =
        facts.texts.iter().filter(|(path, _)| inside(path)).collect();
    roots.sort_by_key(|(path, _)| paths::depth(path));
    roots.into_iter().find_map(|(path, text)| {
        let (line, comment) = comments::head_comment(path, text)?;
        Role::new(&comment, path, line)
    })
}

fn of_readme(facts: &Facts, part: &Part) -> Option<Role> {
    let inside = |path: &str| {
        paths::folder(path) == part.path
            && paths::file_name(path).to_ascii_lowercase().starts_with("readme")
    };
    facts.texts.iter().filter(|(path, _)| inside(path)).find_map(|(path, text)| {
        let sentence = prose::first_sentence(text)?;
        let first = sentence.split(' ').take(3).collect::<Vec<_>>().join(" ");
        Role::new(&sentence, path, line_of(text, &first))
    })
}

/// The comment of the main definition in the file that most others import.
fn of_key_file(facts: &Facts, part: &Part, group: Option<&GraphGroup>) -> Option<Role> {
    let key = group.and_then(|group| group.key_files.first());
    let candidates = [Some(&part.path), key];
    let name = paths::file_name(&part.path);
    let words: Vec<String> = name
        .split(['.', '_', '-'])
        .chain([name.split('.').next().unwrap_or(name)])
        .map(|word| prose::normalised(word).trim_end_matches('s').to_owned())
        .filter(|word| {
            !["rs", "py", "go", "ts", "js", "src", "lib", "java"].contains(&word.as_str())
        })
        .collect();
    candidates.into_iter().flatten().find_map(|path| {
        let text = facts.text(path)?;
        let (line, comment) = comments::head_comment(path, text)
            .or_else(|| comments::definition_comment(path, text, &words))?;
        Role::new(&comment, path, line)
    })
}

/// The usual meaning of the name, else the most used definitions.
fn of_name(facts: &Facts, part: &Part) -> Role {
    let name = paths::file_name(&part.path);
    let folder = format!("{}/", part.path);
    let inside = |path: &str| path == part.path || path.starts_with(&folder);
    let mut symbols: Vec<&str> = facts
        .ranking
        .iter()
        .filter(|file| inside(&file.path))
        .flat_map(|file| file.symbols.iter().take(2).map(String::as_str))
        .collect();
    // Types tell more than functions.
    symbols.sort_by_key(|symbol| !symbol.starts_with(char::is_uppercase));
    symbols.truncate(4);
    let is_main = |hit: &super::facts::Hit| {
        inside(&hit.path) && super::planner::PROBES[hit.probe].kind == "main"
    };
    let usual = describe::role(name.split('.').next().unwrap_or(name)).map(|usual| match usual {
        "sources" if facts.hits.iter().any(is_main) => "program (command line tool)",
        "sources" if name == "lib" => "library",
        usual => usual,
    });
    let has_types = symbols.iter().any(|symbol| symbol.starts_with(char::is_uppercase));
    let files = file_names(facts, &part.path);
    let names = if has_types || files.len() < 2 { symbols.join(", ") } else { files.join(", ") };
    let text = match (usual, names.is_empty()) {
        (Some(usual), true) => usual.to_owned(),
        (Some(usual), false) => format!("{usual}: {names}"),
        (None, false) if has_types || files.len() < 2 => format!("defines {names}"),
        (None, false) => names,
        (None, true) => String::new(),
    };
    Role { text, evidence: None }
}

/// Names of the largest files in a folder, without their ends.
fn file_names(facts: &Facts, folder: &str) -> Vec<String> {
    let prefix = format!("{folder}/");
    let mut files: Vec<_> =
        facts.graph.files.iter().filter(|file| file.path.starts_with(&prefix)).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let name = paths::file_name(&file.path);
        let stem = name.split('.').next().unwrap_or(name).to_owned();
        let is_specific = !["__init__", "index", "mod", "lib", "main"].contains(&stem.as_str());
        if is_specific && !names.contains(&stem) && names.len() < 6 {
            names.push(stem);
        }
    }
    names
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
