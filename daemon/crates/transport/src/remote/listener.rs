//! The listener for devices: TLS, then HTTP as on the local listener.

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
    abortable_stream::AbortableStream,
    browser::BrowserConnection,
    connection_limit::{ConnectionLimit, ConnectionSlot},
    devices,
};
use crate::http::linger::{Lingering, Socket};

/// Time limit of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Lifetime of an unpaired connection, enough for pairing.
pub(super) const UNPAIRED_LIFETIME: Duration = Duration::from_secs(30);
/// Capacity of the queue of established connections.
const QUEUE_CAPACITY: usize = 16;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub enum Peer {
    /// A machine, which proved a key.
    Machine {
        /// Both keys and the data unique to this connection.
        channel: Channel,
        /// The device, if it was paired when it connected.
        device: Option<Arc<devices::Entry>>,
    },
    /// A browser, which has no key.
    Browser(Arc<BrowserConnection>),
}

/// The guard that a connection holds while it is open.
pub enum ConnectionGuard {
    Device(devices::Open),
    Unpaired(ConnectionSlot),
    Browser(Arc<BrowserConnection>),
}

pub type Io = AbortableStream<TlsStream<Socket>, ConnectionGuard>;

/// Accepts connections whose handshake has finished.
pub struct TlsListener {
    ready: mpsc::Receiver<(Io, Peer)>,
    local: SocketAddr,
    _accepting: AbortOnDropHandle<()>,
}

impl TlsListener {
    /// Accepts on `listener` for `remote`.
    ///
    /// # Errors
    /// The listener cannot be used.
    pub fn new(listener: std::net::TcpListener, remote: Arc<Remote>) -> io::Result<Self> {
        let off = || io::Error::other("remote control was opened without a listener");
        let (pin, tls) = remote.tls().ok_or_else(off)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let listener = Lingering::new(tokio::net::TcpListener::from_std(listener)?);
        let (to, ready) = mpsc::channel(QUEUE_CAPACITY);
        let accepting =
            AbortOnDropHandle::new(tokio::spawn(accept(listener, tls.into(), pin, remote, to)));
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
    let limit = ConnectionLimit::default();
    loop {
        let (mut socket, from) = Listener::accept(&mut listener).await;
        // A client before its handshake needs no close frame.
        socket.set_lingering(false);
        let slot = limit.enter(from.ip());
        let acceptor = acceptor.clone();
        let remote = Arc::clone(&remote);
        let to = to.clone();
        tokio::spawn(async move {
            let abort = slot.abort.clone();
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)) => shaken,
                () = abort.cancelled() => return,
            };
            match shaken {
                Ok(Ok(mut stream)) => {
                    stream.get_mut().0.set_lingering(true);
                    let Some(created) = identify(stream, pin, &remote, slot) else { return };
                    // A send error means that the daemon is stopping.
                    let _stopping = to.send(created).await;
                }
                Ok(Err(error)) => tracing::debug!(%from, %error, "the TLS handshake failed"),
                Err(_) => tracing::debug!(%from, "the TLS handshake timed out"),
            }
        });
    }
}

/// Identifies the peer. A device's connection ends with its pairing, an unpaired one soon.
fn identify(
    stream: TlsStream<Socket>,
    server: Pin,
    remote: &Remote,
    slot: ConnectionSlot,
) -> Option<(Io, Peer)> {
    let connection = stream.get_ref().1;
    let Some(client) = peer_pin(connection) else { return Some(browser(stream, slot)) };
    let binding = exporter(connection).ok()?;
    let channel = Channel { client, server, binding };
    let device = remote.device(&client);
    let io = match &device {
        Some(device) => {
            let abort = device.abort.clone();
            AbortableStream::new(
                stream,
                move || abort.clone().cancelled_owned(),
                ConnectionGuard::Device(device.open()),
            )
        }
        None => {
            let abort = slot.abort.clone();
            let over = move || {
                let abort = abort.clone();
                async move {
                    let _either = tokio::time::timeout(UNPAIRED_LIFETIME, abort.cancelled()).await;
                }
            };
            AbortableStream::new(stream, over, ConnectionGuard::Unpaired(slot))
        }
    };
    Some((io, Peer::Machine { channel, device }))
}

/// Wraps the connection of a client without a key.
fn browser(stream: TlsStream<Socket>, slot: ConnectionSlot) -> (Io, Peer) {
    let evicted = slot.abort.clone();
    let browser = BrowserConnection::new(slot);
    let connection = Arc::clone(&browser);
    let io = AbortableStream::new(
        stream,
        move || Arc::clone(&connection).until_closed(evicted.clone()),
        ConnectionGuard::Browser(Arc::clone(&browser)),
    );
    (io, Peer::Browser(browser))
}

impl Listener for TlsListener {
    type Io = Io;
    type Addr = Peer;

    async fn accept(&mut self) -> (Io, Peer) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // Accepting ends only with the runtime.
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
