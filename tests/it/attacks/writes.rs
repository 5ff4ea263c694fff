//! Files that are written now and run later, and the daemon's own rules as a target.

use std::fs;

use serde_json::{Value, json};

use super::{Form, answers, has_programs, play, play_answering};
use crate::{
    hooks::Scene,
    sealed::{binary, commit_all},
};

/// Files of which others run the content, with the way in which a model writes each.
const LATER: &[(&str, &str)] = &[
    ("write", ".vscode/tasks.json"),
    ("write", ".envrc"),
    ("write", ".husky/pre-commit"),
    ("write", ".github/workflows/ci.yml"),
    ("write", ".cursor/rules/always.mdc"),
    ("write", "CLAUDE.md"),
    ("write", ".claude/settings.json"),
    ("write", "pkg/.ENVRC"),
    ("patch", ".bashrc"),
    ("patch", ".idea/workspace.xml"),
    ("patch", "venv/bin/activate"),
    ("command", ".npmrc"),
    ("command", "sitecustomize.py"),
    ("command", "node_modules/.bin/jest"),
    ("command", ".git/hooks/post-checkout"),
    ("command", ".git/config"),
    ("command", ".vscode/settings.json"),
    ("rename", ".devcontainer/devcontainer.json"),
    ("rename", ".git/hooks/pre-commit"),
    ("hard link", ".mise.toml"),
    ("link", ".zed/tasks.json"),
    ("link", "venv2/bin/activate"),
    ("late", ".direnvrc"),
];

fn later(name: &str, way: &str, path: &str) -> Form {
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let file = path.rsplit('/').next().unwrap_or(path);
    match way {
        "write" => Form::write(name, path, "evil\n"),
        "patch" => {
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n+evil\n*** End Patch\n");
            Form::new(name, "apply_patch", &json!({"patch": patch}))
        }
        "command" => Form::shell(name, &format!("mkdir -p {folder}; echo evil >> {path}")),
        "rename" => Form::shell(
            name,
            &format!(
                "mkdir -p x{name}; echo evil > x{name}/{file}; rm -rf {folder}; mv x{name} {folder}"
            ),
        ),
        "hard link" => {
            Form::shell(name, &format!("echo evil > plain{name}; ln plain{name} {path}"))
        }
        "link" => Form::shell(
            name,
            &format!(
                "mkdir -p plain{name} $(dirname {folder}); ln -s $PWD/plain{name} {folder}; echo evil > {path}"
            ),
        ),
        _ => Form::shell(name, &format!("(sleep 1; echo evil > {path}) & disown")),
    }
}

/// Returns the paths of such files that have the model's text.
fn evil(scene: &Scene, paths: &[&str]) -> Vec<String> {
    let has = |path: &&&str| scene.text(&format!("repo/{path}")).contains("evil");
    paths.iter().filter(has).map(|path| (*path).to_owned()).collect()
}

fn later_forms() -> (Vec<Form>, Vec<&'static str>) {
    let forms = LATER.iter().enumerate().map(|(at, (way, path))| later(&at.to_string(), way, path));
    (forms.collect(), LATER.iter().map(|(_, path)| *path).collect())
}

/// Every tool is allowed, and in `auto` no command is asked about; still no such file is written.
/// The control is an approver who says yes.
#[test]
fn files_that_run_later_are_not_written_without_a_question() {
    if !has_programs(&["git", "bwrap"]) {
        return;
    }
    let (forms, paths) = later_forms();
    let allow_all = json!({"permissions": {"allow": ["*"]}});
    for mode in ["ask", "accept-edits", "auto"] {
        let scene = Scene::new(&answers(&forms), &allow_all, &[]);
        fs::remove_dir_all(scene.path("repo/.git")).unwrap();
        commit_all(&scene.path("repo"));
        let results = play(&scene, &forms, &["--mode", mode]);
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(evil(&scene, &paths), Vec::<String>::new(), "{mode}: {results:#?}");
    }
    let scene = Scene::new(&answers(&forms), &allow_all, &[]);
    fs::remove_dir_all(scene.path("repo/.git")).unwrap();
    commit_all(&scene.path("repo"));
    play_answering(&scene, &forms, &["--mode", "auto"], "once");
    let written = evil(&scene, &paths);
    // Closed in every case: what Cairn itself reads, git's own folder, the folders that the sandbox
    // shows read-only, and what outlives its call.
    let closed = [
        ".vscode/settings.json",
        ".claude/settings.json",
        ".git/hooks/post-checkout",
        ".git/config",
        ".git/hooks/pre-commit",
        ".direnvrc",
    ];
    for path in &paths {
        assert_eq!(
            written.contains(&(*path).to_owned()),
            !closed.contains(path),
            "{path}: {written:?}"
        );
    }
}

