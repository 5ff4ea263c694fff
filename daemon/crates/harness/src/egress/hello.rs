//! The first bytes of a tunnel: the server name of TLS must be the domain that was decided about.
//! An address can serve many names, and the inner one is not visible later. Requests of HTTP name
//! theirs one by one, and are examined as such.

use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::Domain;

/// Maximum bytes before the name is known; a hello with post-quantum keys has about 2,000.
const MAX_HELLO: usize = 64 * 1024;
/// Time for them, where TLS is required.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Type of the record with which TLS begins (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// The port where a tunnel must be TLS.
const TLS_PORT: u16 = 443;
/// The port where a tunnel must be TLS or HTTP.
const HTTP_PORT: u16 = 80;
/// Maximum bytes of the first line of HTTP.
const MAX_LINE: usize = 8 * 1024;

/// The reason why a tunnel is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch(pub String);

/// The first bytes of a tunnel, by what follows them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// TLS to the domain; or a protocol that names no server, on a port that the user has opened.
    Opaque(Vec<u8>),
    /// Requests, each of which names its server.
    Http(Vec<u8>),
}

/// Reads the first bytes of a client.
///
/// # Errors
/// Another name or none, or another protocol than the port is for.
pub(super) async fn first_bytes(
    client: &mut (impl AsyncRead + Unpin),
    domain: &Domain,
    port: u16,
) -> Result<Greeting, Mismatch> {
    let mut bytes = vec![0; PIECE];
    // A client may wait for the server's greeting, but not where it must begin itself.
    let first = client.read(&mut bytes);
    let n = if port == TLS_PORT { limited(first).await? } else { first.await };
    bytes.truncate(n.unwrap_or(0));
    if bytes.is_empty() {
        // A client that sends nothing has asked for nothing.
        return Ok(Greeting::Opaque(bytes));
    }
    limited(read(client, bytes, domain, port)).await?
}

async fn limited<T>(work: impl Future<Output = T>) -> Result<T, Mismatch> {
    let late = |_| Mismatch(format!("it sent no greeting within {} s", MAX_WAIT.as_secs()));
    tokio::time::timeout(MAX_WAIT, work).await.map_err(late)
}

/// Bytes that are read at once.
const PIECE: usize = 4096;

async fn read(
    client: &mut (impl AsyncRead + Unpin),
    mut bytes: Vec<u8>,
    domain: &Domain,
    port: u16,
) -> Result<Greeting, Mismatch> {
    let refuse = |text: &str| Err(Mismatch(text.to_owned()));
    let mut acceptor = Acceptor::default();
    let mut read = 0;
    let mut piece = [0; PIECE];
    loop {
        if bytes.len() > MAX_HELLO {
            return refuse("its TLS greeting is too long");
        }
        let is_tls = bytes[0] == HANDSHAKE;
        let mut unread = if is_tls { &bytes[read..] } else { &[] };
        read = bytes.len();
        while !unread.is_empty() {
            if acceptor.read_tls(&mut unread).is_err() {
                return refuse("its TLS greeting is invalid");
            }
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    return judge(accepted.client_hello().server_name(), domain, bytes);
                }
                Err(_) => return refuse("its TLS greeting is invalid"),
            }
        }
        let protocol = if is_tls { None } else { protocol(&bytes) };
        match (protocol, port) {
            (None, _) if is_tls || port != TLS_PORT => {}
            (_, TLS_PORT) => return refuse("it does not speak TLS"),
            (Some(Protocol::Http), _) => return Ok(Greeting::Http(bytes)),
            (_, HTTP_PORT) => return refuse("it speaks neither TLS nor HTTP"),
            _ => return Ok(Greeting::Opaque(bytes)),
        }
        let n = client.read(&mut piece).await.unwrap_or(0);
        if n == 0 && is_tls {
            return refuse("its TLS greeting is cut");
        }
        if n == 0 {
            return refuse("its first line is cut");
        }
        bytes.extend_from_slice(&piece[..n]);
    }
}

/// A protocol without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http,
    Other,
}

