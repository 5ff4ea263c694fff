//! The listener: a client without a token gets little and not for long, and each request has one
//! interpretation.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::sealed::Daemon;

/// Returns the status line of the answer to a request; empty without an answer.
fn status(daemon: &Daemon, request: &str) -> String {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while answer.last() != Some(&b'\n') && stream.read(&mut byte).is_ok_and(|n| n == 1) {
        answer.push(byte[0]);
    }
    String::from_utf8_lossy(&answer).trim().to_owned()
}

// K2
#[test]
fn ambiguous_handshake_is_refused() {
    let daemon = Daemon::start();
    let (address, token) = (daemon.address(), daemon.token());
    let good = "dGhlIHNhbXBsZSBub25jZQ==";
    let ask = |line: &str, hosts: &[&str], tokens: &[&str], key: &str| {
        let mut request =
            format!("GET {line} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
        hosts.iter().for_each(|host| request += &format!("Host: {host}\r\n"));
        tokens.iter().for_each(|token| request += &format!("Authorization: Bearer {token}\r\n"));
        request += &format!("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n");
        status(&daemon, &request)
    };
    let one = [token.as_str()];
    assert!(ask("/rpc", &[&address], &one, good).contains(" 101 "), "the control");
    let absolute = format!("http://{address}/rpc");
    assert!(ask(&absolute, &[&address], &one, good).contains(" 101 "), "the same host twice");
    for (host, want) in [
        (format!("{address}@evil.example"), " 403 "),
        (format!("{address}.evil.example"), " 403 "),
        ("127.0.0.1.evil.example".to_owned(), " 403 "),
        ("[::1]evil".to_owned(), " 403 "),
    ] {
        let got = ask("/rpc", &[&host], &one, good);
        assert!(got.contains(want) || got.contains(" 400 "), "{host}: {got}");
    }
    for got in [
        ask("/rpc", &[&address, &address], &one, good),
        ask("/rpc", &[&address, "evil.example"], &one, good),
        ask("/rpc", &[&address], &[&token, &token], good),
        ask("/rpc", &[&address], &["wrong", &token], good),
        ask("/rpc", &[&address], &one, "AAAA"),
        ask("/rpc", &[&address], &one, ""),
        ask("http://evil.example/rpc", &[&address], &one, good),
        ask(&format!("http://{address}@evil.example/rpc"), &[&address], &one, good),
    ] {
        assert!(got.contains(" 400 ") || got.contains(" 403 ") || got.contains(" 401 "), "{got}");
    }
}

// K1
#[tokio::test]
async fn silent_connections_do_not_block_others_and_are_closed() {
    let daemon = Daemon::start();
    let mut early = daemon.client().await;
    let began = Instant::now();
    let mut silent: Vec<TcpStream> =
        (0..400).map(|_| TcpStream::connect(daemon.address()).unwrap()).collect();
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // An incomplete request, as sent by a slow client.
        let _ignored = stream.write_all(b"GET /rpc HTTP/1.1\r\nHost: 127");
    }
    // A client with a token is accepted beside them, and existing clients stay connected.
    let mut late = daemon.client().await;
    late.ok("daemon.status", json!({})).await;
    let elapsed = tokio::task::spawn_blocking(move || {
        for stream in &mut silent {
            let mut rest = [0; 64];
            // End of the stream, or a reset: no answer.
            while stream.read(&mut rest).is_ok_and(|n| n > 0) {}
        }
        began.elapsed()
    });
    let elapsed = elapsed.await.unwrap();
    assert!(elapsed < Duration::from_secs(30), "{elapsed:?}");
    early.ok("daemon.status", json!({})).await;
    late.ok("daemon.status", json!({})).await;
}
