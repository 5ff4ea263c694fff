//! Browsers on the listener for devices. A web page cannot use a key for TLS, so a paired browser
//! stores a secret instead, whose hash is in the list of devices.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use cairn_api::Api;
use cairn_pairing::Pin;
use cairn_protocol::{
    error::{Failure, Reason},
    remote::Right,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    Remote,
    connection_limit::ConnectionSlot,
    devices::{Credential, Entry, Open},
    listener::UNPAIRED_LIFETIME,
    pair::add_device,
    sanitise_name,
};

/// A connection without a key: it may load the page and pair, for a short time, until it presents
/// the secret of a paired browser.
pub struct BrowserConnection {
    /// Slot among the unknown peers, released when the browser is admitted.
    slot: Mutex<Option<ConnectionSlot>>,
    device: OnceLock<(Arc<Entry>, Open)>,
    admitted: CancellationToken,
}

impl std::fmt::Debug for BrowserConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrowserConnection").finish_non_exhaustive()
    }
}

impl BrowserConnection {
    pub(super) fn new(slot: ConnectionSlot) -> Arc<Self> {
        Arc::new(Self {
            slot: Mutex::new(Some(slot)),
            device: OnceLock::new(),
            admitted: CancellationToken::new(),
        })
    }

    /// Binds the connection to a paired browser: it ends with the pairing, and no sooner.
    pub fn admit(&self, device: &Arc<Entry>) {
        self.device.get_or_init(|| (Arc::clone(device), device.open()));
        self.admitted.cancel();
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Resolves when the connection must end.
    pub(super) async fn until_closed(self: Arc<Self>, evicted: CancellationToken) {
        tokio::select! {
            biased;
            () = self.admitted.cancelled() => {}
            _either = tokio::time::timeout(UNPAIRED_LIFETIME, evicted.cancelled()) => return,
        }
        if let Some((device, _)) = self.device.get() {
            device.abort.cancelled().await;
        }
    }
}

/// Answer to a browser that was paired; it stores the secret.
#[derive(Debug, Serialize)]
pub struct PairedBrowser {
    secret: String,
    /// Name of the daemon.
    server: String,
    rights: Vec<Right>,
}

/// Pairs the browser that sent the code of a page.
///
/// # Errors
/// `pairing_refused` when the code is not that of the active offer; `storage_failed`.
pub async fn pair_browser(
    remote: &Arc<Remote>,
    api: &Api,
    code: &str,
    name: &str,
) -> Result<PairedBrowser, Failure> {
    let declared_name = sanitise_name(name)?;
    let secret = random_hex::<32>()?;
    let terms = remote.pairing().codes.accept_page(Instant::now(), code)?;
    let credential = Credential::Browser(Pin::of_secret(&secret));
    let device = add_device(remote, api, terms, declared_name, credential).await?;
    tracing::info!(device = %device.id, name = device.name, rights = ?device.rights, "browser paired");
    Ok(PairedBrowser { secret, server: remote.name(), rights: device.rights })
}

/// Returns `N` random bytes as hexadecimal digits.
pub(super) fn random_hex<const N: usize>() -> Result<String, Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
    Ok(hex::encode(bytes))
}
