//! The world of one session: its log, the daemon that may crash at any point, the run's task, the
//! gate's approvals, and clients.

mod invariants;

use std::collections::{BTreeSet, VecDeque};

use super::{
    super::step::{Active, Commit, Effect, Input, QueuedRun, State, Stop, Then},
    Rules,
};

/// Number of times that each action may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub starts: u8,
    pub explores: u8,
    pub cancels: u8,
    pub resumes: u8,
    pub steers: u8,
    pub answers: u8,
    pub expiries: u8,
    pub crashes: u8,
    pub unprepared: u8,
    pub unwritten: u8,
    pub shutdowns: u8,
    pub edits: u8,
    pub deletes: u8,
}

/// A step of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    None,
    Start(u8),
    StartExplore(u8),
    Resume,
    Cancel(Option<u8>),
    Abort,
    Steer,
    Answer(bool),
    Fork,
    Delete,
    Shutdown,
    DrainIsOver,
    Exit,
    Crash,
    Restart,
    Do { written: bool },
    Act,
    Expire,
    End,
}

/// Records in the log of the session, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Record {
    Accepted(u8),
    Started(u8),
    Resumed(u8),
    Completed(u8),
    ExploreStarted(u8),
    ExploreFinished(u8),
    Interrupted,
    Steered(u8),
    ApprovalRequested(u8),
    Resolved(u8, bool),
    ActStarted(u8),
    ActFinished(u8),
}

/// The state in the session's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Row {
    Finished,
    Running,
    Interrupted,
    Deleted,
}

/// Progress of a run's task. A turn requests an approval for its one action and then performs it;
/// an explore only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    RequestsApproval,
    Waits,
    Allowed,
    Started,
    Acted,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Task {
    run: u8,
    phase: Phase,
    stop: Option<Stop>,
    /// True if it finishes because of `stop`.
    cut: bool,
}

/// A job of the actor: an effect of the rules, or the gate's wake after an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Job {
    Effect(Effect<u8>),
    Wake(u8, bool),
}

/// State that is lost with the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Daemon {
    state: State<u8>,
    jobs: VecDeque<Job>,
    task: Option<Task>,
    /// The start request that waits for its reply.
    asking: Option<u8>,
    /// The approval answer that is being processed.
    answer: Option<(u8, bool)>,
    draining: bool,
    drained: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    log: Vec<Record>,
    row: Row,
    /// Turns whose start was acknowledged.
    acknowledged: BTreeSet<u8>,
    next: u8,
    daemon: Option<Daemon>,
    /// Number of times that each turn acted without an approved repetition.
    acts: [u8; 8],
    budget: Budget,
    /// An invariant whose violation a step itself detected.
    broken: Option<&'static str>,
}

type Steps = Vec<(Action, World)>;

impl World {
    pub fn new(budget: Budget) -> Self {
        Self {
            log: vec![],
            row: Row::Finished,
            acknowledged: BTreeSet::new(),
            next: 0,
            daemon: Some(Daemon::default()),
            acts: [0; 8],
            budget,
            broken: None,
        }
    }

    fn count(&self, record: Record) -> usize {
        self.log.iter().filter(|r| **r == record).count()
    }

    fn has(&self, record: Record) -> bool {
        self.count(record) > 0
    }

    /// Returns the turns that were accepted and have no terminal record.
    fn pending(&self) -> VecDeque<QueuedRun<u8>> {
        let open = |r: &Record| match *r {
            Record::Accepted(run) if !self.has(Record::Completed(run)) => {
                Some(QueuedRun { run, started: self.has(Record::Started(run)) })
            }
            _ => None,
        };
        self.log.iter().filter_map(open).collect()
    }

    /// Returns the latest approval request of a run: `None` without one, else its answer, if any.
    fn question(&self, run: u8) -> Option<Option<bool>> {
        let at = self.log.iter().rposition(|r| *r == Record::ApprovalRequested(run))?;
        Some(self.log[at..].iter().find_map(|r| match r {
            Record::Resolved(of, yes) if *of == run => Some(*yes),
            _ => None,
        }))
    }

    fn open_question(&self) -> Option<u8> {
        (0..self.next).find(|run| self.question(*run) == Some(None))
    }

    /// Returns the state that an actor reads from the log when it starts.
    fn recovered(&self) -> State<u8> {
        if matches!(self.row, Row::Finished | Row::Deleted) {
            return State { deleted: self.row == Row::Deleted, ..State::default() };
        }
        let explore = self.log.iter().rev().find_map(|r| match r {
            Record::ExploreStarted(run) => Some(*run),
            _ => None,
        });
        let explore = explore.filter(|run| !self.has(Record::ExploreFinished(*run)));
        State::recovered(self.pending(), explore)
    }

