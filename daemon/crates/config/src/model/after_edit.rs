//! Formatters and checks that run after edits of files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Formatters, which run in the sandbox after an edit.
    FormatConfig "camelCase" {
        /// Program and arguments by the extension of a file, as in `"rs": ["rustfmt"]`; the path of
        /// the file is added as the last argument.
        commands: BTreeMap<String, Vec<String>> = BTreeMap::new(),
    }
}

section! {
    /// Checks, which run in the sandbox after an edit; the model receives their results.
    DiagnosticsConfig "camelCase" {
        /// `off` runs none.
        mode: DiagnosticsMode = DiagnosticsMode::Auto,
        /// Command line that checks the project, as in `cargo check --offline`.
        command: Option<String> = None,
        /// Seconds that a check or a formatter may take.
        timeout_seconds: u64 = 60,
    }
}

/// Use of checks after edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticsMode {
    /// The configured check runs.
    Auto,
    /// No check runs.
    Off,
}