/// Recognises HTTP by the version in the first line; `None` if the line is not complete. Servers
/// accept empty lines before it.
fn protocol(bytes: &[u8]) -> Option<Protocol> {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let rest = &bytes[start..];
    if !rest[0].is_ascii_alphabetic() {
        return Some(Protocol::Other);
    }
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return (rest.len() > MAX_LINE).then_some(Protocol::Other);
    };
    let has_version = rest[..end].windows(6).any(|part| part.eq_ignore_ascii_case(b" HTTP/"));
    Some(if has_version { Protocol::Http } else { Protocol::Other })
}

fn judge(name: Option<&str>, domain: &Domain, bytes: Vec<u8>) -> Result<Greeting, Mismatch> {
    match name {
        None => Err(Mismatch("its TLS greeting names no server".to_owned())),
        Some(name) if Domain::parse(name).as_ref() == Some(domain) => Ok(Greeting::Opaque(bytes)),
        Some(name) => {
            let name = super::displayed_host(name);
            Err(Mismatch(format!("its TLS greeting names {name}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    fn hello(name: &str, with_name: bool) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.enable_sni = with_name;
        let name = name.to_owned().try_into().unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn judged(bytes: &[u8], port: u16) -> Result<usize, String> {
        let domain = Domain::parse("crates.test").unwrap();
        let mut client = bytes;
        match first_bytes(&mut client, &domain, port).await {
            Ok(Greeting::Opaque(bytes)) => Ok(bytes.len()),
            Ok(Greeting::Http(bytes)) => Err(format!("{} bytes of HTTP", bytes.len())),
            Err(Mismatch(why)) => Err(why),
        }
    }

    #[tokio::test]
    async fn only_a_greeting_with_the_name_passes() {
        let own = hello("crates.test", true);
        assert_eq!(judged(&own, 443).await, Ok(own.len()));
        assert_eq!(judged(&hello("CRATES.test", true), 443).await, Ok(own.len()));
        for port in [443, 8443] {
            let other = judged(&hello("other.test", true), port).await;
            assert!(other.unwrap_err().contains("other.test"));
            let none = judged(&hello("crates.test", false), port).await;
            assert!(none.unwrap_err().contains("names no server"));
            let address = judged(&hello("127.0.0.1", true), port).await;
            assert!(address.unwrap_err().contains("names no server"));
            assert!(judged(&own[..own.len() - 1], port).await.unwrap_err().contains("cut"));
            let mut broken = own.clone();
            broken[5] = 99;
            assert!(judged(&broken, port).await.unwrap_err().contains("invalid"));
            let mut long = vec![22, 3, 1, 0x3f, 0xff, 1, 0xff, 0xff, 0xff];
            long.resize(MAX_HELLO + 8192, 0);
            assert!(judged(&long, port).await.is_err());
        }
        assert!(
            judged(b"GET / HTTP/1.1\r\n\r\n", 443).await.unwrap_err().contains("not speak TLS")
        );
        assert_eq!(judged(b"", 443).await, Ok(0));
    }

    #[tokio::test]
    async fn requests_without_tls_are_recognised() {
        for port in [80, 8080] {
            for text in ["GET / HTTP/1.1\r\n\r\n", "\r\n\nfoo /x http/1.0\n", "PRI * HTTP/2.0\r\n"]
            {
                let expected = format!("{} bytes of HTTP", text.len());
                assert_eq!(judged(text.as_bytes(), port).await, Err(expected), "{text}");
            }
        }
        // Other protocols pass on ports that the user has opened, and nowhere else.
        for text in ["SSH-2.0-x\r\n", "003fgit-upload-pack /x", "\0\0\0\x08", "GET /\r\n"] {
            assert_eq!(judged(text.as_bytes(), 9418).await, Ok(text.len()), "{text}");
            assert!(judged(text.as_bytes(), 80).await.unwrap_err().contains("neither"), "{text}");
        }
        assert!(judged(b"GET / HT", 8080).await.unwrap_err().contains("cut"));
    }

    #[tokio::test]
    async fn greeting_may_come_in_pieces() {
        let own = hello("crates.test", true);
        let domain = Domain::parse("crates.test").unwrap();
        let (mut client, mut server) = tokio::io::duplex(7);
        let sent = own.clone();
        let sending = tokio::spawn(async move {
            for byte in sent {
                tokio::io::AsyncWriteExt::write_all(&mut client, &[byte]).await.unwrap();
            }
        });
        assert_eq!(first_bytes(&mut server, &domain, 443).await.unwrap(), Greeting::Opaque(own));
        sending.await.unwrap();
    }
}
