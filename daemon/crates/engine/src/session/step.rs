//! The rules of a session as a pure function: [`step`] takes a state and an input and returns the
//! next state and the effects that the session's actor executes, in order. No IO, no clock, no
//! randomness; `R` names a run.
//!
//! The actor handles one input at a time. An effect that can fail ([`Effect::Prepare`],
//! [`Effect::Commit`]) is the last of its step, and its outcome is the next input. Nothing takes
//! effect before it is in the log: a state changes with `Committed`, never with the request to
//! commit.
//!
//! **Invariants**, which `model.rs` checks over all interleavings, crashes included:
//!
//! 1. An accepted turn has exactly one terminal record, once nothing remains to be done for it.
//! 2. Turns that started finish in the order in which they were accepted. (A turn cancelled while
//!    it is queued finishes at once.)
//! 3. Nothing runs twice: no run is started after its terminal record or beside itself, and an
//!    action that may have happened is repeated only after an approval.
//! 4. A crash at any point loses nothing: every turn whose acceptance was acknowledged is in the
//!    log, with its terminal record or pending, and a session with pending turns is marked so that
//!    it can be resumed.
//! 5. At most one run at a time is active in a session; a turn waits only while another one runs or
//!    the session is halted; nothing starts while the daemon stops.
//! 6. An approval is resolved exactly once, and its waiter wakes.

use std::collections::VecDeque;

/// Most turns that may be queued in a session.
pub(crate) const MAX_QUEUED: usize = 32;

/// A turn that was accepted and has no terminal record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct QueuedRun<R> {
    pub run: R,
    /// True if its `run_started` is in the log: then it is resumed, not started.
    pub started: bool,
}

/// Reason why a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stop {
    /// A client aborted it: the run finishes as cancelled.
    Abort,
    /// The daemon stops: the run is interrupted and can be resumed.
    Interrupt,
}

/// The event that starts a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Trigger {
    /// The previous turn finished.
    Queue,
    /// A client's resume, which waits for a reply.
    Resume,
}

/// The single active run of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Active<R> {
    /// A turn that has left the queue and whose start is not in the log yet.
    Starting {
        turn: QueuedRun<R>,
        trigger: Trigger,
    },
    Turn {
        run: R,
        stop: Option<Stop>,
    },
    Explore {
        run: R,
        stop: Option<Stop>,
    },
}

/// State of the session's row after a terminal record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Then {
    /// Nothing is pending: the state follows from the run's outcome.
    Idle,
    /// The next turn starts: the session stays `running`.
    Next,
    /// Turns are pending and nothing starts them: `interrupted`.
    Halt,
}

/// A change of the log: one transaction each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Commit<R> {
    /// `turn_accepted` with its receipt; with `start`, `run_started` as well. `replaces` is an
    /// interrupted explore that it finishes.
    Accept { run: R, start: bool, replaces: Option<R> },
    /// `run_started` or `resumed` of a queued turn.
    Begin { run: R, resumed: bool },
    /// The final records of a turn.
    End { run: R, then: Then },
    /// `run_completed {failed}` of a turn that could not start.
    Fail { run: R, then: Then },
    /// `run_completed {cancelled}` of a pending turn.
    CancelQueued { run: R, then: Then },
    /// `started` of an explore.
    BeginExplore { run: R, replaces: Option<R> },
    /// `resumed` of an explore.
    ResumeExplore { run: R },
    /// The final records of an explore.
    EndExplore { run: R },
    /// `interrupted` of the active run.
    Interrupt { run: R },
    /// `steered`: a text for the active turn.
    Steer { run: R },
    /// An approval's answer, which wakes the call that waits for it. `run` is the turn that may
    /// resume with it.
    Answer { run: Option<R> },
    /// A copy of the session, or a change beside its runs: archived, conversation cleared.
    Edit,
    /// Deletion of the session and its log.
    Delete,
}

/// Reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    Stopping,
    Deleted,
    /// An explore is active, or turns are pending.
    Busy,
    QueueFull,
    /// As many runs as `resources.maxRuns` allows are active.
    NoPermit,
    NoTurn,
    NotResumable,
    /// The turn could not be prepared; the actor has the cause.
    NotPrepared,
    /// The log could not be written; the actor has the cause.
    NotWritten,
}

/// A request, or the outcome of an effect or of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Input<R> {
    /// A turn that was validated.
    Start {
        run: R,
        permit: bool,
    },
    StartExplore {
        run: R,
        permit: bool,
    },
    Resume {
        permit: bool,
    },
    /// Cancels a turn; the active one, or else the first pending one, when `None`.
    Cancel(Option<R>),
    Abort,
    Steer,
    Answer {
        run: Option<R>,
        permit: bool,
    },
    /// A fork, or another change that requires that no run is active; `idle` when that holds.
    Edit {
        idle: bool,
    },
    Delete,
    /// The daemon drains: nothing starts any more.
    Shutdown,
    /// The drain is over.
    Interrupt,
    Prepared(R),
    Unprepared(R),
    Committed,
    NotCommitted,
    /// A run's task has finished; `interrupted` when a stop of the daemon interrupted it.
    RunFinished {
        run: R,
        interrupted: bool,
    },
}

/// An instruction to the actor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Effect<R> {
    /// Answers the request that is being handled.
    Reply,
    Refuse(Refusal),
    /// Builds all that the turn needs: its root, its model. Answered by `Prepared` or `Unprepared`.
    Prepare(R),
    /// Writes to the log. Answered by `Committed` or `NotCommitted`.
    Commit(Commit<R>),
    /// Starts the run's task, which finishes with `RunFinished`.
    Run(R),
    Stop(R, Stop),
    /// Passes a steering text, which is in the log, to the active turn.
    Deliver(R),
}

/// The complete state of a session for the rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State<R> {
    pub active: Option<Active<R>>,
    /// Pending turns, in the order in which they were accepted.
    pub queue: VecDeque<QueuedRun<R>>,
    /// An interrupted explore; other work finishes it.
    pub explore: Option<R>,
    /// Work is pending and nothing drives it: after a restart, an interruption or a failed write.
    pub halted: bool,
    pub stopping: bool,
    pub deleted: bool,
    /// The current change of the log, until its outcome is known.
    pub commit: Option<Commit<R>>,
}

impl<R> Default for State<R> {
    fn default() -> Self {
        Self {
            active: None,
            queue: VecDeque::new(),
            explore: None,
            halted: false,
            stopping: false,
            deleted: false,
            commit: None,
        }
    }
}

type Stepped<R> = (State<R>, Vec<Effect<R>>);

impl<R: Clone + PartialEq> State<R> {
    /// Returns the state of a session whose log contains this pending work.
    pub fn recovered(queue: VecDeque<QueuedRun<R>>, explore: Option<R>) -> Self {
        let halted = !queue.is_empty() || explore.is_some();
        Self { queue, explore, halted, ..Self::default() }
    }

    /// Returns the turn that clients can cancel and steer; `None` once its terminal record is being
    /// written.
    pub fn current_turn(&self) -> Option<&R> {
        match (&self.active, &self.commit) {
            (_, Some(Commit::End { .. })) => None,
            (Some(Active::Turn { run, .. }), _) => Some(run),
            _ => None,
        }
    }

    fn then(&self) -> Then {
        match (self.queue.is_empty(), self.stopping) {
            (true, _) => Then::Idle,
            (false, false) => Then::Next,
            (false, true) => Then::Halt,
        }
    }

    fn commit(mut self, commit: Commit<R>) -> Stepped<R> {
        self.commit = Some(commit.clone());
        (self, vec![Effect::Commit(commit)])
    }

    fn only(self, effect: Effect<R>) -> Stepped<R> {
        (self, vec![effect])
    }

    fn refuse(self, why: Refusal) -> Stepped<R> {
        self.only(Effect::Refuse(why))
    }

