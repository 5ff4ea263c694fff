//! Publishing with a window: many messages are on their way, each with the number that the broker
//! will have given to its predecessor.

mod serial;

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use async_nats::{
    HeaderMap,
    jetstream::{
        context::{PublishAckFuture, PublishErrorKind},
        message::PublishMessage,
        stream::Stream,
    },
};
use bytes::Bytes;
use cairn_protocol::{error::Failure, id::SessionId};
use cairn_trace::Line;
use futures_util::future::join_all;

use crate::{
    broker::{MAX_IN_FLIGHT, REQUEST_LIMIT},
    error::{chain, unreachable},
    mirror::{Halt, Mirror, blobs::Blobs, log_failure},
    names,
    positions::Position,
    redact,
};

/// Header with the number of a record in its session.
pub const SEQ_HEADER: &str = "Cairn-Seq";
/// Header with the identity of the data folder that has the log.
pub const IDENTITY_HEADER: &str = "Cairn-Identity";
/// Header with the size of a record that is over the broker's limit of a message.
const OMITTED_HEADER: &str = "Cairn-Omitted-Bytes";
/// Records of one session that are read at once.
const BATCH: u32 = 256;
/// Bytes of a message that its headers may take.
const HEADER_ROOM: usize = 1024;
/// Sessions of which the position is cached; beyond that the cache is emptied.
const MAX_CACHED: usize = 4096;
/// Time for which confirmed positions may be in memory alone; lost ones are read from the broker.
const STORE_INTERVAL: Duration = Duration::from_secs(1);
/// Records up to this size together are redacted on the task's own thread.
const INLINE_BYTES: usize = 32 * 1024;
/// Attempts to bring one session in agreement with the broker.
const MAX_RESYNCS: u32 = 3;

/// Records of a session after a position.
struct Batch {
    session: SessionId,
    from: Position,
    bodies: Vec<Body>,
}

impl Batch {
    /// True if the session may have more records.
    fn is_full(&self) -> bool {
        self.bodies.len() == BATCH as usize
    }
}

/// A message whose confirmation is pending.
struct InFlight {
    session: SessionId,
    /// Position after this message.
    position: Position,
    ack: PublishAckFuture,
}

/// Publishes to the stream of one daemon, as its only writer.
pub struct Publisher<'a> {
    mirror: &'a Mirror,
    stream: Stream,
    /// Present if blobs are copied.
    blobs: Option<Blobs>,
    /// The stream is on several nodes of a cluster. It refuses a message whose predecessor on its
    /// subject is still on its way between them.
    is_replicated: bool,
    /// Number that the stream will give to the next message.
    next: u64,
    /// Highest number that the stream has confirmed.
    confirmed_to: u64,
    /// Positions after the messages on their way.
    ahead: HashMap<SessionId, Position>,
    /// Confirmed positions that are not stored yet.
    confirmed: HashMap<SessionId, Position>,
    stored: Instant,
    in_flight: VecDeque<InFlight>,
    /// Sessions of which records were refused and must be published again.
    again: Vec<SessionId>,
}

impl<'a> Publisher<'a> {
    pub async fn open(mirror: &'a Mirror, stream: Stream) -> Result<Self, Halt> {
        let blobs = if mirror.blobs { Some(Blobs::open(mirror).await?) } else { None };
        let mut this = Self {
            mirror,
            stream,
            blobs,
            is_replicated: false,
            next: 0,
            confirmed_to: mirror.positions.last_stream_seq().await?,
            ahead: HashMap::new(),
            confirmed: HashMap::new(),
            stored: Instant::now(),
            in_flight: VecDeque::new(),
            again: Vec::new(),
        };
        this.compare().await?;
        Ok(this)
    }

