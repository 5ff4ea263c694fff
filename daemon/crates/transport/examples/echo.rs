//! Echoes every message over this crate's WebSocket settings, for conformance suites.

use axum::{
    Router,
    extract::{WebSocketUpgrade, ws::Message},
    routing::get,
};
use futures_util::StreamExt;

/// Maximum message size in bytes, above the largest case of the suites.
const LIMIT: usize = 32 * 1024 * 1024;

async fn upgrade(upgrade: WebSocketUpgrade) -> axum::response::Response {
    cairn_transport::ws::configure(upgrade, LIMIT).on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(_) | Message::Binary(_) = message
                && socket.send(message).await.is_err()
            {
                return;
            }
        }
    })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // A parent that passes a port waits for the file, so that it does not connect too early.
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    if let Some(file) = args.next() {
        std::fs::write(file, listener.local_addr()?.to_string())?;
    }
    axum::serve(listener, Router::new().route("/", get(upgrade))).await
}
