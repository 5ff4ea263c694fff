//! Following a session: the backlog from the database, then live records, without gaps or
//! duplicates.

use std::sync::Arc;

use cairn_protocol::{
    id::SessionId,
    session::{After, Session},
};
use tokio::sync::{
    broadcast::{self, error::TryRecvError},
    watch,
};

use crate::{
    Line, Trace, TraceError,
    live::{EventRing, Head},
};

/// Maximum records of one step.
const STEP: usize = 256;

/// A reader of a session with its own position; a slow reader does not affect others.
pub struct Follower {
    trace: Trace,
    session: SessionId,
    live: Arc<EventRing>,
    head: watch::Receiver<Head>,
    ephemeral: broadcast::Receiver<Line>,
    next: u64,
    synced: bool,
    catching_up: bool,
}

/// Next item of a follower.
#[derive(Debug, Clone)]
pub enum Step {
    /// Records in order, each as the JSON of one envelope.
    Records(Vec<Line>),
    /// Ephemeral events in order: they have no number, and a follower that lags does not receive
    /// them.
    Ephemeral(Vec<Line>),
    /// The backlog is complete; the value is the number of the last record.
    Synced(u64),
    /// This reader fell behind the records in memory and continues from the database at this
    /// number.
    Lagged(u64),
    Deleted,
}

impl Trace {
    /// Follows `session` from after the record with that number.
    ///
    /// # Errors
    /// `session_not_found`, or `after_beyond_head` when no such record exists yet.
    pub async fn follow(
        &self,
        session: &SessionId,
        after: &After,
    ) -> Result<(Follower, Session), TraceError> {
        // The follower joins first, so that every later commit raises its head.
        let live = self.inner.live.join(session);
        let current = self.session(session).await?;
        live.raise(current.head_seq);
        let after = match after {
            After::Seq(seq) => *seq,
            After::Word(_) => current.head_seq,
        };
        if after > current.head_seq {
            let session = session.clone();
            return Err(TraceError::AfterBeyondHead { session, after, head_seq: current.head_seq });
        }
        let (head, ephemeral) = (live.watch(), live.subscribe());
        let (trace, session) = (self.clone(), session.clone());
        let follower = Follower {
            trace,
            session,
            live,
            head,
            ephemeral,
            next: after + 1,
            synced: false,
            catching_up: true,
        };
        Ok((follower, current))
    }
}

