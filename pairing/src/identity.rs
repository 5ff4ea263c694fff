//! Key of a machine, generated once.

use std::{io, path::Path, sync::Arc};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{Pin, write_private};

/// Reason why no key is available.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("the key {path} cannot be used: {cause}")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the system.
        cause: io::Error,
    },
    /// The file does not hold a key.
    #[error(
        "{path} contains no Cairn key: {cause}; delete the file to create a new key, and pair every \
        device again"
    )]
    Key {
        /// Path of the file.
        path: String,
        /// Error of reading or generating the key.
        cause: rcgen::Error,
    },
}

/// A key (ECDSA on P-256) and its self-signed certificate. Machines compare the key alone, so that
/// a certificate may be created at each start; browsers compare certificates, so that a listener
/// for them stores its own.
pub struct Identity {
    key: PrivatePkcs8KeyDer<'static>,
    certificate: CertificateDer<'static>,
    pin: Pin,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("pin", &self.pin).finish_non_exhaustive()
    }
}

impl Identity {
    /// Loads the key from a file, which is created (0600) if missing.
    ///
    /// # Errors
    /// Fails when the file is unusable or holds other content.
    pub fn load_or_make(path: &Path) -> Result<Arc<Self>, IdentityError> {
        let file = |cause| IdentityError::File { path: path.display().to_string(), cause };
        let key = |cause| IdentityError::Key { path: path.display().to_string(), cause };
        let pair = match std::fs::read_to_string(path) {
            Ok(text) => KeyPair::from_pem(&text).map_err(key)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(key)?;
                write_private(path, pair.serialize_pem().as_bytes()).map_err(file)?;
                pair
            }
            Err(error) => return Err(file(error)),
        };
        Self::of(&pair).map(Arc::new).map_err(key)
    }

    /// Loads the key as [`Self::load_or_make`] does, with a certificate that stays the same: it is
    /// stored beside the key, and replaced if it is not the key's.
    ///
    /// # Errors
    /// Fails when a file is unusable or the key's file holds other content.
    pub fn load_with_certificate(path: &Path) -> Result<Arc<Self>, IdentityError> {
        let identity = Self::load_or_make(path)?;
        let beside = path.with_extension("crt");
        let file = |cause| IdentityError::File { path: beside.display().to_string(), cause };
        match std::fs::read(&beside) {
            Ok(stored) => {
                let certificate = CertificateDer::from(stored);
                if Pin::of(&certificate).is_ok_and(|pin| pin == identity.pin) {
                    let key = identity.key.clone_key();
                    return Ok(Arc::new(Self { key, certificate, pin: identity.pin }));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(file(error)),
        }
        write_private(&beside, &identity.certificate).map_err(file)?;
        Ok(identity)
    }

    /// Generates a key that is not stored in a file.
    ///
    /// # Errors
    /// Fails when the system provides no random bytes.
    pub fn fresh() -> Result<Arc<Self>, IdentityError> {
        let none = |cause| IdentityError::Key { path: "memory".into(), cause };
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(none)?;
        Self::of(&pair).map(Arc::new).map_err(none)
    }

    fn of(pair: &KeyPair) -> Result<Self, rcgen::Error> {
        let certificate: CertificateDer<'static> =
            CertificateParams::new(vec!["cairn".to_owned()])?.self_signed(pair)?.into();
        let pin = Pin::of(&certificate).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { key: PrivatePkcs8KeyDer::from(pair.serialize_der()), certificate, pin })
    }

    /// Returns the pin of this machine's key.
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// Returns the SHA-256 of the certificate as browsers show it: pairs of digits with colons.
    pub fn certificate_fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.certificate);
        let pairs: Vec<String> = digest.as_ref().iter().map(|b| format!("{b:02X}")).collect();
        pairs.join(":")
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_certificate_stays_the_same_and_belongs_to_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("remote/key.pem");
        let first = Identity::load_with_certificate(&path).unwrap();
        let again = Identity::load_with_certificate(&path).unwrap();
        assert_eq!(first.certificate_fingerprint(), again.certificate_fingerprint());
        assert_eq!(first.certificate_fingerprint().len(), 32 * 3 - 1);
        // A certificate that is not stored is another one each time.
        let unstored = Identity::load_or_make(&path).unwrap();
        assert_ne!(unstored.certificate_fingerprint(), first.certificate_fingerprint());
        for content in [b"no certificate".to_vec(), Identity::fresh().unwrap().certificate.to_vec()]
        {
            std::fs::write(path.with_extension("crt"), content).unwrap();
            let renewed = Identity::load_with_certificate(&path).unwrap();
            assert_eq!(renewed.pin(), first.pin());
            assert_eq!(Pin::of(&renewed.certificate).unwrap(), first.pin());
        }
    }

    #[test]
    fn key_is_generated_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("remote/key.pem");
        let first = Identity::load_or_make(&path).unwrap();
        assert_eq!(Identity::load_or_make(&path).unwrap().pin(), first.pin());
        assert_ne!(Identity::fresh().unwrap().pin(), first.pin());
        std::fs::write(&path, "no key").unwrap();
        let error = Identity::load_or_make(&path).unwrap_err();
        assert!(
            matches!(&error, IdentityError::Key { .. }) && error.to_string().contains("key.pem"),
            "{error}"
        );
    }
}
