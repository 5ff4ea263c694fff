//! What is run, within which bounds, and how it ended.

use std::{path::PathBuf, time::Duration};

use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{Root, View};

use super::{Captured, Tier};

/// What happens to commands where the full sandbox cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenMissing {
    /// They are refused.
    Refuse,
    /// The user is asked for each; see [`Confined::accepted`].
    Ask,
    /// The next best is taken.
    Accept,
    /// No sandbox is wanted at all. Only a user with the right to it can say so.
    Off,
}

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time by the clock.
    pub wall: Duration,
    /// Memory in bytes: of all processes together where a control group can be had, else of each.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of output that are kept, of each stream: its beginning and its end.
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

/// A path and the device and inode of what lies there.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Expected {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

/// A process to be run in the sandbox.
#[derive(Debug, Clone)]
pub struct Confined {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs: absolute, inside the workspace.
    pub folder: PathBuf,
    /// The workspace.
    pub root: Option<PathBuf>,
    /// The only parts of the workspace that can be seen, relative to it; all of it when `None`.
    pub parts: Option<Vec<String>>,
    /// Whether the workspace can be written to.
    pub writable: bool,
    /// The only places of the workspace that can be written to, absolute; all of it when `None`.
    pub(crate) write_paths: Option<Vec<PathBuf>>,
    /// Further folders that can be read.
    pub readable: Vec<PathBuf>,
    /// Further roots that can be read, less what rules hide of them.
    pub roots: Vec<Root>,
    /// Device and inode that each folder of the workspace must have inside the sandbox: a path that was swapped between its check and
    /// its mount is another folder, and then nothing is run.
    pub(crate) expected: Vec<Expected>,
    /// Paths of the workspace that are hidden.
    pub(crate) masked: Vec<PathBuf>,
    /// True if the program may start no other.
    pub sole_program: bool,
    /// Whether it has the network.
    pub network: bool,
    /// Variables besides the few that every command has.
    pub env: Vec<(String, String)>,
    /// A file that is its standard input; nothing can be read there when `None`.
    pub input: Option<PathBuf>,
    /// Bounds.
    pub limits: Limits,
    /// Whether the user has accepted less than the full sandbox for it.
    pub accepted: bool,
}

impl Confined {
    /// A program with its arguments.
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
            env: vec![],
            input: None,
            limits: Limits::default(),
            accepted: false,
        }
    }

    /// Notes what must lie at `rel`. What does not exist is not shown.
    pub(crate) fn expect(&mut self, root: &Root, rel: &str) -> Result<(), Failure> {
        let (device, inode) = match root.identity_of(rel) {
            Ok(identity) => identity,
            Err(error) if error.is_not_found() && rel != "." => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let path = if rel == "." { root.path.clone() } else { root.path.join(rel) };
        self.expected.push(Expected { path, device, inode });
        Ok(())
    }

    /// Hides what may not be read of a root.
    pub(crate) fn mask(&mut self, root: &Root, view: &View) -> Result<(), Failure> {
        let masked = view.masked(root);
        if masked.cut {
            let text =
                format!("rules hide more of {} than can be hidden from a command", root.path.display());
            return Err(Failure::new(Reason::ToolFailed, text));
        }
        self.masked.extend(masked.paths.iter().map(|rel| root.path.join(rel)));
        Ok(())
    }

    /// A command line for the shell: bash where there is one.
    pub fn script(text: &str, folder: PathBuf) -> Self {
        let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|p| std::path::Path::new(p).is_file());
        let argv = match bash {
            Some(bash) => vec![bash.into(), "--noprofile".into(), "--norc".into(), "-c".into(), text.into()],
            None => vec!["/bin/sh".into(), "-c".into(), text.into()],
        };
        Self::program(argv, folder)
    }
}

/// Where something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its exit code; 128 and the signal's number when a signal ended it.
    pub exit_code: i32,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// The sandbox it ran in.
    pub tier: Tier,
}
