//! The first bytes of a tunnel: the server name of TLS must be the domain that was decided about.
//! An address can serve many names, and the inner one is not visible later.

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

/// The reason why a tunnel is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch(pub String);

/// Reads the first bytes of a client and returns them: of TLS to `domain`, or of another protocol
/// on a port that is not for TLS.
///
/// # Errors
/// Another name or none, or no TLS where it is required.
pub(super) async fn first_bytes(
    client: &mut (impl AsyncRead + Unpin),
    domain: &Domain,
    port: u16,
) -> Result<Vec<u8>, Mismatch> {
    if port != TLS_PORT {
        return read(client, domain, false).await;
    }
    let late = |_| Mismatch(format!("it sent no TLS greeting within {} s", MAX_WAIT.as_secs()));
    tokio::time::timeout(MAX_WAIT, read(client, domain, true))
        .await
        .unwrap_or_else(|e| Err(late(e)))
}

async fn read(
    client: &mut (impl AsyncRead + Unpin),
    domain: &Domain,
    required: bool,
) -> Result<Vec<u8>, Mismatch> {
    let refuse = |text: &str| Err(Mismatch(text.to_owned()));
    let mut acceptor = Acceptor::default();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = client.read(&mut piece).await.unwrap_or(0);
        if n == 0 {
            // A client that sends nothing has asked for nothing.
            return if bytes.is_empty() { Ok(bytes) } else { refuse("its TLS greeting is cut") };
        }
        bytes.extend_from_slice(&piece[..n]);
        if bytes.len() > MAX_HELLO {
            return refuse("its TLS greeting is too long");
        }
        if bytes[0] != HANDSHAKE {
            return if required { refuse("it does not speak TLS") } else { Ok(bytes) };
        }
        let mut unread = &piece[..n];
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
    }
}

fn judge(name: Option<&str>, domain: &Domain, bytes: Vec<u8>) -> Result<Vec<u8>, Mismatch> {
    match name {
        None => Err(Mismatch("its TLS greeting names no server".to_owned())),
        Some(name) if Domain::parse(name).as_ref() == Some(domain) => Ok(bytes),
        Some(name) => {
            let name: String = name.chars().take(253).flat_map(char::escape_debug).collect();
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
        first_bytes(&mut client, &domain, port).await.map(|b| b.len()).map_err(|e| e.0)
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
        assert_eq!(judged(b"GET / HTTP/1.1\r\n\r\n", 80).await, Ok(18));
        assert_eq!(judged(b"", 443).await, Ok(0));
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
        assert_eq!(first_bytes(&mut server, &domain, 443).await.unwrap(), own);
        sending.await.unwrap();
    }
}
