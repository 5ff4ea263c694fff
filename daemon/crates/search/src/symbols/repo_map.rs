//! A map of a repository within a token budget: the files and definitions that the rest of the
//! code, or the files in focus, refer to most.

use std::fmt::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use super::centrality::{
    DefinedName, Links, MAX_DEFINING_FILES, MIN_NAME, SECONDARY_WEIGHT, page_rank, selectivity,
    weight,
};
use cairn_symbols::extract::ident_hash;

/// A definition that a map can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    /// First line of the definition.
    pub line: u32,
}

/// A file with its definitions and references.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Path relative to the root.
    pub path: &'a str,
    pub definitions: Vec<Definition<'a>>,
    /// Hashes of its identifiers ([`ident_hash`]).
    pub references: &'a [u32],
}

/// The focus of a map; empty for a map of the entire repository.
#[derive(Debug, Clone, Copy, Default)]
pub struct Focus<'a> {
    pub files: &'a [&'a str],
    pub names: &'a [&'a str],
}

/// A file of the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapEntry<'a> {
    /// Position among the sources.
    pub source: usize,
    pub path: &'a str,
    /// Share of the total rank, reduced for a secondary file.
    pub score: f64,
    /// The definitions that fit the budget, ordered by line.
    pub definitions: Vec<Listed<'a>>,
}

/// A definition of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<'a> {
    pub definition: Definition<'a>,
    /// Its first lines without the body, on one line, if they fit the budget.
    pub signature: Option<String>,
}

impl Listed<'_> {
    /// The line of the map without its number.
    fn label(&self) -> String {
        // A line break in a name must not start a new line.
        let one_line = |text: &str| text.replace(char::is_control, "?");
        match &self.signature {
            Some(signature) => one_line(signature),
            None => one_line(&format!("{} {}", self.definition.kind, self.definition.name)),
        }
    }
}

/// Share of the base rank that the focus receives; the remainder is distributed over all files.
const FOCUS_SHARE: f64 = 0.8;
/// Factor of references to requested names.
const REQUESTED_FACTOR: f64 = 10.0;
/// Value of an unreferenced definition, relative to one reference from a file of average rank.
const UNREFERENCED: f64 = 0.01;

/// The best files and definitions for `focus` within `budget` tokens, best file first.
/// [`text_tokens`] is the cost of a path, [`definition_tokens`] that of a definition without its
/// signature. `links` are what the sources see of each other, in their order. `signature` is asked
/// once for each definition of the map, with the position of its source.
pub fn repo_map<'a>(
    sources: &'a [Source<'a>],
    focus: &Focus<'_>,
    links: &Links,
    budget: usize,
    mut signature: impl FnMut(usize, &Definition<'a>) -> Option<String>,
) -> Vec<MapEntry<'a>> {
    let names = collect_names(sources, focus, links);
    let ranks = page_rank(&names, &base(sources, focus), links);
    let shares = shares(sources, focus);
    let mut chosen: FxHashMap<usize, Vec<Listed<'a>>> = FxHashMap::default();
    let mut remaining = budget;
    for (_, file, definition) in rank_definitions(sources, &names, &ranks, &shares, focus) {
        // A type and its alias, or the branches of a condition: one line names them.
        let is_repeated = |other: &Listed<'_>| {
            other.definition.name == definition.name && !focus.names.contains(&definition.name)
        };
        if chosen.get(&file).is_some_and(|listed| listed.iter().any(is_repeated)) {
            continue;
        }
        let path = if chosen.contains_key(&file) { 0 } else { text_tokens(sources[file].path) };
        let least = path + definition_tokens(&definition);
        // If a long name does not fit, a shorter one may.
        if least <= remaining {
            let signed = signature(file, &definition)
                .map(|text| (path + signature_tokens(&text, definition.line), text))
                .filter(|(tokens, _)| *tokens <= remaining);
            remaining -= signed.as_ref().map_or(least, |(tokens, _)| *tokens);
            let signature = signed.map(|(_, text)| text);
            chosen.entry(file).or_default().push(Listed { definition, signature });
        }
        if remaining < 3 {
            break;
        }
    }
    let scores: Vec<f64> = ranks.iter().zip(&shares).map(|(rank, share)| rank * share).collect();
    if chosen.values().flatten().all(|listed| listed.definition.kind == "section") {
        add_files(sources, &scores, remaining, &mut chosen);
    }
    let mut map: Vec<MapEntry<'a>> = chosen
        .into_iter()
        .map(|(file, mut definitions)| {
            definitions.sort_by_key(|listed| listed.definition.line);
            MapEntry { source: file, path: sources[file].path, score: scores[file], definitions }
        })
        .collect();
    map.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(b.path)));
    map
}

