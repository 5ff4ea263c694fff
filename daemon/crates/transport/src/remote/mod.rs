//! Remote control: connections from the network, and the pairing of devices.

mod abortable_stream;
mod browser;
mod codes;
mod connection_limit;
mod devices;
mod listener;
mod pair;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use cairn_pairing::{Identity, IdentityError, Pin, TlsError, exchange, server_config};
use cairn_protocol::{
    error::{Failure, Reason},
    location::DataRoot,
    remote::{Device, DeviceRef, PAGE_FRAGMENT, PairBeginParams, PairOffer, PairStatus},
    time::Timestamp,
};
use rustls::ServerConfig;

pub use browser::{BrowserConnection, pair_browser};
pub use devices::Entry;
pub use listener::{Peer, TlsListener};
pub use pair::pair;

use self::{
    codes::{Codes, NewCodes, Refusal, Terms},
    devices::{Credential, Devices},
};

/// The reason why remote control is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The daemon's key cannot be loaded or created.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The daemon's key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The list of devices cannot be read.
    #[error(transparent)]
    Devices(#[from] Failure),
}

/// Listener for paired devices, with its identity.
struct Listening {
    identity: Arc<Identity>,
    tls: Arc<ServerConfig>,
    addresses: Vec<String>,
    name: String,
}

/// The remote control of a daemon: its key, the paired devices, the active code.
pub struct Remote {
    devices: Devices,
    listening: Option<Listening>,
    pairing: Mutex<Pairing>,
}

#[derive(Default)]
struct Pairing {
    codes: Codes,
    /// The device that used the latest code.
    device: Option<Device>,
}

/// The addresses for devices.
#[derive(Debug, Clone)]
pub struct Lan {
    /// `host:port` of each listener.
    pub addresses: Vec<String>,
    /// The daemon's display name.
    pub name: String,
}

impl Remote {
    /// Opens the keys and devices of a data root. Without `lan` there is no listener, but devices
    /// can be listed and revoked.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(root: &DataRoot, lan: Option<Lan>) -> Result<Arc<Self>, RemoteError> {
        let path: PathBuf = root.devices_json();
        let listening = match lan {
            Some(Lan { addresses, name }) => {
                let identity = Identity::load_with_certificate(&root.daemon_key())?;
                let tls = server_config(&identity)?;
                Some(Listening { identity, tls, addresses, name })
            }
            None => None,
        };
        Ok(Arc::new(Self { devices: Devices::open(path)?, listening, pairing: Mutex::default() }))
    }

    /// Returns the hash of the daemon's key, if a listener for devices exists.
    pub fn key(&self) -> Option<Pin> {
        self.listening.as_ref().map(|l| l.identity.pin())
    }

    /// Returns the daemon's key and TLS configuration, if a listener exists.
    fn tls(&self) -> Option<(Pin, Arc<ServerConfig>)> {
        self.listening.as_ref().map(|l| (l.identity.pin(), Arc::clone(&l.tls)))
    }

    fn device(&self, key: &Pin) -> Option<Arc<Entry>> {
        self.devices.find(Credential::Machine(*key))
    }

    /// Returns the paired browser with this secret.
    pub fn browser(&self, secret: &str) -> Option<Arc<Entry>> {
        self.devices.find(Credential::Browser(Pin::of_secret(secret)))
    }

    /// Returns the daemon's display name.
    fn name(&self) -> String {
        self.listening.as_ref().map(|l| l.name.clone()).unwrap_or_default()
    }

    fn pairing(&self) -> MutexGuard<'_, Pairing> {
        self.pairing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pairing {
    fn status(&mut self, now: Instant) -> PairStatus {
        let (state, tries_left) = self.codes.state(now);
        PairStatus { state, tries_left, device: self.device.clone() }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::new(Reason::PairingRefused, refusal.to_string())
    }
}

impl cairn_api::Remote for Remote {
    fn begin(&self, params: PairBeginParams) -> Result<PairOffer, Failure> {
        let off = || Failure::new(Reason::RemoteOff, "there is no listener for devices");
        let listening = self.listening.as_ref().ok_or_else(off)?;
        let name = params.name.map(|name| sanitise_name(&name)).transpose()?;
        let code = random_code()?;
        let page = browser::random_hex::<16>()?;
        let codes = NewCodes { machine: code.clone(), page: page.clone() };
        let mut pairing = self.pairing();
        pairing.codes.begin(Instant::now(), codes, Terms { rights: params.rights, name })?;
        pairing.device = None;
        let life = i64::try_from(codes::CODE_LIFETIME.as_millis()).unwrap_or(i64::MAX);
        Ok(PairOffer {
            code: exchange::format_code(&code),
            expires_at: Timestamp(Timestamp::now().0.saturating_add(life)),
            tries: codes::MAX_ATTEMPTS,
            addresses: listening.addresses.clone(),
            key: listening.identity.pin().to_string(),
            page: Some(format!("/viewer#{PAGE_FRAGMENT}{page}")),
            certificate: Some(listening.identity.certificate_fingerprint()),
        })
    }

    fn status(&self) -> PairStatus {
        self.pairing().status(Instant::now())
    }

    fn cancel(&self) -> PairStatus {
        let mut pairing = self.pairing();
        let now = Instant::now();
        pairing.codes.cancel(now);
        pairing.status(now)
    }

    fn devices(&self) -> Vec<Device> {
        self.devices.list()
    }

    fn revoke(&self, device: &DeviceRef) -> Result<(), Failure> {
        self.devices.revoke(&device.id)?;
        tracing::info!(device = %device.id, "revoked");
        Ok(())
    }
}

/// Sanitises a device's name: it must not contain terminal control characters.
fn sanitise_name(name: &str) -> Result<String, Failure> {
    let clean: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    match clean.chars().count() {
        1..=exchange::NAME => Ok(clean),
        _ => {
            let text = format!("a device's name must have 1 to {} characters", exchange::NAME);
            Err(Failure::new(Reason::InvalidParams, text))
        }
    }
}

/// Returns a uniformly distributed code.
fn random_code() -> Result<String, Failure> {
    // Values above the largest multiple of the number of codes are rejected, because they would
    // favour some codes.
    let above = u32::MAX - u32::MAX % exchange::CODES;
    loop {
        let number = getrandom::u32()
            .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
        if number < above {
            return Ok(format!("{:0width$}", number % exchange::CODES, width = exchange::DIGITS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sanitised_and_codes_are_random() {
        for (name, expected) in [
            ("a laptop", Some("a laptop")),
            (" \u{1b}[2Jx ", Some("[2Jx")),
            ("", None),
            ("\n", None),
        ] {
            assert_eq!(sanitise_name(name).ok().as_deref(), expected, "{name:?}");
        }
        assert!(sanitise_name(&"ä".repeat(64)).is_ok() && sanitise_name(&"ä".repeat(65)).is_err());
        for _ in 0..1000 {
            let code = random_code().unwrap();
            assert_eq!(exchange::digits(&code).as_deref(), Some(&*code));
        }
    }
}
