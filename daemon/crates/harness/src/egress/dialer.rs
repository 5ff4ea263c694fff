//! Names to addresses, and addresses to connections.

use std::{io, net::SocketAddr};

use tokio::net::TcpStream;

/// Source of addresses and connections; tests have their own.
#[async_trait::async_trait]
pub trait Dialer: Send + Sync {
    /// Resolves a name once.
    ///
    /// # Errors
    /// A name that does not exist, and errors of the resolver.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Connects to an address that was checked.
    ///
    /// # Errors
    /// Errors of the network.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;
}

/// The resolver and the network of this machine.
pub(crate) struct SystemDialer;

#[async_trait::async_trait]
impl Dialer for SystemDialer {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}