/// Adds files without definitions by score: in a repository of languages without a grammar they are
/// all that a map can name.
fn add_files<'a>(
    sources: &'a [Source<'a>],
    scores: &[f64],
    mut remaining: usize,
    chosen: &mut FxHashMap<usize, Vec<Listed<'a>>>,
) {
    let mut files: Vec<usize> = (0..sources.len()).filter(|at| !chosen.contains_key(at)).collect();
    files.sort_by(|a, b| {
        scores[*b].total_cmp(&scores[*a]).then_with(|| sources[*a].path.cmp(sources[*b].path))
    });
    for file in files {
        let tokens = text_tokens(sources[file].path);
        if tokens <= remaining {
            remaining -= tokens;
            chosen.insert(file, Vec::new());
        }
    }
}

/// Estimated tokens of a text: one per four bytes, and one for its separator.
pub fn text_tokens(text: &str) -> usize {
    text.len().div_ceil(4) + 1
}

/// Estimated tokens of a definition including its line number.
pub fn definition_tokens(definition: &Definition<'_>) -> usize {
    // The separator's token covers line numbers of up to four digits.
    text_tokens(definition.kind)
        + text_tokens(definition.name)
        + usize::from(definition.line > 9999)
}

/// Estimated tokens of a signature including its line number.
fn signature_tokens(text: &str, line: u32) -> usize {
    // A token covers line numbers of up to three digits.
    text_tokens(text) + 1 + usize::from(line > 999)
}

