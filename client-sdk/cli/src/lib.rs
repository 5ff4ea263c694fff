//! Every command of `cairn` that a user types: parses the arguments, calls the daemon, prints.

mod app;
mod args;
mod bridge;
mod chat;
mod commands;
mod confirm;
mod exit;
mod overrides;
mod program;
mod render;
mod scope;
mod version;

use std::{pin::Pin, process::ExitCode};

use clap::{Parser as _, error::ErrorKind};

pub use args::Globals;
pub use commands::host::{DoctorArgs, Host, ServeArgs, ServiceAction, ServiceArgs};
pub use exit::{FAILED, INTERRUPTED, OK, REFUSED, UNREACHABLE, USAGE};
pub use program::Owner;

use crate::{
    app::App,
    args::{Cli, Command, Sessions},
    commands::{
        audit, clients, completions, config, discover, eval, explore, grep, history, index, man,
        map, mcp, memory, models, overview, pair, plugins, references, search, sessions, skills,
        status, stdio, stop, storage, symbols, tools, trace, uninstall, update, viewer, worktrees,
    },
    exit::Failure,
};

/// Parses this process's arguments and runs the command. `host` implements what only the daemon's
/// binary can do.
pub fn main(host: &dyn Host) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let has_json = std::env::args_os().any(|argument| argument == "--json");
            if error.kind() == ErrorKind::DisplayVersion && has_json {
                let _closed = render::output::json(&version_report());
                return ExitCode::from(OK);
            }
            // Standard output may be closed.
            let _closed = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { OK });
        }
    };
    let mut globals = cli.globals;
    if let Some(Command::Chat(args)) = &cli.command {
        // -c is free for this only in this command.
        globals.config = args.config.clone().or(globals.config);
    }
    let sessions = cli.command.as_ref().map_or(Sessions::None, Command::sessions);
    let app = App::new(host, globals, sessions);
    let outcome = match cli.command {
        Some(command) => run(&app, command),
        None => wait(overview::run(&app)).map(ExitCode::from),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.report(app.globals.json),
    }
}

fn run(app: &App<'_>, command: Command) -> Result<ExitCode, Failure> {
    let done = |code: u8| Ok(ExitCode::from(code));
    if let Some(name) = command.local_only_name() {
        app.require_local(name)?;
    }
    match command {
        Command::Serve(args) => Ok(app.host.serve(args, &app.globals)),
        Command::Service(args) => Ok(app.host.service(args, &app.globals)),
        Command::Doctor(args) => Ok(app.host.doctor(args, &app.globals)),
        Command::Config(args) => wait(config::run(app, &args)).and_then(done),
        Command::Reload => wait(config::reload(app)).and_then(done),
        Command::Update(args) => update::run(app, &args).and_then(done),
        Command::Uninstall(args) => wait(uninstall::run(app, args)).and_then(done),
        Command::Man(args) => man::run(&args).and_then(done),
        Command::Completions(args) => completions::run(&args).and_then(done),
        Command::Chat(args) => wait(chat::run(app, *args)).and_then(done),
        Command::Tools(args) => wait(tools::run(app, args)).and_then(done),
        Command::Models(args) => wait(models::run(app, args)).and_then(done),
        Command::Du(args) => wait(storage::du(app, args)).and_then(done),
        Command::Gc(args) => wait(storage::gc(app, args)).and_then(done),
        Command::Sessions(args) => wait(sessions::run(app, args)).and_then(done),
        Command::Worktrees(args) => wait(worktrees::run(app, args)).and_then(done),
        Command::Run(args) => wait(commands::run::run(app, *args)).and_then(done),
        Command::Schedule(args) => wait(commands::schedule::run(app, args)).and_then(done),
        Command::History(args) => wait(history::run(app, args)).and_then(done),
        Command::Audit(args) => wait(audit::run(app, args)).and_then(done),
        Command::Explore(args) => wait(explore::run(app, args)).and_then(done),
        Command::Search(args) => wait(search::run(app, args)).and_then(done),
        Command::Eval(args) => wait(eval::run(app, args)).and_then(done),
        Command::Grep(args) => wait(grep::run(app, args)).and_then(done),
        Command::Symbols(args) => wait(symbols::run(app, args)).and_then(done),
        Command::Refs(args) => wait(references::refs(app, args)).and_then(done),
        Command::Impact(args) => wait(references::impact(app, args)).and_then(done),
        Command::Map(args) => wait(map::run(app, args)).and_then(done),
        Command::Memory(args) => wait(memory::run(app, args)).and_then(done),
        Command::Skills(args) => wait(skills::run(app, args)).and_then(done),
        Command::Plugins(args) => wait(plugins::run(app, args)).and_then(done),
        Command::Index(args) => wait(index::run(app, args)).and_then(done),
        Command::Status => wait(status::run(app)).and_then(done),
        Command::Trace(args) => wait(trace::run(app, args)).and_then(done),
        Command::Discover(args) => wait(discover::run(app, &args)).and_then(done),
        Command::Viewer(args) => wait(viewer::run(app, &args)).and_then(done),
        Command::Pair(args) => wait(pair::run(app, args)).and_then(done),
        Command::Clients(args) => wait(clients::run(app, args)).and_then(done),
        Command::Mcp(args) => wait(mcp::run(app, args)).and_then(done),
        Command::Acp => wait(stdio::acp(app)).and_then(done),
        Command::Stdio(args) => wait(stdio::run(app, args)).and_then(done),
        Command::Stop => wait(stop::run(app)).and_then(done),
    }
}

/// Returns the installer of this program.
pub fn installed_by() -> program::Owner {
    let exe = std::env::current_exe().and_then(|exe| exe.canonicalize());
    exe.map_or(program::Owner::Unknown, |exe| program::Owner::of(&exe))
}

/// The answer to `cairn --version --json`.
fn version_report() -> serde_json::Value {
    serde_json::json!({
        "name": "cairn",
        "version": version::OWN,
        "protocolVersions": cairn_protocol::PROTOCOL_VERSIONS,
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
    })
}

/// Runs a command that uses the daemon.
fn wait(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    wait_boxed(Box::pin(work))
}

/// One instance of the runtime's code serves all commands.
fn wait_boxed(
    work: Pin<Box<dyn Future<Output = Result<u8, Failure>> + '_>>,
) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("cannot start a runtime: {e}")))?.block_on(work)
}
