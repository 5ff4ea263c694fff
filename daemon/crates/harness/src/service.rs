//! Services: programs that serve several calls, such as language servers. They run in the sandbox
//! without the network, read the workspace and write to a folder of their own alone. Each start has
//! a row in the audit.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use serde_json::json;
use tokio::{
    net::unix::pipe,
    sync::{oneshot, watch},
};

use crate::{
    Sandbox, redact_secrets,
    sandbox::{Confined, Limits, ProcessOutput, Stream, Wake},
};

/// Most services at once, over all tools.
const MAX_RUNNING: usize = 16;
/// Longest lifetime of a service.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// Wait for the end of all services.
const STOP: Duration = Duration::from_secs(6);
/// Stored bytes of each output stream, for the report of its end.
const MAX_STORED: usize = 4096;
/// Memory of a service in bytes: of all its processes if a control group is available, else of each.
const MEMORY: u64 = 4 << 30;

/// A service to start.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// Name in the audit.
    pub name: String,
    /// Settings of the user that permit it, for the audit.
    pub rule: &'static str,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working folder, in the workspace.
    pub folder: PathBuf,
    /// The only writable folder, outside the workspace; created if it does not exist.
    pub cache: PathBuf,
    /// Readable folders besides the workspace.
    pub readable: Vec<PathBuf>,
    /// Variables in addition to the few that every command has.
    pub env: Vec<(String, String)>,
}

/// End of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceExit {
    /// True if it was stopped from here.
    pub cancelled: bool,
    /// Reason for a person: its exit code and the end of its error output, or why it did not start.
    pub reason: String,
}

/// A running service. Dropping it stops the program.
pub struct ServiceProcess {
    /// The writing end of its standard input.
    pub input: Option<pipe::Sender>,
    stop: ServiceStop,
    exit: watch::Receiver<Option<ServiceExit>>,
}

/// Handle that stops a service.
#[derive(Clone)]
pub struct ServiceStop(Wake);

impl ServiceStop {
    /// Stops the program: TERM, then KILL.
    pub fn stop(&self) {
        self.0.cancel();
    }
}

impl ServiceProcess {
    /// Returns a handle that stops the program.
    pub fn stopper(&self) -> ServiceStop {
        self.stop.clone()
    }

