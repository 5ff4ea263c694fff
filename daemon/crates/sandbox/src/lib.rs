//! The sandbox of processes: nothing outside the workspace can be written, secrets cannot be read,
//! the network is closed unless it is granted, and no process outlives the call.
//!
//! Tier A: bubblewrap creates a separate file system, process tree and network; inside it our own
//! binary, run again, adds Landlock, seccomp and limits, then becomes the command. Tier B, only
//! where bubblewrap cannot start and the user has accepted it: Landlock, seccomp and limits alone.
//! On macOS: `sandbox-exec` with a generated profile.

mod bridge;
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
mod terminate;
mod toolchain;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use cairn_protocol::error::{Failure, Reason};

pub use capture::Captured;
pub use probe::{Probe, Tier};
pub use seatbelt::profile as seatbelt_profile;
pub use spec::{Confined, Limits, ProcessOutput, Stream, WhenMissing};
pub use step::sandbox_main;

/// First argument that makes our own binary act as the sandbox's helper ([`sandbox_main`]).
pub const HELPER_WORD: &str = "sandbox-exec";

/// A program that contains only the helper, and so starts faster; used if it lies beside the
/// binary.
const SMALL_HELPER: &str = "cairn-sandbox";

/// Properties of the machine that the sandbox needs; the library reads neither the environment nor
/// a home folder.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The user's home folder. Only declared paths and the toolchains in it are readable.
    pub home: Option<PathBuf>,
    /// Folders of programs, as in `PATH`.
    pub path: Vec<PathBuf>,
    /// Locale of messages, as in `LANG`.
    pub lang: Option<String>,
    /// Paths that no process may access; `~/` stands for the home folder.
    pub blocked: Vec<PathBuf>,
    /// Folders that are hidden from a workspace around them, though folders in them can be
    /// workspaces.
    pub closed: Vec<PathBuf>,
}

impl Host {
    /// Returns the blocked paths with `~` expanded.
    pub(crate) fn blocked(&self) -> Vec<PathBuf> {
        let expand = |path: &PathBuf| match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.clone(),
        };
        self.blocked.iter().map(expand).collect()
    }
}

/// Runner of processes in a sandbox.
pub struct Sandbox {
    helper: Option<PathBuf>,
    host: Host,
    when_missing: WhenMissing,
    /// Path of bubblewrap; the usual locations are searched unless a test sets it.
    bubblewrap: Option<PathBuf>,
    probe: OnceLock<Probe>,
    /// The helper in use: the small one beside `helper` if it is of this build.
    chosen: OnceLock<Option<PathBuf>>,
}

impl Sandbox {
    /// Creates a sandbox whose helper is `helper`: a binary that calls [`sandbox_main`] first of
    /// all. Without a helper no process is run.
    pub fn new(helper: Option<PathBuf>) -> Self {
        let usual = [
            "/usr/bin/bwrap",
            "/usr/local/bin/bwrap",
            "/bin/bwrap",
            "/run/current-system/sw/bin/bwrap",
        ];
        let bubblewrap = usual.iter().map(PathBuf::from).find(|p| p.is_file());
        let (host, when_missing) = (Host::default(), WhenMissing::Refuse);
        Self {
            helper,
            host,
            when_missing,
            bubblewrap,
            probe: OnceLock::new(),
            chosen: OnceLock::new(),
        }
    }

    /// Sets the properties of this machine.
    #[must_use]
    pub fn for_host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Sets the user's choice for machines where the full sandbox is not available.
    #[must_use]
    pub fn when_missing(mut self, when_missing: WhenMissing) -> Self {
        self.when_missing = when_missing;
        self
    }

    /// Sets the path of bubblewrap; `None` disables it.
    #[must_use]
    pub fn with_bubblewrap(mut self, bubblewrap: Option<PathBuf>) -> Self {
        self.bubblewrap = bubblewrap;
        self
    }

    /// Returns the tiers available on this machine. The first call tries them, which takes about 20
    /// ms; blocks.
    pub fn probe(&self) -> &Probe {
        self.probe.get_or_init(|| probe::probe(self))
    }

