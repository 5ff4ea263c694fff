//! What the command line asks of this binary: to serve, and what only it knows.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use cairn_cli::{DoctorArgs, FAILED, Globals, Host, ServeArgs, ServiceArgs, UNREACHABLE};
use cairn_client_sdk::ALREADY_RUNNING;
use cairn_protocol::location::{DataRoot, Env};

use crate::{doctor, instance::InstanceError, logging, serve, service, settings};

const NO_HOME: &str = "there is no home folder to keep data in; set CAIRN_HOME";

/// This binary.
pub struct Binary;

impl Host for Binary {
    fn serve(&self, args: ServeArgs, globals: &Globals) -> ExitCode {
        let on_demand = args.on_demand;
        match run(args, globals) {
            Ok(()) => ExitCode::SUCCESS,
            // Its client knows that it may lose the race to another's daemon.
            Err(Unserved::Other(_)) if on_demand => ExitCode::from(ALREADY_RUNNING),
            Err(Unserved::Other(error)) => {
                tell(&format!("error: {error}"));
                ExitCode::from(ALREADY_RUNNING)
            }
            Err(Unserved::Failed(error)) => {
                // In the form that a client which started this looks for in the log.
                tell(&format!("error: {}", error.replace('\n', "; ")));
                ExitCode::from(FAILED)
            }
        }
    }

    fn service(&self, args: ServiceArgs, globals: &Globals) -> ExitCode {
        service::run(args.action, globals)
    }

    fn doctor(&self, _: DoctorArgs, globals: &Globals) -> ExitCode {
        let env = Env::from_process();
        match env.data_root() {
            Some(root) => doctor::run(&env, &DataRoot(root), globals),
            None => {
                tell(&format!("error: {NO_HOME}"));
                ExitCode::from(UNREACHABLE)
            }
        }
    }

    fn config_inputs(&self, globals: &Globals, project: Option<PathBuf>) -> cairn_config::Inputs {
        settings::inputs(&Env::from_process(), &flags(globals), project)
    }
}

fn tell(text: &str) {
    // With standard error closed there is nobody to tell.
    let _closed = writeln!(std::io::stderr(), "{text}");
}

fn flags(globals: &Globals) -> settings::Flags {
    settings::Flags { config: globals.config.clone(), ..settings::Flags::default() }
}

/// Why there was nothing to serve.
enum Unserved {
    /// Another daemon has the data root.
    Other(String),
    /// It failed.
    Failed(String),
}

impl From<String> for Unserved {
    fn from(message: String) -> Self {
        Unserved::Failed(message)
    }
}

fn run(args: ServeArgs, globals: &Globals) -> Result<(), Unserved> {
    let env = Env::from_process();
    let root = DataRoot(env.data_root().ok_or_else(|| NO_HOME.to_owned())?);
    let mode = match (args.on_demand, args.service) {
        (true, _) => serve::Mode::OnDemand,
        (_, true) => serve::Mode::Service,
        _ => serve::Mode::Foreground,
    };
    let mut flags = flags(globals);
    // The environment of the client that starts a daemon is no setting of the daemon: it would hold for all clients.
    flags.without_environment = mode == serve::Mode::OnDemand;
    flags.overrides.extend(args.port.map(|port| ("listen.port".into(), port.into())));
    flags.overrides.extend(args.listen.map(|ip| ("listen.address".into(), ip.to_string().into())));
    let log_file = (mode == serve::Mode::OnDemand).then(|| root.log_file());
    let from_environment = || std::env::var("CAIRN_LOG").ok().filter(|_| mode != serve::Mode::OnDemand);
    let given = args.log.or_else(from_environment);
    let log_given = given.is_some();
    let filter = given.unwrap_or_else(|| "info".into());
    let levels =
        logging::start(&filter, log_file.as_deref()).map_err(|e| format!("the log cannot be opened: {e}"))?;
    let options = serve::Options {
        mode,
        flags,
        lan: args.lan,
        insecure_lan: args.insecure_lan,
        label: args.name,
        idle_exit: args.idle_exit,
        log_given,
        log_file,
    };
    let runtime = tokio::runtime::Runtime::new().map_err(|e| format!("no runtime: {e}"))?;
    match runtime.block_on(serve::serve(&env, root, options, levels)) {
        Ok(_) => Ok(()),
        Err(error @ serve::ServeError::Instance(InstanceError::Running(_))) => {
            Err(Unserved::Other(error.to_string()))
        }
        Err(error) => Err(Unserved::Failed(error.to_string())),
    }
}
