//! Schedules: requests that start at set times. This module alone reads and changes their list in
//! the state file. A time is handled once: it is noted before its run starts, so that a crash
//! skips a run instead of repeating it.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::{ScheduleId, SessionId},
    schedule::{
        MissedRuns, Schedule, ScheduleAddParams, ScheduleEntry, ScheduleOutcome, ScheduleRef,
        ScheduledJob,
    },
    session::{Page, SessionCreateParams, WorktreeUse},
    time::Timestamp,
    turn::{Input, RunStartParams},
    unattended::UnattendedStartParams,
};
use cairn_schedule::Times;
use serde::{Deserialize, Serialize};

use crate::{
    Engine,
    unattended::{check_limits, first_line},
};

/// Most schedules that are stored.
const MAX_SCHEDULES: usize = 100;
/// Most bytes of a request.
const MAX_REQUEST: usize = 64 * 1024;
/// Entries of the history of a schedule.
const MAX_HISTORY: usize = 20;
/// Characters of the request in the title of a session.
const MAX_TITLE: usize = 60;
/// Delay after which a time counts as missed: the daemon was off, or the machine slept.
const GRACE_MILLIS: i64 = 2 * 60 * 1000;
/// Longest sleep of the scheduler: the wall clock may be set, and machines may sleep.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// A schedule as the state file stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredSchedule {
    schedule: Schedule,
    /// Times up to this one are handled.
    handled_until: Timestamp,
}

/// Schedules whose run is being created, which takes as long as the set-up of a work tree.
pub(crate) type StartingSchedules = Mutex<HashSet<ScheduleId>>;

/// Marks a schedule as starting until it is dropped.
struct StartingRun {
    engine: Engine,
    id: ScheduleId,
}

