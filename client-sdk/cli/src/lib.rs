//! Every command of `cairn` that a user types: parses the arguments, calls the daemon, prints.

mod app;
mod args;
mod bridge;
mod chat;
mod commands;
mod confirm;
mod exit;
mod help;
mod mistake;
mod overrides;
mod program;
mod render;
mod scope;
mod session_name;
mod version;

use std::{pin::Pin, process::ExitCode};

use clap::{FromArgMatches as _, Parser as _, error::ErrorKind};

pub use args::Globals;
pub use commands::host::{DoctorArgs, Host, ServeArgs, ServiceAction, ServiceArgs};
pub use exit::{FAILED, INTERRUPTED, OK, REFUSED, UNREACHABLE, USAGE};
pub use program::Owner;

use crate::{
    app::App,
    args::{Cli, Command, Sessions},
    commands::{
        approvals, audit, clients, completions, config, discover, eval, explore, fleet, grep,
        history, index, man, map, mcp, memory, models, overview, pair, plugins, references, rules,
        search, sessions, setup, skills, status, stdio, stop, storage, symbols, tools, trace,
        trust, uninstall, update, viewer, worktrees,
    },
    exit::Failure,
};

/// Parses this process's arguments and runs the command. `host` implements what only the daemon's
/// binary can do.
pub fn main(host: &dyn Host) -> ExitCode {
    let parsed = help::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let has_json = std::env::args_os().any(|argument| argument == "--json");
            if error.kind() == ErrorKind::DisplayVersion && has_json {
                let _closed = render::output::json(&version_report());
                return ExitCode::from(OK);
            }
            return mistake::report(error, has_json);
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
    if let Some(name) = command.local_only_name() {
        app.require_local(name)?;
    }
    match command {
        Command::Serve(args) => Ok(app.host.serve(args, &app.globals)),
        Command::Service(args) => Ok(app.host.service(args, &app.globals)),
        Command::Doctor(args) => Ok(app.host.doctor(args, &app.globals)),
        command => run_client(app, command).map(ExitCode::from),
    }
}

/// Runs a command that is a client of the daemon.
fn run_client(app: &App<'_>, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Serve(_) | Command::Service(_) | Command::Doctor(_) => {
            Err(Failure::failed("this command is not a client's"))
        }
        Command::Config(args) => wait(config::run(app, &args)),
        Command::Reload => wait(config::reload(app)),
        Command::Update(args) => update::run(app, &args),
        Command::Uninstall(args) => wait(uninstall::run(app, args)),
        Command::Man(args) => man::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Chat(args) => wait(chat::run(app, *args)),
        Command::Tools(args) => wait(tools::run(app, args)),
        Command::Rules(args) => wait(rules::run(app, args)),
        Command::Models(args) => wait(models::run(app, args)),
        Command::Du(args) => wait(storage::du(app, args)),
        Command::Gc(args) => wait(storage::gc(app, args)),
        Command::Approvals(args) => wait(approvals::run(app, args)),
        Command::Sessions(args) => sessions::run(app, &args),
        Command::Fleet(args) => wait(fleet::run(app, args)),
        Command::Worktrees(args) => wait(worktrees::run(app, args))
            .map_err(|f| f.hint_for("path_not_found", "'cairn worktrees' lists them")),
        Command::Run(args) => wait(commands::run::run(app, *args)),
        Command::Schedule(args) => wait(commands::schedule::run(app, args)),
        Command::History(args) => wait(history::run(app, args)),
        Command::Audit(args) => wait(audit::run(app, args)),
        Command::Explore(args) => wait(explore::run(app, args)),
        Command::Search(args) => wait(search::run(app, args)),
        Command::Eval(args) => wait(eval::run(app, args)),
        Command::Grep(args) => wait(grep::run(app, args)),
        Command::Symbols(args) => wait(symbols::run(app, args)),
        Command::Refs(args) => wait(references::refs(app, args)).map_err(|f| {
            let hint = "'cairn symbols NAME' finds names; FILE:LINE is a line of a definition";
            f.hint_for("invalid_params", hint)
        }),
        Command::Impact(args) => wait(references::impact(app, args)),
        Command::Map(args) => wait(map::run(app, args)),
        Command::Memory(args) => wait(memory::run(app, args))
            .map_err(|f| f.hint_for("path_not_found", "'cairn memory list' lists the entries")),
        Command::Skills(args) => wait(skills::run(app, args)),
        Command::Plugins(args) => wait(plugins::run(app, args)),
        Command::Trust(args) => wait(trust::run(app, args)),
        Command::Index(args) => wait(index::run(app, args)),
        Command::Status => wait(status::run(app)),
        Command::Trace(args) => wait(trace::run(app, args)),
        Command::Discover(args) => wait(discover::run(app, &args)),
        Command::Setup(args) => setup::run(app, &args),
        Command::Open(args) => wait(viewer::open_session(app, &args)),
        Command::Viewer(args) => wait(viewer::run(app, &args)),
        Command::Pair(args) => wait(pair::run(app, args)),
        Command::Clients(args) => wait(clients::run(app, args)),
        Command::Mcp(args) => wait(mcp::run(app, args)),
        Command::Acp => wait(stdio::acp(app)),
        Command::Stdio(args) => wait(stdio::run(app, args)),
        Command::Stop => wait(stop::run(app)),
    }
}

/// Runs another command in this process.
fn dispatch(app: &App<'_>, line: &[&str]) -> Result<u8, Failure> {
    let cli = Cli::try_parse_from(line).map_err(|e| Failure::failed(e.to_string()))?;
    let Some(command) = cli.command else { return Ok(OK) };
    let mut globals = app.globals.clone();
    globals.quiet |= cli.globals.quiet;
    let other = App::new(app.host, globals, command.sessions());
    match command {
        Command::Service(args) => {
            // The service reports by itself; its exit code cannot be read.
            other.host.service(args, &other.globals);
            Ok(OK)
        }
        command => run_client(&other, command),
    }
}

/// Continues a line with a text, which a terminal shows wrapped behind the beginning of the line.
pub fn hanging(begin: &str, text: &str) -> String {
    let columns = render::explore_summary::terminal_columns().unwrap_or(usize::MAX);
    render::cells::hanging(begin, text, columns)
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

/// Runs work that is no command of its own.
fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut value = None;
    wait(async {
        value = Some(work.await?);
        Ok(OK)
    })?;
    value.ok_or_else(|| Failure::failed("the work has no outcome"))
}

/// One instance of the runtime's code serves all commands.
fn wait_boxed(
    work: Pin<Box<dyn Future<Output = Result<u8, Failure>> + '_>>,
) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::failed(format!("cannot start a runtime: {e}")))?.block_on(work)
}
