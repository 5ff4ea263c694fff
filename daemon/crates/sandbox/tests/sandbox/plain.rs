//! Needs of ordinary commands, and requests that are refused with a clear error.

use std::{fs, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use cairn_protocol::error::Reason;
use cairn_sandbox::{Confined, Sandbox, Tier, Wake, WhenMissing};

use crate::scene::{Scene, run};

pub fn command_environment_is_complete(scene: &Scene) {
    for (sandbox, tier) in [(scene.sandbox(), Tier::Full), (scene.weaker(), Tier::Weaker)] {
        for (script, want) in [
            ("cat read.txt", "inside"),
            ("echo x > part/new && cat part/new && rm part/new", "x\n"),
            ("pwd", &format!("{}\n", scene.root.display())),
            ("echo $((1+1)) | cat", "2\n"),
            (
                "python3 -c 'import os,tempfile; tempfile.TemporaryFile(); print(os.getcwd() != \"\")'",
                "True\n",
            ),
            ("touch \"$HOME/x\" && echo made", "made\n"),
            ("git --version | cut -c1-3", "git\n"),
            (
                "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'",
                "b'x'\n",
            ),
            (
                "env | cut -d= -f1 | grep -v -e ^_$ -e SHLVL -e PWD | sort | tr '\\n' ' '",
                "CARGO_NET_OFFLINE GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_KEY_1 GIT_CONFIG_VALUE_0 \
                 GIT_CONFIG_VALUE_1 GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT HOME LANG PATH TERM TMPDIR ",
            ),
            ("exit 3", ""),
        ] {
            let output = run(&sandbox, &scene.script(script));
            assert_eq!(
                (output.stdout.text.as_str(), output.tier),
                (want, tier),
                "{script}: {output:?}"
            );
            assert_eq!(output.exit_code, if script == "exit 3" { 3 } else { 0 }, "{script}");
        }
        let output = run(&sandbox, &scene.script("kill -SEGV $$"));
        assert_eq!(output.exit_code, 128 + 11, "{output:?}");
        let mut confined = scene.script("true");
        confined.argv = vec!["/usr/bin/no-such-program".into()];
        let error = sandbox.run(&confined, &Wake::new().unwrap(), &mut |_, _| {}).unwrap_err();
        assert!(
            error.reason == Reason::ToolFailed && error.message.contains("no-such-program"),
            "{error}"
        );
    }
    let output = run(
        &scene.sandbox(),
        &scene.script("touch top.txt && mkdir target && ls -d top.txt target"),
    );
    assert_eq!(output.stdout.text, "target\ntop.txt\n", "{output:?}");
}

pub fn input_reaches_the_command_in_each_tier(scene: &Scene) {
    for sandbox in [scene.sandbox(), scene.weaker(), scene.none()] {
        let mut confined = scene.script("cat");
        assert_eq!(run(&sandbox, &confined).stdout.text, "");
        confined.input = Some(scene.root.join("read.txt"));
        assert_eq!(run(&sandbox, &confined).stdout.text, "inside");
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"piped\n").unwrap();
        drop(writer);
        confined.input_pipe = Some(Arc::new(reader.into()));
        assert_eq!(run(&sandbox, &confined).stdout.text, "piped\n");
    }
}

