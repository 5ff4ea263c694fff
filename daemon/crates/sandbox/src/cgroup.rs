//! A control group for one run, where one can be created: it bounds memory and processes in total,
//! also for root.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::Limits;

/// Longest wait for the last process of a group to exit.
const EMPTY: Duration = Duration::from_secs(2);

/// The first pause while a group empties, and the longest, up to which it doubles: mostly the last
/// process exits within the first.
const PAUSE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));

/// A control group; removed when dropped.
pub(super) struct Cgroup {
    /// Its folders: one, or one per controller where each has a separate tree (version 1).
    pub dirs: Vec<PathBuf>,
    threads: bool,
}

/// A thread inside a group; it leaves when this is dropped.
pub(super) struct Entered<'a>(&'a Cgroup);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        for dir in &self.0.dirs {
            let back = dir.parent().map(|above| fs::write(above.join("tasks"), "0"));
            if let Some(Err(e)) = back {
                tracing::warn!(dir = %dir.display(), error = %e, "control group cannot be left");
            }
        }
    }
}

impl Cgroup {
    /// Creates a group with these limits; `None` unless both can be set.
    pub(super) fn make(limits: &Limits) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("cairn-box-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let base = Path::new("/sys/fs/cgroup");
        unified(&own, base, &name, limits).or_else(|| split(&own, base, &name, limits))
    }

    /// Returns true if a single thread can enter it, as in version 1. Children of that thread start
    /// inside the group, while [`Self::join`] costs some 10 ms in which the kernel waits for all
    /// processors.
    pub(super) fn takes_threads(&self) -> bool {
        self.threads
    }

    /// Moves the calling thread into the group until the returned value is dropped.
    ///
    /// # Errors
    /// The folder of the group that cannot be entered.
    pub(super) fn enter(&self) -> Result<Entered<'_>, String> {
        let entered = Entered(self);
        for dir in &self.dirs {
            fs::write(dir.join("tasks"), "0")
                .map_err(|e| format!("{} cannot be entered: {e}", dir.display()))?;
        }
        Ok(entered)
    }

    /// Moves a process into the group, and with it all processes that it will start.
    ///
    /// # Errors
    /// The folder of the group that cannot be joined.
    pub(super) fn join(&self, pid: u32) -> Result<(), String> {
        let joined = |dir: &PathBuf| {
            let file = dir.join("cgroup.procs");
            fs::write(&file, pid.to_string())
                .map_err(|e| format!("{} cannot be joined: {e}", dir.display()))
        };
        self.dirs.iter().try_for_each(joined)
    }

    /// Kills every process in the group and waits until none remains.
    pub(super) fn kill(&self) {
        let (until, mut pause) = (Instant::now() + EMPTY, PAUSE.0);
        loop {
            let mut remaining = false;
            for dir in &self.dirs {
                // Only version 2 has this file; in version 1 the processes are killed one by one.
                let _older = fs::write(dir.join("cgroup.kill"), "1");
                for line in fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default().lines()
                {
                    remaining = true;
                    let pid = line.parse().ok().and_then(rustix::process::Pid::from_raw);
                    // Our own process is listed when a thread could not leave.
                    if let Some(pid) = pid.filter(|pid| *pid != rustix::process::getpid()) {
                        let _result =
                            rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
            }
            if !remaining || Instant::now() > until {
                return;
            }
            rest(&mut pause);
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let (until, mut pause) = (Instant::now() + EMPTY, PAUSE.0);
        for dir in &self.dirs {
            // The last process may still be exiting.
            while fs::remove_dir(dir).is_err_and(|e| e.raw_os_error() == Some(libc::EBUSY)) {
                if Instant::now() > until {
                    tracing::warn!(dir = %dir.display(), "control group cannot be removed");
                    break;
                }
                rest(&mut pause);
            }
        }
    }
}

fn rest(pause: &mut Duration) {
    std::thread::sleep(*pause);
    *pause = (*pause * 2).min(PAUSE.1);
}

/// Creates a group in the single tree of version 2.
fn unified(own: &str, base: &Path, name: &str, limits: &Limits) -> Option<Cgroup> {
    // Elsewhere this is an ordinary folder, in which anything can be created and nothing is
    // bounded.
    if !base.join("cgroup.controllers").is_file() {
        return None;
    }
    let path = own.lines().find_map(|l| l.strip_prefix("0::/"))?;
    // A group with processes cannot enable controllers for its children, so an ancestor may have to
    // serve.
    let ours = base.join(path);
    for above in ours.ancestors().take_while(|p| p.starts_with(base)) {
        let dir = above.join(name);
        if fs::create_dir(&dir).is_err() {
            continue;
        }
        let group = Cgroup { dirs: vec![dir.clone()], threads: false };
        let set = fs::write(dir.join("pids.max"), limits.processes.to_string())
            .and_then(|()| fs::write(dir.join("memory.max"), limits.memory.to_string()));
        if set.is_ok() {
            // Memory is bounded even where swapping cannot be forbidden.
            let _absent = fs::write(dir.join("memory.swap.max"), "0");
            return Some(group);
        }
    }
    None
}

/// Creates a group in the tree of each controller of version 1.
fn split(own: &str, base: &Path, name: &str, limits: &Limits) -> Option<Cgroup> {
    let group_path = |controller: &str| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let named = fields.next()?.split(',').any(|c| c == controller);
            named.then(|| fields.next()).flatten()
        })
    };
    let make = |controller: &str, file: &str, value: u64, group: &mut Cgroup| -> io::Result<()> {
        let path = group_path(controller).ok_or(io::ErrorKind::NotFound)?;
        let dir = base.join(controller).join(path.trim_start_matches('/')).join(name);
        fs::create_dir(&dir)?;
        group.dirs.push(dir.clone());
        fs::write(dir.join(file), value.to_string())
    };
    let mut group = Cgroup { dirs: vec![], threads: true };
    make("pids", "pids.max", limits.processes, &mut group).ok()?;
    make("memory", "memory.limit_in_bytes", limits.memory, &mut group).ok()?;
    Some(group)
}
