//! Items of a followed session, and live progress.

use std::sync::Arc;

use cairn_protocol::{
    approval::ApprovalNotice,
    envelope::Envelope,
    git::GitProgress,
    id::SubscriptionId,
    index::IndexProgress,
    rpc,
    search::{GrepPartial, SearchPartial},
    session::{LaggedNotification, SyncedNotification},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, mpsc};

use crate::{ClientError, dispatch::Shared};

/// A record of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Sequence number of the record.
    pub seq: u64,
    /// JSON of the record, byte for byte as in the log.
    pub json: String,
}

impl Record {
    /// The record as a typed value.
    ///
    /// # Errors
    /// Fails for a kind of record that this build does not know.
    pub fn envelope(&self) -> Result<Envelope, ClientError> {
        serde_json::from_str(&self.json)
            .map_err(|e| ClientError::Protocol(format!("record {}: {e}", self.seq)))
    }
}

/// Item of a stream of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The next record of the session.
    Event(Record),
    /// JSON of a live-only event without a sequence number. Later records contain its content in
    /// larger pieces.
    Live(String),
    /// All records up to this number were sent; later ones are live.
    Synced(u64),
    /// This client fell behind and is now served from the log, from this record on, without loss.
    Lagged(u64),
}

/// Message from the dispatcher to a stream.
#[derive(Debug)]
pub(crate) enum Step {
    Item(Item),
    Gone(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventHead {
    subscription_id: SubscriptionId,
    #[serde(default)]
    seq: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoneNote {
    subscription_id: SubscriptionId,
    #[serde(default)]
    message: String,
}

impl Step {
    /// Returns the subscription and step of a notification if it belongs to a stream.
    pub(crate) fn read(method: &str, params: &RawValue) -> Option<(SubscriptionId, Step)> {
        let text = params.get();
        match method {
            rpc::EVENT => {
                let head: EventHead = serde_json::from_str(text).ok()?;
                let json = record_json(text, &head.subscription_id)?;
                let item = match head.seq {
                    Some(seq) => Item::Event(Record { seq, json }),
                    None => Item::Live(live_event(&json)?),
                };
                Some((head.subscription_id, Step::Item(item)))
            }
            rpc::SYNCED => {
                let note: SyncedNotification = serde_json::from_str(text).ok()?;
                Some((note.subscription_id, Step::Item(Item::Synced(note.seq))))
            }
            rpc::LAGGED => {
                let note: LaggedNotification = serde_json::from_str(text).ok()?;
                Some((note.subscription_id, Step::Item(Item::Lagged(note.from_seq))))
            }
            rpc::GONE => {
                let note: GoneNote = serde_json::from_str(text).ok()?;
                Some((note.subscription_id, Step::Gone(note.message)))
            }
            _ => None,
        }
    }
}

/// Returns the event of a live-only notification.
fn live_event(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        evt: &'a RawValue,
    }
    serde_json::from_str::<Body<'_>>(json).ok().map(|body| body.evt.get().to_owned())
}

/// Returns the record inside the parameters of an event: the parameters are the record, with the
/// subscription's id in front.
fn record_json(params: &str, id: &SubscriptionId) -> Option<String> {
    if let Some(rest) = params.strip_prefix(&format!(r#"{{"subscriptionId":"{id}","#)) {
        return Some(format!("{{{rest}"));
    }
    let mut value: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(params).ok()?;
    value.remove("subscriptionId");
    serde_json::to_string(&value).ok()
}

/// The records of one subscription.
///
/// Its queue is bounded: while it is full, nothing more is read from the connection, not even
/// answers. Read it from a separate task when calls use the same client, or follow over a separate
/// connection with [`Client::follow`](crate::Client::follow).
pub struct EventStream {
    pub(crate) id: SubscriptionId,
    /// Newest record when the subscription started.
    pub head_seq: u64,
    pub(crate) records: mpsc::Receiver<Step>,
    pub(crate) link: Arc<crate::client::Link>,
}

impl EventStream {
    /// Returns the next item.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the connection closed, [`ClientError::Gone`] when the session
    /// was deleted.
    pub async fn next(&mut self) -> Result<Item, ClientError> {
        match self.records.recv().await {
            Some(Step::Item(item)) => Ok(item),
            Some(Step::Gone(why)) => Err(ClientError::Gone(why)),
            None => Err(self.shared().closed_error()),
        }
    }

    fn shared(&self) -> &Shared {
        &self.link.shared
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.shared().remove_stream(&self.id);
    }
}

/// Live progress of a request of this connection, or an approval elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// Progress of an index.
    Index(IndexProgress),
    /// Progress of a clone.
    Git(Box<GitProgress>),
    /// Partial results of a search.
    Partial(Box<SearchPartial>),
    /// The next lines of a grep search.
    Lines(Box<GrepPartial>),
    /// An approval of a session that this connection does not follow is pending or was answered;
    /// for clients that answer approvals.
    Approval(Box<ApprovalNotice>),
}

impl Notice {
    pub(crate) fn read(method: &str, params: &RawValue) -> Option<Notice> {
        match method {
            rpc::INDEX_PROGRESS => serde_json::from_str(params.get()).ok().map(Notice::Index),
            rpc::GIT_PROGRESS => serde_json::from_str(params.get()).ok().map(Notice::Git),
            rpc::SEARCH_PARTIAL => serde_json::from_str(params.get())
                .map(Notice::Partial)
                .or_else(|_| serde_json::from_str(params.get()).map(Notice::Lines))
                .ok(),
            rpc::APPROVAL_UPDATED => serde_json::from_str(params.get()).ok().map(Notice::Approval),
            _ => None,
        }
    }
}

/// Stream of progress messages since its creation. Live only: a slow reader misses the oldest
/// messages.
pub struct Notices(pub(crate) broadcast::Receiver<Notice>);

impl Notices {
    /// Returns the next message; `None` after the connection closed.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            match self.0.recv().await {
                Ok(notice) => return Some(notice),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_extracted_unchanged() {
        let id = SubscriptionId::new();
        let record = r#"{"sessionId":"s","seq":7,"x":{"y": 1.50}}"#;
        let spliced = format!(r#"{{"subscriptionId":"{id}",{}"#, &record[1..]);
        assert_eq!(record_json(&spliced, &id).unwrap(), record);
        let elsewhere = format!(r#"{{"seq":7,"subscriptionId":"{id}"}}"#);
        assert_eq!(record_json(&elsewhere, &id).unwrap(), r#"{"seq":7}"#);
    }

    #[test]
    fn approval_of_another_session_is_a_notice() {
        let approval = cairn_protocol::id::ApprovalId::new();
        let session = cairn_protocol::id::SessionId::new();
        let text = format!(
            r#"{{"approvalId":"{approval}","sessionId":"{session}","tool":"run_shell","summary":"make","expiresAt":"2026-11-26T14:00:00Z","decision":"once","later":1}}"#
        );
        let params = RawValue::from_string(text).unwrap();
        let notice = Notice::read(rpc::APPROVAL_UPDATED, &params);
        let Some(Notice::Approval(notice)) = notice else { panic!("{notice:?}") };
        assert_eq!((notice.approval_id, notice.tool.as_str()), (approval, "run_shell"));
        assert!(Notice::read("approval.unknown", &params).is_none());
    }
}
