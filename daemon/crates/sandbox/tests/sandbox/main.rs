//! The sandbox against programs that try to escape it, as root and as an ordinary user, each with a
//! control: the same program succeeds without the sandbox. This binary is its own helper, so it has
//! no test harness.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and tells what it did"
)]

mod attacks;
mod bounds;
mod plain;
mod scene;

use std::process::{Command, ExitCode};

use cairn_sandbox::{HELPER_WORD, sandbox_main};
use scene::Scene;

/// A test and its name.
type Test = (&'static str, fn(&Scene));

const TESTS: &[Test] = &[
    ("command_environment_is_complete", plain::command_environment_is_complete),
    ("input_reaches_the_command_in_each_tier", plain::input_reaches_the_command_in_each_tier),
    ("run_sees_only_its_own_paths", plain::run_sees_only_its_own_paths),
    ("read_only_workspace_is_not_changed", plain::read_only_workspace_is_not_changed),
    ("network_is_available_when_granted", plain::network_is_available_when_granted),
    ("command_is_refused_without_sandbox", plain::command_is_refused_without_sandbox),
    ("sandbox_setup_failure_is_reported", plain::sandbox_setup_failure_is_reported),
    ("placeholders_are_removed", plain::placeholders_are_removed),
    (
        "home_folder_with_nested_hidden_paths_runs_commands",
        plain::home_folder_with_nested_hidden_paths_runs_commands,
    ),
    ("no_attack_escapes", attacks::no_attack_escapes),
    ("weaker_sandbox_stops_documented_attacks", attacks::weaker_sandbox_stops_documented_attacks),
    ("run_time_is_bounded", bounds::run_time_is_bounded),
    ("run_can_be_cancelled", bounds::run_can_be_cancelled),
    ("output_size_is_bounded", bounds::output_size_is_bounded),
    ("file_size_is_bounded", bounds::file_size_is_bounded),
    ("memory_use_is_bounded", bounds::memory_use_is_bounded),
    ("process_count_is_bounded", bounds::process_count_is_bounded),
    ("no_process_outlives_its_run", bounds::no_process_outlives_its_run),
    ("no_process_outlives_a_killed_daemon", bounds::no_process_outlives_a_killed_daemon),
    ("process_tree_is_killed_in_200_runs", bounds::process_tree_is_killed_in_200_runs),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|a| a == HELPER_WORD) {
        args.next();
        return sandbox_main(args);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|w| w == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let role = std::env::var("CAIRN_TEST_ROLE").ok();
    let filter = words.iter().find(|w| !w.starts_with('-')).cloned().unwrap_or_default();
    match role.as_deref() {
        Some(role) if role.contains(':') => {
            let mut parts = role.split(':');
            let mut part = || parts.next().unwrap_or_default();
            let (user, tier, number) = (part(), part(), part());
            let scene = Scene::set(user, &format!("killed-{tier}-{number}"));
            bounds::act_as_daemon(&scene, tier, number);
            ExitCode::FAILURE
        }
        Some(role) => act(role, &filter),
        None => direct(&filter),
    }
}

/// Starts this binary again for each kind of user, with a key in its environment as a daemon has
/// one.
fn direct(filter: &str) -> ExitCode {
    if !scene::possible() {
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::Builder::new().prefix("cairn-sandbox-").tempdir_in("/tmp").unwrap();
    scene::open_to_all(dir.path());
    // An ordinary user cannot read the folder that this was built in.
    let me = dir.path().join("helper");
    std::fs::copy(std::env::current_exe().unwrap(), &me).unwrap();
    let root = rustix::process::getuid().is_root();
    let mut failed = Vec::new();
    for role in if root { &["root", "user"][..] } else { &["user"][..] } {
        let mut command = if root && *role == "user" {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&me);
            command
        } else {
            Command::new(&me)
        };
        let home = dir.path().join(role);
        std::fs::create_dir(&home).unwrap();
        scene::open_to_all(&home);
        let status = command
            .arg(filter)
            .env("CAIRN_TEST_ROLE", role)
            .env("CAIRN_TEST_BASE", home.canonicalize().unwrap())
            .env("CAIRN_FAKE_KEY", "s3cret")
            .status()
            .unwrap();
        if !status.success() {
            failed.push(*role);
        }
    }
    println!(
        "\ntest result: {}. failed as: {failed:?}",
        if failed.is_empty() { "ok" } else { "FAILED" }
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the tests as one kind of user.
fn act(role: &str, filter: &str) -> ExitCode {
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(filter)) {
        let started = std::time::Instant::now();
        let outcome = std::panic::catch_unwind(|| test(&Scene::set(role, name)));
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("test {role}::{name} ... {word} ({} ms)", started.elapsed().as_millis());
        match outcome {
            Ok(()) => passed += 1,
            Err(_) => failed.push(*name),
        }
    }
    println!("{role}: {passed} passed, {} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