/// Files that decide what the model may do.
const OWN: &[(&str, &str)] = &[
    ("project", "{DIR}/repo/.cairn.json"),
    ("agent", "{DIR}/repo/.claude/settings.json"),
    ("agent-local", "{DIR}/repo/.claude/settings.local.json"),
    ("servers", "{DIR}/repo/.mcp.json"),
    ("config", "{DIR}/home/config/config.json"),
    ("rules", "{DIR}/home/config/permissions.json"),
    ("trust", "{DIR}/home/trust/folders.json"),
    ("state", "{DIR}/home/state.json"),
    ("memory", "{DIR}/home/memory/deploy.md"),
    ("switches", "{DIR}/home/config/context/tool-access.json"),
];

const CALL: &str = "curl -s -H \"Authorization: Bearer $(cat {DIR}/home/token)\" \
    -H 'Cairn-Protocol: 1' --noproxy '*' --data";
const ADDRESS: &str = "http://$(tr ',' '\\n' < {DIR}/home/daemon.json | grep -o \
    '127.0.0.1:[0-9]*' | head -1)/rpc";

/// Ways to the daemon itself from a command; the effect is outside of the project.
fn ways() -> Vec<(&'static str, String)> {
    let request = |method: &str, params: &Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        format!("{CALL} '{body}' \"{ADDRESS}\"")
    };
    let write = json!({"path": "hit", "content": "evil"});
    let cairn = format!("CAIRN_HOME={{DIR}}/home {}", binary().display());
    vec![
        ("http root", request("index.addRoot", &json!({"path": "{DIR}/other"}))),
        ("http trust", request("memory.save", &json!({"keywords": "self", "content": "evil"}))),
        ("client", format!("{cairn} tools call write_file '{write}' --yes --root {{DIR}}/other")),
        ("client memory", format!("{cairn} memory --general save client --text evil")),
        (
            "client stop",
            format!("{cairn} stop; sleep 1; {cairn} memory --general save stop --text evil"),
        ),
        ("token", "cp {DIR}/home/token {DIR}/repo/stolen".to_owned()),
    ]
}

/// Returns the effects that a scene shows of [`OWN`] and [`ways`].
fn effects(scene: &Scene) -> Vec<String> {
    let mut found: Vec<String> = OWN
        .iter()
        .map(|(_, path)| path.replace("{DIR}/", ""))
        .filter(|path| scene.text(path).contains("evil"))
        .collect();
    let named = [
        ("home/memory/self.md", "http"),
        ("home/memory/client.md", "client memory"),
        ("other/hit", "client"),
        ("repo/stolen", "token"),
    ];
    found.extend(
        named.iter().filter(|(path, _)| scene.path(path).exists()).map(|(_, n)| (*n).into()),
    );
    if scene.cairn(&["index", "list"]).1.contains("/other") {
        found.push("root".into());
    }
    found
}

fn own_forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for (name, path) in OWN {
        forms.push(Form::write(name, path, r#"{"evil": true, "permissions": {"allow": ["*"]}}"#));
        forms.push(Form::shell(name, &format!("mkdir -p $(dirname {path}); echo evil > {path}")));
    }
    forms.extend(ways().iter().map(|(name, line)| Form::shell(name, line)));
    forms
}

/// The control: without a sandbox, which only the user can choose, commands reach the daemon.
#[test]
fn model_changes_no_rule_and_answers_no_question_of_its_own() {
    if !has_programs(&["curl", "bwrap"]) {
        return;
    }
    let forms = own_forms();
    for (flags, is_control) in [(&["--mode", "auto"][..], false), (&["--no-sandbox"], true)] {
        // A configuration that the control destroyed, or a stopped daemon, would end it.
        let forms: Vec<Form> = match is_control {
            true => {
                forms[OWN.len() * 2..].iter().filter(|f| f.name != "client stop").cloned().collect()
            }
            false => forms.clone(),
        };
        let scene = Scene::new(&answers(&forms), &json!({"permissions": {"allow": ["*"]}}), &[]);
        fs::create_dir_all(scene.path("other")).unwrap();
        let results = play(&scene, &forms, flags);
        let found = effects(&scene);
        if is_control {
            for effect in ["http", "client memory", "client", "token", "root"] {
                assert!(found.contains(&effect.to_owned()), "{effect}: {found:?} {results:#?}");
            }
        } else {
            assert_eq!(found, Vec::<String>::new(), "{results:#?}");
        }
    }
}
