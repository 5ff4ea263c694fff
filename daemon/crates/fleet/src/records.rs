//! Reading the mirrored records of a session: by their numbers, without gaps.

use std::time::Duration;

use async_nats::{
    HeaderMap,
    jetstream::{
        consumer::{AckPolicy, DeliverPolicy, pull},
        message::StreamMessage,
        stream::{LastRawMessageError, LastRawMessageErrorKind, Stream},
    },
};
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::{FleetRecords, FleetRecordsParams},
};
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::{
    broker::Broker,
    error::{chain, unreachable},
    mirror::SEQ_HEADER,
    names,
};

/// Records of one answer when the caller names no number.
const DEFAULT_LIMIT: u32 = 100;
/// Most records of one answer.
const MAX_LIMIT: u32 = 500;
/// Longest wait for a record.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Bytes of records in one answer, after the first one.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Time in which the broker delivers what it has.
const DELIVERY: Duration = Duration::from_millis(500);
/// Messages that the broker sends at once.
const BATCH: usize = 256;

/// Returns records of a session after a number.
///
/// # Errors
/// `daemon_not_found` if nothing of that daemon is mirrored, `broker_unreachable`, and
/// `bad_trace` if the stream has a gap.
pub async fn read(broker: &Broker, params: &FleetRecordsParams) -> Result<FleetRecords, Failure> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    let name = names::record_stream(&params.daemon);
    let stream = broker.context.get_stream(&name).await.map_err(|_| {
        let text = format!("the broker has no records of a daemon '{}'", params.daemon);
        Failure::new(Reason::DaemonNotFound, text)
    })?;
    let wait = Duration::from_millis(params.wait_millis.unwrap_or(0).into()).min(MAX_WAIT);
    let deadline = tokio::time::Instant::now() + wait;
    read_until(&stream, params, limit, deadline).await
}

async fn read_until(
    stream: &Stream,
    params: &FleetRecordsParams,
    limit: usize,
    deadline: tokio::time::Instant,
) -> Result<FleetRecords, Failure> {
    let subject = names::records(&params.daemon, &params.session_id);
    let failed = |error: &dyn std::error::Error| unreachable("the mirrored records", &chain(error));
    let (deliver_policy, first) = start(stream, &subject, params.after).await?;
    let config = pull::Config {
        filter_subject: subject,
        deliver_policy,
        ack_policy: AckPolicy::None,
        inactive_threshold: MAX_WAIT * 2,
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|e| failed(&e))?;
    let mut reader = Reader { after: params.after, limit, first, ..Reader::default() };
    loop {
        let now = tokio::time::Instant::now();
        // A reader that has records returns them with what is there; others wait.
        let patience = match reader.records.is_empty() {
            true => DELIVERY.max(deadline.saturating_duration_since(now)),
            false => DELIVERY,
        };
        let fetch = consumer.batch().max_messages(BATCH).expires(patience);
        let mut batch = fetch.messages().await.map_err(|e| failed(&e))?;
        let mut count = 0;
        while let Some(message) = batch.next().await {
            let message = message.map_err(|error| unreachable("the mirrored records", &error))?;
            count += 1;
            let pending = message.info().map_or(0, |info| info.pending);
            let seq = message.headers.as_ref().map_or(0, seq_of);
            let is_done = reader.take(seq, &message.payload)?;
            if is_done || (pending == 0 && !reader.records.is_empty()) {
                return Ok(reader.answer());
            }
        }
        let is_late = tokio::time::Instant::now() >= deadline;
        if count == 0 && (is_late || !reader.records.is_empty()) {
            return Ok(reader.answer());
        }
    }
}

/// Finds where the stream has the record after a number: by halves, since a stream with records of
/// many sessions knows no record's place. Also returns the first number that it has of the session.
async fn start(
    stream: &Stream,
    subject: &str,
    after: u64,
) -> Result<(DeliverPolicy, Option<u64>), Failure> {
    let located = |found: Result<StreamMessage, LastRawMessageError>| match found {
        Ok(message) => Ok(Some((seq_of(&message.headers), message.sequence))),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(unreachable("the mirrored records", &chain(&error))),
    };
    let Some((first, mut low)) =
        located(stream.get_first_raw_message_by_subject(subject, 1).await)?
    else {
        return Ok((DeliverPolicy::All, None));
    };
    let Some((last, mut high)) = located(stream.get_last_raw_message_by_subject(subject).await)?
    else {
        return Ok((DeliverPolicy::All, Some(first)));
    };
    if after >= last {
        low = high + 1;
    }
    while after > first && after < last && high - low > BATCH as u64 {
        let middle = low + (high - low) / 2;
        let found = stream.get_first_raw_message_by_subject(subject, middle).await;
        match located(found)? {
            Some((seq, at)) if seq <= after => low = at,
            _ => high = middle,
        }
    }
    Ok((DeliverPolicy::ByStartSequence { start_sequence: low }, Some(first)))
}

/// Number of a record in its session; 0 if the header has none, which is not a record of Cairn.
fn seq_of(headers: &HeaderMap) -> u64 {
    headers.get(SEQ_HEADER).and_then(|seq| seq.as_str().parse().ok()).unwrap_or(0)
}

#[derive(Default)]
struct Reader {
    after: u64,
    limit: usize,
    /// First record of the session that the broker has.
    first: Option<u64>,
    /// Last record that was delivered, 0 for none.
    last: u64,
    bytes: usize,
    records: Vec<Value>,
}

impl Reader {
    /// Takes a message; true if the answer is complete.
    fn take(&mut self, seq: u64, payload: &[u8]) -> Result<bool, Failure> {
        let first = *self.first.get_or_insert(seq);
        // Reading begins at the record that is asked for, or a few before it.
        let follows = match self.last {
            0 => seq <= first.max(self.after + 1),
            last => seq == last + 1,
        };
        if !follows {
            let before = self.last.max(self.after);
            let text = format!("record {seq} follows record {before} on the broker");
            return Err(Failure::new(Reason::BadTrace, text));
        }
        self.last = seq;
        if seq <= self.after {
            return Ok(false);
        }
        let record = serde_json::from_slice(payload).map_err(|error| {
            Failure::new(Reason::BadTrace, format!("record {seq} on the broker: {error}"))
        })?;
        self.records.push(record);
        self.bytes += payload.len();
        Ok(self.records.len() >= self.limit || self.bytes >= MAX_BYTES)
    }

    fn answer(self) -> FleetRecords {
        let first = self.first.filter(|first| *first > 1);
        FleetRecords { records: self.records, first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_errors_and_a_cut_beginning_is_named() {
        let mut reader = Reader { after: 4, limit: 2, ..Reader::default() };
        assert!(!reader.take(4, b"{}").unwrap());
        assert!(!reader.take(5, b"{}").unwrap());
        assert_eq!(reader.take(7, b"{}").unwrap_err().reason, Reason::BadTrace);
        let mut reader = Reader { after: 4, limit: 2, ..Reader::default() };
        for seq in 3..=5 {
            assert!(!reader.take(seq, b"{}").unwrap());
        }
        assert!(reader.take(6, b"{}").unwrap());
        let answer = reader.answer();
        assert_eq!((answer.first, answer.records.len()), (Some(3), 2));
    }
}
