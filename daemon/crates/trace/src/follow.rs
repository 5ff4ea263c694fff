//! Following a session: the backlog from the database, then what comes, never a gap, never twice.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    session::{After, Session},
};
use tokio::sync::watch;

use crate::{
    Trace,
    live::{Head, Live},
};

/// Records of one step at most.
const STEP: usize = 256;

/// One reader of a session. It holds its own place; how slow it is costs nobody else anything.
pub struct Follower {
    trace: Trace,
    session: SessionId,
    live: Arc<Live>,
    head: watch::Receiver<Head>,
    next: u64,
    synced: bool,
    catching_up: bool,
}

/// What comes next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Records in order, each the JSON of one envelope.
    Records(Vec<Arc<str>>),
    /// The backlog is done; the last record was this one.
    Synced(u64),
    /// This reader fell behind what is in memory and reads on from the database from here.
    Lagged(u64),
    /// The session was deleted.
    Gone,
}

impl Trace {
    /// Follows `session` from after a place.
    ///
    /// # Errors
    /// `session_not_found`, or `after_beyond_head` when there is no such record yet.
    pub async fn follow(&self, session: &SessionId, after: &After) -> Result<(Follower, Session), Failure> {
        // Joined first, so that whatever is committed from here on raises the head.
        let live = self.inner.live.join(session);
        let found = self.session(session).await?;
        live.raise(found.head_seq);
        let after = match after {
            After::Seq(seq) => *seq,
            After::Word(_) => found.head_seq,
        };
        if after > found.head_seq {
            let text = format!("session {session} ends at {}, there is no record {after}", found.head_seq);
            let details = serde_json::json!({"headSeq": found.head_seq});
            return Err(Failure::new(Reason::AfterBeyondHead, text).with_details(details));
        }
        let head = live.watch();
        let (trace, session) = (self.clone(), session.clone());
        let follower = Follower { trace, session, live, head, next: after + 1, synced: false, catching_up: true };
        Ok((follower, found))
    }
}

impl Follower {
    /// Waits for the next step. Cancel-safe: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn step(&mut self) -> Result<Step, Failure> {
        loop {
            let head = *self.head.borrow_and_update();
            let Head::At(head) = head else { return Ok(Step::Gone) };
            if self.next > head {
                self.catching_up = false;
                if !self.synced {
                    self.synced = true;
                    return Ok(Step::Synced(self.next - 1));
                }
                if self.head.changed().await.is_err() {
                    return Ok(Step::Gone);
                }
                continue;
            }
            let lines = match self.live.from(self.next, STEP) {
                Some(lines) => lines,
                None if self.catching_up => {
                    let lines = self.trace.lines(&self.session, self.next - 1, STEP as u32).await?;
                    if lines.is_empty() {
                        return Ok(Step::Gone);
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
