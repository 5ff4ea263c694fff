//! Entrypoints of a library that has no program of its own.

use std::collections::BTreeMap;

use cairn_protocol::explore::{Entrypoint, GraphFile};

use super::{describe, facts::Facts, manifests::Manifest, paths};

/// Shares of the source text and of the files below which a language is not one that the project
/// is written in, in percent.
const MINOR: [u64; 2] = [4, 2];
/// Most entrypoints from the code in the readme.
const MAX_NAMED: usize = 3;
/// Most entrypoints of modules.
const MAX_MODULES: usize = 8;
/// Most names in the readme's code that are compared with files.
const MAX_NAMES: usize = 400;

/// The languages of source files, by their ends; those that are used together count as one.
fn family(path: &str) -> &str {
    let name = paths::file_name(path);
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "h" | "c" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "m" | "mm" => "c",
        "ts" | "tsx" | "js" | "jsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => "js",
        "kt" | "kts" | "java" | "scala" | "groovy" => "jvm",
        "ex" | "exs" | "erl" => "beam",
        other => other,
    }
}

/// The languages that the project is written in.
pub struct Languages<'a> {
    /// Total bytes and number of files, by family.
    sizes: BTreeMap<&'a str, [u64; 2]>,
    total: [u64; 2],
}

impl<'a> Languages<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        let mut sizes: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        let mut total = [0, 0];
        for file in facts.graph.files.iter().filter(|file| !paths::secondary(&file.path)) {
            let size = sizes.entry(family(&file.path)).or_default();
            for (at, count) in [file.bytes, 1].into_iter().enumerate() {
                size[at] += count;
                total[at] += count;
            }
        }
        Self { sizes, total }
    }

    /// True for a file in a language that makes up little of the source text.
    pub fn is_minor(&self, path: &str) -> bool {
        let own = self.sizes.get(family(path)).copied().unwrap_or_default();
        let is_little = (0..2).any(|at| own[at] * 100 < self.total[at] * MINOR[at]);
        // A command without an end may be in any.
        paths::file_name(path).contains('.') && is_little
    }
}

/// The file of a library that bears its name, else the public header that most files include.
pub fn facade(facts: &Facts) -> Option<Entrypoint> {
    let files = sources(facts);
    let name: String = paths::words(&describe::name(facts)).concat();
    // A folder of what is shared may have a part named so.
    let is_shared = |path: &str| paths::parts(paths::folder(path)).any(|f| SHARED.contains(&f));
    let named = files
        .iter()
        .find(|f| paths::words(stem(&f.path)).concat() == name && !is_shared(&f.path))
        .map(|file| entry(&file.path, "has the name of the project"));
    named.or_else(|| {
        let header = files.iter().find(|f| paths::parts(&f.path).any(|part| part == "include"))?;
        Some(entry(&header.path, "public header that most files include"))
    })
}

/// The files that bear the names of the libraries that manifests make: `Retrofit.java` of
/// `retrofit`, `MockServer.kt` of `project-mock-server`.
pub fn modules(facts: &Facts, manifests: &[Manifest]) -> Vec<Entrypoint> {
    let files = sources(facts);
    let project = paths::words(&describe::name(facts));
    let mut all: Vec<Entrypoint> = Vec::new();
    let named = manifests.iter().filter(|m| !paths::secondary(&m.path)).flat_map(|m| &m.modules);
    for (name, folder) in named {
        let words = paths::words(name);
        let own = words.strip_prefix(project.as_slice()).filter(|rest| !rest.is_empty());
        let mut names = vec![words.concat()];
        names.extend(own.map(<[String]>::concat));
        let inside = |path: &str| {
            let rest = if folder.is_empty() { Some(path) } else { path.strip_prefix(&**folder) };
            rest.is_some_and(|rest| folder.is_empty() || rest.starts_with('/'))
        };
        let is_root = |file: &&&GraphFile| {
            inside(&file.path) && names.contains(&paths::words(stem(&file.path)).concat())
        };
        if let Some(file) = files.iter().find(is_root)
            && all.len() < MAX_MODULES
            && all.iter().all(|known| known.path != file.path)
        {
            all.push(entry(&file.path, &format!("has the name of module {name}")));
        }
    }
    all
}

