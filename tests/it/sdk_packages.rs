//! The clients in other languages as their users get them: installed from a packed wheel and
//! tarball, judged by strict type checkers, with the examples of their READMEs as pasted.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    mcp::project as sample,
    sdks::{node, project},
    sealed::{Daemon, binary, missing, python},
};

/// Returns the output of a command; panics if it failed.
fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Copies the sources of a client, without what was built from them.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if ["dist", "node_modules", "__pycache__"].iter().any(|built| name == *built) {
            continue;
        }
        let target = to.join(&name);
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns the blocks of a language in a document.
fn examples(document: &Path, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let start = format!("```{language}\n");
    let blocks = text.split(&start).skip(1);
    let blocks: Vec<String> =
        blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    assert!(!blocks.is_empty(), "{} has no example", document.display());
    blocks
}

/// A Python with the packed client, and the packages that the client needs.
struct Installed {
    dir: tempfile::TempDir,
    python: PathBuf,
}

/// Packs the Python client and installs the wheel; `None` after a notice.
fn wheel() -> Option<Installed> {
    let base = python("hatchling, mypy, websockets, pip")?;
    let dir = tempfile::tempdir().unwrap();
    let sources = dir.path().join("python");
    copy(&project().join("client-sdk/python"), &sources);
    let offline = [("PIP_NO_INDEX", "1"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")];
    let mut pack = Command::new(&base);
    pack.args(["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w"]);
    output(pack.arg(dir.path()).arg(&sources).envs(offline));
    let venv = dir.path().join("venv");
    output(Command::new(&base).args(["-m", "venv"]).arg(&venv));
    let python = venv.join("bin/python");
    let wheel = dir.path().join("cairn_agent_client-0.1.0-py3-none-any.whl");
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "-q", "--no-deps"]).arg(&wheel).envs(offline);
    output(&mut install);
    // The packages that it needs come from the index of packages; here, from the other Python.
    let sites =
        "import site, sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))";
    let shared = output(Command::new(&base).args(["-c", sites]));
    let own =
        output(Command::new(&python).args(["-c", "import site; print(site.getsitepackages()[0])"]));
    std::fs::write(Path::new(own.trim()).join("peers.pth"), shared).unwrap();
    Some(Installed { dir, python })
}

impl Installed {
    /// Returns a command of the installed Python that finds the daemon of a home.
    fn run(&self, home: &Path, folder: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.env("CAIRN_HOME", home).env("HOME", home).env("CAIRN_BIN", binary());
        command.env_remove("PYTHONPATH").current_dir(folder).args(["-W", "error", "-X", "dev"]);
        command
    }
}

#[test]
fn python_wheel_installs_is_typed_and_runs_its_examples() {
    let Some(installed) = wheel() else { return };
    let needs = "import importlib.metadata as m; print(m.requires('cairn-agent-client'))";
    let needs = output(Command::new(&installed.python).args(["-c", needs]));
    assert!(needs.contains("websockets>="), "{needs}");
    let programs = installed.dir.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let readme = project().join("client-sdk/python/README.md");
    let mut files = vec![project().join("tests/conformance/sdk/typed.py")];
    for (index, text) in examples(&readme, "python").iter().enumerate() {
        assert!(text.lines().count() <= 16, "{text}");
        let file = programs.join(format!("example{index}.py"));
        std::fs::write(&file, text).unwrap();
        files.push(file);
    }
    let mypy = || {
        let mut mypy = Command::new(&installed.python);
        mypy.args(["-m", "mypy", "--strict", "--cache-dir", "/dev/null"]).current_dir(&programs);
        mypy.env_remove("PYTHONPATH");
        mypy
    };
    for file in &files {
        output(mypy().arg(file));
    }
    // The checker sees the types: a wrong use fails.
    let wrong = "import cairn_client\nprint(cairn_client.search('x', k='5')[0]['nosuch'])\n";
    std::fs::write(programs.join("wrong.py"), wrong).unwrap();
    let refused = mypy().arg("wrong.py").output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.contains("arg-type") && refused.contains("typeddict-item"), "{refused}");
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    sample(&root);
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let texts: Vec<String> = files[1..]
        .iter()
        .map(|file| output(installed.run(&daemon.home, &root).arg(file)))
        .collect();
    assert!(texts[0].contains("sample/store.py:1-3\ndef open_ledger"), "{}", texts[0]);
    assert!(texts[1].contains("invalid_params 'k' must be a whole number"), "{texts:?}");
    assert!(texts[2].contains("Python"), "{}", texts[2]);
}

