//! Checks of Cairn's own state: configuration, folder, log, daemon.

use std::{
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _},
    path::Path,
    time::Duration,
};

use cairn_client_sdk::{ClientError, Connector, is_root_locked};
use cairn_config::Config;
use cairn_protocol::location::{DataRoot, Env};

use super::Check;
use crate::settings;

/// Free disk space in bytes: below the first Cairn cannot work, below the second not for long.
const MIN_FREE_SPACE: (u64, u64) = (64 * 1024 * 1024, 1024 * 1024 * 1024);
/// A larger log is not verified completely.
const MAX_CHECKED: u64 = 2 * 1024 * 1024 * 1024;

/// Longest wait for a node of the broker.
const BROKER_PATIENCE: Duration = Duration::from_secs(2);

const CONFIG_HINT: &str = "correct that line of the file; 'cairn config --schema' lists all keys";

/// Loads the configuration, or the defaults if it is invalid.
pub fn config(env: &Env, flags: &settings::Flags) -> (Config, Vec<Check>) {
    const NAME: &str = "config";
    match settings::load(env, flags, None) {
        Ok(loaded) => {
            let mut checks: Vec<Check> = loaded
                .warnings
                .iter()
                .map(|w| {
                    Check::warn(NAME, w.to_string(), "correct or remove that line of the file")
                })
                .collect();
            if checks.is_empty() {
                checks.push(Check::ok(NAME, "every file can be read"));
            }
            (loaded.config, checks)
        }
        Err(errors) => {
            let checks =
                errors.0.iter().map(|e| Check::fail(NAME, e.to_string(), CONFIG_HINT)).collect();
            (Config::default(), checks)
        }
    }
}

/// Reports rules with less effect than they seem to have.
pub fn rules(config: &Config) -> Vec<Check> {
    // Invalid rules are reported when the daemon starts.
    let Ok(rules) = crate::compose::rules(config) else { return vec![] };
    let all = rules.overrides.iter().map(|(rule, _)| rule).chain(&rules.allow);
    let check = |rule: &cairn_engine::Rule| {
        let text = match rule.covers_only()?.as_slice() {
            [] => format!("{rule} allows the command only without arguments"),
            all => format!("{rule} covers only {}", all.join(", ")),
        };
        Some(Check::warn(
            "rules",
            text,
            "other arguments of this program may be programs: write a rule for each command line, or approve them",
        ))
    };
    all.filter_map(check).collect()
}

/// Checks that the data folder exists, is writable and private, and the token too.
pub fn folder(root: &DataRoot) -> Vec<Check> {
    const NAME: &str = "data folder";
    let path = root.path();
    let display_path = path.display();
    if !path.exists() {
        let above = path.ancestors().skip(1).find(|p| p.exists());
        return vec![match above.map(try_create) {
            Some(Ok(())) => {
                Check::ok(NAME, format!("{display_path} will be created at the first start"))
            }
            Some(Err(e)) => Check::fail(
                NAME,
                format!("{display_path} cannot be created: {e}"),
                "export CAIRN_HOME=FOLDER, one that you may write to",
            ),
            None => Check::fail(
                NAME,
                format!("{display_path} has no parent folder"),
                "export CAIRN_HOME=FOLDER, one that exists",
            ),
        }];
    }
    let mut checks = vec![match try_create(path) {
        Err(e) => Check::fail(
            NAME,
            format!("{display_path} cannot be written to: {e}"),
            format!("make it yours: sudo chown -R \"$USER\" '{display_path}'"),
        ),
        Ok(()) if open_to_others(path) => Check::warn(
            NAME,
            format!("{display_path} can be read by others"),
            format!("chmod 700 '{display_path}' (the next start of the daemon does it too)"),
        ),
        Ok(()) => Check::ok(NAME, format!("{display_path} is writable and private")),
    }];
    for file in [root.token(), root.trace_db()] {
        if file.exists() && open_to_others(&file) {
            checks.push(Check::fail(
                NAME,
                format!("{} can be read by others", file.display()),
                format!("chmod 600 '{}'", file.display()),
            ));
        }
    }
    checks
}

