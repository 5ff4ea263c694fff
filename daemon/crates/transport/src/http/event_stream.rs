//! Streams of events: an answer with the notifications that belong to it, or all notifications of a
//! connection.

use std::collections::{HashMap, HashSet};

use cairn_api::{Connection, FollowUp, Outgoing};
use cairn_protocol::rpc::{self, Frame};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    http_rpc::ConnectionOwner,
    http_sessions,
    sse::{Disconnected, KEEP_ALIVE_INTERVAL, Position, Stream},
};

/// The notifications of a connection.
pub enum Notes {
    /// Of a connection over several requests; returned when the stream ends.
    Session(OwnedMutexGuard<http_sessions::Notes>),
    /// Of a connection for one request.
    Request(mpsc::Receiver<Outgoing>),
}

/// The content of a stream.
pub struct Source {
    /// Notifications, if this stream delivers them.
    pub notes: Option<Notes>,
    /// Changes when another reader requests the notifications.
    pub takeover: Option<watch::Receiver<u64>>,
    /// A cancelled subscription whose last events must not be sent.
    pub replaced: Option<String>,
    /// The answer that the stream waits for; without one the stream continues until either side
    /// ends it.
    pub answer: Option<Pending>,
}

pub struct Pending {
    pub answers: mpsc::Receiver<Outgoing>,
    /// The calls that it answers.
    pub calls: Calls,
}

/// Calls by id, as JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Calls(HashMap<String, FollowUp>);

/// Outstanding work after the answer: paths, requests and subscriptions.
#[derive(Debug, Default)]
struct OutstandingWork(HashSet<String>);

/// Progress that was received before the answer, although the daemon sent it afterwards: both come
/// from separate queues.
#[derive(Debug, Default)]
struct EarlyProgress(Vec<String>);

/// Maximum number of messages stored until the answer. More cannot belong to the call, because its
/// own progress waits for its answer.
const MAX_EARLY: usize = 64;

impl EarlyProgress {
    /// Stores a message that a pending answer may announce, and returns any other.
    fn store(&mut self, pending: Option<&Pending>, text: String) -> Option<String> {
        let awaited = pending.is_some_and(|pending| !pending.calls.0.is_empty());
        let progress = |frame: Frame<'_>| {
            matches!(frame.method.as_deref(), Some(rpc::INDEX_PROGRESS | rpc::GIT_PROGRESS))
        };
        if !awaited || self.0.len() >= MAX_EARLY || !Frame::parse(&text).is_ok_and(progress) {
            return Some(text);
        }
        self.0.push(text);
        None
    }
}

/// Returns true if a message is a handshake and nothing else.
pub fn is_handshake(text: &str) -> bool {
    Frame::parse(text).is_ok_and(|frame| frame.method.as_deref() == Some("initialize"))
}

/// Returns the reason of an error answer.
pub fn error_reason(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    answer.get("error")?.get("data")?.get("reason")?.as_str().map(str::to_owned)
}

/// Returns true if an answer is an error.
pub fn is_error(text: &str) -> bool {
    Frame::parse(text).is_ok_and(|frame| frame.error.is_some())
}

/// Finds the calls of a message whose work continues after the answer. Events count only where no
/// other stream delivers them.
pub fn calls(text: &str, events: bool, follow_up_of: impl Fn(&str) -> Option<FollowUp>) -> Calls {
    let follow_up = |frame: &Frame<'_>| {
        let follow_up = follow_up_of(frame.method.as_deref()?)?;
        (events || follow_up != FollowUp::Events).then_some(follow_up)
    };
    let frames = Frame::parse_batch(text).unwrap_or_default();
    Calls(frames.iter().filter_map(|f| Some((f.id?.get().to_owned(), follow_up(f)?))).collect())
}

