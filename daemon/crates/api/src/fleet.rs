//! The methods of a fleet: daemons that share a broker. The host implements them.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    fleet::{
        FleetCallParams, FleetRecords, FleetRecordsParams, FleetRun, FleetRunParams, FleetRunRef,
        FleetRunsParams, FleetStatus,
    },
    session::{Empty, Page},
};

use crate::{
    Rights,
    connection::Caller,
    method::{Audit, Method},
    rights::Right,
};

/// This daemon's part in a fleet.
#[async_trait::async_trait]
pub trait Fleet: Send + Sync {
    /// Returns the state of the broker, the daemons and their pools.
    ///
    /// # Errors
    /// `broker_unreachable`.
    async fn status(&self) -> Result<FleetStatus, Failure>;
    /// Adds a run to a pool, within the rights of its sender.
    ///
    /// # Errors
    /// `invalid_params`, `too_large`, `broker_unreachable`.
    async fn run(&self, params: FleetRunParams, rights: Rights) -> Result<FleetRun, Failure>;
    /// Returns the runs of a pool, those that changed last first.
    ///
    /// # Errors
    /// `invalid_params`, `pool_run_not_found`, `broker_unreachable`.
    async fn runs(&self, params: FleetRunsParams) -> Result<Page<FleetRun>, Failure>;
    /// Cancels a run of a pool.
    ///
    /// # Errors
    /// `pool_run_not_found`, `broker_unreachable`.
    async fn cancel(&self, target: FleetRunRef) -> Result<FleetRun, Failure>;
    /// Calls a method of another daemon, within the rights of the caller.
    ///
    /// # Errors
    /// `daemon_not_found`, `broker_unreachable`, and the errors of the method.
    async fn call(
        &self,
        params: FleetCallParams,
        rights: Rights,
        client: &str,
    ) -> Result<serde_json::Value, Failure>;
    /// Returns mirrored records of a session.
    ///
    /// # Errors
    /// `daemon_not_found`, `broker_unreachable`, `bad_trace`.
    async fn records(&self, params: FleetRecordsParams) -> Result<FleetRecords, Failure>;
}

pub fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "fleet.status",
            "The daemons that share a broker with this one, their sessions and pools.",
            |cx, _: Empty| async move { fleet(&cx)?.status().await },
        ),
        Method::new(
            "fleet.run",
            "Adds a run to a pool, which one of its daemons takes.",
            |cx, p: FleetRunParams| async move { fleet(&cx)?.run(p, cx.rights()).await },
        )
        .detached(Right::Prompt),
        Method::new(
            "fleet.runs",
            "The runs of a pool, those that changed last first.",
            |cx, p: FleetRunsParams| async move { fleet(&cx)?.runs(p).await },
        ),
        Method::new(
            "fleet.cancel",
            "Cancels a waiting or active run of a pool.",
            |cx, p: FleetRunRef| async move { fleet(&cx)?.cancel(p).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
        Method::new(
            "fleet.call",
            "Calls a method of another daemon, with the caller's rights.",
            |cx, p: FleetCallParams| async move {
                let client = cx.client_name().unwrap_or_default();
                fleet(&cx)?.call(p, cx.rights(), &client).await
            },
        )
        .detached(Right::Observe)
        .audit(Audit::BestEffort),
        Method::new(
            "fleet.records",
            "Records of a session of any daemon, as the broker has them.",
            |cx, p: FleetRecordsParams| async move { fleet(&cx)?.records(p).await },
        ),
    ]
}

fn fleet(cx: &Caller) -> Result<Arc<dyn Fleet>, Failure> {
    let off = || Failure::new(Reason::FleetOff, "this daemon belongs to no fleet");
    cx.api().fleet.get().cloned().ok_or_else(off)
}
