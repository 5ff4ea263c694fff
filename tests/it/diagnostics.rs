//! Real language servers after edits of a scripted model: the answer of the edit has the error that
//! it introduced.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    sealed::{Daemon, cairn, missing, note, tree},
};

/// A project with a file that a model edits.
struct Project {
    files: &'static [(&'static str, &'static str)],
    path: &'static str,
    old: &'static str,
    new: &'static str,
}

const PYTHON: Project = Project {
    files: &[
        ("pyproject.toml", "[project]\nname = \"a\"\n"),
        ("a.py", "def size() -> int:\n    return 1\n\n\nold: int = \"known\"\n"),
    ],
    path: "a.py",
    old: "return 1",
    new: "return \"one\"",
};
const TYPESCRIPT: Project = Project {
    files: &[
        ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n"),
        ("a.ts", "export function size(): number {\n  return 1;\n}\n"),
    ],
    path: "a.ts",
    old: "return 1",
    new: "return \"one\"",
};
const C: Project = Project {
    files: &[("compile_flags.txt", "-Wall\n"), ("a.c", "int size(void) { return 1; }\n")],
    path: "a.c",
    old: "return 1",
    new: "return missing_name",
};
const RUST: Project = Project {
    files: &[
        ("Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", "pub fn size() -> u32 {\n    1\n}\n"),
    ],
    path: "src/lib.rs",
    old: "    1\n",
    new: "    \"one\"\n",
};