#[test]
fn blocking_python_client_is_used_and_misused() {
    let Some(installed) = wheel() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    sample(&root);
    std::fs::create_dir_all(&home).unwrap();
    let script = project().join("tests/conformance/sdk/blocking.py");
    let seen = output(installed.run(&home, &root).arg(script).arg(&root));
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let negative = "RpcError: search.hybrid: 'k' must be a whole number of at least 0, not -5 \
        (Maximum number of results, 1 to 200) (invalid_params)";
    assert!(seen["negative"].as_str().unwrap().starts_with(negative), "{seen:#}");
    for (call, part) in
        [("large", "k"), ("kind", "'query' must be a text, not 7"), ("empty", "query")]
    {
        let text = seen[call].as_str().unwrap();
        assert!(text.starts_with("RpcError") && text.contains(part), "{call}: {text}");
    }
    assert!(seen["late"].as_str().unwrap().starts_with("TimedOutError"), "{seen:#}");
    assert!(seen["closed"].as_str().unwrap().starts_with("ClosedError"), "{seen:#}");
    let rest = json!([
        seen["found"],
        seen["nested"],
        seen["roots"],
        seen["threads"],
        seen["last"],
        seen["after"],
        seen["absent"],
        seen["left"]
    ]);
    let expected = json!([
        [["sample/store.py", true]],
        ["sample/store.py"],
        1,
        [1, 1, 1, 1, 1, 1, 1, 1],
        "completed",
        true,
        "NotRunningError",
        []
    ]);
    assert_eq!(rest, expected, "{seen:#}");
}

/// Runs npm without its registry.
fn npm(node: &Path, folder: &Path) -> Command {
    let bin = node.parent().unwrap();
    let mut command = Command::new(bin.join("npm"));
    let path = std::env::join_paths(
        std::iter::once(bin.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    command.env("PATH", path.unwrap()).env("npm_config_cache", folder.join(".npm"));
    command.envs([("npm_config_offline", "true"), ("npm_config_audit", "false")]);
    command.current_dir(folder);
    command
}

#[test]
fn typescript_tarball_installs_is_typed_and_runs_its_examples() {
    let Some((node, modules)) = node() else { return };
    if !node.parent().unwrap().join("npm").exists() {
        return missing("npm beside node");
    }
    let dir = tempfile::tempdir().unwrap();
    let sources = dir.path().join("typescript");
    copy(&project().join("client-sdk/typescript"), &sources);
    // The compiler is there already; without it, the build installs it from the registry.
    symlink(&modules, sources.join("node_modules")).unwrap();
    output(npm(&node, dir.path()).args(["pack", "--silent", "./typescript"]));
    let app = dir.path().join("app");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(app.join("package.json"), r#"{"type": "module", "private": true}"#).unwrap();
    output(npm(&node, &app).args(["install", "--silent", "../cairn-client-0.1.0.tgz"]));
    assert!(app.join("node_modules/cairn-client/dist/node.d.ts").exists());
    symlink(modules.join("@types"), app.join("node_modules/@types")).unwrap();
    let readme = project().join("client-sdk/typescript/README.md");
    std::fs::copy(project().join("tests/conformance/sdk/typed.ts"), app.join("typed.ts")).unwrap();
    let examples = examples(&readme, "ts");
    for (index, text) in examples.iter().enumerate() {
        std::fs::write(app.join(format!("example{index}.ts")), text).unwrap();
    }
    let tsc = || {
        let mut tsc = Command::new(&node);
        tsc.arg(modules.join("typescript/bin/tsc")).current_dir(&app);
        tsc.args(["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"]);
        tsc
    };
    output(tsc().args(["typed.ts", "example0.ts", "example1.ts"]));
    let wrong = "import { local } from \"cairn-client/node\";\n\
        const hits = await (await local()).search(\"x\", { k: \"5\" });\nconsole.log(hits[0]?.nosuch);\n";
    std::fs::write(app.join("wrong.ts"), wrong).unwrap();
    let refused = tsc().args(["--noEmit", "wrong.ts"]).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.contains("TS2322") && refused.contains("TS2339"), "{refused}");
    let root = dir.path().join("root");
    sample(&root);
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let run = |script: &str| {
        let mut run = Command::new(&node);
        run.arg(app.join(script)).current_dir(&root).env("CAIRN_HOME", &daemon.home);
        output(&mut run)
    };
    let first = run("example0.js");
    assert!(first.contains("sample/store.py:1-3\ndef open_ledger"), "{first}");
    let second = run("example1.js");
    assert!(second.contains("Python") && second.contains("'k' must be a whole number"), "{second}");
    linked_package_finds_ws(&node, &modules, &app, &daemon);
}

/// A package that is a symbolic link finds `ws` beside the program, on a platform without sockets.
fn linked_package_finds_ws(node: &Path, modules: &Path, app: &Path, daemon: &Daemon) {
    let linked = app.parent().unwrap().join("linked");
    std::fs::create_dir_all(linked.join("node_modules")).unwrap();
    let package = app.join("node_modules/cairn-client");
    symlink(&package, linked.join("node_modules/cairn-client")).unwrap();
    let script = "import { local } from \"cairn-client/node\";\n\
        const cairn = await local({ start: false });\n\
        console.log((await cairn.daemonStatus()).pid);\nawait cairn.close();\n";
    std::fs::write(linked.join("status.mjs"), script).unwrap();
    let status = || {
        let mut run = Command::new(node);
        run.arg("--no-experimental-websocket").arg(linked.join("status.mjs"));
        run.current_dir(app.parent().unwrap()).env("CAIRN_HOME", &daemon.home);
        run
    };
    let absent = status().output().unwrap();
    let absent = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(absent.contains("npm install ws"), "{absent}");
    symlink(modules.join("ws"), linked.join("node_modules/ws")).unwrap();
    assert!(output(&mut status()).trim().parse::<u32>().is_ok());
}