pub fn run_sees_only_its_own_paths(scene: &Scene) {
    for sandbox in [scene.sandbox(), scene.weaker()] {
        let narrowed = |script: &str| {
            let mut confined = scene.script(script);
            confined.parts = Some(vec!["part".into()]);
            confined.folder = scene.root.join("part");
            confined
        };
        assert_eq!(run(&sandbox, &narrowed("cat read.txt")).stdout.text, "part");
        assert_eq!(run(&sandbox, &narrowed("cat ../read.txt")).stdout.text, "");
        // A path that is not visible may be an empty folder of the sandbox.
        run(&sandbox, &narrowed("echo x > ../new"));
        assert!(!scene.root.join("new").exists());
        let mut elsewhere = narrowed("true");
        elsewhere.folder = scene.root.clone();
        let error = sandbox.run(&elsewhere, &Wake::new().unwrap(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.reason, Reason::InvalidParams, "{error}");
    }
}

pub fn read_only_workspace_is_not_changed(scene: &Scene) {
    for sandbox in [scene.sandbox(), scene.weaker()] {
        let mut confined =
            scene.script("cat read.txt; echo x > part/new && echo made; rm read.txt");
        confined.writable = false;
        let output = run(&sandbox, &confined);
        assert_eq!(output.stdout.text, "inside", "{output:?}");
        assert!(scene.root.join("read.txt").exists() && !scene.root.join("part/new").exists());
    }
}

pub fn network_is_available_when_granted(scene: &Scene) {
    for sandbox in [scene.sandbox(), scene.weaker()] {
        let mut confined = scene.script("(exec 3<>/dev/tcp/127.0.0.1/{TCP}) && echo connected");
        confined.network = true;
        assert_eq!(run(&sandbox, &confined).stdout.text, "connected\n");
        confined.network = false;
        assert_eq!(run(&sandbox, &confined).stdout.text, "");
    }
}

pub fn command_is_refused_without_sandbox(scene: &Scene) {
    let refused = |sandbox: &Sandbox, confined: &Confined| {
        sandbox.run(confined, &Wake::new().unwrap(), &mut |_, _| {}).unwrap_err().reason
    };
    let touch = scene.script("touch ran");
    // A library without a helper.
    assert_eq!(refused(&Sandbox::new(None).for_host(scene.host()), &touch), Reason::SandboxMissing);
    // No bubblewrap, and the user has not accepted less.
    let weaker = scene.sandbox().with_bubblewrap(None);
    assert_eq!(refused(&weaker, &touch), Reason::SandboxMissing);
    assert_eq!(weaker.consent().unwrap_err().reason, Reason::SandboxMissing);
    let prompting = scene.sandbox().with_bubblewrap(None).when_missing(WhenMissing::Ask);
    assert_eq!(refused(&prompting, &touch), Reason::SandboxMissing);
    assert!(prompting.consent().unwrap().unwrap().starts_with("a weaker sandbox: "));
    // A bubblewrap that does not work.
    let broken = scene.sandbox().with_bubblewrap(Some("/bin/false".into()));
    assert_eq!(refused(&broken, &touch), Reason::SandboxMissing);
    assert!(broken.probe().why_not_full.is_some());
    assert!(!scene.root.join("ran").exists());
    // With the user's consent it runs.
    let mut accepted = scene.script("touch part/ran");
    accepted.accepted = true;
    assert_eq!(run(&prompting, &accepted).tier, Tier::Weaker);
    assert!(scene.root.join("part/ran").exists());
    assert_eq!(scene.sandbox().consent().unwrap(), None);
}

pub fn sandbox_setup_failure_is_reported(scene: &Scene) {
    let sandbox = scene.sandbox();
    sandbox.probe();
    let mut blocked = scene.script("true");
    blocked.root = Some(scene.root.join("blocked"));
    let wake = Wake::new().unwrap();
    let error = sandbox.run(&blocked, &wake, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.reason, Reason::PathBlocked, "{error}");
    let mut away = scene.script("true");
    away.folder = PathBuf::from("/root");
    assert_eq!(
        sandbox.run(&away, &wake, &mut |_, _| {}).unwrap_err().reason,
        Reason::InvalidParams
    );
    // A repository behind a symlink cannot be protected.
    let linked = scene.base.join("linked");
    fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(&scene.outside, linked.join(".git")).unwrap();
    let mut confined = scene.script("true");
    (confined.root, confined.folder) = (Some(linked.clone()), linked);
    let error = sandbox.run(&confined, &wake, &mut |_, _| {}).unwrap_err();
    assert!(error.message.contains("symlink"), "{error}");
}

pub fn placeholders_are_removed(scene: &Scene) {
    let sandbox = scene.sandbox();
    let mut confined = scene.script("ls -A; sleep 0.2");
    (confined.root, confined.folder) = (Some(scene.empty.clone()), scene.empty.clone());
    std::thread::scope(|scope| {
        for n in 0..6_u64 {
            let (sandbox, mut confined) = (&sandbox, confined.clone());
            confined.limits.wall = Duration::from_millis(100 + n * 150);
            scope.spawn(move || run(sandbox, &confined));
        }
    });
    assert_eq!(fs::read_dir(&scene.empty).unwrap().count(), 0);
}

pub fn home_folder_with_nested_hidden_paths_runs_commands(scene: &Scene) {
    let home = scene.base.join("house");
    for (path, text) in [
        (".config/cairn/config.json", "s3cret"),
        (".config/cairn-other", "s3cret"),
        (".config.txt", "shown"),
        (".ssh/id", "s3cret"),
        (".local/share/cairn/token", "s3cret"),
        (".local/share/cairn/index/a", "s3cret"),
        ("work/a.txt", "text"),
    ] {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let blocked = [
        ".config",
        ".config/cairn",
        ".config/cairn/config.json",
        ".ssh",
        ".local/share/cairn/token",
        ".local/share/cairn/index",
    ];
    let host = cairn_sandbox::Host {
        home: Some(home.clone()),
        blocked: blocked.map(|path| home.join(path)).to_vec(),
        ..scene.host()
    };
    for sandbox in [scene.sandbox(), scene.weaker()] {
        let sandbox = sandbox.for_host(host.clone());
        let mut confined =
            scene.script("cat work/a.txt; cat .config.txt; grep -rs s3cret . ; echo");
        (confined.root, confined.folder) = (Some(home.clone()), home.clone());
        let output = run(&sandbox, &confined);
        assert_eq!(output.stdout.text, "textshown\n", "{output:?}");
    }
}
