//! Every tool with a path argument, under every spelling of a path, under every kind of rule: no
//! content of closed paths is shown or changed, and without the rule the same call succeeds.
//!
//! The table has over 20,000 cases; the suite runs every seventh, `CAIRN_LONG=1` runs all.

pub mod commands;

use std::os::unix::fs::symlink;

use cairn_harness::{Grants, Rule, Rules, Sandbox, Verdict, WhenMissing};
use cairn_protocol::error::Failure;
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow, within};

/// Text that occurs only in the closed folder.
const MARK: &str = "TOPSECRET";
/// Further names of a closed file: a run's paths may contain them, the rules that hide it do not.
const HARD: [&str; 2] = ["hard", "public/hard"];
const OLD: &[(&str, &str)] = &[
    ("secret/k.key", "old TOPSECRET"),
    ("secret/deep/d.key", "old"),
    ("secret/deep/code.rs", "old"),
];
const FILES: &[(&str, &str)] = &[
    ("secret/k.key", "alpha TOPSECRET line\nfn topsecret_symbol() {}\n"),
    ("secret/deep/d.key", "deep TOPSECRET line\n"),
    ("secret/deep/code.rs", "pub fn topsecret_function() -> u32 { 7 } // TOPSECRET\n"),
    ("public/a.txt", "alpha open line\n"),
    ("public/sub/b.rs", "pub fn open_function() -> u32 { 7 }\n"),
];

/// A call of a tool for a path: its arguments, the kind of path that it accepts, and true if it
/// changes something.
struct Form {
    tool: &'static str,
    arguments: fn(&str) -> Value,
    takes: Takes,
    changes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    File,
    Folder,
    Either,
}

const fn form(
    tool: &'static str,
    takes: Takes,
    changes: bool,
    arguments: fn(&str) -> Value,
) -> Form {
    Form { tool, arguments, takes, changes }
}

const FORMS: &[Form] = &[
    form("read_file", Takes::File, false, |p| json!({"path": p})),
    form("read_file", Takes::File, false, |p| json!({"path": p, "byte_offset": 0})),
    form("content_get_span", Takes::File, false, |p| json!({"path": p, "start": 1, "end": 9})),
    form("fs_list_dir", Takes::Folder, false, |p| json!({"path": p, "depth": 3})),
    form("list_files", Takes::Folder, false, |p| json!({"path": p, "pattern": "**/*"})),
    form(
        "search_files",
        Takes::Either,
        false,
        |p| json!({"path": p, "pattern": "TOPSECRET|alpha"}),
    ),
    form(
        "search_code",
        Takes::Either,
        false,
        |p| json!({"path": p, "query": "TOPSECRET alpha line"}),
    ),
    form("search_grep", Takes::Either, false, |p| json!({"pathPrefix": p, "pattern": "line"})),
    form(
        "search_grep",
        Takes::Either,
        false,
        |p| json!({"filters": {"pathPrefix": p}, "pattern": "line"}),
    ),
    form(
        "search_lexical",
        Takes::Either,
        false,
        |p| json!({"filters": {"pathPrefix": p}, "query": "line", "includeText": true}),
    ),
    form(
        "search_semantic",
        Takes::Either,
        false,
        |p| json!({"filters": {"pathPrefix": p}, "query": "line", "includeText": true}),
    ),
    form(
        "search_hybrid",
        Takes::Either,
        false,
        |p| json!({"filters": {"pathPrefix": p}, "query": "line", "includeText": true}),
    ),
    form("search_symbols", Takes::File, false, |p| json!({"path": p})),
    form("fs", Takes::File, false, |p| json!({"action": "read", "path": p})),
    form(
        "fs",
        Takes::File,
        false,
        |p| json!({"ops": [{"action": "read", "path": p}, {"action": "list", "path": ".", "pattern": "x"}]}),
    ),
    form("fs", Takes::Folder, false, |p| json!({"action": "list", "path": p, "pattern": "**/*"})),
    form(
        "fs",
        Takes::Either,
        false,
        |p| json!({"action": "search", "path": p, "pattern": "TOPSECRET|alpha"}),
    ),
    form("write_file", Takes::File, true, |p| json!({"path": p, "content": "changed"})),
    form(
        "write_file",
        Takes::Folder,
        true,
        |p| json!({"path": format!("{p}/new.txt"), "content": "changed"}),
    ),
    form(
        "edit_file",
        Takes::File,
        true,
        |p| json!({"path": p, "old_text": "line", "new_text": "changed"}),
    ),
    form("delete_file", Takes::File, true, |p| json!({"path": p})),
    form("fs", Takes::File, true, |p| json!({"action": "write", "path": p, "content": "changed"})),
    form(
        "fs",
        Takes::File,
        true,
        |p| json!({"action": "edit", "path": p, "old_text": "line", "new_text": "changed"}),
    ),
    form("fs", Takes::File, true, |p| json!({"action": "delete", "path": p})),
    form(
        "fs",
        Takes::Folder,
        true,
        |p| json!({"ops": [{"action": "write", "path": format!("{p}/new.txt"), "content": "changed"}]}),
    ),
    form(
        "run_shell",
        Takes::Folder,
        true,
        |p| json!({"working_directory": p, "command": "cat * 2>&1; echo changed > new.txt"}),
    ),
    form("git_status", Takes::Folder, false, |p| json!({"path": p})),
    form("git_diff", Takes::Either, false, |p| json!({"path": p})),
];

