//! Subscribers that check the numbers of their events, and the time until one has caught up.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Figures, TICK, add, number_of};
use crate::daemon::Client;

/// Pause of a slow subscriber after each message.
const SLOW: Duration = Duration::from_millis(150);
/// Time after which a subscriber follows the latest session of its worker.
const FOLLOWED: Duration = Duration::from_secs(40);
/// Longest wait for a message before the end of the load is looked for.
const WAIT: Duration = Duration::from_secs(1);

/// Follows one session after the other from its first event, and counts missing events.
pub async fn follow(mut client: Client, n: usize, is_slow: bool, figures: Arc<Figures>) {
    while figures.is_running() {
        let Some(session) = figures.session(n * 4) else {
            tokio::time::sleep(TICK).await;
            continue;
        };
        let params = json!({"sessionId": session, "after": 0});
        let subscription =
            client.call("orchestrate.subscribe", params).await["subscriptionId"].clone();
        let start = Instant::now();
        let mut last = 0;
        while figures.is_running() && start.elapsed() < FOLLOWED {
            let Ok(message) = tokio::time::timeout(WAIT, client.message()).await else { continue };
            if message["method"] == "orchestrate.lagged" {
                figures.lags.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(number) = number_of(&message, &subscription) {
                figures.events.fetch_add(1, Ordering::Relaxed);
                figures.gaps.fetch_add(u64::from(number != last + 1), Ordering::Relaxed);
                last = number;
            }
            if is_slow {
                tokio::time::sleep(SLOW).await;
            }
        }
        client.call("orchestrate.unsubscribe", json!({"subscriptionId": subscription})).await;
    }
}

/// Measures the time from a subscription to the end of its backlog.
pub async fn probe(mut client: Client, figures: Arc<Figures>) {
    let mut n = 0;
    while figures.is_running() {
        n += 1;
        tokio::time::sleep(TICK).await;
        let Some(session) = figures.session(n) else { continue };
        let start = Instant::now();
        let params = json!({"sessionId": session, "after": 0});
        let subscription =
            client.call("orchestrate.subscribe", params).await["subscriptionId"].clone();
        while client.message().await["method"] != "orchestrate.synced" {}
        add(&figures.subscribes, start);
        client.call("orchestrate.unsubscribe", json!({"subscriptionId": subscription})).await;
    }
}
