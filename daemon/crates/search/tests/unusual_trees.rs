//! Unusual and hostile trees: indexing completes, skipped files are counted with their reason, and their neighbours are
//! found.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use cairn_protocol::{
    index::{IndexState, RootStatus},
    search::{GrepParams, SearchParams},
};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_workspace::Roots;
use serde_json::json;

/// An ordinary file in every tree.
const GOOD: &str = "fn untroubled_neighbour() {\n    keep_going();\n}\n";

struct World {
    _dir: tempfile::TempDir,
    indexes: Indexes,
    status: RootStatus,
}

/// Indexes a tree that `make` writes.
fn world(make: impl FnOnce(&Path)) -> World {
    let dir = tempfile::tempdir().unwrap();
    let top: PathBuf = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("good.rs"), GOOD).unwrap();
    make(&top);
    let root = Roots::new(vec![]).declare(&top).unwrap();
    let id = root.id.clone();
    let mut options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    (options.watch, options.sweep_seconds) = (false, 0);
    let indexes = Indexes::open(dir.path().join("index"), options, None);
    indexes.add_root(root).unwrap();
    let status = indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
    let world = World { _dir: dir, indexes, status };
    world.assert_neighbour_is_found();
    world
}

impl World {
    /// Indexing is complete, and the ordinary file is found by every method.
    fn assert_neighbour_is_found(&self) {
        let status = &self.status;
        assert!(status.complete && status.state == IndexState::Ready, "{status:?}");
        assert_eq!(self.search("untroubled neighbour"), ["good.rs"]);
        assert!(self.lines("untroubled_neighbour").contains(&("good.rs".to_owned(), 1)));
    }

    fn search(&self, query: &str) -> Vec<String> {
        let params: SearchParams = serde_json::from_value(json!({"query": query, "k": 1})).unwrap();
        let answer = self.indexes.hybrid(&params, &CancelFlag::new(), &|_| {}).unwrap();
        answer.items.into_iter().map(|i| i.path).collect()
    }

    fn lines(&self, pattern: &str) -> Vec<(String, u32)> {
        let params: GrepParams = serde_json::from_value(json!({"pattern": pattern, "k": 50})).unwrap();
        let answer = self.indexes.grep(&params, &CancelFlag::new()).unwrap();
        answer.items.into_iter().map(|i| (i.path, i.line)).collect()
    }

    fn skipped(&self, reason: &str) -> u64 {
        self.status.skipped.get(reason).copied().unwrap_or(0)
    }
}

#[test]
fn long_line_is_indexed_and_minified_file_is_skipped() {
    let world = world(|top| {
        let mut minified = String::from("!function(){");
        for i in 0..40_000 {
            minified.push_str(&format!("var a{i}=function(b){{return b+{i}}};"));
        }
        minified.push_str("/*tail_of_the_line*/}();");
        fs::write(top.join("app.min.js"), &minified).unwrap();
        fs::write(
            top.join("data.py"),
            format!("x = '{}'\ndef after_the_line(): pass\n", "y".repeat(3_000_000)),
        )
        .unwrap();
    });
    assert!(world.status.files + world.status.skipped.values().sum::<u64>() >= 3, "{:?}", world.status);
    assert!(world.lines("after_the_line").contains(&("data.py".to_owned(), 2)));
}

#[test]
fn binary_file_is_skipped_and_other_encodings_are_indexed() {
    let world = world(|top| {
        let mut binary = b"int looks_like_c;\n".to_vec();
        binary.extend((0..5000_u32).flat_map(u32::to_le_bytes));
        fs::write(top.join("firmware.c"), binary).unwrap();
        let mut latin: Vec<u8> = b"// caf\xe9 latin_one_word\nint value;\n".to_vec();
        latin.extend([0xff, 0xfe, 0x80, b'\n']);
        fs::write(top.join("latin.c"), latin).unwrap();
        fs::write(top.join("empty.rs"), "").unwrap();
        fs::write(top.join("bom.rs"), "\u{feff}fn with_a_mark() {}\n").unwrap();
    });
    assert_eq!(world.skipped("binary"), 1, "{:?}", world.status.skipped);
    assert!(world.lines("latin_one_word").contains(&("latin.c".to_owned(), 1)));
    assert_eq!(world.search("with a mark"), ["bom.rs"]);
}

#[test]
fn too_large_file_is_skipped_with_its_reason() {
    let world = world(|top| {
        let file = fs::File::create(top.join("huge.log")).unwrap();
        // A sparse file.
        file.set_len(100 * 1024 * 1024).unwrap();
        let text = "word ".repeat(1024 * 1024 + 1);
        fs::write(top.join("large.txt"), text).unwrap();
    });
    assert_eq!(world.skipped("too_large"), 2, "{:?}", world.status.skipped);
}

