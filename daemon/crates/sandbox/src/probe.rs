//! Detection of the sandbox available on this machine, by trying.

use std::{path::PathBuf, time::Duration};

use serde::Serialize;

use super::{Confined, Limits, Sandbox, Wake, cgroup::Cgroup, confine::CLOSES_SOCKETS, run};

/// Strength of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A separate file system, process tree and network, and confinement from inside.
    Full,
    /// Confinement from inside alone.
    Weaker,
    /// No sandbox at all.
    None,
}

impl Tier {
    /// Returns the name of the tier in messages.
    pub fn label(self) -> &'static str {
        match self {
            Tier::Full => "the full sandbox",
            Tier::Weaker => "a weaker sandbox",
            Tier::None => "no sandbox",
        }
    }
}

/// Result of the probe.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The strongest tier that works.
    pub tier: Tier,
    /// Version text of bubblewrap; `None` if it is not installed.
    pub bubblewrap: Option<String>,
    /// Reason why the full tier does not work.
    pub why_not_full: Option<String>,
    /// Version of Landlock's interface.
    pub landlock: Option<i32>,
    /// True if system calls can be filtered.
    pub seccomp: bool,
    /// True if user namespaces can be created.
    pub user_namespaces: bool,
    /// True if a control group bounds memory and processes in total.
    pub control_group: bool,
    /// Attacks that it does not stop.
    pub notes: Vec<String>,
}

/// Tries the tiers, the strongest first.
pub(super) fn probe(sandbox: &Sandbox) -> Probe {
    if cfg!(target_os = "macos") {
        return seatbelt();
    }
    let mut outcome = Probe {
        tier: Tier::None,
        bubblewrap: None,
        why_not_full: None,
        landlock: None,
        seccomp: false,
        user_namespaces: false,
        control_group: Cgroup::make(&Limits::default()).is_some(),
        notes: vec![],
    };
    let Some(bubblewrap) = &sandbox.bubblewrap else {
        outcome.why_not_full = Some("bubblewrap is not installed (bwrap)".into());
        return weaker(sandbox, outcome);
    };
    outcome.bubblewrap = Some(version(bubblewrap));
    match attempt(sandbox, Tier::Full) {
        Ok(report) => {
            (outcome.tier, outcome.user_namespaces) = (Tier::Full, true);
            apply_report(&mut outcome, &report);
            outcome
        }
        Err(why) => {
            outcome.why_not_full = Some(why);
            weaker(sandbox, outcome)
        }
    }
    .with_notes()
}

fn weaker(sandbox: &Sandbox, mut outcome: Probe) -> Probe {
    match attempt(sandbox, Tier::Weaker) {
        Ok(report) => {
            apply_report(&mut outcome, &report);
            // Without Landlock no path would be closed.
            if outcome.landlock.is_some() {
                outcome.tier = Tier::Weaker;
            }
        }
        Err(why) => {
            let before = outcome.why_not_full.take().unwrap_or_default();
            outcome.why_not_full = Some(format!("{before}; {why}"));
        }
    }
    outcome.with_notes()
}

fn apply_report(outcome: &mut Probe, report: &serde_json::Value) {
    outcome.landlock = report["landlock"].as_i64().and_then(|v| i32::try_from(v).ok());
    outcome.seccomp = report["seccomp"].as_bool().unwrap_or(false);
}

/// Runs the helper without a command: it reports what it could set up.
fn attempt(sandbox: &Sandbox, tier: Tier) -> Result<serde_json::Value, String> {
    let mut confined = Confined::program(vec![], PathBuf::from("/tmp"));
    confined.limits.wall = Duration::from_secs(10);
    let wake = Wake::new().map_err(|e| e.message)?;
    let output =
        run::run(sandbox, tier, &confined, &wake, &mut |_, _| {}).map_err(|e| e.message)?;
    match serde_json::from_str(&output.stdout.text) {
        Ok(report) if output.exit_code == 0 => Ok(report),
        _ => Err(format!("it exited with {}: {}", output.exit_code, output.stderr.text.trim())),
    }
}

fn version(bubblewrap: &std::path::Path) -> String {
    let result = std::process::Command::new(bubblewrap).arg("--version").env_clear().output();
    result
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
        .unwrap_or_else(|e| e.to_string())
}

fn seatbelt() -> Probe {
    let there = std::path::Path::new("/usr/bin/sandbox-exec").is_file();
    Probe {
        tier: if there { Tier::Full } else { Tier::None },
        bubblewrap: None,
        why_not_full: (!there).then(|| "sandbox-exec is not installed".into()),
        landlock: None,
        seccomp: false,
        user_namespaces: false,
        control_group: false,
        notes: vec!["memory and processes are limited per process only".into()],
    }
}

impl Probe {
    fn with_notes(mut self) -> Self {
        self.notes.clear();
        let mut note = |text: &str| self.notes.push(text.into());
        let root = rustix::process::getuid().is_root();
        match self.tier {
            Tier::Full => {
                note(
                    "a new repository below the top of the workspace can be created with its own hooks",
                );
                note("the workspace itself can be filled or emptied");
                note("with the network granted, services of this machine can also be reached");
            }
            Tier::Weaker => {
                note(
                    "modes, owners and times of outside files can be changed if the user may do so",
                );
                note("names of files and of other processes can be seen");
                note("shared memory of the user can be reached");
                if self.landlock.is_none_or(|version| version < CLOSES_SOCKETS) {
                    note(
                        "commands can open no Unix sockets, not even of their own, because \
                         sockets of other programs cannot be told apart",
                    );
                }
                note("a repository's own folder can be created below the top of the workspace");
                note("no new entries can be created directly in the top of a workspace");
            }
            Tier::None => note("anything that the user may do"),
        }
        if self.tier != Tier::None && !self.control_group {
            note("memory is limited per process only");
            if root {
                note("the number of processes is not limited for root");
            }
        }
        if self.tier != Tier::None && self.landlock.is_none() {
            note("the kernel has no Landlock");
        } else if self.tier == Tier::Weaker && self.landlock.is_some_and(|abi| abi < 6) {
            note("the kernel's Landlock does not confine signals and abstract sockets");
        }
        self
    }
}
