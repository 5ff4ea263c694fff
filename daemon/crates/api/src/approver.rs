//! Clients that answer approvals: each is counted while it is connected, and notified of the
//! approvals of sessions that it does not follow.

use std::sync::Weak;

use cairn_engine::Approver;
use cairn_protocol::{approval::ApprovalNotice, id::SubscriptionId, rpc};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::AbortHandle,
};

use crate::{
    connection::{Caller, Connection, Inner, lock},
    message,
};

/// The approver of one connection; it is counted and notified until this value is dropped.
pub struct ConnectedApprover {
    _counted: Approver,
    notifier: AbortHandle,
}

impl Drop for ConnectedApprover {
    fn drop(&mut self) {
        self.notifier.abort();
    }
}

/// Makes the caller's connection an approver. Notifications come after the answer.
pub(crate) fn join(caller: &Caller) {
    let engine = &caller.api().engine;
    // Subscribed before the approver counts: a request that waits for it is not missed.
    let notices = engine.approval_notices();
    let (start, started) = tokio::sync::oneshot::channel::<()>();
    let connection = std::sync::Arc::downgrade(&caller.connection.inner);
    let notifier = tokio::spawn(async move {
        if started.await.is_ok() {
            notify(notices, connection).await;
        }
    });
    let approver =
        ConnectedApprover { _counted: engine.approver(), notifier: notifier.abort_handle() };
    *lock(&caller.connection.inner.approver) = Some(approver);
    caller.after_answer(move || {
        let _task_aborted = start.send(());
    });
}

async fn notify(mut notices: Receiver<ApprovalNotice>, connection: Weak<Inner>) {
    loop {
        let notice = match notices.recv().await {
            Ok(notice) => notice,
            // The client reads `approval.list` for those that it missed.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some(inner) = connection.upgrade() else { return };
        // A subscription has the records of its session, with the complete approval.
        let followed = SubscriptionId::of(&notice.session_id);
        if lock(&inner.subscriptions).contains_key(&followed) {
            continue;
        }
        let text = message::notification(rpc::APPROVAL_UPDATED, &notice);
        Connection { inner }.reply(text).await;
    }
}