    /// Takes the first pending turn out of the queue; `before` are effects that come first.
    fn begin_next(mut self, trigger: Trigger, mut before: Vec<Effect<R>>) -> Stepped<R> {
        if let Some(turn) = self.queue.pop_front() {
            before.push(Effect::Prepare(turn.run.clone()));
            self.halted = false;
            self.active = Some(Active::Starting { turn, trigger });
        }
        (self, before)
    }

    /// Continues after a terminal record.
    fn continue_with(mut self, then: Then) -> Stepped<R> {
        self.active = None;
        match then {
            Then::Next => self.begin_next(Trigger::Queue, vec![]),
            Then::Halt => {
                self.halted = true;
                (self, vec![])
            }
            Then::Idle => (self, vec![]),
        }
    }

    /// Moves a turn whose next record could not be written, or which was interrupted, back to the
    /// front of the queue.
    fn put_back(&mut self, turn: QueuedRun<R>) {
        self.queue.push_front(turn);
        self.active = None;
        self.halted = true;
    }

    fn cannot_start(&self, permit: bool) -> Option<Refusal> {
        match self.active {
            _ if self.deleted => Some(Refusal::Deleted),
            _ if self.stopping => Some(Refusal::Stopping),
            Some(Active::Explore { .. }) => Some(Refusal::Busy),
            None if !permit => Some(Refusal::NoPermit),
            _ => None,
        }
    }
}

/// Applies an input to a state.
pub(crate) fn step<R: Clone + PartialEq>(state: State<R>, input: Input<R>) -> Stepped<R> {
    match input {
        Input::Start { run, permit } => start(state, run, permit),
        Input::StartExplore { run, permit } => match state.cannot_start(permit) {
            _ if state.active.is_some() || !state.queue.is_empty() => state.refuse(Refusal::Busy),
            Some(why) => state.refuse(why),
            None => {
                let replaces = state.explore.clone();
                state.commit(Commit::BeginExplore { run, replaces })
            }
        },
        Input::Resume { permit } => resume(state, permit),
        Input::Cancel(run) => cancel(state, run),
        Input::Abort => abort(state),
        Input::Steer => match state.active.clone() {
            Some(Active::Turn { run, stop: None }) => state.commit(Commit::Steer { run }),
            _ => state.refuse(Refusal::NoTurn),
        },
        Input::Answer { .. } if state.deleted => state.refuse(Refusal::Deleted),
        Input::Answer { run, permit } => {
            // Without a permit its turn stays halted; a resume starts it.
            let run = run.filter(|_| permit);
            state.commit(Commit::Answer { run })
        }
        Input::Edit { .. } | Input::Delete if state.deleted => state.refuse(Refusal::Deleted),
        Input::Edit { idle: true } | Input::Delete if state.active.is_some() => {
            state.refuse(Refusal::Busy)
        }
        Input::Edit { .. } => state.commit(Commit::Edit),
        Input::Delete => state.commit(Commit::Delete),
        Input::Shutdown => (State { stopping: true, ..state }, vec![Effect::Reply]),
        Input::Interrupt => interrupt(state),
        Input::Prepared(run) => match state.active.clone() {
            Some(Active::Starting { turn, .. }) if turn.run == run => {
                state.commit(Commit::Begin { run, resumed: turn.started })
            }
            _ => (state, vec![]),
        },
        Input::Unprepared(run) => unprepared(state, run),
        Input::Committed => committed(state),
        Input::NotCommitted => not_committed(state),
        Input::RunFinished { run, interrupted } => run_finished(state, run, interrupted),
    }
}

fn start<R: Clone + PartialEq>(state: State<R>, run: R, permit: bool) -> Stepped<R> {
    if let Some(why) = state.cannot_start(permit) {
        return state.refuse(why);
    }
    if state.queue.len() >= MAX_QUEUED {
        return state.refuse(Refusal::QueueFull);
    }
    // Turns that a restart left pending come before it.
    let start = state.active.is_none() && state.queue.is_empty();
    let replaces = state.explore.clone().filter(|_| start);
    state.commit(Commit::Accept { run, start, replaces })
}

