//! Commands as a user types them, with the daemon that they start or find.

use serde_json::{Value, json};

use crate::{
    contents::index,
    sealed::{Daemon, Raw, cairn, tree},
};

const FILES: &[(&str, &str)] = &[
    (
        "src/log.rs",
        "/// Adds to the end.\npub fn append_record() {}\n\npub fn close_record_log() {}\n",
    ),
    ("src/server.rs", "pub fn serve_requests() {\n    append_record();\n}\n"),
    ("src/main.rs", "fn main() {\n    append_record();\n    serve_requests();\n}\n"),
];

/// Starts a daemon with an indexed repository.
async fn indexed() -> (tempfile::TempDir, Daemon, Raw) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    tree(&root, FILES);
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, &root).await;
    (dir, daemon, raw)
}

#[tokio::test]
async fn map_is_printed() {
    let (dir, daemon, mut raw) = indexed().await;
    let map = raw.ok("search.map", json!({})).await;
    let text = map["text"].as_str().unwrap();
    assert!(text.starts_with("src/log.rs\n 2 pub fn append_record()\n"), "{map}");
    assert_eq!(
        (&map["complete"], &map["files"][0]["definitions"][1]["line"]),
        (&json!(true), &json!(4))
    );
    assert_eq!(raw.refused("search.map", json!({"budget": 0})).await, "invalid_params");
    assert_eq!(raw.refused("search.map", json!({"files": ["gone.rs"]})).await, "path_not_found");

    let repo = dir.path().join("repo");
    let (code, printed, err) = cairn(&daemon.home, &repo, &["map"]);
    assert_eq!((code, &*printed), (0, text), "{err}");
    assert!(err.contains("3 files, 4 definitions, "), "{err}");
    let args =
        ["--json", "map", "--tokens", "20", "--file", "src/server.rs", "--query", "append_record"];
    let (code, printed, _) = cairn(&daemon.home, &repo, &args);
    let small: Value = serde_json::from_str(&printed).unwrap();
    assert!(code == 0 && small["tokens"].as_u64().unwrap() <= 20, "{small}");
    assert_eq!(small["files"][0]["definitions"][0]["name"], "append_record", "{small}");
    assert_eq!(cairn(&daemon.home, &repo, &["map", "--file", "gone.rs"]).0, 3);
}

#[tokio::test]
async fn mcp_refuses_names_of_no_tool() {
    let (dir, daemon, _raw) = indexed().await;
    let repo = dir.path().join("repo");
    let (code, out, err) =
        cairn(&daemon.home, &repo, &["mcp", "--tools", "default,serach,nothing"]);
    assert_eq!((code, &*out), (2, ""), "{err}");
    assert!(err.contains("'serach', 'nothing' are no tools; did you mean 'search'?"), "{err}");
    let (code, _, err) = cairn(&daemon.home, &repo, &["mcp", "--tools", "search,git_log,run_turn"]);
    assert_eq!(code, 0, "{err}");
}

