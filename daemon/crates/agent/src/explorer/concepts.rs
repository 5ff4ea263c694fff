//! Names that a newcomer meets in many files, with their definitions.

use cairn_protocol::{explore::Concept, search::SymbolItem};

use super::{components, facts::Facts, library, paths};

/// Most concepts of a summary.
const MAX: usize = 10;
/// Most names whose definitions are looked up.
const LOOK_UPS: usize = 16;
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
    let languages = library::Languages::new(facts);
    let is_own = |path: &str| {
        !paths::secondary(path) && !languages.is_minor(path) && !components::is_tool(path)
    };
    let files = facts.ranking.iter().filter(|file| is_own(&file.path)).take(FILES);
    for file in files {
        let is_name = |name: &&String| {
            name.len() >= MIN_NAME && !name.contains(['(', ' ']) && !is_common(name)
        };
        for name in file.symbols.iter().filter(is_name).take(NAMES) {
            if names.iter().all(|(known, ..)| known != name) {
                names.push((name, &file.path, file.referring_files));
            }
        }
    }
    names.sort_by_key(|(name, _, files)| (!is_type(name), std::cmp::Reverse(*files)));
    names.truncate(LOOK_UPS);
    names
}

/// Kinds of definitions that are types.
const TYPES: &[&str] = &[
    "struct",
    "class",
    "interface",
    "trait",
    "enum",
    "type",
    "protocol",
    "module",
    "union",
    "object",
];

/// True for the spelling of a type: capitalised, and no constant.
fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}

/// True for a name that many things have.
fn is_common(name: &str) -> bool {
    const COMMON: &[&str] = &[
        "Count",
        "Empty",
        "Length",
        "Size",
        "String",
        "Println",
        "Errorf",
        "Error",
        "Value",
        "Name",
        "Type",
        "HasPrefix",
        "ToLower",
        "Exception",
        "main",
        "toString",
        "equals",
        "hashCode",
    ];
    COMMON.contains(&name)
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
    // Types tell more than functions, in any spelling.
    all.sort_by_key(|concept| (!TYPES.contains(&&*concept.kind), std::cmp::Reverse(concept.files)));
    all.truncate(MAX);
    all.sort_by(|a, b| b.files.cmp(&a.files).then(a.name.cmp(&b.name)));
    all
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{explore::TopFile, id::RootId};

    use super::*;

    fn file(path: &str, files: u32, symbols: &[&str]) -> TopFile {
        TopFile {
            path: path.into(),
            score: 0.1,
            referring_files: files,
            symbols: symbols.iter().map(|name| (*name).to_owned()).collect(),
            reason: String::new(),
        }
    }

    fn item(name: &str, path: &str, line: u32) -> SymbolItem {
        SymbolItem {
            name: name.into(),
            kind: "struct".into(),
            container: None,
            path: path.into(),
            root: RootId("r".into()),
            start_line: line,
            end_line: line,
            lang: "rust".into(),
            score: 1.0,
        }
    }

    #[test]
    fn types_come_before_functions() {
        let ranking = vec![
            file("src/a.rs", 3, &["run_all", "Store", "Third"]),
            file("src/b.rs", 9, &["Index", "Store", "abc"]),
            file("tests/c.rs", 99, &["Helper"]),
            file("src/d.rs", 50, &["call(x)", "two words", "start_it"]),
        ];
        let facts = Facts { ranking, ..Facts::default() };
        let found: Vec<&str> = names(&facts).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(found, ["Index", "Store", "start_it", "run_all"]);
    }

    #[test]
    fn definitions_are_those_of_the_file() {
        assert!(find(&Facts::default()).is_empty());
        let ranking = vec![
            file("src/a.rs", 3, &["Store"]),
            file("src/b.rs", 9, &["Index"]),
            file("src/c.rs", 1, &["Missing"]),
            file("src/d.rs", 1, &["Unknown"]),
        ];
        let mut facts = Facts { ranking, ..Facts::default() };
        let stores = vec![item("Store", "src/x.rs", 1), item("Store", "src/a.rs", 7)];
        facts.definitions.insert("Store".into(), stores);
        facts.definitions.insert("Index".into(), vec![item("Index", "src/y.rs", 2)]);
        facts.definitions.insert("Missing".into(), vec![]);
        let found = find(&facts);
        let locations: Vec<(&str, &str, u32)> =
            found.iter().map(|c| (&*c.name, &*c.path, c.line)).collect();
        assert_eq!(locations, [("Index", "src/y.rs", 2), ("Store", "src/a.rs", 7)]);
    }

    #[test]
    fn concepts_are_limited() {
        let files = (0..200).map(|n| file(&format!("src/f{n}.rs"), n, &[&format!("Type{n}")]));
        let facts = Facts { ranking: files.collect(), ..Facts::default() };
        assert_eq!(names(&facts).len(), LOOK_UPS);
    }
}
