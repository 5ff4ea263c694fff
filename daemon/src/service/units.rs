//! The unit files of the service as text: pure functions, for both managers on every platform.

use std::path::{Path, PathBuf};

const SYSTEMD_SERVICE: &str = include_str!("../../../systemd/cairn.service");
const SYSTEMD_SOCKET: &str = include_str!("../../../systemd/cairn.socket");
const LAUNCHD_AGENT: &str = include_str!("../../../launchd/dev.cairn.daemon.plist");

/// Who runs services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// systemd, as the user's own manager.
    Systemd,
    /// launchd, as an agent of the user.
    Launchd,
}

/// What the templates are filled in with.
#[derive(Debug, Clone)]
pub struct Places {
    /// The binary.
    pub bin: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`, if it is set.
    pub xdg_config_home: Option<PathBuf>,
    /// Where launchd puts what the daemon logs.
    pub log: PathBuf,
    /// Variables that decide where things lie, with their values.
    pub environment: Vec<(String, String)>,
    /// The user's number.
    pub uid: u32,
}

/// A value that a unit file cannot carry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' cannot stand in a unit file", .0.escape_default())]
pub struct Unfit(String);

/// The files to write.
///
/// # Errors
/// [`Unfit`] for a path with control characters or one that is not UTF-8.
pub fn files(manager: Manager, places: &Places) -> Result<Vec<(PathBuf, String)>, Unfit> {
    match manager {
        Manager::Systemd => {
            let lines: Result<Vec<String>, Unfit> = places
                .environment
                .iter()
                .map(|(k, v)| Ok(format!("Environment={}", quoted(&format!("{k}={v}"))?)))
                .collect();
            // The program is not subject to variables, so a dollar sign is itself.
            let service = SYSTEMD_SERVICE
                .replace("@BIN@", &quoted(text(&places.bin)?)?)
                .replace("@ENVIRONMENT@\n", &lines?.iter().map(|l| format!("{l}\n")).collect::<String>());
            Ok(vec![
                (unit(places, "cairn.service"), service),
                (unit(places, "cairn.socket"), SYSTEMD_SOCKET.to_owned()),
            ])
        }
        Manager::Launchd => {
            let entries: Result<Vec<String>, Unfit> = places
                .environment
                .iter()
                .map(|(k, v)| Ok(format!("    <key>{}</key>\n    <string>{}</string>\n", xml(k)?, xml(v)?)))
                .collect();
            let agent = LAUNCHD_AGENT
                .replace("@BIN@", &xml(text(&places.bin)?)?)
                .replace("@LOG@", &xml(text(&places.log)?)?)
                .replace("@ENVIRONMENT@\n", &entries?.concat());
            Ok(vec![(agent_path(places), agent)])
        }
    }
}

/// Where the files are, whether or not they are there.
pub fn paths(manager: Manager, places: &Places) -> Vec<PathBuf> {
    match manager {
        Manager::Systemd => vec![unit(places, "cairn.service"), unit(places, "cairn.socket")],
        Manager::Launchd => vec![agent_path(places)],
    }
}

/// The commands that start the service once its files are there.
pub fn start_commands(manager: Manager, places: &Places) -> Vec<Vec<String>> {
    match manager {
        Manager::Systemd => {
            vec![
                systemctl(&["daemon-reload"]),
                systemctl(&["enable", "--now", "cairn.socket", "cairn.service"]),
            ]
        }
        Manager::Launchd => {
            vec![words(&[
                "launchctl",
                "bootstrap",
                &format!("gui/{}", places.uid),
                &agent_path(places).to_string_lossy(),
            ])]
        }
    }
}

/// The commands that end the service, before its files go.
pub fn stop_commands(manager: Manager, places: &Places) -> Vec<Vec<String>> {
    match manager {
        Manager::Systemd => vec![systemctl(&["disable", "--now", "cairn.socket", "cairn.service"])],
        Manager::Launchd => {
            vec![words(&["launchctl", "bootout", &format!("gui/{}/dev.cairn.daemon", places.uid)])]
        }
    }
}

/// The command that says whether the service runs, by its exit code.
pub fn status_command(manager: Manager, places: &Places) -> Vec<String> {
    match manager {
        Manager::Systemd => systemctl(&["is-active", "cairn.service"]),
        Manager::Launchd => words(&["launchctl", "print", &format!("gui/{}/dev.cairn.daemon", places.uid)]),
    }
}

fn systemctl(rest: &[&str]) -> Vec<String> {
    words(&[&["systemctl", "--user"], rest].concat())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn unit(places: &Places, name: &str) -> PathBuf {
    let config = places.xdg_config_home.clone().unwrap_or_else(|| places.home.join(".config"));
    config.join("systemd/user").join(name)
}

fn agent_path(places: &Places) -> PathBuf {
    places.home.join("Library/LaunchAgents/dev.cairn.daemon.plist")
}

fn text(path: &Path) -> Result<&str, Unfit> {
    path.to_str().ok_or_else(|| Unfit(path.to_string_lossy().into_owned()))
}

/// A word of a unit file in double quotes (systemd.syntax(7)); `%` begins a specifier there.
fn quoted(word: &str) -> Result<String, Unfit> {
    if word.chars().any(char::is_control) {
        return Err(Unfit(word.to_owned()));
    }
    let inner = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"{inner}\""))
}

fn xml(text: &str) -> Result<String, Unfit> {
    if text.chars().any(char::is_control) {
        return Err(Unfit(text.to_owned()));
    }
    Ok(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            bin: "/opt/my tools/100%/c&a\"irn".into(),
            home: "/home/u".into(),
            xdg_config_home: None,
            log: "/home/u/logs/<x>.log".into(),
            environment: vec![("CAIRN_HOME".into(), "/data/a b\\c".into())],
            uid: 501,
        }
    }

    #[test]
    fn systemd_units() {
        let files = files(Manager::Systemd, &places()).unwrap();
        let (path, service) = &files[0];
        assert_eq!(path, Path::new("/home/u/.config/systemd/user/cairn.service"));
        for line in [
            r#"ExecStart="/opt/my tools/100%%/c&a\"irn" serve --service"#,
            r#"Environment="CAIRN_HOME=/data/a b\\c""#,
            "Type=notify",
            "WatchdogSec=30",
            "Restart=on-failure",
            "WantedBy=default.target",
        ] {
            assert!(service.lines().any(|l| l == line), "{line} is not in:\n{service}");
        }
        assert!(!service.contains('@'), "{service}");
        assert!(files[1].1.contains("\nListenStream=127.0.0.1:7433\n"));
        let xdg = Places { xdg_config_home: Some("/x".into()), environment: vec![], ..places() };
        let plain = super::files(Manager::Systemd, &xdg).unwrap();
        assert_eq!(plain[0].0, Path::new("/x/systemd/user/cairn.service"));
        assert!(!plain[0].1.contains("Environment"));
    }

    #[test]
    fn launchd_agent() {
        let files = files(Manager::Launchd, &places()).unwrap();
        let (path, agent) = &files[0];
        assert_eq!(path, Path::new("/home/u/Library/LaunchAgents/dev.cairn.daemon.plist"));
        for part in [
            "<string>/opt/my tools/100%/c&amp;a&quot;irn</string>\n    <string>serve</string>",
            "<key>CAIRN_HOME</key>\n    <string>/data/a b\\c</string>",
            "<string>/home/u/logs/&lt;x&gt;.log</string>",
            "<key>KeepAlive</key>",
        ] {
            assert!(agent.contains(part), "{part} is not in:\n{agent}");
        }
        assert!(!agent.contains('@'), "{agent}");
        assert_eq!(start_commands(Manager::Launchd, &places())[0][2], "gui/501");
    }

    #[test]
    fn the_agent_is_read_by_another_reader_of_property_lists() {
        let script = "import json, plistlib, sys\n\
            agent = plistlib.loads(sys.stdin.buffer.read())\n\
            json.dump([agent['ProgramArguments'], agent['EnvironmentVariables'], agent['StandardErrorPath'], \
            agent['KeepAlive'], agent['Umask'], agent['RunAtLoad']], sys.stdout)";
        let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut reader = std::process::Command::new(python);
        reader.args(["-c", script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let Ok(mut reader) = reader.spawn() else {
            let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|v| v == "required");
            assert!(!required, "python is required and missing");
            return;
        };
        let agent = &files(Manager::Launchd, &places()).unwrap()[0].1;
        std::io::Write::write_all(&mut reader.stdin.take().unwrap(), agent.as_bytes()).unwrap();
        let output = reader.wait_with_output().unwrap();
        assert!(output.status.success());
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let want = serde_json::json!([
            ["/opt/my tools/100%/c&a\"irn", "serve", "--service"],
            {"CAIRN_HOME": "/data/a b\\c"},
            "/home/u/logs/<x>.log",
            {"SuccessfulExit": false},
            0o077,
            true,
        ]);
        assert_eq!(read, want);
    }

    #[test]
    fn what_would_break_out_of_a_line_is_refused() {
        let bad = Places { bin: "/a\nExecStartPre=/bin/evil".into(), ..places() };
        assert!(files(Manager::Systemd, &bad).is_err());
        assert!(files(Manager::Launchd, &bad).is_err());
        let bad = Places { environment: vec![("CAIRN_HOME".into(), "x\n[Service]".into())], ..places() };
        assert!(files(Manager::Systemd, &bad).is_err());
    }

    #[test]
    fn the_paths_are_those_of_the_files() {
        for manager in [Manager::Systemd, Manager::Launchd] {
            let written: Vec<PathBuf> =
                files(manager, &places()).unwrap().into_iter().map(|(p, _)| p).collect();
            assert_eq!(paths(manager, &places()), written);
        }
    }
}