    /// Returns the warning that the user must accept before this call, as the full sandbox is not
    /// available; `None` if no consent is needed.
    ///
    /// # Errors
    /// `sandbox_missing` when the user's settings refuse a weaker sandbox.
    pub fn consent(&self) -> Result<Option<String>, Failure> {
        let probe = self.probe();
        match (probe.tier, self.when_missing) {
            (Tier::Full, _) | (_, WhenMissing::Accept | WhenMissing::Off) => Ok(None),
            (tier, WhenMissing::Ask) => {
                Ok(Some(format!("{}: {}", tier.label(), probe.notes.join("; "))))
            }
            (_, WhenMissing::Refuse) => Err(self.missing()),
        }
    }

    /// Returns the user's choice for machines without a full sandbox.
    pub fn when_missing_is(&self) -> WhenMissing {
        self.when_missing
    }

    /// Returns a sandbox that confines nothing, for a run whose user has chosen that.
    pub fn off(&self) -> Self {
        let (helper, host, bubblewrap) =
            (self.helper.clone(), self.host.clone(), self.bubblewrap.clone());
        let (probe, chosen) = (self.probe.clone(), self.chosen.clone());
        Self { helper, host, when_missing: WhenMissing::Off, bubblewrap, probe, chosen }
    }

    fn missing(&self) -> Failure {
        let why = self.probe().why_not_full.clone().unwrap_or_default();
        Failure::new(Reason::SandboxMissing, format!("a full sandbox is not available here: {why}"))
    }

    /// Runs a process until it and all its descendants have exited; blocks. `output` receives the
    /// output as it is written. `wake` cancels the run from another thread.
    ///
    /// # Errors
    /// `sandbox_missing`, `invalid_params` for a folder outside the workspace, `tool_failed` when
    /// it cannot be started.
    pub fn run(
        &self,
        confined: &Confined,
        wake: &Wake,
        output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<ProcessOutput, Failure> {
        let tier = self.tier_for(confined)?;
        run::run(self, tier, confined, wake, output)
    }

    fn tier_for(&self, confined: &Confined) -> Result<Tier, Failure> {
        if self.when_missing == WhenMissing::Off {
            return Ok(Tier::None);
        }
        if self.helper.is_none() && !cfg!(target_os = "macos") {
            let text = "this program has no sandbox helper: give Sandbox::new a binary that calls sandbox_main";
            return Err(Failure::new(Reason::SandboxMissing, text));
        }
        let accepted = confined.accepted || self.when_missing == WhenMissing::Accept;
        match self.probe().tier {
            Tier::Full => Ok(Tier::Full),
            tier if accepted && self.when_missing != WhenMissing::Refuse => Ok(tier),
            _ => Err(self.missing()),
        }
    }

    /// Returns the helper in use.
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

/// Cancels a run whose owner is dropped.
pub struct CancelOnDrop(Wake);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Time that does not count for the limit of a run, as a function that returns it so far.
pub type UncountedTime = Arc<dyn Fn() -> std::time::Duration + Send + Sync>;

/// Cancels a run from another thread.
#[derive(Clone)]
pub struct Wake {
    cancelled: Arc<AtomicBool>,
    uncounted: Option<UncountedTime>,
    pipe: Arc<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)>,
}

impl Wake {
    /// Creates an unused handle.
    ///
    /// # Errors
    /// `internal` when no file descriptor is available.
    pub fn new() -> Result<Self, Failure> {
        let failed = |e| Failure::new(Reason::Internal, format!("cannot create a pipe: {e}"));
        let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed)?;
        Ok(Self {
            cancelled: Arc::new(AtomicBool::new(false)),
            uncounted: None,
            pipe: Arc::new(pipe),
        })
    }

    /// Excludes time from the limit of the run: it waits for a person, for example.
    #[must_use]
    pub fn excluding(mut self, uncounted: UncountedTime) -> Self {
        self.uncounted = Some(uncounted);
        self
    }

    pub(crate) fn uncounted(&self) -> std::time::Duration {
        self.uncounted.as_ref().map_or(std::time::Duration::ZERO, |uncounted| uncounted())
    }

    /// Returns a guard that cancels the run when it is dropped.
    #[must_use = "dropping the guard cancels"]
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Cancels the run and wakes its reader.
    pub fn cancel(&self) {
        self.cancelled.store(true, std::sync::atomic::Ordering::SeqCst);
        // A full pipe has woken the reader already.
        let _full = rustix::io::write(&self.pipe.1, b"x");
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(std::sync::atomic::Ordering::SeqCst)
    }

    pub(crate) fn reader(&self) -> &std::os::fd::OwnedFd {
        &self.pipe.0
    }
}
