//! Metadata of a repository that names programs.

use std::fs;

use serde_json::json;

use super::{Form, answers, assert_no_hit, has_programs, play};
use crate::{
    hooks::Scene,
    sealed::{commit_all, git, program, tree},
};

/// Entries of `.git/config` that name programs: name of the form, key, and how the value is made.
const ENTRIES: &[(&str, &str, &str)] = &[
    ("fsmonitor", "core.fsmonitor", "{PROGRAM}"),
    ("external-diff", "diff.external", "{PROGRAM}"),
    ("textconv", "diff.evil.textconv", "{PROGRAM}"),
    ("clean", "filter.evil.clean", "{PROGRAM}"),
    ("smudge", "filter.evil.smudge", "{PROGRAM}"),
    ("process", "filter.late.process", "{PROGRAM}"),
    ("pager", "core.pager", "{PROGRAM}"),
    ("editor", "core.editor", "{PROGRAM}"),
    ("sign", "gpg.program", "{PROGRAM}"),
    ("ssh", "core.sshCommand", "{PROGRAM}"),
    ("credential", "credential.helper", "{PROGRAM}"),
    ("merge", "merge.evil.driver", "{PROGRAM}"),
    ("askpass", "core.askPass", "{PROGRAM}"),
    ("alias", "alias.status", "!{PROGRAM}"),
];

/// Makes the project a repository whose metadata names programs that leave a mark.
fn prepare(scene: &Scene) {
    let repo = scene.path("repo");
    fs::remove_dir_all(repo.join(".git")).unwrap();
    tree(&repo, &[("sub/inner.txt", "x\n"), ("other.txt", "other\n")]);
    commit_all(&repo);
    git(&repo, &["branch", "other"]);
    let attributes = "*.txt diff=evil merge=evil filter=evil\n*.md filter=late\n";
    tree(&repo, &[(".gitattributes", attributes), ("late.md", "x\n")]);
    let marks = scene.path("marks");
    fs::create_dir_all(&marks).unwrap();
    let mark = |name: &str| {
        let program_file = marks.join(name);
        let target = repo.join(format!("hit-{name}"));
        program(&program_file, &format!("#!/bin/sh\ntouch {}\ncat\n", target.display()));
        program_file.to_string_lossy().into_owned()
    };
    for (name, key, value) in ENTRIES {
        git(&repo, &["config", key, &value.replace("{PROGRAM}", &mark(name))]);
    }
    git(&repo, &["config", "commit.gpgSign", "true"]);
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "prepare-commit-msg",
        "commit-msg",
        "reference-transaction",
        "post-index-change",
    ] {
        let target = repo.join(format!("hit-{hook}"));
        let text = format!("#!/bin/sh\ntouch {}\n", target.display());
        program(&repo.join("hooks").join(hook), &text);
        program(&repo.join(".git/hooks").join(hook), &text);
    }
    git(&repo, &["config", "core.hooksPath", &repo.join("hooks").to_string_lossy()]);
    // A bare repository inside, which git finds without any `.git`, and a submodule with a program
    // as its address.
    let bare = repo.join("bare");
    git(
        &repo,
        &[
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "init",
            "-q",
            "--bare",
            "bare",
        ],
    );
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\n\
        fsmonitor = \"{}\"\n",
        mark("bare")
    );
    fs::write(bare.join("config"), config).unwrap();
    let address = format!("ext::sh -c {}", mark("submodule"));
    tree(
        &repo,
        &[
            (".gitmodules", &format!("[submodule \"m\"]\npath = m\nurl = {address}\n")),
            ("notes.txt", "changed\n"),
        ],
    );
    for name in fs::read_dir(&repo).unwrap().flatten().map(|entry| entry.path()) {
        if name.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hit-")) {
            fs::remove_file(name).unwrap();
        }
    }
}

fn forms() -> Vec<Form> {
    vec![
        Form::new("fsmonitor", "git_status", &json!({})),
        Form::new("external-diff", "git_diff", &json!({})),
        Form::new("textconv", "git_diff", &json!({"path": "notes.txt"})),
        Form::new("pager", "git_log", &json!({})),
        Form::new("clean", "git_commit", &json!({"message": "x", "paths": ["notes.txt"]})),
        Form::new("pre-commit", "git_commit", &json!({"message": "x", "paths": ["late.md"]})),
        Form::new("post-checkout", "git_branch", &json!({"action": "switch", "name": "other"})),
        Form::new("stash", "git_stash", &json!({"action": "push"})),
        Form::new("smudge", "git_checkout", &json!({"paths": ["notes.txt"]})),
        Form::new("search", "search_code", &json!({"query": "changed"})),
        Form::new("grep", "grep", &json!({"pattern": "changed"})),
        Form::new("bare", "git_status", &json!({"path": "bare"})),
    ]
}

