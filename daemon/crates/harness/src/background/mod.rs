//! Background commands: processes of a session that continue after the call that started them.
//! Their start and their end are records of the session's log.

mod ring;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use cairn_protocol::{
    background::{BackgroundCommand, BackgroundOutput, BackgroundState},
    envelope::Body,
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    time::Timestamp,
};
use cairn_trace::{Append, NewRecord, Trace};
use ring::Ring;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::sandbox::{Confined, ProcessOutput, Wake};

/// Most running commands of all sessions together: each takes a thread.
const MAX_RUNNING: usize = 64;
/// Most ended commands of a session whose output can still be read.
const MAX_FINISHED: usize = 16;
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// Wait for the end of a command that was stopped.
const STOP: Duration = Duration::from_secs(8);
/// Bytes of output per second above which a command is slowed down by its full pipe.
const MAX_RATE: u64 = 16 << 20;
/// Bytes that one read returns.
const MAX_READ: usize = 32 * 1024;
/// Lines and bytes of the output in the record of an end.
const TAIL: (usize, usize) = (20, 2000);

/// Limits of background commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundOptions {
    /// Most running commands of one session.
    pub per_session: usize,
    /// Longest lifetime of a command.
    pub lifetime: Duration,
}

impl Default for BackgroundOptions {
    fn default() -> Self {
        Self { per_session: 8, lifetime: Duration::from_secs(4 * 60 * 60) }
    }
}

/// Receiver of the note on an end for the model, with the number of its record.
pub type EndListener = dyn Fn(&SessionId, u64, String) + Send + Sync;

/// The background commands of all sessions.
pub struct Background {
    trace: Trace,
    options: RwLock<BackgroundOptions>,
    sessions: Mutex<HashMap<SessionId, Vec<Arc<Running>>>>,
    listener: OnceLock<Box<EndListener>>,
    tasks: TaskTracker,
}

/// One command, running or ended.
struct Running {
    id: String,
    line: String,
    started_at: Timestamp,
    ring: Mutex<Ring>,
    wake: Wake,
    /// State that a stop leads to, in place of `exited`.
    cause: OnceLock<BackgroundState>,
    end: watch::Sender<Option<End>>,
}

#[derive(Debug, Clone, Copy)]
struct End {
    state: BackgroundState,
    exit_code: Option<i32>,
    at: Timestamp,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    fn info(&self) -> BackgroundCommand {
        let end = *self.end.borrow();
        BackgroundCommand {
            id: self.id.clone(),
            command: self.line.clone(),
            state: end.map_or(BackgroundState::Running, |end| end.state),
            exit_code: end.and_then(|end| end.exit_code),
            started_at: self.started_at,
            finished_at: end.map(|end| end.at),
            bytes: locked(&self.ring).total(),
        }
    }

    fn is_running(&self) -> bool {
        self.end.borrow().is_none()
    }

    /// Waits for its end, for a limited time.
    async fn wait_finished(&self, limit: Duration) -> bool {
        let mut end = self.end.subscribe();
        tokio::time::timeout(limit, end.wait_for(Option::is_some)).await.is_ok()
    }

    fn stop(&self, cause: BackgroundState) {
        // The first cause counts.
        let _earlier = self.cause.set(cause);
        self.wake.cancel();
    }
}

/// Returns the text that tells the model of an end.
pub fn end_note(
    id: &str,
    command: &str,
    state: BackgroundState,
    exit_code: Option<i32>,
    tail: &str,
) -> String {
    let how = match state {
        BackgroundState::Running | BackgroundState::Exited => "exited".to_owned(),
        BackgroundState::Stopped => "was stopped".to_owned(),
        BackgroundState::TimedOut => "was stopped at the limit of its lifetime".to_owned(),
        BackgroundState::SessionClosed => "was stopped with its session".to_owned(),
        BackgroundState::DaemonStopped => "ended when the daemon stopped".to_owned(),
    };
    let code = exit_code.map_or_else(String::new, |code| format!(" with exit code {code}"));
    let tail = if tail.is_empty() { String::new() } else { format!(" Its last lines:\n{tail}\n") };
    format!("[Background command {id} ({command}) {how}{code}.{tail}]")
}

