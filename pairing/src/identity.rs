//! A machine's own key, made once.

use std::{io, path::Path, sync::Arc};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{Pin, write_private};

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("the key {path} cannot be used: {cause}")]
    File {
        /// The file.
        path: String,
        /// The system's words.
        cause: io::Error,
    },
    /// The file holds something else.
    #[error(
        "{path} holds no key of Cairn: {cause}; without the file a new one is made, and every pairing with it"
    )]
    Key {
        /// The file.
        path: String,
        /// What is wrong.
        cause: rcgen::Error,
    },
}

/// A key (ECDSA on P-256) and a certificate that it signed itself. Only the key is kept: the certificate is made anew at
/// each start and says nothing that anybody reads.
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
    /// The key in a file, made (0600) if there is none.
    ///
    /// # Errors
    /// When the file cannot be used or holds something else.
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

    /// A key that no file holds.
    ///
    /// # Errors
    /// When the system gives no random bytes.
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

    /// What this machine is known by.
    pub fn pin(&self) -> Pin {
        self.pin
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
    fn a_key_is_made_once() {
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
