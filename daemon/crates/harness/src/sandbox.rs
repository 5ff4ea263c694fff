//! Where processes run: nothing outside the workspace can be written, secrets cannot be read, the network is shut
//! unless it is granted, and nothing outlives the call.
//!
//! Tier A: bubblewrap lays out a file system of its own with its own processes and network; inside it our own binary,
//! run again, adds Landlock, seccomp and limits, then becomes the command. Tier B, only where bubblewrap cannot start
//! and the user has accepted it: Landlock, seccomp and limits alone. On macOS: `sandbox-exec` with a generated profile.

mod capture;
mod cgroup;
mod confine;
mod layout;
mod limits;
mod placeholder;
mod probe;
mod run;
mod seatbelt;
mod seccomp;
mod spec;
mod step;
mod supervise;
mod toolchain;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use cairn_protocol::error::{Failure, Reason};

pub use capture::Captured;
pub use probe::{Probe, Tier};
pub use seatbelt::profile as seatbelt_profile;
pub use spec::{Confined, Ended, Limits, Stream, WhenMissing};
pub use step::sandbox_main;

/// The word after which our own binary is the sandbox's helper ([`sandbox_main`]).
pub const HELPER_WORD: &str = "sandbox-exec";

/// A program that is the helper and nothing else, and so starts sooner; used where it lies beside the binary.
const SMALL_HELPER: &str = "cairn-sandbox";

/// What the sandbox must know of the machine; the library reads neither the environment nor a home folder.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The user's home folder. Nothing of it is readable but what is declared and the toolchains in it.
    pub home: Option<PathBuf>,
    /// Folders of programs, as in `PATH`.
    pub path: Vec<PathBuf>,
    /// The language of messages, as in `LANG`.
    pub lang: Option<String>,
    /// Paths that nothing may touch; `~/` stands for the home folder.
    pub blocked: Vec<PathBuf>,
}

impl Host {
    /// The blocked paths without `~`.
    pub(crate) fn blocked(&self) -> Vec<PathBuf> {
        let expand = |path: &PathBuf| match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        };
        self.blocked.iter().map(expand).collect()
    }
}

/// Starts processes in a sandbox.
pub struct Sandbox {
    helper: Option<PathBuf>,
    host: Host,
    when_missing: WhenMissing,
    /// Looked for in the usual places; a test may say otherwise.
    bubblewrap: Option<PathBuf>,
    probe: OnceLock<Probe>,
    /// The helper that is used: the small one beside `helper` where it is of this build.
    chosen: OnceLock<Option<PathBuf>>,
}

impl Sandbox {
    /// A sandbox whose helper is `helper`: a binary that calls [`sandbox_main`] first of all. Without one nothing is
    /// run.
    pub fn new(helper: Option<PathBuf>) -> Self {
        let usual =
            ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
        let bubblewrap = usual.iter().map(PathBuf::from).find(|p| p.is_file());
        let (host, when_missing) = (Host::default(), WhenMissing::Refuse);
        Self { helper, host, when_missing, bubblewrap, probe: OnceLock::new(), chosen: OnceLock::new() }
    }

    /// The same for this machine.
    #[must_use]
    pub fn for_host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// The same with what the user accepts where the full sandbox cannot be had.
    #[must_use]
    pub fn when_missing(mut self, when_missing: WhenMissing) -> Self {
        self.when_missing = when_missing;
        self
    }

    /// The same with bubblewrap elsewhere, or with none.
    #[must_use]
    pub fn with_bubblewrap(mut self, bubblewrap: Option<PathBuf>) -> Self {
        self.bubblewrap = bubblewrap;
        self
    }

    /// What can be had here. The first call tries it out, which takes some 20 ms; blocks.
    pub fn probe(&self) -> &Probe {
        self.probe.get_or_init(|| probe::probe(self))
    }

