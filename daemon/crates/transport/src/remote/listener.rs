//! The listener for devices: TLS first, then HTTP as on the other one.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use cairn_pairing::{Pin, exchange::Channel, exporter, peer_pin};
use tokio::sync::mpsc;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Remote,
    cut::Cut,
    devices,
    places::{Place, Places},
};
use crate::linger::{Lingering, Socket};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// How long a connection of nobody known may last: enough to pair.
const STRANGER: Duration = Duration::from_secs(30);
/// Connections that wait to be served.
const WAITING: usize = 16;

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Both keys and what is of this connection alone.
    pub channel: Channel,
    /// The device, if it was a paired one when it connected.
    pub device: Option<Arc<devices::Entry>>,
}

/// What a connection holds while it is open.
pub enum Held {
    Device(devices::Open),
    Stranger(Place),
}

/// A connection.
pub type Io = Cut<TlsStream<Socket>, Held>;

/// Accepts connections whose handshake is over.
pub struct TlsListener {
    ready: mpsc::Receiver<(Io, Peer)>,
    local: SocketAddr,
    _accepting: AbortOnDropHandle<()>,
}

impl TlsListener {
    /// Accepts on `listener` for `remote`.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub fn new(listener: std::net::TcpListener, remote: Arc<Remote>) -> io::Result<Self> {
        let off = || io::Error::other("remote control was opened without a listener");
        let (pin, tls) = remote.tls().ok_or_else(off)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let listener = Lingering::new(tokio::net::TcpListener::from_std(listener)?);
        let (to, ready) = mpsc::channel(WAITING);
        let accepting = AbortOnDropHandle::new(tokio::spawn(accept(listener, tls.into(), pin, remote, to)));
        Ok(Self { ready, local, _accepting: accepting })
    }
}

async fn accept(
    mut listener: Lingering,
    acceptor: TlsAcceptor,
    pin: Pin,
    remote: Arc<Remote>,
    to: mpsc::Sender<(Io, Peer)>,
) {
    let places = Places::default();
    loop {
        let (mut socket, from) = Listener::accept(&mut listener).await;
        // Whoever has said nothing yet needs no last word.
        socket.lingers(false);
        let place = places.enter(from.ip());
        let (acceptor, remote, to) = (acceptor.clone(), Arc::clone(&remote), to.clone());
        tokio::spawn(async move {
            let cut = place.cut.clone();
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(socket)) => shaken,
                () = cut.cancelled() => return,
            };
            match shaken {
                Ok(Ok(mut stream)) => {
                    stream.get_mut().0.lingers(true);
                    let Some(made) = known(stream, pin, &remote, place) else { return };
                    // The daemon stops.
                    let _stopped = to.send(made).await;
                }
                Ok(Err(error)) => tracing::debug!(%from, %error, "no tls handshake"),
                Err(_) => tracing::debug!(%from, "the tls handshake took too long"),
            }
        });
    }
}

/// Finds out whose connection it is. The end of a device's pairing is its end; a stranger's is soon.
fn known(stream: TlsStream<Socket>, server: Pin, remote: &Remote, place: Place) -> Option<(Io, Peer)> {
    let connection = stream.get_ref().1;
    let client: Pin = peer_pin(connection)?;
    let binding = exporter(connection).ok()?;
    let channel = Channel { client, server, binding };
    let device = remote.device(&client);
    let io = match &device {
        Some(device) => {
            let cut = device.cut.clone();
            Cut::new(stream, move || cut.clone().cancelled_owned(), Held::Device(device.open()))
        }
        None => {
            let cut = place.cut.clone();
            let over = move || {
                let cut = cut.clone();
                async move {
                    let _either = tokio::time::timeout(STRANGER, cut.cancelled()).await;
                }
            };
            Cut::new(stream, over, Held::Stranger(place))
        }
    };
    Some((io, Peer { channel, device }))
}

impl Listener for TlsListener {
    type Io = Io;
    type Addr = Peer;

    async fn accept(&mut self) -> (Io, Peer) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // Only with the runtime does the accepting end.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Err(io::Error::other(format!("{} has no peer", self.local)))
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        stream.remote_addr().clone()
    }
}
