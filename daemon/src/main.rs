//! The binary `cairn`: a daemon and its client in one.

mod advertise;
mod compose;
mod context;
mod doctor;
mod host;
mod instance;
mod lifecycle;
mod listen;
mod logging;
mod memory;
mod models;
mod reload;
mod serve;
mod service;
mod settings;

fn main() -> std::process::ExitCode {
    memory::bound();
    cairn_cli::main(&host::Binary)
}