impl Drop for StartingRun {
    fn drop(&mut self) {
        let starting = &self.engine.inner.starting_schedules;
        starting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Decision about the times of a schedule that have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passed {
    /// A run starts; the number of times that were missed, if it is late.
    Run(Option<u32>),
    /// All times were missed.
    Missed(u32),
}

/// Decides about the times after `from` up to `now`; `None` if there are none.
fn passed(times: &Times, policy: MissedRuns, from: Timestamp, now: Timestamp) -> Option<Passed> {
    let count = times.count(from.0, now.0);
    if count == 0 {
        return None;
    }
    let is_late = times.count(from.0.max(now.0 - GRACE_MILLIS), now.0) == 0;
    Some(match (is_late, policy) {
        (false, _) => Passed::Run((count > 1).then(|| count - 1)),
        (true, MissedRuns::Once) => Passed::Run(Some(count)),
        (true, MissedRuns::Skip) => Passed::Missed(count),
    })
}

fn times_of(schedule: &Schedule) -> Option<Times> {
    match Times::parse(&schedule.cron, &schedule.timezone) {
        Ok(times) => Some(times),
        Err(error) => {
            tracing::error!(schedule = %schedule.schedule_id, %error, "a schedule cannot be read");
            None
        }
    }
}

impl Engine {
    /// Adds a schedule.
    ///
    /// # Errors
    /// `invalid_params` for times, a time zone or limits that are not valid; `root_not_found`;
    /// `overloaded` at 100 schedules.
    pub async fn add_schedule(
        &self,
        params: ScheduleAddParams,
        client: Option<String>,
        now: Timestamp,
    ) -> Result<Schedule, Failure> {
        self.require_open()?;
        let zone = params.timezone.unwrap_or_else(|| self.inner.timezone.clone());
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        let times = Times::parse(&params.when, &zone).map_err(|error| bad(error.to_string()))?;
        let mut job = params.job;
        if job.request.trim().is_empty() || job.request.len() > MAX_REQUEST {
            return Err(bad(format!("request must have 1 to {MAX_REQUEST} bytes")));
        }
        crate::turns::check_overrides(job.policy.as_ref())?;
        check_limits(&start_params(&job, SessionId::nil(), "check"))?;
        job.root = self.inner.roots.find(&job.root)?.path.to_string_lossy().into_owned();
        let schedule = Schedule {
            schedule_id: ScheduleId::new(),
            when: params.when.trim().to_owned(),
            cron: times.cron().to_owned(),
            timezone: zone,
            job,
            missed: params.missed,
            client,
            created_at: now,
            next_at: times.next_after(now.0).map(Timestamp),
            history: vec![],
        };
        let stored = StoredSchedule { schedule: schedule.clone(), handled_until: now };
        let mut is_full = false;
        self.inner.state.change(|state| {
            is_full = state.schedules.len() >= MAX_SCHEDULES;
            if !is_full {
                state.schedules.push(stored);
            }
        })?;
        if is_full {
            let text = format!("there are {MAX_SCHEDULES} schedules already: remove some");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        self.inner.schedule_changes.notify_one();
        Ok(schedule)
    }

    /// Lists the schedules with their next times, oldest first.
    ///
    /// # Errors
    /// None at present; the signature is that of other lists.
    pub async fn schedules(&self, now: Timestamp) -> Result<Page<Schedule>, Failure> {
        let all = self.inner.state.get().schedules.into_iter();
        let with_next = |stored: StoredSchedule| {
            let next = times_of(&stored.schedule).and_then(|times| times.next_after(now.0));
            Schedule { next_at: next.map(Timestamp), ..stored.schedule }
        };
        Ok(Page { data: all.map(with_next).collect(), next_cursor: None })
    }

    /// Returns true if there are schedules, for which the daemon stays when it is idle.
    pub fn has_schedules(&self) -> bool {
        !self.inner.state.get().schedules.is_empty()
    }

    /// Removes a schedule. Its active run continues.
    ///
    /// # Errors
    /// `path_not_found` if there is none with this id.
    pub async fn remove_schedule(&self, params: ScheduleRef) -> Result<(), Failure> {
        self.find_schedule(&params.schedule_id)?;
        self.inner.state.change(|state| {
            state.schedules.retain(|stored| stored.schedule.schedule_id != params.schedule_id);
        })
    }

    /// Starts a run of a schedule now, and returns its session.
    ///
    /// # Errors
    /// `session_busy` while its last run is active; errors of the start.
    pub async fn run_schedule(
        &self,
        params: ScheduleRef,
        now: Timestamp,
    ) -> Result<ScheduleEntry, Failure> {
        self.require_open()?;
        let schedule = self.find_schedule(&params.schedule_id)?;
        let Some(starting) = self.reserve_start(&schedule) else {
            let text = "the last run of the schedule is active still";
            return Err(Failure::new(Reason::SessionBusy, text));
        };
        let entry = self.start_scheduled(&schedule, now, None, starting).await;
        match (entry.outcome, &entry.reason) {
            (ScheduleOutcome::Failed, Some(reason)) => {
                Err(Failure::new(Reason::ToolFailed, reason.clone()))
            }
            _ => Ok(entry),
        }
    }

    fn find_schedule(&self, id: &ScheduleId) -> Result<Schedule, Failure> {
        let all = self.inner.state.get().schedules;
        let found = all.into_iter().find(|stored| stored.schedule.schedule_id == *id);
        found
            .map(|stored| stored.schedule)
            .ok_or_else(|| Failure::new(Reason::PathNotFound, format!("there is no schedule {id}")))
    }

    /// Starts runs at their times until the engine closes.
    pub async fn run_schedules(&self) {
        let shutdown = self.inner.shutdown.clone();
        let work = async {
            loop {
                let now = Timestamp::now();
                let next = self.check_schedules(now);
                let until = next.map_or(MAX_SLEEP, |next| {
                    Duration::from_millis(u64::try_from(next.0 - now.0).unwrap_or(0))
                });
                tokio::select! {
                    () = tokio::time::sleep(until.min(MAX_SLEEP)) => {}
                    () = self.inner.schedule_changes.notified() => {}
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = work => {}
        }
    }

    /// Handles the times that have passed at `now`, and returns the next one. Runs start in the
    /// background.
    pub fn check_schedules(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_draining() {
            return None;
        }
        let mut next = None;
        for stored in self.inner.state.get().schedules {
            let schedule = stored.schedule;
            let Some(times) = times_of(&schedule) else { continue };
            // A clock that was set back handles no time twice.
            let from = stored.handled_until;
            if let Some(passed) = passed(&times, schedule.missed, from, now) {
                self.handle(&schedule, passed, now);
            }
            let following = times.next_after(now.0).map(Timestamp);
            next = [next, following].into_iter().flatten().min();
        }
        next
    }

    fn handle(&self, schedule: &Schedule, passed: Passed, now: Timestamp) {
        let id = &schedule.schedule_id;
        if let Err(failure) = self.inner.state.change(|state| {
            let all = &mut state.schedules;
            if let Some(stored) = all.iter_mut().find(|s| s.schedule.schedule_id == *id) {
                stored.handled_until = now;
            }
        }) {
            // Without the note the time could be handled twice.
            tracing::error!(schedule = %id, %failure, "a scheduled run is skipped");
            return;
        }
        let without_run = |outcome, missed| ScheduleEntry {
            at: now,
            outcome,
            session_id: None,
            missed,
            reason: None,
        };
        let missed = match passed {
            Passed::Missed(count) => {
                return self.note(id, without_run(ScheduleOutcome::Missed, Some(count)));
            }
            Passed::Run(missed) => missed,
        };
        let Some(starting) = self.reserve_start(schedule) else {
            return self.note(id, without_run(ScheduleOutcome::Overlapped, missed));
        };
        let engine = self.clone();
        let schedule = schedule.clone();
        self.inner.tasks.spawn(async move {
            engine.start_scheduled(&schedule, now, missed, starting).await;
        });
    }

    /// Marks a schedule as starting; `None` while a run of it starts or is active.
    fn reserve_start(&self, schedule: &Schedule) -> Option<StartingRun> {
        let is_active = schedule
            .history
            .iter()
            .filter_map(|entry| entry.session_id.as_ref())
            .any(|session| self.is_unattended(session));
        let starting = &self.inner.starting_schedules;
        let mut starting = starting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = !is_active && starting.insert(schedule.schedule_id.clone());
        is_free.then(|| StartingRun { engine: self.clone(), id: schedule.schedule_id.clone() })
    }

    async fn start_scheduled(
        &self,
        schedule: &Schedule,
        now: Timestamp,
        missed: Option<u32>,
        starting: StartingRun,
    ) -> ScheduleEntry {
        let mut session_id = None;
        let started = self.create_scheduled(schedule, &mut session_id).await;
        let (outcome, reason) = match started {
            Ok(()) => (ScheduleOutcome::Started, None),
            Err(failure) => {
                tracing::warn!(schedule = %schedule.schedule_id, %failure, "a scheduled run did not start");
                (ScheduleOutcome::Failed, Some(failure.message))
            }
        };
        let entry = ScheduleEntry { at: now, outcome, session_id, missed, reason };
        self.note(&schedule.schedule_id, entry.clone());
        drop(starting);
        entry
    }

    async fn create_scheduled(
        &self,
        schedule: &Schedule,
        session_id: &mut Option<SessionId>,
    ) -> Result<(), Failure> {
        let job = &schedule.job;
        let title = first_line(&job.request).chars().take(MAX_TITLE).collect();
        let params = SessionCreateParams {
            title: Some(title),
            root: Some(job.root.clone()),
            worktree: job.worktree.then_some(WorktreeUse::New),
            ..SessionCreateParams::default()
        };
        let session = self.create_session(params).await?;
        *session_id = Some(session.session_id.clone());
        let setup = session.worktree.and_then(|worktree| worktree.setup);
        if let Some(setup) = setup.filter(|setup| !setup.succeeded()) {
            let cause = setup
                .error
                .unwrap_or_else(|| format!("exit status {}", setup.exit_code.unwrap_or_default()));
            let text = format!("the set-up of its work tree failed: {cause}");
            return Err(Failure::new(Reason::ToolFailed, text));
        }
        let params = start_params(job, session.session_id, "scheduled");
        let id = Some(schedule.schedule_id.clone());
        self.start_unattended_of(params, schedule.client.clone(), id).await.map(drop)
    }

    /// Adds an entry to the history of a schedule.
    fn note(&self, id: &ScheduleId, entry: ScheduleEntry) {
        let noted = self.inner.state.change(|state| {
            let mut all = state.schedules.iter_mut().map(|stored| &mut stored.schedule);
            if let Some(schedule) = all.find(|schedule| schedule.schedule_id == *id) {
                schedule.history.insert(0, entry);
                schedule.history.truncate(MAX_HISTORY);
            }
        });
        if let Err(failure) = noted {
            tracing::error!(schedule = %id, %failure, "an entry of a schedule is not stored");
        }
    }
}

fn start_params(job: &ScheduledJob, session: SessionId, turn: &str) -> UnattendedStartParams {
    UnattendedStartParams {
        turn: RunStartParams {
            session_id: session,
            turn_id: turn.to_owned(),
            input: Input::Text(job.request.clone()),
            context: None,
            policy: job.policy.clone(),
            metadata: std::collections::BTreeMap::new(),
        },
        until: job.until.clone(),
        max_turns: job.max_turns,
        max_usd: job.max_usd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const DAY: i64 = 24 * 60 * MINUTE;

    #[test]
    fn late_times_are_missed_and_run_once_or_never() {
        let times = Times::parse("every day 7:00", "UTC").unwrap();
        let at = |day: i64, minutes: i64| Timestamp(day * DAY + (7 * 60 + minutes) * MINUTE);
        let decide = |policy, from, now| passed(&times, policy, from, now);
        let (once, skip) = (MissedRuns::Once, MissedRuns::Skip);
        for (policy, from, now, expected) in [
            (once, at(0, 0), at(0, 30), None),
            (once, at(0, 0), at(1, 0), Some(Passed::Run(None))),
            (skip, at(0, 0), at(1, 1), Some(Passed::Run(None))),
            // The daemon was off at 7:00 of one day, and of three.
            (once, at(0, 0), at(1, 30), Some(Passed::Run(Some(1)))),
            (once, at(0, 0), at(3, 30), Some(Passed::Run(Some(3)))),
            (skip, at(0, 0), at(3, 30), Some(Passed::Missed(3))),
            // It starts exactly in time after two missed days.
            (skip, at(0, 0), at(3, 1), Some(Passed::Run(Some(2)))),
            // The clock was set back.
            (once, at(3, 0), at(1, 0), None),
        ] {
            assert_eq!(decide(policy, from, now), expected, "{policy:?} {from} {now}");
        }
    }
}
