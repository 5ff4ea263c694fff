//! Hard links: a file that is blocked or hidden by a rule is so by each of its names.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the fixture serves other tests as well")]

#[path = "it/fixture.rs"]
mod fixture;

use std::fs;

use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Indexes};
use cairn_workspace::{PathPattern, ReadRule, Reading, Roots, Visibility};

use fixture::{build, hybrid, lexical, options, paths, write_file};

/// The files with the word in a grep, and in searches.
fn found(indexes: &Indexes, word: &str) -> [Vec<String>; 3] {
    let grep: GrepParams =
        serde_json::from_value(serde_json::json!({"pattern": word, "k": 100})).unwrap();
    let hits = indexes.grep(&grep, &CancelFlag::new()).unwrap().items;
    let mut grepped: Vec<String> = hits.into_iter().map(|hit| hit.path).collect();
    let search: SearchParams =
        serde_json::from_value(serde_json::json!({"query": word, "k": 20})).unwrap();
    let mut all = [
        std::mem::take(&mut grepped),
        paths(lexical(indexes, &search).items),
        paths(hybrid(indexes, &search).items),
    ];
    all.iter_mut().for_each(|found| {
        found.sort();
        found.dedup();
    });
    all
}

#[test]
fn other_names_of_closed_files_are_in_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap().join("root");
    let keys = dir.path().canonicalize().unwrap().join("keys");
    write_file(&top, "src/open.rs", "fn wombat() {}\n");
    write_file(&top, "private/token.rs", "fn wombat_private() {} // wombat\n");
    write_file(&keys, "id", "fn wombat_key() {} // wombat\n");
    fs::hard_link(top.join("private/token.rs"), top.join("src/second.rs")).unwrap();
    fs::hard_link(keys.join("id"), top.join("src/third.rs")).unwrap();
    fs::hard_link(top.join("src/open.rs"), top.join("src/twin.rs")).unwrap();
    let open = |blocked: Vec<std::path::PathBuf>, hides: bool| {
        let roots = Roots::new(blocked);
        let rule = ReadRule {
            pattern: PathPattern::read("private").unwrap(),
            reading: Reading::Hidden,
            rule: "private".into(),
        };
        let rules = if hides { vec![rule] } else { vec![] };
        roots.set_visibility(Visibility { base: rules.into(), ..Visibility::default() });
        let root = roots.declare(&top).unwrap();
        let index = tempfile::tempdir().unwrap();
        let indexes = Indexes::open(index.path().to_owned(), options(), None);
        let id = root.id.clone();
        indexes.add_root(root).unwrap();
        build(&indexes, &id);
        (roots, indexes, index)
    };
    let (roots, indexes, _index) = open(vec![], false);
    let control =
        ["private/token.rs", "src/open.rs", "src/second.rs", "src/third.rs", "src/twin.rs"];
    assert_eq!(found(&indexes, "wombat")[0], control, "nothing is closed");
    drop(roots);
    let (roots, indexes, _index) = open(vec![keys], true);
    for found in found(&indexes, "wombat") {
        assert_eq!(found, ["src/open.rs", "src/twin.rs"]);
    }
    let symbols = serde_json::from_value(serde_json::json!({"query": "wombat", "k": 20})).unwrap();
    let symbols = indexes.symbols(&symbols).unwrap().items;
    assert!(symbols.iter().all(|s| ["src/open.rs", "src/twin.rs"].contains(&&*s.path)));
    let root = roots.list().remove(0);
    let refused = root.open_file("src/third.rs").unwrap_err();
    assert_eq!(refused.reason(), cairn_protocol::error::Reason::PathBlocked, "{refused}");
    assert!(root.open_file("src/twin.rs").is_ok());
    // Writing replaces one name: the file with the other name stays as it was.
    root.write_file("src/third.rs", b"changed").unwrap();
    root.write_file("src/twin.rs", b"changed").unwrap();
    assert!(fs::read_to_string(dir.path().join("keys/id")).unwrap().contains("wombat_key"));
    assert!(fs::read_to_string(top.join("src/open.rs")).unwrap().contains("wombat"));
}
