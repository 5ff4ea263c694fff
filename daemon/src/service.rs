//! `cairn service`: unit files of this user, and control of the service manager.

mod units;

use std::{
    fmt::Write as _,
    io::Write as _,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use cairn_cli::{FAILED, Globals, OK, ServiceAction};
use cairn_protocol::{
    location::{DataRoot, Env},
    rpc::DEFAULT_PORT,
};
use units::{Manager, UnitValues};

/// Maximum ports that are tried for a new service.
const MAX_PORTS: u16 = 100;

/// The performed actions, for people and as JSON.
struct Report {
    text: String,
    json: serde_json::Value,
    code: u8,
}

/// Lists the unit files of this user's service that exist.
pub fn present_files() -> Vec<PathBuf> {
    values().map_or_else(|_| Vec::new(), |values| present(manager(), &values))
}

/// Stops the service of this user and returns its removed files.
///
/// # Errors
/// A file that cannot be removed.
pub fn remove() -> Result<Vec<PathBuf>, String> {
    let values = values()?;
    let present = present(manager(), &values);
    if !present.is_empty() {
        uninstall(manager(), &values, false)?;
    }
    Ok(present)
}

fn manager() -> Manager {
    if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
}

fn present(manager: Manager, values: &UnitValues) -> Vec<PathBuf> {
    units::paths(manager, values).into_iter().filter(|path| path.exists()).collect()
}

/// Runs an action of `cairn service`.
pub fn run(action: ServiceAction, globals: &Globals) -> ExitCode {
    let done = values().and_then(|values| {
        let manager = manager();
        match action {
            ServiceAction::Install { dry_run } => install(manager, &values, dry_run),
            ServiceAction::Uninstall { dry_run } => uninstall(manager, &values, dry_run),
            ServiceAction::Status => Ok(status(manager, &values)),
        }
    });
    match done {
        Ok(report) => {
            let text = if globals.json { format!("{}\n", report.json) } else { report.text };
            // The reader of the output may be gone.
            let _closed = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(report.code)
        }
        Err(message) => {
            let text = if globals.json {
                format!(
                    "{}\n",
                    serde_json::json!({"error": {"reason": "failed", "message": message}})
                )
            } else {
                format!("error: {message}\n")
            };
            let _closed = std::io::stderr().write_all(text.as_bytes());
            ExitCode::from(FAILED)
        }
    }
}

fn values() -> Result<UnitValues, String> {
    let env = Env::from_process();
    let home = env.home.clone().ok_or("there is no home folder to install into")?;
    let root = DataRoot(
        env.data_root().ok_or("there is no home folder to store data in; set CAIRN_HOME")?,
    );
    let bin =
        std::env::current_exe().map_err(|e| format!("this program's own path is unknown: {e}"))?;
    // Variables that select locations must select the same for the service.
    let decisive = [
        ("CAIRN_HOME", &env.cairn_home),
        ("CAIRN_CONFIG", &env.cairn_config),
        ("XDG_DATA_HOME", &env.xdg_data_home),
        ("XDG_CONFIG_HOME", &env.xdg_config_home),
    ];
    let environment = decisive
        .iter()
        .filter_map(|(name, path)| Some(((*name).to_owned(), path.as_ref()?.to_str()?.to_owned())))
        .collect();
    let log = root.service_log();
    let uid = rustix::process::getuid().as_raw();
    let values = UnitValues {
        bin,
        home,
        xdg_config_home: env.xdg_config_home,
        log,
        environment,
        uid,
        port: DEFAULT_PORT,
    };
    Ok(UnitValues { port: port(&values), ..values })
}

/// Returns the port of the installed socket, else the first that is free: each user of a machine
/// may have a service, and clients read the port from `daemon.json`.
fn port(values: &UnitValues) -> u16 {
    let installed = units::paths(Manager::Systemd, values)
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .find_map(|text| units::port(&text));
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    installed
        .or_else(|| (DEFAULT_PORT..DEFAULT_PORT + MAX_PORTS).find(is_free))
        .unwrap_or(DEFAULT_PORT)
}

fn install(manager: Manager, values: &UnitValues, dry_run: bool) -> Result<Report, String> {
    let files = units::files(manager, values).map_err(|e| e.to_string())?;
    let commands = units::start_commands(manager, values);
    if dry_run {
        return Ok(dry_run_report("would be written", &files, &commands));
    }
    let env = Env::from_process();
    let is_locked =
        env.data_root().is_some_and(|root| cairn_client_sdk::is_root_locked(&DataRoot(root)));
    if is_locked && !active(manager, values) {
        return Err(
            "a daemon other than the service is running: stop it first with 'cairn stop'".into()
        );
    }
    for (path, text) in &files {
        write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if let Some(dir) = values.log.parent() {
        crate::instance::create_private_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let mut text: String =
        files.iter().map(|(path, _)| format!("written: {}\n", path.display())).collect();
    let failed = run_all(&commands);
    let _infallible = match &failed {
        None => writeln!(text, "the service is installed and running"),
        Some(why) => writeln!(
            text,
            "the service was not started: {why}\nwhere its manager is running, start it with:\n{}",
            lines(&commands)
        ),
    };
    let paths: Vec<&PathBuf> = files.iter().map(|(path, _)| path).collect();
    let json = serde_json::json!({"written": paths, "started": failed.is_none(), "reason": failed, "commands": commands});
    Ok(Report { text, json, code: if failed.is_none() { OK } else { FAILED } })
}

fn uninstall(manager: Manager, values: &UnitValues, dry_run: bool) -> Result<Report, String> {
    let present = present(manager, values);
    let commands = units::stop_commands(manager, values);
    if dry_run {
        let files: Vec<(PathBuf, String)> =
            present.into_iter().map(|p| (p, String::new())).collect();
        return Ok(dry_run_report("would be removed", &files, &commands));
    }
    if present.is_empty() {
        let json = serde_json::json!({"removed": []});
        return Ok(Report { text: "the service is not installed\n".into(), json, code: OK });
    }
    // A missing manager does not run the service either.
    let failure = run_all(&commands);
    for path in &present {
        std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let mut text: String =
        present.iter().map(|path| format!("removed: {}\n", path.display())).collect();
    if let Some(why) = &failure {
        let _infallible = writeln!(text, "the service manager was not notified: {why}");
    }
    Ok(Report { text, json: serde_json::json!({"removed": present, "reason": failure}), code: OK })
}

fn status(manager: Manager, values: &UnitValues) -> Report {
    let paths = units::paths(manager, values);
    let installed = paths.iter().all(|p| p.exists());
    let active = active(manager, values);
    let mut text = format!(
        "{}, {}\n",
        if installed { "installed" } else { "not installed" },
        if active { "running" } else { "not running" }
    );
    for path in paths.iter().filter(|p| p.exists()) {
        let _infallible = writeln!(text, "  {}", path.display());
    }
    let logs = match manager {
        Manager::Systemd => "journalctl --user -u cairn".to_owned(),
        Manager::Launchd => values.log.display().to_string(),
    };
    let _infallible = writeln!(text, "  log: {logs}");
    let json =
        serde_json::json!({"installed": installed, "active": active, "files": paths, "log": logs});
    Report { text, json, code: if installed { OK } else { FAILED } }
}

fn dry_run_report(what: &str, files: &[(PathBuf, String)], commands: &[Vec<String>]) -> Report {
    let mut text = String::new();
    for (path, content) in files {
        let _infallible = writeln!(text, "# {what}: {}\n{content}", path.display());
    }
    let _infallible = writeln!(text, "# would be run:\n{}", lines(commands));
    let files: Vec<serde_json::Value> = files
        .iter()
        .map(|(path, content)| serde_json::json!({"path": path, "text": content}))
        .collect();
    Report {
        text,
        json: serde_json::json!({"dryRun": true, "files": files, "commands": commands}),
        code: OK,
    }
}

fn lines(commands: &[Vec<String>]) -> String {
    commands.iter().map(|c| format!("  {}", c.join(" "))).collect::<Vec<_>>().join("\n")
}

fn active(manager: Manager, values: &UnitValues) -> bool {
    run_one(&units::status_command(manager, values)).is_ok()
}

/// Runs the commands in order and returns the reason of the first failure.
fn run_all(commands: &[Vec<String>]) -> Option<String> {
    commands.iter().find_map(|command| run_one(command).err())
}

fn run_one(command: &[String]) -> Result<(), String> {
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    // The failure is the last line; progress comes before it.
    let message = message
        .lines()
        .rfind(|l| !l.trim().is_empty())
        .map_or_else(|| output.status.to_string(), str::to_owned);
    Err(format!("{program}: {message}"))
}

/// Writes a temporary file and renames it, so that a manager never reads a partial one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let temp = path.with_extension("cairn-new");
    std::fs::write(&temp, text)?;
    std::fs::rename(&temp, path)
}
