//! What a stream of events carries: an answer with what belongs to it, or all that a connection is told.

use std::collections::{HashMap, HashSet};

use cairn_api::{Connection, Outgoing};
use cairn_protocol::rpc;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    held,
    post::Keep,
    sse::{ALIVE_EVERY, Gone, Note, Stream},
};

/// Notifications, of a connection of one request or of many.
pub enum Notes {
    /// Of many: given back when the stream ends.
    Held(OwnedMutexGuard<held::Notes>),
    /// Of one.
    Once(mpsc::Receiver<Outgoing>),
}

/// What a stream carries.
pub struct Source {
    /// Notifications, if they are this stream's.
    pub notes: Option<Notes>,
    /// Changes when another reader wants the notifications.
    pub wanted: Option<watch::Receiver<u64>>,
    /// A subscription that was ended: its last events are not sent.
    pub left: Option<String>,
    /// The answer that it waits for; without one it goes on until somebody ends it.
    pub answer: Option<Pending>,
}

/// An answer on its way.
pub struct Pending {
    /// Brings it.
    pub answers: mpsc::Receiver<Outgoing>,
    /// The calls it answers.
    pub calls: Calls,
}

/// What a call may bring after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Progress of an index, until it is done.
    Index,
    /// Progress of a clone, until it is done.
    Clone,
    /// Events, until the session is gone.
    Subscription,
}

/// Calls by their id, as JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Calls(HashMap<String, After>);

/// What is still to come after the answer: paths, requests and subscriptions.
#[derive(Debug, Default)]
struct Open(HashSet<String>);

/// Progress that came out of its queue before the answer out of its own; the daemon tells it after the answer.
#[derive(Debug, Default)]
struct Early(Vec<String>);

/// Messages kept until the answer at most: beyond that they are of other calls, since a call's own wait for its answer.
const MAX_EARLY: usize = 64;

impl Early {
    /// Keeps a message that an answer still to come may announce; gives any other back.
    fn keep(&mut self, pending: Option<&Pending>, text: String) -> Option<String> {
        let awaited = pending.is_some_and(|pending| !pending.calls.0.is_empty());
        let progress = |note: Note<'_>| [rpc::INDEX_PROGRESS, rpc::GIT_PROGRESS].contains(&note.method);
        if !awaited || self.0.len() >= MAX_EARLY || !Note::read(&text).is_some_and(progress) {
            return Some(text);
        }
        self.0.push(text);
        None
    }
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

fn several<'a, T: Deserialize<'a>>(text: &'a str) -> Vec<T> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    serde_json::from_str(text).into_iter().collect()
}

/// Whether a message is the handshake, alone.
pub fn is_handshake(text: &str) -> bool {
    serde_json::from_str::<Request<'_>>(text).is_ok_and(|r| r.method.as_deref() == Some("initialize"))
}

/// Why an answer is a refusal.
pub fn reason_of(text: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    answer.get("error")?.get("data")?.get("reason")?.as_str().map(str::to_owned)
}

/// Whether an answer is an error.
pub fn is_error(text: &str) -> bool {
    serde_json::from_str::<Answer<'_>>(text).is_ok_and(|a| a.error.is_some())
}

/// The calls of a message whose work goes on after the answer. Events are among it where nothing else can bring them.
pub fn calls(text: &str, events: bool) -> Calls {
    let after = |request: &Request<'_>| match request.method.as_deref()? {
        "index.addRoot" | "index.rebuild" => Some(After::Index),
        "git.clone" => Some(After::Clone),
        "orchestrate.subscribe" => events.then_some(After::Subscription),
        _ => None,
    };
    let all = several::<Request<'_>>(text);
    Calls(all.iter().filter_map(|r| Some((r.id?.get().to_owned(), after(r)?))).collect())
}

impl Open {
    /// Notes what the answers to `calls` announce.
    fn answered(&mut self, calls: &Calls, text: &str) {
        for answer in several::<Answer<'_>>(text) {
            let (Some(id), Some(result)) = (answer.id, answer.result) else { continue };
            let Some(after) = calls.0.get(id.get()) else { continue };
            let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
            let key = match after {
                After::Index => "path",
                After::Clone => "requestId",
                After::Subscription => "subscriptionId",
            };
            self.0.extend(result[key].as_str().map(str::to_owned));
        }
    }

    /// Notes the end of something.
    fn told(&mut self, text: &str) {
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
        let Some(note) = Note::read(text) else { return };
        if ![rpc::INDEX_PROGRESS, rpc::GIT_PROGRESS, rpc::GONE].contains(&note.method) {
            return;
        }
        let Some(end) = note.params::<End>() else { return };
        if note.method == rpc::GONE {
            end.subscription_id.map(|id| self.0.remove(&id));
        } else if end.done == Some(true) {
            for key in [end.path, end.request_id].into_iter().flatten() {
                self.0.remove(&key);
            }
        }
    }
}

