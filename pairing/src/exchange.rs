//! Two sides that share a short code verify each other's keys.
//!
//! The exchange is SPAKE2 over edwards25519, followed by a confirmation in each direction. The
//! identities of both sides are their keys and the exporter value of the TLS connection, so that a
//! man in the middle makes them disagree. A wrong code, a wrong key or a message of another
//! connection all lead to a confirmation that does not match; the messages do not allow trying
//! codes offline. The client confirms first: a side that only guesses learns nothing except that
//! the guess was wrong.

use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use spake2::{Ed25519Group, Identity as Name, Password, Spake2};

use crate::Pin;

/// Number of digits of a code.
pub const DIGITS: usize = 8;
/// Number of possible codes.
pub const CODES: u32 = 10_u32.pow(DIGITS as u32);
/// Maximum length of a device's name, in characters.
pub const NAME: usize = 64;

const CLIENT: &[u8] = b"cairn pairing 1: client";
const SERVER: &[u8] = b"cairn pairing 1: server";

/// Reason why the exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The message is malformed.
    #[error("a pairing message cannot be parsed")]
    Message,
    /// The codes differ, or a third party is in between.
    #[error("the codes differ, or the connection is intercepted")]
    Code,
}

/// Both sides' view of their TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Key of the client.
    pub client: Pin,
    /// Key of the server.
    pub server: Pin,
    /// Value unique to this connection, from [`crate::exporter`].
    pub binding: [u8; 32],
}

impl Channel {
    fn names(&self) -> (Name, Name) {
        let name =
            |role: &[u8], pin: &Pin| Name::new(&[role, pin.as_bytes(), &self.binding].concat());
        (name(CLIENT, &self.client), name(SERVER, &self.server))
    }
}

/// First message of the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Name of the device, up to [`NAME`] characters.
    pub name: String,
    /// The client's share of the exchange, in hexadecimal.
    pub share: String,
}

/// First message of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The server's share of the exchange, in hexadecimal.
    pub share: String,
}

/// The client's proof that it knows the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// Confirmation value in hexadecimal.
    pub confirm: String,
}

/// The server's proof, with the rights granted to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// Confirmation value over `granted`, in hexadecimal.
    pub confirm: String,
    /// The grant, as JSON text.
    pub granted: String,
}

/// Returns the eight digits of a code without spaces and dashes.
pub fn digits(code: &str) -> Option<String> {
    let plain: String = code.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    (plain.len() == DIGITS && plain.bytes().all(|b| b.is_ascii_digit())).then_some(plain)
}

/// Formats a code for display: `1234-5678`.
pub fn format_code(code: &str) -> String {
    let (a, b) = code.split_at_checked(DIGITS / 2).unwrap_or((code, ""));
    format!("{a}-{b}")
}

/// A side that has sent its share.
pub struct PendingExchange {
    state: Spake2<Ed25519Group>,
    share: Vec<u8>,
}

/// A side that has derived the shared key, provided that the peer did too.
pub struct KeyConfirmation {
    key: hmac::Key,
    transcript: Vec<u8>,
}

/// Starts the exchange as the client.
pub fn client(code: &str, channel: &Channel) -> (PendingExchange, String) {
    let (a, b) = channel.names();
    pending(Spake2::start_a(&Password::new(code), &a, &b))
}

/// Starts the exchange as the server.
pub fn server(code: &str, channel: &Channel) -> (PendingExchange, String) {
    let (a, b) = channel.names();
    pending(Spake2::start_b(&Password::new(code), &a, &b))
}

fn pending((state, share): (Spake2<Ed25519Group>, Vec<u8>)) -> (PendingExchange, String) {
    let text = hex::encode(&share);
    (PendingExchange { state, share }, text)
}

impl PendingExchange {
    /// Processes the share of the other side; `name` is the client's name from its message.
    ///
    /// # Errors
    /// [`Mismatch::Message`] when the share is malformed.
    pub fn finish(self, share: &str, name: &str) -> Result<KeyConfirmation, Mismatch> {
        let theirs = hex::decode(share).map_err(|_| Mismatch::Message)?;
        let secret = self.state.finish(&theirs).map_err(|_| Mismatch::Message)?;
        // The first byte of a share names its side, so both sides sort them in the same order.
        let (first, second) =
            if self.share < theirs { (&self.share, &theirs) } else { (&theirs, &self.share) };
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [first.as_slice(), second, name.as_bytes()] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let transcript = hash.finish().as_ref().to_vec();
        Ok(KeyConfirmation { key: hmac::Key::new(hmac::HMAC_SHA256, &secret), transcript })
    }
}

