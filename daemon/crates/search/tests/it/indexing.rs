//! The engine on real files: indexing, search, grep, symbols, changes, closing and reopening.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use cairn_protocol::error::Reason;
use cairn_protocol::id::RootId;
use cairn_protocol::index::IndexState;
use cairn_protocol::lines::{FileLines, GrepStreamEnd, GrepStreamParams};
use cairn_protocol::search::{Corpus, GrepParams, SearchFilters, SearchParams, SymbolsParams};
use cairn_search::{CancelFlag, Indexes, cursor_after};

use crate::fixture::{TestRoot, build, hybrid, lexical, open, options, paths, write_file};

/// All rows of the index that do not depend on the time of indexing, by path.
fn read_rows(indexes: &Indexes, id: &RootId) -> BTreeMap<String, String> {
    let db = indexes.folder(id).unwrap().join("index.db");
    let conn = cairn_store::open_read_only(&db).unwrap();
    let mut get = conn
        .prepare(
            "SELECT f.path, f.lang, f.size_bytes, hex(f.sha256), f.skipped, f.pending_stages,
             (SELECT group_concat(start_line || '-' || end_line || ':' || fingerprint || ':' || tokens, ' ')
                FROM (SELECT * FROM chunk WHERE file_id = f.id ORDER BY byte_range_start)),
             (SELECT group_concat(hex(vec), ' ') FROM (SELECT vec FROM chunk_vec JOIN chunk ON id = chunk_id WHERE file_id = f.id ORDER BY byte_range_start)),
             (SELECT group_concat(kind || ' ' || name || ' ' || start_line || ' ' || end_line, ';') FROM (SELECT * FROM symbol WHERE file_id = f.id ORDER BY id)),
             (SELECT hex(idents) FROM file_ref WHERE file_id = f.id)
             FROM file f",
        )
        .unwrap();
    let rows = get
        .query_map([], |r| {
            let text = (1..10)
                .map(|i| format!("{:?}", r.get_ref(i).unwrap()))
                .collect::<Vec<_>>()
                .join("|");
            Ok((r.get(0)?, text))
        })
        .unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The same rows of a new index of the same folder.
fn fresh_rows(root: &TestRoot) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let (indexes, id) = open(dir.path(), &root.top(), options());
    build(&indexes, &id);
    read_rows(&indexes, &id)
}

fn params(query: &str) -> SearchParams {
    serde_json::from_value(serde_json::json!({"query": query, "k": 10, "includeText": true}))
        .unwrap()
}

fn grep(pattern: &str) -> GrepParams {
    serde_json::from_value(serde_json::json!({"pattern": pattern})).unwrap()
}

const CODE: &[(&str, &str)] = &[
    (
        "src/server.rs",
        "use std::net::TcpListener;\n\n/// Accepts connections and hands each to a worker.\npub fn accept_connections(listener: TcpListener) {\n    for stream in listener.incoming() {\n        handle(stream);\n    }\n}\n",
    ),
    (
        "src/parse.rs",
        "/// Reads the header of a message.\npub fn parse_header(text: &str) -> Header {\n    let mut lines = text.lines();\n    Header::from(lines.next())\n}\n\npub struct Header;\n",
    ),
    (
        "src/store.py",
        "class KeyValueStore:\n    \"\"\"Keeps values on disk.\"\"\"\n    def write_value(self, key, value):\n        self.file.write(key + value)\n",
    ),
    ("tests/parse_test.rs", "#[test]\nfn header_is_parsed() {\n    parse_header(\"a: b\");\n}\n"),
    ("docs/guide.md", "# Guide\n\nThe server accepts connections; parse_header reads a header.\n"),
    (".ignore", "/target\n*.log\n"),
    ("target/out.rs", "pub fn parse_header() {}\n"),
    ("noise.log", "parse_header\n"),
    ("logo.bin", "a\0parse_header\n"),
    ("package-lock.json", "{\"parse_header\": 1}\n"),
];