impl OutstandingWork {
    /// Records the work that the answers to `calls` announce.
    fn handle_answer(&mut self, calls: &Calls, text: &str) {
        for answer in Frame::parse_batch(text).unwrap_or_default() {
            let (Some(id), Some(result)) = (answer.id, answer.result) else { continue };
            let Some(follow_up) = calls.0.get(id.get()) else { continue };
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            self.0.extend(result[follow_up.key()].as_str().map(str::to_owned));
        }
    }

    /// Records the end of outstanding work.
    fn record_end(&mut self, text: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct End {
            done: Option<bool>,
            path: Option<String>,
            request_id: Option<String>,
            subscription_id: Option<String>,
        }
        if self.0.is_empty() {
            return;
        }
        let Ok(frame) = Frame::parse(text) else { return };
        let method = frame.method.as_deref();
        if !matches!(method, Some(rpc::INDEX_PROGRESS | rpc::GIT_PROGRESS | rpc::GONE)) {
            return;
        }
        let Some(end) = frame.params_as::<End>() else { return };
        if method == Some(rpc::GONE) {
            end.subscription_id.map(|id| self.0.remove(&id));
        } else if end.done == Some(true) {
            for key in [end.path, end.request_id].into_iter().flatten() {
                self.0.remove(&key);
            }
        }
    }
}

/// Calls a method on behalf of the transport. Answer and error are raw messages of the daemon.
pub async fn request(
    connection: &Connection,
    method: &str,
    params: &Value,
) -> Result<String, String> {
    let request =
        serde_json::json!({"jsonrpc": "2.0", "id": null, "method": method, "params": params});
    let (to, mut answers) = mpsc::channel(1);
    connection.handle_message_to(&request.to_string(), &to).await;
    drop(to);
    let answer =
        answers.recv().await.map(|answer| answer.into_texts().concat()).unwrap_or_default();
    if is_error(&answer) || answer.is_empty() { Err(answer) } else { Ok(answer) }
}

/// Resumes a session after `seq` by replacing its subscription, and returns the id of the replaced
/// one.
pub async fn resume(
    connection: &Connection,
    notes: &mut http_sessions::Notes,
    session: &str,
    seq: &str,
) -> Result<Option<String>, String> {
    // Without a subscription of that session there is nothing to resume.
    let Some(old) = notes.subscriptions.remove(session) else { return Ok(None) };
    let after: u64 = seq.parse().unwrap_or_default();
    let params = serde_json::json!({"subscriptionId": old});
    if request(connection, "orchestrate.unsubscribe", &params).await.is_err() {
        return Ok(None);
    }
    request(
        connection,
        "orchestrate.subscribe",
        &serde_json::json!({"sessionId": session, "after": after}),
    )
    .await?;
    Ok(Some(old))
}

impl Notes {
    fn receiver(&mut self) -> &mut mpsc::Receiver<Outgoing> {
        match self {
            Notes::Session(notes) => &mut notes.receiver,
            Notes::Request(receiver) => receiver,
        }
    }

    /// Remembers which subscription delivers the events of a session.
    fn remember(&mut self, text: &str) {
        let Notes::Session(notes) = self else { return };
        let position = Frame::parse(text).ok().and_then(|frame| Position::of(&frame));
        let Some(position) = position else { return };
        if notes
            .subscriptions
            .get(position.session_id)
            .is_none_or(|id| id != position.subscription_id)
        {
            notes
                .subscriptions
                .insert(position.session_id.to_owned(), position.subscription_id.to_owned());
        }
    }
}

async fn next(notes: &mut Option<Notes>) -> Option<Outgoing> {
    match notes {
        Some(notes) => notes.receiver().recv().await,
        None => std::future::pending().await,
    }
}

async fn answer(pending: &mut Option<Pending>) -> Option<Outgoing> {
    match pending {
        Some(pending) => pending.answers.recv().await,
        None => std::future::pending().await,
    }
}