    pub fn successors(&self, rules: Rules) -> Steps {
        let mut steps = Vec::new();
        match &self.daemon {
            None => {
                let mut next = self.clone();
                next.restart();
                steps.push((Action::Restart, next));
            }
            Some(daemon) => {
                self.crash(&mut steps);
                match daemon.jobs.front() {
                    Some(_) => self.job(rules, &mut steps),
                    None => self.requests(rules, daemon, &mut steps),
                }
                if let Some(task) = &daemon.task {
                    self.task(rules, daemon, task, &mut steps);
                }
            }
        }
        steps
    }

    fn crash(&self, steps: &mut Steps) {
        if self.budget.crashes > 0 {
            let mut next = self.clone();
            next.budget.crashes -= 1;
            next.daemon = None;
            steps.push((Action::Crash, next));
        }
    }

    fn restart(&mut self) {
        if self.row == Row::Running {
            self.row = Row::Interrupted;
            self.log.push(Record::Interrupted);
        }
        self.daemon = Some(Daemon { state: self.recovered(), ..Daemon::default() });
    }

    fn daemon(&mut self) -> &mut Daemon {
        self.daemon.get_or_insert_with(Daemon::default)
    }

    fn input(&mut self, rules: Rules, input: Input<u8>) {
        let daemon = self.daemon();
        let (state, effects) = rules(std::mem::take(&mut daemon.state), input);
        daemon.state = state;
        daemon.jobs.extend(effects.into_iter().map(Job::Effect));
    }

    fn request(
        &self,
        rules: Rules,
        steps: &mut Steps,
        action: Action,
        change: impl FnOnce(&mut World) -> Input<u8>,
    ) {
        let mut next = self.clone();
        let input = change(&mut next);
        next.input(rules, input);
        steps.push((action, next));
    }

    fn requests(&self, rules: Rules, daemon: &Daemon, steps: &mut Steps) {
        let budget = self.budget;
        if budget.starts > 0 {
            let run = self.next;
            self.request(rules, steps, Action::Start(run), |w| {
                w.budget.starts -= 1;
                w.next += 1;
                w.daemon().asking = Some(run);
                Input::Start { run, permit: true }
            });
        }
        if budget.explores > 0 {
            let run = self.next;
            self.request(rules, steps, Action::StartExplore(run), |w| {
                w.budget.explores -= 1;
                w.next += 1;
                Input::StartExplore { run, permit: true }
            });
        }
        if budget.resumes > 0 {
            self.request(rules, steps, Action::Resume, |w| {
                w.budget.resumes -= 1;
                Input::Resume { permit: true }
            });
        }
        if budget.cancels > 0 {
            let named = self.pending().into_iter().map(|turn| Some(turn.run));
            for run in named.chain([None]) {
                self.request(rules, steps, Action::Cancel(run), |w| {
                    w.budget.cancels -= 1;
                    Input::Cancel(run)
                });
            }
            if matches!(daemon.state.active, Some(Active::Explore { .. })) {
                self.request(rules, steps, Action::Abort, |w| {
                    w.budget.cancels -= 1;
                    Input::Abort
                });
            }
        }
        if budget.steers > 0 {
            self.request(rules, steps, Action::Steer, |w| {
                w.budget.steers -= 1;
                Input::Steer
            });
        }
        self.rare_requests(rules, daemon, steps);
    }

    fn rare_requests(&self, rules: Rules, daemon: &Daemon, steps: &mut Steps) {
        let budget = self.budget;
        // Including an answered request: two clients may answer.
        let waiting_run = (0..self.next).rev().find(|run| self.question(*run).is_some());
        if let (Some(run), true) = (waiting_run, budget.answers > 0) {
            for yes in [true, false] {
                self.request(rules, steps, Action::Answer(yes), |w| {
                    w.budget.answers -= 1;
                    w.daemon().answer = Some((run, yes));
                    Input::Answer { run: Some(run), permit: true }
                });
            }
        }
        if budget.edits > 0 {
            self.request(rules, steps, Action::Fork, |w| {
                w.budget.edits -= 1;
                Input::Edit { idle: true }
            });
        }
        if budget.deletes > 0 {
            self.request(rules, steps, Action::Delete, |w| {
                w.budget.deletes -= 1;
                Input::Delete
            });
        }
        match daemon {
            Daemon { draining: false, .. } if budget.shutdowns > 0 => {
                self.request(rules, steps, Action::Shutdown, |w| {
                    w.budget.shutdowns -= 1;
                    w.daemon().draining = true;
                    Input::Shutdown
                });
            }
            Daemon { draining: true, task: None, .. } => {
                let mut next = self.clone();
                next.daemon = None;
                steps.push((Action::Exit, next));
            }
            Daemon { draining: true, drained: false, .. } => {
                self.request(rules, steps, Action::DrainIsOver, |w| {
                    w.daemon().drained = true;
                    Input::Interrupt
                });
            }
            _ => {}
        }
    }