#[test]
fn indexed_root_can_be_searched() {
    let mut root = TestRoot::new(CODE);
    let status = root.build();
    assert_eq!((status.state, status.complete, status.files), (IndexState::Ready, true, 5));
    assert_eq!(status.skipped.get("binary"), Some(&1));
    assert_eq!(status.skipped.get("generated"), Some(&1));
    assert_eq!(status.vectors, status.chunks);
    assert_eq!(root.lexical("parse header")[0], "src/parse.rs");
    assert_eq!(root.hybrid("parse_header")[0], "src/parse.rs");
    assert_eq!(root.hybrid("accept incoming network connections")[0], "src/server.rs");
    assert_eq!(root.hybrid("save values to disk")[0], "src/store.py");
    let answer =
        root.indexes.semantic(&params("listen on a socket"), &CancelFlag::new(), &|_| {}).unwrap();
    assert_eq!(answer.items[0].path, "src/server.rs");
    let hit = hybrid(&root.indexes, &params("parseHeader"));
    assert!(hit.complete && hit.degraded.is_empty());
    let item = &hit.items[0];
    assert_eq!(item.symbol.as_ref().unwrap().name, "parse_header");
    let text = item.text.as_ref().unwrap();
    assert!(
        !item.highlights.is_empty()
            && item.highlights.iter().all(|[a, b]| text.get(*a as usize..*b as usize).is_some())
    );
    assert!(item.content_hash.len() == 64 && !item.changed);
    root.reopen();
    assert_eq!(
        root.lexical("parse header")[0],
        "src/parse.rs",
        "an existing index answers at once"
    );
}

#[test]
fn second_pass_changes_no_row() {
    let mut root = TestRoot::new(CODE);
    let first = root.build();
    let rows = read_rows(&root.indexes, &root.id);
    let second = root.build();
    assert_eq!(second.clock, first.clock);
    root.reopen();
    assert_eq!(root.build().clock, first.clock);
    assert_eq!(read_rows(&root.indexes, &root.id), rows);
}

#[test]
fn updated_index_equals_a_new_index() {
    let root = TestRoot::new(CODE);
    root.build();
    let top = root.top();
    write_file(&top, "src/parse.rs", "pub fn parse_trailer() {}\n");
    write_file(&top, "src/new/deep.go", "package deep\nfunc Brand() {}\n");
    fs::remove_file(top.join("src/store.py")).unwrap();
    fs::rename(top.join("src/server.rs"), top.join("src/listener.rs")).unwrap();
    write_file(&top, ".ignore", "docs\n");
    let status = root.build();
    assert_eq!(read_rows(&root.indexes, &root.id), fresh_rows(&root));
    assert!(root.lexical("write_value").is_empty(), "nothing stale");
    assert!(!root.hybrid("parse_header").contains(&"docs/guide.md".to_owned()), "ignored now");
    assert_eq!(root.hybrid("parse trailer")[0], "src/parse.rs");
    assert_eq!(status.vectors, status.chunks);
}

#[test]
fn removed_and_changed_files_are_reported() {
    let root = TestRoot::new(CODE);
    root.build();
    fs::remove_file(root.top().join("src/parse.rs")).unwrap();
    write_file(&root.top(), "src/server.rs", "fn other() {}\n");
    assert!(!root.lexical("parse_header").contains(&"src/parse.rs".to_owned()));
    let answer = lexical(&root.indexes, &params("accept connections"));
    let item = answer.items.iter().find(|i| i.path == "src/server.rs").unwrap();
    assert!(item.changed && item.text.as_ref().unwrap().contains("accept_connections"));
}

#[test]
fn filters_and_limits_are_applied() {
    let root = TestRoot::new(CODE);
    root.build();
    let with = |filters: SearchFilters| {
        let p = SearchParams { filters: Some(filters), ..params("parse_header write_value") };
        root.indexes.hybrid(&p, &CancelFlag::new(), &|_| {}).map(|answer| paths(answer.items))
    };
    let all =
        with(SearchFilters { path_prefix: Some("src".into()), ..Default::default() }).unwrap();
    assert!(!all.is_empty() && all.iter().all(|p| p.starts_with("src/")), "{all:?}");
    let kinds = with(SearchFilters { kinds: vec!["class".into()], ..Default::default() }).unwrap();
    assert_eq!(kinds, ["src/store.py"]);
    let python =
        with(SearchFilters { languages: vec!["python".into()], ..Default::default() }).unwrap();
    assert_eq!(python, ["src/store.py"]);
    assert_eq!(
        with(SearchFilters { roots: vec!["nowhere".into()], ..Default::default() })
            .unwrap_err()
            .reason,
        Reason::RootNotFound
    );
    let bad = SearchParams { k: 0, ..params("x") };
    assert_eq!(
        root.indexes.lexical(&bad, &CancelFlag::new(), &|_| {}).unwrap_err().reason,
        Reason::InvalidParams
    );
    for odd in ["\"", "AND", "a OR (", "*", "col:x", "😀", "\0", "の"] {
        root.indexes.hybrid(&params(odd), &CancelFlag::new(), &|_| {}).unwrap();
    }
    let cancel = CancelFlag::new();
    cancel.cancel();
    assert_eq!(
        root.indexes.hybrid(&params("parse"), &cancel, &|_| {}).unwrap_err().reason,
        Reason::Cancelled
    );
}

