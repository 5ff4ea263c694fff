//! A program of the user's in the real sandbox, whose helper is this binary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and has no harness here"
)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test makes the files, processes and servers that tools meet"
)]

#[path = "sandboxed/background.rs"]
mod background;
#[path = "it/fixture.rs"]
#[expect(dead_code, reason = "not all of it is wanted here")]
mod fixture;
#[path = "sandboxed/lsp.rs"]
mod lsp;
#[path = "sandboxed/modes.rs"]
mod modes;
#[path = "sandboxed/network.rs"]
mod network;
#[path = "sandboxed/spellings.rs"]
mod spellings;

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use cairn_harness::{
    Grants, Sandbox,
    sandbox::{HELPER_WORD, Host, Tier, sandbox_main},
};
use cairn_protocol::error::Reason;
use cairn_tools::{ExternalSpec, Externals};
use serde_json::{Value, json};

use fixture::{Fixture, allow, within};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|a| a == HELPER_WORD) {
        args.next();
        return sandbox_main(args);
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let listed = std::env::args().any(|a| a == "--list");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for (name, test) in TESTS {
        if listed {
            println!("{name}: test");
        } else if filters.is_empty() || filters.iter().any(|w| name.contains(w)) {
            LACKS_SANDBOX.store(false, Ordering::Relaxed);
            runtime.block_on(test());
            let lacks = LACKS_SANDBOX.load(Ordering::Relaxed);
            let outcome = if lacks { "ignored, no complete sandbox here" } else { "ok" };
            println!("test {name} ... {outcome}");
        }
    }
    ExitCode::SUCCESS
}

type Test = fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>>;

const TESTS: &[(&str, Test)] = &[
    ("external_program_sees_only_workspace", || Box::pin(external_program_sees_only_workspace())),
    ("no_path_spelling_bypasses_rules", || Box::pin(spellings::no_path_spelling_bypasses_rules())),
    ("symlink_swapped_during_call_discloses_nothing", || {
        Box::pin(spellings::symlink_swapped_during_call_discloses_nothing())
    }),
    ("run_paths_are_mounted_only_beneath_the_root", || {
        Box::pin(spellings::commands::run_paths_are_mounted_only_beneath_the_root())
    }),
    ("swapped_parent_folder_leads_no_command_outside_root", || {
        Box::pin(spellings::commands::swapped_parent_folder_leads_no_command_outside_root())
    }),
    ("only_confined_commands_run_without_an_approval", || {
        Box::pin(modes::only_confined_commands_run_without_an_approval())
    }),
    ("git_status_omits_placeholders_and_shows_files_of_the_user", || {
        Box::pin(modes::git_status_omits_placeholders_and_shows_files_of_the_user())
    }),
    ("command_leaves_no_file_that_runs_later", || {
        Box::pin(modes::command_leaves_no_file_that_runs_later())
    }),
    ("approver_decides_about_files_that_run_later", || {
        Box::pin(modes::approver_decides_about_files_that_run_later())
    }),
    ("complete_network_is_judged_by_domain", || {
        Box::pin(network::complete_network_is_judged_by_domain())
    }),
    ("allowed_domain_is_reached", || Box::pin(network::allowed_domain_is_reached())),
    ("tunnel_must_name_its_domain", || Box::pin(network::tunnel_must_name_its_domain())),
    ("requests_in_a_tunnel_must_name_their_domain", || {
        Box::pin(network::requests_in_a_tunnel_must_name_their_domain())
    }),
    ("registries_are_reached_by_their_programs", || {
        Box::pin(network::registries_are_reached_by_their_programs())
    }),
    ("no_trick_reaches_another_address", || Box::pin(network::no_trick_reaches_another_address())),
    (
        "unlisted_domain_is_requested_once",
        || Box::pin(network::unlisted_domain_is_requested_once()),
    ),
    ("time_of_an_approver_does_not_count", || {
        Box::pin(network::time_of_an_approver_does_not_count())
    }),
    ("declared_variables_reach_external_programs_alone", || {
        Box::pin(network::declared_variables_reach_external_programs_alone())
    }),
    ("background_command_is_read_and_stopped", || {
        Box::pin(background::background_command_is_read_and_stopped())
    }),
    ("stubborn_command_is_killed_with_its_descendants", || {
        Box::pin(background::stubborn_command_is_killed_with_its_descendants())
    }),
    ("flood_is_bounded", || Box::pin(background::flood_is_bounded())),
    ("limits_of_background_commands_are_named", || {
        Box::pin(background::limits_of_background_commands_are_named())
    }),
    ("other_session_sees_no_command", || Box::pin(background::other_session_sees_no_command())),
    ("lifetime_and_session_end_commands", || {
        Box::pin(background::lifetime_and_session_end_commands())
    }),
    ("new_problems_are_reported_once", || Box::pin(lsp::new_problems_are_reported_once())),
    ("requested_problems_are_reported", || Box::pin(lsp::requested_problems_are_reported())),
    ("flood_of_problems_is_cut", || Box::pin(lsp::flood_of_problems_is_cut())),
    ("silent_server_delays_no_edit_for_longer_than_the_limit", || {
        Box::pin(lsp::silent_server_delays_no_edit_for_longer_than_the_limit())
    }),
    ("broken_server_fails_alone_and_is_turned_off", || {
        Box::pin(lsp::broken_server_fails_alone_and_is_turned_off())
    }),
    ("server_reaches_nothing_but_its_folders", || {
        Box::pin(lsp::server_reaches_nothing_but_its_folders())
    }),
    ("nothing_starts_in_an_untrusted_folder", || {
        Box::pin(lsp::nothing_starts_in_an_untrusted_folder())
    }),
    ("run_limited_to_paths_has_no_server", || Box::pin(lsp::run_limited_to_paths_has_no_server())),
    ("servers_are_bounded_and_stopped_when_idle", || {
        Box::pin(lsp::servers_are_bounded_and_stopped_when_idle())
    }),
    ("changed_rules_restart_the_server", || Box::pin(lsp::changed_rules_restart_the_server())),
    ("command_checks_files_without_an_answer", || {
        Box::pin(lsp::command_checks_files_without_an_answer())
    }),
    ("evaluate_starts_no_program", || Box::pin(spellings::commands::evaluate_starts_no_program())),
];

