//! Closing without a reset: what a client still sends when we have said our last word is read and thrown away.
//!
//! A socket that is closed while bytes wait in it is reset by the kernel, and a reset may overtake the close frame that told
//! the client why. So a socket that is dropped before its client has ended is shut for writing and read to the client's end,
//! within bounds of bytes, time and number.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
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
};

use crate::unproven::{Proof, Unproven};

/// Bytes thrown away at most for one client: what one that missed the message limit may have on its way.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Longest time for one client.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Sockets that linger at once; further ones are closed as they are.
const MAX_AT_ONCE: usize = 128;
static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// How long accepting rests when no descriptor is free, and after any other failure.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);
const FAILED: Duration = Duration::from_secs(1);

/// Accepts sockets that linger, with Nagle's delay switched off.
pub struct Lingering {
    listener: TcpListener,
    /// The connections that must show a token, and how long they may take; none where clients are known otherwise.
    unproven: Option<(Unproven, Duration)>,
}

impl Lingering {
    /// Of a listener whose clients are known by something else than a token.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, unproven: None }
    }

    /// Of a listener whose clients must show a token within `limit`.
    pub fn proving(listener: TcpListener, limit: Duration) -> Self {
        Self { listener, unproven: Some((Unproven::default(), limit)) }
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
            if full && self.unproven.as_ref().is_some_and(|(unproven, _)| unproven.cut_oldest()) {
                tokio::time::sleep(NO_DESCRIPTOR).await;
                continue;
            }
            tracing::error!(%error, "no connection can be taken");
            tokio::time::sleep(FAILED).await;
        }
    }
}

impl Listener for Lingering {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, address) = self.next().await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no delay could not be set");
        }
        let mut socket =
            Socket { stream: Some(stream), ended: false, lingers: true, proof: Proof::default(), over: None };
        if let Some((unproven, limit)) = &self.unproven {
            socket.proof = unproven.enter();
            socket.over = Some(Box::pin(socket.proof.over(*limit)));
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

/// A socket that lingers when it is dropped before its client has ended.
pub struct Socket {
    /// Taken when dropped, never before.
    stream: Option<TcpStream>,
    ended: bool,
    lingers: bool,
    proof: Proof,
    /// Ends when a client without a token must go.
    over: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Socket {
    /// Whether it lingers at all.
    pub fn lingers(&mut self, whether: bool) {
        self.lingers = whether;
    }

    /// Fails when the client's time to show a token is over.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(over) = &mut self.over else { return Ok(()) };
        if self.proof.is_given() {
            self.over = None;
            return Ok(());
        }
        match over.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => {
                self.over = Some(Box::pin(std::future::ready(())));
                // Nobody is told anything who has shown nothing.
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
        let (before, room) = (buf.filled().len(), buf.remaining());
        let read = ready!(self.stream()?.poll_read(cx, buf));
        self.ended |= read.is_err() || (room > 0 && buf.filled().len() == before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
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
        let Some(stream) = self.stream.take().filter(|_| self.lingers && !self.ended) else { return };
        // Without a runtime the process is about to end, and the kernel does what it does.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Some(place) = Place::take() {
            runtime.spawn(async move {
                let _place = place;
                let _late = tokio::time::timeout(MAX_TIME, drain(stream)).await;
            });
        }
    }
}

/// One of the sockets that may linger at once.
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let place = Self;
        (LINGERING.fetch_add(1, Ordering::AcqRel) < MAX_AT_ONCE).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        LINGERING.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn drain(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut block = vec![0; 16 * 1024];
    let mut left = MAX_BYTES;
    while left > 0 {
        match stream.read(&mut block).await {
            Ok(0) | Err(_) => return,
            Ok(n) => left = left.saturating_sub(n as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that sends `bytes` to a server which takes one byte, says `no` and hangs up: whether all could be sent,
    /// and what it was told.
    async fn told(bytes: usize, lingers: bool) -> (bool, Option<String>) {
        let mut listener = Lingering::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut socket, _) = Listener::accept(&mut listener).await;
            socket.read_u8().await.unwrap();
            socket.write_all(b"no").await.unwrap();
            socket.lingers(lingers);
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
    async fn a_client_that_still_sends_hears_the_last_word() {
        assert_eq!(told(16 * 1024 * 1024, true).await, (true, Some("no".into())));
        // Control: without lingering it is reset.
        assert_ne!(told(16 * 1024 * 1024, false).await, (true, Some("no".into())));
    }

    #[tokio::test]
    async fn a_client_that_never_ends_is_left_in_the_end() {
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

    // K1
    #[tokio::test]
    async fn a_client_that_shows_no_token_is_left_when_its_time_is_over() {
        let limit = Duration::from_millis(300);
        let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut listener = Lingering::proving(bound, limit);
        let address = listener.local_addr().unwrap();
        let (mut silent, mut known) =
            (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
        let (mut first, _) = Listener::accept(&mut listener).await;
        let (mut second, _) = Listener::accept(&mut listener).await;
        // Both have sent a part of a request.
        for client in [&mut silent, &mut known] {
            client.write_all(b"GET").await.unwrap();
        }
        let mut part = [0; 3];
        first.read_exact(&mut part).await.unwrap();
        second.read_exact(&mut part).await.unwrap();
        second.proof.give();
        let began = std::time::Instant::now();
        assert_eq!(first.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(first);
        assert_eq!(silent.read(&mut part).await.unwrap_or(0), 0, "it is closed");
        // Control: who has shown a token stays, longer than that.
        let later = tokio::time::timeout(2 * limit, second.read_u8()).await;
        assert!(later.is_err(), "it was closed");
        known.write_all(b"!").await.unwrap();
        assert_eq!(second.read_u8().await.unwrap(), b'!');
    }

    // K1
    #[tokio::test]
    async fn a_new_client_takes_the_place_of_the_oldest_without_a_token() {
        let bound = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut listener = Lingering::proving(bound, Duration::from_secs(600));
        let address = listener.local_addr().unwrap();
        let (mut clients, mut sockets) = (Vec::new(), Vec::new());
        for _ in 0..crate::unproven::MOST + 3 {
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