#[test]
fn partial_answers_precede_the_answer() {
    let root = TestRoot::new(CODE);
    root.build();
    let seen = std::sync::Mutex::new(Vec::new());
    let p = SearchParams { request_id: Some("r1".into()), ..params("parse_header") };
    let answer =
        root.indexes.hybrid(&p, &CancelFlag::new(), &|p| seen.lock().unwrap().push(p)).unwrap();
    let seen = seen.into_inner().unwrap();
    let kinds: Vec<_> = seen.iter().map(|p| (p.corpus, p.done)).collect();
    assert_eq!(kinds, [(Corpus::Lex, false), (Corpus::Sem, false), (Corpus::Fused, true)]);
    assert_eq!(seen[2].items, answer.items);
}

#[test]
fn search_during_indexing_is_incomplete() {
    let text = (0..400)
        .map(|n| format!("def open_ledger_{n}(path):\n    return path\n"))
        .collect::<String>();
    let names: Vec<String> = (0..100).map(|n| format!("m{n}.py")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|n| (&**n, &*text)).collect();
    let root = TestRoot::new(&files);
    assert!(!root.indexes.status(Some(&root.id)).unwrap()[0].complete);
    let params_with_id = SearchParams { request_id: Some("r".into()), ..params("open ledger") };
    // The index is completed during the search.
    let answer =
        root.indexes.hybrid(&params_with_id, &CancelFlag::new(), &|_| drop(root.build())).unwrap();
    assert!(root.indexes.status(Some(&root.id)).unwrap()[0].complete);
    assert!(
        !answer.complete && answer.degraded.contains(&"indexing".into()),
        "{:?}",
        answer.degraded
    );
    assert!(hybrid(&root.indexes, &params("open ledger")).complete);
}

#[test]
fn grep_pages_counts_and_reads_files_that_are_not_indexed() {
    let root = TestRoot::new(CODE);
    root.build();
    let run = |p: &GrepParams| root.indexes.grep(p, &CancelFlag::new()).unwrap();
    let all = run(&grep("parse_header"));
    let positions: Vec<_> = all.items.iter().map(|i| (i.path.as_str(), i.line)).collect();
    assert_eq!(
        positions,
        [
            ("docs/guide.md", 3),
            ("package-lock.json", 1),
            ("src/parse.rs", 2),
            ("tests/parse_test.rs", 3)
        ]
    );
    assert!(all.complete && !all.truncated && all.total == 4);
    assert_eq!(all.items[2].ranges, [[7, 19]]);
    let (mut pages, mut p) = (Vec::new(), GrepParams { k: 1, ..grep("parse_header") });
    loop {
        let page = run(&p);
        pages.extend(page.items);
        p.cursor = page.next_cursor;
        if p.cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, all.items);
    let counted = run(&GrepParams { count_only: true, ..grep("e") });
    assert!(
        counted.items.is_empty()
            && counted.counts.iter().map(|c| c.lines).sum::<u64>() == counted.total
    );
    let word = run(&GrepParams {
        flags: vec!["w".into(), "i".into()],
        context_lines: 1,
        ..grep("HEADER")
    });
    assert_eq!(word.items[0].path, "docs/guide.md");
    let hit = word.items.iter().find(|i| i.path == "src/parse.rs" && i.line == 4).unwrap();
    assert_eq!(
        (hit.before.as_slice(), hit.after.as_slice()),
        (&["    let mut lines = text.lines();".to_owned()][..], &["}".to_owned()][..])
    );
    let bad = GrepParams { is_regex: true, ..grep("(") };
    assert_eq!(root.indexes.grep(&bad, &CancelFlag::new()).unwrap_err().reason, Reason::BadPattern);
    let flag = GrepParams { flags: vec!["zz".into()], ..grep("x") };
    assert_eq!(
        root.indexes.grep(&flag, &CancelFlag::new()).unwrap_err().reason,
        Reason::InvalidParams
    );
    write_file(&root.top(), "src/parse.rs", "parse_header again\n");
    assert!(run(&grep("header again")).items.len() == 1, "read from the disk");
}

