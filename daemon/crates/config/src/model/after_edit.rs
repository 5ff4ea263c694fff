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
        /// `auto` uses the language server of a file's language, else the command; `server` and
        /// `command` use one of them; `off` runs none.
        mode: DiagnosticsMode = DiagnosticsMode::Auto,
        /// Command line that checks the project, as in `cargo check --offline`.
        command: Option<String> = None,
        /// Seconds that a check command or a formatter may take.
        timeout_seconds: u64 = 60,
        /// Seconds that an edit waits for its language server, at most 60.
        wait: u64 = 3,
        /// Language servers by name, added to the known ones (`rust-analyzer`, `pyright`,
        /// `typescript`, `clangd`, `gopls`) or changing them. They run only in trusted folders.
        servers: BTreeMap<String, LanguageServer> = BTreeMap::new(),
    }
}

section! {
    /// A language server; values that are absent stay those of the known server.
    LanguageServer "camelCase" {
        /// Program and arguments; an empty list turns the server off.
        command: Option<Vec<String>> = None,
        /// Extensions of its files, as in `rs`.
        extensions: Option<Vec<String>> = None,
        /// Names of files that mark the folder of a project, as in `Cargo.toml`.
        markers: Option<Vec<String>> = None,
    }
}

/// Use of checks after edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticsMode {
    /// A language server checks, else the configured command.
    Auto,
    /// Only language servers check.
    Server,
    /// Only the configured command checks.
    Command,
    /// No check runs.
    Off,
}
