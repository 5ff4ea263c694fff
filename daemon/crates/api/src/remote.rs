//! The methods of remote control. The host implements them.

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

/// Pairing and paired devices.
pub trait Remote: Send + Sync {
    /// Creates a pairing code and invalidates an earlier one.
    ///
    /// # Errors
    /// `remote_off` when there is no listener for devices; `pairing_refused` after too many codes.
    fn begin(&self, params: PairBeginParams) -> Result<PairOffer, Failure>;
    /// Returns the state of the latest code.
    fn status(&self) -> PairStatus;
    /// Cancels the pairing and invalidates its code.
    fn cancel(&self) -> PairStatus;
    /// Lists the paired devices in the order of their pairing.
    fn devices(&self) -> Vec<Device>;
    /// Removes a device and closes its connections. This may wait for the disk.
    ///
    /// # Errors
    /// `device_not_found`; `storage_failed`, in which case the device is locked out until the
    /// daemon restarts.
    fn revoke(&self, device: &DeviceRef) -> Result<(), Failure>;
}

/// Every method needs the right `admin`.
pub fn methods() -> Vec<Method> {
    vec![
        Method::new("pair.begin", "Creates a code that pairs one device, once.", begin)
            .detached(Right::Admin),
        Method::new("pair.status", "The state of the latest code.", |cx, _: Empty| async move {
            Ok(remote(&cx)?.status())
        })
        .detached(Right::Admin)
        .audit(Audit::None),
        Method::new("pair.cancel", "Cancels the latest code.", |cx, _: Empty| async move {
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
            "Removes a paired device and closes its connections.",
            |cx, device: DeviceRef| async move {
                let remote = remote(&cx)?;
                let revoked = tokio::task::spawn_blocking(move || remote.revoke(&device));
                let failed =
                    |e| Failure::new(Reason::Internal, format!("the device was not revoked: {e}"));
                revoked.await.map_err(failed)?.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn remote(cx: &Caller) -> Result<Arc<dyn Remote>, Failure> {
    let none = || Failure::new(Reason::RemoteOff, "this host does not support remote control");
    cx.api().remote.get().cloned().ok_or_else(none)
}

async fn begin(cx: Caller, mut params: PairBeginParams) -> Result<PairOffer, Failure> {
    params.rights.sort_unstable();
    params.rights.dedup();
    if params.rights.is_empty() {
        return Err(Failure::new(Reason::InvalidParams, "rights must name at least one right"));
    }
    remote(&cx)?.begin(params)
}
