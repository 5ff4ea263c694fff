//! Identity of a machine.

use std::{fmt, str::FromStr};

use ring::digest;
use rustls::{pki_types::CertificateDer, server::ParsedCertificate};
use serde::{Deserialize, Serialize};

/// SHA-256 of a public key in X.509 encoding (SubjectPublicKeyInfo); 64 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pin([u8; 32]);

/// Error for a text that is not a pin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key's hash has 64 hexadecimal digits")]
pub struct BadPin;

impl Pin {
    /// Returns the pin of the key in a certificate.
    ///
    /// # Errors
    /// Fails when the bytes are not a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        Ok(Self::of_key(&parsed.subject_public_key_info()))
    }

    /// Returns the pin of a key in X.509 encoding.
    pub fn of_key(key: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, key).as_ref());
        Self(bytes)
    }

    /// Returns the pin of a browser's secret. Public keys are no secrets: the prefix, with which no
    /// key in X.509 encoding begins, keeps one from being presented as a secret.
    pub fn of_secret(secret: &str) -> Self {
        Self::of_key(&[b"cairn browser secret\0", secret.as_bytes()].concat())
    }

    /// Returns the 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first 8 digits: enough to look up a machine, too few to trust it.
    pub fn hint(&self) -> String {
        hex::encode(&self.0[..4])
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

impl From<Pin> for String {
    fn from(pin: Pin) -> Self {
        pin.to_string()
    }
}

impl FromStr for Pin {
    type Err = BadPin;

    fn from_str(text: &str) -> Result<Self, BadPin> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| BadPin)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Pin {
    type Error = BadPin;

    fn try_from(text: String) -> Result<Self, BadPin> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let pin = Pin::of_key(b"key");
        assert_eq!(pin.to_string().parse(), Ok(pin));
        assert!(pin.to_string().starts_with(&pin.hint()) && pin.hint().len() == 8);
        for bad in ["", "00", &"g".repeat(64), &"0".repeat(65)] {
            assert_eq!(bad.parse::<Pin>(), Err(BadPin), "{bad}");
        }
    }
}
