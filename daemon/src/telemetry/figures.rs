//! The metrics of `/metrics`, read when they are exported.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_api::{Api, FIGURES};
use cairn_protocol::daemon::DaemonStats;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::runtime::Handle;

/// Values younger than this belong to the same export.
const MAX_AGE: Duration = Duration::from_millis(500);
/// Time limit for reading them.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

struct Reading {
    api: Arc<Api>,
    runtime: Handle,
    last: Mutex<Option<(Instant, DaemonStats)>>,
}

impl Reading {
    /// Reads the present values; `None` if that fails, and then nothing is exported. Called on the
    /// exporter's thread.
    fn now(&self) -> Option<DaemonStats> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, stats)) = last.as_ref().filter(|(at, _)| at.elapsed() < MAX_AGE) {
            let _ = at;
            return Some(stats.clone());
        }
        let stats = self
            .runtime
            .block_on(async { tokio::time::timeout(READ_TIMEOUT, self.api.stats()).await });
        let stats = stats.ok()?.ok()?;
        *last = Some((Instant::now(), stats.clone()));
        Some(stats)
    }
}

/// Registers the metrics with `provider`.
pub fn register(provider: &SdkMeterProvider, api: &Arc<Api>) {
    let reading = Arc::new(Reading {
        api: Arc::clone(api),
        runtime: Handle::current(),
        last: Mutex::default(),
    });
    let meter = provider.meter("cairn");
    for figure in FIGURES {
        let reading = Arc::clone(&reading);
        let value = move || reading.now().map(|stats| figure.of(&stats));
        if figure.counter {
            let observed = meter.u64_observable_counter(figure.name).with_description(figure.help);
            observed
                .with_callback(move |to| value().into_iter().for_each(|v| to.observe(v, &[])))
                .build();
        } else {
            let observed = meter.u64_observable_gauge(figure.name).with_description(figure.help);
            observed
                .with_callback(move |to| value().into_iter().for_each(|v| to.observe(v, &[])))
                .build();
        }
    }
}
