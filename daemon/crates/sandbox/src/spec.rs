//! A process to run, its limits, and its result.

use std::{os::fd::OwnedFd, path::PathBuf, sync::Arc, time::Duration};

use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{Root, View};

use super::{Captured, Tier};

/// Port of the proxy on loopback inside the sandbox.
pub(crate) const PROXY_PORT: u16 = 3128;
/// Path of the proxy's socket inside the sandbox.
pub(crate) const PROXY_SOCKET: &str = "/run/cairn-proxy.sock";

/// Treatment of commands where the full sandbox is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenMissing {
    /// Processes are refused without a sandbox.
    Refuse,
    /// The user is asked for each; see [`Confined::accepted`].
    Ask,
    /// The strongest available tier is used.
    Accept,
    /// Commands run without any sandbox. Only a user with the right to it can choose this.
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit of the wall-clock time.
    pub wall: Duration,
    /// Memory in bytes: of all processes in total if a control group is available, else of each.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of output that are stored, for each stream: its beginning and its end.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            memory: 4 << 30,
            processes: 512,
            file_bytes: 4 << 30,
            open_files: 4096,
            output: 256 * 1024,
        }
    }
}

/// A path with the device and inode of its target.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Expected {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl Expected {
    /// Returns true if `stat` is that of the judged target.
    pub(crate) fn is(&self, stat: &rustix::fs::Stat) -> bool {
        (self.device, self.inode) == (device(stat), stat.st_ino)
    }
}

#[cfg(target_os = "linux")]
fn device(stat: &rustix::fs::Stat) -> u64 {
    stat.st_dev
}

/// Elsewhere the number has a sign, which the standard library extends.
#[cfg(not(target_os = "linux"))]
fn device(stat: &rustix::fs::Stat) -> u64 {
    i64::from(stat.st_dev).cast_unsigned()
}

/// A process to run in the sandbox.
#[derive(Debug, Clone)]
pub struct Confined {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working folder: absolute, inside the workspace.
    pub folder: PathBuf,
    pub root: Option<PathBuf>,
    /// The only visible parts of the workspace, relative to it; all of it when `None`.
    pub parts: Option<Vec<String>>,
    /// True if the workspace is writable.
    pub writable: bool,
    /// The only writable paths of the workspace, absolute; all of it when `None`.
    pub write_paths: Option<Vec<PathBuf>>,
    /// Readable folders besides the workspace.
    pub readable: Vec<PathBuf>,
    /// Further readable roots, without the paths that rules hide.
    pub roots: Vec<Root>,
    /// Device and inode that each folder of the workspace must have inside the sandbox: a path
    /// that was swapped between its check and its mount is another folder, and then nothing is
    /// run.
    pub(crate) expected: Vec<Expected>,
    /// Hidden paths of the workspace.
    pub(crate) masked: Vec<PathBuf>,
    /// True if the program may start no other.
    pub sole_program: bool,
    /// True if the process has the network.
    pub network: bool,
    /// True if it is to reach the domains that rules allow, where it has no other network.
    pub domains: bool,
    /// Socket of an HTTP proxy that the process reaches, as its only way out, while its network is
    /// closed. Only the full sandbox has it.
    pub proxy: Option<PathBuf>,
    /// Time between TERM and KILL when the run is cancelled or its time is over; killed at once if
    /// zero.
    pub grace: Duration,
    /// Variables in addition to the few that every command has.
    pub env: Vec<(String, String)>,
    /// A file that is its standard input, which is empty when `None`.
    pub input: Option<PathBuf>,
    /// The reading end of a pipe that is its standard input, in place of a file.
    pub input_pipe: Option<Arc<OwnedFd>>,
    pub limits: Limits,
    /// True if the user has accepted less than the full sandbox for it.
    pub accepted: bool,
}

impl Confined {
    /// Creates a process for a program with its arguments.
    pub fn program(argv: Vec<String>, folder: PathBuf) -> Self {
        Self {
            argv,
            folder,
            root: None,
            parts: None,
            writable: true,
            write_paths: None,
            readable: vec![],
            roots: vec![],
            expected: vec![],
            masked: vec![],
            sole_program: false,
            network: false,
            domains: false,
            proxy: None,
            grace: Duration::ZERO,
            env: vec![],
            input: None,
            input_pipe: None,
            limits: Limits::default(),
            accepted: false,
        }
    }

    /// Records the expected identity of `rel`. A path that does not exist is not visible.
    pub fn expect(&mut self, root: &Root, rel: &str) -> Result<(), Failure> {
        let (device, inode) = match root.identity_of(rel) {
            Ok(identity) => identity,
            Err(error) if error.is_not_found() && rel != "." => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let path = if rel == "." { root.path.clone() } else { root.path.join(rel) };
        self.expected.push(Expected { path, device, inode });
        Ok(())
    }

    /// Hides the paths of a root that may not be read.
    pub fn mask(&mut self, root: &Root, view: &View) -> Result<(), Failure> {
        let masked = view.masked(root);
        if masked.cut {
            let text = format!(
                "rules hide more of {} than can be hidden from a command",
                root.path.display()
            );
            return Err(Failure::new(Reason::ToolFailed, text));
        }
        self.masked.extend(masked.paths.iter().map(|rel| root.path.join(rel)));
        Ok(())
    }

    /// Hides absolute paths of the workspace, such as sockets at which other programs listen.
    pub fn hide(&mut self, paths: Vec<PathBuf>) {
        self.masked.extend(paths);
    }

    /// Creates a process for a command line in a shell: bash if it is installed.
    pub fn script(text: &str, folder: PathBuf) -> Self {
        let bash =
            ["/bin/bash", "/usr/bin/bash"].into_iter().find(|p| std::path::Path::new(p).is_file());
        let argv = match bash {
            Some(bash) => {
                vec![bash.into(), "--noprofile".into(), "--norc".into(), "-c".into(), text.into()]
            }
            None => vec!["/bin/sh".into(), "-c".into(), text.into()],
        };
        Self::program(argv, folder)
    }
}

/// Output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct ProcessOutput {
    /// Exit code; 128 plus the signal's number when a signal killed the process.
    pub exit_code: i32,
    /// True if the time limit expired.
    pub timed_out: bool,
    pub cancelled: bool,
    pub stdout: Captured,
    pub stderr: Captured,
    pub tier: Tier,
}
