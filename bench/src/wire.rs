//! Round trips compared with a raw TCP echo, and the cost of an idle connection.

use std::{path::Path, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    daemon::Daemon,
    meter::{memory, quantile, report, value},
};

/// Number of round trips.
const TRIPS: usize = 20_000;
/// Number of idle connections.
const IDLE: usize = 500;

pub async fn run(home: &Path) {
    let daemon = Daemon::start(home);
    let mut client = daemon.connect().await;
    // The cheapest call: an error that only involves the wire.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
    let mut ours = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        client.round_trip(ping.clone()).await;
        ours.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let mut raw = echo(ping.len()).await;
    let a = quantile(&mut ours, 0.5);
    let b = quantile(&mut raw, 0.5);
    let c = quantile(&mut ours, 0.99);
    let d = quantile(&mut raw, 0.99);
    value("wire: round trip p50 us", a);
    value("wire: round trip, beside a TCP echo ratio", a / b);
    report(format!(
        "wire: round trip                    p50 {a:.1} us  p99 {c:.1} us; raw TCP echo p50 {b:.1} us  p99 {d:.1} us; ratio {:.2}",
        a / b
    ));
    let before = memory(Some(daemon.pid()), "RssAnon");
    let mut connections = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        connections.push(daemon.connect().await);
    }
    let each = (memory(Some(daemon.pid()), "RssAnon") - before) * 1024.0 / IDLE as f64;
    report(format!(
        "wire: idle connection               {each:.1} KiB each of {IDLE}  floor <= 16 KiB"
    ));
}

async fn echo(size: usize) -> Vec<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.set_nodelay(true).expect("nodelay");
        let mut buffer = [0; 1024];
        while let Ok(n @ 1..) = stream.read(&mut buffer).await {
            stream.write_all(&buffer[..n]).await.expect("sent");
        }
    });
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("nodelay");
    let mut buffer = vec![b'x'; size];
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        stream.write_all(&buffer).await.expect("sent");
        stream.read_exact(&mut buffer).await.expect("back");
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times
}
