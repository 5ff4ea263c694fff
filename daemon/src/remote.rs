//! The listener for remote devices, if the user enabled it.

use std::{
    net::{IpAddr, TcpListener},
    sync::Arc,
};

use cairn_config::Config;
use cairn_protocol::{id::InstanceId, location::DataRoot};
use cairn_transport::remote::{Lan, Remote};

use crate::{
    advertise, listen,
    serve::{Options, ServeError},
};

/// The opened remote control.
pub struct OpenedRemote {
    /// Lists and revokes devices, with or without a listener.
    pub remote: Arc<Remote>,
    /// The listener for devices, if the user enabled it.
    pub listener: Option<TcpListener>,
    pub address: Option<std::net::SocketAddr>,
}

/// Opens remote control, with a listener if the user enabled it.
///
/// # Errors
/// The address is invalid, or the keys or devices cannot be read.
pub fn open(
    root: &DataRoot,
    config: &Config,
    options: &Options,
    instance: &InstanceId,
) -> Result<OpenedRemote, ServeError> {
    let listener = match listen_address(config, options)? {
        Some((ip, port)) => Some(listen::first_free(ip, port).map_err(ServeError::Listen)?),
        None => None,
    };
    let address = match &listener {
        Some(listener) => Some(listener.local_addr().map_err(ServeError::Listen)?),
        None => None,
    };
    let lan = address.map(|at| Lan {
        addresses: vec![at.to_string()],
        name: advertise::name(instance, options.label.as_deref()),
    });
    let failed =
        |e: cairn_transport::remote::RemoteError| ServeError::Run(format!("remote control: {e}"));
    let remote = Remote::open(root, lan).map_err(failed)?;
    if let (Some(at), Some(key)) = (address, remote.key()) {
        tracing::info!(%at, %key, "listening for paired devices");
    }
    Ok(OpenedRemote { remote, listener, address })
}

fn listen_address(config: &Config, options: &Options) -> Result<Option<(IpAddr, u16)>, ServeError> {
    let listen = &config.listen;
    if let Some((ip, port)) = options.lan {
        return Ok(Some((ip, port.unwrap_or(listen.lan_port))));
    }
    if !listen.lan {
        return Ok(None);
    }
    let bad = |_| {
        ServeError::Run(format!("listen.lanAddress: '{}' is not an address", listen.lan_address))
    };
    Ok(Some((listen.lan_address.parse().map_err(bad)?, listen.lan_port)))
}