fn resume<R: Clone + PartialEq>(state: State<R>, permit: bool) -> Stepped<R> {
    if state.active.is_some() || !state.halted {
        let why = if state.deleted { Refusal::Deleted } else { Refusal::NotResumable };
        return state.refuse(why);
    }
    match (state.cannot_start(permit), state.explore.clone()) {
        (Some(why), _) => state.refuse(why),
        (None, Some(run)) if state.queue.is_empty() => state.commit(Commit::ResumeExplore { run }),
        (None, _) => state.begin_next(Trigger::Resume, vec![]),
    }
}

fn cancel<R: Clone + PartialEq>(mut state: State<R>, target: Option<R>) -> Stepped<R> {
    let is_target = |run: &R| target.as_ref().is_none_or(|w| w == run);
    if let Some(Active::Turn { run, stop }) = &mut state.active
        && is_target(run)
    {
        *stop = Some(Stop::Abort);
        let run = run.clone();
        return (state, vec![Effect::Stop(run, Stop::Abort), Effect::Reply]);
    }
    // Without a name it is the turn that would be active: no other one finishes unrequested.
    let first = state.queue.front().filter(|_| state.active.is_none()).map(|turn| turn.run.clone());
    let pending = |run: &R| state.queue.iter().any(|turn| turn.run == *run);
    match target.clone().or(first).filter(pending) {
        Some(run) => {
            let last = state.queue.len() == 1 && state.active.is_none();
            let then = if last { Then::Idle } else { Then::Next };
            state.commit(Commit::CancelQueued { run, then })
        }
        None => state.only(Effect::Reply),
    }
}

fn abort<R: Clone + PartialEq>(mut state: State<R>) -> Stepped<R> {
    let Some(Active::Explore { run, stop }) = &mut state.active else {
        return state.only(Effect::Reply);
    };
    *stop = Some(Stop::Abort);
    let run = run.clone();
    (state, vec![Effect::Stop(run, Stop::Abort), Effect::Reply])
}

fn interrupt<R: Clone + PartialEq>(mut state: State<R>) -> Stepped<R> {
    state.stopping = true;
    match &mut state.active {
        Some(Active::Turn { run, stop } | Active::Explore { run, stop }) if stop.is_none() => {
            *stop = Some(Stop::Interrupt);
            let run = run.clone();
            state.only(Effect::Stop(run, Stop::Interrupt))
        }
        _ => (state, vec![]),
    }
}

fn unprepared<R: Clone + PartialEq>(mut state: State<R>, run: R) -> Stepped<R> {
    match state.active.clone() {
        // A client waits for the reply and can fix the cause, so the turn stays pending.
        Some(Active::Starting { turn, trigger: Trigger::Resume }) if turn.run == run => {
            state.put_back(turn);
            state.refuse(Refusal::NotPrepared)
        }
        Some(Active::Starting { turn, .. }) if turn.run == run => {
            let then = state.then();
            state.commit(Commit::Fail { run, then })
        }
        _ => (state, vec![]),
    }
}

fn run_finished<R: Clone + PartialEq>(state: State<R>, run: R, interrupted: bool) -> Stepped<R> {
    match &state.active {
        Some(Active::Turn { run: active, .. }) if *active == run => {
            let then = state.then();
            state.commit(if interrupted {
                Commit::Interrupt { run }
            } else {
                Commit::End { run, then }
            })
        }
        Some(Active::Explore { run: active, .. }) if *active == run => {
            state.commit(if interrupted {
                Commit::Interrupt { run }
            } else {
                Commit::EndExplore { run }
            })
        }
        _ => (state, vec![]),
    }
}

