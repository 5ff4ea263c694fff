//! `daemon.stats` in the Prometheus text format (version 0.0.4).

use std::fmt::Write;

use cairn_protocol::error::Failure;

use crate::Api;

impl Api {
    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn metrics(&self) -> Result<String, Failure> {
        let s = self.stats().await?;
        let rows: [(&str, &str, &str, u64); 15] = [
            ("uptime_seconds", "gauge", "Seconds since start.", s.uptime_seconds),
            ("resident_bytes", "gauge", "Resident memory.", s.resident_bytes),
            ("anonymous_bytes", "gauge", "Resident memory that is not file pages.", s.anonymous_bytes),
            ("connections", "gauge", "Connections.", s.connections),
            ("subscriptions", "gauge", "Subscriptions.", s.subscriptions),
            ("calls_total", "counter", "Calls.", s.calls),
            ("call_errors_total", "counter", "Calls that ended with an error.", s.call_errors),
            ("sessions", "gauge", "Sessions in the log.", s.sessions),
            ("running", "gauge", "Runs at work.", s.running),
            ("records_appended_total", "counter", "Records appended.", s.records_appended),
            ("log_queue", "gauge", "Jobs that wait for the log's writer.", s.log_queue),
            ("log_bytes", "gauge", "Bytes of the log's database.", s.log_bytes),
            ("index_files", "gauge", "Files in all indexes.", s.index_files),
            ("index_chunks", "gauge", "Chunks in all indexes.", s.index_chunks),
            ("index_pending", "gauge", "Files waiting to be indexed.", s.index_pending),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in rows {
            // Writing to a string does not fail.
            let _ok = writeln!(
                text,
                "# HELP cairn_{name} {help}\n# TYPE cairn_{name} {kind}\ncairn_{name} {value}"
            );
        }
        Ok(text)
    }
}
