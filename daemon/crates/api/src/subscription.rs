//! Subscriptions: each has its own follower of the log, at the pace of its client.

use std::sync::atomic::Ordering;

use cairn_engine::record::{Follower, Line, Step};
use cairn_protocol::{
    error::{Failure, Reason},
    id::{SessionId, SubscriptionId},
    rpc,
    session::{
        After, Empty, LaggedNotification, SubscribeParams, SubscribeResult, SyncedNotification,
        UnsubscribeParams,
    },
};
use tokio::sync::oneshot;

use crate::{
    connection::{Caller, Connection, MAX_FOLLOWED, lock},
    message,
    outgoing::{Outgoing, SharedText},
};

/// Starts to follow a session. The events come after the answer.
pub async fn subscribe(
    caller: Caller,
    params: SubscribeParams,
) -> Result<SubscribeResult, Failure> {
    let connection = caller.connection.clone();
    let limit = caller.api().limits.max_subscriptions as usize;
    let full = || {
        Failure::new(
            Reason::Overloaded,
            format!("{limit} subscriptions are already open on this connection"),
        )
    };
    if lock(&connection.inner.subscriptions).len() >= limit {
        return Err(full());
    }
    let after = params.after.unwrap_or(After::Seq(0));
    let (follower, session) =
        caller.api().engine.trace().follow(&params.session_id, &after).await?;
    let id = name(&connection, &params.session_id);
    let (start, started) = oneshot::channel::<()>();
    let task =
        tokio::spawn(run(connection.clone(), id.clone(), params.session_id, follower, started));
    {
        let mut subscriptions = lock(&connection.inner.subscriptions);
        if subscriptions.len() >= limit {
            task.abort();
            return Err(full());
        }
        subscriptions.insert(id.clone(), task.abort_handle());
    }
    caller.api().counters.subscriptions.fetch_add(1, Ordering::SeqCst);
    caller.after_answer(move || {
        let _task_aborted = start.send(());
    });
    Ok(SubscribeResult {
        subscription_id: id,
        head_seq: session.head_seq,
        oldest_seq: session.head_seq.min(1),
    })
}

/// The first subscription to a session has the same id on every connection, so that an event is
/// rendered once for all followers; further ones on the same connection have their own ids.
fn name(connection: &Connection, session: &SessionId) -> SubscriptionId {
    let mut followed = lock(&connection.inner.followed);
    let first = followed.len() < MAX_FOLLOWED && followed.insert(session.clone());
    if first { SubscriptionId::of(session) } else { SubscriptionId::new() }
}

/// Stops following a session.
pub async fn unsubscribe(caller: Caller, params: UnsubscribeParams) -> Result<Empty, Failure> {
    let id = params.subscription_id;
    if end(&caller.connection, &id) {
        return Ok(Empty {});
    }
    Err(Failure::new(
        Reason::SubscriptionNotFound,
        format!("there is no subscription {id} on this connection"),
    ))
}

fn end(connection: &Connection, id: &SubscriptionId) -> bool {
    let Some(task) = lock(&connection.inner.subscriptions).remove(id) else { return false };
    connection.inner.api.counters.subscriptions.fetch_sub(1, Ordering::SeqCst);
    task.abort();
    true
}

async fn run(
    connection: Connection,
    id: SubscriptionId,
    session: SessionId,
    mut follower: Follower,
    started: oneshot::Receiver<()>,
) {
    if started.await.is_err() {
        // The call was cancelled at the last moment, so the client does not know the id.
        end(&connection, &id);
        return;
    }
    // The record is spliced in as stored; only the subscription's id is added.
    let head = format!(
        r#"{{"jsonrpc":"2.0","method":"{}","params":{{"subscriptionId":"{id}","#,
        rpc::EVENT
    );
    let shared = id == SubscriptionId::of(&session);
    let text = |line: &Line| match shared {
        true => SharedText::of(line, |line| frame(&head, line)),
        false => frame(&head, line).into(),
    };
    loop {
        let message = match follower.step().await {
            Ok(Step::Records(lines) | Step::Ephemeral(lines)) => {
                Outgoing::Many(lines.iter().map(text).collect())
            }
            Ok(Step::Synced(seq)) => {
                let note = SyncedNotification { subscription_id: id.clone(), seq };
                Outgoing::One(message::notification(rpc::SYNCED, &note))
            }
            Ok(Step::Lagged(from_seq)) => {
                let note = LaggedNotification { subscription_id: id.clone(), from_seq };
                Outgoing::One(message::notification(rpc::LAGGED, &note))
            }
            Ok(Step::Deleted) => {
                break notify_removed(&connection, &id, "the session was deleted").await;
            }
            Err(cause) => {
                tracing::error!(%session, %cause, "a subscription cannot read the log");
                break notify_removed(&connection, &id, &cause.to_string()).await;
            }
        };
        if connection.inner.out.send(message).await.is_err() {
            break;
        }
    }
    end(&connection, &id);
}

/// Joins `head` and a record with a single exact allocation.
fn frame(head: &str, line: &str) -> String {
    let rest = line.get(1..).unwrap_or("}");
    let mut text = String::with_capacity(head.len() + rest.len() + 1);
    text.push_str(head);
    text.push_str(rest);
    text.push('}');
    text
}

/// Notifies the client that the daemon ended the subscription.
async fn notify_removed(connection: &Connection, id: &SubscriptionId, why: &str) {
    let note =
        serde_json::json!({"subscriptionId": id, "reason": Reason::Gone.as_str(), "message": why});
    connection.reply(message::notification(rpc::GONE, &note)).await;
}
