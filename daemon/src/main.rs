//! The binary `cairn`: a daemon and its client in one.

mod advertise;
mod compose;
mod config_source;
mod context;
mod doctor;
mod external;
mod extras;
mod host;
mod instance;
mod keychain;
mod launch;
mod lifecycle;
mod listen;
mod logging;
mod mcp;
mod memory;
mod models;
mod plugins;
mod reload;
mod remote;
mod root_config;
mod serve;
mod service;
mod settings;
mod skills;
mod telemetry;

use cairn_harness::sandbox::{HELPER_WORD, sandbox_main};

fn main() -> std::process::ExitCode {
    // First of all: as the sandbox's helper it must be quick and have done nothing.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == HELPER_WORD) {
        return sandbox_main(args);
    }
    memory::bound();
    cairn_cli::main(&host::Binary)
}
