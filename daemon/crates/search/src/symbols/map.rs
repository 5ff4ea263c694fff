//! A map of a repository that fits a number of tokens: the files and definitions that the rest of the code, or what is
//! being worked on, refers to most.

use std::fmt::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use super::central::{MAX_HOMES, MIN_NAME, Name, SECONDARY_WEIGHT, page_rank, selectivity, weight};
use super::extract::ident_hash;

/// A definition that a map can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a> {
    /// Its name.
    pub name: &'a str,
    /// `function`, `class`, …
    pub kind: &'a str,
    /// Its first line.
    pub line: u32,
}

/// A file with what it defines and refers to.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Its path in the repository.
    pub path: &'a str,
    /// What it defines.
    pub definitions: Vec<Definition<'a>>,
    /// Hashes of its identifiers ([`ident_hash`]).
    pub references: &'a [u32],
}

/// What the map is wanted for; empty for a map of the whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Focus<'a> {
    /// Files that are being worked on.
    pub files: &'a [&'a str],
    /// Names that were asked for.
    pub names: &'a [&'a str],
}

/// A file of the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped<'a> {
    /// Its place among the sources.
    pub source: usize,
    /// Its path.
    pub path: &'a str,
    /// Its part of all attention.
    pub score: f64,
    /// Its definitions that fit, by line.
    pub definitions: Vec<Definition<'a>>,
}

/// Part of the attention that goes to the focus; the rest is spread over all files.
const FOCUSED: f64 = 0.8;
/// How much more a reference to a name that was asked for counts.
const ASKED: f64 = 10.0;
/// What a definition that nobody refers to counts, beside one reference from a file of average rank.
const UNUSED: f64 = 0.01;

/// The best files and definitions for `focus` that fit `budget` tokens, best file first. [`cost`] says what each path
/// takes, [`price`] what each definition.
pub fn repo_map<'a>(sources: &'a [Source<'a>], focus: &Focus<'_>, budget: usize) -> Vec<Mapped<'a>> {
    let names = names_of(sources, focus);
    let ranks = page_rank(&names, &base(sources, focus));
    let mut chosen: FxHashMap<usize, Vec<Definition<'a>>> = FxHashMap::default();
    let mut left = budget;
    for (_, file, definition) in by_worth(sources, &names, &ranks, focus) {
        let path = if chosen.contains_key(&file) { 0 } else { cost(sources[file].path) };
        let price = path + price(&definition);
        // A long name that does not fit leaves room for a shorter one.
        if price <= left {
            left -= price;
            chosen.entry(file).or_default().push(definition);
        }
        if left < 3 {
            break;
        }
    }
    let mut map: Vec<Mapped<'a>> = chosen
        .into_iter()
        .map(|(file, mut definitions)| {
            definitions.sort_by_key(|d| d.line);
            Mapped { source: file, path: sources[file].path, score: ranks[file], definitions }
        })
        .collect();
    map.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(b.path)));
    map
}

/// Tokens that a text takes about: one for four bytes, and one for what sets it apart.
pub fn cost(text: &str) -> usize {
    text.len().div_ceil(4) + 1
}

/// Tokens that a definition takes, with its line.
pub fn price(definition: &Definition<'_>) -> usize {
    // Four digits are among what sets a name apart.
    cost(definition.kind) + cost(definition.name) + usize::from(definition.line > 9999)
}

