//! `cairn service`: to be written.

use std::process::ExitCode;

use cairn_cli::{FAILED, Globals, ServiceAction};

/// Runs `cairn service`.
pub fn run(_action: ServiceAction, _globals: &Globals) -> ExitCode {
    ExitCode::from(FAILED)
}