    /// Whether this call needs the user's consent first, as the full sandbox is not to be had: what it would do without.
    ///
    /// # Errors
    /// `sandbox_missing` when that is refused.
    pub fn consent(&self) -> Result<Option<String>, Failure> {
        let probe = self.probe();
        match (probe.tier, self.when_missing) {
            (Tier::Full, _) | (_, WhenMissing::Accept | WhenMissing::Off) => Ok(None),
            (tier, WhenMissing::Ask) => Ok(Some(format!("{}: {}", tier.label(), probe.notes.join("; ")))),
            (_, WhenMissing::Refuse) => Err(self.missing()),
        }
    }

    /// The user's choice for machines without a full sandbox.
    pub(crate) fn when_missing_is(&self) -> WhenMissing {
        self.when_missing
    }

    /// One that confines nothing, for a run whose user has said so.
    pub(crate) fn off(&self) -> Self {
        let (helper, host, bubblewrap) = (self.helper.clone(), self.host.clone(), self.bubblewrap.clone());
        let (probe, chosen) = (self.probe.clone(), self.chosen.clone());
        Self { helper, host, when_missing: WhenMissing::Off, bubblewrap, probe, chosen }
    }

    fn missing(&self) -> Failure {
        let why = self.probe().why_not_full.clone().unwrap_or_default();
        Failure::new(Reason::SandboxMissing, format!("no full sandbox can be had here: {why}"))
    }

    /// Runs a process and everything it starts, to its end; blocks. `output` is shown what it writes as it comes.
    /// `cancelled` ends it when it holds.
    ///
    /// # Errors
    /// `sandbox_missing`, `invalid_params` for a folder outside the workspace, `tool_failed` when it cannot be started.
    pub fn run(
        &self,
        confined: &Confined,
        wake: &Wake,
        output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Ended, Failure> {
        let tier = self.tier_for(confined)?;
        run::run(self, tier, confined, wake, output)
    }

    fn tier_for(&self, confined: &Confined) -> Result<Tier, Failure> {
        if self.when_missing == WhenMissing::Off {
            return Ok(Tier::None);
        }
        if self.helper.is_none() && !cfg!(target_os = "macos") {
            let text =
                "this program has no sandbox helper: give Sandbox::new a binary that calls sandbox_main";
            return Err(Failure::new(Reason::SandboxMissing, text));
        }
        let accepted = confined.accepted || self.when_missing == WhenMissing::Accept;
        match self.probe().tier {
            Tier::Full => Ok(Tier::Full),
            tier if accepted && self.when_missing != WhenMissing::Refuse => Ok(tier),
            _ => Err(self.missing()),
        }
    }

    /// The helper that is used.
    ///
    /// # Errors
    /// `sandbox_missing` when there is none.
    pub fn helper(&self) -> Result<&Path, Failure> {
        let none = || Failure::new(Reason::SandboxMissing, "there is no sandbox helper");
        let choose = || {
            let small = self.helper.as_ref()?.with_file_name(SMALL_HELPER);
            (small.is_file() && step::is_of_this_build(&small))
                .then_some(small)
                .or_else(|| self.helper.clone())
        };
        self.chosen.get_or_init(choose).as_deref().ok_or_else(none)
    }
}

/// Ends a run from another thread.
#[derive(Clone)]
pub struct Wake {
    ended: Arc<AtomicBool>,
    pipe: Arc<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)>,
}

impl Wake {
    /// One that has not been used.
    ///
    /// # Errors
    /// `internal` when there is no descriptor left.
    pub fn new() -> Result<Self, Failure> {
        let failed = |e| Failure::new(Reason::Internal, format!("no pipe: {e}"));
        let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed)?;
        Ok(Self { ended: Arc::new(AtomicBool::new(false)), pipe: Arc::new(pipe) })
    }

    /// Ends the run.
    pub fn end(&self) {
        self.ended.store(true, std::sync::atomic::Ordering::SeqCst);
        // With a full pipe it is awake already.
        let _full = rustix::io::write(&self.pipe.1, b"x");
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(std::sync::atomic::Ordering::SeqCst)
    }

    pub(crate) fn reader(&self) -> &std::os::fd::OwnedFd {
        &self.pipe.0
    }
}