/// A map as text: a line for each file and, set in, one for each definition. Four bytes a token, it takes no more than
/// the budget it was made for.
pub fn text(map: &[Mapped<'_>]) -> String {
    // A name with a line break in it begins no line of its own.
    let one_line = |name: &str| name.replace(char::is_control, "?");
    let mut out = String::new();
    for file in map {
        let _infallible = writeln!(out, "{}", one_line(file.path));
        for definition in &file.definitions {
            let Definition { line, kind, name } = *definition;
            let _infallible = writeln!(out, " {line} {kind} {}", one_line(name));
        }
    }
    out
}

/// Whether a mention of its name may mean it. Modules and headings are named like what they hold.
fn counts(definition: &Definition<'_>) -> bool {
    definition.name.len() >= MIN_NAME && !matches!(definition.kind, "module" | "section")
}

fn names_of(sources: &[Source<'_>], focus: &Focus<'_>) -> FxHashMap<u32, Name> {
    let asked: FxHashSet<u32> = focus.names.iter().map(|n| ident_hash(n.as_bytes())).collect();
    let mut names: FxHashMap<u32, Name> = FxHashMap::default();
    for (source, file) in sources.iter().zip(0..) {
        for definition in source.definitions.iter().filter(|d| counts(d)) {
            let hash = ident_hash(definition.name.as_bytes());
            let name = names.entry(hash).or_insert_with(|| Name {
                text: definition.name.to_owned(),
                homes: Vec::new(),
                users: Vec::new(),
                factor: if asked.contains(&hash) { ASKED } else { 1.0 },
            });
            if name.homes.last() != Some(&file) {
                name.homes.push(file);
            }
        }
    }
    names.retain(|_, n| n.homes.len() <= MAX_HOMES);
    let mut own: FxHashSet<u32> = FxHashSet::default();
    for (source, file) in sources.iter().zip(0..) {
        // What a file defines itself, of whatever kind, it means when it names it.
        own.clear();
        own.extend(source.definitions.iter().map(|d| ident_hash(d.name.as_bytes())));
        for hash in source.references.iter().filter(|hash| !own.contains(hash)) {
            if let Some(name) = names.get_mut(hash) {
                name.users.push(file);
            }
        }
    }
    names
}

/// What each file has of its own: the focus most of it, when there is one.
fn base(sources: &[Source<'_>], focus: &Focus<'_>) -> Vec<f64> {
    let mut base: Vec<f64> = sources
        .iter()
        .map(|s| if crate::rank::is_secondary(s.path) { SECONDARY_WEIGHT } else { 1.0 })
        .collect();
    let in_focus = |s: &Source<'_>| {
        focus.files.contains(&s.path) || s.definitions.iter().any(|d| focus.names.contains(&d.name))
    };
    let focused: Vec<usize> = (0..sources.len()).filter(|i| in_focus(&sources[*i])).collect();
    let all: f64 = base.iter().sum();
    let more = all * FOCUSED / (1.0 - FOCUSED) / focused.len().max(1) as f64;
    focused.into_iter().for_each(|i| base[i] += more);
    base
}

/// All definitions with their files, those first that get most of the attention of the files that refer to them.
fn by_worth<'a>(
    sources: &'a [Source<'a>],
    names: &FxHashMap<u32, Name>,
    ranks: &[f64],
    focus: &Focus<'_>,
) -> Vec<(f64, usize, Definition<'a>)> {
    let files = sources.len();
    // What a file says to others is split among all it says.
    let mut said = vec![0f64; files];
    for name in names.values() {
        name.users.iter().for_each(|u| said[*u as usize] += weight(name, files));
    }
    let worth = |name: &Name| -> f64 {
        let each = weight(name, files);
        let from = |u: &u32| ranks[*u as usize] * each / said[*u as usize].max(f64::MIN_POSITIVE);
        // A file that names hardly anything of this project says no more by that of what it names.
        selectivity(&name.text) * name.users.iter().map(from).sum::<f64>() / name.homes.len().max(1) as f64
    };
    let worths: FxHashMap<u32, f64> = names.iter().map(|(hash, n)| (*hash, worth(n))).collect();
    let mut all: Vec<(f64, usize, Definition<'a>)> = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        for definition in &source.definitions {
            let hash = ident_hash(definition.name.as_bytes());
            let used = worths.get(&hash).filter(|_| counts(definition)).copied().unwrap_or(0.0);
            let own = UNUSED * ranks[file] / source.definitions.len() as f64;
            // What was asked for comes first, used or not.
            let asked = f64::from(counts(definition) && focus.names.contains(&definition.name)) * ASKED;
            all.push((asked + used + own, file, *definition));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.line.cmp(&b.2.line)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small repository: a log that all use, a parser that only the server uses, and a test.
    fn repository(hashes: &[Vec<u32>]) -> Vec<Source<'_>> {
        let define = |names: &[(&'static str, u32)]| {
            names.iter().map(|(name, line)| Definition { name, kind: "function", line: *line }).collect()
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
            Source { path: "src/main.rs", definitions: define(&[("main", 1)]), references: &hashes[3] },
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

    fn shown(map: &[Mapped<'_>]) -> Vec<String> {
        let names = |m: &Mapped<'_>| m.definitions.iter().map(|d| d.name).collect::<Vec<_>>().join(" ");
        map.iter().map(|m| format!("{}: {}", m.path, names(m))).collect()
    }

    #[test]
    fn what_all_refer_to_comes_first() {
        let references = references();
        let sources = repository(&references);
        let map = repo_map(&sources, &Focus::default(), 1000);
        assert_eq!(shown(&map)[0], "src/log.rs: append_record unused_helper");
        assert_eq!(map.len(), sources.len(), "{map:?}");
        assert_eq!(shown(&repo_map(&sources, &Focus::default(), 13)), ["src/log.rs: append_record"]);
        assert!(repo_map(&sources, &Focus::default(), 2).is_empty());
        assert!(repo_map(&[], &Focus::default(), 100).is_empty());
    }

    #[test]
    fn the_focus_draws_what_it_refers_to() {
        let references = references();
        let sources = repository(&references);
        let of = |focus: Focus<'_>, budget| shown(&repo_map(&sources, &focus, budget));
        let rank = |focus: Focus<'_>, path: &str| {
            repo_map(&sources, &focus, 1000).into_iter().find(|m| m.path == path).unwrap().score
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
        let asked = Focus { files: &[], names: &["parse_header"] };
        assert_eq!(of(asked, 14), ["src/parse.rs: parse_header"]);
    }

    #[test]
    fn what_a_file_defines_itself_is_meant_there() {
        // A function that is called like a module in other files.
        let tests = [ident_hash(b"log_tests")];
        let module = |path| Source {
            path,
            definitions: vec![Definition { name: "log_tests", kind: "module", line: 9 }],
            references: &tests,
        };
        let home = Source {
            path: "commands.rs",
            definitions: vec![Definition { name: "log_tests", kind: "function", line: 1 }],
            references: &[],
        };
        let user = Source { path: "user.rs", definitions: Vec::new(), references: &tests };
        let sources = [module("a.rs"), module("b.rs"), home, user];
        let names = names_of(&sources, &Focus::default());
        assert_eq!(names[&tests[0]].users, [3]);
        let ranks = page_rank(&names, &base(&sources, &Focus::default()));
        let first = by_worth(&sources, &names, &ranks, &Focus::default());
        assert!(first[0].1 == 2 && first[1].0 < first[0].0 / 10.0, "{first:?}");
        // Nor is a module what was asked for.
        let asked = Focus { files: &[], names: &["log_tests"] };
        assert_eq!(shown(&repo_map(&sources, &asked, 11)), ["commands.rs: log_tests"]);
    }

    #[test]
    fn high_lines_are_paid_for() {
        for line in [1, 9_999, 10_000, u32::MAX / 100] {
            let definition = Definition { name: "ab", kind: "type", line };
            let map = [Mapped { source: 0, path: "abc", score: 0.0, definitions: vec![definition] }];
            assert!(text(&map).len() <= 4 * (cost("abc") + price(&definition)), "{line}");
        }
        let map = [Mapped { source: 0, path: "a\nb.rs", score: 0.0, definitions: Vec::new() }];
        assert_eq!(text(&map), "a?b.rs\n");
    }

    #[test]
    fn a_map_never_costs_more_than_its_budget() {
        let references = references();
        let sources = repository(&references);
        for budget in 0..120 {
            let map = repo_map(&sources, &Focus::default(), budget);
            let of = |m: &Mapped<'_>| {
                let inner: usize = m.definitions.iter().map(price).sum();
                cost(m.path) + inner
            };
            assert!(map.iter().map(of).sum::<usize>() <= budget, "{budget}");
            assert!(text(&map).len().div_ceil(4) <= budget, "{budget}");
        }
    }
}
