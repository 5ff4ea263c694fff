//! Starts the process, reads its output, and ensures that none of its descendants remains.

use std::{
    ffi::OsString,
    io::{Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid},
};

use super::{
    Confined, HELPER_WORD, ProcessOutput, Sandbox, Stream, Tier, Wake,
    capture::Capture,
    cgroup::Cgroup,
    layout::{self, Layout},
    limits::Rlimits,
    step::{Confine, FAILED, MARK, Step},
    terminate::{Scope, terminate},
};

/// Time that output is read after the exit: a child that left its group may still have a pipe open.
const GRACE: Duration = Duration::from_millis(250);
/// Time that a supervisor may take to kill its descendants.
const SUPERVISOR: Duration = Duration::from_secs(2);

/// A process ready to start, and the values that must live as long as it does.
struct Prepared {
    command: Command,
    group: Option<Cgroup>,
    /// Content of its standard input, written once it is in its group.
    stdin: Option<Vec<u8>>,
    _layout: Option<Layout>,
    _temp: Option<tempfile::TempDir>,
}

/// Runs the process to its end.
pub(super) fn run(
    sandbox: &Sandbox,
    tier: Tier,
    confined: &Confined,
    wake: &Wake,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<ProcessOutput, Failure> {
    let mut prepared = match tier {
        Tier::Full if cfg!(target_os = "macos") => seatbelt(sandbox, confined)?,
        Tier::Full => full(sandbox, confined)?,
        Tier::Weaker => weaker(sandbox, confined)?,
        Tier::None => bare(sandbox, confined)?,
    };
    let supervised = cfg!(target_os = "linux")
        && match tier {
            Tier::Full => prepared.group.is_none(),
            Tier::Weaker => true,
            Tier::None => sandbox.helper().is_ok(),
        };
    let command = &mut prepared.command;
    let stdin = if prepared.stdin.is_some() { Stdio::piped() } else { input(confined)? };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let result = follow(&mut prepared, (tier, supervised), confined, wake, output);
    if let Some(group) = &prepared.group {
        group.kill();
    }
    check_setup(result?)
}

/// Starts a process in its group. A process under a supervisor has none.
fn start(
    command: &mut Command,
    group: Option<&Cgroup>,
    input: Option<&[u8]>,
) -> Result<Child, Failure> {
    let failed =
        |e: String| Failure::new(Reason::ToolFailed, format!("the process cannot be started: {e}"));
    let entered =
        group.filter(|g| g.takes_threads()).map(|g| g.enter().map_err(&failed)).transpose()?;
    let started = command.spawn();
    drop(entered);
    let mut child = started.map_err(|e| failed(e.to_string()))?;
    let Some(input) = input else { return Ok(child) };
    if let Some(Err(why)) = group.map(|g| g.join(child.id())) {
        let _result = child.kill();
        let _status = child.wait();
        return Err(Failure::new(Reason::ToolFailed, why));
    }
    // If it has exited already, its output gives the reason.
    let _result = child.stdin.take().map(|mut pipe| pipe.write_all(input));
    Ok(child)
}

/// Opens its standard input outside of the sandbox.
fn input(confined: &Confined) -> Result<Stdio, Failure> {
    let failed = |e| {
        Failure::new(Reason::ToolFailed, format!("the input of the process cannot be read: {e}"))
    };
    if let Some(pipe) = &confined.input_pipe {
        return pipe.try_clone().map(Stdio::from).map_err(failed);
    }
    let Some(path) = &confined.input else { return Ok(Stdio::null()) };
    std::fs::File::open(path).map(Stdio::from).map_err(failed)
}

/// Distinguishes a sandbox that could not be set up from a command that failed.
fn check_setup(process: ProcessOutput) -> Result<ProcessOutput, Failure> {
    let message = process.stderr.text.trim();
    if process.exit_code == FAILED && message.starts_with(MARK) {
        return Err(Failure::new(Reason::ToolFailed, message.trim_start_matches(MARK)));
    }
    if process.exit_code == 1
        && message.starts_with("bwrap: ")
        && process.stdout.bytes == 0
        && process.tier == Tier::Full
    {
        return Err(Failure::new(
            Reason::SandboxMissing,
            format!("the sandbox could not be set up: {message}"),
        ));
    }
    Ok(process)
}

fn rlimits(confined: &Confined, group: bool, others: u64) -> Rlimits {
    let limits = &confined.limits;
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    Rlimits {
        memory: (!group).then_some(limits.memory),
        processes: (!group).then_some(limits.processes + others),
        file_bytes: limits.file_bytes,
        open_files: limits.open_files,
        cpu_seconds: (limits.wall.as_secs() + 1).saturating_mul(processors * 2),
    }
}

fn step_text(step: &Step) -> Result<String, Failure> {
    serde_json::to_string(step)
        .map_err(|e| Failure::new(Reason::Internal, format!("sandbox step: {e}")))
}

/// Joins as many groups as the first argument says, then becomes the rest.
const JOIN: &str = r#"n=$1; shift
while [ "$n" -gt 0 ]; do
  echo 0 > "$1/cgroup.procs" || { echo "cairn sandbox: $1 cannot be joined" >&2; exit 125; }
  shift; n=$((n-1))
done
exec "$@""#;

/// Builds a command line that runs another one under a supervisor, which ends it when this process
/// ends.
fn supervised(
    helper: &Path,
    argv: Vec<OsString>,
    spares_rest: bool,
) -> Result<Vec<OsString>, Failure> {
    let text = |word: OsString| {
        let bad = |w| Failure::new(Reason::InvalidParams, format!("{w:?} is not valid Unicode"));
        word.into_string().map_err(bad)
    };
    let argv = argv.into_iter().map(text).collect::<Result<_, _>>()?;
    let step = Step::Supervise { argv, parent: std::process::id(), spares_rest };
    Ok(vec![helper.into(), HELPER_WORD.into(), step_text(&step)?.into()])
}

/// Builds a command that starts in the control group, joins it first, or runs under a supervisor
/// where there is no group.
fn entering(
    helper: &Path,
    group: Option<&Cgroup>,
    argv: Vec<OsString>,
) -> Result<Command, Failure> {
    if group.is_some_and(Cgroup::takes_threads) {
        return Ok(command_of(argv));
    }
    if let Some(group) = group {
        // The shell takes a fraction of the time that the helper takes to start.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", JOIN, "sh", &group.dirs.len().to_string()])
            .args(&group.dirs)
            .args(argv);
        return Ok(command);
    }
    Ok(command_of(supervised(helper, argv, false)?))
}

fn command_of(argv: Vec<OsString>) -> Command {
    let mut argv = argv.into_iter();
    let mut command = Command::new(argv.next().unwrap_or_default());
    command.args(argv);
    command
}

fn full(sandbox: &Sandbox, confined: &Confined) -> Result<Prepared, Failure> {
    let none = || Failure::new(Reason::SandboxMissing, "bubblewrap is not installed");
    let (bubblewrap, helper) = (sandbox.bubblewrap.as_ref().ok_or_else(none)?, sandbox.helper()?);
    let layout = Layout::of(confined, &sandbox.host)?;
    let group = Cgroup::make(&confined.limits);
    let (read, write) = layout.inside();
    let limits = rlimits(confined, group.is_some(), 0);
    let env = layout.env(confined, &sandbox.host, layout::inner_home(), "/tmp");
    let (network, argv) = (confined.network, program_of(confined, &env)?);
    let (expected, sole_program) = (confined.expected.clone(), confined.sole_program);
    // Until it has read its options it starts nothing, and can be moved into the group from here.
    let has_input = confined.input.is_some() || confined.input_pipe.is_some();
    let uses_stdin = group.as_ref().is_some_and(|g| !g.takes_threads()) && !has_input;
    let own_network = !network;
    let inner = Confine {
        read,
        write,
        network,
        own_network,
        proxy: confined.proxy.is_some(),
        used_input: uses_stdin,
        expected,
        outside_is_visible: false,
        sole_program,
        limits,
        argv,
    };
    let options = layout.bubblewrap(confined, helper);
    let command = [
        "--".into(),
        layout::HELPER.into(),
        HELPER_WORD.into(),
        step_text(&Step::Confine(inner))?.into(),
    ];
    let (mut command, stdin) = if uses_stdin {
        let mut waiting = Command::new(bubblewrap);
        waiting.args(["--args", "0"]).args(command);
        (waiting, Some(lines(&options)))
    } else {
        let argv = [bubblewrap.clone().into_os_string()].into_iter().chain(options).chain(command);
        (entering(helper, group.as_ref(), argv.collect())?, None)
    };
    command.env_clear().envs(env).current_dir("/");
    Ok(Prepared { command, group, stdin, _layout: Some(layout), _temp: None })
}

/// Returns the options as bubblewrap reads them: each terminated by a zero byte.
fn lines(options: &[OsString]) -> Vec<u8> {
    options.iter().flat_map(|option| option.as_bytes().iter().copied().chain([0])).collect()
}

/// Returns the words of the command. A program that may start no other is named by its file, and
/// cannot be a script, which is started by another program.
fn program_of(confined: &Confined, env: &[(String, String)]) -> Result<Vec<String>, Failure> {
    let mut argv = confined.argv.clone();
    if !confined.sole_program {
        return Ok(argv);
    }
    let name = argv.first().cloned().unwrap_or_default();
    let path = env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let is_binary = |file: &PathBuf| {
        let mut magic = [0; 4];
        std::fs::File::open(file).and_then(|mut f| f.read_exact(&mut magic)).is_ok()
            && magic == *b"\x7fELF"
    };
    let binary = path.split(':').map(|folder| Path::new(folder).join(&name)).find(is_binary);
    let missing =
        || Failure::new(Reason::ToolFailed, format!("{name} is not installed as a native program"));
    if let Some(first) = argv.first_mut() {
        *first = binary.ok_or_else(missing)?.to_string_lossy().into_owned();
    }
    Ok(argv)
}

fn weaker(sandbox: &Sandbox, confined: &Confined) -> Result<Prepared, Failure> {
    let helper = sandbox.helper()?;
    let layout = Layout::of(confined, &sandbox.host)?;
    let temp = temp()?;
    let group = Cgroup::make(&confined.limits);
    let (read, write) = layout.outside(temp.path())?;
    let limits = rlimits(confined, group.is_some(), own_processes());
    let home = temp.path().to_string_lossy().into_owned();
    layout.write_ignored(temp.path()).map_err(|e| unwritten(&e))?;
    let env = layout.env(confined, &sandbox.host, &home, &home);
    let (network, argv) = (confined.network, program_of(confined, &env)?);
    let (expected, sole_program) = (confined.expected.clone(), confined.sole_program);
    let (own_network, used_input) = (false, false);
    let inner = Confine {
        read,
        write,
        network,
        own_network,
        proxy: false,
        used_input,
        expected,
        outside_is_visible: true,
        sole_program,
        limits,
        argv,
    };
    let mut argv =
        vec![helper.into(), HELPER_WORD.into(), step_text(&Step::Confine(inner))?.into()];
    // A group is emptied by this process alone: bubblewrap, which ends with it, is not there.
    if group.is_some() {
        argv = supervised(helper, argv, false)?;
    }
    let mut command = entering(helper, group.as_ref(), argv)?;
    command.env_clear().envs(env).current_dir(&confined.folder);
    Ok(Prepared { command, group, stdin: None, _layout: Some(layout), _temp: Some(temp) })
}

fn seatbelt(sandbox: &Sandbox, confined: &Confined) -> Result<Prepared, Failure> {
    let layout = Layout::of(confined, &sandbox.host)?;
    let temp = temp()?;
    let absent = layout::absent(confined.root.as_deref());
    // The profile compares real paths.
    let real = temp.path().canonicalize().unwrap_or_else(|_| temp.path().to_owned());
    let mut command = Command::new("/usr/bin/sandbox-exec");
    command.args(["-p", &layout.seatbelt(&real, confined.network, &absent)]).args(&confined.argv);
    let home = real.to_string_lossy().into_owned();
    layout.write_ignored(&real).map_err(|e| unwritten(&e))?;
    command
        .env_clear()
        .envs(layout.env(confined, &sandbox.host, &home, &home))
        .current_dir(&confined.folder);
    Ok(Prepared { command, group: None, stdin: None, _layout: Some(layout), _temp: Some(temp) })
}

/// Prepares a process without a sandbox: only the time and the output are bounded, and memory if a
/// control group is available. It ends with this process, if there is a helper.
fn bare(sandbox: &Sandbox, confined: &Confined) -> Result<Prepared, Failure> {
    let mut argv: Vec<OsString> = confined.argv.iter().map(OsString::from).collect();
    if argv.is_empty() {
        argv.push("true".into());
    }
    if let Ok(helper) = sandbox.helper()
        && cfg!(target_os = "linux")
    {
        argv = supervised(helper, argv, true)?;
    }
    let mut command = command_of(argv);
    command.current_dir(&confined.folder).env_clear().envs(confined.env.iter().cloned());
    let path: Vec<String> =
        sandbox.host.path.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    command.env(
        "PATH",
        if path.is_empty() { "/usr/local/bin:/usr/bin:/bin".into() } else { path.join(":") },
    );
    if let Some(home) = &sandbox.host.home {
        command.env("HOME", home);
    }
    Ok(Prepared { command, group: None, stdin: None, _layout: None, _temp: None })
}

fn unwritten(error: &std::io::Error) -> Failure {
    Failure::new(Reason::ToolFailed, format!("cannot write to a temporary folder: {error}"))
}

fn temp() -> Result<tempfile::TempDir, Failure> {
    let failed =
        |e| Failure::new(Reason::ToolFailed, format!("cannot create a temporary folder: {e}"));
    tempfile::Builder::new().prefix("cairn-box-").tempdir().map_err(failed)
}

/// Returns the number of the user's existing processes, which the kernel also counts where there is
/// no user namespace.
fn own_processes() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mine = rustix::process::getuid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let tasks = |dir: PathBuf| std::fs::read_dir(dir.join("task")).map_or(0, |t| t.count() as u64);
    let own = entries.filter(|e| e.metadata().is_ok_and(|m| m.uid() == mine));
    own.map(|e| tasks(e.path())).sum()
}