async fn takeover(by: &mut Option<watch::Receiver<u64>>) {
    match by {
        // An error means that the connection was closed.
        Some(by) => by.changed().await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

/// Writes a source to its stream until it is finished, the client disconnects, or the daemon stops.
pub async fn run(
    stream: Stream,
    source: Source,
    owner: ConnectionOwner,
    shutdown: CancellationToken,
) {
    let mut reader = source.takeover.clone();
    tokio::select! {
        _disconnected = write(&stream, source) => {}
        () = takeover(&mut reader) => {}
        () = stream.closed() => {}
        () = shutdown.cancelled() => {}
    }
    drop(owner);
}

async fn write(stream: &Stream, source: Source) -> Result<(), Disconnected> {
    let has_answer = source.answer.is_some();
    let mut writer = Writer {
        stream,
        source,
        open: OutstandingWork::default(),
        early_progress: EarlyProgress::default(),
    };
    let mut alive = tokio::time::interval_at(
        tokio::time::Instant::now() + KEEP_ALIVE_INTERVAL,
        KEEP_ALIVE_INTERVAL,
    );
    loop {
        let source = &mut writer.source;
        tokio::select! {
            biased;
            notification = next(&mut source.notes) => match notification {
                Some(notification) => writer.notification(notification).await?,
                None => return Ok(()),
            },
            answer = answer(&mut source.answer) => match answer {
                Some(answer) => writer.handle_answer(answer).await?,
                None => return Ok(()),
            },
            _ = alive.tick() => stream.keep_alive().await?,
        }
        if has_answer && writer.source.answer.is_none() && writer.open.0.is_empty() {
            return Ok(());
        }
    }
}

/// Writes one source to its stream.
struct Writer<'a> {
    stream: &'a Stream,
    source: Source,
    open: OutstandingWork,
    early_progress: EarlyProgress,
}

impl Writer<'_> {
    async fn notification(&mut self, notification: Outgoing) -> Result<(), Disconnected> {
        for text in notification.into_texts() {
            if let Some(text) = self.early_progress.store(self.source.answer.as_ref(), text) {
                self.forward(&text).await?;
            }
        }
        Ok(())
    }

    async fn handle_answer(&mut self, answer: Outgoing) -> Result<(), Disconnected> {
        // Notifications sent before the answer were queued before it.
        while let Some(notification) =
            self.source.notes.as_mut().and_then(|n| n.receiver().try_recv().ok())
        {
            self.notification(notification).await?;
        }
        let pending = self.source.answer.take().filter(|_| self.source.notes.is_some());
        for text in answer.into_texts() {
            if let Some(pending) = &pending {
                self.open.handle_answer(&pending.calls, &text);
            }
            self.stream.send(&text).await?;
        }
        for text in std::mem::take(&mut self.early_progress.0) {
            self.forward(&text).await?;
        }
        Ok(())
    }

    async fn forward(&mut self, text: &str) -> Result<(), Disconnected> {
        if self.source.replaced.as_ref().is_some_and(|replaced| belongs_to(text, replaced)) {
            return Ok(());
        }
        if let Some(notes) = &mut self.source.notes {
            notes.remember(text);
        }
        self.open.record_end(text);
        self.stream.send(text).await
    }
}