/// Returns the spellings of a path; those that do not apply to it are left out.
fn spellings(top: &str, path: &str) -> Vec<String> {
    let inner = path.strip_prefix("secret").unwrap_or_default();
    let mut all: Vec<String> = [
        format!("secret{inner}"),
        format!("./secret{inner}"),
        format!(".//secret{inner}"),
        format!("public/../secret{inner}"),
        format!("public/sub/../../secret{inner}"),
        format!("none/../secret{inner}"),
        format!("secret/../secret{inner}"),
        format!("secret/./{}", inner.trim_start_matches('/')),
        format!("secret//{}", inner.trim_start_matches('/')),
        format!("{top}/secret{inner}"),
        format!("{top}/./secret{inner}"),
        format!("{top}/public/../secret{inner}"),
        format!("{top}//secret{inner}"),
        // Links to the folder: a direct one, a chain, one that goes up, an absolute one, one
        // beside the open folder.
        format!("folder{inner}"),
        format!("chain1{inner}"),
        format!("chain3{inner}"),
        format!("public/up{inner}"),
        format!("absolute{inner}"),
        format!("public/sub/around{inner}"),
        format!("./folder/../folder{inner}"),
        format!("{top}/folder{inner}"),
        format!("public/../chain1{inner}"),
    ]
    .into();
    if path.ends_with(".key") && !path.contains("deep") {
        all.extend(["file", "file-chain", "public/file", "absolute-file"].map(str::to_owned));
        all.extend([format!("{top}/file"), format!("{top}/public/file")]);
        all.extend(HARD.map(str::to_owned));
    }
    if !path.contains('.') {
        all.extend([
            format!("secret{inner}/"),
            format!("folder{inner}/"),
            format!("folder{inner}/."),
        ]);
    }
    all
}

fn rules(tool: &str, top: &str) -> Vec<(&'static str, Rules, Grants)> {
    let one = |text: String| -> Rule { text.parse().unwrap() };
    let free = Grants::default();
    let base =
        || Rules { default: Verdict::Allow, allow: vec![one("*".into())], ..Rules::default() };
    let denied = |text: String| Rules { deny: vec![one(text)], allow: vec![], ..base() };
    let last = |text: String| Rules { final_deny: vec![one(text)], ..base() };
    let over = |text: String| Rules { overrides: vec![(one(text), Verdict::Deny)], ..base() };
    let mut all = vec![
        ("deny any tool", denied("*(secret)".into()), free.clone()),
        ("deny any tool, dotted", denied("*(./secret/)".into()), free.clone()),
        ("deny any tool, absolute", denied(format!("*({top}/secret)")), free.clone()),
        ("deny any tool, by its link", denied("*(folder)".into()), free.clone()),
        ("deny any tool, by the end of a chain", denied("*(chain3)".into()), free.clone()),
        ("deny reading", denied("read_file(secret)".into()), free.clone()),
        ("final", last("*(secret)".into()), free.clone()),
        ("final, absolute", last(format!("*({top}/secret)")), free.clone()),
        ("final, reading", last("read_file(secret)".into()), free.clone()),
        (
            "final, two globs",
            Rules {
                final_deny: vec![one("*(secret/**)".into()), one("*(secret)".into())],
                ..base()
            },
            free.clone(),
        ),
        ("final, glob with braces", last("*({secret,none})".into()), free.clone()),
        ("overrides", over("*(secret)".into()), free.clone()),
        ("overrides, reading", over("read_file(secret)".into()), free.clone()),
        (
            "overrides before an allowing one",
            Rules {
                overrides: vec![
                    (one("*(secret)".into()), Verdict::Deny),
                    (one("*(public)".into()), Verdict::Allow),
                ],
                ..base()
            },
            free,
        ),
        ("run paths", base(), within(&["public"])),
        ("run paths, several", base(), within(&["public/sub", "./public/a.txt"])),
        ("run paths that lead through a link", base(), within(&["open-link"])),
    ];
    // A delegating tool is subject to the rules of its delegates; rules of its own name are tried
    // with the others.
    all.push((
        "deny the tool",
        denied(format!("{tool}(secret)").replace("run_shell(secret)", "*(secret)")),
        Grants::default(),
    ));
    all.push((
        "final, the tool",
        last(format!("{tool}(secret)").replace("run_shell(secret)", "*(secret)")),
        Grants::default(),
    ));
    all
}

