//! Connecting a paired device: TLS with both keys verified, the upgrade, and the answer of
//! `initialize`.

use std::{path::Path, time::Instant};

use cairn_client_sdk::Connector;
use cairn_protocol::{
    location::{DataRoot, Env},
    remote::{PairBeginParams, Right},
};

use crate::{
    daemon::Daemon,
    meter::{latencies, report},
};

/// Number of connections that are measured.
const TIMES: usize = 50;

/// Pairs over loopback and connects repeatedly, compared with the same without TLS.
pub async fn run(home: &Path) {
    let daemon = Daemon::start_with(home, &["--lan", "127.0.0.1:0"]);
    let env = |home: &Path| Env { cairn_home: Some(home.to_owned()), ..Env::default() };
    let local = Connector::local(env(&daemon.home));
    let admin = local.connect().await.expect("the daemon");
    let params = PairBeginParams { rights: vec![Right::Observe], name: None };
    let offer = admin.pair_begin(&params).await.expect("a code");
    let device = home.with_extension("device");
    let at = &offer.addresses[0];
    let root = DataRoot(device.clone());
    let start = Instant::now();
    cairn_client_sdk::pair(&root, at, None, &offer.code, "bench", Some("den"))
        .await
        .expect("paired");
    report(format!("{:34} {:9.3} ms", "remote: pairing", start.elapsed().as_secs_f64() * 1000.0));
    for (name, connector, floor) in [
        ("remote: tls and initialize", Connector::remote(env(&device), "den"), "floor <= 10 ms"),
        ("remote: the same without tls", local, ""),
    ] {
        let mut took = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let start = Instant::now();
            let client = connector.connect().await.expect("a connection");
            took.push(start.elapsed().as_secs_f64() * 1000.0);
            drop(client);
        }
        latencies(name, took, floor);
    }
}
