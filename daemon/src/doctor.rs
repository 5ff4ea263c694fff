//! `cairn doctor`: checks that the requirements of Cairn are met. It works without a daemon.

mod machine;
mod remedy;
mod repair;
mod state;

use std::{fmt::Write as _, io::Write as _, process::ExitCode};

use cairn_cli::{FAILED, Globals, OK};
use cairn_protocol::location::{DataRoot, Env};
use serde::Serialize;

use crate::settings;

pub use repair::run as repair;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything is in order.
    Ok,
    /// Worth knowing, without a problem.
    Info,
    /// It works with restrictions.
    Warn,
    /// It does not work.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    name: &'static str,
    outcome: Outcome,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Ok, detail: detail.into(), hint: None }
    }

    fn info(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Info, detail: detail.into(), hint: None }
    }

    /// A restriction, with the line that lifts it.
    fn warn(name: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { name, outcome: Outcome::Warn, detail: detail.into(), hint }
    }

    /// A problem, with the line that mends it.
    fn fail(name: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { outcome: Outcome::Fail, ..Self::warn(name, detail, hint) }
    }
}

/// Runs `cairn doctor`; the exit code is 1 if any check fails.
pub fn run(env: &Env, root: &DataRoot, globals: &Globals) -> ExitCode {
    let flags = settings::Flags { config: globals.config.clone(), ..settings::Flags::default() };
    let (config, mut checks) = state::config(env, &flags);
    checks.extend(state::rules(&config));
    checks.extend(state::folder(root));
    checks.push(state::disk(root));
    checks.push(state::trace(root));
    checks.extend(state::state_file(root));
    checks.extend(state::indexes(root));
    checks.extend(state::daemon(env, root, &config));
    checks.extend(state::broker(&config));
    checks.extend(machine::all(&config));
    checks.push(program());
    let bad = checks.iter().any(|c| c.outcome == Outcome::Fail);
    let text = if globals.json { format!("{}\n", json(&checks)) } else { text(&checks) };
    // If the reader of the output is gone, the exit code is enough.
    let _closed = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(if bad { FAILED } else { OK })
}

/// Names the installer of this program and the line that updates it.
fn program() -> Check {
    let owner = cairn_cli::installed_by();
    Check::info(
        "program",
        format!(
            "version {}, installed by {}; update it: {}",
            env!("CARGO_PKG_VERSION"),
            owner.name(),
            owner.update_line()
        ),
    )
}

fn json(checks: &[Check]) -> serde_json::Value {
    let ok = checks.iter().all(|c| c.outcome != Outcome::Fail);
    serde_json::json!({"ok": ok, "checks": checks})
}

fn text(checks: &[Check]) -> String {
    let mut out = String::new();
    let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for check in checks {
        let word = match check.outcome {
            Outcome::Ok => "ok",
            Outcome::Info => "info",
            Outcome::Warn => "warn",
            Outcome::Fail => "FAIL",
        };
        let begin = format!("{word:<4}  {:<width$}  ", check.name);
        let _infallible = writeln!(out, "{}", cairn_cli::hanging(&begin, &check.detail));
        if let Some(hint) = &check.hint {
            // Not wrapped, so that it can be copied.
            let _infallible = writeln!(out, "      {:<width$}  fix: {hint}", "");
        }
    }
    let count = |outcome| checks.iter().filter(|c| c.outcome == outcome).count();
    let _infallible =
        writeln!(out, "{} warnings, {} failures", count(Outcome::Warn), count(Outcome::Fail));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_without_arguments_is_reported() {
        let mut config = cairn_config::Config::default();
        assert_eq!(state::rules(&config), []);
        let rule = |text: &str| cairn_config::RuleEntry::Text(text.into());
        config.permissions.allow = vec![rule("run_shell(sed *)"), rule("run_shell(cargo test *)")];
        let checks = state::rules(&config);
        assert_eq!(checks.len(), 1);
        assert!(
            checks[0].detail.contains("sed *") && checks[0].outcome == Outcome::Warn,
            "{checks:?}"
        );
    }

    #[test]
    fn nodes_of_the_broker_are_checked() {
        let mut config = cairn_config::Config::default();
        assert_eq!(state::broker(&config), None);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let good = format!("nats://{}", listener.local_addr().unwrap());
        for (server, outcome) in [
            (good.clone(), Outcome::Ok),
            (format!("{good}, nats://127.0.0.1:1"), Outcome::Warn),
            ("nats://127.0.0.1:1".to_owned(), Outcome::Fail),
            ("nats://no-such-host.invalid:4222".to_owned(), Outcome::Fail),
        ] {
            config.fleet.server = Some(server);
            assert_eq!(state::broker(&config).unwrap().outcome, outcome);
        }
    }

    #[test]
    fn fresh_home_passes_and_open_home_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().join("home"));
        assert!(state::folder(&root).iter().all(|c| c.outcome != Outcome::Fail));
        assert_eq!(state::trace(&root).outcome, Outcome::Ok);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::create_dir(root.path()).unwrap();
            std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
            assert!(
                state::folder(&root).iter().any(|c| c.outcome == Outcome::Warn),
                "{:?}",
                state::folder(&root)
            );
            std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o700)).unwrap();
            std::fs::write(root.token(), "x").unwrap();
            std::fs::set_permissions(root.token(), PermissionsExt::from_mode(0o644)).unwrap();
            assert!(state::folder(&root).iter().any(|c| c.outcome == Outcome::Fail));
        }
        std::fs::write(root.trace_db(), vec![b'x'; 8192]).unwrap();
        let broken = state::trace(&root);
        assert_eq!(broken.outcome, Outcome::Fail);
        let report = text(&[broken]);
        assert!(
            report.starts_with("FAIL") && report.ends_with("0 warnings, 1 failures\n"),
            "{report}"
        );
    }

    #[test]
    fn newer_log_fails_the_check() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().to_owned());
        let newer = [cairn_store::Migration {
            version: cairn_trace::SCHEMA_VERSION + 1,
            sql: "CREATE TABLE a(x)",
        }];
        drop(cairn_store::open(&root.trace_db(), &newer).unwrap());
        let check = state::trace(&root);
        assert_eq!(check.outcome, Outcome::Fail);
        assert!(check.detail.contains("newer"), "{check:?}");
    }

    #[test]
    fn machine_checks_run() {
        for check in machine::all(&cairn_config::Config::default()) {
            assert!(!check.detail.is_empty(), "{check:?}");
        }
    }
}