/// The tools of git, indexing and exploring start no program that a repository names. The control is
/// git itself, which starts them in the same repository.
#[test]
fn repository_names_no_program_for_the_tools() {
    if !has_programs(&["git", "bwrap"]) {
        return;
    }
    let forms = forms();
    let scene = Scene::new(&answers(&forms), &json!({"permissions": {"allow": ["*"]}}), &[]);
    prepare(&scene);
    let repo = scene.path("repo");
    let marks = || -> Vec<String> {
        let names = fs::read_dir(&repo).unwrap().flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("hit-")).collect()
    };
    let results = play(&scene, &forms, &[]);
    assert_no_hit(&scene, &forms, &results);
    for args in [&["explore"][..], &["index"], &["search", "changed"], &["map"]] {
        scene.cairn(args);
    }
    assert_eq!(marks(), Vec::<String>::new(), "{results:#?}");
    // The control: each way, by git itself.
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
        command.current_dir(&repo).output().unwrap();
    };
    tree(&repo, &[("notes.txt", "changed again\n")]);
    for args in [
        &["status"][..],
        &["diff"],
        &["-c", "diff.external=", "diff", "--no-ext-diff", "--textconv"],
        &["commit", "-qam", "x"],
        &["switch", "other"],
        &["checkout", "-f", "other"],
        &["-C", "bare", "status"],
    ] {
        run(args);
    }
    let ran = marks();
    for name in ["fsmonitor", "external-diff", "textconv", "clean", "pre-commit", "bare"] {
        assert!(ran.contains(&format!("hit-{name}")), "{name}: {ran:?}");
    }
}

/// Allowed commands in a folder that is a repository of its own: name, whether it is a bare one, as a
/// pull can bring it, the key that names a program, and the command.
const NESTED: &[(&str, bool, &str, &str)] = &[
    ("bare-status", true, "core.fsmonitor", "cd {F} && git status"),
    ("bare-diff", true, "core.fsmonitor", "cd {F} && git diff"),
    ("bare-external", true, "diff.external", "cd {F} && git diff"),
    ("bare-deep", true, "core.fsmonitor", "cd {F}/refs && git status"),
    ("nested-status", false, "core.fsmonitor", "cd {F} && git status"),
    ("nested-diff", false, "core.fsmonitor", "cd {F} && git diff"),
    ("nested-argument", false, "core.fsmonitor", "git -C {F} status"),
    ("bare-argument", true, "core.fsmonitor", "git --git-dir={F} --work-tree={F} status"),
    ("bare-variable", true, "core.fsmonitor", "GIT_DIR={F} git status"),
    ("unset", true, "core.fsmonitor", "unset GIT_CONFIG_COUNT; cd {F} && git status"),
    ("emptied", true, "core.fsmonitor", "cd {F} && GIT_CONFIG_COUNT=0 git status"),
];

/// Creates the repository of a form in the project, whose configuration names a program.
fn nested(repo: &std::path::Path, name: &str, is_bare: bool, key: &str) {
    let mark = repo.join("tools").join(name);
    let hit = repo.join(format!("hit-{name}"));
    program(&mark, &format!("#!/bin/sh\ntouch {}\n", hit.display()));
    let (section, key) = key.split_once('.').unwrap();
    let folder = repo.join(format!("f-{name}"));
    git(repo, &["init", "-q", &folder.to_string_lossy()]);
    tree(&folder, &[("a.txt", "a\n")]);
    commit_all(&folder);
    let entry = format!("[{section}]\n{key} = \"{}\"\n", mark.display());
    let inner = folder.join(".git");
    if is_bare {
        for entry in fs::read_dir(&inner).unwrap().flatten() {
            fs::rename(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        fs::remove_dir(&inner).unwrap();
        let format = "repositoryformatversion = 0";
        let core = format!("[core]\n{format}\nbare = false\nworktree = ..\n{entry}");
        fs::write(folder.join("config"), core).unwrap();
    } else {
        let text = fs::read_to_string(inner.join("config")).unwrap();
        fs::write(inner.join("config"), format!("{text}{entry}")).unwrap();
    }
    tree(&folder, &[("a.txt", "b\n")]);
}

/// A rule for commands that read does not run what a repository inside the project names. The control
/// is the same command line in a shell.
#[test]
fn allowed_git_commands_run_no_program_of_a_nested_repository() {
    if !has_programs(&["git", "bwrap", "bash"]) {
        return;
    }
    let line = |name: &str, text: &str| text.replace("{F}", &format!("f-{name}"));
    let forms: Vec<Form> =
        NESTED.iter().map(|(name, _, _, text)| Form::shell(name, &line(name, text))).collect();
    let rules = ["git status *", "git diff *", "git log *", "git *", "cd *"];
    let rules: Vec<String> = rules.iter().map(|rule| format!("run_shell({rule})")).collect();
    let scene = Scene::new(&answers(&forms), &json!({"permissions": {"allow": rules}}), &[]);
    let repo = scene.path("repo");
    fs::remove_dir_all(repo.join(".git")).unwrap();
    commit_all(&repo);
    for (name, is_bare, key, _) in NESTED {
        nested(&repo, name, *is_bare, key);
    }
    let results = play(&scene, &forms, &[]);
    assert_no_hit(&scene, &forms, &results);
    // The commands in the folders were run, not refused.
    let ran = results.iter().filter(|result| result["output"]["sandbox"] == "full").count();
    assert!(ran >= 4, "{results:#?}");
    for (name, _, _, text) in NESTED {
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &line(name, text)]).env("GIT_CONFIG_GLOBAL", "/dev/null");
        shell.current_dir(&repo).output().unwrap();
        assert!(repo.join(format!("hit-{name}")).exists(), "the control of {name}");
    }
}
