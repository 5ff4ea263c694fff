//! `cairn mcp install`: prints or writes the entry of a client's configuration.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::entry::{self, Entry, Merged};
use crate::{
    app::{App, current_dir},
    exit::{Failure, OK},
    render::output,
    scope,
};

/// Maximum bytes of a configuration file.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Arguments of `cairn mcp install`.
#[derive(Debug, Clone, Args)]
pub struct InstallArgs {
    /// The client; all are listed when omitted
    client: Option<KnownClient>,
    /// Write the file instead of only printing the entry
    #[arg(long, requires = "client")]
    write: bool,
    /// Work in this folder wherever the client is
    #[arg(long, value_name = "DIR", requires = "client")]
    root: Option<PathBuf>,
    /// Offer these tools: 'default', 'all', or names, with commas between them
    #[arg(long, value_name = "LIST", requires = "client",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    tools: Option<String>,
}

/// Clients with known configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KnownClient {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Zed
    Zed,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// Windsurf
    Windsurf,
}

/// The folders that contain the files.
struct Folders {
    here: PathBuf,
    home: PathBuf,
    config: PathBuf,
    codex: PathBuf,
}

impl Folders {
    fn of(app: &App<'_>) -> Result<Self, Failure> {
        let home = app
            .env
            .home
            .clone()
            .ok_or_else(|| Failure::usage("there is no home folder: HOME is not set"))?;
        let var =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let codex = var("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
        let config = var("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(Self { here: current_dir()?, home, config, codex })
    }
}

impl KnownClient {
    fn file(self, at: &Folders) -> PathBuf {
        match self {
            Self::Claude => at.here.join(".mcp.json"),
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                at.home.join("Library/Application Support/Claude/claude_desktop_config.json")
            }
            Self::ClaudeDesktop => at.config.join("Claude/claude_desktop_config.json"),
            Self::Cursor => at.here.join(".cursor/mcp.json"),
            Self::Vscode => at.here.join(".vscode/mcp.json"),
            Self::Zed => at.config.join("zed/settings.json"),
            Self::Codex => at.codex.join("config.toml"),
            Self::Gemini => at.here.join(".gemini/settings.json"),
            Self::Windsurf => at.home.join(".codeium/windsurf/mcp_config.json"),
        }
    }

    /// Returns the client's variable for its working folder; `None` if its file applies to every
    /// folder.
    fn folder(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => Some("."),
            Self::Cursor | Self::Vscode => Some("${workspaceFolder}"),
            Self::ClaudeDesktop | Self::Zed | Self::Codex | Self::Windsurf => None,
        }
    }

    fn entry(self, command: &str, root: Option<&str>, tools: Option<&str>) -> Entry {
        let mut args = vec!["mcp".to_owned()];
        if let Some(tools) = tools {
            args.extend(["--tools".to_owned(), tools.to_owned()]);
        }
        if let Some(root) = root.or(self.folder()) {
            args.extend(["--root".to_owned(), root.to_owned()]);
        }
        let (section, mut fields) = match self {
            Self::Vscode => ("servers", vec![("type", json!("stdio"))]),
            Self::Zed => ("context_servers", vec![]),
            Self::Codex => ("mcp_servers", vec![]),
            _ => ("mcpServers", vec![]),
        };
        fields.extend([("command", json!(command)), ("args", json!(args))]);
        Entry { section, name: "cairn", fields }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

pub fn run(app: &App<'_>, args: &InstallArgs) -> Result<u8, Failure> {
    let folders = Folders::of(app)?;
    let Some(client) = args.client else {
        return list(&folders);
    };
    let root = match &args.root {
        Some(root) => Some(scope::utf8(&scope::canonical(root)?)?),
        None => None,
    };
    let exe = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("this program's own path is unknown: {e}")))?;
    let entry = client.entry(&scope::utf8(&exe)?, root.as_deref(), args.tools.as_deref());
    let file = client.file(&folders);
    let is_toml = client == KnownClient::Codex;
    if !args.write {
        output::line(&format!("# {}", file.display()))?;
        output::print(&entry::alone(&entry, is_toml)?)?;
        app.info("write it with --write; other entries of the file are unchanged");
        return Ok(OK);
    }
    write(app, &file, &entry, is_toml)?;
    Ok(OK)
}

