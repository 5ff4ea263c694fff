//! Roots with equal content that share an index. Git makes the work trees and clones; the judge of
//! every answer is an index that shares nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cairn_protocol::id::RootId;
use cairn_protocol::search::{GrepParams, SearchItem, SearchParams, SymbolsParams};
use cairn_search::{CancelFlag, IndexOptions, Indexes};
use cairn_workspace::Roots;

use crate::fixture::{build_and_verify, hybrid, lexical, options, write_file};

const QUERIES: [&str; 6] =
    ["parse_header_7", "value of body", "write the header", "fresh_name", "helper 12", "Reader"];

fn sharing_options() -> IndexOptions {
    let mut options = options();
    options.min_shared_files = 1;
    options
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with `count` files that differ from each other.
fn repository(top: &Path, count: usize) {
    fs::create_dir_all(top).unwrap();
    for n in 0..count {
        let text = format!(
            "pub struct Reader{n};\n\nimpl Reader{n} {{\n    pub fn parse_header_{n}(&self, body: &str) -> usize {{\n        \
             helper_{n}(body) + {n}\n    }}\n}}\n\npub fn helper_{n}(value: &str) -> usize {{\n    value.len() * {n}\n}}\n"
        );
        write_file(top, &format!("src/part{}/file{n}.rs", n % 7), text);
    }
    write_file(top, "src/binary.bin", [0u8, 1, 2, 3]);
    write_file(top, "README.md", "# Readers\n\nThey parse the header and write the body.\n");
    git(top, &["init", "--quiet"]);
    git(top, &["add", "."]);
    git(top, &["commit", "--quiet", "-m", "first"]);
    // Git records the time of a file only if it is older than its index.
    std::thread::sleep(Duration::from_millis(20));
    git(top, &["update-index", "--refresh"]);
    git(top, &["status", "--short"]);
}

struct Setup {
    dir: tempfile::TempDir,
    roots: Roots,
    indexes: Indexes,
}

impl Setup {
    fn new() -> Self {
        Self::with(sharing_options())
    }

    fn with(options: IndexOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let indexes = Indexes::open(dir.path().join("index"), options, None);
        Self { dir, roots: Roots::new(Vec::new()), indexes }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn add(&self, name: &str) -> RootId {
        let root = self.roots.declare(&self.path(name)).unwrap();
        let id = root.id.clone();
        self.indexes.add_root(root).unwrap();
        build_and_verify(&self.indexes, &id);
        id
    }

    fn reopen(&mut self) {
        self.indexes.close();
        self.indexes = Indexes::open(self.path("index"), sharing_options(), None);
    }

    /// Name of the base of a root's index.
    fn base(&self, id: &RootId) -> Option<String> {
        fs::read_to_string(self.indexes.folder(id).unwrap().join("base")).ok()
    }

    fn folders(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("index")).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Checks all answers about a root against those of an index that shares nothing.
    fn check(&self, name: &str, id: &RootId) {
        build_and_verify(&self.indexes, id);
        let alone = tempfile::tempdir().unwrap();
        let judge = Indexes::open(alone.path().join("index"), options(), None);
        let root = self.roots.declare(&self.path(name)).unwrap();
        judge.add_root(root).unwrap();
        build_and_verify(&judge, id);
        let expected = facts(&judge, id);
        for (question, answers) in facts(&self.indexes, id) {
            assert_eq!(answers, expected[&question], "{question} in {name}");
        }
    }
}

/// Answers about a root that do not depend on the order of indexing.
fn facts(indexes: &Indexes, id: &RootId) -> BTreeMap<String, Vec<String>> {
    let roots = vec![id.0.to_string()];
    let cancel = CancelFlag::new();
    let mut all = BTreeMap::new();
    let status = indexes.status(Some(id)).unwrap().remove(0);
    all.insert(
        "status".to_owned(),
        vec![format!(
            "{:?} {} {} {} {} {} {:?} {:?}",
            status.state,
            status.files,
            status.bytes,
            status.chunks,
            status.vectors,
            status.symbols,
            status.skipped,
            status.languages
        )],
    );
    for query in QUERIES {
        let mut params = SearchParams::new(query);
        params.filters = Some(serde_json::from_value(serde_json::json!({"roots": roots})).unwrap());
        params.k = 100;
        // The passage of a file may differ, because a base counts the words of files that a root
        // does not have.
        let files = |items: Vec<SearchItem>| {
            let files: BTreeSet<String> = items.into_iter().map(|item| item.path).collect();
            files.into_iter().collect::<Vec<_>>()
        };
        all.insert(format!("lexical {query}"), files(lexical(indexes, &params).items));
        all.insert(format!("hybrid {query}"), files(hybrid(indexes, &params).items));
        let grep: GrepParams = serde_json::from_value(
            serde_json::json!({"pattern": query, "filters": {"roots": roots}, "k": 500}),
        )
        .unwrap();
        let lines = indexes.grep(&grep, &cancel).unwrap();
        let mut lines: Vec<String> =
            lines.items.iter().map(|l| serde_json::to_string(l).unwrap()).collect();
        lines.sort();
        all.insert(format!("grep {query}"), lines);
        let symbols: SymbolsParams = serde_json::from_value(
            serde_json::json!({"query": query, "filters": {"roots": roots}, "k": 50}),
        )
        .unwrap();
        let mut symbols: Vec<String> = indexes
            .symbols(&symbols)
            .unwrap()
            .items
            .iter()
            .map(|s| format!("{} {} {}", s.path, s.name, s.start_line))
            .collect();
        symbols.sort();
        all.insert(format!("symbols {query}"), symbols);
    }
    all
}

#[test]
fn work_tree_shares_the_index_and_answers_as_alone() {
    let mut setup = Setup::new();
    repository(&setup.path("main"), 60);
    let main = setup.add("main");
    assert_eq!(setup.base(&main), None);
    git(&setup.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    let tree = setup.add("tree");
    let base = setup.base(&tree);
    assert!(base.is_some(), "{:?}", setup.folders());
    assert_eq!(setup.base(&main), base);
    setup.check("main", &main);
    setup.check("tree", &tree);

    // Each side changes, removes and adds files without the other.
    write_file(&setup.path("tree"), "src/part1/file1.rs", "pub fn fresh_name() {}\n");
    fs::remove_file(setup.path("tree").join("src/part2/file2.rs")).unwrap();
    write_file(&setup.path("tree"), "src/new.rs", "pub fn parse_header_7() { fresh_name() }\n");
    write_file(&setup.path("main"), "src/part3/file3.rs", "struct Other;\n");
    write_file(&setup.path("main"), "src/part4/file4.rs", [0u8, 0, 0]);
    setup.check("tree", &tree);
    setup.check("main", &main);

    // The former content is the base's again; a touched file is still that of the base.
    git(&setup.path("tree"), &["checkout", "--quiet", "--", "."]);
    write_file(
        &setup.path("tree"),
        "src/part5/file5.rs",
        fs::read(setup.path("tree").join("src/part5/file5.rs")).unwrap(),
    );
    fs::remove_file(setup.path("tree").join("src/new.rs")).unwrap();
    setup.check("tree", &tree);

    setup.reopen();
    assert_eq!((setup.add("main"), setup.add("tree")), (main.clone(), tree.clone()));
    setup.check("main", &main);
    setup.check("tree", &tree);
}

#[test]
fn searches_continue_while_an_index_is_frozen() {
    let setup = Setup::new();
    repository(&setup.path("main"), 60);
    let main = setup.add("main");
    git(&setup.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    let params = SearchParams::new("parse_header_7");
    let grep: GrepParams =
        serde_json::from_value(serde_json::json!({"pattern": "parse_header_7"})).unwrap();
    let is_added = AtomicBool::new(false);
    let until = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_added.load(Ordering::Relaxed) && Instant::now() < until {
                    assert!(!hybrid(&setup.indexes, &params).items.is_empty());
                    let lines = setup.indexes.grep(&grep, &CancelFlag::new()).unwrap();
                    assert!(!lines.items.is_empty());
                }
            });
        }
        setup.add("tree");
        is_added.store(true, Ordering::Relaxed);
    });
    assert!(setup.base(&main).is_some());
}

