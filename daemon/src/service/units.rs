//! The service's unit files as text: pure functions for both managers, on every platform.

use std::path::{Path, PathBuf};

const SYSTEMD_SERVICE: &str = include_str!("../../systemd/cairn.service");
const SYSTEMD_SOCKET: &str = include_str!("../../systemd/cairn.socket");
const LAUNCHD_AGENT: &str = include_str!("../../launchd/dev.cairn.daemon.plist");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// systemd, as the user's own manager.
    Systemd,
    /// launchd, as an agent of the user.
    Launchd,
}

/// The values that fill the templates.
#[derive(Debug, Clone)]
pub struct UnitValues {
    pub bin: PathBuf,
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`, if it is set.
    pub xdg_config_home: Option<PathBuf>,
    /// The daemon's log file under launchd; its standard error goes to a file beside it.
    pub log: PathBuf,
    /// Variables that select locations, with their values.
    pub environment: Vec<(String, String)>,
    pub uid: u32,
    /// Port of the socket that systemd opens.
    pub port: u16,
}

/// A value that a unit file cannot contain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not allowed in a unit file", .0.escape_default())]
pub struct InvalidValue(String);

/// Renders the files to write.
///
/// # Errors
/// [`InvalidValue`] for a path with control characters or one that is not UTF-8.
pub fn files(
    manager: Manager,
    values: &UnitValues,
) -> Result<Vec<(PathBuf, String)>, InvalidValue> {
    match manager {
        Manager::Systemd => {
            let lines: Result<Vec<String>, InvalidValue> = values
                .environment
                .iter()
                .map(|(k, v)| Ok(format!("Environment={}", quoted(&format!("{k}={v}"))?)))
                .collect();
            // systemd does not expand variables in the program path, so a dollar sign needs no
            // escape.
            let service = SYSTEMD_SERVICE.replace("@BIN@", &quoted(text(&values.bin)?)?).replace(
                "@ENVIRONMENT@\n",
                &lines?.iter().map(|l| format!("{l}\n")).collect::<String>(),
            );
            Ok(vec![
                (unit(values, "cairn.service"), service),
                (
                    unit(values, "cairn.socket"),
                    SYSTEMD_SOCKET.replace("@PORT@", &values.port.to_string()),
                ),
            ])
        }
        Manager::Launchd => {
            let entries: Result<Vec<String>, InvalidValue> = values
                .environment
                .iter()
                .map(|(k, v)| {
                    Ok(format!("    <key>{}</key>\n    <string>{}</string>\n", xml(k)?, xml(v)?))
                })
                .collect();
            let agent = LAUNCHD_AGENT
                .replace("@BIN@", &xml(text(&values.bin)?)?)
                .replace("@LOG@", &xml(text(&values.log.with_extension("err"))?)?)
                .replace("@ENVIRONMENT@\n", &entries?.concat());
            Ok(vec![(agent_path(values), agent)])
        }
    }
}

/// Lists the paths of the files, whether or not they exist.
pub fn paths(manager: Manager, values: &UnitValues) -> Vec<PathBuf> {
    match manager {
        Manager::Systemd => vec![unit(values, "cairn.service"), unit(values, "cairn.socket")],
        Manager::Launchd => vec![agent_path(values)],
    }
}

/// Returns the port in the text of a socket unit.
pub fn port(socket: &str) -> Option<u16> {
    let line = socket.lines().find_map(|line| line.strip_prefix("ListenStream="))?;
    line.rsplit_once(':')?.1.parse().ok()
}

/// Lists the commands that start the service once its files exist.
pub fn start_commands(manager: Manager, values: &UnitValues) -> Vec<Vec<String>> {
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
                &format!("gui/{}", values.uid),
                &agent_path(values).to_string_lossy(),
            ])]
        }
    }
}

/// Lists the commands that stop the service before its files are removed.
pub fn stop_commands(manager: Manager, values: &UnitValues) -> Vec<Vec<String>> {
    match manager {
        Manager::Systemd => vec![systemctl(&["disable", "--now", "cairn.socket", "cairn.service"])],
        Manager::Launchd => {
            vec![words(&["launchctl", "bootout", &format!("gui/{}/dev.cairn.daemon", values.uid)])]
        }
    }
}

/// Returns the command whose exit code tells whether the service runs.
pub fn status_command(manager: Manager, values: &UnitValues) -> Vec<String> {
    match manager {
        Manager::Systemd => systemctl(&["is-active", "cairn.service"]),
        Manager::Launchd => {
            words(&["launchctl", "print", &format!("gui/{}/dev.cairn.daemon", values.uid)])
        }
    }
}

fn systemctl(rest: &[&str]) -> Vec<String> {
    words(&[&["systemctl", "--user"], rest].concat())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

fn unit(values: &UnitValues, name: &str) -> PathBuf {
    let config = values.xdg_config_home.clone().unwrap_or_else(|| values.home.join(".config"));
    config.join("systemd/user").join(name)
}

fn agent_path(values: &UnitValues) -> PathBuf {
    values.home.join("Library/LaunchAgents/dev.cairn.daemon.plist")
}

fn text(path: &Path) -> Result<&str, InvalidValue> {
    path.to_str().ok_or_else(|| InvalidValue(path.to_string_lossy().into_owned()))
}

/// Quotes a word for a unit file (systemd.syntax(7)); `%` starts a specifier there.
fn quoted(word: &str) -> Result<String, InvalidValue> {
    if word.chars().any(char::is_control) {
        return Err(InvalidValue(word.to_owned()));
    }
    let inner = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"{inner}\""))
}

fn xml(text: &str) -> Result<String, InvalidValue> {
    if text.chars().any(char::is_control) {
        return Err(InvalidValue(text.to_owned()));
    }
    Ok(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> UnitValues {
        UnitValues {
            bin: "/opt/my tools/100%/c&a\"irn".into(),
            home: "/home/u".into(),
            xdg_config_home: None,
            log: "/home/u/logs/<x>.log".into(),
            environment: vec![("CAIRN_HOME".into(), "/data/a b\\c".into())],
            uid: 501,
            port: 7434,
        }
    }

    #[test]
    fn systemd_units_are_escaped() {
        let files = files(Manager::Systemd, &values()).unwrap();
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
        assert!(!service.contains("@BIN@") && !service.contains("@ENVIRONMENT@"), "{service}");
        assert!(files[1].1.contains("\nListenStream=127.0.0.1:7434\n"));
        let xdg =
            UnitValues { xdg_config_home: Some("/x".into()), environment: vec![], ..values() };
        let plain = super::files(Manager::Systemd, &xdg).unwrap();
        assert_eq!(plain[0].0, Path::new("/x/systemd/user/cairn.service"));
        assert!(!plain[0].1.contains("Environment"));
    }

    #[test]
    fn launchd_agent() {
        let files = files(Manager::Launchd, &values()).unwrap();
        let (path, agent) = &files[0];
        assert_eq!(path, Path::new("/home/u/Library/LaunchAgents/dev.cairn.daemon.plist"));
        for part in [
            "<string>/opt/my tools/100%/c&amp;a&quot;irn</string>\n    <string>serve</string>",
            "<key>CAIRN_HOME</key>\n    <string>/data/a b\\c</string>",
            "<string>/home/u/logs/&lt;x&gt;.err</string>",
            "<key>KeepAlive</key>",
        ] {
            assert!(agent.contains(part), "{part} is not in:\n{agent}");
        }
        assert!(!agent.contains('@'), "{agent}");
        assert_eq!(start_commands(Manager::Launchd, &values())[0][2], "gui/501");
    }

    #[test]
    fn agent_is_a_valid_property_list() {
        let script = "import json, plistlib, sys\n\
            agent = plistlib.loads(sys.stdin.buffer.read())\n\
            json.dump([agent['ProgramArguments'], agent['EnvironmentVariables'], agent['StandardErrorPath'], \
            agent['KeepAlive'], agent['Umask'], agent['RunAtLoad']], sys.stdout)";
        let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut reader = std::process::Command::new(python);
        reader
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let Ok(mut reader) = reader.spawn() else {
            let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|v| v == "required");
            assert!(!required, "python is required and missing");
            return;
        };
        let agent = &files(Manager::Launchd, &values()).unwrap()[0].1;
        std::io::Write::write_all(&mut reader.stdin.take().unwrap(), agent.as_bytes()).unwrap();
        let output = reader.wait_with_output().unwrap();
        assert!(output.status.success());
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = serde_json::json!([
            ["/opt/my tools/100%/c&a\"irn", "serve", "--service"],
            {"CAIRN_HOME": "/data/a b\\c"},
            "/home/u/logs/<x>.err",
            {"SuccessfulExit": false},
            0o077,
            true,
        ]);
        assert_eq!(read, expected);
    }

    #[test]
    fn control_characters_are_refused() {
        let bad = UnitValues { bin: "/a\nExecStartPre=/bin/evil".into(), ..values() };
        assert!(files(Manager::Systemd, &bad).is_err());
        assert!(files(Manager::Launchd, &bad).is_err());
        let bad = UnitValues {
            environment: vec![("CAIRN_HOME".into(), "x\n[Service]".into())],
            ..values()
        };
        assert!(files(Manager::Systemd, &bad).is_err());
    }

    #[test]
    fn paths_match_files() {
        for manager in [Manager::Systemd, Manager::Launchd] {
            let written: Vec<PathBuf> =
                files(manager, &values()).unwrap().into_iter().map(|(p, _)| p).collect();
            assert_eq!(paths(manager, &values()), written);
        }
    }
}