fn committed<R: Clone + PartialEq>(mut state: State<R>) -> Stepped<R> {
    let Some(commit) = state.commit.take() else { return (state, vec![]) };
    match commit {
        Commit::Accept { run, start: true, .. } => {
            (state.explore, state.halted) = (None, false);
            state.active = Some(Active::Turn { run: run.clone(), stop: None });
            (state, vec![Effect::Reply, Effect::Run(run)])
        }
        Commit::Accept { run, start: false, .. } => {
            state.queue.push_back(QueuedRun { run, started: false });
            match state.active {
                None => state.begin_next(Trigger::Queue, vec![Effect::Reply]),
                Some(_) => state.only(Effect::Reply),
            }
        }
        Commit::Begin { run, .. } => {
            let resumed =
                matches!(state.active, Some(Active::Starting { trigger: Trigger::Resume, .. }));
            state.active = Some(Active::Turn { run: run.clone(), stop: None });
            let reply = resumed.then_some(Effect::Reply);
            (state, reply.into_iter().chain([Effect::Run(run)]).collect())
        }
        Commit::End { then, .. } | Commit::Fail { then, .. } => state.continue_with(then),
        Commit::CancelQueued { run, then } => {
            state.queue.retain(|turn| turn.run != run);
            state.halted &= then != Then::Idle;
            state.only(Effect::Reply)
        }
        Commit::BeginExplore { run, .. } | Commit::ResumeExplore { run } => {
            (state.explore, state.halted) = (None, false);
            state.active = Some(Active::Explore { run: run.clone(), stop: None });
            (state, vec![Effect::Reply, Effect::Run(run)])
        }
        Commit::EndExplore { .. } => state.continue_with(Then::Idle),
        Commit::Interrupt { run } => (cut_off(state, run), vec![]),
        Commit::Steer { run } => (state, vec![Effect::Deliver(run), Effect::Reply]),
        Commit::Answer { run } => answered(state, run),
        Commit::Edit => state.only(Effect::Reply),
        Commit::Delete => {
            let deleted = State { deleted: true, stopping: state.stopping, ..State::default() };
            deleted.only(Effect::Reply)
        }
    }
}

/// After a restart the answer of a call that waited resumes its turn.
fn answered<R: Clone + PartialEq>(state: State<R>, run: Option<R>) -> Stepped<R> {
    let effects = vec![Effect::Reply];
    let first = state.queue.front().map(|turn| &turn.run);
    if state.active.is_none()
        && state.halted
        && !state.stopping
        && run.is_some()
        && run.as_ref() == first
    {
        return state.begin_next(Trigger::Queue, effects);
    }
    (state, effects)
}

fn cut_off<R: Clone + PartialEq>(mut state: State<R>, run: R) -> State<R> {
    match state.active {
        Some(Active::Explore { .. }) => {
            (state.explore, state.active, state.halted) = (Some(run), None, true);
        }
        _ => state.put_back(QueuedRun { run, started: true }),
    }
    state
}

fn not_committed<R: Clone + PartialEq>(mut state: State<R>) -> Stepped<R> {
    let Some(commit) = state.commit.take() else { return (state, vec![]) };
    match commit {
        Commit::Begin { .. } | Commit::Fail { .. } => {
            let Some(Active::Starting { turn, trigger }) = state.active.take() else {
                return (state, vec![]);
            };
            state.put_back(turn);
            let refusal =
                (trigger == Trigger::Resume).then_some(Effect::Refuse(Refusal::NotWritten));
            (state, refusal.into_iter().collect())
        }
        // The log lacks the terminal record: a resume continues the run.
        Commit::End { run, .. } | Commit::Interrupt { run } | Commit::EndExplore { run } => {
            (cut_off(state, run), vec![])
        }
        Commit::Accept { .. }
        | Commit::CancelQueued { .. }
        | Commit::BeginExplore { .. }
        | Commit::ResumeExplore { .. }
        | Commit::Steer { .. }
        | Commit::Answer { .. }
        | Commit::Edit
        | Commit::Delete => state.refuse(Refusal::NotWritten),
    }
}
