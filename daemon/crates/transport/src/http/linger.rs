//! Closing of sockets without a reset: input that arrives after the last message is read and
//! discarded.
//!
//! The kernel resets a socket that is closed while unread bytes wait in it, and the reset may
//! overtake the close frame that explains the reason to the client. A socket that is dropped before
//! its client has finished is therefore shut down for writing and drained to the client's end,
//! within limits of bytes, time and number.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use super::unauthenticated::{Proof, UnauthenticatedLimit};

/// Maximum bytes discarded per client: a client that ignores the message limit may have this much
/// in flight.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum time per client.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Maximum number of lingering sockets of a listener; further ones are closed at once.
const MAX_AT_ONCE: usize = 128;

/// Pauses of the accept loop after running out of descriptors, and after any other error.
const AFTER_NO_DESCRIPTOR: Duration = Duration::from_millis(20);
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Accepts sockets that linger, with Nagle's algorithm disabled.
pub struct Lingering {
    listener: TcpListener,
    /// Unauthenticated connections and their time limit; `None` where clients authenticate
    /// otherwise.
    unauthenticated: Option<(UnauthenticatedLimit, Duration)>,
    slots: Arc<Semaphore>,
}

impl Lingering {
    /// Creates a listener whose clients authenticate otherwise than by token.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, unauthenticated: None, slots: Arc::new(Semaphore::new(MAX_AT_ONCE)) }
    }

    /// Creates a listener whose clients must present a token within `limit`.
    pub fn requiring_token(listener: TcpListener, limit: Duration) -> Self {
        let unauthenticated = Some((UnauthenticatedLimit::default(), limit));
        Self { unauthenticated, ..Self::new(listener) }
    }

    async fn next(&self) -> (TcpStream, SocketAddr) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        loop {
            let error = match self.listener.accept().await {
                Ok(next) => return next,
                Err(error) => error,
            };
            let full = matches!(
                rustix::io::Errno::from_io_error(&error),
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
            );
            if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
                continue;
            }
            if full
                && self
                    .unauthenticated
                    .as_ref()
                    .is_some_and(|(unauthenticated, _)| unauthenticated.evict_oldest())
            {
                tokio::time::sleep(AFTER_NO_DESCRIPTOR).await;
                continue;
            }
            tracing::error!(%error, "connections cannot be accepted");
            tokio::time::sleep(AFTER_ERROR).await;
        }
    }
}

impl Listener for Lingering {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, address) = self.next().await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let mut socket = Socket {
            stream: Some(stream),
            client_finished: false,
            lingers: true,
            slots: self.slots.clone(),
            proof: Proof::default(),
            expired: None,
        };
        if let Some((unauthenticated, limit)) = &self.unauthenticated {
            socket.proof = unauthenticated.enter();
            socket.expired = Some(Box::pin(socket.proof.expired(*limit)));
        }
        (socket, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Lingering>> for Proof {
    fn connect_info(stream: IncomingStream<'_, Lingering>) -> Self {
        stream.io().proof.clone()
    }
}

/// A socket that lingers when it is dropped before its client has finished.
pub struct Socket {
    /// Taken only by `drop`.
    stream: Option<TcpStream>,
    client_finished: bool,
    lingers: bool,
    /// Permits to linger, shared by the sockets of a listener.
    slots: Arc<Semaphore>,
    proof: Proof,
    /// Resolves when an unauthenticated client must be disconnected.
    expired: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Socket {
    /// Enables or disables lingering.
    pub fn set_lingering(&mut self, lingers: bool) {
        self.lingers = lingers;
    }

    /// Fails when the client's time to authenticate is over.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(expired) = &mut self.expired else { return Ok(()) };
        if self.proof.is_authenticated() {
            self.expired = None;
            return Ok(());
        }
        match expired.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => {
                self.expired = Some(Box::pin(std::future::ready(())));
                // Clients that did not authenticate get no explanation.
                self.lingers = false;
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buf.filled().len();
        let room = buf.remaining();
        let read = ready!(self.stream()?.poll_read(cx, buf));
        self.client_finished |= read.is_err() || (room > 0 && buf.filled().len() == before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take().filter(|_| self.lingers && !self.client_finished)
        else {
            return;
        };
        // Without a runtime the process is about to exit, so the kernel may close the socket.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            runtime.spawn(async move {
                let _slot = slot;
                let _late = tokio::time::timeout(MAX_TIME, drain(stream)).await;
            });
        }
    }
}