    /// Compares the stream with what it confirmed: positions beyond its end are removed, so that
    /// their records are published again. Nothing may be on its way.
    pub async fn compare(&mut self) -> Result<(), Halt> {
        let is_purged = self.read_next().await?;
        let end = if is_purged { 0 } else { self.next - 1 };
        if end < self.confirmed_to {
            tracing::warn!(end, expected = self.confirmed_to, "the broker lost records");
            self.forget_after(end).await?;
        }
        Ok(())
    }

    /// The broker gave a number a second time.
    async fn lost(&mut self, number: u64) -> Halt {
        match self.forget_after(number - 1).await {
            Ok(()) => unreachable("the mirror", &"the broker lost records; they follow").into(),
            Err(halt) => halt,
        }
    }

    async fn forget_after(&mut self, end: u64) -> Result<(), Halt> {
        self.mirror.positions.remove_after(end).await?;
        self.confirmed_to = end;
        self.confirmed.retain(|_, position| position.stream_seq <= end);
        self.ahead.clear();
        Ok(())
    }

    /// Publishes the next records of sessions. Returns those of which more follow.
    pub async fn sessions(&mut self, sessions: Vec<SessionId>) -> Result<Vec<SessionId>, Halt> {
        if self.is_replicated {
            return self.serially(sessions).await;
        }
        let mut more = Vec::new();
        for session in sessions {
            if self.session(&session).await? {
                more.push(session);
            }
        }
        Ok(more)
    }

    /// Publishes the next records of a session. Returns true if more follow.
    async fn session(&mut self, session: &SessionId) -> Result<bool, Halt> {
        for _ in 0..MAX_RESYNCS {
            let Some(batch) = self.read(session).await? else { return Ok(false) };
            let is_full = batch.is_full();
            if self.publish(batch).await? {
                return Ok(is_full);
            }
        }
        Err(refused(session).into())
    }

    /// Reads the next records of a session as they leave the machine. `None` without any, or if the
    /// session is not mirrored.
    async fn read(&mut self, session: &SessionId) -> Result<Option<Batch>, Halt> {
        let mirror = self.mirror;
        // A session that was allowed before remains so.
        if !self.ahead.contains_key(session) {
            let root = mirror.trace.session_root(session).await.map_err(log_failure)?;
            if !mirror.policy.allows(session, root.as_deref()) {
                return Ok(None);
            }
        }
        let from = self.position(session).await?;
        let lines = mirror.trace.lines(session, from.seq, BATCH).await.map_err(log_failure)?;
        if lines.is_empty() {
            return Ok(None);
        }
        if let Some(blobs) = &mut self.blobs {
            blobs.copy(&mirror.trace, &lines).await?;
        }
        let limit = self.limit();
        let redacted =
            move |lines: Vec<Line>| lines.iter().map(|line| message_body(line, limit)).collect();
        let bytes: usize = lines.iter().map(|line| line.len()).sum();
        let bodies: Vec<Body> = match bytes {
            ..=INLINE_BYTES => redacted(lines),
            _ => tokio::task::spawn_blocking(move || redacted(lines))
                .await
                .map_err(|e| unreachable("records for the mirror", &e))?,
        };
        Ok(Some(Batch { session: session.clone(), from, bodies }))
    }

    fn limit(&self) -> usize {
        self.mirror.broker.client.max_payload().saturating_sub(HEADER_ROOM)
    }

    /// Publishes records without waiting for their confirmation. Returns false if the broker refused
    /// one before, and all positions were read again.
    async fn publish(&mut self, batch: Batch) -> Result<bool, Halt> {
        let Batch { session, from, bodies } = batch;
        let mut last = from;
        for body in bodies {
            while self.in_flight.len() >= MAX_IN_FLIGHT {
                if !self.confirm_one().await? {
                    return Ok(false);
                }
            }
            let ack = self.send(&session, last, body).await?;
            last = Position { seq: last.seq + 1, stream_seq: self.next };
            self.next += 1;
            self.in_flight.push_back(InFlight { session: session.clone(), position: last, ack });
        }
        self.ahead.insert(session, last);
        Ok(true)
    }

