//! Mistakes of a stranger on the command line: each message names the mistake and the way out.

use serde_json::Value;

use crate::sealed::{Daemon, cairn, tree};

/// Arguments, exit code, and parts of the message.
type Mistake = (&'static [&'static str], i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    (&["chat", "--contine"], 2, &["'--contine'", "'--continue'"]),
    (&["explore", "nowhere"], 3, &["nowhere' does not exist"]),
    (&["explore", "notes.txt"], 3, &["notes.txt' is not a folder"]),
    (&["explore", ""], 2, &["a value is required for '[PATH|URL]'"]),
    (&["grep", "a("], 2, &["unclosed group", "-F"]),
    (&["grep", "one", "-A", "-1"], 2, &["'-1'", "a number of lines from 0 to 100"]),
    (&["search", "one", "-k", "many"], 2, &["'many'", "it is not a whole number"]),
    (&["search", "one", "--lang", "klingon"], 2, &["the language 'klingon' is unknown", "index"]),
    (&["symbols", "one", "--kind", "thing"], 2, &["the kind 'thing' is not one of", "function"]),
    (&["refs", "nothere"], 2, &["there is no definition of 'nothere'", "'cairn symbols NAME'"]),
    (&["map", "--file", "src"], 2, &["'src' is a folder", "--file takes a file"]),
    (&["config", "llm.modle"], 3, &["no setting 'llm.modle'", "did you mean 'llm.model'?"]),
    (&["sessions", "-k", "0"], 2, &["0 is not in 1..=100"]),
    (&["run", ""], 2, &["a value is required for '<REQUEST>'"]),
    (&["run", "x", "--budget", "-1"], 2, &["an amount above 0, such as 2 or 0.5"]),
    (
        &["approvals", "answer", "abcd", "maybe"],
        2,
        &["once (yes), session, always, everywhere, deny (no)"],
    ),
    (&["worktrees", "remove", "nothing"], 3, &["nothing' is not a work tree", "'cairn worktrees'"]),
    (&["memory", "show", "nothing"], 3, &["no entry", "'cairn memory list'"]),
    (&["schedule", "remove", "nothing"], 2, &["'nothing' is not an id", "'cairn schedule'"]),
    (&["tools", "call", "nothing"], 3, &["no tool 'nothing'", "'cairn tools'"]),
    (&["models", "--provider", "x"], 2, &["unexpected argument '--provider'"]),
];

#[test]
fn message_names_the_mistake_and_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    tree(&root, &[("src/a.rs", "fn one() {}\n"), ("notes.txt", "x\n"), (".git/HEAD", "x")]);
    let daemon = Daemon::start();
    let root = root.canonicalize().unwrap();
    for (args, expected, parts) in MISTAKES {
        let (code, out, err) = cairn(&daemon.home, &root, args);
        assert_eq!((code, out.as_str()), (*expected, ""), "{args:?}: {err}");
        for part in *parts {
            assert!(err.contains(part), "{args:?}: '{part}' is missing: {err}");
        }
        for absent in ["os error", "to pass '", "index.status", "invalid digit", "filters."] {
            assert!(!err.contains(absent), "{args:?}: '{absent}': {err}");
        }
        let json = [&["--json"], *args].concat();
        let (code, out, err) = cairn(&daemon.home, &root, &json);
        // The result of a tool is an output, with its error inside.
        let line = if err.is_empty() { out.trim() } else { err.lines().last().unwrap_or_default() };
        let error: Value = serde_json::from_str(line)
            .unwrap_or_else(|_| panic!("{args:?} with --json is no JSON: {err}"));
        assert_eq!(code, *expected, "{error}");
        assert!(error["error"]["message"].is_string(), "{error}");
    }
}
