//! The figures of `/metrics`, read when they are to be sent.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_api::{Api, FIGURES};
use cairn_protocol::daemon::DaemonStats;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::runtime::Handle;

/// Figures this young are those of the same sending.
const SAME: Duration = Duration::from_millis(500);
/// Time to read them.
const PATIENCE: Duration = Duration::from_secs(2);

struct Reading {
    api: Arc<Api>,
    runtime: Handle,
    last: Mutex<Option<(Instant, DaemonStats)>>,
}

impl Reading {
    /// What is there now; none where it cannot be read, and then nothing is sent. Called by the reader's own thread.
    fn now(&self) -> Option<DaemonStats> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, stats)) = last.as_ref().filter(|(at, _)| at.elapsed() < SAME) {
            let _ = at;
            return Some(stats.clone());
        }
        let stats = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, self.api.stats()).await });
        let stats = stats.ok()?.ok()?;
        *last = Some((Instant::now(), stats.clone()));
        Some(stats)
    }
}

/// Has the figures sent by `provider`.
pub fn register(provider: &SdkMeterProvider, api: &Arc<Api>) {
    let reading =
        Arc::new(Reading { api: Arc::clone(api), runtime: Handle::current(), last: Mutex::default() });
    let meter = provider.meter("cairn");
    for figure in FIGURES {
        let reading = Arc::clone(&reading);
        let value = move || reading.now().map(|stats| figure.of(&stats));
        if figure.counter {
            let observed = meter.u64_observable_counter(figure.name).with_description(figure.help);
            observed.with_callback(move |to| value().into_iter().for_each(|v| to.observe(v, &[]))).build();
        } else {
            let observed = meter.u64_observable_gauge(figure.name).with_description(figure.help);
            observed.with_callback(move |to| value().into_iter().for_each(|v| to.observe(v, &[]))).build();
        }
    }
}