    /// Sends the record after `last`.
    async fn send(
        &self,
        session: &SessionId,
        last: Position,
        body: Body,
    ) -> Result<PublishAckFuture, Failure> {
        let subject = names::records(&self.mirror.daemon, session);
        let publish = PublishMessage::build()
            .headers(self.headers(last.seq + 1, &body))
            .expected_last_subject_sequence(last.stream_seq)
            .payload(body.payload);
        let sent = self.mirror.broker.context.send_publish(subject, publish).await;
        sent.map_err(|error| unreachable("the mirror", &chain(&error)))
    }

    /// A repetition is refused by the number of its predecessor. An id of the message would also
    /// make the broker drop what is published again after a purge.
    fn headers(&self, seq: u64, body: &Body) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(SEQ_HEADER, seq.to_string().as_str());
        headers.insert(IDENTITY_HEADER, self.mirror.identity.as_str());
        if let Some(bytes) = body.omitted {
            headers.insert(OMITTED_HEADER, bytes.to_string().as_str());
        }
        headers
    }

    /// Waits for the confirmation of the oldest message. Returns false if the broker refused it;
    /// then nothing is on its way, and all positions are read again.
    async fn confirm_one(&mut self) -> Result<bool, Halt> {
        let Some(oldest) = self.in_flight.pop_front() else { return Ok(true) };
        let ack = match oldest.ack.await {
            Ok(ack) => ack,
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                self.mirror.counters.refused.fetch_add(1, Ordering::Relaxed);
                self.resync().await?;
                return Ok(false);
            }
            Err(error) => return Err(unreachable("the mirror", &chain(&error)).into()),
        };
        let expected = oldest.position.stream_seq;
        if ack.sequence <= self.confirmed_to {
            // The broker was restored from an older copy, or lost its last messages in a power cut.
            return Err(self.lost(ack.sequence).await);
        }
        if ack.sequence != expected {
            // The message is stored, but not where its successors expect it.
            self.resync().await?;
            return Ok(false);
        }
        self.confirmed_to = ack.sequence;
        self.mirror.counters.confirmed.fetch_add(1, Ordering::Relaxed);
        self.confirmed.insert(oldest.session, oldest.position);
        if self.confirmed.len() >= MAX_CACHED {
            self.store().await?;
        }
        Ok(true)
    }

    /// Waits for all confirmations, and stores the positions now and then.
    pub async fn confirm_all(&mut self) -> Result<(), Halt> {
        while !self.in_flight.is_empty() {
            self.confirm_one().await?;
        }
        if self.stored.elapsed() >= STORE_INTERVAL { self.store().await } else { Ok(()) }
    }

    /// Waits until confirmed positions should be stored, and stores them; forever without any.
    pub async fn store_later(&mut self) -> Result<(), Halt> {
        if self.confirmed.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(STORE_INTERVAL).await;
        self.store().await
    }

    /// Returns the sessions that must be published again.
    pub fn take_refused(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.again)
    }

    async fn store(&mut self) -> Result<(), Halt> {
        if self.confirmed.is_empty() {
            return Ok(());
        }
        let changed = self.confirmed.iter().map(|(s, position)| (s.clone(), *position)).collect();
        self.mirror.positions.put(changed).await?;
        self.confirmed.clear();
        self.stored = Instant::now();
        if self.ahead.len() > MAX_CACHED && self.in_flight.is_empty() {
            self.ahead.clear();
        }
        Ok(())
    }

    /// Position from which a session goes on.
    async fn position(&mut self, session: &SessionId) -> Result<Position, Halt> {
        if let Some(position) = self.ahead.get(session) {
            return Ok(*position);
        }
        Ok(self.mirror.positions.get(session).await?)
    }

    /// Reads the positions of all sessions with messages on their way from the broker, which is
    /// right about what it has.
    async fn resync(&mut self) -> Result<(), Halt> {
        let (mut sessions, acks): (Vec<_>, Vec<_>) =
            self.in_flight.drain(..).map(|pending| (pending.session, pending.ack)).unzip();
        let outcomes = join_all(acks.into_iter().map(IntoFuture::into_future));
        // The outcomes are read from the stream below.
        let _outcomes = tokio::time::timeout(REQUEST_LIMIT, outcomes).await;
        sessions.extend(self.ahead.drain().map(|(session, _)| session));
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            let position = self.position_on_broker(&session).await?;
            self.again.push(session.clone());
            self.confirmed.insert(session, position);
        }
        self.read_next().await?;
        self.store().await
    }

    /// Reads the number of the next message. Returns true if the stream was purged; one with a
    /// limit of age empties itself.
    async fn read_next(&mut self) -> Result<bool, Halt> {
        let info = self.stream.get_info().await;
        let info = info.map_err(|error| unreachable("the mirror's stream", &chain(&error)))?;
        self.is_replicated = info.config.num_replicas > 1;
        self.next = info.state.last_sequence + 1;
        Ok(info.state.messages == 0 && info.config.max_age.is_zero())
    }

    /// Reads the last record that the broker has of a session.
    async fn position_on_broker(&self, session: &SessionId) -> Result<Position, Halt> {
        let subject = names::records(&self.mirror.daemon, session);
        let last = match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(last) => last,
            // Nothing of the session is stored, or it was purged: it begins with its first record.
            Err(error) if is_missing(&error) => return Ok(Position::default()),
            Err(error) => return Err(unreachable("the mirror's stream", &chain(&error)).into()),
        };
        let header = |name| last.headers.get(name).map(|value| value.as_str().to_owned());
        let identity = header(IDENTITY_HEADER);
        if identity.as_deref() != Some(self.mirror.identity.as_str()) {
            return Err(Halt::Conflict(format!(
                "another daemon writes as '{}': set a different fleet.name on one of them",
                self.mirror.daemon
            )));
        }
        let seq = header(SEQ_HEADER).and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let head = self.mirror.trace.session(session).await.map_err(log_failure)?.head_seq;
        if seq == 0 || seq > head {
            return Err(Halt::Conflict(format!(
                "the broker has record {seq} of {session}, of which the log has {head}: the log was \
                 restored from a copy, or the stream is not this daemon's"
            )));
        }
        Ok(Position { seq, stream_seq: last.sequence })
    }
}

