//! The binary `cairn`: a daemon and its client in one.

mod advertise;
mod compose;
mod instance;
mod lifecycle;
mod listen;
mod logging;
mod serve;
mod settings;

fn main() -> std::process::ExitCode {
    let env = cairn_protocol::location::Env::from_process();
    let Some(root) = env.data_root() else { return std::process::ExitCode::from(2) };
    let root = cairn_protocol::location::DataRoot(root);
    let options = serve::Options {
        mode: serve::Mode::Foreground,
        flags: settings::Flags::default(),
        insecure_lan: None,
        label: None,
        idle_exit: None,
        log_file: None,
    };
    let Ok(levels) = logging::start("info", None) else { return std::process::ExitCode::from(1) };
    let Ok(runtime) = tokio::runtime::Runtime::new() else { return std::process::ExitCode::from(1) };
    match runtime.block_on(serve::serve(&env, root, options, levels)) {
        Ok(_) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "failed");
            std::process::ExitCode::from(1)
        }
    }
}
