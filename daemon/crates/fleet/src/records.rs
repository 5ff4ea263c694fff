//! Reading the mirrored records of a session: by their numbers, without gaps.

use std::time::Duration;

use async_nats::jetstream::{
    consumer::{AckPolicy, DeliverPolicy, pull},
    stream::Stream,
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
    let config = pull::Config {
        filter_subject: subject,
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        inactive_threshold: MAX_WAIT * 2,
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(|e| failed(&e))?;
    let mut reader = Reader { after: params.after, limit, ..Reader::default() };
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
            let headers = message.headers.as_ref();
            let seq = headers.and_then(|h| h.get(SEQ_HEADER)).and_then(|v| v.as_str().parse().ok());
            let is_done = reader.take(seq.unwrap_or(0), &message.payload)?;
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

#[derive(Default)]
struct Reader {
    after: u64,
    limit: usize,
    first: Option<u64>,
    last: u64,
    bytes: usize,
    records: Vec<Value>,
}

impl Reader {
    /// Takes a message; true if the answer is complete.
    fn take(&mut self, seq: u64, payload: &[u8]) -> Result<bool, Failure> {
        if self.first.is_none() {
            self.first = Some(seq);
        } else if seq != self.last + 1 {
            let text = format!("record {seq} follows record {} on the broker", self.last);
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