    /// Executes the first job.
    fn job(&self, rules: Rules, steps: &mut Steps) {
        let mut next = self.clone();
        let Some(job) = next.daemon().jobs.pop_front() else { return };
        let written = Action::Do { written: true };
        match job {
            Job::Effect(Effect::Prepare(run)) => {
                if next.budget.unprepared > 0 {
                    let mut failed = next.clone();
                    failed.budget.unprepared -= 1;
                    failed.input(rules, Input::Unprepared(run));
                    steps.push((Action::Do { written: false }, failed));
                }
                next.input(rules, Input::Prepared(run));
            }
            Job::Effect(Effect::Commit(commit)) => {
                if next.budget.unwritten > 0 {
                    let mut failed = next.clone();
                    failed.budget.unwritten -= 1;
                    failed.input(rules, Input::NotCommitted);
                    steps.push((Action::Do { written: false }, failed));
                }
                let input =
                    if next.write(&commit) { Input::Committed } else { Input::NotCommitted };
                next.input(rules, input);
            }
            Job::Effect(effect) => next.carry_out(effect),
            Job::Wake(run, yes) => next.wake(run, yes),
        }
        steps.push((written, next));
    }

    fn carry_out(&mut self, effect: Effect<u8>) {
        match effect {
            Effect::Reply => {
                let asking = self.daemon().asking.take();
                self.acknowledged.extend(asking);
            }
            Effect::Refuse(_) => self.daemon().asking = None,
            Effect::Run(run) => self.run(run),
            Effect::Stop(run, stop) => match &mut self.daemon().task {
                Some(task) if task.run == run => task.stop = Some(stop),
                _ => self.broken = Some("a run that does not exist is stopped"),
            },
            Effect::Deliver(_) | Effect::Prepare(_) | Effect::Commit(_) => {}
        }
    }

    fn run(&mut self, run: u8) {
        let over = self.has(Record::Completed(run)) || self.has(Record::ExploreFinished(run));
        let has_started = self.has(Record::Started(run)) || self.has(Record::ExploreStarted(run));
        if over {
            self.broken = Some("3: a run starts after its terminal record");
        } else if !has_started {
            self.broken = Some("4: a run starts before its record");
        } else if self.daemon().task.is_some() {
            self.broken = Some("5: two runs at a time");
        } else if self.daemon().draining {
            self.broken = Some("5: a run starts while the daemon stops");
        }
        let phase = if self.has(Record::ExploreStarted(run)) || self.has(Record::ActFinished(run)) {
            Phase::Acted
        } else if self.has(Record::ActStarted(run)) && self.question(run) != Some(None) {
            Phase::RequestsApproval
        } else {
            match self.question(run) {
                None => Phase::RequestsApproval,
                Some(None) => Phase::Waits,
                Some(Some(true)) => Phase::Allowed,
                Some(Some(false)) => Phase::Acted,
            }
        };
        self.daemon().task = Some(Task { run, phase, stop: None, cut: false });
    }

