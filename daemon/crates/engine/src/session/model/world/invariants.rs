//! The invariants of `session/step.rs`, by their numbers there.

use super::{Active, Phase, Record, Row, World};

impl World {
    pub fn check(&self) -> Result<(), String> {
        if let Some(broken) = self.broken {
            return Err(broken.into());
        }
        self.check_log()?;
        let Some(daemon) = self.daemon.as_ref().filter(|daemon| daemon.jobs.is_empty()) else {
            return Ok(());
        };
        let state = &daemon.state;
        match (&state.active, &daemon.task) {
            (None, None) => {
                let read = self.recovered();
                let same = read.queue == state.queue
                    && read.explore == state.explore
                    && read.halted == state.halted;
                if !same || read.deleted != state.deleted {
                    return Err(format!("4: the actor knows {state:?}, the log {read:?}"));
                }
            }
            (Some(Active::Turn { run, .. } | Active::Explore { run, .. }), Some(task))
                if *run == task.run => {}
            _ => return Err("5: the active run has no task, or a task no active run".into()),
        }
        if state.active.is_none() && !state.queue.is_empty() && !state.halted {
            return Err("5: a turn waits and nothing runs".into());
        }
        if let Some(task) = &daemon.task
            && task.phase == Phase::Waits
            && self.question(task.run) != Some(None)
        {
            return Err("6: an approval is resolved and its waiter sleeps".into());
        }
        Ok(())
    }

    fn check_log(&self) -> Result<(), String> {
        let mut open: Option<u8> = None;
        let mut finished: Vec<u8> = Vec::new();
        for record in &self.log {
            match *record {
                Record::Started(run) | Record::Resumed(run) | Record::ExploreStarted(run) => {
                    if open.is_some_and(|other| other != run) {
                        return Err("5: two runs at a time in the log".into());
                    }
                    open = Some(run);
                }
                Record::Completed(run) => {
                    if finished.contains(&run) {
                        return Err("1: a second terminal record".into());
                    }
                    if self.has(Record::Started(run)) {
                        finished.push(run);
                    }
                    open = open.filter(|other| *other != run);
                }
                Record::ExploreFinished(run) => open = open.filter(|other| *other != run),
                Record::Interrupted => open = None,
                _ => {}
            }
        }
        if !finished.is_sorted() {
            return Err("2: turns ended in another order than they were accepted in".into());
        }
        for run in 0..self.next {
            if self.count(Record::Completed(run)) > 1 {
                return Err("1: a second terminal record".into());
            }
            if self.count(Record::Started(run)) > 1 {
                return Err("3: a turn started twice".into());
            }
            let requested = self.count(Record::ApprovalRequested(run));
            let resolved = self
                .log
                .iter()
                .filter(|r| matches!(r, Record::Resolved(of, _) if *of == run))
                .count();
            if resolved > requested {
                return Err("6: an approval was resolved twice".into());
            }
            if self.has(Record::Completed(run)) && resolved < requested {
                return Err("6: a turn ended and its approval is open".into());
            }
        }
        if let Some(run) = self.acknowledged.iter().find(|run| !self.has(Record::Accepted(**run))) {
            return Err(format!("4: turn {run} was acknowledged and is not in the log"));
        }
        if self.row == Row::Finished && !self.pending().is_empty() {
            return Err("4: turns are pending in a session that counts as ended".into());
        }
        if self.row == Row::Finished && self.open_question().is_some() {
            return Err("6: an approval is open in a session that has ended".into());
        }
        Ok(())
    }
}
