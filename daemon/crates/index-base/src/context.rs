//! The context of an index of a root.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Folder, root and stop flag of an index.
#[derive(Debug, Clone)]
pub struct IndexContext {
    /// The folder with the files of the index.
    pub folder: PathBuf,
    /// The path of the indexed root, for log messages.
    pub root: PathBuf,
    /// Set when long operations should return early; they continue at the next opening.
    pub stop: Arc<AtomicBool>,
}

impl IndexContext {
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