    /// Writes a commit of the actor; returns false when the log fails.
    fn write(&mut self, commit: &Commit<u8>) -> bool {
        let row_after = |then: Then| match then {
            Then::Idle => Some(Row::Finished),
            Then::Next => None,
            Then::Halt => Some(Row::Interrupted),
        };
        let row = match *commit {
            Commit::Accept { run, start, replaces } => {
                self.log.push(Record::Accepted(run));
                self.replace(replaces);
                if start {
                    self.log.push(Record::Started(run));
                }
                start.then_some(Row::Running)
            }
            Commit::Begin { run, resumed } => {
                self.log.push(if resumed { Record::Resumed(run) } else { Record::Started(run) });
                Some(Row::Running)
            }
            Commit::End { run, then } => {
                if self.daemon().drained {
                    self.withdraw(run);
                }
                self.log.push(Record::Completed(run));
                row_after(then)
            }
            Commit::Fail { run, then } | Commit::CancelQueued { run, then } => {
                self.withdraw(run);
                self.log.push(Record::Completed(run));
                row_after(then)
            }
            Commit::BeginExplore { run, replaces } => {
                self.replace(replaces);
                self.log.push(Record::ExploreStarted(run));
                Some(Row::Running)
            }
            Commit::ResumeExplore { .. } => Some(Row::Running),
            Commit::EndExplore { run } => {
                self.log.push(Record::ExploreFinished(run));
                Some(Row::Finished)
            }
            Commit::Interrupt { .. } => {
                self.log.push(Record::Interrupted);
                Some(Row::Interrupted)
            }
            Commit::Steer { run } => {
                self.log.push(Record::Steered(run));
                None
            }
            Commit::Answer { .. } => {
                let Some((run, yes)) = self.daemon().answer.take() else { return false };
                if self.question(run) != Some(None) {
                    return false;
                }
                self.log.push(Record::Resolved(run, yes));
                self.daemon().jobs.push_front(Job::Wake(run, yes));
                None
            }
            Commit::Edit => None,
            Commit::Delete => {
                self.log.clear();
                self.acknowledged.clear();
                Some(Row::Deleted)
            }
        };
        self.row = row.unwrap_or(self.row);
        true
    }

    fn replace(&mut self, explore: Option<u8>) {
        if let Some(run) = explore {
            self.log.push(Record::ExploreFinished(run));
        }
    }

    /// Closes the open approval request of a run that finishes without a task.
    fn withdraw(&mut self, run: u8) {
        if self.question(run) == Some(None) {
            self.log.push(Record::Resolved(run, false));
        }
    }

    fn wake(&mut self, run: u8, yes: bool) {
        if let Some(task) = &mut self.daemon().task
            && task.run == run
            && task.phase == Phase::Waits
        {
            task.phase = if yes { Phase::Allowed } else { Phase::Acted };
        }
    }

    /// Lists the possible next steps of the run's task.
    fn task(&self, rules: Rules, daemon: &Daemon, task: &Task, steps: &mut Steps) {
        let run = task.run;
        if task.phase == Phase::Done {
            // The task's message waits until the actor is free.
            if daemon.jobs.is_empty() {
                let interrupted = task.cut && task.stop == Some(Stop::Interrupt);
                self.request(rules, steps, Action::End, |w| {
                    w.daemon().task = None;
                    Input::RunFinished { run, interrupted }
                });
            }
            return;
        }
        let mut push = |action, change: &dyn Fn(&mut World) -> Phase| {
            let mut next = self.clone();
            let phase = change(&mut next);
            if let Some(task) = &mut next.daemon().task {
                task.phase = phase;
            }
            steps.push((action, next));
        };
        if let Some(stop) = task.stop {
            push(Action::Act, &|w| {
                if stop == Stop::Abort {
                    w.withdraw(run);
                }
                if let Some(task) = &mut w.daemon().task {
                    task.cut = true;
                }
                Phase::Done
            });
        }
        match task.phase {
            Phase::RequestsApproval => push(Action::Act, &|w| {
                w.log.push(Record::ApprovalRequested(run));
                Phase::Waits
            }),
            Phase::Waits if self.budget.expiries > 0 => push(Action::Expire, &|w| {
                w.budget.expiries -= 1;
                // An earlier answer counts.
                match w.question(run) {
                    Some(Some(true)) => Phase::Allowed,
                    Some(Some(false)) => Phase::Acted,
                    _ => {
                        w.log.push(Record::Resolved(run, false));
                        Phase::Acted
                    }
                }
            }),
            Phase::Waits | Phase::Done => {}
            Phase::Allowed => push(Action::Act, &|w| {
                // An action that may have happened had a second approval request: its answer
                // permits the repetition.
                if w.has(Record::ActStarted(run))
                    && w.count(Record::ApprovalRequested(run)) > w.count(Record::ActStarted(run))
                {
                    w.acts[usize::from(run)] = 0;
                }
                w.log.push(Record::ActStarted(run));
                Phase::Started
            }),
            Phase::Started => push(Action::Act, &|w| {
                w.acts[usize::from(run)] += 1;
                if w.acts[usize::from(run)] > 1 {
                    w.broken = Some("3: an action was repeated and nobody agreed");
                }
                w.log.push(Record::ActFinished(run));
                Phase::Acted
            }),
            Phase::Acted => push(Action::Act, &|_| Phase::Done),
        }
    }
}