/// Returns the real sandbox, whose helper is this binary; `None` if it is not available.
/// True if the test that runs was refused a sandbox, so that it tested nothing.
static LACKS_SANDBOX: AtomicBool = AtomicBool::new(false);

pub fn sandbox() -> Option<Sandbox> {
    let helper = std::env::current_exe().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let host = Host { path: std::env::split_paths(&path).collect(), ..Host::default() };
    let sandbox = Sandbox::new(Some(helper)).for_host(host);
    let is_full = sandbox.probe().tier == Tier::Full;
    LACKS_SANDBOX.fetch_or(!is_full, Ordering::Relaxed);
    is_full.then_some(sandbox)
}

fn spec(name: &str, program: &Path, network: bool) -> ExternalSpec {
    ExternalSpec {
        name: name.into(),
        description: "Reads a path.".into(),
        parameters: json!({"path": {"type": "string", "required": true}}),
        program: program.into(),
        timeout: None,
        network,
        env: vec![],
        replaces_builtin: false,
    }
}

async fn external_program_sees_only_workspace() {
    let secret = tempfile::tempdir().unwrap();
    let at = secret.path().canonicalize().unwrap();
    std::fs::write(at.join("key"), "s3cret").unwrap();
    let script = r#"#!/usr/bin/env python3
import json, sys
path = json.loads(sys.argv[1])["path"]
try:
    text = open(path).read()
except OSError as error:
    text = type(error).__name__
try:
    import socket
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
    net = True
except OSError:
    net = False
print(json.dumps({"text": text, "net": net}))
"#;
    // The same program in a folder that the sandbox hides, as it does the configuration, and in one
    // that it does not.
    for folder in ["hidden", "copies"] {
        std::fs::create_dir(at.join(folder)).unwrap();
        let program = at.join(folder).join("look");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let host = Host {
        path: vec!["/usr/bin".into(), "/bin".into()],
        blocked: vec![at.join("hidden")],
        ..Host::default()
    };
    let sandbox = Sandbox::new(std::env::current_exe().ok()).for_host(host);
    if sandbox.probe().tier != Tier::Full {
        assert!(
            std::env::var("CAIRN_TEST_PEERS").as_deref() != Ok("required"),
            "{:?}",
            sandbox.probe()
        );
        println!("skipped: {:?}", sandbox.probe());
        return;
    }
    let files = [("a.txt", "inside"), ("sub/b.txt", "b")];
    let fixture = Fixture::sandboxed(&files, allow(&["*"]), |deps| deps, sandbox).await;
    let specs = vec![
        spec("look", &at.join("copies/look"), false),
        spec("hidden", &at.join("hidden/look"), false),
        spec("online", &at.join("copies/look"), true),
    ];
    assert_eq!(Externals::default().set(fixture.harness.registry(), specs), [""; 0]);
    let path = |path: &Path| json!({"path": path});
    let value = fixture.call("look", path(&fixture.path("a.txt"))).await.unwrap();
    assert_eq!(value, json!({"text": "inside", "net": false}));
    let outside = fixture.call("look", path(&at.join("key"))).await.unwrap();
    assert_ne!(outside["text"], Value::from("s3cret"));
    let narrow =
        fixture.with("look", path(&fixture.path("a.txt")), within(&["sub"])).await.unwrap();
    assert_ne!(narrow["text"], Value::from("inside"));
    let network = Grants { network: true, ..Grants::default() };
    // A program that does not declare network use has none, whatever the run has.
    let quiet = fixture.with("look", path(&fixture.path("a.txt")), network.clone()).await.unwrap();
    assert_eq!(quiet["net"], false);
    let online = fixture.with("online", path(&fixture.path("a.txt")), network).await;
    assert!(online.is_ok(), "{online:?}");
    let error = fixture.call("hidden", path(&fixture.path("a.txt"))).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolFailed, "{error}");
}