    /// Returns the receiver of its end.
    pub fn exit(&self) -> watch::Receiver<Option<ServiceExit>> {
        self.exit.clone()
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Receiver of the standard output of a service. It may block, and the service then waits at its
/// full pipe.
pub type ServiceOutput = dyn FnMut(&[u8]) + Send;

type Running = (Wake, watch::Receiver<Option<ServiceExit>>);

/// The services of all tools.
pub struct ServiceRunner {
    trace: Trace,
    running: Mutex<Vec<Running>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServiceRunner {
    pub(crate) fn new(trace: Trace) -> Self {
        Self { trace, running: Mutex::default() }
    }

    /// Stops every service, as the daemon stops.
    pub async fn end_all(&self) {
        let all = std::mem::take(&mut *locked(&self.running));
        all.iter().for_each(|(wake, _)| wake.cancel());
        let until = tokio::time::Instant::now() + STOP;
        for (_, mut exit) in all {
            let ends = exit.wait_for(Option::is_some);
            if tokio::time::timeout_at(until, ends).await.is_err() {
                tracing::warn!("a service did not end in time");
            }
        }
    }

    /// Starts a program for the session `session`. `confined` has its view of the workspace.
    pub(crate) async fn start(
        &self,
        session: &SessionId,
        sandbox: Arc<Sandbox>,
        spec: &ServiceSpec,
        mut confined: Confined,
        output: Box<ServiceOutput>,
    ) -> Result<ServiceProcess, Failure> {
        let (sender, child_end) = pipe_pair()?;
        confined.input_pipe = Some(Arc::new(child_end));
        confined.grace = GRACE;
        confined.limits =
            Limits { wall: LIFETIME, output: MAX_STORED, memory: MEMORY, ..Limits::default() };
        let wake = Wake::new()?;
        let (exit_sender, exit) = watch::channel(None);
        self.add(wake.clone(), exit.clone())?;
        let audit = match self.audit(session, spec).await {
            Ok(audit) => audit,
            Err(failure) => {
                let reason = failure.message.clone();
                exit_sender.send_replace(Some(ServiceExit { cancelled: true, reason }));
                return Err(failure);
            }
        };
        let outcome = spawn(sandbox, confined, wake.clone(), output)?;
        let (trace, started) = (self.trace.clone(), Instant::now());
        tokio::spawn(async move {
            let lost = || Failure::new(Reason::Internal, "the service could not be monitored");
            let outcome = outcome.await.unwrap_or_else(|_| Err(lost()));
            let exit = exit_of(&outcome);
            if let Err(error) = trace.audit_outcome(audit, row(&outcome, started), None).await {
                tracing::error!(%error, "the end of a service cannot be recorded");
            }
            exit_sender.send_replace(Some(exit));
        });
        Ok(ServiceProcess { input: Some(sender), stop: ServiceStop(wake), exit })
    }

    /// Adds a service within the limit, and forgets those that have exited.
    fn add(&self, wake: Wake, exit: watch::Receiver<Option<ServiceExit>>) -> Result<(), Failure> {
        let mut running = locked(&self.running);
        running.retain(|(_, exit)| exit.borrow().is_none() && exit.has_changed().is_ok());
        if running.len() >= MAX_RUNNING {
            let text = format!("{MAX_RUNNING} services are running already");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        running.push((wake, exit));
        Ok(())
    }

    async fn audit(&self, session: &SessionId, spec: &ServiceSpec) -> Result<u64, Failure> {
        let line = spec.argv.join(" ");
        let intent = AuditIntent {
            session: session.clone(),
            tool: spec.name.clone(),
            args_digest: cairn_trace::digest(&json!({"argv": spec.argv, "folder": spec.folder})),
            decision: "allow",
            rule: spec.rule.into(),
            call: None,
            command: Some(redact_secrets(&line)),
        };
        self.trace.audit_intent(intent, None).await.map_err(|error| {
            let text = format!("{} was not started: it could not be recorded: {error}", spec.name);
            Failure::new(Reason::AuditFailed, text)
        })
    }
}

/// Creates the pipe of a standard input: our end is asynchronous, the other one blocks.
fn pipe_pair() -> Result<(pipe::Sender, OwnedFd), Failure> {
    let failed = |e| Failure::new(Reason::Internal, format!("cannot create a pipe: {e}"));
    let (sender, receiver) = pipe::pipe().map_err(failed)?;
    Ok((sender, receiver.into_blocking_fd().map_err(failed)?))
}

/// Runs the process on a thread of its own, which no runtime waits for.
fn spawn(
    sandbox: Arc<Sandbox>,
    confined: Confined,
    wake: Wake,
    mut output: Box<ServiceOutput>,
) -> Result<oneshot::Receiver<Result<ProcessOutput, Failure>>, Failure> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        let outcome = sandbox.run(&confined, &wake, &mut |stream, bytes| {
            if stream == Stream::Out {
                output(bytes);
            }
        });
        // If the runtime has ended, no client is left to notify.
        let _runtime_stopped = sender.send(outcome);
    };
    let thread = std::thread::Builder::new().name("service".into()).spawn(run);
    let failed = |e| Failure::new(Reason::Internal, format!("cannot start a thread: {e}"));
    thread.map_err(failed)?;
    Ok(receiver)
}

fn exit_of(outcome: &Result<ProcessOutput, Failure>) -> ServiceExit {
    match outcome {
        Ok(process) => {
            let last = redact_secrets(process.stderr.text.trim());
            let last = last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let last: String = last.chars().take(300).collect();
            let colon = if last.is_empty() { "" } else { ": " };
            let reason = format!("exited with code {}{colon}{last}", process.exit_code);
            ServiceExit { cancelled: process.cancelled, reason }
        }
        Err(failure) => ServiceExit { cancelled: false, reason: failure.message.clone() },
    }
}

fn row(outcome: &Result<ProcessOutput, Failure>, started: Instant) -> AuditOutcome {
    let (text, exit_code) = match outcome {
        Ok(process) if process.cancelled => (Reason::Cancelled.as_str(), None),
        Ok(process) if process.timed_out => (Reason::ToolTimedOut.as_str(), None),
        Ok(process) => ("ok", Some(process.exit_code)),
        Err(failure) => (failure.reason.as_str(), None),
    };
    AuditOutcome {
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        outcome: text.to_owned(),
        exit_code,
        truncated: false,
    }
}

/// Creates the folder of a service, which only the user can read. Blocks.
pub(crate) fn create_cache(folder: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt as _;
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|e| {
        Failure::new(Reason::ToolFailed, format!("cannot create {}: {e}", folder.display()))
    })
}