async fn drain(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut block = vec![0; 16 * 1024];
    let mut remaining = MAX_BYTES;
    while remaining > 0 {
        match stream.read(&mut block).await {
            Ok(0) | Err(_) => return,
            Ok(n) => remaining = remaining.saturating_sub(n as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a client that sends `bytes` to a server which reads one byte, answers `no` and closes.
    /// Returns whether all bytes could be sent, and the received answer.
    async fn exchange(bytes: usize, lingers: bool) -> (bool, Option<String>) {
        let mut listener = Lingering::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut socket, _) = Listener::accept(&mut listener).await;
            socket.read_u8().await.unwrap();
            socket.write_all(b"no").await.unwrap();
            socket.set_lingering(lingers);
            drop(socket);
            tokio::time::sleep(Duration::from_secs(10)).await;
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        let sent = client.write_all(&vec![7; bytes]).await.is_ok();
        let mut text = String::new();
        let read = client.read_to_string(&mut text).await;
        server.abort();
        (sent, read.ok().map(|_| text))
    }

    #[tokio::test]
    async fn sending_client_receives_last_message() {
        assert_eq!(exchange(16 * 1024 * 1024, true).await, (true, Some("no".into())));
        // Control: without lingering the connection is reset.
        assert_ne!(exchange(16 * 1024 * 1024, false).await, (true, Some("no".into())));
    }

    #[tokio::test]
    async fn endless_client_is_disconnected_after_limit() {
        let mut listener = Lingering::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (socket, _) = Listener::accept(&mut listener).await;
        drop(socket);
        let began = std::time::Instant::now();
        let block = vec![7; 64 * 1024];
        let mut sent = 0_u64;
        while client.write_all(&block).await.is_ok() {
            sent += block.len() as u64;
            assert!(sent < 4 * MAX_BYTES && began.elapsed() < 3 * MAX_TIME, "it reads for ever");
        }
        assert!(sent >= MAX_BYTES / 2, "{sent}");
    }

    #[tokio::test]
    async fn unauthenticated_client_is_disconnected_after_limit() {
        let limit = Duration::from_millis(300);
        let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut listener = Lingering::requiring_token(bound, limit);
        let address = listener.local_addr().unwrap();
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut known = TcpStream::connect(address).await.unwrap();
        let (mut first, _) = Listener::accept(&mut listener).await;
        let (mut second, _) = Listener::accept(&mut listener).await;
        // Both have sent a part of a request.
        for client in [&mut silent, &mut known] {
            client.write_all(b"GET").await.unwrap();
        }
        let mut part = [0; 3];
        first.read_exact(&mut part).await.unwrap();
        second.read_exact(&mut part).await.unwrap();
        second.proof.mark_authenticated();
        let began = std::time::Instant::now();
        assert_eq!(first.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(first);
        assert_eq!(silent.read(&mut part).await.unwrap_or(0), 0, "it is closed");
        // Control: an authenticated client stays connected for longer than that.
        let later = tokio::time::timeout(2 * limit, second.read_u8()).await;
        assert!(later.is_err(), "it was closed");
        known.write_all(b"!").await.unwrap();
        assert_eq!(second.read_u8().await.unwrap(), b'!');
    }

    #[tokio::test]
    async fn new_client_evicts_oldest_unauthenticated() {
        let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut listener = Lingering::requiring_token(bound, Duration::from_secs(600));
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        let mut sockets = Vec::new();
        for _ in 0..super::super::unauthenticated::MAX_CONNECTIONS + 3 {
            clients.push(TcpStream::connect(address).await.unwrap());
            sockets.push(Listener::accept(&mut listener).await.0);
        }
        for socket in &mut sockets[..3] {
            assert_eq!(socket.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
        clients[3].write_all(b"!").await.unwrap();
        assert_eq!(sockets[3].read_u8().await.unwrap(), b'!');
    }
}
