//! Notifications of approvals that wait: a person who looks at the session answers before one is
//! sent. Those of unattended runs are events of the runs.

use std::{collections::VecDeque, time::Duration};

use cairn_engine::Engine;
use cairn_protocol::approval::ApprovalNotice;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};

use super::desktop;

/// Time that an approval waits before the desktop is notified.
const PATIENCE: Duration = Duration::from_secs(10);
/// Approvals that can wait for their notification; further ones send none.
const MAX_PENDING: usize = 64;

/// Approvals that were requested lately, oldest first.
#[derive(Default)]
struct PendingApprovals(VecDeque<(Instant, ApprovalNotice)>);

impl PendingApprovals {
    fn update(&mut self, notice: ApprovalNotice, now: Instant) {
        self.0.retain(|(_, pending)| pending.approval_id != notice.approval_id);
        if notice.decision.is_none() && self.0.len() < MAX_PENDING {
            self.0.push_back((now + PATIENCE, notice));
        }
    }

    /// Returns the time of the next notification.
    fn next(&self) -> Option<Instant> {
        self.0.front().map(|(at, _)| *at)
    }

    /// Removes the oldest approval if it has waited long enough.
    fn take(&mut self, now: Instant) -> Option<ApprovalNotice> {
        let (at, _) = self.0.front()?;
        if *at > now { None } else { self.0.pop_front().map(|(_, notice)| notice) }
    }
}

/// Notifies the desktop until the engine stops.
pub async fn run(engine: Engine, mut notices: Receiver<ApprovalNotice>) {
    let mut pending = PendingApprovals::default();
    loop {
        let next = async {
            match pending.next() {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            notice = notices.recv() => match notice {
                Ok(notice) => pending.update(notice, Instant::now()),
                // A missed answer leaves an approval that is notified once too often.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            () = next => {
                while let Some(notice) = pending.take(Instant::now()) {
                    if !engine.is_unattended(&notice.session_id) {
                        desktop::notify("Cairn waits for your answer", &text(&notice)).await;
                    }
                }
            }
        }
    }
}

fn text(notice: &ApprovalNotice) -> String {
    format!("{}\nAnswer in 'cairn viewer', in a chat, or with 'cairn approvals'.", notice.summary)
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        approval::ApprovalDecision,
        id::{ApprovalId, SessionId},
        time::Timestamp,
    };

    use super::*;

    fn notice() -> ApprovalNotice {
        ApprovalNotice {
            approval_id: ApprovalId::new(),
            session_id: SessionId::new(),
            tool: "run_shell".into(),
            summary: "run_shell make".into(),
            expires_at: Timestamp::now(),
            decision: None,
        }
    }

    #[test]
    fn only_approvals_that_wait_are_notified() {
        let start = Instant::now();
        let mut pending = PendingApprovals::default();
        let (answered, waiting) = (notice(), notice());
        pending.update(answered.clone(), start);
        pending.update(waiting.clone(), start);
        assert!(pending.take(start).is_none() && pending.next() == Some(start + PATIENCE));
        let decision = Some(ApprovalDecision::Once);
        pending.update(ApprovalNotice { decision, ..answered }, start);
        assert_eq!(pending.take(start + PATIENCE), Some(waiting));
        assert!(pending.take(start + PATIENCE).is_none() && pending.next().is_none());
    }

    #[test]
    fn number_of_pending_notifications_is_bounded() {
        let mut pending = PendingApprovals::default();
        (0..500).for_each(|_| pending.update(notice(), Instant::now()));
        assert_eq!(pending.0.len(), MAX_PENDING);
    }
}
