//! Limits of one process, inherited by its descendants.

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Limits set by the helper. Sizes in bytes, time in seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Rlimits {
    /// Writable memory; absent where a control group counts it.
    pub memory: Option<u64>,
    /// Processes of the user in this user namespace; absent where a control group counts them.
    pub processes: Option<u64>,
    pub file_bytes: u64,
    pub open_files: u64,
    /// Processor time, far above the wall-clock limit: for processes that escape the latter.
    pub cpu_seconds: u64,
}

impl Rlimits {
    /// Sets the limits for this process.
    ///
    /// # Errors
    /// The limit that cannot be set.
    pub(super) fn apply(&self) -> Result<(), String> {
        let set = |name: &str, resource, value: u64| {
            let limit = Rlimit { current: Some(value), maximum: Some(value) };
            setrlimit(resource, limit).map_err(|e| format!("limit of {name}: {e}"))
        };
        set("core", Resource::Core, 0)?;
        set("file size", Resource::Fsize, self.file_bytes)?;
        let most = rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        set("open files", Resource::Nofile, self.open_files.min(most))?;
        set("processor time", Resource::Cpu, self.cpu_seconds)?;
        if let Some(memory) = self.memory {
            set("memory", Resource::Data, memory)?;
        }
        match self.processes {
            Some(processes) => set("processes", Resource::Nproc, processes),
            None => Ok(()),
        }
    }
}
