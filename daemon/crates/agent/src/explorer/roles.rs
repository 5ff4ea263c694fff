//! The role of a part in a few words, with the line that states it.

use cairn_protocol::explore::GraphGroup;

use super::{
    comments,
    components::{self, Part},
    describe,
    facts::Facts,
    manifests::Manifest,
    paths, prose,
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
        let text = text.strip_prefix("is ").unwrap_or(&text);
        // A line that is drawn around the words.
        let text = text.trim_start_matches(['-', '=', '~', '#', '+', '*', ' ']).to_owned();
        let is_useful = prose::word_count(&text) >= 2;
        is_useful.then(|| Self { text, evidence: Some(format!("{path}:{line}")) })
    }

    /// `None` if the text has no word that is not in the part's path.
    fn adds_to(self, path: &str) -> Option<Self> {
        const FILLERS: &[&str] = &[
            "a",
            "an",
            "the",
            "of",
            "for",
            "in",
            "and",
            "is",
            "this",
            "module",
            "modules",
            "package",
            "packages",
            "library",
            "crate",
            "folder",
            "directory",
            "component",
            "project",
            "plugin",
            "source",
            "sources",
            "code",
            "support",
        ];
        let path = paths::words(path);
        let is_known = |word: &String| {
            FILLERS.contains(&word.as_str()) || path.iter().any(|known| known.starts_with(&**word))
        };
        (!paths::words(&self.text).iter().all(is_known)).then_some(self)
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
    let useful = |role: Option<Role>| role.and_then(|role| role.adds_to(&part.path));
    useful(of_manifest(facts, manifest))
        .or_else(|| useful(of_documents(facts, part)))
        .or_else(|| useful(of_roots(facts, part)))
        .or_else(|| useful(of_readme(facts, part)))
        .or_else(|| useful(of_key_file(facts, part, group)))
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

/// Names of folders that many parts have.
const ANY_FOLDER: &[&str] = &["src", "source", "sources", "lib", "include", "main"];

/// A line of a document that begins with the part's path or name and goes on with words.
fn of_documents(facts: &Facts, part: &Part) -> Option<Role> {
    let name = paths::file_name(&part.path);
    let documents = facts.texts.iter().filter(|(path, _)| is_document(path));
    let mut best: Option<(usize, Role)> = None;
    for (path, text) in documents {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            for (rank, word) in [(0, part.path.as_str()), (1, name)] {
                // The name of the project means all of it, and a common one any folder.
                let is_any = word.eq_ignore_ascii_case(&facts.folder) || ANY_FOLDER.contains(&word);
                if rank == 1 && is_any {
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

/// True for a document about the code; one about contributions or versions names parts in examples.
fn is_document(path: &str) -> bool {
    let name = paths::file_name(path).to_ascii_lowercase();
    let is_about_work =
        ["contributing", "changelog", "changes", "release"].iter().any(|w| name.starts_with(w));
    [".md", ".rst", ".adoc", ".txt"].iter().any(|end| path.ends_with(end)) && !is_about_work
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
    roots.into_iter().find_map(|(path, text)| head_role(facts, path, text))
}

/// The comment at the head of a file, if no other file begins with the same.
fn head_role(facts: &Facts, path: &str, text: &str) -> Option<Role> {
    let (line, comment) = comments::head_comment(path, text)?;
    let is_same = |(other, text): &(&String, &String)| {
        *other != path
            && comments::head_comment(other, text).is_some_and(|(_, head)| head == comment)
    };
    let is_shared = facts.texts.iter().any(|file| is_same(&file));
    if is_shared { None } else { Role::new(&comment, path, line) }
}

fn of_readme(facts: &Facts, part: &Part) -> Option<Role> {
    let inside = |path: &str| {
        paths::folder(path) == part.path
            && paths::file_name(path).to_ascii_lowercase().starts_with("readme")
    };
    facts.texts.iter().filter(|(path, _)| inside(path)).find_map(|(path, text)| {
        let sentence = prose::own_sentence(text)?;
        let first = sentence.split(' ').take(3).collect::<Vec<_>>().join(" ");
        Role::new(&sentence, path, line_of(text, &first))
    })
}

/// The comment of the main definition in the file that most others import.
fn of_key_file(facts: &Facts, part: &Part, group: Option<&GraphGroup>) -> Option<Role> {
    let key = group.and_then(|group| group.key_files.first());
    let beside = components::beside(facts, &part.path);
    let candidates = [Some(&part.path), beside.as_ref(), key];
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
        let is_own = Some(path) != key;
        let head = || if is_own { head_role(facts, path, text) } else { None };
        head().or_else(|| {
            let (line, comment) = comments::definition_comment(path, text, &words)?;
            Role::new(&comment, path, line)
        })
    })
}

/// The usual meaning of the name, and what the part contains by the names in it.
fn of_name(facts: &Facts, part: &Part) -> Role {
    let name = paths::file_name(&part.path);
    let folder = format!("{}/", part.path);
    let is_main = |hit: &super::facts::Hit| {
        hit.path.starts_with(&folder) && super::planner::PROBES[hit.probe].kind == "main"
    };
    let stem = name.split('.').next().unwrap_or(name);
    let usual = if part.is_file() { describe::role_of_file(stem) } else { describe::role(stem) };
    let usual = usual.map(|usual| match usual {
        "sources" if facts.hits.iter().any(is_main) => "program (command line tool)",
        "sources" if name == "lib" => "library",
        usual => usual,
    });
    let contents = contents(facts, &part.path).join(", ");
    let text = match (usual, contents.is_empty()) {
        (Some(usual), true) => usual.to_owned(),
        (Some(usual), false) => format!("{usual}: {contents}"),
        (None, _) => contents,
    };
    Role { text, evidence: None }
}

/// Names of what a part contains, in words: its folders, its files, and for a file its types.
fn contents(facts: &Facts, path: &str) -> Vec<String> {
    let own = paths::words(path);
    let project = paths::words(&describe::name(facts));
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let mut words = paths::words(name);
        // The name of the project or of the part tells nothing in it, nor does the mark of an
        // interface.
        let is_own = |word: &String| {
            own.last().is_some_and(|own| own == word || own.strip_suffix('s') == Some(word))
        };
        while words.len() > 1
            && (project.contains(&words[0]) || is_own(&words[0]) || words[0] == "i")
        {
            words.remove(0);
        }
        while words.len() > 1 && words.last().is_some_and(is_own) {
            words.pop();
        }
        let is_known = |word: &String| own.contains(word) || GENERIC.contains(&word.as_str());
        let phrase = words.join(" ");
        let is_new = names.iter().all(|known| !known.contains(&phrase) && !phrase.contains(known));
        if names.len() < MAX_CONTENTS && !words.iter().all(is_known) && is_new {
            names.push(phrase);
        }
    };
    let mut folders: Vec<_> = facts
        .folders
        .iter()
        .filter(|folder| paths::folder(&folder.path) == path && folder.files > 1)
        .filter(|folder| !paths::secondary(&format!("{}/x", folder.path)))
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.files));
    for folder in folders.iter().take(MAX_CONTENTS / 2) {
        add(paths::file_name(&folder.path));
    }
    let mut files: Vec<_> = facts
        .graph
        .files
        .iter()
        .filter(|file| components::contains(path, &file.path) && !paths::secondary(&file.path))
        .collect();
    files.sort_by_key(|f| std::cmp::Reverse(u64::from(f.dependents) * 1000 + f.bytes / 8));
    for file in files {
        let name = paths::file_name(&file.path);
        add(name.split('.').next().unwrap_or(name));
    }
    let of_file = facts.ranking.iter().filter(|file| file.path == path);
    for symbol in of_file.flat_map(|file| &file.symbols) {
        add(symbol);
    }
    names
}

/// Most names of what a part contains.
const MAX_CONTENTS: usize = 6;
/// Words in names that say nothing of what is in a file.
const GENERIC: &[&str] = &[
    "init",
    "index",
    "mod",
    "lib",
    "main",
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "types",
    "base",
    "constants",
    "internal",
    "src",
    "source",
    "sources",
    "java",
    "kotlin",
    "jvm",
    "impl",
    "test",
    "tests",
    "default",
    "the",
    "new",
    "package",
    "info",
    "doc",
    "module",
];

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
