//! The methods of remote control. Whoever hosts the API says how it is done.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    remote::{Device, DeviceRef, PairBeginParams, PairOffer, PairStatus, Right},
    session::{Empty, Page},
};

use crate::{
    connection::Caller,
    method::{Audit, Method},
};

/// Pairing and the devices that are paired.
pub trait Remote: Send + Sync {
    /// Makes a code; an earlier one is void.
    ///
    /// # Errors
    /// `remote_off` when nothing listens for devices; `pairing_refused` after too many codes.
    fn begin(&self, params: PairBeginParams) -> Result<PairOffer, Failure>;
    /// How the latest code stands.
    fn status(&self) -> PairStatus;
    /// Calls it off.
    fn cancel(&self) -> PairStatus;
    /// Those that are paired, in the order they came.
    fn devices(&self) -> Vec<Device>;
    /// Forgets a device and cuts its connections. This may wait for the disk.
    ///
    /// # Errors
    /// `device_not_found`; `storage_failed`, and then the device is cut off until the daemon starts again.
    fn revoke(&self, device: &DeviceRef) -> Result<(), Failure>;
}

/// All of them. Who may call them may change the daemon.
pub fn methods() -> Vec<Method> {
    vec![
        Method::new("pair.begin", "Makes a code that lets one device in, once.", begin)
            .detached(Right::Admin),
        Method::new("pair.status", "How the latest code stands.", |cx, _: Empty| async move {
            Ok(remote(&cx)?.status())
        })
        .detached(Right::Admin)
        .audit(Audit::None),
        Method::new("pair.cancel", "Makes the latest code void.", |cx, _: Empty| async move {
            Ok(remote(&cx)?.cancel())
        })
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
        Method::new("client.list", "The paired devices.", |cx, _: Empty| async move {
            Ok(Page::<Device> { data: remote(&cx)?.devices(), next_cursor: None })
        })
        .detached(Right::Admin)
        .audit(Audit::None),
        Method::new(
            "client.revoke",
            "Forgets a paired device; its connections are cut.",
            |cx, device: DeviceRef| async move {
                let remote = remote(&cx)?;
                let revoked = tokio::task::spawn_blocking(move || remote.revoke(&device));
                let failed = |e| Failure::new(Reason::Internal, format!("the device was not revoked: {e}"));
                revoked.await.map_err(failed)?.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn remote(cx: &Caller) -> Result<Arc<dyn Remote>, Failure> {
    let none = || Failure::new(Reason::RemoteOff, "this host has no remote control");
    cx.api().remote.get().cloned().ok_or_else(none)
}

async fn begin(cx: Caller, mut params: PairBeginParams) -> Result<PairOffer, Failure> {
    params.rights.sort_unstable();
    params.rights.dedup();
    if params.rights.is_empty() {
        return Err(Failure::new(Reason::InvalidParams, "rights must name one at least"));
    }
    remote(&cx)?.begin(params)
}