/// Returns true if a notification belongs to the subscription.
fn belongs_to(text: &str, subscription: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Subscribed<'a> {
        #[serde(borrow)]
        subscription_id: std::borrow::Cow<'a, str>,
    }
    Frame::parse(text)
        .ok()
        .and_then(|frame| frame.params_as::<Subscribed<'_>>())
        .is_some_and(|of| of.subscription_id == subscription)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow_up_in_table(method: &str) -> Option<FollowUp> {
        cairn_api::methods::table().iter().find(|row| row.name == method)?.follow_up
    }

    #[test]
    fn notifications_are_matched_to_their_subscription() {
        for (method, params, is) in [
            (
                rpc::EVENT,
                r#"{"subscriptionId":"sub_1","sessionId":"ses_1","seq":7,"evt":{}}"#,
                true,
            ),
            (rpc::SYNCED, r#"{"subscriptionId":"sub_1","seq":7}"#, true),
            (rpc::LAGGED, r#"{"subscriptionId":"sub_1","fromSeq":7}"#, true),
            (rpc::SYNCED, r#"{"subscriptionId":"sub_2","seq":7}"#, false),
            (rpc::INDEX_PROGRESS, r#"{"path":"/a","done":true}"#, false),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            assert_eq!(belongs_to(&text, "sub_1"), is, "{text}");
        }
    }

    #[test]
    fn outstanding_work_is_tracked_until_done() {
        let one = r#"{"jsonrpc":"2.0","id":1,"method":"index.addRoot"}"#;
        let batch = r#"[{"id":"a","method":"git.clone"},{"id":2,"method":"orchestrate.subscribe"},{"id":3,"method":"x"}]"#;
        assert_eq!(
            calls(one, true, follow_up_in_table),
            Calls([("1".to_owned(), FollowUp::IndexProgress)].into())
        );
        assert_eq!(calls(batch, true, follow_up_in_table).0.len(), 2);
        assert_eq!(calls(batch, false, follow_up_in_table).0.len(), 1);
        assert_eq!(calls("half {", true, follow_up_in_table), Calls::default());
        let mut open = OutstandingWork::default();
        open.handle_answer(&calls(one, true, follow_up_in_table), r#"{"id":1,"error":{}}"#);
        assert!(open.0.is_empty());
        open.handle_answer(
            &calls(one, true, follow_up_in_table),
            r#"{"id":1,"result":{"root":"r","path":"/a"}}"#,
        );
        open.record_end(r#"{"method":"index.progress","params":{"path":"/a","done":false}}"#);
        open.record_end(r#"{"method":"index.progress","params":{"path":"/b","done":true}}"#);
        assert_eq!(open.0.len(), 1);
        open.record_end(r#"{"method":"index.progress","params":{"path":"/a","done":true}}"#);
        assert!(open.0.is_empty());
        open.handle_answer(
            &calls(batch, true, follow_up_in_table),
            r#"[{"id":"a","result":{"requestId":"q"}},{"id":2,"result":{"subscriptionId":"s"}}]"#,
        );
        open.record_end(r#"{"method":"orchestrate.gone","params":{"subscriptionId":"s"}}"#);
        open.record_end(r#"{"method":"git.progress","params":{"requestId":"q","done":true}}"#);
        assert!(open.0.is_empty());
    }

    #[test]
    fn handshakes_and_errors_are_recognised() {
        assert!(is_handshake(r#"{"id":1,"method":"initialize"}"#));
        assert!(!is_handshake(r#"[{"id":1,"method":"initialize"}]"#) && !is_handshake("half {"));
        assert!(is_error(r#"{"id":1,"error":{}}"#) && !is_error(r#"{"id":1,"result":{}}"#));
    }

    #[tokio::test]
    async fn early_progress_is_sent_after_its_receipt() {
        let progress = r#"{"method":"index.progress","params":{"path":"/a","done":true}}"#;
        let partial = r#"{"method":"search.partial","params":{}}"#;
        let receipt = r#"{"id":1,"result":{"root":"r","path":"/a"}}"#;
        let (notes, notification) = mpsc::channel(4);
        let (to, answers) = mpsc::channel(1);
        for text in [progress, partial] {
            notes.send(Outgoing::One(text.into())).await.unwrap();
        }
        to.send(Outgoing::One(receipt.into())).await.unwrap();
        let answer = Some(Pending {
            answers,
            calls: calls(r#"{"id":1,"method":"index.addRoot"}"#, true, follow_up_in_table),
        });
        let (stream, response) = super::super::sse::response(super::super::sse::Format::Messages);
        let source = Source {
            notes: Some(Notes::Request(notification)),
            takeover: None,
            replaced: None,
            answer,
        };
        let _written = tokio::join!(write(&stream, source)).0;
        drop(stream);
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        let body = String::from_utf8(body.into()).unwrap();
        let at = |text: &str| body.find(text).unwrap();
        assert!(at(partial) < at(receipt) && at(receipt) < at(progress), "{body}");
    }
}
