//! The parts of the command line that only the daemon's binary implements, such as serving.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use cairn_cli::{DoctorArgs, FAILED, Globals, Host, ServeArgs, ServiceArgs, UNREACHABLE};
use cairn_client_sdk::ALREADY_RUNNING;
use cairn_protocol::location::{DataRoot, Env};

use crate::{doctor, download, instance::InstanceError, logging, serve, service, settings};

const NO_HOME: &str = "there is no home folder to store data in; set CAIRN_HOME";

pub struct Binary;

impl Host for Binary {
    fn serve(&self, args: ServeArgs, globals: &Globals) -> ExitCode {
        let on_demand = args.on_demand;
        match run(args, globals) {
            Ok(()) => ExitCode::SUCCESS,
            // The client expects that another client's daemon may win the race.
            Err(NotServed::Other(_)) if on_demand => ExitCode::from(ALREADY_RUNNING),
            Err(NotServed::Other(error)) => {
                print_error(&format!("error: {error}"));
                ExitCode::from(ALREADY_RUNNING)
            }
            Err(NotServed::Failed(error)) => {
                // The client that started this daemon looks for this format in the log.
                print_error(&format!("error: {}", error.replace('\n', "; ")));
                ExitCode::from(FAILED)
            }
        }
    }

    fn service(&self, args: ServiceArgs, globals: &Globals) -> ExitCode {
        service::run(args.action, globals)
    }

    fn doctor(&self, args: DoctorArgs, globals: &Globals) -> ExitCode {
        let env = Env::from_process();
        match env.data_root() {
            Some(root) if args.repair => doctor::repair(&DataRoot(root), args.yes, globals),
            Some(root) => doctor::run(&env, &DataRoot(root), globals),
            None => {
                print_error(&format!("error: {NO_HOME}"));
                ExitCode::from(UNREACHABLE)
            }
        }
    }

    fn service_files(&self) -> Vec<PathBuf> {
        service::present_files()
    }

    fn remove_service(&self) -> Result<Vec<PathBuf>, String> {
        service::remove()
    }

    fn download(&self, url: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        download::download(url, max_bytes)
    }

    fn config_inputs(&self, globals: &Globals, project: Option<PathBuf>) -> cairn_config::Inputs {
        settings::command_inputs(&Env::from_process(), &flags(globals), project)
    }
}

fn print_error(text: &str) {
    // With standard error closed there is no reader.
    let _closed = writeln!(std::io::stderr(), "{text}");
}

fn flags(globals: &Globals) -> settings::Flags {
    settings::Flags { config: globals.config.clone(), ..settings::Flags::default() }
}

/// The reason why nothing was served.
enum NotServed {
    /// Another daemon has the data root.
    Other(String),
    Failed(String),
}

impl From<String> for NotServed {
    fn from(message: String) -> Self {
        NotServed::Failed(message)
    }
}

fn run(args: ServeArgs, globals: &Globals) -> Result<(), NotServed> {
    let env = Env::from_process();
    let root = DataRoot(env.data_root().ok_or_else(|| NO_HOME.to_owned())?);
    let mode = match (args.on_demand, args.service) {
        (true, _) => serve::Mode::OnDemand,
        (_, true) => serve::Mode::Service,
        _ => serve::Mode::Foreground,
    };
    let mut flags = flags(globals);
    // The environment of the client that starts a daemon must not become the settings of all
    // clients.
    flags.without_environment = mode == serve::Mode::OnDemand;
    flags.overrides.extend(args.port.map(|port| ("listen.port".into(), port.into())));
    flags.overrides.extend(args.listen.map(|ip| ("listen.address".into(), ip.to_string().into())));
    let log_file = match mode {
        serve::Mode::OnDemand => Some(root.log_file()),
        // launchd has no journal and does not rotate what it redirects.
        serve::Mode::Service if cfg!(target_os = "macos") => Some(root.service_log()),
        _ => None,
    };
    let from_environment =
        || std::env::var("CAIRN_LOG").ok().filter(|_| mode != serve::Mode::OnDemand);
    let given = args.log.or_else(from_environment);
    let log_given = given.is_some();
    let filter = given.unwrap_or_else(|| "info".into());
    let levels = logging::start(&filter, log_file.as_deref())
        .map_err(|e| format!("the log cannot be opened: {e}"))?;
    let options = serve::Options {
        mode,
        flags,
        lan: args.lan,
        insecure_lan: args.insecure_lan,
        label: args.name,
        idle_exit: args.idle_exit,
        audit_stdout: args.audit_stdout,
        log_given,
        log_file,
    };
    let runtime =
        tokio::runtime::Runtime::new().map_err(|e| format!("cannot start a runtime: {e}"))?;
    match runtime.block_on(serve::serve(&env, root, options, levels)) {
        Ok(_) => Ok(()),
        Err(error @ serve::ServeError::Instance(InstanceError::Running(_))) => {
            Err(NotServed::Other(error.to_string()))
        }
        Err(error) => Err(NotServed::Failed(error.to_string())),
    }
}
