//! Limits of one process, inherited by all that it starts.

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// What is set in the helper. Sizes in bytes, time in seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Rlimits {
    /// Memory that is written to; absent where a control group counts it.
    pub memory: Option<u64>,
    /// Processes of the user in this user namespace; absent where a control group counts them.
    pub processes: Option<u64>,
    pub file_bytes: u64,
    pub open_files: u64,
    /// Time of a processor, far over the time by the clock: for what escapes that.
    pub cpu_seconds: u64,
}

impl Rlimits {
    /// Sets them for this process.
    ///
    /// # Errors
    /// Which one cannot be set.
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
