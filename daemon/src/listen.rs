//! The daemon's listeners: inherited sockets, or the first free port.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
};

/// Maximum number of ports to try after the configured one.
const MAX_PORTS: u16 = 64;

/// The addresses to listen on.
#[derive(Debug, Clone)]
pub struct ListenAddresses {
    /// Loopback unless the user configured another address.
    pub address: IpAddr,
    /// 0 for any free port.
    pub port: u16,
    /// A further address for the local network.
    pub lan: Option<IpAddr>,
}

/// Returns the listeners of the service manager (socket activation), or new ones.
///
/// # Errors
/// No port is free, or an address does not belong to this machine.
pub fn listeners(addresses: &ListenAddresses) -> io::Result<Vec<TcpListener>> {
    let given = activated();
    if !given.is_empty() {
        return Ok(given);
    }
    let first = first_free(addresses.address, addresses.port)?;
    let port = first.local_addr()?.port();
    let mut all = vec![first];
    if let Some(lan) = addresses.lan
        && lan != addresses.address
    {
        all.push(first_free(lan, port)?);
    }
    Ok(all)
}

/// Returns the TCP listeners passed by systemd (`LISTEN_FDS`); other sockets are ignored.
fn activated() -> Vec<TcpListener> {
    let mut passed = listenfd::ListenFd::from_env();
    (0..passed.len()).filter_map(|at| passed.take_tcp_listener(at).ok().flatten()).collect()
}

/// Listens on the port, or on the next free one after it.
///
/// # Errors
/// No port is free, or the address does not belong to this machine.
pub fn first_free(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let last = if port == 0 { 0 } else { port.saturating_add(MAX_PORTS) };
    let mut failed = io::Error::from(io::ErrorKind::AddrInUse);
    for port in port..=last {
        match TcpListener::bind(SocketAddr::new(address, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => failed = error,
            Err(error) => {
                return Err(io::Error::new(error.kind(), format!("{address}:{port}: {error}")));
            }
        }
    }
    Err(io::Error::new(failed.kind(), format!("{address}:{port} to {last}: {failed}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupied_port_selects_next() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let occupied = TcpListener::bind((local, 0)).unwrap();
        let port = occupied.local_addr().unwrap().port();
        let got = listeners(&ListenAddresses { address: local, port, lan: None }).unwrap();
        assert!(got[0].local_addr().unwrap().port() > port);
    }
}
