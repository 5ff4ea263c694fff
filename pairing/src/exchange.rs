//! Two sides that share a short code learn that each other's keys are the right ones.
//!
//! SPAKE2 over edwards25519, then a confirmation each way. The names of both sides in it are their keys and the value of
//! the TLS connection they see, so that whoever stands between them makes them disagree. A wrong code, a wrong key or a
//! message of another connection all end in a confirmation that does not fit; what was sent lets nobody try codes on
//! their own. The client confirms first: a side that only guesses learns nothing but that it was wrong.

use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use spake2::{Ed25519Group, Identity as Name, Password, Spake2};

use crate::Pin;

/// Digits of a code.
pub const DIGITS: usize = 8;
/// Codes there are.
pub const CODES: u32 = 10_u32.pow(DIGITS as u32);
/// Names of devices have so many characters at most.
pub const NAME: usize = 64;

const CLIENT: &[u8] = b"cairn pairing 1: client";
const SERVER: &[u8] = b"cairn pairing 1: server";

/// Why two sides do not come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A message that is none.
    #[error("a message of the pairing cannot be read")]
    Message,
    /// Another code, or somebody in between.
    #[error("the codes differ, or somebody is in between")]
    Code,
}

/// What both sides see of their TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// The client's key.
    pub client: Pin,
    /// The server's key.
    pub server: Pin,
    /// What is of this connection alone, of [`crate::exporter`].
    pub binding: [u8; 32],
}

impl Channel {
    fn names(&self) -> (Name, Name) {
        let name = |role: &[u8], pin: &Pin| Name::new(&[role, pin.as_bytes(), &self.binding].concat());
        (name(CLIENT, &self.client), name(SERVER, &self.server))
    }
}

/// The client's first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// What the device is called, of up to [`NAME`] characters.
    pub name: String,
    /// Its half of the exchange, in hexadecimal.
    pub share: String,
}

/// The server's half, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// Its half of the exchange.
    pub share: String,
}

/// The client's proof that it knows the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// In hexadecimal.
    pub confirm: String,
}

/// What a paired client is told, and the server's proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// In hexadecimal, over `granted`.
    pub confirm: String,
    /// What was granted, as JSON text.
    pub granted: String,
}

/// Eight digits with whatever a person put between them.
pub fn digits(code: &str) -> Option<String> {
    let plain: String = code.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    (plain.len() == DIGITS && plain.bytes().all(|b| b.is_ascii_digit())).then_some(plain)
}

/// A code as it is shown: `1234-5678`.
pub fn shown(code: &str) -> String {
    let (a, b) = code.split_at_checked(DIGITS / 2).unwrap_or((code, ""));
    format!("{a}-{b}")
}

/// A side that has sent its half.
pub struct Half {
    state: Spake2<Ed25519Group>,
    share: Vec<u8>,
}

/// A side that knows the key, if the other one does.
pub struct Whole {
    key: hmac::Key,
    transcript: Vec<u8>,
}

/// Begins as the client.
pub fn client(code: &str, channel: &Channel) -> (Half, String) {
    let (a, b) = channel.names();
    half(Spake2::start_a(&Password::new(code), &a, &b))
}

/// Begins as the server.
pub fn server(code: &str, channel: &Channel) -> (Half, String) {
    let (a, b) = channel.names();
    half(Spake2::start_b(&Password::new(code), &a, &b))
}

fn half((state, share): (Spake2<Ed25519Group>, Vec<u8>)) -> (Half, String) {
    let text = hex::encode(&share);
    (Half { state, share }, text)
}

impl Half {
    /// Takes the other side's half; `name` is what the client called itself.
    ///
    /// # Errors
    /// [`Mismatch::Message`].
    pub fn finish(self, share: &str, name: &str) -> Result<Whole, Mismatch> {
        let theirs = hex::decode(share).map_err(|_| Mismatch::Message)?;
        let secret = self.state.finish(&theirs).map_err(|_| Mismatch::Message)?;
        // The side is in a share's first byte: both sides put them in the same order.
        let (first, second) =
            if self.share < theirs { (&self.share, &theirs) } else { (&theirs, &self.share) };
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [first.as_slice(), second, name.as_bytes()] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let transcript = hash.finish().as_ref().to_vec();
        Ok(Whole { key: hmac::Key::new(hmac::HMAC_SHA256, &secret), transcript })
    }
}

impl Whole {
    /// The client's proof.
    pub fn client_proof(&self) -> String {
        hex::encode(hmac::sign(&self.key, &self.said(CLIENT, "")))
    }

    /// The server's proof, over what it grants.
    pub fn server_proof(&self, granted: &str) -> String {
        hex::encode(hmac::sign(&self.key, &self.said(SERVER, granted)))
    }

    /// Checks the client's proof.
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn check_client(&self, proof: &str) -> Result<(), Mismatch> {
        self.check(&self.said(CLIENT, ""), proof)
    }

    /// Checks the server's proof.
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn check_server(&self, proof: &str, granted: &str) -> Result<(), Mismatch> {
        self.check(&self.said(SERVER, granted), proof)
    }

    fn check(&self, said: &[u8], proof: &str) -> Result<(), Mismatch> {
        let proof = hex::decode(proof).map_err(|_| Mismatch::Message)?;
        hmac::verify(&self.key, said, &proof).map_err(|_| Mismatch::Code)
    }

    fn said(&self, role: &[u8], granted: &str) -> Vec<u8> {
        [role, &self.transcript, granted.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel() -> Channel {
        Channel { client: Pin::of_key(b"c"), server: Pin::of_key(b"s"), binding: [7; 32] }
    }

    /// Whether each side takes the other's proof.
    fn meet(codes: [&str; 2], channels: [Channel; 2], names: [&str; 2]) -> (bool, bool) {
        let (client, from_client) = client(codes[0], &channels[0]);
        let (server, from_server) = server(codes[1], &channels[1]);
        let client = client.finish(&from_server, names[0]).unwrap();
        let server = server.finish(&from_client, names[1]).unwrap();
        let taken = server.check_client(&client.client_proof());
        (taken.is_ok(), client.check_server(&server.server_proof("[]"), "[]").is_ok())
    }

    #[test]
    fn both_sides_agree_only_when_all_is_the_same() {
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
    fn a_proof_is_of_one_side_and_of_what_was_granted() {
        let (client, from_client) = client("1", &channel());
        let (server, from_server) = server("1", &channel());
        let (client, server) =
            (client.finish(&from_server, "").unwrap(), server.finish(&from_client, "").unwrap());
        // A side's own proof sent back to it.
        assert_eq!(client.check_server(&client.client_proof(), ""), Err(Mismatch::Code));
        assert_eq!(server.check_client(&server.server_proof("")), Err(Mismatch::Code));
        assert_eq!(client.check_server(&server.server_proof("observe"), "admin"), Err(Mismatch::Code));
        for bad in ["", "zz", "00"] {
            assert!(server.check_client(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_half_is_refused() {
        let own = client("1", &channel()).1;
        for bad in ["", "zz", "42", &"42".repeat(33), &own] {
            assert!(client("1", &channel()).0.finish(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn codes_as_people_type_them() {
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
        assert_eq!(shown("12345678"), "1234-5678");
    }
}
