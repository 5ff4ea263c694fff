//! The binary `cairn`: a daemon and its client in one.

mod advertise;
mod compose;
mod doctor;
mod host;
mod instance;
mod lifecycle;
mod listen;
mod logging;
mod serve;
mod service;
mod settings;

fn main() -> std::process::ExitCode {
    cairn_cli::main(&host::Binary)
}
