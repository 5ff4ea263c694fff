//! `kill -9` at random moments of everything that writes.

use std::time::Duration;

use cairn_test_support::random;
use serde_json::json;

use super::workload::Workload;
use crate::{
    contents::count,
    sealed::{Daemon, note, tree},
};

/// Maximum life of a daemon, in milliseconds.
const LIFE: u64 = 700;

/// `CAIRN_KILLS=5000` is the long form.
#[tokio::test]
async fn killed_daemon_has_all_that_was_acknowledged_and_no_leftovers() {
    let mut rng = random("kills within everything");
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    // Sessions are packed after 14 days, and removed after 30 except for some.
    let config = json!({"retention": {"maxAgeDays": 30, "keep": 5, "packAfterDays": 14}});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let mut workload = Workload::new(dir.path());
    let rounds = count("CAIRN_KILLS", 25);
    for round in 0..rounds {
        let mut daemon = Daemon::start_in(&home, &[]);
        let mut raw = daemon.client().await;
        workload.check(&mut raw, &home).await;
        let life = Duration::from_millis(rng.u64(..LIFE));
        let work = async { while workload.step(&mut raw, &mut rng).await.is_ok() {} };
        let _cut = tokio::time::timeout(life, work).await;
        daemon.kill9();
        drop(daemon);
        if round % 4 == 3 {
            workload.age(&home);
        }
    }
    let daemon = Daemon::start_in(&home, &[]);
    workload.check(&mut daemon.client().await, &home).await;
    assert_eq!(workload.failures, [], "no call fails");
    note(&format!("{rounds} kills, {} acknowledged calls", workload.acknowledged));
}
