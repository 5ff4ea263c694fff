//! Where traces and metrics go, when anywhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Traces and metrics for an OpenTelemetry collector, by OTLP over HTTP. They hold names, ids, durations and counts; never
    /// arguments, prompts, contents of files or keys.
    TelemetryConfig "camelCase" {
        /// Whether they are sent.
        enabled: bool = false,
        /// The collector's address, without `/v1/traces`. When absent, that of `OTEL_EXPORTER_OTLP_ENDPOINT` if it is on this
        /// machine, else `http://127.0.0.1:4318`. One on another machine has to be named here.
        endpoint: Option<String> = None,
        /// Headers of every request; `${NAME}` stands for a variable of the daemon's environment.
        headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Whether spans are sent: of requests, runs, questions to models, tool calls.
        traces: bool = true,
        /// Whether the figures of `/metrics` are sent.
        metrics: bool = true,
        /// Seconds between two sendings, 1 to 3600.
        interval_seconds: u64 = 30,
    }
}

/// Whether a text can be the address of a collector.
pub(super) fn is_address(text: &str) -> bool {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}