fn list(folders: &Folders) -> Result<u8, Failure> {
    for client in KnownClient::value_variants() {
        let file = client.file(folders);
        let has = fs::read_to_string(&file).is_ok_and(|text| text.contains("cairn"));
        let state = if has {
            "has an entry"
        } else if file.exists() {
            "has none"
        } else {
            "no file"
        };
        output::line(&format!("{:<15} {:<13} {}", client.name(), state, file.display()))?;
    }
    Ok(OK)
}

/// Merges the entry into the file, atomically and with a backup.
fn write(app: &App<'_>, file: &Path, entry: &Entry, is_toml: bool) -> Result<(), Failure> {
    // A symbolic link is preserved.
    let real = if file.exists() { scope::canonical(file)? } else { file.to_path_buf() };
    let broken = |e: std::io::Error| Failure::path(&real, &e);
    let before = match fs::metadata(&real) {
        Ok(meta) if meta.len() > MAX_FILE => {
            return Err(Failure::failed(format!(
                "{} has more than {MAX_FILE} bytes",
                real.display()
            )));
        }
        Ok(_) => fs::read_to_string(&real).map_err(broken)?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(broken(e)),
    };
    let merged = entry::merge(&before, entry, is_toml).map_err(|why| {
        Failure::failed(format!("{} is unchanged: {why}", real.display()))
            .hint("add the entry manually; without --write it is printed")
    })?;
    let text = match merged {
        Merged::Same => {
            app.info(&format!("{} already has this entry", real.display()));
            return Ok(());
        }
        Merged::Text(text) => text,
    };
    let folder = real
        .parent()
        .ok_or_else(|| Failure::failed(format!("{} has no folder", real.display())))?;
    fs::create_dir_all(folder).map_err(|e| Failure::path(folder, &e))?;
    let mut builder = tempfile::Builder::new();
    // A new file has the usual permissions of the user's files.
    builder.prefix(".cairn-").permissions(fs::Permissions::from_mode(0o666));
    let mut fresh = builder.tempfile_in(folder).map_err(broken)?;
    fresh.write_all(text.as_bytes()).and_then(|()| fresh.as_file().sync_all()).map_err(broken)?;
    if !before.is_empty() {
        let mut name = real.file_name().unwrap_or_default().to_owned();
        name.push(".before-cairn");
        let copy = real.with_file_name(name);
        fs::copy(&real, &copy).map_err(|e| Failure::path(&copy, &e))?;
        let mode = fs::metadata(&real).map_err(broken)?.permissions();
        fs::set_permissions(fresh.path(), mode).map_err(broken)?;
        app.info(&format!("the previous content is stored in {}", copy.display()));
    }
    fresh.persist(&real).map_err(|e| broken(e.error))?;
    output::line(&format!("wrote {}", real.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_file_and_entry() {
        let at = Folders {
            here: "/work".into(),
            home: "/home/u".into(),
            config: "/home/u/.config".into(),
            codex: "/home/u/.codex".into(),
        };
        for client in KnownClient::value_variants() {
            let file = client.file(&at);
            assert!(file.is_absolute() && file.extension().is_some(), "{client:?}");
            // A project file uses the client's working folder; a global one does not.
            assert_eq!(client.folder().is_some(), file.starts_with(&at.here), "{client:?}");
            let text = entry::alone(
                &client.entry("/bin/cairn", Some("/r"), Some("default,git_log")),
                *client == KnownClient::Codex,
            )
            .unwrap();
            for expected in
                ["/bin/cairn", "mcp", "--root", "/r", "cairn", "--tools", "default,git_log"]
            {
                assert!(text.contains(expected), "{client:?}: {text}");
            }
        }
    }
}
