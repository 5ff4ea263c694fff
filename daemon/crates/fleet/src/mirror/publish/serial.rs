//! Publishing to a replicated stream: one message of each session at a time, of several sessions at
//! once.

use std::sync::atomic::Ordering;

use async_nats::jetstream::context::PublishErrorKind;
use cairn_protocol::{error::Failure, id::SessionId};
use futures_util::future::join_all;

use super::{Batch, MAX_CACHED, Publisher, refused};
use crate::{
    error::{chain, unreachable},
    mirror::Halt,
    positions::Position,
};

/// Result of a batch.
struct Outcome {
    /// Position after the last record that the broker confirmed.
    position: Position,
    end: End,
}

enum End {
    Complete,
    /// The broker refused a record because of its order.
    Refused,
    /// The broker gave a number a second time.
    Lost(u64),
    Failed(Failure),
}

impl Publisher<'_> {
    /// Publishes the next records of sessions. Returns those of which more follow.
    pub(super) async fn serially(
        &mut self,
        sessions: Vec<SessionId>,
    ) -> Result<Vec<SessionId>, Halt> {
        let mut batches = Vec::new();
        for session in &sessions {
            batches.extend(
                self.read(session).await?.map(|batch| (batch.from, batch.is_full(), batch)),
            );
        }
        let this = &*self;
        let publish = batches.into_iter().map(|(from, is_full, batch)| async move {
            let session = batch.session.clone();
            (session, from, is_full, this.publish_serially(batch).await)
        });
        let mut more = Vec::new();
        let mut halt = None;
        for (session, from, is_full, outcome) in join_all(publish).await {
            self.note(&session, from, outcome.position);
            match outcome.end {
                End::Complete if is_full => more.push(session),
                End::Complete => {}
                End::Refused => {
                    self.mirror.counters.refused.fetch_add(1, Ordering::Relaxed);
                    let position = self.position_on_broker(&session).await?;
                    if position == outcome.position {
                        halt = Some(refused(&session).into());
                    }
                    self.ahead.insert(session.clone(), position);
                    self.confirmed.insert(session.clone(), position);
                    more.push(session);
                }
                End::Lost(number) => halt = Some(self.lost(number).await),
                End::Failed(failure) => halt = Some(failure.into()),
            }
        }
        if halt.is_none() && self.confirmed.len() >= MAX_CACHED {
            self.store().await?;
        }
        halt.map_or(Ok(more), Err)
    }

    /// Notes what the broker confirmed.
    fn note(&mut self, session: &SessionId, from: Position, position: Position) {
        let count = position.seq - from.seq;
        self.ahead.insert(session.clone(), position);
        if count > 0 {
            self.mirror.counters.confirmed.fetch_add(count, Ordering::Relaxed);
            self.confirmed.insert(session.clone(), position);
            self.confirmed_to = self.confirmed_to.max(position.stream_seq);
        }
    }

    async fn publish_serially(&self, batch: Batch) -> Outcome {
        let mut position = batch.from;
        for body in batch.bodies {
            let ack = match self.send(&batch.session, position, body).await {
                Ok(ack) => ack.await,
                Err(failure) => return Outcome { position, end: End::Failed(failure) },
            };
            match ack {
                Ok(ack) if ack.sequence <= self.confirmed_to => {
                    return Outcome { position, end: End::Lost(ack.sequence) };
                }
                Ok(ack) => {
                    position = Position { seq: position.seq + 1, stream_seq: ack.sequence };
                }
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    return Outcome { position, end: End::Refused };
                }
                Err(error) => {
                    let failure = unreachable("the mirror", &chain(&error));
                    return Outcome { position, end: End::Failed(failure) };
                }
            }
        }
        Outcome { position, end: End::Complete }
    }
}
