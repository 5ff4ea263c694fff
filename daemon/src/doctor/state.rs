//! Cairn's own things: its configuration, its folder, its log, its daemon.

use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    path::Path,
};

use cairn_client_sdk::{ClientError, Connector, is_held};
use cairn_config::Config;
use cairn_protocol::location::{DataRoot, Env};

use super::{Check, Outcome};
use crate::settings;

/// Room on the disk, in bytes: under the first it cannot work, under the second not for long.
const ROOM: (u64, u64) = (64 * 1024 * 1024, 1024 * 1024 * 1024);
/// A larger log is not read from end to end.
const MAX_CHECKED: u64 = 2 * 1024 * 1024 * 1024;

/// The configuration, or the defaults where it is wrong.
pub fn config(env: &Env, flags: &settings::Flags) -> (Config, Vec<Check>) {
    const NAME: &str = "config";
    match settings::load(env, flags, None) {
        Ok(loaded) => {
            let mut checks: Vec<Check> =
                loaded.warnings.iter().map(|w| Check::new(NAME, Outcome::Warn, w.to_string())).collect();
            if checks.is_empty() {
                checks.push(Check::new(NAME, Outcome::Ok, "every file can be read"));
            }
            (loaded.config, checks)
        }
        Err(errors) => {
            let checks = errors.0.iter().map(|e| Check::new(NAME, Outcome::Fail, e.to_string())).collect();
            (Config::default(), checks)
        }
    }
}

/// Rules that say less than they seem to.
pub fn rules(config: &Config) -> Vec<Check> {
    // What is wrong with a rule is said when the daemon starts.
    let Ok(rules) = crate::compose::rules(config) else { return vec![] };
    let all = rules.overrides.iter().map(|(rule, _)| rule).chain(&rules.allow);
    let less = all.filter(|rule| rule.takes_no_argument());
    let check = |rule: &cairn_engine::Rule| {
        let text = format!("{rule} allows the command without arguments alone");
        Check::new("rules", Outcome::Warn, text).hint(
            "arguments of this program may be programs: write a rule for each command line, or approve them",
        )
    };
    less.map(check).collect()
}

/// The data folder: there, writable and private; the token too.
pub fn folder(root: &DataRoot) -> Vec<Check> {
    const NAME: &str = "data folder";
    let path = root.path();
    let shown = path.display();
    if !path.exists() {
        let above = path.ancestors().skip(1).find(|p| p.exists());
        return vec![match above.map(tried) {
            Some(Ok(())) => Check::new(NAME, Outcome::Ok, format!("{shown} will be made at the first start")),
            Some(Err(e)) => {
                Check::new(NAME, Outcome::Fail, format!("{shown} cannot be made: {e}")).hint("set CAIRN_HOME")
            }
            None => Check::new(NAME, Outcome::Fail, format!("{shown} has no folder above it"))
                .hint("set CAIRN_HOME"),
        }];
    }
    let mut checks = vec![match tried(path) {
        Err(e) => Check::new(NAME, Outcome::Fail, format!("{shown} cannot be written to: {e}")),
        Ok(()) if open_to_others(path) => {
            Check::new(NAME, Outcome::Warn, format!("{shown} can be read by others"))
                .hint("the next start of the daemon makes it private")
        }
        Ok(()) => Check::new(NAME, Outcome::Ok, format!("{shown} is writable and private")),
    }];
    for file in [root.token(), root.trace_db()] {
        if file.exists() && open_to_others(&file) {
            let hint = format!("chmod 600 {}", file.display());
            checks.push(
                Check::new(NAME, Outcome::Fail, format!("{} can be read by others", file.display()))
                    .hint(hint),
            );
        }
    }
    checks
}

/// Whether a file can be made there.
fn tried(dir: &Path) -> std::io::Result<()> {
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

/// Room on the disk that holds the data folder.
pub fn disk(root: &DataRoot) -> Check {
    const NAME: &str = "disk";
    let Some(there) = root.path().ancestors().find(|p| p.exists()) else {
        return Check::new(NAME, Outcome::Warn, "the data folder's disk is not known");
    };
    match rustix::fs::statvfs(there) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let detail = format!("{} MiB free", free / (1024 * 1024));
            let outcome = if free < ROOM.0 {
                Outcome::Fail
            } else if free < ROOM.1 {
                Outcome::Warn
            } else {
                Outcome::Ok
            };
            Check::new(NAME, outcome, detail)
        }
        Err(e) => Check::new(NAME, Outcome::Warn, format!("free room cannot be read: {e}")),
    }
}

