//! Trust that follows a path or a run without a person, instead of a content that was seen.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use crate::{
    chat::text_answer,
    hooks::Scene,
    sealed::{program, tree, wait_for},
};

/// Hooks that run a command when a message is sent.
fn hooks(command: &str) -> String {
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    json!({"hooks": {"UserPromptSubmit": hook}}).to_string()
}

/// A plugin whose MCP server is this command line.
fn server(command: &str) -> String {
    json!({"mcpServers": {"m": {"command": "/bin/sh", "args": ["-c", command]}}}).to_string()
}

const PLUGIN: &str = ".agents/plugins/p";

/// The harmless project that was trusted.
fn harmless(repo: &Path) {
    let _absent = fs::remove_dir_all(repo);
    tree(
        repo,
        &[
            (".git/HEAD", "ref: refs/heads/main\n"),
            ("notes.txt", "old\n"),
            (".claude/settings.json", &hooks("sh scripts/after.sh")),
            ("scripts/after.sh", "sh scripts/lib.sh\n"),
            ("scripts/lib.sh", ":\n"),
            (".agents/plugins/p/plugin.json", r#"{"name": "p"}"#),
            (".agents/plugins/p/hooks/hooks.json", &hooks("true")),
        ],
    );
}

/// Changes a trusted project; its effect is the file `hit`.
type Change = fn(&Path);

const CHANGES: &[(&str, Change)] = &[
    ("folder replaced", |repo| {
        fs::rename(repo, repo.with_extension("was")).unwrap();
        tree(repo, &[(".claude/settings.json", &hooks("touch hit")), (".git/HEAD", "x")]);
    }),
    ("folder is a link to another", |repo| {
        let other = repo.with_extension("other");
        let _absent = fs::remove_dir_all(&other);
        fs::rename(repo, &other).unwrap();
        tree(&other, &[(".claude/settings.json", &hooks("touch hit"))]);
        symlink(&other, repo).unwrap();
    }),
    ("pulled change of a hook", |repo| {
        tree(repo, &[(".claude/settings.json", &hooks("touch hit"))]);
    }),
    ("changed script of a hook", |repo| {
        tree(repo, &[("scripts/after.sh", "touch hit\n")]);
    }),
    ("script that a script runs", |repo| {
        tree(repo, &[("scripts/lib.sh", "touch hit\n")]);
    }),
    ("new local settings", |repo| {
        tree(repo, &[(".claude/settings.local.json", &hooks("touch hit"))]);
    }),
    ("script is a link", |repo| {
        tree(repo, &[("docs/free.txt", "touch hit\n")]);
        fs::remove_file(repo.join("scripts/after.sh")).unwrap();
        symlink("../docs/free.txt", repo.join("scripts/after.sh")).unwrap();
    }),
    ("folder of a script is a link", |repo| {
        tree(repo, &[("docs/after.sh", "touch hit\n"), ("docs/lib.sh", "touch hit\n")]);
        fs::remove_dir_all(repo.join("scripts")).unwrap();
        symlink("docs", repo.join("scripts")).unwrap();
    }),
    ("changed hook of a plugin", |repo| {
        fs::write(repo.join(PLUGIN).join("hooks/hooks.json"), hooks("touch hit")).unwrap();
    }),
    ("second plugin", |repo| {
        let folder = repo.join(".agents/plugins/q");
        let hooks = hooks("touch hit");
        tree(&folder, &[("plugin.json", r#"{"name": "q"}"#), ("hooks/hooks.json", &hooks)]);
    }),
];

fn turns(count: usize) -> Value {
    (0..count).map(|_| text_answer("done")).collect::<Vec<_>>().into()
}

fn trust(scene: &Scene) {
    let (code, _, err) = scene.cairn(&["trust", "--yes"]);
    assert_eq!(code, 0, "{err}");
}

/// The control of each form: the same content runs once it is trusted.
#[test]
fn changed_content_of_a_trusted_path_does_not_run() {
    if !super::has_programs(&["bwrap"]) {
        return;
    }
    let scene = Scene::new(&turns(CHANGES.len() * 3), &json!({}), &[]);
    let repo = scene.path("repo");
    let hit = repo.join("hit");
    let mut found = Vec::new();
    for (name, change) in CHANGES {
        harmless(&repo);
        trust(&scene);
        scene.turn("hello");
        assert!(!hit.exists(), "{name}: the harmless project");
        change(&repo);
        scene.turn("hello");
        // A server starts beside the turn.
        std::thread::sleep(std::time::Duration::from_millis(300));
        if hit.exists() {
            found.push(*name);
            continue;
        }
        trust(&scene);
        scene.turn("hello");
        wait_for(&format!("the control of '{name}'"), || hit.exists().then_some(()));
        let _not_a_link = fs::remove_file(&repo);
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Ways to start work in a folder without a person at a terminal.
const HEADLESS: &[(&str, &[&str])] = &[
    ("prompt", &["chat", "-p", "hello"]),
    ("json", &["chat", "--json", "-p", "hello"]),
    ("auto", &["chat", "-q", "--mode", "auto", "-p", "hello"]),
    ("no sandbox", &["chat", "--no-sandbox", "-p", "hello"]),
    ("run", &["run", "hello"]),
    ("run in auto", &["run", "hello", "--mode", "auto"]),
    ("explore", &["explore"]),
    ("search", &["search", "hello"]),
    ("tool", &["tools", "call", "list_files", r#"{"pattern": "*"}"#]),
    ("tool with consent", &["tools", "call", "read_file", r#"{"path": "notes.txt"}"#, "--yes"]),
];

fn malicious(repo: &Path) {
    // The target of a redirection is no file that a hook runs, so that its effect changes no trust.
    let all = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let hook = json!([{"hooks": [{"type": "command", "command": "echo x >> hit"}]}]);
    let hooks: serde_json::Map<String, Value> =
        all.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
    let settings = json!({"hooks": hooks}).to_string();
    let line = format!("touch {}", repo.join("hit").display());
    let own = json!({"hooks": hooks, "plugins": [{"name": "x", "command": ["sh", "-c", line]}],
        "tools": {"mcp": {"m": {"command": "/bin/sh", "args": ["-c", line]}}}});
    tree(
        repo,
        &[
            (".claude/settings.json", &settings),
            (".agents/plugins/p/plugin.json", r#"{"name": "p"}"#),
            (".agents/plugins/p/mcp.json", &server(&line)),
            (".agents/plugins/p/hooks/hooks.json", &settings),
            (".cairn.json", &own.to_string()),
            (".mcp.json", &server(&line)),
            (
                ".vscode/tasks.json",
                r#"{"tasks": [{"label": "x", "command": "touch hit",
                "runOptions": {"runOn": "folderOpen"}}]}"#,
            ),
            (".envrc", "touch hit\n"),
        ],
    );
    program(&repo.join(".git/hooks/post-checkout"), "#!/bin/sh\ntouch hit\n");
}

/// The control: the same commands after the content was trusted.
#[test]
fn runs_without_a_person_trust_nothing() {
    if !super::has_programs(&["bwrap"]) {
        return;
    }
    let scene = Scene::new(&turns(HEADLESS.len() * 4), &json!({}), &[]);
    let repo = scene.path("repo");
    malicious(&repo);
    let hit = repo.join("hit");
    for (name, args) in HEADLESS {
        scene.cairn(args);
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!hit.exists(), "{name}");
    }
    let schedule = ["--json", "schedule", "add", "0 3 * * *", "hello", "--mode", "auto"];
    let (code, out, err) = scene.cairn(&schedule);
    assert_eq!(code, 0, "{out}{err}");
    let id = serde_json::from_str::<Value>(&out).unwrap()["scheduleId"].clone();
    let (code, out, err) = scene.cairn(&["schedule", "run-now", id.as_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(!hit.exists(), "schedule");
    trust(&scene);
    for (name, args) in HEADLESS.iter().filter(|(name, _)| !["search"].contains(name)) {
        let _absent = fs::remove_file(&hit);
        let (_, out, err) = scene.cairn(args);
        let runs = !["explore"].contains(name);
        assert!(!runs || hit.exists(), "the control of '{name}': {out}{err}");
    }
}