/// The files of the names that code in the readme uses, in the order in which it does.
pub fn used_in_readme(facts: &Facts) -> Vec<Entrypoint> {
    let readmes = describe::readmes(facts);
    let Some(text) = readmes.first().and_then(|path| facts.text(path)) else { return vec![] };
    let mut names: Vec<&str> = Vec::new();
    for line in code_lines(text) {
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let is_type = word.len() > 2 && word.starts_with(char::is_uppercase);
            if is_type && names.len() < MAX_NAMES && !names.contains(&word) {
                names.push(word);
            }
        }
    }
    let files = sources(facts);
    let file_of = |name: &&str| files.iter().find(|file| stem(&file.path) == *name);
    let found = names.iter().filter_map(file_of).take(MAX_NAMED);
    found.map(|file| entry(&file.path, "code in the readme uses it")).collect()
}

/// Folders of what is shared.
const SHARED: &[&str] = &["common", "internal", "util", "utils", "shared"];

/// The source files of the project's own languages, the most imported first.
fn sources(facts: &Facts) -> Vec<&GraphFile> {
    let languages = Languages::new(facts);
    let is_own =
        |file: &&GraphFile| !paths::secondary(&file.path) && !languages.is_minor(&file.path);
    facts.graph.files.iter().filter(is_own).collect()
}

fn entry(path: &str, reason: &str) -> Entrypoint {
    Entrypoint {
        path: path.to_owned(),
        line: None,
        kind: "library".into(),
        reason: reason.to_owned(),
    }
}

fn stem(path: &str) -> &str {
    let name = paths::file_name(path);
    name.split('.').next().unwrap_or(name)
}

/// The lines of fenced code.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        is_code && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explorer::manifests;

    fn facts_of(name: &str, files: &[(&str, u64)]) -> Facts {
        let mut facts = Facts::new(name.into());
        let file = |(path, bytes): &(&str, u64)| GraphFile {
            path: (*path).to_owned(),
            bytes: *bytes,
            ..GraphFile::default()
        };
        facts.graph.files = files.iter().map(file).collect();
        facts
    }

    #[test]
    fn entrypoints_follow_name_header_and_readme() {
        let readme = "# X\n\nUse `Other`.\n\n```cs\nvar log = new LogConfig().Write(Missing);\nLog.Info();\n```\nSink";
        for (files, want) in [
            (vec!["src/other.rs", "src/deep_copy.rs"], vec!["src/deep_copy.rs"]),
            (vec!["src/a.c", "include/x.h", "include/y.h"], vec!["include/x.h"]),
            (
                vec!["src/Log.cs", "src/LogConfig.cs", "src/Sink.cs", "src/Other.cs"],
                vec!["src/LogConfig.cs", "src/Log.cs"],
            ),
            (vec!["tests/Log.cs", "src/Sink.cs", "common/DeepCopy.cs"], vec![]),
            (vec![], vec![]),
        ] {
            let files: Vec<(&str, u64)> = files.into_iter().map(|path| (path, 100)).collect();
            let mut facts = facts_of("Deep-Copy", &files);
            facts.texts.insert("README.md".into(), readme.into());
            let found = facade(&facts).into_iter().chain(used_in_readme(&facts));
            let found: Vec<String> = found.map(|entry| entry.path).collect();
            assert_eq!(found, want, "{files:?}");
        }
    }

    #[test]
    fn modules_are_entered_at_the_files_of_their_names() {
        let files = [
            ("net/src/Net.kt", 9),
            ("net-mock-server/src/MockServer.kt", 9),
            ("net-mock-server/src/Net.kt", 9),
            ("other/src/Some.kt", 9),
            ("net-test/src/NetTest.kt", 9),
        ];
        let mut facts = facts_of("net", &files);
        for folder in ["net", "net-mock-server", "other", "samples"] {
            facts.texts.insert(format!("{folder}/build.gradle"), "plugins {}".into());
        }
        let found = modules(&facts, &manifests::read_all(&facts));
        let found: Vec<&str> = found.iter().map(|entry| &*entry.path).collect();
        assert_eq!(found, ["net-mock-server/src/MockServer.kt", "net/src/Net.kt"]);
    }

    #[test]
    fn header_of_another_language_is_no_entrypoint() {
        let files = [("lib/include/curl.h", 10), ("src/a.kt", 9_000), ("src/b.kt", 9_000)];
        assert!(facade(&facts_of("x", &files)).is_none());
        let facts = facts_of("x", &files);
        let languages = Languages::new(&facts);
        assert!(languages.is_minor("a.c") && languages.is_minor("a.py"));
        assert!(!languages.is_minor("c.java"));
        assert!(!Languages::new(&Facts::default()).is_minor("c.java"));
    }
}