/// The log: whole, and of a version that this build reads.
pub fn trace(root: &DataRoot) -> Check {
    const NAME: &str = "log";
    let path = root.trace_db();
    let size = match path.metadata() {
        Ok(meta) => meta.len(),
        Err(_) => return Check::new(NAME, Outcome::Ok, "trace.db is not there yet"),
    };
    let read = || -> Result<(u32, String), cairn_store::StoreError> {
        let conn = cairn_store::open_read_only(&path)?;
        let version = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
        let whole = if size > MAX_CHECKED {
            "too large to be read through".into()
        } else {
            cairn_store::integrity_check(&conn)?
        };
        Ok((version, whole))
    };
    let known = cairn_trace::SCHEMA_VERSION;
    match read() {
        Ok((found, _)) if found > known => {
            let text =
                format!("trace.db has version {found}, which a newer cairn made; this one knows {known}");
            Check::new(NAME, Outcome::Fail, text).hint("update cairn, or set CAIRN_HOME to another folder")
        }
        Ok((version, whole)) if whole == "ok" => Check::new(
            NAME,
            Outcome::Ok,
            format!("trace.db is whole: version {version}, {} KiB", size / 1024),
        ),
        Ok((version, whole)) if size > MAX_CHECKED => Check::new(
            NAME,
            Outcome::Info,
            format!("trace.db: version {version}, {} MiB, {whole}", size / (1024 * 1024)),
        ),
        Ok((_, what)) => Check::new(NAME, Outcome::Fail, format!("trace.db is damaged: {what}"))
            .hint("stop the daemon and put the file aside; indexes are not concerned"),
        Err(e) => Check::new(NAME, Outcome::Fail, format!("trace.db cannot be read: {e}")),
    }
}

/// The daemon and its port.
pub fn daemon(env: &Env, root: &DataRoot, config: &Config) -> Vec<Check> {
    const NAME: &str = "daemon";
    let held = is_held(root);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return vec![Check::new(NAME, Outcome::Fail, format!("no runtime: {e}"))],
    };
    let connector = Connector::local(env.clone()).named("cairn-doctor", env!("CARGO_PKG_VERSION"));
    match (runtime.block_on(connector.connect()), held) {
        (Ok(client), _) => {
            let server = &client.server().server;
            vec![Check::new(
                NAME,
                Outcome::Ok,
                format!("version {} answers ({})", server.version, server.instance_id),
            )]
        }
        (Err(error), true) => {
            let hint = error.hint().unwrap_or_else(|| format!("see {}", root.log_file().display()));
            vec![
                Check::new(NAME, Outcome::Fail, format!("one holds the lock but does not answer: {error}"))
                    .hint(hint),
            ]
        }
        (Err(ClientError::NotRunning { .. }), false) => {
            vec![Check::new(NAME, Outcome::Ok, "none runs; a command that needs one starts it"), port(config)]
        }
        (Err(error), false) => {
            let text = format!("none runs; the last one left its address behind: {error}");
            vec![Check::new(NAME, Outcome::Info, text), port(config)]
        }
    }
}

fn port(config: &Config) -> Check {
    const NAME: &str = "port";
    let (address, port) = (&config.listen.address, config.listen.port);
    let Ok(ip) = address.parse::<IpAddr>() else {
        return Check::new(NAME, Outcome::Fail, format!("listen.address '{address}' is not an address"));
    };
    match TcpListener::bind(SocketAddr::new(ip, port)) {
        Ok(_) => Check::new(NAME, Outcome::Ok, format!("{address}:{port} is free")),
        Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => Check::new(
            NAME,
            Outcome::Info,
            format!("{address}:{port} is taken; the next free one will be used"),
        ),
        Err(e) => Check::new(NAME, Outcome::Fail, format!("{address}:{port}: {e}")),
    }
}
