//! Structured logs with levels: to a file for a daemon that a client started, to standard error otherwise.

use std::{fs::OpenOptions, io, path::Path};

use cairn_engine::span::SPANS;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Filtered, filter::LevelFilter, filter::Targets, fmt, layer::Layered,
    layer::SubscriberExt, reload, util::SubscriberInitExt,
};

/// Bytes after which an old log is put aside at the next start.
const ROTATE_AT: u64 = 8 * 1024 * 1024;

/// A layer that sends spans on, once there is one.
type Spans = Option<Box<dyn Layer<Registry> + Send + Sync>>;
/// The registry with that layer, and with what it is shown: no callsite at all until it is wanted.
type WithSpans =
    Layered<Filtered<reload::Layer<Spans, Registry>, reload::Layer<Targets, Registry>, Registry>, Registry>;

/// Changes what is logged, and where spans go, while the daemon runs.
pub struct Levels {
    filter: reload::Handle<EnvFilter, WithSpans>,
    spans: reload::Handle<Spans, Registry>,
    wanted: reload::Handle<Targets, Registry>,
}

impl Levels {
    /// Sets the filter, in the form of `RUST_LOG` (`info`, `cairn_search=debug,info`).
    pub fn set(&self, filter: &str) {
        match filter_of(filter) {
            Ok(filter) => {
                if let Err(error) = self.filter.reload(filter) {
                    tracing::warn!(%error, "the log level was not changed");
                }
            }
            Err(error) => tracing::warn!(%error, filter, "not a log filter"),
        }
    }

    /// Sends the spans that are made for traces, and nothing else, to `layer`; nowhere with `None`.
    ///
    /// # Errors
    /// When there is no subscriber any more.
    pub fn send_spans(&self, layer: Spans) -> Result<(), reload::Error> {
        let wanted = Targets::new();
        let wanted = if layer.is_some() { wanted.with_target(SPANS, LevelFilter::INFO) } else { wanted };
        if layer.is_none() {
            self.wanted.reload(wanted)?;
            return self.spans.reload(layer);
        }
        self.spans.reload(layer)?;
        self.wanted.reload(wanted)
    }
}

/// A filter in the form of `RUST_LOG`. The MCP library tells of every connection and every refused call, with what the
/// client said: that is wanted only where it is asked for by name. Spans for traces are no lines of a log.
fn filter_of(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let quiet = |name: &str| if text.contains(name) { String::new() } else { format!(",{name}=error") };
    EnvFilter::try_new(format!("{text}{}{},{SPANS}=off", quiet("rmcp"), quiet("notify")))
}

/// Starts logging; to `file`, when one is named, as JSON lines.
///
/// # Errors
/// When the file cannot be opened.
pub fn start(filter: &str, file: Option<&Path>) -> io::Result<Levels> {
    let parsed = filter_of(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let (levels, filter) = reload::Layer::new(parsed);
    let (layer, spans) = reload::Layer::new(None);
    let (shown, wanted) = reload::Layer::new(Targets::new());
    let registry = tracing_subscriber::registry().with(layer.with_filter(shown));
    // A subscriber that is set already (in a test) stays.
    let _set = match file {
        Some(path) => {
            let writer = open(path)?;
            let lines = fmt::layer().json().with_writer(std::sync::Mutex::new(writer));
            registry.with(lines.with_filter(levels)).try_init()
        }
        None => registry.with(fmt::layer().with_writer(io::stderr).with_filter(levels)).try_init(),
    };
    Ok(Levels { filter, spans, wanted })
}

/// Opens the log; one over the limit becomes `daemon.log.1` first.
pub fn open(path: &Path) -> io::Result<std::fs::File> {
    if let Some(dir) = path.parent() {
        crate::instance::make_dir(dir)?;
    }
    if path.metadata().is_ok_and(|m| m.len() > ROTATE_AT) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_made_only_while_somebody_wants_them() {
        let levels = start("trace", None).unwrap();
        let made = || !tracing::info_span!(target: SPANS, "x").is_disabled();
        assert!(!made());
        levels.send_spans(Some(Box::new(tracing_subscriber::layer::Identity::new()))).unwrap();
        assert!(made());
        levels.set("error");
        assert!(made());
        levels.send_spans(None).unwrap();
        assert!(!made());
    }
}
