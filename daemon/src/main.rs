//! The binary `cairn`: daemon and client in one.

mod advertise;
mod audit_output;
mod compose;
mod config_source;
mod context;
mod doctor;
mod download;
mod extensions;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(not(feature = "fleet"))]
#[path = "no_fleet.rs"]
mod fleet;
mod host;
mod instance;
mod keychain;
mod language_servers;
mod launch;
mod lifecycle;
mod listen;
mod logging;
mod memory;
mod models;
mod notifications;
mod reload;
mod remote;
mod root_config;
mod rotating_log;
mod serve;
mod service;
mod settings;
mod telemetry;
mod trust;

use cairn_harness::sandbox::{HELPER_WORD, sandbox_main};

fn main() -> std::process::ExitCode {
    // Comes first: as the sandbox's helper the program must be quick and must not have done
    // anything else.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == HELPER_WORD) {
        return sandbox_main(args);
    }
    memory::limit_allocator();
    cairn_cli::main(&host::Binary)
}