/// A stream that is being read.
struct Reading {
    stream: Stream,
    pipe: Option<std::fs::File>,
    capture: Capture,
}

impl Reading {
    fn new(stream: Stream, pipe: Option<impl Into<OwnedFd>>, room: usize) -> Self {
        let pipe = pipe.map(|p| std::fs::File::from(p.into()));
        if let Some(pipe) = &pipe {
            // A read must not block: the other stream may have data.
            let _blocking = rustix::io::ioctl_fionbio(pipe, true);
        }
        Self { stream, pipe, capture: Capture::new(room) }
    }

    /// Reads the available data, at most a few pieces, so that no other stream waits long.
    fn take(&mut self, output: &mut dyn FnMut(Stream, &[u8])) {
        let mut buffer = [0_u8; 32 * 1024];
        for _ in 0..16 {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) => {
                    self.capture.push(&buffer[..n]);
                    output(self.stream, &buffer[..n]);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// Reason why a run is cut short.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    No,
    TimedOut,
    Cancelled,
}

fn follow(
    prepared: &mut Prepared,
    (tier, supervised): (Tier, bool),
    confined: &Confined,
    wake: &Wake,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<ProcessOutput, Failure> {
    let room = confined.limits.output;
    let failed = |e: std::io::Error| {
        Failure::new(Reason::Internal, format!("the process cannot be monitored: {e}"))
    };
    let (exit_reader, exit_writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let (Prepared { command, group, stdin, .. }, until) =
        (prepared, Instant::now() + confined.limits.wall);
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        // This thread enters the group for a moment, and is the parent whose exit would kill the
        // child. The child remains a zombie until it is reaped below, so that its pid cannot be
        // reused meanwhile.
        let parent = move || {
            let child = start(command, group.as_ref(), stdin.as_deref());
            let pid = child.as_ref().ok().and_then(pid_of);
            let _result = sender.send(child);
            while let Some(pid) = pid
                && waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
                    .is_err_and(|e| e == rustix::io::Errno::INTR)
            {}
            drop(exit_writer);
        };
        std::thread::Builder::new()
            .name("command".into())
            .spawn_scoped(scope, parent)
            .map_err(failed)?;
        let mut child = receiver.recv().map_err(|e| failed(std::io::Error::other(e)))??;
        let pid = pid_of(&child);
        let mut out = Reading::new(Stream::Out, child.stdout.take(), room);
        let mut err = Reading::new(Stream::Err, child.stderr.take(), room);
        let cut = watch(&mut out, &mut err, &exit_reader, Some(until), Some(wake), output);
        if cut != Cut::No
            && !ends_by_itself(
                pid,
                scope_of(tier, supervised),
                confined.grace,
                &exit_reader,
                output,
                (&mut out, &mut err),
            )
        {
            stop(pid, supervised, &exit_reader, output, (&mut out, &mut err));
        }
        // Only the exit is awaited, without reaping: the pid must not be reused before the signal
        // below.
        let _over = poll(&mut [PollFd::new(&exit_reader, PollFlags::IN)], None);
        if let Some(pid) = pid {
            // Kills the rest of its group; in the full sandbox all processes have exited with the
            // first one.
            let _result = kill_process_group(pid, Signal::KILL);
        }
        let status = child.wait().map_err(failed)?;
        let grace = Instant::now() + GRACE;
        watch_rest(&mut out, &mut err, grace, output);
        let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let (timed_out, cancelled) = (cut == Cut::TimedOut, cut == Cut::Cancelled);
        let (stdout, stderr) = (out.capture.finish(), err.capture.finish());
        Ok(ProcessOutput { exit_code, timed_out, cancelled, stdout, stderr, tier })
    })
}

/// Returns the processes that are requested to end by themselves.
fn scope_of(tier: Tier, supervised: bool) -> Scope {
    match tier {
        Tier::Full if !cfg!(target_os = "macos") => Scope::Namespace,
        _ if supervised => Scope::Descendants,
        _ => Scope::Group,
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Reads until the process exits (`end` is closed), the time limit expires or the run is cancelled.
fn watch(
    out: &mut Reading,
    err: &mut Reading,
    end: &OwnedFd,
    until: Option<Instant>,
    wake: Option<&Wake>,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> Cut {
    loop {
        if wake.is_some_and(Wake::is_cancelled) {
            return Cut::Cancelled;
        }
        let uncounted = wake.map_or(Duration::ZERO, Wake::uncounted);
        let remaining = until.map(|u| (u + uncounted).saturating_duration_since(Instant::now()));
        if remaining == Some(Duration::ZERO) {
            return Cut::TimedOut;
        }
        let mut fds = vec![PollFd::new(end, PollFlags::IN)];
        fds.extend(wake.map(|w| PollFd::new(w.reader(), PollFlags::IN)));
        let pipes = [&*out, &*err].into_iter().filter_map(|r| r.pipe.as_ref());
        fds.extend(pipes.map(|p| PollFd::from_borrowed_fd(p.as_fd(), PollFlags::IN)));
        let _interrupted = poll(&mut fds, remaining.map(timespec).as_ref());
        let over = !fds[0].revents().is_empty();
        drop(fds);
        out.take(output);
        err.take(output);
        if over {
            return Cut::No;
        }
    }
}

/// Reads the rest of the pipes for a limited time: other processes may have them open.
fn watch_rest(
    out: &mut Reading,
    err: &mut Reading,
    until: Instant,
    output: &mut dyn FnMut(Stream, &[u8]),
) {
    loop {
        out.take(output);
        err.take(output);
        let remaining = until.saturating_duration_since(Instant::now());
        let pipes = [&*out, &*err].into_iter().filter_map(|r| r.pipe.as_ref());
        let mut fds: Vec<_> =
            pipes.map(|p| PollFd::from_borrowed_fd(p.as_fd(), PollFlags::IN)).collect();
        if fds.is_empty() || remaining.is_zero() {
            return;
        }
        let _interrupted = poll(&mut fds, Some(&timespec(remaining)));
    }
}

/// Requests the command to end, and returns true if it did within `grace`.
fn ends_by_itself(
    pid: Option<Pid>,
    scope: Scope,
    grace: Duration,
    end: &OwnedFd,
    output: &mut dyn FnMut(Stream, &[u8]),
    (out, err): (&mut Reading, &mut Reading),
) -> bool {
    let Some(pid) = pid.filter(|_| !grace.is_zero()) else { return false };
    terminate(pid, scope);
    watch(out, err, end, Some(Instant::now() + grace), None, output) == Cut::No
}

/// Kills the process and all its descendants.
fn stop(
    pid: Option<Pid>,
    supervised: bool,
    end: &OwnedFd,
    output: &mut dyn FnMut(Stream, &[u8]),
    (out, err): (&mut Reading, &mut Reading),
) {
    let Some(pid) = pid else { return };
    if supervised {
        // The supervisor kills its descendants, in whatever group they are.
        let _result = kill_process(pid, Signal::TERM);
        let until = Instant::now() + SUPERVISOR;
        if watch(out, err, end, Some(until), None, output) == Cut::No {
            return;
        }
    }
    let _result = kill_process_group(pid, Signal::KILL);
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
}
