//! Structured logs: to a file for a daemon that was started on demand, to standard error otherwise.

use std::{io, path::Path};

use cairn_engine::span::SPANS;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Filtered, filter::LevelFilter, filter::Targets, fmt,
    layer::Layered, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

use crate::rotating_log::RotatingLog;

/// A layer that exports spans, once there is one.
type Spans = Option<Box<dyn Layer<Registry> + Send + Sync>>;
/// The registry with that layer and its filter, which disables every callsite until spans are
/// exported.
type WithSpans = Layered<
    Filtered<reload::Layer<Spans, Registry>, reload::Layer<Targets, Registry>, Registry>,
    Registry,
>;

/// Handle for changing the log level and the span exporter while the daemon runs.
pub struct Levels {
    filter: reload::Handle<EnvFilter, WithSpans>,
    spans: reload::Handle<Spans, Registry>,
    span_filter: reload::Handle<Targets, Registry>,
}

impl Levels {
    /// Sets the filter, in the format of `RUST_LOG` (`info`, `cairn_search=debug,info`).
    pub fn set(&self, filter: &str) {
        match parse_filter(filter) {
            Ok(filter) => {
                if let Err(error) = self.filter.reload(filter) {
                    tracing::warn!(%error, "the log level was not changed");
                }
            }
            Err(error) => tracing::warn!(%error, filter, "not a log filter"),
        }
    }

    /// Sends the spans for traces, and nothing else, to `layer`; `None` disables them.
    ///
    /// # Errors
    /// The subscriber is gone.
    pub fn send_spans(&self, layer: Spans) -> Result<(), reload::Error> {
        let span_filter = Targets::new();
        let span_filter = if layer.is_some() {
            span_filter.with_target(SPANS, LevelFilter::INFO)
        } else {
            span_filter
        };
        if layer.is_none() {
            self.span_filter.reload(span_filter)?;
            return self.spans.reload(layer);
        }
        self.spans.reload(layer)?;
        self.span_filter.reload(span_filter)
    }
}

/// Parses a filter in the format of `RUST_LOG`. The MCP library is silenced unless the filter names
/// it, because it logs every connection and every refused call with the client's text. Spans for
/// traces are never logged.
fn parse_filter(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let quiet =
        |name: &str| if text.contains(name) { String::new() } else { format!(",{name}=error") };
    EnvFilter::try_new(format!("{text}{}{},{SPANS}=off", quiet("rmcp"), quiet("notify")))
}

/// Starts logging: to `file` as JSON lines, or to standard error.
///
/// # Errors
/// The file cannot be opened.
pub fn start(filter: &str, file: Option<&Path>) -> io::Result<Levels> {
    let parsed = parse_filter(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let (level_filter, filter) = reload::Layer::new(parsed);
    let (layer, spans) = reload::Layer::new(None);
    let (enabled_spans, span_filter) = reload::Layer::new(Targets::new());
    let registry = tracing_subscriber::registry().with(layer.with_filter(enabled_spans));
    // A test may have installed a subscriber already.
    let _set = match file {
        Some(path) => {
            let writer = RotatingLog::open(path)?;
            let lines = fmt::layer().json().with_writer(std::sync::Mutex::new(writer));
            registry.with(lines.with_filter(level_filter)).try_init()
        }
        None => {
            registry.with(fmt::layer().with_writer(io::stderr).with_filter(level_filter)).try_init()
        }
    };
    Ok(Levels { filter, spans, span_filter })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_created_only_while_exported() {
        let levels = start("trace", None).unwrap();
        let is_enabled = || !tracing::info_span!(target: SPANS, "x").is_disabled();
        assert!(!is_enabled());
        levels.send_spans(Some(Box::new(tracing_subscriber::layer::Identity::new()))).unwrap();
        assert!(is_enabled());
        levels.set("error");
        assert!(is_enabled());
        levels.send_spans(None).unwrap();
        assert!(!is_enabled());
    }
}