/// The lines of a stream as (path, line), and its end.
fn stream_lines(
    root: &TestRoot,
    extra_params: serde_json::Value,
) -> (Vec<(String, u32)>, GrepStreamEnd) {
    let mut p = serde_json::json!({"requestId": "r", "pattern": "row"});
    p.as_object_mut().unwrap().extend(extra_params.as_object().unwrap().clone());
    let parts = std::sync::Mutex::new(Vec::new());
    let emit = |items, done| {
        parts.lock().unwrap().push((items, done));
        true
    };
    let params: GrepStreamParams = serde_json::from_value(p).unwrap();
    let end = root.indexes.grep_stream(&params, &CancelFlag::new(), &emit).unwrap();
    let parts: Vec<(Vec<FileLines>, bool)> = parts.into_inner().unwrap();
    let last: Vec<bool> = parts.iter().map(|(_, done)| *done).collect();
    assert_eq!(last.iter().position(|done| *done), Some(last.len() - 1));
    let items = parts.iter().flat_map(|(files, _)| files).flat_map(FileLines::items);
    (items.map(|i| (i.path, i.line)).collect(), end)
}

#[test]
fn stream_emits_all_lines_in_order() {
    let root = TestRoot::new(&[]);
    // One file exceeds the buffer of out-of-order lines (256 KiB), between many small files.
    let mut expected = Vec::new();
    for n in 0..300 {
        let (path, lines) = (format!("f{n:03}.txt"), if n == 150 { 60_000 } else { n % 3 });
        write_file(&root.top(), &path, "a row\nnothing\n".repeat(lines as usize));
        expected.extend((0..lines).map(|l| (path.clone(), 2 * l + 1)));
    }
    root.build();
    let (lines, end) = stream_lines(&root, serde_json::json!({}));
    assert!(lines == expected);
    assert!(end.complete && !end.truncated && end.total == expected.len() as u64);
    for k in [1, 50, 51, 12_345, expected.len() - 1, expected.len()] {
        let (lines, end) = stream_lines(&root, serde_json::json!({"k": k}));
        assert!(lines == expected[..k]);
        assert_eq!((end.total, end.truncated), (k as u64, k < expected.len()));
    }
    for at in [0, 1, 98, 99, 100, 5_000, 9_999] {
        let (path, line) = expected[at].clone();
        let file = FileLines {
            path,
            root: root.id.clone(),
            lines: vec![line],
            text: String::new(),
            ranges: vec![],
        };
        let (lines, _) =
            stream_lines(&root, serde_json::json!({"cursor": cursor_after(&file), "k": 3}));
        assert!(lines == expected[at + 1..at + 4], "{at}");
    }
    let (lines, end) = stream_lines(&root, serde_json::json!({"pattern": "not there"}));
    assert_eq!((lines.len(), end.total, end.truncated), (0, 0, false));
    let symbols = |json: serde_json::Value, take: bool| {
        let params: GrepStreamParams = serde_json::from_value(json).unwrap();
        root.indexes.grep_stream(&params, &CancelFlag::new(), &|_, _| take).unwrap_err()
    };
    let unread = symbols(serde_json::json!({"requestId": "r", "pattern": "row"}), false);
    assert!(
        unread.reason == Reason::Cancelled && unread.message.contains("search.partial"),
        "{unread:?}"
    );
    for (with, ranges) in [(true, vec![vec![[2, 5]]]), (false, vec![])] {
        let p = serde_json::json!({"requestId": "r", "pattern": "row", "k": 1, "withRanges": with});
        let emit = |files: Vec<FileLines>, _| files.iter().all(|file| file.ranges == ranges);
        let params: GrepStreamParams = serde_json::from_value(p).unwrap();
        root.indexes.grep_stream(&params, &CancelFlag::new(), &emit).unwrap();
    }
    let none = symbols(serde_json::json!({"requestId": "r", "pattern": "row", "k": 0}), true);
    assert_eq!(none.reason, Reason::InvalidParams);
}

