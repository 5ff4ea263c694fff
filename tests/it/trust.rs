//! Items of a folder run by their content alone, and no tool changes the files that the daemon runs.

use std::fs;

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    hooks::{Scene, of},
    sealed::tree,
};

const SETTINGS: &str = r#"{"hooks": {"PostToolUse": [{"hooks": [{"type": "command",
    "command": "sh scripts/after.sh"}]}]}}"#;
const FILES: &[(&str, &str)] = &[
    ("repo/.claude/settings.json", SETTINGS),
    ("repo/scripts/after.sh", "echo good >> ran\n"),
    ("repo/AGENTS.md", "Be exact.\n"),
    ("repo/plain.txt", "old\n"),
];

fn trusted(scene: &Scene) {
    let (code, _, err) = scene.cairn(&["trust", "--yes"]);
    assert_eq!(code, 0, "{err}");
}

/// A model that edits what the daemon runs, in every way, and an ordinary file as the control.
#[test]
fn no_tool_changes_a_hook_or_its_script() {
    let evil = "echo evil >> ran\n";
    let patch = |path: &str, old: &str| {
        let patch = format!(
            "*** Begin Patch\n*** Update File: {path}\n@@\n-{}\n+echo evil >> ran\n*** End Patch\n",
            old.trim_end()
        );
        calls("apply_patch", &json!({"patch": patch}))
    };
    let command = |line: &str| calls("run_shell", &json!({"command": line}));
    let read = |path: &str| calls("read_file", &json!({"path": path}));
    let edit = |path: &str, old: &str| {
        calls("edit_file", &json!({"path": path, "old_text": old, "new_text": "evil"}))
    };
    let write = |path: &str| calls("write_file", &json!({"path": path, "content": evil}));
    let answers = json!([
        read("scripts/after.sh"),
        edit("scripts/after.sh", "good"),
        read(".claude/settings.json"),
        edit(".claude/settings.json", "after.sh"),
        write("scripts/after.sh"),
        write(".claude/settings.local.json"),
        write(".agents/plugins/p/plugin.json"),
        write(".mcp.json"),
        patch("scripts/after.sh", "echo good >> ran"),
        calls("delete_file", &json!({"path": "scripts/after.sh"})),
        command("echo 'echo evil >> ran' > scripts/after.sh"),
        command("mv scripts s2; mkdir scripts; echo 'echo evil >> ran' > scripts/after.sh"),
        command("rm -rf .claude; mkdir -p .claude; echo '{}' > .claude/settings.json"),
        command("ln scripts/after.sh x; echo 'echo evil >> ran' > x"),
        command(
            "mkdir -p .agents/plugins/p; echo '{\"name\":\"p\"}' > .agents/plugins/p/plugin.json"
        ),
        // The control: an ordinary file.
        read("plain.txt"),
        write("plain.txt"),
        command("echo more >> plain.txt"),
        text_answer("done"),
    ]);
    for mode in ["ask", "accept-edits", "auto"] {
        let config = json!({"permissions": {"allow": ["write_file", "edit_file", "apply_patch",
            "delete_file", "run_shell"]}});
        let scene = Scene::new(&answers, &config, FILES);
        trusted(&scene);
        let (_, out, err) =
            scene.cairn(&["chat", "--json", "--allow-bash", "--mode", mode, "-p", "go"]);
        let events: Vec<Value> =
            out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(events.last().unwrap()["finalOutput"], "done", "{mode}: {out} {err}");
        assert_eq!(scene.text("repo/scripts/after.sh"), "echo good >> ran\n", "{mode}");
        assert_eq!(scene.text("repo/.claude/settings.json"), SETTINGS, "{mode}");
        for path in [".claude/settings.local.json", ".agents/plugins/p/plugin.json", ".mcp.json"] {
            assert!(!scene.path("repo").join(path).exists(), "{mode}: {path}");
        }
        assert_eq!(scene.text("repo/plain.txt"), "echo evil >> ran\nmore\n", "{mode}");
        assert!(!scene.text("repo/ran").contains("evil"), "{mode}: {}", scene.text("repo/ran"));
        assert!(scene.text("repo/ran").contains("good"), "{mode}: the hook itself ran");
    }
}