/// Renders a map with one line per file and an indented line per definition. At four bytes per
/// token, the text does not exceed the budget of the map.
pub fn text(map: &[MapEntry<'_>]) -> String {
    let mut out = String::new();
    for file in map {
        let _infallible = writeln!(out, "{}", file.path.replace(char::is_control, "?"));
        for listed in &file.definitions {
            let _infallible = writeln!(out, " {} {}", listed.definition.line, listed.label());
        }
    }
    out
}

/// True if references to the name may mean the definition. Modules and headings are named after
/// their contents.
fn is_referable(definition: &Definition<'_>) -> bool {
    definition.name.len() >= MIN_NAME && !matches!(definition.kind, "module" | "section")
}

fn collect_names(
    sources: &[Source<'_>],
    focus: &Focus<'_>,
    links: &Links,
) -> FxHashMap<u32, DefinedName> {
    let requested: FxHashSet<u32> = focus.names.iter().map(|n| ident_hash(n.as_bytes())).collect();
    let mut names: FxHashMap<u32, DefinedName> = FxHashMap::default();
    for (source, file) in sources.iter().zip(0..) {
        for definition in source.definitions.iter().filter(|d| is_referable(d)) {
            let hash = ident_hash(definition.name.as_bytes());
            let name = names.entry(hash).or_insert_with(|| DefinedName {
                text: definition.name.to_owned(),
                defining_files: Vec::new(),
                referring_files: Vec::new(),
                strengths: Vec::new(),
                factor: if requested.contains(&hash) { REQUESTED_FACTOR } else { 1.0 },
            });
            if name.defining_files.last() != Some(&file) {
                name.defining_files.push(file);
            }
        }
    }
    names.retain(|_, n| n.defining_files.len() <= MAX_DEFINING_FILES);
    let mut own_names: FxHashSet<u32> = FxHashSet::default();
    for (source, file) in sources.iter().zip(0..) {
        // References to names that the file itself defines, of any kind, mean its own definitions.
        own_names.clear();
        own_names.extend(source.definitions.iter().map(|d| ident_hash(d.name.as_bytes())));
        for hash in source.references.iter().filter(|hash| !own_names.contains(hash)) {
            if let Some(name) = names.get_mut(hash) {
                name.refer(file, links);
            }
        }
    }
    names
}

/// True for a file that the focus names, or that defines a name of the focus.
fn is_in_focus(source: &Source<'_>, focus: &Focus<'_>) -> bool {
    focus.files.contains(&source.path)
        || source.definitions.iter().any(|d| focus.names.contains(&d.name))
}

/// The share of its rank with which each file competes for the map. Vendored libraries refer to
/// themselves so much that a lower base rank alone leaves them above the code that uses them.
fn shares(sources: &[Source<'_>], focus: &Focus<'_>) -> Vec<f64> {
    let is_reduced = |s: &Source<'_>| crate::rank::is_secondary(s.path) && !is_in_focus(s, focus);
    sources.iter().map(|s| if is_reduced(s) { SECONDARY_WEIGHT } else { 1.0 }).collect()
}

/// The base rank of each file; most of it goes to the focus if there is one.
fn base(sources: &[Source<'_>], focus: &Focus<'_>) -> Vec<f64> {
    let mut base: Vec<f64> = sources
        .iter()
        .map(|s| if crate::rank::is_secondary(s.path) { SECONDARY_WEIGHT } else { 1.0 })
        .collect();
    let in_focus_files: Vec<usize> =
        (0..sources.len()).filter(|i| is_in_focus(&sources[*i], focus)).collect();
    let all: f64 = base.iter().sum();
    let boost = all * FOCUS_SHARE / (1.0 - FOCUS_SHARE) / in_focus_files.len().max(1) as f64;
    in_focus_files.into_iter().for_each(|i| base[i] += boost);
    base
}

/// All definitions with their files, ordered by the rank that their referring files pass on to
/// them.
fn rank_definitions<'a>(
    sources: &'a [Source<'a>],
    names: &FxHashMap<u32, DefinedName>,
    ranks: &[f64],
    shares: &[f64],
    focus: &Focus<'_>,
) -> Vec<(f64, usize, Definition<'a>)> {
    let files = sources.len();
    // The rank of a file is split among all its references.
    let mut total_weight = vec![0f64; files];
    for name in names.values() {
        name.referring_files.iter().for_each(|u| total_weight[*u as usize] += weight(name, files));
    }
    let value = |name: &DefinedName| -> f64 {
        let each = weight(name, files);
        let from = |(u, strength): (&u32, &f64)| {
            ranks[*u as usize] * each * strength / total_weight[*u as usize].max(f64::MIN_POSITIVE)
        };
        let referrers = name.referring_files.iter().zip(&name.strengths);
        // Selectivity limits files with few references, which would pass all their rank on to a
        // common name.
        selectivity(&name.text) * referrers.map(from).sum::<f64>()
            / name.defining_files.len().max(1) as f64
    };
    let values: FxHashMap<u32, f64> = names.iter().map(|(hash, n)| (*hash, value(n))).collect();
    let mut all: Vec<(f64, usize, Definition<'a>)> = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        for definition in &source.definitions {
            let hash = ident_hash(definition.name.as_bytes());
            let used =
                values.get(&hash).filter(|_| is_referable(definition)).copied().unwrap_or(0.0);
            let base = UNREFERENCED * ranks[file] / source.definitions.len() as f64;
            // Requested definitions come first, referenced or not.
            let requested =
                f64::from(is_referable(definition) && focus.names.contains(&definition.name))
                    * REQUESTED_FACTOR;
            all.push((requested + (used + base) * shares[file], file, *definition));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.line.cmp(&b.2.line)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned<'a>(
        sources: &'a [Source<'a>],
        focus: &Focus<'_>,
        links: &Links,
        budget: usize,
    ) -> Vec<MapEntry<'a>> {
        repo_map(sources, focus, links, budget, |_, _| None)
    }

    /// A small repository: a log that all files use, a parser that only the server uses, and a
    /// test.
    fn repository(hashes: &[Vec<u32>]) -> Vec<Source<'_>> {
        let define = |names: &[(&'static str, u32)]| {
            names
                .iter()
                .map(|(name, line)| Definition { name, kind: "function", line: *line })
                .collect()
        };
        vec![
            Source {
                path: "src/log.rs",
                definitions: define(&[("append_record", 1), ("unused_helper", 9)]),
                references: &hashes[0],
            },
            Source {
                path: "src/parse.rs",
                definitions: define(&[("parse_header", 3)]),
                references: &hashes[1],
            },
            Source {
                path: "src/server.rs",
                definitions: define(&[("serve_requests", 5)]),
                references: &hashes[2],
            },
            Source {
                path: "src/main.rs",
                definitions: define(&[("main", 1)]),
                references: &hashes[3],
            },
            Source {
                path: "tests/log_test.rs",
                definitions: define(&[("log_grows", 1)]),
                references: &hashes[4],
            },
        ]
    }

    fn references() -> Vec<Vec<u32>> {
        [
            &["file_write"][..],
            &["append_record"],
            &["append_record", "parse_header"],
            &["append_record", "serve_requests"],
            &["append_record"],
        ]
        .iter()
        .map(|all| all.iter().map(|n| ident_hash(n.as_bytes())).collect())
        .collect()
    }

    fn lines_of(map: &[MapEntry<'_>]) -> Vec<String> {
        let names = |m: &MapEntry<'_>| {
            m.definitions.iter().map(|d| d.definition.name).collect::<Vec<_>>().join(" ")
        };
        map.iter().map(|m| format!("{}: {}", m.path, names(m))).collect()
    }

    #[test]
    fn most_referenced_file_comes_first() {
        let references = references();
        let sources = repository(&references);
        let map = unsigned(&sources, &Focus::default(), &Links::default(), 1000);
        assert_eq!(lines_of(&map)[0], "src/log.rs: append_record unused_helper");
        assert_eq!(map.len(), sources.len(), "{map:?}");
        assert_eq!(
            lines_of(&unsigned(&sources, &Focus::default(), &Links::default(), 13)),
            ["src/log.rs: append_record"]
        );
        assert!(unsigned(&sources, &Focus::default(), &Links::default(), 2).is_empty());
        assert!(unsigned(&[], &Focus::default(), &Links::default(), 100).is_empty());
    }

    #[test]
    fn vendored_library_follows_the_code_that_uses_it() {
        let hashes = |names: &[&str]| -> Vec<u32> {
            names.iter().map(|name| ident_hash(name.as_bytes())).collect()
        };
        let allocate = hashes(&["arena_allocate"]);
        let lookup = hashes(&["arena_allocate", "lookup_key"]);
        let define = |name: &'static str| vec![Definition { name, kind: "function", line: 1 }];
        let source = |path, definitions, references| Source { path, definitions, references };
        let sources = [
            source("deps/alloc/arena.h", define("arena_allocate"), &[]),
            source("deps/alloc/tcache.c", define("tcache_fill"), &allocate),
            source("deps/alloc/extent.c", define("extent_split"), &allocate),
            source("src/db.c", define("lookup_key"), &allocate),
            source("src/get.c", define("get_command"), &lookup),
        ];
        let map = |focus| lines_of(&unsigned(&sources, &focus, &Links::default(), 1000));
        let files = map(Focus::default());
        assert_eq!(files[0], "src/db.c: lookup_key", "{files:?}");
        assert!(files.iter().any(|file| file.starts_with("deps/alloc/arena.h")), "{files:?}");
        let focused = map(Focus { files: &["deps/alloc/arena.h"], names: &[] });
        assert_eq!(focused[0], "deps/alloc/arena.h: arena_allocate");
        let first = &unsigned(&sources, &Focus::default(), &Links::default(), 12)[0];
        assert_eq!(first.definitions[0].definition.name, "lookup_key");
    }

    #[test]
    fn focus_raises_the_files_it_refers_to() {
        let references = references();
        let sources = repository(&references);
        let of = |focus: Focus<'_>, budget| {
            lines_of(&unsigned(&sources, &focus, &Links::default(), budget))
        };
        let rank = |focus: Focus<'_>, path: &str| {
            unsigned(&sources, &focus, &Links::default(), 1000)
                .into_iter()
                .find(|m| m.path == path)
                .unwrap()
                .score
        };
        let server = Focus { files: &["src/server.rs"], names: &[] };
        let beside_log = |focus| rank(focus, "src/parse.rs") / rank(focus, "src/log.rs");
        assert!(beside_log(server) > 1.2 * beside_log(Focus::default()));
        assert!(of(server, 1000)[0].starts_with("src/server.rs"));
        assert!(
            of(server, 60).iter().any(|m| m.starts_with("src/parse.rs: parse_header")),
            "{:?}",
            of(server, 60)
        );
        let requested = Focus { files: &[], names: &["parse_header"] };
        assert_eq!(of(requested, 14), ["src/parse.rs: parse_header"]);
    }

    #[test]
    fn references_to_own_definitions_do_not_count() {
        // A function with the same name as a module in other files.
        let tests = [ident_hash(b"log_tests")];
        let module = |path| Source {
            path,
            definitions: vec![Definition { name: "log_tests", kind: "module", line: 9 }],
            references: &tests,
        };
        let definer = Source {
            path: "commands.rs",
            definitions: vec![Definition { name: "log_tests", kind: "function", line: 1 }],
            references: &[],
        };
        let referrer = Source { path: "user.rs", definitions: Vec::new(), references: &tests };
        let sources = [module("a.rs"), module("b.rs"), definer, referrer];
        let names = collect_names(&sources, &Focus::default(), &Links::default());
        assert_eq!(names[&tests[0]].referring_files, [3]);
        let ranks = page_rank(&names, &base(&sources, &Focus::default()), &Links::default());
        let shares = shares(&sources, &Focus::default());
        let first = rank_definitions(&sources, &names, &ranks, &shares, &Focus::default());
        assert!(first[0].1 == 2 && first[1].0 < first[0].0 / 10.0, "{first:?}");
        // A requested name does not mean a module.
        let requested = Focus { files: &[], names: &["log_tests"] };
        assert_eq!(
            lines_of(&unsigned(&sources, &requested, &Links::default(), 11)),
            ["commands.rs: log_tests"]
        );
    }

    #[test]
    fn long_line_numbers_are_within_the_estimate() {
        for line in [1, 9_999, 10_000, u32::MAX / 100] {
            let definition = Definition { name: "ab", kind: "type", line };
            let map = [MapEntry {
                source: 0,
                path: "abc",
                score: 0.0,
                definitions: vec![Listed { definition, signature: None }],
            }];
            assert!(
                text(&map).len() <= 4 * (text_tokens("abc") + definition_tokens(&definition)),
                "{line}"
            );
        }
        let map = [MapEntry { source: 0, path: "a\nb.rs", score: 0.0, definitions: Vec::new() }];
        assert_eq!(text(&map), "a?b.rs\n");
    }

    #[test]
    fn map_never_exceeds_its_budget() {
        let references = references();
        let sources = repository(&references);
        for budget in 0..120 {
            let map = unsigned(&sources, &Focus::default(), &Links::default(), budget);
            let of = |m: &MapEntry<'_>| {
                let inner: usize =
                    m.definitions.iter().map(|d| definition_tokens(&d.definition)).sum();
                text_tokens(m.path) + inner
            };
            assert!(map.iter().map(of).sum::<usize>() <= budget, "{budget}");
            assert!(text(&map).len().div_ceil(4) <= budget, "{budget}");
        }
    }

    #[test]
    fn signatures_are_within_the_budget_and_read_once() {
        let references = references();
        let sources = repository(&references);
        for budget in 0..200 {
            let mut read = Vec::new();
            let map = repo_map(&sources, &Focus::default(), &Links::default(), budget, |at, d| {
                read.push((at, d.name));
                Some(format!("pub async fn {}(first: &str, second: &[u8]) -> Result", d.name))
            });
            assert!(text(&map).len().div_ceil(4) <= budget, "{budget}");
            let listed: usize = map.iter().map(|entry| entry.definitions.len()).sum();
            assert_eq!(read.len(), listed, "{budget}");
        }
        let sign = |_: usize, d: &Definition<'_>| Some(format!("fn {}()\nx", d.name));
        let map = repo_map(&sources, &Focus::default(), &Links::default(), 1000, sign);
        assert!(text(&map).starts_with("src/log.rs\n 1 fn append_record()?x\n"), "{}", text(&map));
    }
}