#[test]
fn symbols_are_found_and_files_ranked() {
    let root = TestRoot::new(CODE);
    root.build();
    let symbols = |json: serde_json::Value| {
        let p: SymbolsParams = serde_json::from_value(json).unwrap();
        root.indexes.symbols(&p).map(|a| {
            a.items.into_iter().map(|s| format!("{} {}", s.kind, s.name)).collect::<Vec<_>>()
        })
    };
    assert_eq!(
        symbols(serde_json::json!({"query": "parse_header"})).unwrap()[0],
        "function parse_header"
    );
    assert_eq!(
        symbols(serde_json::json!({"query": "parse", "match": "prefix"})).unwrap(),
        ["function parse_header"]
    );
    assert_eq!(
        symbols(serde_json::json!({"query": "parse_heder"})).unwrap()[0],
        "function parse_header"
    );
    assert_eq!(
        symbols(serde_json::json!({"query": "KeyValueStore.write_value"})).unwrap()[0],
        "method write_value"
    );
    assert_eq!(
        symbols(serde_json::json!({"path": "src/store.py"})).unwrap(),
        ["class KeyValueStore", "method write_value"]
    );
    assert_eq!(
        symbols(serde_json::json!({"path": "src/none.py"})).unwrap_err().reason,
        Reason::PathNotFound
    );
    assert_eq!(symbols(serde_json::json!({})).unwrap_err().reason, Reason::InvalidParams);
    let files = root.indexes.rank_files(&root.id, 5).unwrap();
    assert_eq!(files[0].path, "src/parse.rs");
    assert_eq!((files[0].referring_files, files[0].symbols[0].as_str()), (1, "parse_header"));
}

#[test]
fn reference_to_a_module_means_the_files_own_module() {
    let lone = "mod tests {}\n\npub fn lone_helper() {}\n";
    let root = TestRoot::new(&[
        ("src/commands.rs", "pub fn tests() -> u32 {\n    1\n}\n"),
        ("src/one.rs", lone),
        ("src/two.rs", lone),
        ("src/used.rs", "pub fn wanted_by_others() {}\n"),
        ("src/user.rs", "pub fn user_of_it() {\n    wanted_by_others();\n}\n"),
    ]);
    root.build();
    let files = root.indexes.rank_files(&root.id, 9).unwrap();
    let referring =
        |path: &str| files.iter().find(|f| f.path == path).map_or(0, |f| f.referring_files);
    assert_eq!((referring("src/commands.rs"), referring("src/used.rs")), (0, 1));
}

#[test]
fn removed_root_leaves_no_folder_and_rebuilt_root_is_complete() {
    let root = TestRoot::new(CODE);
    root.build();
    let rows = read_rows(&root.indexes, &root.id);
    root.indexes.rebuild(&root.id).unwrap();
    root.build();
    assert_eq!(read_rows(&root.indexes, &root.id), rows);
    assert_eq!(root.hybrid("parse_header")[0], "src/parse.rs");
    assert!(root.indexes.remove_root(&root.id).unwrap());
    // On a busy machine the removal ends after the call.
    let until = Instant::now() + Duration::from_secs(60);
    while fs::read_dir(root.index_folder()).unwrap().count() > 0 {
        assert!(Instant::now() < until, "the index folder is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        root.indexes.lexical(&params("x"), &CancelFlag::new(), &|_| {}).unwrap_err().reason,
        Reason::NoRoots
    );
    assert_eq!(root.indexes.status(Some(&root.id)).unwrap_err().reason, Reason::RootNotFound);
}

#[test]
fn only_window_of_a_repository_is_scored_like_one_of_many() {
    let text = "def parse_header(line):\n    name, value = line.split(':')\n    return name, value.strip()\n\n\n\
                def write_body(out, body):\n    out.write(body)\n    out.flush()\n    return len(body)\n";
    let root = TestRoot::new(&[("http.py", text)]);
    root.build();
    let params: SearchParams = serde_json::from_value(
        serde_json::json!({"query": "how is the header of a message parsed"}),
    )
    .unwrap();
    let none = CancelFlag::new();
    for answer in [
        root.indexes.hybrid(&params, &none, &|_| ()),
        root.indexes.semantic(&params, &none, &|_| ()),
    ] {
        let items = answer.unwrap().items;
        assert_eq!(items[0].symbol.as_ref().map(|s| &*s.name), Some("parse_header"), "{items:?}");
        assert!(items.iter().all(|i| (-1.0..8.0).contains(&i.score)), "{items:?}");
    }
}