#[tokio::test]
async fn eval_measures_a_search() {
    let (dir, daemon, _raw) = indexed().await;
    let repo = dir.path().join("repo");
    let queries = [
        json!({"query": "append_record", "query_id": "q", "relevant": [{"path": "src/log.rs", "start": 1, "end": 2}]}),
        json!({"query": "close_record_log", "relevant": [{"path": "src/gone.rs"}], "kind": "other"}),
        json!({"query": "serve", "relevant": [], "skip": true}),
    ];
    let lines: String = queries.iter().map(|q| format!("{q}\n")).collect();
    tree(dir.path(), &[("q.jsonl", &lines), ("bad.jsonl", "{}\n[]\n")]);
    let file = dir.path().join("q.jsonl");
    let file = file.to_str().unwrap();

    let (code, printed, err) = cairn(&daemon.home, &repo, &["eval", file, "--misses"]);
    assert!(
        code == 0 && printed.contains("all      query  span         1  1.000"),
        "{printed}{err}"
    );
    assert!(
        printed.contains("1 of 2 queries missed")
            && printed.contains("src/gone.rs  (file not found)")
    );
    assert!(err.contains("line 2: src/gone.rs is not in the index of "), "{err}");
    let answers = dir.path().join("answers.json");
    let args =
        ["--json", "eval", file, "--answers", answers.to_str().unwrap(), "--mode", "lexical"];
    let figures: Value = serde_json::from_str(&cairn(&daemon.home, &repo, &args).1).unwrap();
    assert_eq!((&figures["queries"], &figures["skipped"]), (&json!(2), &json!(1)), "{figures}");
    assert_eq!(figures["perQuery"][0]["relevant"][0]["spanRank"], 1, "{figures}");
    assert_eq!(figures["remarks"].as_array().unwrap().len(), 1, "{figures}");
    let answers: Value = serde_json::from_slice(&std::fs::read(answers).unwrap()).unwrap();
    assert_eq!(answers["q"][0]["path"], "src/log.rs");

    let bad = dir.path().join("bad.jsonl");
    let (code, _, err) = cairn(&daemon.home, &repo, &["eval", bad.to_str().unwrap()]);
    assert!(code == 2 && err.contains("line 1: ") && err.contains("line 2: "), "{err}");
    assert_eq!(cairn(&daemon.home, &repo, &["eval", "nowhere.jsonl"]).0, 3);
    let (code, _, err) = cairn(&daemon.home, &repo, &["eval", file, "--repos", ".."]);
    assert!(code == 2 && err.contains("line 1: no query names a repo"), "{err}");
}

#[tokio::test]
async fn eval_declares_repositories() {
    let dir = tempfile::tempdir().unwrap();
    tree(&dir.path().join("all/one"), FILES);
    tree(&dir.path().join("all/two"), &[("tool.py", "def rotate_logs():\n    pass\n")]);
    let query = |repo: &str, query: &str, path: &str| json!({"repo": repo, "query": query, "relevant": [{"path": path}]});
    let lines = format!(
        "{}\n{}\n",
        query("one", "append_record", "src/log.rs"),
        query("two", "rotate logs", "tool.py")
    );
    tree(dir.path(), &[("q.jsonl", &lines)]);
    let daemon = Daemon::start();
    let (code, printed, err) =
        cairn(&daemon.home, dir.path(), &["--quiet", "eval", "q.jsonl", "--repos", "all"]);
    assert!(
        code == 0 && printed.contains("overall  all    file            1.000"),
        "{printed}{err}"
    );
    let (code, _, err) = cairn(&daemon.home, dir.path(), &["eval", "q.jsonl"]);
    assert!(code == 2 && err.contains("several repositories: one, two"), "{err}");
}

#[tokio::test]
async fn piped_search_prints_one_plain_line_per_result() {
    let (dir, daemon, _raw) = indexed().await;
    let (code, printed, _) =
        cairn(&daemon.home, &dir.path().join("repo"), &["search", "append_record", "-k", "1"]);
    assert_eq!(code, 0);
    let (location, score) = printed.trim_end().rsplit_once("  ").unwrap();
    assert_eq!(location, "src/log.rs:2-2  function append_record");
    assert!(score.parse::<f64>().is_ok() && printed.lines().count() == 1, "{printed}");
}

#[tokio::test]
async fn search_has_passages_in_json_and_reports_weak_matches() {
    let (dir, daemon, _raw) = indexed().await;
    let repo = dir.path().join("repo");
    let (code, page, _) = cairn(&daemon.home, &repo, &["--json", "search", "append_record"]);
    let page: Value = serde_json::from_str(&page).unwrap();
    assert!(page["items"][0]["text"].as_str().unwrap().contains("append_record"), "{page}");
    assert!(code == 0 && page["weak"].is_null(), "{page}");
    let nonsense = ["search", "chocolate", "cake", "recipe"];
    let (code, printed, err) = cairn(&daemon.home, &repo, &nonsense);
    assert!(code == 1 && err.contains("no good match; nearest:"), "{printed}{err}");
    assert!(!printed.is_empty());
}

