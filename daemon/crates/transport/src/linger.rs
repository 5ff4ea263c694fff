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

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// Bytes thrown away at most for one client: what one that missed the message limit may have on its way.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Longest time for one client.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Sockets that linger at once; further ones are closed as they are.
const MAX_AT_ONCE: usize = 128;
static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// Accepts sockets that linger, with Nagle's delay switched off.
pub struct Lingering(pub TcpListener);

impl Listener for Lingering {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "no delay could not be set");
        }
        (Socket { stream: Some(stream), ended: false, lingers: true }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A socket that lingers when it is dropped before its client has ended.
pub struct Socket {
    /// Taken when dropped, never before.
    stream: Option<TcpStream>,
    ended: bool,
    lingers: bool,
}

impl Socket {
    /// Whether it lingers at all.
    pub fn lingers(&mut self, whether: bool) {
        self.lingers = whether;
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
        let mut listener = Lingering(TcpListener::bind("127.0.0.1:0").await.unwrap());
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
        let mut listener = Lingering(TcpListener::bind("127.0.0.1:0").await.unwrap());
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
}