/// Creates a file for a test.
fn try_create(dir: &Path) -> std::io::Result<()> {
    let probe = dir.join(format!(".cairn-doctor-{}", std::process::id()));
    std::fs::write(&probe, b"x")?;
    std::fs::remove_file(&probe)
}

fn open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|m| m.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _unknown = path;
        false
    }
}

/// Checks the free space on the disk of the data folder.
pub fn disk(root: &DataRoot) -> Check {
    const NAME: &str = "disk";
    let Some(there) = root.path().ancestors().find(|p| p.exists()) else {
        return Check::info(NAME, "the disk of the data folder is unknown");
    };
    match rustix::fs::statvfs(there) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let detail = format!("{} MiB free", free / (1024 * 1024));
            let hint = format!("free space there: du -sh '{}'/*", root.path().display());
            if free < MIN_FREE_SPACE.0 {
                Check::fail(NAME, detail, hint)
            } else if free < MIN_FREE_SPACE.1 {
                Check::warn(NAME, detail, hint)
            } else {
                Check::ok(NAME, detail)
            }
        }
        Err(e) => Check::info(NAME, format!("free space cannot be read: {e}")),
    }
}

/// Checks that a node of the configured broker answers.
pub fn broker(config: &Config) -> Option<Check> {
    const NAME: &str = "broker";
    let servers = config.fleet.server.as_deref()?;
    let answers = |server: &str| {
        let address = server.split_once("://").map_or(server, |(_, address)| address);
        let found = address.to_socket_addrs().into_iter().flatten();
        found.into_iter().any(|at| TcpStream::connect_timeout(&at, BROKER_PATIENCE).is_ok())
    };
    let (good, bad): (Vec<&str>, Vec<&str>) =
        servers.split(',').map(str::trim).partition(|server| answers(server));
    let hint = "start the broker, or correct fleet.server; 'cairn fleet' says whether it accepts this daemon";
    Some(match (good.is_empty(), bad.is_empty()) {
        (false, true) => Check::ok(NAME, format!("{} answers", good.join(", "))),
        (false, false) => Check::warn(NAME, format!("{} does not answer", bad.join(", ")), hint),
        (true, _) => Check::fail(NAME, format!("{} does not answer", bad.join(", ")), hint),
    })
}

/// Checks that the log is intact and has a version that this build can read.
pub fn trace(root: &DataRoot) -> Check {
    const NAME: &str = "log";
    let path = root.trace_db();
    let size = match path.metadata() {
        Ok(meta) => meta.len(),
        Err(_) => return Check::ok(NAME, "trace.db does not exist yet"),
    };
    let read = || -> Result<(u32, Vec<String>), cairn_store::StoreError> {
        let conn = cairn_store::open_read_only(&path)?;
        let version = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
        drop(conn);
        let is_checked = size <= MAX_CHECKED && version == cairn_trace::SCHEMA_VERSION;
        let findings = if is_checked { cairn_trace::inspect(&path)? } else { vec![] };
        Ok((version, findings))
    };
    let known = cairn_trace::SCHEMA_VERSION;
    match read() {
        Ok((version, _)) if version > known => {
            let text = format!(
                "trace.db has version {version}, which a newer cairn created; this one supports {known}"
            );
            Check::fail(NAME, text, "cairn update, or export CAIRN_HOME=FOLDER for this version")
        }
        Ok((version, _)) if version < known => Check::info(
            NAME,
            format!("trace.db has version {version}; the next start of the daemon migrates it"),
        ),
        Ok((version, _)) if size > MAX_CHECKED => Check::info(
            NAME,
            format!(
                "trace.db: version {version}, {} MiB, too large to be checked completely",
                size / (1024 * 1024)
            ),
        ),
        Ok((version, findings)) if findings.is_empty() => {
            Check::ok(NAME, format!("trace.db is intact: version {version}, {} KiB", size / 1024))
        }
        Ok((_, findings)) => {
            let first = findings.first().map_or("", String::as_str);
            let text = format!("trace.db is damaged ({} findings): {first}", findings.len());
            Check::fail(NAME, text, REPAIR_HINT)
        }
        Err(e) => Check::fail(NAME, format!("trace.db cannot be read: {e}"), REPAIR_HINT),
    }
}