#[test]
fn content_that_differs_from_the_base_is_not_shared() {
    let setup = Setup::new();
    repository(&setup.path("main"), 40);
    setup.add("main");
    git(&setup.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    for n in 0..12 {
        let path = format!("src/part{}/file{n}.rs", n % 7);
        write_file(&setup.path("tree"), &path, format!("pub fn fresh_name_{n}() {{}}\n"));
    }
    // Same size and time as before, so only a hash or another inode number tells.
    let path = setup.path("tree").join("src/part6/file20.rs");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let text = fs::read_to_string(&path).unwrap().replace("helper_20", "halper_20");
    fs::remove_file(&path).unwrap();
    fs::write(&path, text).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let tree = setup.add("tree");
    assert!(setup.base(&tree).is_some());
    setup.check("tree", &tree);
}

#[test]
fn clone_shares_and_other_repository_does_not() {
    let setup = Setup::new();
    repository(&setup.path("main"), 40);
    let main = setup.add("main");
    write_file(&setup.path("other"), "README.md", "The same path with another text.\n");
    for n in 0..6 {
        write_file(&setup.path("other"), &format!("src/part{n}/file{n}.rs"), "fn more() {}\n");
    }
    git(&setup.path("other"), &["init", "--quiet"]);
    git(&setup.path("other"), &["add", "."]);
    let other = setup.add("other");
    git(setup.dir.path(), &["clone", "--quiet", "main", "copy"]);
    let copy = setup.add("copy");
    assert!(setup.base(&copy).is_some() && setup.base(&copy) == setup.base(&main));
    assert_eq!(setup.base(&other), None);
    setup.check("copy", &copy);
    // Alternates of a clone change nothing: no content is read from git.
    let control = Setup::with(options());
    repository(&control.path("main"), 40);
    control.add("main");
    git(&control.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    let few = control.add("tree");
    assert_eq!(control.base(&few), None, "small repositories do not share");
}

#[test]
fn base_is_deleted_with_its_last_index() {
    let mut setup = Setup::new();
    repository(&setup.path("main"), 40);
    let main = setup.add("main");
    git(&setup.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    let tree = setup.add("tree");
    assert_eq!(setup.folders().len(), 3);
    assert!(setup.indexes.remove_root(&main).unwrap());
    setup.check("tree", &tree);
    assert_eq!(setup.folders().len(), 2, "{:?}", setup.folders());
    // The base is not taken for the index of the root that it came from.
    setup.reopen();
    let again = setup.add("main");
    assert_eq!((setup.add("tree"), &again), (tree.clone(), &main));
    setup.check("main", &main);
    setup.check("tree", &tree);
    setup.indexes.rebuild(&tree).unwrap();
    setup.check("tree", &tree);
    assert_eq!(setup.base(&tree), None, "a rebuilt index stands alone");
    assert!(setup.indexes.remove_root(&tree).unwrap());
    assert!(setup.indexes.remove_root(&main).unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    while !setup.folders().is_empty() {
        assert!(Instant::now() < until, "{:?}", setup.folders());
        std::thread::yield_now();
    }
}

#[test]
fn damaged_base_is_replaced_by_an_index_of_its_own() {
    let mut setup = Setup::new();
    repository(&setup.path("main"), 40);
    let main = setup.add("main");
    git(&setup.path("main"), &["worktree", "add", "--quiet", "../tree"]);
    let tree = setup.add("tree");
    let base = setup.path("index").join(setup.base(&tree).unwrap());
    setup.indexes.close();
    for entry in fs::read_dir(&base).unwrap().map(|e| e.unwrap().path()) {
        if entry.extension().is_some_and(|e| e == "seg") {
            fs::write(entry, "not a segment").unwrap();
        }
    }
    setup.reopen();
    setup.add("main");
    setup.add("tree");
    setup.check("main", &main);
    setup.check("tree", &tree);
    // A name that leads elsewhere is no base.
    let folder = setup.indexes.folder(&tree).unwrap();
    setup.indexes.close();
    fs::write(folder.join("base"), "../../main").unwrap();
    setup.reopen();
    setup.add("tree");
    setup.check("tree", &tree);
}
