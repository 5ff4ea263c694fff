//! TLS 1.3 between machines that know each other's keys.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    ServerConfig, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};

use crate::{Identity, Pin};

/// Application protocol that both sides negotiate.
const ALPN: &[u8] = b"http/1.1";
/// Label of the exporter value that is unique to one TLS connection (RFC 9266).
const EXPORTER: &[u8] = b"EXPORTER-Channel-Binding";

/// Reason why TLS cannot be set up.
#[derive(Debug, Clone, thiserror::Error)]
#[error("tls cannot be set up: {0}")]
pub struct TlsError(#[from] Error);

/// The peer presented a key that differs from the trusted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key of the server is {seen}, not {expected}")]
pub struct KeyChanged {
    /// Key that is trusted.
    pub expected: Pin,
    /// Key that was presented.
    pub seen: Pin,
}

/// Returns the configuration of a listener: it accepts any client that proves possession of its
/// key, whose rights are decided by its pin, and browsers, which have no key and so no rights
/// before they present the secret of a paired one.
///
/// # Errors
/// Fails when the key is unusable.
pub fn server_config(identity: &Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(AnyKey { provider: Arc::clone(&provider) });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain(), identity.key())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Every connection must prove its key again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the configuration of a client: it connects only to the key `expected`; without one it
/// accepts any key, which is for pairing alone.
///
/// # Errors
/// Fails when the key is unusable.
pub fn client_config(
    identity: &Identity,
    expected: Option<Pin>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(OneKey { expected, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(identity.chain(), identity.key())?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    // No server name is sent: a machine is identified by its key.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Returns the key that the peer of an open connection proved.
pub fn peer_pin(connection: &CommonState) -> Option<Pin> {
    Pin::of(connection.peer_certificates()?.first()?).ok()
}

/// Returns a value that only the two sides of a TLS connection know.
///
/// # Errors
/// Fails before the handshake is complete.
pub fn exporter<D>(connection: &rustls::ConnectionCommon<D>) -> Result<[u8; 32], TlsError> {
    Ok(connection.export_keying_material([0; 32], EXPORTER, None)?)
}

/// Returns the changed key if that is why a handshake failed.
pub fn key_changed(error: &io::Error) -> Option<KeyChanged> {
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::Other(OtherError(cause)) => cause.downcast_ref::<KeyChanged>().copied(),
        _ => None,
    }
}

/// Implements the signature checks of a handshake; rustls has two traits with the same methods for
/// them.
macro_rules! proven_by_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("only TLS 1.3 is supported".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

#[derive(Debug)]
struct AnyKey {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Pin::of(certificate).map(|_| ClientCertVerified::assertion())
    }

    proven_by_tls13!();
}

#[derive(Debug)]
struct OneKey {
    expected: Option<Pin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OneKey {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let seen = Pin::of(certificate)?;
        match self.expected {
            Some(expected) if expected != seen => {
                Err(Error::Other(OtherError(Arc::new(KeyChanged { expected, seen }))))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    proven_by_tls13!();
}