impl Follower {
    /// Returns the ephemeral lines in the queue.
    fn queued_ephemeral(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        while lines.len() < STEP {
            match self.ephemeral.try_recv() {
                Ok(line) => lines.push(line),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        lines
    }

    /// Waits for the next step. Cancel-safe: a step that was not returned is returned by the next
    /// call.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn step(&mut self) -> Result<Step, TraceError> {
        loop {
            let ephemeral = self.queued_ephemeral();
            // Ephemeral events missed while lagging are superseded by durable records.
            if !ephemeral.is_empty() && self.synced && !self.catching_up {
                return Ok(Step::Ephemeral(ephemeral));
            }
            let head = *self.head.borrow_and_update();
            let Head::At(head) = head else { return Ok(Step::Deleted) };
            if self.next > head {
                self.catching_up = false;
                if !self.synced {
                    self.synced = true;
                    return Ok(Step::Synced(self.next - 1));
                }
                tokio::select! {
                    changed = self.head.changed() => match changed {
                        Ok(()) => continue,
                        Err(_) => return Ok(Step::Deleted),
                    },
                    line = self.ephemeral.recv() => match line {
                        Ok(line) => return Ok(Step::Ephemeral(vec![line])),
                        Err(_) => continue,
                    },
                }
            }
            let lines = match self.live.from(self.next, STEP) {
                Some(lines) => lines,
                None if self.catching_up => {
                    let lines = self.trace.lines(&self.session, self.next - 1, STEP as u32).await?;
                    if lines.is_empty() {
                        return Ok(Step::Deleted);
                    }
                    lines
                }
                None => {
                    self.catching_up = true;
                    return Ok(Step::Lagged(self.next));
                }
            };
            self.next += lines.len() as u64;
            return Ok(Step::Records(lines));
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{envelope::Body, error::Reason, event::AgentEvt};
    use proptest::prelude::*;

    use super::*;
    use crate::{Append, NewRecord, NewSession};

    fn record(n: u64) -> NewRecord {
        let evt = AgentEvt::Progress { op: "test".into(), percent: n as f64, message: None };
        NewRecord {
            id: uuid::Uuid::now_v7(),
            parent_id: None,
            origin: None,
            body: Body::Evt { evt },
        }
    }

    async fn read_to(follower: &mut Follower, last: u64, into: &mut Vec<Line>) {
        while (into.len() as u64) < last {
            match follower.step().await.unwrap() {
                Step::Records(lines) => into.extend(lines),
                Step::Deleted => panic!("session is gone"),
                Step::Synced(_) | Step::Lagged(_) | Step::Ephemeral(_) => {}
            }
        }
    }

    async fn cut_and_resume(total: u64, cuts: Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let (mut uninterrupted, _) = trace.follow(&id, &After::Seq(0)).await.unwrap();
        let writer = tokio::spawn({
            let (trace, id) = (trace.clone(), id.clone());
            async move {
                for n in 0..total {
                    trace.append(Append::new(&id, vec![record(n)])).await.unwrap();
                }
            }
        });
        let mut pieces = Vec::new();
        for cut in cuts.into_iter().map(|c| c % total).chain([total]) {
            let (mut part, _) = trace.follow(&id, &After::Seq(pieces.len() as u64)).await.unwrap();
            let last = cut.max(pieces.len() as u64);
            while (pieces.len() as u64) < last {
                if let Step::Records(lines) = part.step().await.unwrap() {
                    let room = (last - pieces.len() as u64) as usize;
                    pieces.extend(lines.into_iter().take(room));
                }
            }
        }
        let mut uncut = Vec::new();
        read_to(&mut uninterrupted, total, &mut uncut).await;
        writer.await.unwrap();
        assert_eq!(pieces, uncut);
        for (at, line) in (1..).zip(&uncut) {
            assert_eq!(crate::read::parse(line).unwrap().seq, at);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn interrupted_follower_sees_the_same_records(total in 1_u64..60, cuts in prop::collection::vec(0_u64..60, 0..5)) {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(cut_and_resume(total, cuts));
        }
    }

    #[tokio::test]
    async fn slow_follower_is_notified_of_lag_and_misses_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let (mut slow, _) = trace.follow(&id, &After::Seq(0)).await.unwrap();
        assert!(matches!(slow.step().await.unwrap(), Step::Synced(0)));
        for _ in 0..30 {
            trace.append(Append::new(&id, (0..100).map(record).collect())).await.unwrap();
        }
        assert!(matches!(slow.step().await.unwrap(), Step::Lagged(1)));
        let mut all = Vec::new();
        read_to(&mut slow, 3000, &mut all).await;
        assert_eq!(crate::read::parse(&all[2999]).unwrap().seq, 3000);
    }

    #[tokio::test]
    async fn ephemeral_events_precede_their_record_and_are_dropped_after_a_lag() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let (mut quick, _) = trace.follow(&id, &After::Seq(0)).await.unwrap();
        let (mut slow, _) = trace.follow(&id, &After::Seq(0)).await.unwrap();
        assert!(matches!(quick.step().await.unwrap(), Step::Synced(0)));
        assert!(matches!(slow.step().await.unwrap(), Step::Synced(0)));
        let progress = AgentEvt::Progress { op: "said".into(), percent: 1.0, message: None };
        trace.pass(&id, None, None, &progress);
        trace.append(Append::new(&id, vec![record(1)])).await.unwrap();
        let Step::Ephemeral(lines) = quick.step().await.unwrap() else { panic!("nothing passed") };
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&line["evt"]["op"], line.get("seq")), (&"said".into(), None));
        assert!(matches!(quick.step().await.unwrap(), Step::Records(_)));
        for _ in 0..20 {
            trace.append(Append::new(&id, (0..100).map(record).collect())).await.unwrap();
        }
        // Behind the records in memory: durable records follow, ephemeral events are not delivered
        // late.
        assert!(matches!(slow.step().await.unwrap(), Step::Ephemeral(_)));
        assert!(matches!(slow.step().await.unwrap(), Step::Lagged(1)));
        trace.pass(&id, None, None, &progress);
        for _ in 0..8 {
            assert!(matches!(slow.step().await.unwrap(), Step::Records(_)));
        }
    }

    #[tokio::test]
    async fn position_beyond_head_is_an_error_and_deletion_ends_the_follower() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let error = trace.follow(&id, &After::Seq(1)).await.err().unwrap();
        assert_eq!(error.reason(), Reason::AfterBeyondHead);
        let (mut follower, _) = trace.follow(&id, &After::Seq(0)).await.unwrap();
        assert!(matches!(follower.step().await.unwrap(), Step::Synced(0)));
        trace.delete_session(&id).await.unwrap();
        assert!(matches!(follower.step().await.unwrap(), Step::Deleted));
    }

    #[tokio::test]
    async fn imported_export_is_identical() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("a.db")).unwrap();
        let id = trace
            .create_session(NewSession { title: "t".into(), ..NewSession::default() })
            .await
            .unwrap()
            .session_id;
        trace.append(Append::new(&id, (0..5).map(record).collect())).await.unwrap();
        let text = trace.export(&id, None).await.unwrap().jsonl;
        assert_eq!(trace.import(&text).await.unwrap_err().reason(), Reason::SessionExists);
        let other = Trace::open(&dir.path().join("b.db")).unwrap();
        other.import(&text).await.unwrap();
        assert_eq!(other.lines(&id, 0, 10).await.unwrap(), trace.lines(&id, 0, 10).await.unwrap());
        let broken = text.replacen("\"seq\":3", "\"seq\":4", 1);
        let fresh = Trace::open(&dir.path().join("c.db")).unwrap();
        assert_eq!(fresh.import(&broken).await.unwrap_err().reason(), Reason::BadTrace);
    }
}