impl Background {
    pub(crate) fn new(trace: Trace) -> Self {
        Self {
            trace,
            options: RwLock::default(),
            sessions: Mutex::default(),
            listener: OnceLock::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Replaces the limits for later commands.
    pub fn configure(&self, options: BackgroundOptions) {
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// Sets the receiver of the notes for models. Later calls have no effect.
    pub fn set_listener(&self, listener: Box<EndListener>) {
        let _second = self.listener.set(listener);
    }

    /// Returns the commands of a session, oldest first.
    pub fn list(&self, session: &SessionId) -> Vec<BackgroundCommand> {
        let sessions = locked(&self.sessions);
        sessions.get(session).into_iter().flatten().map(|command| command.info()).collect()
    }

    fn find(&self, session: &SessionId, id: &str) -> Result<Arc<Running>, Failure> {
        let sessions = locked(&self.sessions);
        let known = sessions.get(session).into_iter().flatten().find(|c| c.id == id).cloned();
        known.ok_or_else(|| {
            let id: String = id.chars().take(40).flat_map(char::escape_debug).collect();
            let text = format!("this session has no background command '{id}'");
            Failure::new(Reason::InvalidParams, text)
        })
    }

    /// Returns the output of a command from a position on.
    ///
    /// # Errors
    /// `invalid_params` for an id that the session does not have.
    pub fn output(
        &self,
        session: &SessionId,
        id: &str,
        cursor: u64,
    ) -> Result<BackgroundOutput, Failure> {
        let running = self.find(session, id)?;
        // Before the output: an end that is reported has all of its output here.
        let command = running.info();
        let piece = locked(&running.ring).read(cursor, MAX_READ);
        let (cursor, dropped, more) = (piece.cursor, piece.dropped, piece.more);
        Ok(BackgroundOutput { command, output: piece.text, cursor, dropped, more })
    }

    /// Stops a command, and waits until it has ended: TERM, then KILL.
    ///
    /// # Errors
    /// `invalid_params` for an id that the session does not have; `tool_timed_out` when it does
    /// not end.
    pub async fn stop(&self, session: &SessionId, id: &str) -> Result<BackgroundCommand, Failure> {
        let running = self.find(session, id)?;
        running.stop(BackgroundState::Stopped);
        if running.wait_finished(STOP).await {
            return Ok(running.info());
        }
        Err(Failure::new(Reason::ToolTimedOut, format!("{id} has not ended yet")))
    }

    /// Returns true if any command runs.
    pub fn is_running(&self) -> bool {
        locked(&self.sessions).values().flatten().any(|command| command.is_running())
    }

    /// Returns true if this daemon started the command, in whatever session: the log of a fork
    /// names the commands of the session that it was made from.
    pub fn has_started(&self, id: &str) -> bool {
        locked(&self.sessions).values().flatten().any(|command| command.id == id)
    }

    /// Stops the commands of a session that ends, and forgets them.
    pub async fn end_session(&self, session: &SessionId) {
        let all = locked(&self.sessions).remove(session).unwrap_or_default();
        all.iter().for_each(|command| command.stop(BackgroundState::SessionClosed));
        for command in all {
            command.wait_finished(STOP).await;
        }
    }

    /// Stops every command, as the daemon stops.
    pub async fn end_all(&self) {
        let all: Vec<Arc<Running>> =
            locked(&self.sessions).values().flatten().map(Arc::clone).collect();
        all.iter().for_each(|command| command.stop(BackgroundState::DaemonStopped));
        self.tasks.close();
        if tokio::time::timeout(STOP, self.tasks.wait()).await.is_err() {
            tracing::warn!("background commands did not end in time");
        }
    }

    /// Adds a command to its session, within the limits.
    fn add(&self, session: &SessionId, command: &Arc<Running>) -> Result<(), Failure> {
        let limit = self.options.read().unwrap_or_else(PoisonError::into_inner).per_session;
        let mut sessions = locked(&self.sessions);
        let is_running = |command: &&Arc<Running>| command.is_running();
        let total = sessions.values().flatten().filter(is_running).count();
        let own = sessions.entry(session.clone()).or_default();
        let running = own.iter().filter(is_running).count();
        let full = |text: String| Err(Failure::new(Reason::Overloaded, text));
        if running >= limit {
            return full(format!(
                "{running} background commands are running in this session, the limit of \
                sandbox.maxBackground; stop one with stop_command"
            ));
        }
        if total >= MAX_RUNNING {
            return full(format!("{MAX_RUNNING} background commands are running in all sessions"));
        }
        while own.len() - running >= MAX_FINISHED
            && let Some(at) = own.iter().position(|command| !command.is_running())
        {
            own.remove(at);
        }
        own.push(Arc::clone(command));
        Ok(())
    }

    /// Starts a command that `run` runs to its end on a thread of its own. Its start is in the log
    /// when this returns.
    pub(crate) async fn start(
        self: &Arc<Self>,
        session: &SessionId,
        line: String,
        mut confined: Confined,
        run: impl FnOnce(Confined, &Wake, &mut dyn FnMut(&[u8])) -> Result<ProcessOutput, Failure>
        + Send
        + 'static,
    ) -> Result<BackgroundCommand, Failure> {
        confined.limits.wall = self.options.read().unwrap_or_else(PoisonError::into_inner).lifetime;
        confined.limits.output = 1024;
        confined.grace = GRACE;
        let unique = Uuid::now_v7().simple().to_string();
        // Its first digits are the time, its last ones random.
        let running = Arc::new(Running {
            id: format!("bg_{}", &unique[24..]),
            line,
            started_at: Timestamp::now(),
            ring: Mutex::default(),
            wake: Wake::new()?,
            cause: OnceLock::new(),
            end: watch::channel(None).0,
        });
        self.add(session, &running)?;
        let evt =
            AgentEvt::BackgroundStarted { id: running.id.clone(), command: running.line.clone() };
        if let Err(error) = self.append(session, evt).await {
            self.remove(session, &running.id);
            return Err(error);
        }
        let (background, task, owner) = (Arc::clone(self), Arc::clone(&running), session.clone());
        self.tasks.spawn(async move {
            let thread = Arc::clone(&task);
            let job = tokio::task::spawn_blocking(move || {
                let mut rate = Rate::default();
                let mut output = |bytes: &[u8]| {
                    locked(&thread.ring).push(bytes);
                    rate.slow(bytes.len());
                };
                run(confined, &thread.wake, &mut output)
            });
            let outcome = job.await.unwrap_or_else(|e| {
                Err(Failure::new(Reason::Internal, format!("the command was lost: {e}")))
            });
            background.finish(&owner, &task, outcome).await;
        });
        Ok(running.info())
    }

    /// Waits a moment for the end of a command that cannot run at all, and returns its output.
    pub(crate) async fn first_output(
        &self,
        session: &SessionId,
        id: &str,
        wait: Duration,
    ) -> Result<BackgroundOutput, Failure> {
        self.find(session, id)?.wait_finished(wait).await;
        self.output(session, id, 0)
    }

    fn remove(&self, session: &SessionId, id: &str) {
        if let Some(own) = locked(&self.sessions).get_mut(session) {
            own.retain(|command| command.id != id);
        }
    }

    async fn append(&self, session: &SessionId, evt: AgentEvt) -> Result<u64, Failure> {
        let record = NewRecord {
            id: Uuid::now_v7(),
            parent_id: None,
            origin: None,
            body: Body::Evt { evt },
        };
        Ok(self.trace.append(Append::new(session, vec![record])).await?.first)
    }

    /// Records an end and publishes it.
    async fn finish(
        &self,
        session: &SessionId,
        running: &Running,
        outcome: Result<ProcessOutput, Failure>,
    ) {
        let (state, exit_code) = match &outcome {
            Ok(output) if output.timed_out => (BackgroundState::TimedOut, Some(output.exit_code)),
            Ok(output) if output.cancelled => {
                let cause = running.cause.get().copied();
                (cause.unwrap_or(BackgroundState::Stopped), Some(output.exit_code))
            }
            Ok(output) => (BackgroundState::Exited, Some(output.exit_code)),
            Err(failure) => {
                locked(&running.ring).push(format!("{failure}\n").as_bytes());
                (BackgroundState::Exited, None)
            }
        };
        let tail = locked(&running.ring).tail(TAIL.0, TAIL.1);
        let (id, command) = (running.id.clone(), running.line.clone());
        let note = end_note(&id, &command, state, exit_code, &tail);
        let evt = AgentEvt::BackgroundFinished { id, command, state, exit_code, tail };
        let recorded = self.append(session, evt).await;
        running.end.send_replace(Some(End { state, exit_code, at: Timestamp::now() }));
        match recorded {
            Ok(seq) => {
                if let Some(listener) = self.listener.get() {
                    listener(session, seq, note);
                }
            }
            // The log of a deleted session takes no records.
            Err(failure) if failure.reason == Reason::SessionNotFound => {}
            Err(failure) => {
                tracing::error!(%session, %failure, "the end of a command cannot be recorded");
            }
        }
    }
}

/// Slows a flood down: the reader rests, and the command waits at its full pipe.
#[derive(Default)]
struct Rate {
    since: Option<Instant>,
    bytes: u64,
}

impl Rate {
    fn slow(&mut self, bytes: usize) {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.bytes += bytes as u64;
        if self.bytes < MAX_RATE / 20 {
            return;
        }
        let earliest = Duration::from_millis(50);
        std::thread::sleep(earliest.saturating_sub(since.elapsed()));
        *self = Self::default();
    }
}