impl KeyConfirmation {
    /// Returns the client's proof.
    pub fn client_proof(&self) -> String {
        hex::encode(hmac::sign(&self.key, &self.proof_input(CLIENT, "")))
    }

    /// Returns the server's proof over its grant.
    pub fn server_proof(&self, granted: &str) -> String {
        hex::encode(hmac::sign(&self.key, &self.proof_input(SERVER, granted)))
    }

    /// Checks the client's proof.
    ///
    /// # Errors
    /// [`Mismatch::Message`] or [`Mismatch::Code`] when the proof is malformed or does not match.
    pub fn check_client(&self, proof: &str) -> Result<(), Mismatch> {
        self.check(&self.proof_input(CLIENT, ""), proof)
    }

    /// Checks the server's proof.
    ///
    /// # Errors
    /// [`Mismatch::Message`] or [`Mismatch::Code`] when the proof is malformed or does not match.
    pub fn check_server(&self, proof: &str, granted: &str) -> Result<(), Mismatch> {
        self.check(&self.proof_input(SERVER, granted), proof)
    }

    fn check(&self, message: &[u8], proof: &str) -> Result<(), Mismatch> {
        let proof = hex::decode(proof).map_err(|_| Mismatch::Message)?;
        hmac::verify(&self.key, message, &proof).map_err(|_| Mismatch::Code)
    }

    fn proof_input(&self, role: &[u8], granted: &str) -> Vec<u8> {
        [role, &self.transcript, granted.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel() -> Channel {
        Channel { client: Pin::of_key(b"c"), server: Pin::of_key(b"s"), binding: [7; 32] }
    }

    /// Returns for each side if it accepts the other's proof.
    fn meet(codes: [&str; 2], channels: [Channel; 2], names: [&str; 2]) -> (bool, bool) {
        let (client, from_client) = client(codes[0], &channels[0]);
        let (server, from_server) = server(codes[1], &channels[1]);
        let client = client.finish(&from_server, names[0]).unwrap();
        let server = server.finish(&from_client, names[1]).unwrap();
        let client_check = server.check_client(&client.client_proof());
        (client_check.is_ok(), client.check_server(&server.server_proof("[]"), "[]").is_ok())
    }

    #[test]
    fn sides_agree_only_when_code_channel_and_name_match() {
        let (here, name) = (channel(), ["laptop"; 2]);
        assert_eq!(meet(["12345678"; 2], [here; 2], name), (true, true));
        assert_eq!(meet(["12345678", "12345679"], [here; 2], name), (false, false));
        for other in [
            Channel { client: Pin::of_key(b"x"), ..here },
            Channel { server: Pin::of_key(b"x"), ..here },
            Channel { binding: [8; 32], ..here },
        ] {
            assert_eq!(meet(["12345678"; 2], [here, other], name), (false, false), "{other:?}");
        }
        assert_eq!(meet(["12345678"; 2], [here; 2], ["laptop", "desk"]), (false, false));
    }

    #[test]
    fn proof_is_bound_to_its_side_and_grant() {
        let (client, from_client) = client("1", &channel());
        let (server, from_server) = server("1", &channel());
        let (client, server) =
            (client.finish(&from_server, "").unwrap(), server.finish(&from_client, "").unwrap());
        // The proof of a side, sent back to itself.
        assert_eq!(client.check_server(&client.client_proof(), ""), Err(Mismatch::Code));
        assert_eq!(server.check_client(&server.server_proof("")), Err(Mismatch::Code));
        assert_eq!(
            client.check_server(&server.server_proof("observe"), "admin"),
            Err(Mismatch::Code)
        );
        for bad in ["", "zz", "00"] {
            assert!(server.check_client(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn malformed_share_is_refused() {
        let own = client("1", &channel()).1;
        for bad in ["", "zz", "42", &"42".repeat(33), &own] {
            assert!(client("1", &channel()).0.finish(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn code_input_is_normalised() {
        for (text, want) in [
            ("12345678", Some("12345678")),
            ("1234-5678", Some("12345678")),
            (" 12 34 56 78 ", Some("12345678")),
            ("1234567", None),
            ("123456789", None),
            ("1234567a", None),
            ("", None),
        ] {
            assert_eq!(digits(text).as_deref(), want, "{text}");
        }
        assert_eq!(format_code("12345678"), "1234-5678");
    }
}
