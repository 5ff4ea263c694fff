//! Where the daemon listens: sockets it was given, or the first free port.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
};

/// Ports that are tried after the wanted one.
const TRIES: u16 = 64;

/// What to listen on.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The address; loopback unless the user says otherwise.
    pub address: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
    /// A further address for the local network.
    pub lan: Option<IpAddr>,
}

/// Listeners of the service manager (socket activation), or our own.
///
/// # Errors
/// When no port is free, or an address is not this machine's.
pub fn listeners(wanted: &Wanted) -> io::Result<Vec<TcpListener>> {
    let given = activated();
    if !given.is_empty() {
        return Ok(given);
    }
    let first = first_free(wanted.address, wanted.port)?;
    let port = first.local_addr()?.port();
    let mut all = vec![first];
    if let Some(lan) = wanted.lan
        && lan != wanted.address
    {
        all.push(first_free(lan, port)?);
    }
    Ok(all)
}

/// Sockets passed by systemd (`LISTEN_FDS`); those that are no TCP listeners are left alone.
fn activated() -> Vec<TcpListener> {
    let mut passed = listenfd::ListenFd::from_env();
    (0..passed.len()).filter_map(|at| passed.take_tcp_listener(at).ok().flatten()).collect()
}

/// A listener on the port, or the next free one after it.
///
/// # Errors
/// When no port is free, or the address is not this machine's.
pub fn first_free(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let last = if port == 0 { 0 } else { port.saturating_add(TRIES) };
    let mut failed = io::Error::from(io::ErrorKind::AddrInUse);
    for port in port..=last {
        match TcpListener::bind(SocketAddr::new(address, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => failed = error,
            Err(error) => return Err(io::Error::new(error.kind(), format!("{address}:{port}: {error}"))),
        }
    }
    Err(io::Error::new(failed.kind(), format!("{address}:{port} to {last}: {failed}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_leads_to_the_next() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let held = TcpListener::bind((local, 0)).unwrap();
        let port = held.local_addr().unwrap().port();
        let got = listeners(&Wanted { address: local, port, lan: None }).unwrap();
        assert!(got[0].local_addr().unwrap().port() > port);
    }
}
