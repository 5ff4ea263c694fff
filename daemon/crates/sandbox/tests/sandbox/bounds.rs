//! Limits of time, output, files, memory and processes; and that no process remains.

use std::{
    fs,
    time::{Duration, Instant},
};

use cairn_sandbox::{Sandbox, Wake};

use crate::scene::{Scene, run};

/// Returns the full and the weaker sandbox.
fn both(scene: &Scene) -> [(&'static str, Sandbox); 2] {
    [("full", scene.sandbox()), ("weaker", scene.weaker())]
}

pub fn run_time_is_bounded(scene: &Scene) {
    for (name, sandbox) in both(scene) {
        sandbox.probe();
        let mut confined = scene.script("echo before; trap '' TERM INT HUP; sleep 60; echo after");
        confined.limits.wall = Duration::from_millis(500);
        let started = Instant::now();
        let output = run(&sandbox, &confined);
        assert!(
            output.timed_out && started.elapsed() < Duration::from_secs(20),
            "{name}: {output:?}"
        );
        assert_eq!(output.stdout.text, "before\n", "{name}");
        // Control: with more time it finishes by itself.
        let output = run(&sandbox, &scene.script("sleep 0.6; echo after"));
        assert_eq!((output.timed_out, output.stdout.text.as_str()), (false, "after\n"), "{name}");
    }
}

pub fn run_can_be_cancelled(scene: &Scene) {
    for (name, sandbox) in both(scene) {
        sandbox.probe();
        let wake = Wake::new().unwrap();
        let canceller = wake.clone();
        let started = Instant::now();
        // Cancelled once its output shows that it runs.
        let output = sandbox
            .run(&scene.script("echo ready; sleep 60"), &wake, &mut |_, _| canceller.cancel())
            .unwrap();
        assert!(
            output.cancelled && started.elapsed() < Duration::from_secs(20),
            "{name}: {output:?}"
        );
    }
}

pub fn output_size_is_bounded(scene: &Scene) {
    for (name, sandbox) in both(scene) {
        let mut confined =
            scene.script("echo first; yes | head -c 20000000; echo last; yes >&2 | head -c 0");
        confined.limits.output = 64 * 1024;
        confined.limits.wall = Duration::from_secs(60);
        let output = run(&sandbox, &scene.script("echo first; yes | head -c 20000000; echo last"));
        assert!(
            output.stdout.truncated && output.stdout.bytes > 20_000_000,
            "{name}: {}",
            output.stdout.bytes
        );
        assert!(output.stdout.text.len() < 300 * 1024, "{name}");
        assert!(
            output.stdout.text.starts_with("first\n") && output.stdout.text.ends_with("last\n"),
            "{name}"
        );
        assert!(output.stdout.text.contains("bytes omitted"), "{name}");
        let mut endless = scene.script("yes");
        endless.limits.wall = Duration::from_millis(500);
        let output = run(&sandbox, &endless);
        assert!(output.timed_out && output.stdout.text.len() < 300 * 1024, "{name}");
    }
}

pub fn file_size_is_bounded(scene: &Scene) {
    let script = "head -c 3000000 /dev/zero > big; stat -c %s big; rm -f big";
    for (name, sandbox) in both(scene) {
        let in_project = |mut c: cairn_sandbox::Confined| {
            c.folder = scene.root.join("part");
            c
        };
        let mut confined = in_project(scene.script(script));
        confined.limits.file_bytes = 1 << 20;
        let output = run(&sandbox, &confined);
        assert!(output.stdout.text.contains("1048576"), "{name}: {output:?}");
        let output = run(&sandbox, &in_project(scene.script(script)));
        assert!(output.stdout.text.contains("3000000"), "{name}: {output:?}");
    }
}

pub fn memory_use_is_bounded(scene: &Scene) {
    for (name, sandbox) in both(scene) {
        let script = "python3 -c 'x = bytearray(300 << 20); print(len(x))'";
        let mut confined = scene.script(script);
        confined.limits.memory = 100 << 20;
        let output = run(&sandbox, &confined);
        assert!(
            !output.stdout.text.contains("314572800") && output.exit_code != 0,
            "{name}: {output:?}"
        );
        let output = run(&sandbox, &scene.script(script));
        assert!(output.stdout.text.contains("314572800"), "{name}: {output:?}");
    }
}

pub fn process_count_is_bounded(scene: &Scene) {
    let script = "python3 -c '
import os, time
n = 0
try:
    for _ in range(200):
        if os.fork() == 0: time.sleep(20); os._exit(0)
        n += 1
except OSError: pass
print(n)'";
    for (name, sandbox) in both(scene) {
        let mut confined = scene.script(script);
        confined.limits.processes = 40;
        let output = run(&sandbox, &confined);
        let started: u32 = output.stdout.text.trim().parse().unwrap_or(0);
        assert!(started < 60, "{name}: {output:?}");
        let output = run(&sandbox, &scene.script(script));
        assert_eq!(output.stdout.text.trim(), "200", "{name}: {output:?}");
        // A fork bomb: it is bounded, and killed at its time limit.
        let mut bomb = scene.script("f() { f | f & }; f; sleep 60");
        bomb.limits.processes = 100;
        bomb.limits.wall = Duration::from_secs(2);
        let marker = format!("cairn-bomb-{}", std::process::id());
        bomb.env.push(("MARKER".into(), marker.clone()));
        let start_time = Instant::now();
        let _output = run(&sandbox, &bomb);
        assert!(
            start_time.elapsed() < Duration::from_secs(60),
            "{name}: {:?}",
            start_time.elapsed()
        );
        assert_eq!(survivors(&marker), 0, "{name}");
    }
}

/// Returns the number of processes with a word in their environment.
fn processes_with(marker: &str) -> usize {
    let has_marker = |e: &fs::DirEntry| {
        fs::read(e.path().join("environ"))
            .is_ok_and(|v| String::from_utf8_lossy(&v).contains(marker))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_marker).count()
}

/// Returns the processes that remain after they have had time to exit.
fn survivors(marker: &str) -> usize {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let remaining = processes_with(marker);
        if remaining == 0 || Instant::now() > until {
            return remaining;
        }
        std::thread::yield_now();
    }
}

