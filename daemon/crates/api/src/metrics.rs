//! The daemon's metrics: `daemon.stats` in the Prometheus text format (version 0.0.4), and as a
//! list.

use std::fmt::Write;

use cairn_protocol::{daemon::DaemonStats, error::Failure};

use crate::Api;

#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Name, which starts with `cairn_`.
    pub name: &'static str,
    /// True if the value never decreases while the daemon lives.
    pub counter: bool,
    pub help: &'static str,
    read: fn(&DaemonStats) -> u64,
}

impl Figure {
    pub fn of(&self, stats: &DaemonStats) -> u64 {
        (self.read)(stats)
    }
}

const fn gauge(name: &'static str, help: &'static str, read: fn(&DaemonStats) -> u64) -> Figure {
    Figure { name, counter: false, help, read }
}

const fn counter(name: &'static str, help: &'static str, read: fn(&DaemonStats) -> u64) -> Figure {
    Figure { name, counter: true, help, read }
}

pub const FIGURES: &[Figure] = &[
    gauge("cairn_uptime_seconds", "Seconds since start.", |s| s.uptime_seconds),
    gauge("cairn_resident_bytes", "Resident memory.", |s| s.resident_bytes),
    gauge("cairn_anonymous_bytes", "Resident memory that is not file pages.", |s| {
        s.anonymous_bytes
    }),
    gauge("cairn_connections", "Connections.", |s| s.connections),
    gauge("cairn_subscriptions", "Subscriptions.", |s| s.subscriptions),
    counter("cairn_calls_total", "Calls.", |s| s.calls),
    counter("cairn_call_errors_total", "Calls that ended with an error.", |s| s.call_errors),
    gauge("cairn_sessions", "Sessions in the log.", |s| s.sessions),
    gauge("cairn_running", "Runs in progress.", |s| s.running),
    counter("cairn_records_appended_total", "Records appended.", |s| s.records_appended),
    gauge("cairn_log_queue", "Queued jobs of the log's writer.", |s| s.log_queue),
    gauge("cairn_log_bytes", "Bytes of the log's database.", |s| s.log_bytes),
    gauge("cairn_index_files", "Files in all indexes.", |s| s.index_files),
    gauge("cairn_index_chunks", "Chunks in all indexes.", |s| s.index_chunks),
    gauge("cairn_index_pending", "Files waiting to be indexed.", |s| s.index_pending),
];

impl Api {
    /// Renders the text of `/metrics`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn metrics(&self) -> Result<String, Failure> {
        let stats = self.stats().await?;
        let mut text = String::new();
        for figure in FIGURES {
            let Figure { name, help, .. } = figure;
            let kind = if figure.counter { "counter" } else { "gauge" };
            let value = figure.of(&stats);
            // Writing to a string cannot fail.
            let _ok = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        Ok(text)
    }
}
