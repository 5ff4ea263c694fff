//! Unusual and hostile trees: indexing completes, skipped files are counted with their reason, and
//! their neighbours are found.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cairn_protocol::index::{IndexState, RootStatus};
use cairn_protocol::search::GrepParams;
use cairn_search::CancelFlag;
use serde_json::json;

use crate::fixture::{TestRoot, build, open, options, write_file};

/// An ordinary file in every tree.
const GOOD: &str = "fn untroubled_neighbour() {\n    keep_going();\n}\n";

struct Tree {
    root: TestRoot,
    status: RootStatus,
}

/// Indexes a tree that `make` writes, beside an ordinary file.
fn tree(make: impl FnOnce(&Path)) -> Tree {
    let root = TestRoot::from_tree(|top| {
        write_file(top, "good.rs", GOOD);
        make(top);
    });
    let status = root.build();
    let tree = Tree { root, status };
    tree.assert_neighbour_is_found();
    tree
}

impl Tree {
    /// Indexing is complete, and the ordinary file is found by every method.
    fn assert_neighbour_is_found(&self) {
        let status = &self.status;
        assert!(status.complete && status.state == IndexState::Ready, "{status:?}");
        assert_eq!(self.root.hybrid("untroubled neighbour")[0], "good.rs");
        assert!(self.lines("untroubled_neighbour").contains(&("good.rs".to_owned(), 1)));
    }

    fn lines(&self, pattern: &str) -> Vec<(String, u32)> {
        let params: GrepParams =
            serde_json::from_value(json!({"pattern": pattern, "k": 50})).unwrap();
        let answer = self.root.indexes.grep(&params, &CancelFlag::new()).unwrap();
        answer.items.into_iter().map(|i| (i.path, i.line)).collect()
    }

    fn count_skipped(&self, reason: &str) -> u64 {
        self.status.skipped.get(reason).copied().unwrap_or(0)
    }
}

#[test]
fn long_line_is_indexed_and_minified_file_is_skipped() {
    let tree = tree(|top| {
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
    assert!(
        tree.status.files + tree.status.skipped.values().sum::<u64>() >= 3,
        "{:?}",
        tree.status
    );
    assert!(tree.lines("after_the_line").contains(&("data.py".to_owned(), 2)));
}

#[test]
fn binary_file_is_skipped_and_other_encodings_are_indexed() {
    let tree = tree(|top| {
        let mut binary = b"int looks_like_c;\n".to_vec();
        binary.extend((0..5000_u32).flat_map(u32::to_le_bytes));
        fs::write(top.join("firmware.c"), binary).unwrap();
        let mut latin: Vec<u8> = b"// caf\xe9 latin_one_word\nint value;\n".to_vec();
        latin.extend([0xff, 0xfe, 0x80, b'\n']);
        fs::write(top.join("latin.c"), latin).unwrap();
        fs::write(top.join("empty.rs"), "").unwrap();
        fs::write(top.join("bom.rs"), "\u{feff}fn with_a_mark() {}\n").unwrap();
    });
    assert_eq!(tree.count_skipped("binary"), 1, "{:?}", tree.status.skipped);
    assert!(tree.lines("latin_one_word").contains(&("latin.c".to_owned(), 1)));
    assert_eq!(tree.root.hybrid("with a mark")[0], "bom.rs");
}

#[test]
fn too_large_file_is_skipped_with_its_reason() {
    let tree = tree(|top| {
        let file = fs::File::create(top.join("huge.log")).unwrap();
        // A sparse file.
        file.set_len(100 * 1024 * 1024).unwrap();
        let text = "word ".repeat(1024 * 1024 + 1);
        fs::write(top.join("large.txt"), text).unwrap();
    });
    assert_eq!(tree.count_skipped("too_large"), 2, "{:?}", tree.status.skipped);
}

#[test]
fn deep_nesting_does_not_recurse() {
    let tree = tree(|top| {
        let deep =
            |open: &str, close: &str| format!("{}{}", open.repeat(60_000), close.repeat(60_000));
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
    assert_eq!(tree.status.pending, 0, "{:?}", tree.status);
}

#[test]
fn large_folder_and_link_cycles_are_indexed() {
    let tree = tree(|top| {
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
    assert_eq!(tree.status.files, 20_001, "{:?}", tree.status);
    assert_eq!(tree.lines("number_19999"), [("many/f19999.txt".to_owned(), 1)]);
    assert!(tree.lines("root:").is_empty(), "links are not followed");
}

#[test]
fn memory_is_trimmed_during_heavy_indexing() {
    static TRIMS: AtomicUsize = AtomicUsize::new(0);
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    for n in 0..2_500 {
        write_file(&top, &format!("f{n}.rs"), format!("fn f{n}() {{}}\n"));
    }
    let mut options = options();
    options.trim_memory = || {
        TRIMS.fetch_add(1, Ordering::Relaxed);
    };
    let (indexes, id) = open(&dir.path().join("index"), &top, options);
    assert!(build(&indexes, &id).complete);
    // Between batches, and before merges.
    let trims = TRIMS.load(Ordering::Relaxed);
    assert!(trims >= 2, "{trims}");
    // A small change trims nothing.
    write_file(&top, "f0.rs", "fn another() {}\n");
    assert!(build(&indexes, &id).complete);
    assert_eq!(TRIMS.load(Ordering::Relaxed), trims);
}

#[test]
fn grep_beyond_its_time_limit_fails_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    let text = "abcdefghij klmnop qrstuv wxyz 0123456789\n".repeat(20_000);
    (0..60).for_each(|n| write_file(&top, &format!("{n}.txt"), &text));
    let grep = |limit: Duration| {
        let index = tempfile::tempdir().unwrap();
        let mut options = options();
        options.grep_limit = limit;
        let (indexes, id) = open(&index.path().join("index"), &top, options);
        build(&indexes, &id);
        let pattern = json!({"pattern": "(?:[a-z]+ )*[0-9]{3,9}x", "isRegex": true, "k": 1});
        let params: GrepParams = serde_json::from_value(pattern).unwrap();
        indexes.grep(&params, &CancelFlag::new())
    };
    // A limit that passes before the first line on any machine; sixty files take about 20 ms.
    let refused = grep(Duration::ZERO).unwrap_err();
    assert!(refused.message.contains("took too long"), "{refused}");
    let complete = grep(Duration::from_secs(600)).unwrap();
    assert_eq!(
        (complete.items.len(), complete.files_searched),
        (0, 60),
        "the control: all files are read, nothing matches"
    );
}
