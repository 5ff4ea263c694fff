//! `cairn doctor`: to be written.

use std::process::ExitCode;

use cairn_cli::{FAILED, Globals};
use cairn_protocol::location::{DataRoot, Env};

/// Runs `cairn doctor`.
pub fn run(_env: &Env, _root: &DataRoot, _globals: &Globals) -> ExitCode {
    ExitCode::from(FAILED)
}