/// A script that arrives from outside, as by a pull, does not run until its content is trusted.
#[test]
fn changed_hook_is_unused_until_it_is_trusted() {
    let answers = json!([
        calls("read_file", &json!({"path": "plain.txt"})),
        text_answer("one"),
        calls("read_file", &json!({"path": "plain.txt"})),
        text_answer("two"),
        calls("read_file", &json!({"path": "plain.txt"})),
        text_answer("three"),
    ]);
    let scene = Scene::new(&answers, &json!({}), FILES);
    trusted(&scene);
    scene.turn("one");
    assert_eq!(scene.text("repo/ran"), "good\n");
    fs::write(scene.path("repo/scripts/after.sh"), "echo evil >> ran\n").unwrap();
    // No approver: it is not used, and the turn says so.
    let events = scene.turn("two");
    assert_eq!(scene.text("repo/ran"), "good\n");
    let warnings = of(&events, "warning");
    let text = warnings.iter().map(ToString::to_string).collect::<String>();
    assert!(text.contains("changed since the folder was trusted"), "{text}");
    let (_, output, _) = scene.cairn(&["trust", "--show"]);
    assert!(
        output.contains("-echo good >> ran") && output.contains("+echo evil >> ran"),
        "{output}"
    );
    // Control: trusting the new content runs it.
    trusted(&scene);
    scene.turn("three");
    assert_eq!(scene.text("repo/ran"), "good\nevil\n");
    let (_, out, _) = scene.cairn(&["trust", "--remove"]);
    assert_eq!(out, "");
    assert!(scene.cairn(&["trust", "--show"]).1.contains("not trusted"));
}

/// A repository below a trusted one, and a folder that moved, bring nothing.
#[test]
fn trust_is_of_one_folder_and_its_content() {
    let below = [
        ("repo/vendor/theirs/.claude/settings.json", SETTINGS),
        ("repo/vendor/theirs/.git/HEAD", "ref: refs/heads/main\n"),
        ("repo/vendor/theirs/scripts/after.sh", "echo evil >> ran\n"),
    ];
    let files: Vec<(&str, &str)> = FILES.iter().chain(&below).copied().collect();
    let answers = json!([calls("list_files", &json!({"path": "."})), text_answer("done")]);
    let config = json!({"trust": {"folders": ["{DIR}"]}});
    let scene = Scene::new(&answers, &config, &files);
    trusted(&scene);
    let inner = scene.path("repo/vendor/theirs");
    let chat = ["chat", "--sandbox", &inner.to_string_lossy(), "-p", "go"];
    let (code, out, err) = scene.cairn(&chat);
    assert_eq!(code, 0, "{out} {err}");
    assert!(!inner.join("ran").exists(), "{out} {err}");
    for (folder, part) in [("/", "not a project"), ("/no/such", "cannot be opened")] {
        let (code, _, err) = scene.cairn(&["trust", folder, "--yes"]);
        assert_ne!(code, 0);
        assert!(err.contains(part), "{folder}: {err}");
    }
}

/// A trusted hook of a project stays in the sandbox until the user's own configuration has its
/// whole command line.
#[test]
fn hook_of_a_project_leaves_the_sandbox_by_its_exact_command_alone() {
    let line = "echo ran >> ran; echo out >> {DIR}/user/out";
    for (listed, leaves) in [(line, true), ("echo ran >> ran", false), ("*", false)] {
        let hook = json!({"hooks": {"UserPromptSubmit": [{"hooks": [
            {"type": "command", "command": line}]}]}})
        .to_string();
        let config = json!({"hooks": {"outsideSandbox": [listed]}});
        let files = [("repo/.claude/settings.json", hook.as_str())];
        let scene = Scene::new(&json!([text_answer("done")]), &config, &files);
        trusted(&scene);
        let events = scene.turn("go");
        assert_eq!(scene.text("repo/ran"), "ran\n", "{listed}: {events:#?}");
        assert_eq!(scene.path("user/out").exists(), leaves, "{listed}: {events:#?}");
        let ran = of(&events, "hook_finished");
        assert!(ran.iter().all(|evt| evt["sandboxed"] == !leaves), "{listed}: {ran:#?}");
    }
}

/// The data folder decides what the daemon does: no tool reads or writes it, wherever the root is.
#[test]
fn data_and_configuration_folders_are_closed() {
    let scene = Scene::new(&json!([]), &json!({"permissions": {"allow": ["*"]}}), &[]);
    let top = scene.path("");
    tree(&top, &[("home/memory/a.md", "# mine\n"), ("home/new/x.txt", "a-text-of-its-own\n")]);
    let call = |tool: &str, arguments: &Value| {
        let root = top.to_string_lossy().into_owned();
        scene.cairn(&["tools", "call", tool, &arguments.to_string(), "--root", &root, "--yes"])
    };
    for path in [
        "home/state.json",
        "home/token",
        "home/memory/a.md",
        "home/trust/folders.json",
        "home/new/x.txt",
        "home/config/config.json",
    ] {
        let before = scene.text(path);
        let (code, out, _) = call("read_file", &json!({"path": path}));
        assert_ne!(code, 0, "{path}: {out}");
        let (code, out, _) = call("write_file", &json!({"path": path, "content": "evil"}));
        assert_ne!(code, 0, "{path}: {out}");
        let line = format!("cat {path}; echo evil > {path}");
        let (_, out, _) = call("run_shell", &json!({"command": line}));
        assert!(before.is_empty() || !out.contains(before.trim()), "{path}: {out}");
        assert!(!scene.text(path).contains("evil"), "{path}");
    }
    // Control: beside it.
    let (code, out, err) = call("write_file", &json!({"path": "beside.txt", "content": "x"}));
    assert_eq!(code, 0, "{out} {err}");
}