/// The line that shows what can be rescued.
const REPAIR_HINT: &str = "cairn doctor --repair";

/// Checks that the state of the daemon can be read.
pub fn state_file(root: &DataRoot) -> Option<Check> {
    const NAME: &str = "state";
    let path = root.state_json();
    let bytes = std::fs::read(&path).ok()?;
    Some(match cairn_engine::rescue_state(&bytes).1.first() {
        None => Check::ok(NAME, "state.json can be read"),
        Some(what) => Check::fail(NAME, format!("state.json is damaged: {what}"), REPAIR_HINT),
    })
}

/// Checks that no index was cut.
pub fn indexes(root: &DataRoot) -> Vec<Check> {
    let cut = |folder: &std::path::PathBuf| {
        let error = cairn_store::check_length(&folder.join("index.db")).err()?;
        Some(Check::warn(
            "index",
            error.to_string(),
            "cairn index rebuild ROOT (the next start of the daemon does it too)",
        ))
    };
    index_folders(root).iter().filter_map(cut).collect()
}

/// Returns the folders of indexes.
pub fn index_folders(root: &DataRoot) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(root.index_dir()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|folder| folder.join("index.db").is_file()).collect()
}

/// Checks the daemon and its port.
pub fn daemon(env: &Env, root: &DataRoot, config: &Config) -> Vec<Check> {
    const NAME: &str = "daemon";
    let is_locked = is_root_locked(root);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            return vec![Check::info(NAME, format!("cannot start a runtime: {e}"))];
        }
    };
    let connector = Connector::local(env.clone()).named("cairn-doctor", env!("CARGO_PKG_VERSION"));
    match (runtime.block_on(connector.connect()), is_locked) {
        (Ok(client), _) => {
            let server = &client.server().server;
            vec![Check::ok(
                NAME,
                format!("version {} answers ({})", server.version, server.instance_id),
            )]
        }
        (Err(error), true) => {
            let hint = error.hint().unwrap_or_else(|| format!("see {}", root.log_file().display()));
            let text = format!("a daemon holds the lock but does not answer: {error}");
            vec![Check::fail(NAME, text, hint)]
        }
        (Err(ClientError::NotRunning { .. }), false) => {
            vec![
                Check::ok(NAME, "not running; a command that needs a daemon starts it"),
                port(config),
            ]
        }
        (Err(error), false) => {
            let text = format!("not running; a previous daemon left its address file: {error}");
            vec![Check::info(NAME, text), port(config)]
        }
    }
}

fn port(config: &Config) -> Check {
    const NAME: &str = "port";
    let address = &config.listen.address;
    let port = config.listen.port;
    let Ok(ip) = address.parse::<IpAddr>() else {
        return Check::fail(
            NAME,
            format!("listen.address '{address}' is not an address"),
            "set listen.address to 127.0.0.1 in the file that 'cairn config listen.address' names",
        );
    };
    match TcpListener::bind(SocketAddr::new(ip, port)) {
        Ok(_) => Check::ok(NAME, format!("{address}:{port} is free")),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
            Check::info(NAME, format!("{address}:{port} is in use; the next free one will be used"))
        }
        Err(e) => Check::fail(
            NAME,
            format!("{address}:{port}: {e}"),
            "set listen.address and listen.port in the file that 'cairn config listen' names",
        ),
    }
}
