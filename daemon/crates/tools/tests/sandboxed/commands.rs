//! Commands reach only the paths that were judged.

use super::*;

/// A1: the paths of a run are resolved beneath the root before they are mounted.
pub async fn run_paths_are_mounted_only_beneath_the_root() {
    let Some(sandbox) = crate::sandbox() else { return };
    let open =
        Rules { default: Verdict::Allow, allow: vec!["*".parse().unwrap()], ..Rules::default() };
    let fixture = Fixture::sandboxed(FILES, open, |deps| deps, sandbox).await;
    let outside = fixture.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("id"), MARK).unwrap();
    symlink(&outside, fixture.path("docs")).unwrap();
    symlink("../../outside", fixture.path("public/docs")).unwrap();
    let absolute = outside.to_string_lossy().into_owned();
    for path in [
        "docs",
        "public/docs",
        "..",
        "../outside",
        "public/../../outside",
        "docs/../../outside",
        &absolute,
        "/etc",
    ] {
        for tool in ["run_shell", "evaluate"] {
            let arguments = match tool {
                "run_shell" => {
                    json!({"command": format!("cat {absolute}/id docs/id public/docs/id ../outside/id; echo x > {absolute}/new")})
                }
                _ => json!({"code": format!("print(open('{absolute}/id').read())")}),
            };
            let grants = within(&["public", path]);
            let got = fixture.with(tool, arguments, grants).await;
            assert!(got.is_err(), "{tool} with {path}: {got:?}");
        }
    }
    assert!(!outside.join("new").exists());
    // Control: only paths beneath the root are mounted, under any link's name.
    symlink("public/sub", fixture.path("inner")).unwrap();
    let list = json!({"command": "cat b.rs; cat ../../secret/k.key"});
    let got = fixture.with("run_shell", list, within(&["inner"])).await.unwrap();
    assert!(got["stdout"].as_str().unwrap().contains("open_function"), "{got}");
    assert!(!got.to_string().contains(MARK), "{got}");
}

/// A4: a folder above an inner root is swapped for a link to the outside while commands and Python
/// run in that root. They see the inner root or do not start.
pub async fn swapped_parent_folder_leads_no_command_outside_root() {
    let Some(sandbox) = crate::sandbox() else { return };
    let open =
        Rules { default: Verdict::Allow, allow: vec!["*".parse().unwrap()], ..Rules::default() };
    let fixture = Fixture::sandboxed(FILES, open, |deps| deps, sandbox).await;
    let inner = fixture.path("mid/inner");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("f"), "inner\n").unwrap();
    let outside = fixture.beside("outside");
    std::fs::create_dir_all(outside.join("inner")).unwrap();
    std::fs::write(outside.join("inner/f"), MARK).unwrap();
    let root = fixture.declare(&inner);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mid, away, link) = (fixture.path("mid"), fixture.path("away"), fixture.path("link"));
    let swap = || {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let _created = symlink(&outside, &link);
            let _renamed = std::fs::rename(&mid, &away);
            let _swapped = std::fs::rename(&link, &mid);
            let _removed = std::fs::remove_file(&mid);
            let _back = std::fs::rename(&away, &mid);
        }
    };
    let runs: usize = std::env::var("CAIRN_RUNS").ok().map_or(300, |n| n.parse().unwrap());
    let (mut inside, mut refused, mut escaped) = (0, 0, 0);
    let calls = async {
        for run in 0..runs {
            // Control: a check by path, then a use by path.
            let file = inner.join("f");
            for _ in 0..2_000 {
                let is_inside = file.canonicalize().is_ok_and(|real| real == file);
                escaped += usize::from(
                    is_inside && std::fs::read(&file).is_ok_and(|read| read == MARK.as_bytes()),
                );
            }
            let (tool, arguments) = match run % 4 {
                0 => ("evaluate", json!({"code": "print(open('f').read()); open('new', 'w')"})),
                1 => ("run_shell", json!({"command": "cat f; echo x > new", "cwd": "."})),
                _ => ("run_shell", json!({"command": "cat f; echo x > new; cat ../inner/f"})),
            };
            let got = fixture.in_root(&root, tool, arguments).await;
            assert!(!format!("{got:?}").contains(MARK), "{tool}: {got:?}");
            let is_seen = got.is_ok_and(|value| {
                value["stdout"].as_str().is_some_and(|out| out.contains("inner"))
            });
            *(if is_seen { &mut inside } else { &mut refused }) += 1;
        }
    };
    std::thread::scope(|scope| {
        let _stop = cairn_test_support::StopOnDrop(&stop);
        scope.spawn(swap);
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(calls));
    });
    println!(
        "swapped folder above a root: {inside} saw the root, {refused} did not, by path {escaped} went out"
    );
    assert!(inside > 0 && escaped > 0, "{inside} {refused} {escaped}: nothing was swapped in time");
    assert!(!outside.join("inner/new").exists(), "a command wrote outside");
}

/// A6: Python computes and starts no program, whatever it tries; the audit stores its code.
pub async fn evaluate_starts_no_program() {
    let Some(sandbox) = crate::sandbox() else { return };
    let fixture = Fixture::sandboxed(FILES, Rules::default(), |deps| deps, sandbox).await;
    let got = fixture.call("evaluate", json!({"code": "print(6 * 7)"})).await.unwrap();
    assert_eq!(got["stdout"], "42\n", "{got}");
    for code in [
        "import os; os.execv('/bin/echo', ['echo', 'STARTED'])",
        "import os; print(os.system('echo STARTED'))",
        "import os; os.posix_spawn('/bin/echo', ['echo', 'STARTED'], {}); import time; time.sleep(.2)",
        "import _posixsubprocess, os\nr, w = os.pipe()\nif os.fork() == 0: os.execv('/bin/echo', ['echo', 'STARTED'])\nos.wait()",
        "import sys; m = sys.modules['os']; m.execve('/lib64/ld-linux-x86-64.so.2', ['x', '/bin/echo', 'STARTED'], {})",
        "import os; fd = os.open('/bin/echo', os.O_RDONLY); os.execve(fd, ['echo', 'STARTED'], {})",
    ] {
        let got = fixture.call("evaluate", json!({"code": code})).await.unwrap();
        assert!(!got["stdout"].as_str().unwrap().contains("STARTED"), "{code}: {got}");
        // Control: the same words run where programs may be started.
        let quoted = json!({"command": format!("/usr/bin/python3 - <<'EOF'\n{code}\nEOF")});
        let open = Rules {
            default: Verdict::Allow,
            allow: vec!["*".parse().unwrap()],
            ..Rules::default()
        };
        fixture.set_rules(open);
        let control = fixture.call("run_shell", quoted).await.unwrap();
        assert!(control["stdout"].as_str().unwrap().contains("STARTED"), "{code}: {control}");
    }
    let audit = fixture.audit().await;
    assert!(
        audit
            .iter()
            .any(|row| row.tool == "evaluate" && row.command.as_deref() == Some("print(6 * 7)")),
        "{audit:?}"
    );
}