fn furnish(fixture: &Fixture) {
    let at = |rel: &str| fixture.path(rel);
    symlink("secret", at("folder")).unwrap();
    symlink("chain2", at("chain1")).unwrap();
    symlink("secret", at("chain2")).unwrap();
    symlink("./public/up", at("chain3")).unwrap();
    symlink("../secret", at("public/up")).unwrap();
    symlink("../../folder", at("public/sub/around")).unwrap();
    symlink(at("secret"), at("absolute")).unwrap();
    symlink("secret/k.key", at("file")).unwrap();
    symlink("public/file", at("file-chain")).unwrap();
    symlink("../folder/k.key", at("public/file")).unwrap();
    symlink(at("secret/k.key"), at("absolute-file")).unwrap();
    symlink("public/sub", at("open-link")).unwrap();
    for name in HARD {
        std::fs::hard_link(at("secret/k.key"), at(name)).unwrap();
    }
}

/// Makes the workspace a repository and commits its contents.
fn commit_all(fixture: &Fixture) {
    let repo = git2::Repository::init(fixture.path("")).unwrap();
    let mut index = repo.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repo.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::now("a", "a@example.org").unwrap();
    repo.commit(Some("HEAD"), &author, &author, "first", &tree, &[]).unwrap();
}

/// Returns the content of the workspace, as text.
fn state(fixture: &Fixture) -> String {
    let mut all = Vec::new();
    let mut folders = vec![fixture.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if path.ends_with(".git") {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                all.push(format!(
                    "{} -> {}",
                    path.display(),
                    std::fs::read_link(&path).unwrap().display()
                ));
            } else {
                all.push(format!(
                    "{}: {}",
                    path.display(),
                    std::fs::read_to_string(&path).unwrap_or_default()
                ));
            }
        }
    }
    all.sort();
    all.join("\n")
}

/// Restores the original content.
fn restore(fixture: &Fixture) {
    for entry in std::fs::read_dir(fixture.path("")).unwrap().flatten() {
        let path = entry.path();
        if path.ends_with(".git") {
            continue;
        }
        let _result = if entry.file_type().unwrap().is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        };
    }
    for (file, text) in FILES {
        std::fs::create_dir_all(fixture.path(file).parent().unwrap()).unwrap();
        std::fs::write(fixture.path(file), text).unwrap();
    }
    furnish(fixture);
}

/// Lets the session read every file, so that no edit is refused because its file was not read.
async fn see_all(fixture: &Fixture) {
    fixture.set_rules(Rules { default: Verdict::Allow, ..allow(&["*"]) });
    for (file, _) in FILES {
        fixture.call("read_file", json!({"path": file})).await.unwrap();
    }
}

/// Returns true if a call showed something that occurs only in the closed folder: a text, or the
/// name of a file in it.
fn shows(outcome: &Result<Value, Failure>) -> bool {
    let text = outcome.as_ref().map_or_else(|failure| failure.message.clone(), Value::to_string);
    text.contains(MARK)
        || text.contains("topsecret")
        || outcome.is_ok() && (text.contains("k.key") || text.contains("d.key"))
}

struct Tally {
    cases: usize,
    controls: usize,
    wrong: Vec<String>,
}

fn targets(takes: Takes) -> &'static [&'static str] {
    match takes {
        Takes::File => &["secret/k.key", "secret/deep/d.key", "secret/deep/code.rs"],
        Takes::Folder => &["secret", "secret/deep"],
        Takes::Either => &["secret", "secret/deep", "secret/k.key", "secret/deep/code.rs"],
    }
}

/// Returns the workspace, indexed and read, and true if commands are confined in it.
async fn furnished() -> (Fixture, bool) {
    let sandbox = crate::sandbox();
    let confined = sandbox.is_some();
    let sandbox = sandbox.unwrap_or_else(|| Sandbox::new(None).when_missing(WhenMissing::Off));
    let fixture = Fixture::sandboxed(OLD, Rules::default(), |deps| deps, sandbox).await;
    commit_all(&fixture);
    restore(&fixture);
    fixture.index();
    see_all(&fixture).await;
    (fixture, confined)
}