#[tokio::test]
async fn grep_takes_the_flags_of_ripgrep_with_their_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    tree(&repo, FILES);
    let lines: String = (1..=60).map(|n| format!("row {n} of foo-bar\n")).collect();
    tree(&repo, &[("z/many.txt", &lines), ("z/empty.txt", ""), ("z/-x.md", "-x Foo\nfoo foo\n")]);
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, &repo).await;
    for flags in [
        &["-n", "foo"] as &[&str],
        &["-i", "FOO"],
        &["-w", "row 1"],
        &["-v", "row"],
        &["-v", "-c", "row"],
        &["-l", "record"],
        &["-c", "foo"],
        &["-o", "o{2}"],
        &["-o", "-N", "row [0-9]"],
        &["-F", "()"],
        &["-e", "-x"],
        &["-e", "append", "-e", "close"],
        &["-F", "-e", "(", "-e", "row 7 "],
        &["-A", "2", "row 1. "],
        &["-B", "1", "row (5|7|20) "],
        &["-C", "3", "row (5|12|13|30) "],
        &["-A", "1", "-B", "2", "row (5|8|60) "],
        &["-v", "-C", "1", "row"],
        &["-g", "*.txt", "row 3"],
        &["-g", "!*.txt", "foo"],
        &["-t", "rust", "record"],
        &["-t", "md", "foo"],
        &["-S", "foo"],
        &["-S", "Foo"],
        &["foo", "z/-x.md"],
        &["foo", "src", "z"],
        &["--files"],
        &["--files", "-g", "*.rs"],
        &["--files", "z"],
    ] {
        let (code, ours, err) = cairn(&daemon.home, &repo, &[&["grep"], flags].concat());
        let mut rg = std::process::Command::new("rg");
        rg.args(["--no-config", "--no-heading", "--with-filename", "--sort", "path"]);
        if !flags.contains(&"-N") {
            rg.arg("--line-number");
        }
        rg.args(flags).current_dir(&repo).stdin(std::process::Stdio::null());
        let theirs = rg.output().expect("ripgrep is installed");
        let expected = String::from_utf8(theirs.stdout).unwrap();
        assert!(!expected.is_empty(), "{flags:?} matches nothing");
        assert_eq!(ours, expected, "{flags:?} {err}");
        assert_eq!(Some(code), theirs.status.code(), "{flags:?}");
    }
    // Exit codes of JSON are those of the text.
    for (flags, expected) in [(&["--files"] as &[&str], 0), (&["-c", "absent"], 1), (&["foo"], 0)] {
        let (code, _, err) = cairn(&daemon.home, &repo, &[&["--json", "grep"], flags].concat());
        assert_eq!(code, expected, "{flags:?} {err}");
    }
    for (flags, hint) in [
        (&["-A", "101", "x"] as &[&str], "0 to 100"),
        (&["-o", "-v", "x"], "cannot be used with"),
        (&["--files", "-c"], "cannot be used with"),
        (&[""], "cairn grep --files"),
        (&["-t", "klingon", "x"], "klingon"),
    ] {
        let (code, _, err) = cairn(&daemon.home, &repo, &[&["grep"], flags].concat());
        assert!(code == 2 && err.contains(hint), "{flags:?}: {err}");
    }
}

#[tokio::test]
async fn grep_prints_all_lines_or_the_requested_number() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    tree(&repo, FILES);
    tree(&repo, &[("z/many.txt", &"a row and a row\n".repeat(5_000))]);
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, &repo).await;
    let grep = |args: &[&str]| cairn(&daemon.home, &repo, &[&["grep"], args].concat());
    let (code, printed, err) = grep(&["a row"]);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(code == 0 && lines.len() == 5_000, "{} {err}", lines.len());
    assert!(
        lines.iter().zip(1..).all(|(line, n)| *line == format!("z/many.txt:{n}:a row and a row"))
    );
    assert_eq!(grep(&["a row", "-k", "2345"]).1, lines[..2345].join("\n") + "\n");
    assert_eq!(grep(&["-c", "a row"]).1, "z/many.txt:5000\n");
    assert_eq!(
        grep(&["-C", "1", "close_record"]).1,
        "src/log.rs-3-\nsrc/log.rs:4:pub fn close_record_log() {}\n"
    );
    let page: Value =
        serde_json::from_str(grep(&["--json", "append_record", "src/main.rs"]).1.trim()).unwrap();
    assert_eq!(page["items"][0]["line"], 2, "{page}");
    assert_eq!((grep(&["not there"]).0, grep(&["("]).0), (1, 2));
}
