//! Export of traces and metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Traces and metrics for an OpenTelemetry collector, by OTLP over HTTP. They contain names,
    /// ids, durations and counts; never arguments, prompts, file contents or keys.
    TelemetryConfig "camelCase" {
        /// Sends traces and metrics.
        enabled: bool = false,
        /// Address of the collector, without `/v1/traces`. When absent, that of
        /// `OTEL_EXPORTER_OTLP_ENDPOINT` if it is on this machine, else `http://127.0.0.1:4318`. A
        /// collector on another machine has to be named here.
        endpoint: Option<String> = None,
        /// Headers of every request; `${NAME}` is replaced by a variable of the daemon.
        headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Sends spans of requests, runs, model requests and tool calls.
        traces: bool = true,
        /// Sends the metrics of `/metrics`.
        metrics: bool = true,
        /// Seconds between two exports, 1 to 3600.
        interval_seconds: u64 = 30,
    }
}

pub(super) fn is_address(text: &str) -> bool {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace)
    })
}