pub async fn no_path_spelling_bypasses_rules() {
    let long = std::env::var_os("CAIRN_LONG").is_some();
    let (fixture, confined) = furnished().await;
    let top = fixture.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let before = state(&fixture);
    let mut tally = Tally { cases: 0, controls: 0, wrong: vec![] };
    let open =
        Rules { default: Verdict::Allow, allow: vec!["*".parse().unwrap()], ..Rules::default() };
    let mut number = 0_usize;
    for form in FORMS.iter().filter(|form| confined || form.tool != "run_shell") {
        let mut controlled = false;
        for path in targets(form.takes) {
            for spelling in spellings(&top, path) {
                let arguments = (form.arguments)(&spelling);
                // Control: without a rule, some spelling of each form shows or changes something.
                fixture.set_rules(open.clone());
                if !controlled || long && number.is_multiple_of(97) {
                    let outcome = fixture.call(form.tool, arguments.clone()).await;
                    let changed = state(&fixture) != before;
                    controlled |= if form.changes {
                        changed
                    } else {
                        shows(&outcome) || form.tool == "git_status"
                    };
                    tally.controls += 1;
                    if changed {
                        restore(&fixture);
                        see_all(&fixture).await;
                    }
                }
                for (name, rules, grants) in rules(form.tool, &top) {
                    if grants.paths.is_some() && HARD.contains(&spelling.as_str()) {
                        continue;
                    }
                    number += 1;
                    if !long && !number.is_multiple_of(7) {
                        continue;
                    }
                    tally.cases += 1;
                    fixture.set_rules(rules);
                    let outcome = fixture.with(form.tool, arguments.clone(), grants).await;
                    let changed = form.changes && state(&fixture) != before;
                    if shows(&outcome) || changed {
                        tally.wrong.push(format!(
                            "{} {arguments} under '{name}': {outcome:?} changed {changed}",
                            form.tool
                        ));
                        restore(&fixture);
                        see_all(&fixture).await;
                    }
                }
            }
        }
        assert!(controlled, "nothing controls {} {}", form.tool, (form.arguments)("PATH"));
    }
    println!(
        "{number} cases in the table, {} tried, {} controls, {} wrong",
        tally.cases,
        tally.controls,
        tally.wrong.len()
    );
    assert!(number >= 20_000, "{number} cases");
    assert!(
        tally.wrong.is_empty(),
        "{} wrong, the first: {:#?}",
        tally.wrong.len(),
        &tally.wrong[..tally.wrong.len().min(12)]
    );
}

/// Reads and writes a path whose last folder is swapped between an open and a closed one: the
/// result is the open file or an error, never the closed one.
pub async fn symlink_swapped_during_call_discloses_nothing() {
    let fixture = Fixture::with_deps(FILES, Rules::default(), |deps| deps).await;
    std::fs::write(fixture.path("public/sub/k.key"), "alpha open line\n").unwrap();
    let rules = |name: &str| Rules {
        final_deny: vec![name.parse().unwrap()],
        allow: vec!["*".parse().unwrap()],
        ..Rules::default()
    };
    fixture.set_rules(rules("*(secret)"));
    let at = fixture.path("flip");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut allowed, mut denied) = ([0; 4], [0; 4]);
    let before = std::fs::read_to_string(fixture.path("secret/k.key")).unwrap();
    let flip = || {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            for target in ["public/sub", "secret"] {
                let fresh = fixture.path("fresh");
                let _there = symlink(target, &fresh);
                let _renamed = std::fs::rename(&fresh, &at);
            }
        }
    };
    let calls = async {
        for turn in 0..4000 {
            let call =
                match turn % 4 {
                    0 => fixture.call("read_file", json!({"path": "flip/k.key"})).await,
                    1 => {
                        fixture
                            .call(
                                "content_get_span",
                                json!({"path": "flip/k.key", "start": 1, "end": 3}),
                            )
                            .await
                    }
                    2 => fixture
                        .call(
                            "write_file",
                            json!({"path": format!("flip/new{turn}.txt"), "content": "changed"}),
                        )
                        .await,
                    _ => fixture.call("fs_list_dir", json!({"path": "flip", "depth": 2})).await,
                };
            assert!(!call.as_ref().is_ok_and(|v| v.to_string().contains(MARK)), "{call:?}");
            let tally = if call.is_ok() { &mut allowed } else { &mut denied };
            tally[turn % 4] += 1;
        }
    };
    std::thread::scope(|scope| {
        let _stop = cairn_test_support::StopOnDrop(&stop);
        scope.spawn(flip);
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(calls));
    });
    println!(
        "swapped links: {allowed:?} went through, {denied:?} were refused, none showed or changed what is closed"
    );
    let swapped = |kind: usize| allowed[kind] > 20 && denied[kind] > 20;
    assert!((0..4).all(swapped), "{allowed:?} {denied:?}: nothing was swapped in time");
    assert_eq!(std::fs::read_to_string(fixture.path("secret/k.key")).unwrap(), before);
    assert_eq!(std::fs::read_dir(fixture.path("secret")).unwrap().count(), 2);
}