/// Runs a turn that edits a project, with these settings of diagnostics, and returns the
/// diagnostics of the edit and the lines of the log. The model's last answer expects `seen` in its
/// request.
fn edited(
    project: &Project,
    diagnostics: &Value,
    is_trusted: bool,
    seen: &str,
) -> (Value, String, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().canonicalize().unwrap();
    let (home, folder) = (at.join("home"), at.join("repo"));
    tree(&folder, project.files);
    tree(&folder, &[(".git/HEAD", "x")]);
    let edit = json!({"path": project.path, "old_text": project.old, "new_text": project.new});
    let mut last = text_answer("done");
    last["expect"] = json!([{"anyContains": seen}]);
    let answers = json!([
        calls("read_file", &json!({"path": project.path})),
        calls("edit_file", &edit),
        last
    ]);
    let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    tree(&at, &[("script.json", &script.to_string())]);
    let trusted: Vec<&Path> = if is_trusted { vec![&folder] } else { vec![] };
    let config = json!({
        "llm": {"provider": "scripted", "endpoint": at.join("script.json")},
        "trust": {"folders": trusted},
        "diagnostics": diagnostics,
    });
    tree(&home, &[("config/config.json", &config.to_string())]);
    // Toolchains lie in the home folder of the user.
    let own = std::env::var("HOME").unwrap_or_default();
    let _daemon = Daemon::start_with(&home, &[("HOME", &own)]);
    let (code, out, err) =
        cairn(&home, &folder, &["chat", "--json", "--mode", "accept-edits", "-p", "edit"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let records: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut results = records.iter().filter(|r| r["evt"]["type"] == "tool_result");
    let edit = results.rfind(|r| r["evt"]["name"] == "edit_file").unwrap();
    (edit["evt"]["output"]["diagnostics"].clone(), out, dir)
}

fn has_new(diagnostics: &Value, server: &str, start: &str, text: &str) {
    assert_eq!(diagnostics["servers"], json!([server]), "{diagnostics}");
    let new: Vec<&str> =
        diagnostics["new"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(
        new.iter().any(|line| line.starts_with(start) && line.contains(text)),
        "{server}: {diagnostics}"
    );
}

/// Returns the folder of the programs that the tests install.
fn peers() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("CAIRN_TEST_PYTHON")?);
    Some(python.parent()?.parent()?.to_owned())
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns the command line of a server that npm installed.
fn of_npm(script: &str) -> Option<Value> {
    let peers = peers()?;
    let node = Some(peers.join("bin/node")).filter(|file| file.is_file());
    let node = node.or_else(|| installed("node"))?.canonicalize().ok()?;
    let script = peers.join("npm/node_modules").join(script);
    script.is_file().then(|| json!([node, script, "--stdio"]))
}

#[test]
fn pyright_reports_the_error_of_an_edit() {
    let Some(command) = of_npm("pyright/langserver.index.js") else { return missing("pyright") };
    let servers = json!({"pyright": {"command": command}});
    let settings = json!({"mode": "server", "wait": 60, "servers": servers});
    let (diagnostics, ..) = edited(&PYTHON, &settings, true, "a.py:2:12: error: ");
    has_new(&diagnostics, "pyright", "a.py:2:12: error: ", "int");
    // The error that was there before is not one of the edit.
    assert_eq!(diagnostics["new"].as_array().unwrap().len(), 1, "{diagnostics}");
}

#[test]
fn typescript_language_server_reports_the_error_of_an_edit() {
    let Some(command) = of_npm("typescript-language-server/lib/cli.mjs") else {
        return missing("typescript-language-server");
    };
    let servers = json!({"typescript": {"command": command}});
    let settings = json!({"wait": 60, "servers": servers});
    let (diagnostics, ..) = edited(&TYPESCRIPT, &settings, true, "a.ts:2:3: error: ");
    has_new(&diagnostics, "typescript", "a.ts:2:3: error: ", "number");
}

#[test]
fn clangd_reports_the_error_of_an_edit() {
    if installed("clangd").is_none() {
        return missing("clangd");
    }
    let settings = json!({"wait": 60});
    let (diagnostics, ..) = edited(&C, &settings, true, "missing_name");
    has_new(&diagnostics, "clangd", "a.c:1:25: error: ", "missing_name");
}

#[test]
fn rust_analyzer_reports_the_error_of_an_edit() {
    // The program of rustup exists without the component too.
    let version = Command::new("rust-analyzer").arg("--version").stderr(Stdio::null()).output();
    if !version.is_ok_and(|output| output.status.success()) {
        // Not every toolchain can be had with it.
        return note("left out: rust-analyzer is missing");
    }
    let settings = json!({"wait": 60});
    let (diagnostics, ..) = edited(&RUST, &settings, true, "src/lib.rs:2:5: error: ");
    has_new(&diagnostics, "rust-analyzer", "src/lib.rs:2:5: error: ", "u32");
}

/// A server that needs nothing but a shell: it never answers.
const SILENT: [&str; 3] = ["/bin/sh", "-c", "cat > /dev/null"];

/// `diagnostics.servers` adds a server by `command`, `extensions` and `markers`; `diagnostics.wait`
/// limits the wait for it and `diagnostics.mode` its use.
#[test]
fn configured_server_is_used_in_trusted_folders() {
    let project = Project {
        files: &[("notes.zz", "old\n"), ("zz.marker", "")],
        path: "notes.zz",
        old: "old",
        new: "new",
    };
    let server = json!({"command": SILENT, "extensions": ["zz"], "markers": ["zz.marker"]});
    let settings = |mode: &str| json!({"mode": mode, "wait": 1, "command": "echo checked", "servers": {"own": server}});
    let no_answer = json!(["own: no answer within 1 s"]);
    let (diagnostics, ..) = edited(&project, &settings("auto"), true, "no answer within 1 s");
    assert_eq!(diagnostics["notes"], no_answer);
    assert_eq!(diagnostics["result"]["output"], "checked\n");
    let (diagnostics, ..) = edited(&project, &settings("server"), true, "no answer within 1 s");
    assert_eq!(diagnostics, json!({"notes": no_answer}));
    let (diagnostics, ..) = edited(&project, &settings("command"), true, "checked");
    assert_eq!(diagnostics["result"]["output"], "checked\n");
    assert_eq!(diagnostics.get("notes"), None, "{diagnostics}");
    let (diagnostics, ..) = edited(&project, &settings("off"), true, "success");
    assert_eq!(diagnostics, Value::Null);
    let (diagnostics, _, dir) = edited(&project, &settings("server"), false, "not trusted");
    assert!(diagnostics["notes"][0].as_str().unwrap().contains("trust.folders"), "{diagnostics}");
    let (code, out, _) = cairn(&dir.path().join("home"), dir.path(), &["audit", "--tool", "own"]);
    assert!(code == 0 && !out.contains("own"), "{out}");
}

#[test]
fn doctor_lists_language_servers() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let config = json!({"diagnostics": {"servers": {
        "own": {"command": SILENT}, "other": {"command": ["no-such-program"]}}}});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let (_, out, err) = cairn(&home, dir.path(), &["doctor"]);
    let line = out.lines().find(|line| line.contains("language servers")).unwrap_or_default();
    assert!(line.contains("own (/bin/sh)"), "{out}{err}");
    let absent = line.split("not found: ").nth(1).unwrap_or_default();
    assert!(absent.contains("other"), "{line}");
}