#[test]
fn deep_nesting_does_not_recurse() {
    let world = world(|top| {
        let deep = |open: &str, close: &str| format!("{}{}", open.repeat(60_000), close.repeat(60_000));
        for (name, text) in [
            ("a.c", format!("int x = {};\n", deep("(", ")"))),
            ("b.py", format!("x = {}\n", deep("[", "]"))),
            ("c.js", format!("x = {};\n", deep("{a:", "}"))),
            ("d.json", deep("[", "]")),
            ("e.rs", format!("fn f() {}\n", deep("{", "}"))),
            ("f.html", deep("<div>", "</div>")),
            ("g.rb", format!("x = {}\n", deep("[", "]"))),
            ("h.go", format!("var x = {}\n", deep("(", ")"))),
            ("i.ts", "type T = ".to_owned() + &deep("Array<", ">") + ";\n"),
            ("j.swift", format!("let x = {}\n", deep("(", ")"))),
            ("k.md", "> ".repeat(20_000) + "quoted\n"),
        ] {
            fs::write(top.join(name), text).unwrap();
        }
    });
    assert_eq!(world.status.pending, 0, "{:?}", world.status);
}

#[test]
fn large_folder_and_link_cycles_are_indexed() {
    let world = world(|top| {
        let many = top.join("many");
        fs::create_dir(&many).unwrap();
        for i in 0..20_000 {
            fs::write(many.join(format!("f{i}.txt")), format!("number_{i}\n")).unwrap();
        }
        symlink(top, top.join("round")).unwrap();
        symlink("self", top.join("self")).unwrap();
        symlink("/etc/passwd", top.join("outside.txt")).unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        symlink("../..", top.join("a/b/up")).unwrap();
        // Opening it would block forever.
        let status = std::process::Command::new("mkfifo").arg(top.join("pipe.c")).status().unwrap();
        assert!(status.success());
    });
    assert_eq!(world.status.files, 20_001, "{:?}", world.status);
    assert_eq!(world.lines("number_19999"), [("many/f19999.txt".to_owned(), 1)]);
    assert!(world.lines("root:").is_empty(), "links are not followed");
}

#[test]
fn memory_is_trimmed_during_heavy_indexing() {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    let dir = tempfile::tempdir().unwrap();
    let top: PathBuf = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir(&top).unwrap();
    for n in 0..2_500 {
        fs::write(top.join(format!("f{n}.rs")), format!("fn f{n}() {{}}\n")).unwrap();
    }
    let root = Roots::new(vec![]).declare(&top).unwrap();
    let id = root.id.clone();
    let mut options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    (options.watch, options.sweep_seconds) = (false, 0);
    options.trim_memory = || {
        GIVEN.fetch_add(1, Ordering::Relaxed);
    };
    let indexes = Indexes::open(dir.path().join("index"), options, None);
    indexes.add_root(root).unwrap();
    let build = || indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
    assert!(build().complete);
    // Between batches, and before merges.
    let given = GIVEN.load(Ordering::Relaxed);
    assert!(given >= 2, "{given}");
    // A small change trims nothing.
    fs::write(top.join("f0.rs"), "fn another() {}\n").unwrap();
    assert!(build().complete);
    assert_eq!(GIVEN.load(Ordering::Relaxed), given);
}

#[test]
fn grep_beyond_its_time_limit_fails_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir(&top).unwrap();
    let text = "abcdefghij klmnop qrstuv wxyz 0123456789\n".repeat(20_000);
    (0..60).for_each(|n| fs::write(top.join(format!("{n}.txt")), &text).unwrap());
    let grep = |limit: Duration| {
        let root = Roots::new(vec![]).declare(&top).unwrap();
        let mut options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
        (options.watch, options.sweep_seconds, options.grep_limit) = (false, 0, limit);
        let index = tempfile::tempdir().unwrap();
        let indexes = Indexes::open(index.path().join("index"), options, None);
        let id = root.id.clone();
        indexes.add_root(root).unwrap();
        indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
        let pattern = json!({"pattern": "(?:[a-z]+ )*[0-9]{3,9}x", "isRegex": true, "k": 1});
        let params: GrepParams = serde_json::from_value(pattern).unwrap();
        indexes.grep(&params, &CancelFlag::new())
    };
    // A limit that passes before the first line on any machine; sixty files take about 20 ms.
    let refused = grep(Duration::ZERO).unwrap_err();
    assert!(refused.message.contains("took too long"), "{refused}");
    let complete_ = grep(Duration::from_secs(600)).unwrap();
    assert_eq!(
        (complete_.items.len(), complete_.files_searched),
        (0, 60),
        "the control: all files are read, nothing matches"
    );
}
