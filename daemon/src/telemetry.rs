//! Export of traces and metrics to an OpenTelemetry collector, by OTLP over HTTP, if the user's
//! configuration enables it.
//!
//! Spans are queued, with a limit, and sent by a separate thread; metrics are read and sent by
//! another. The daemon waits for neither, except at its end for at most [`FLUSH_TIMEOUT`].

mod address;
mod figures;
mod sender;

use std::{collections::HashMap, sync::Arc, time::Duration};

use cairn_api::Api;
use cairn_config::TelemetryConfig;
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{
    MetricExporter, RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    metrics::{PeriodicReader, SdkMeterProvider},
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};

use crate::{logging::Levels, serve::VERSION};
use sender::Sender;

/// Maximum number of queued spans; further ones are dropped.
const MAX_QUEUED_SPANS: usize = 4096;
/// Maximum number of spans per request.
const MAX_BATCH: usize = 512;
/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the last request, when the daemon stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    levels: Arc<Levels>,
}

impl Telemetry {
    /// Starts exporting if it is enabled. A failure is logged and does not prevent the daemon from
    /// starting.
    pub fn start(
        config: &TelemetryConfig,
        api: &Arc<Api>,
        instance: &str,
        levels: Arc<Levels>,
    ) -> Option<Self> {
        if !config.enabled {
            return None;
        }
        match open(config, api, instance, levels) {
            Ok(telemetry) => Some(telemetry),
            Err(why) => {
                tracing::warn!("no telemetry is sent: {why}");
                None
            }
        }
    }

    /// Sends the queued data, within [`FLUSH_TIMEOUT`].
    pub async fn end(self) {
        if let Err(error) = self.levels.send_spans(None) {
            tracing::debug!(%error, "span creation could not be disabled");
        }
        let traces = self.traces;
        let metrics = self.metrics;
        let flush = [
            traces.map(|t| {
                Box::new(move || t.shutdown_with_timeout(FLUSH_TIMEOUT))
                    as Box<dyn FnOnce() -> _ + Send>
            }),
            metrics.map(|m| Box::new(move || m.shutdown_with_timeout(FLUSH_TIMEOUT)) as _),
        ];
        // Separate threads, which do not delay the end of the process.
        let ends = flush.into_iter().flatten().map(|work| {
            let (done, finished) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                let _not_awaited = done.send(work());
            });
            finished
        });
        let all = futures_util::future::join_all(ends.collect::<Vec<_>>());
        if tokio::time::timeout(FLUSH_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                "the last telemetry was not accepted within {} s and is dropped",
                FLUSH_TIMEOUT.as_secs()
            );
        }
    }
}

fn open(
    config: &TelemetryConfig,
    api: &Arc<Api>,
    instance: &str,
    levels: Arc<Levels>,
) -> Result<Telemetry, String> {
    let standard = std::env::var(opentelemetry_otlp::OTEL_EXPORTER_OTLP_ENDPOINT).ok();
    let (address, ignored) = address::choose(config.endpoint.as_deref(), standard.as_deref());
    if let Some(why) = ignored {
        tracing::warn!("telemetry: {why}");
    }
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        headers.insert(
            name.clone(),
            crate::extensions::mcp::expand_variables(value)
                .map_err(|why| format!("header {name}: {why}"))?,
        );
    }
    address::check(&address, !headers.is_empty())?;
    let sender = Arc::new(Sender::new(&address, TIMEOUT)?);
    let every = Duration::from_secs(config.interval_seconds);
    let resource = Resource::builder()
        .with_service_name("cairn")
        .with_attribute(KeyValue::new("service.version", VERSION))
        .with_attribute(KeyValue::new("service.instance.id", instance.to_owned()))
        .build();
    let mut telemetry = Telemetry { traces: None, metrics: None, levels };
    if config.traces {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_shared_http_client(Arc::clone(&sender) as _)
            .with_endpoint(format!("{address}/v1/traces"))
            .with_headers(headers.clone())
            .with_timeout(TIMEOUT)
            .with_retry_policy(RetryPolicy::recommended())
            .build()
            .map_err(|e| e.to_string())?;
        let batch = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_QUEUED_SPANS)
            .with_max_export_batch_size(MAX_BATCH)
            .with_scheduled_delay(every)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(resource.clone())
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("cairn"))
            // Locations in the code and threads are useless to users.
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false);
        telemetry.levels.send_spans(Some(Box::new(layer))).map_err(|e| e.to_string())?;
        telemetry.traces = Some(provider);
    }
    if config.metrics {
        let exporter = MetricExporter::builder()
            .with_http()
            .with_shared_http_client(sender as _)
            .with_endpoint(format!("{address}/v1/metrics"))
            .with_headers(headers)
            .with_timeout(TIMEOUT)
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|e| e.to_string())?;
        let reader = PeriodicReader::builder(exporter).with_interval(every).build();
        let provider =
            SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
        figures::register(&provider, api);
        telemetry.metrics = Some(provider);
    }
    tracing::info!(to = address::without_credentials(&address), "telemetry is sent");
    Ok(telemetry)
}
