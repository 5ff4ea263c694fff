//! Every name of the table of files that run later, by every tool and in every mode.

use cairn_harness::Grants;
use cairn_protocol::{error::Reason, turn::ExecutionMode};
use cairn_workspace::{AutorunClass, autorun, autorun_examples};
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow};

const MODES: [ExecutionMode; 4] =
    [ExecutionMode::Plan, ExecutionMode::Ask, ExecutionMode::AcceptEdits, ExecutionMode::Auto];

/// Returns what a call ends with when nobody can approve it; `None` for a success.
fn expected(class: Option<AutorunClass>, mode: ExecutionMode) -> Option<Reason> {
    match (mode, class) {
        (ExecutionMode::Plan, _) => Some(Reason::ToolDenied),
        (_, Some(AutorunClass::Own)) => Some(Reason::ToolDenied),
        (_, Some(AutorunClass::Start)) => Some(Reason::NoApprover),
        (_, Some(AutorunClass::Source) | None) => None,
    }
}

fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let add = format!("*** Begin Patch\n*** Add File: {path}\n+evil\n*** End Patch\n");
    vec![
        ("write_file", json!({"path": path, "content": "evil\n"})),
        ("fs", json!({"action": "write", "path": path, "content": "evil\n"})),
        ("apply_patch", json!({"patch": add})),
        ("edit_file", json!({"path": path, "old_text": "evil", "new_text": "worse"})),
        ("git_checkout", json!({"paths": [path]})),
        ("delete_file", json!({"path": path})),
    ]
}

/// With a rule that allows every tool: the class decides, not the rules.
#[tokio::test]
async fn class_decides_for_every_tool_and_mode() {
    let ordinary = ["src/main.rs", "notes.txt", "deep/er/x.envrc.md"].map(str::to_owned);
    let ordinary = ordinary.into_iter().map(|path| (path, None));
    let names: Vec<(String, Option<AutorunClass>)> =
        autorun_examples().map(|(path, class)| (path, Some(class))).chain(ordinary).collect();
    let mut rows = 0;
    for mode in MODES {
        let fixture = Fixture::new(&[], allow(&["*"])).await;
        git2::Repository::init(fixture.path(".")).unwrap();
        for (at, (path, class)) in names.iter().enumerate() {
            // Another spelling, and another depth.
            let path = match at % 3 {
                0 => path.clone(),
                1 => format!("sub/{}", path.to_uppercase()),
                _ => format!("a/./b/../{path}"),
            };
            let want = expected(*class, mode);
            for (tool, arguments) in calls(&path) {
                let grants = Grants { mode, ..Grants::default() };
                let file = fixture.path(&path);
                if matches!(tool, "edit_file" | "delete_file") && want.is_some() {
                    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                    std::fs::write(&file, "evil\n").unwrap();
                    let read = json!({"path": path});
                    fixture.with("read_file", read, grants.clone()).await.unwrap();
                }
                if tool == "apply_patch" && want.is_none() {
                    std::fs::remove_file(&file).unwrap();
                }
                if tool == "git_checkout" {
                    stage(&fixture, &path);
                }
                let before = std::fs::read(&file).ok();
                let got = fixture.with(tool, arguments, grants).await;
                let what = format!("{tool} {path} {mode:?} {class:?}: {got:?}");
                assert_eq!(got.as_ref().err().map(|failure| failure.reason), want, "{what}");
                if want.is_some() {
                    assert_eq!(std::fs::read(&file).ok(), before, "{what}");
                }
                rows += 1;
            }
            let _gone = std::fs::remove_file(fixture.path(&path));
        }
    }
    assert!(rows > 7000, "{rows}");
}

/// Stages another content of a file than it has, so that restoring it changes it.
fn stage(fixture: &Fixture, path: &str) {
    let repo = git2::Repository::open(fixture.path(".")).unwrap();
    let clean: std::path::PathBuf = fixture
        .path(path)
        .strip_prefix(fixture.path("."))
        .unwrap()
        .components()
        .filter(|c| *c != std::path::Component::CurDir)
        .collect();
    let rel = clean.to_string_lossy().replace("b/../", "");
    let blob = repo.blob(b"staged\n").unwrap();
    let entry = git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: blob,
        flags: 0,
        flags_extended: 0,
        path: rel.into_bytes(),
    };
    let mut index = repo.index().unwrap();
    index.add(&entry).unwrap();
    index.write().unwrap();
}

/// A switch of the branch and a stash bring files by other ways than a path.
#[tokio::test]
async fn branch_that_brings_such_a_file_is_judged_by_it() {
    for (name, want) in [
        (".claude/settings.json", Some(Reason::ToolDenied)),
        (".vscode/tasks.json", Some(Reason::NoApprover)),
        ("Makefile", None),
        ("notes.txt", None),
    ] {
        let fixture = Fixture::new(&[("a.txt", "a\n")], allow(&["*"])).await;
        let git = |line: &str| {
            let done = std::process::Command::new("git")
                .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
                .args(line.split(' '))
                .current_dir(fixture.path("."))
                .output()
                .unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
        };
        for line in ["init -q -b main", "add .", "commit -q -m one", "switch -q -c other"] {
            git(line);
        }
        let file = fixture.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "evil\n").unwrap();
        for line in ["add -f .", "commit -q -m two", "switch -q main"] {
            git(line);
        }
        let switch = json!({"action": "switch", "name": "other"});
        let got = fixture.call("git_branch", switch).await;
        assert_eq!(got.as_ref().err().map(|f| f.reason), want, "{name}: {got:?}");
        assert_eq!(file.exists(), want.is_none(), "{name}");
    }
}

/// The rows that a person wrote by another way than the table: which names matter, and why.
#[test]
fn table_has_the_names_that_agents_were_attacked_by() {
    for (path, class) in [
        (".zshenv", AutorunClass::Start),
        (".git-hooks/pre-commit", AutorunClass::Start),
        ("pkg/.envrc", AutorunClass::Start),
        (".cursor/rules/x.mdc", AutorunClass::Start),
        ("GEMINI.md", AutorunClass::Start),
        ("gradlew", AutorunClass::Start),
        (".venv/lib/python3.12/site-packages/a.pth", AutorunClass::Start),
        (".config/systemd/user/x.service", AutorunClass::Start),
        ("conftest.py", AutorunClass::Source),
        ("build.rs", AutorunClass::Source),
        (".mcp.json", AutorunClass::Own),
    ] {
        assert_eq!(autorun(path).map(|row| row.class), Some(class), "{path}");
    }
}