/// Ways for a child to leave its process group.
const LEAVERS: &[&str] = &[
    "sleep 300 &",
    "setsid sleep 300 &",
    "nohup sleep 300 >/dev/null 2>&1 &",
    "(setsid sh -c 'sleep 300 & sleep 300' &)",
    "python3 -c 'import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(300)'",
    "sh -c '(trap \"\" TERM HUP INT; sleep 300) & disown' 2>/dev/null",
    "setsid -f sh -c 'while :; do setsid -f sleep 0.05; sleep 0.01; done'",
];

pub fn no_process_outlives_its_run(scene: &Scene) {
    for (name, sandbox) in both(scene) {
        for (n, leaver) in LEAVERS.iter().enumerate() {
            let marker = format!("cairn-leaver-{}-{name}-{n}", std::process::id());
            let mut confined = scene.script(&format!("{leaver}\necho done"));
            confined.env.push(("MARKER".into(), marker.clone()));
            let started = Instant::now();
            let output = run(&sandbox, &confined);
            assert_eq!(output.stdout.text, "done\n", "{name} {leaver}: {output:?}");
            // It does not wait for processes that have its output open.
            assert!(started.elapsed() < Duration::from_secs(20), "{name} {leaver}");
            assert_eq!(survivors(&marker), 0, "{name}: {leaver}");
        }
    }
    // Control: without a sandbox one remains.
    let marker = format!("cairn-leaver-{}-none", std::process::id());
    let leaver = "setsid sh -c 'echo up > {W}/part/up; exec sleep 5' > /dev/null 2>&1 & until test -s {W}/part/up; do :; done";
    let mut confined = scene.script(leaver);
    confined.env.push(("MARKER".into(), marker.clone()));
    run(&scene.none(), &confined);
    assert!(processes_with(&marker) > 0);
}

/// Command line of a program that is killed while it runs a command.
const LONG: &str = "(setsid sh -c 'sleep 300 & sleep 300' &) ; sleep 300 & echo up; sleep 300";

/// The marker of the command alone: other processes of the scene inherit the environment of the
/// program that is killed.
fn marker_of(tier: &str, number: &str) -> String {
    format!("cairn-killed-{tier}-{number}")
}

/// Acts as a daemon in one tier, until it is killed; returns only on failure.
pub fn act_as_daemon(scene: &Scene, tier: &str, number: &str) {
    let sandbox = match tier {
        "full" => scene.sandbox(),
        "weaker" => scene.weaker(),
        _ => scene.none(),
    };
    let mut confined = scene.script(LONG);
    confined.limits.wall = Duration::from_secs(120);
    confined.env.push(("MARKER".into(), marker_of(tier, number)));
    let _output = sandbox.run(&confined, &Wake::new().unwrap(), &mut |_, text| {
        print!("{}", String::from_utf8_lossy(text));
    });
}

pub fn no_process_outlives_a_killed_daemon(scene: &Scene) {
    let killed = |mut command: std::process::Command| {
        use std::io::BufRead as _;
        let mut daemon = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufReader::new(daemon.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "up");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    };
    for tier in ["full", "weaker", "none"] {
        let number = std::process::id().to_string();
        let marker = marker_of(tier, &number);
        let mut daemon = std::process::Command::new(std::env::current_exe().unwrap());
        daemon.env("CAIRN_TEST_ROLE", format!("{}:{tier}:{number}", scene.role));
        killed(daemon);
        assert_eq!(survivors(&marker), 0, "{tier}");
    }
    // Control: processes of a program that starts them by itself remain.
    let marker = format!("cairn-killed-{}-control", std::process::id());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "setsid sleep 5 > /dev/null & echo up; sleep 300"]).env("MARKER", &marker);
    killed(shell);
    assert!(processes_with(&marker) > 0);
}

pub fn process_tree_is_killed_in_200_runs(scene: &Scene) {
    let sandbox = scene.sandbox();
    sandbox.probe();
    let marker = format!("cairn-tree-{}", std::process::id());
    let tree = "for i in 1 2 3; do setsid sh -c 'sleep 300 & (sleep 300 &) ; sleep 300' & done; echo up; sleep 300";
    for round in 0_u32..200 {
        let mut confined = scene.script(tree);
        confined.env.push(("MARKER".into(), marker.clone()));
        let wake = Wake::new().unwrap();
        if round % 2 == 0 {
            // At any moment of its start.
            confined.limits.wall = Duration::from_micros(u64::from(round) * 150);
            let _output = sandbox.run(&confined, &wake, &mut |_, _| {}).unwrap();
        } else {
            let canceller = wake.clone();
            let output = sandbox.run(&confined, &wake, &mut |_, _| canceller.cancel()).unwrap();
            assert!(output.cancelled, "{output:?}");
        }
    }
    assert_eq!(survivors(&marker), 0);
}
