//! Structured logs with levels: to a file for a daemon that a client started, to standard error otherwise.

use std::{fs::OpenOptions, io, path::Path};

use tracing_subscriber::{EnvFilter, Registry, fmt, layer::SubscriberExt, reload, util::SubscriberInitExt};

/// Bytes after which an old log is put aside at the next start.
const ROTATE_AT: u64 = 8 * 1024 * 1024;

/// Changes the level while the daemon runs.
pub struct Levels(reload::Handle<EnvFilter, Registry>);

impl Levels {
    /// Sets the filter, in the form of `RUST_LOG` (`info`, `cairn_search=debug,info`).
    pub fn set(&self, filter: &str) {
        match filter_of(filter) {
            Ok(filter) => {
                if let Err(error) = self.0.reload(filter) {
                    tracing::warn!(%error, "the log level was not changed");
                }
            }
            Err(error) => tracing::warn!(%error, filter, "not a log filter"),
        }
    }
}

/// A filter in the form of `RUST_LOG`. The MCP library tells of every connection and every refused call, with what the
/// client said: that is wanted only where it is asked for by name.
fn filter_of(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(if text.contains("rmcp") { text.to_owned() } else { format!("{text},rmcp=error") })
}

/// Starts logging; to `file`, when one is named, as JSON lines.
///
/// # Errors
/// When the file cannot be opened.
pub fn start(filter: &str, file: Option<&Path>) -> io::Result<Levels> {
    let parsed = filter_of(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let (levels, handle) = reload::Layer::new(parsed);
    let registry = tracing_subscriber::registry().with(levels);
    // A subscriber that is set already (in a test) stays.
    let _set = match file {
        Some(path) => {
            let writer = open(path)?;
            registry.with(fmt::layer().json().with_writer(std::sync::Mutex::new(writer))).try_init()
        }
        None => registry.with(fmt::layer().with_writer(io::stderr)).try_init(),
    };
    Ok(Levels(handle))
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