/// Calls a method of a connection for the transport itself. Both the answer and the error are the daemon's words.
pub async fn ask(connection: &Connection, method: &str, params: &Value) -> Result<String, String> {
    let request = serde_json::json!({"jsonrpc": "2.0", "id": null, "method": method, "params": params});
    let (to, mut answers) = mpsc::channel(1);
    connection.handle_message_to(&request.to_string(), &to).await;
    drop(to);
    let answer = answers.recv().await.map(|answer| answer.into_texts().concat()).unwrap_or_default();
    if is_error(&answer) || answer.is_empty() { Err(answer) } else { Ok(answer) }
}

/// Goes on with a session after `seq`: its subscription is ended and made again. The answer is the ended one.
pub async fn resume(
    connection: &Connection,
    notes: &mut held::Notes,
    session: &str,
    seq: &str,
) -> Result<Option<String>, String> {
    // Nothing of that session is followed, or by nobody any more: there is nothing to go on with.
    let Some(old) = notes.subscriptions.remove(session) else { return Ok(None) };
    let after: u64 = seq.parse().unwrap_or_default();
    let gone = serde_json::json!({"subscriptionId": old});
    if ask(connection, "orchestrate.unsubscribe", &gone).await.is_err() {
        return Ok(None);
    }
    ask(connection, "orchestrate.subscribe", &serde_json::json!({"sessionId": session, "after": after}))
        .await?;
    Ok(Some(old))
}

impl Notes {
    fn receiver(&mut self) -> &mut mpsc::Receiver<Outgoing> {
        match self {
            Notes::Held(notes) => &mut notes.receiver,
            Notes::Once(receiver) => receiver,
        }
    }

