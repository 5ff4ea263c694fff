//! Start on an existing index, idle memory, clean stop.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    daemon::Daemon,
    meter::{memory, quantile, report, timed},
};

/// Number of starts that are measured.
const STARTS: usize = 9;

/// Measures starts and stops on the home of `daemon`, which is stopped first.
pub async fn run(daemon: Daemon, home: &Path) {
    let peak = memory(Some(daemon.pid()), "VmHWM");
    let burst = memory(Some(daemon.pid()), "RssAnon");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = memory(Some(daemon.pid()), "RssAnon");
    report(format!(
        "memory: while indexing             peak {peak:.0} MB resident, with the mapped files of the index  floor <= 400 MB for 1 GB of text"
    ));
    report(format!(
        "memory: after indexing              {burst:.1} MB anonymous, {after:.1} MB three seconds later  floor < 60 MB idle"
    ));
    let first_stop = daemon.stop();
    let mut ready = vec![];
    let mut stops = vec![first_stop];
    let mut anonymous = 0.0;
    let mut resident = 0.0;
    let mut first: Vec<f64> = Vec::new();
    for _ in 0..STARTS {
        let (daemon, ms) = timed(|| Daemon::start(home));
        ready.push(ms);
        let mut client = daemon.connect().await;
        let start = Instant::now();
        let answer = client
            .call("search.hybrid", json!({"query": "release a lock when the owner is gone"}))
            .await;
        first.push(start.elapsed().as_secs_f64() * 1000.0);
        assert!(answer["items"].as_array().is_some_and(|items| !items.is_empty()), "{answer}");
        tokio::time::sleep(Duration::from_millis(700)).await;
        anonymous = memory(Some(daemon.pid()), "RssAnon");
        resident = memory(Some(daemon.pid()), "VmRSS");
        stops.push(daemon.stop());
    }
    let mut nothing: Vec<f64> =
        (0..STARTS).map(|_| timed(|| Command::new("/bin/true").status()).1).collect();
    let p50 = quantile(&mut ready, 0.5);
    let p95 = quantile(&mut ready, 0.95);
    report(format!(
        "start: spawn to ready               p50 {p50:.1} ms  p95 {p95:.1} ms; /bin/true {:.1} ms  floor < 100 ms",
        quantile(&mut nothing, 0.5)
    ));
    report(format!(
        "start: first search after it        p50 {:.1} ms  max {:.1} ms  floor <= 100 ms",
        quantile(&mut first.clone(), 0.5),
        quantile(&mut first, 1.0)
    ));
    report(format!(
        "start: idle memory                  {anonymous:.1} MB anonymous, {resident:.1} MB resident  floor < 60 MB anonymous"
    ));
    report(format!(
        "stop: SIGTERM to end                p50 {:.0} ms  max {:.0} ms  floor < 2000 ms",
        quantile(&mut stops.clone(), 0.5),
        quantile(&mut stops, 1.0)
    ));
}