fn is_missing(error: &async_nats::jetstream::stream::LastRawMessageError) -> bool {
    use async_nats::jetstream::stream::LastRawMessageErrorKind as Kind;
    matches!(error.kind(), Kind::NoMessageFound)
}

fn refused(session: &SessionId) -> Failure {
    unreachable("the mirror", &format!("the broker refuses records of {session}"))
}

/// Payload of a message.
struct Body {
    payload: Bytes,
    /// Size of a record that is not in the payload.
    omitted: Option<usize>,
}

/// Returns the redacted record; one over `limit` bytes is replaced by its number, time and size.
fn message_body(line: &str, limit: usize) -> Body {
    let text = redact::record(line).unwrap_or_else(|| "{}".into());
    if text.len() <= limit {
        return Body { payload: text.into(), omitted: None };
    }
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let stub = serde_json::json!({
        "sessionId": value["sessionId"], "seq": value["seq"], "id": value["id"], "ts": value["ts"],
        "kind": value["kind"], "omittedBytes": text.len(),
    });
    Body { payload: stub.to_string().into(), omitted: Some(text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_over_the_limit_are_replaced_by_a_note() {
        let line =
            format!(r#"{{"sessionId":"s","seq":4,"evt":{{"text":"{}"}}}}"#, "x".repeat(5000));
        assert!(message_body(&line, 10_000).omitted.is_none());
        let body = message_body(&line, 1000);
        let stub: serde_json::Value = serde_json::from_slice(&body.payload).unwrap();
        assert_eq!((&stub["seq"], body.omitted), (&4.into(), Some(line.len())));
    }
}