    /// Remembers which subscription brings the events of a session.
    fn remember(&mut self, text: &str) {
        let Notes::Held(notes) = self else { return };
        let place = Note::read(text).and_then(|note| note.place());
        let Some(place) = place else { return };
        if notes.subscriptions.get(place.session_id).is_none_or(|id| id != place.subscription_id) {
            notes.subscriptions.insert(place.session_id.to_owned(), place.subscription_id.to_owned());
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

async fn wanted(by: &mut Option<watch::Receiver<u64>>) {
    match by {
        // An error means that the connection was ended.
        Some(by) => by.changed().await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

/// Writes a source to its stream until it is done, the client goes, or the daemon stops.
pub async fn run(stream: Stream, source: Source, keep: Keep, shutdown: CancellationToken) {
    let mut reader = source.wanted.clone();
    tokio::select! {
        _gone = write(&stream, source) => {}
        () = wanted(&mut reader) => {}
        () = stream.closed() => {}
        () = shutdown.cancelled() => {}
    }
    drop(keep);
}

async fn write(stream: &Stream, source: Source) -> Result<(), Gone> {
    let waits = source.answer.is_some();
    let mut writer = Writer { stream, source, open: Open::default(), early: Early::default() };
    let mut alive = tokio::time::interval_at(tokio::time::Instant::now() + ALIVE_EVERY, ALIVE_EVERY);
    loop {
        let source = &mut writer.source;
        tokio::select! {
            biased;
            told = next(&mut source.notes) => match told {
                Some(told) => writer.told(told).await?,
                None => return Ok(()),
            },
            answer = answer(&mut source.answer) => match answer {
                Some(answer) => writer.answered(answer).await?,
                None => return Ok(()),
            },
            _ = alive.tick() => stream.alive().await?,
        }
        if waits && writer.source.answer.is_none() && writer.open.0.is_empty() {
            return Ok(());
        }
    }
}

/// A source on its way to its stream.
struct Writer<'a> {
    stream: &'a Stream,
    source: Source,
    open: Open,
    early: Early,
}

impl Writer<'_> {
    async fn told(&mut self, told: Outgoing) -> Result<(), Gone> {
        for text in told.into_texts() {
            if let Some(text) = self.early.keep(self.source.answer.as_ref(), text) {
                self.tell(&text).await?;
            }
        }
        Ok(())
    }

    async fn answered(&mut self, answer: Outgoing) -> Result<(), Gone> {
        // What was told before the answer was queued before it.
        while let Some(told) = self.source.notes.as_mut().and_then(|n| n.receiver().try_recv().ok()) {
            self.told(told).await?;
        }
        let pending = self.source.answer.take().filter(|_| self.source.notes.is_some());
        for text in answer.into_texts() {
            if let Some(pending) = &pending {
                self.open.answered(&pending.calls, &text);
            }
            self.stream.send(&text).await?;
        }
        for text in std::mem::take(&mut self.early.0) {
            self.tell(&text).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, text: &str) -> Result<(), Gone> {
        if self.source.left.as_ref().is_some_and(|left| is_of(text, left)) {
            return Ok(());
        }
        if let Some(notes) = &mut self.source.notes {
            notes.remember(text);
        }
        self.open.told(text);
        self.stream.send(text).await
    }
}

/// Whether a notification belongs to that subscription: an event, or a word about its place in the log.
fn is_of(text: &str, subscription: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Of<'a> {
        #[serde(borrow)]
        subscription_id: std::borrow::Cow<'a, str>,
    }
    Note::read(text)
        .and_then(|note| note.params::<Of<'_>>())
        .is_some_and(|of| of.subscription_id == subscription)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_left_subscription_says_is_known_as_its_own() {
        for (method, params, is) in [
            (rpc::EVENT, r#"{"subscriptionId":"sub_1","sessionId":"ses_1","seq":7,"evt":{}}"#, true),
            (rpc::SYNCED, r#"{"subscriptionId":"sub_1","seq":7}"#, true),
            (rpc::LAGGED, r#"{"subscriptionId":"sub_1","fromSeq":7}"#, true),
            (rpc::SYNCED, r#"{"subscriptionId":"sub_2","seq":7}"#, false),
            (rpc::INDEX_PROGRESS, r#"{"path":"/a","done":true}"#, false),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            assert_eq!(is_of(&text, "sub_1"), is, "{text}");
        }
    }

    #[test]
    fn what_is_open_after_an_answer() {
        let one = r#"{"jsonrpc":"2.0","id":1,"method":"index.addRoot"}"#;
        let batch = r#"[{"id":"a","method":"git.clone"},{"id":2,"method":"orchestrate.subscribe"},{"id":3,"method":"x"}]"#;
        assert_eq!(calls(one, true), Calls([("1".to_owned(), After::Index)].into()));
        assert_eq!(calls(batch, true).0.len(), 2);
        assert_eq!(calls(batch, false).0.len(), 1);
        assert_eq!(calls("half {", true), Calls::default());
        let mut open = Open::default();
        open.answered(&calls(one, true), r#"{"id":1,"error":{}}"#);
        assert!(open.0.is_empty());
        open.answered(&calls(one, true), r#"{"id":1,"result":{"root":"r","path":"/a"}}"#);
        open.told(r#"{"method":"index.progress","params":{"path":"/a","done":false}}"#);
        open.told(r#"{"method":"index.progress","params":{"path":"/b","done":true}}"#);
        assert_eq!(open.0.len(), 1);
        open.told(r#"{"method":"index.progress","params":{"path":"/a","done":true}}"#);
        assert!(open.0.is_empty());
        open.answered(
            &calls(batch, true),
            r#"[{"id":"a","result":{"requestId":"q"}},{"id":2,"result":{"subscriptionId":"s"}}]"#,
        );
        open.told(r#"{"method":"orchestrate.gone","params":{"subscriptionId":"s"}}"#);
        open.told(r#"{"method":"git.progress","params":{"requestId":"q","done":true}}"#);
        assert!(open.0.is_empty());
    }

    #[test]
    fn handshakes_and_errors() {
        assert!(is_handshake(r#"{"id":1,"method":"initialize"}"#));
        assert!(!is_handshake(r#"[{"id":1,"method":"initialize"}]"#) && !is_handshake("half {"));
        assert!(is_error(r#"{"id":1,"error":{}}"#) && !is_error(r#"{"id":1,"result":{}}"#));
    }

    #[tokio::test]
    async fn progress_that_was_taken_first_comes_after_the_receipt_that_announces_it() {
        let progress = r#"{"method":"index.progress","params":{"path":"/a","done":true}}"#;
        let partial = r#"{"method":"search.partial","params":{}}"#;
        let receipt = r#"{"id":1,"result":{"root":"r","path":"/a"}}"#;
        let (notes, told) = mpsc::channel(4);
        let (to, answers) = mpsc::channel(1);
        for text in [progress, partial] {
            notes.send(Outgoing::One(text.into())).await.unwrap();
        }
        to.send(Outgoing::One(receipt.into())).await.unwrap();
        let answer = Some(Pending { answers, calls: calls(r#"{"id":1,"method":"index.addRoot"}"#, true) });
        let (stream, response) = crate::sse::response(crate::sse::Form::Messages);
        let source = Source { notes: Some(Notes::Once(told)), wanted: None, left: None, answer };
        let _written = tokio::join!(write(&stream, source)).0;
        drop(stream);
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        let body = String::from_utf8(body.into()).unwrap();
        let at = |text: &str| body.find(text).unwrap();
        assert!(at(partial) < at(receipt) && at(receipt) < at(progress), "{body}");
    }
}
