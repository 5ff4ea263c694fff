//! The configuration of this process: which files, which environment, which flags.

use std::{ffi::OsString, path::PathBuf};

use cairn_config::{ConfigError, ConfigErrors, DiskFiles, Inputs, Loaded, Source};
use cairn_protocol::location::Env;
use serde_json::Value;

/// What the command line adds to the files.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// Values by dotted key.
    pub overrides: Vec<(String, Value)>,
    /// True if settings in the environment do not count: those of a daemon that a client starts are that client's.
    pub without_environment: bool,
}

/// The inputs of this process. A daemon serves many projects, so it takes no project's file for its own; `project`
/// is for commands that work in one.
pub fn inputs(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Inputs {
    Inputs {
        system: None,
        config_dir: env.config_dir(),
        home: env.home.clone(),
        project_dir: project,
        explicit: flags.config.clone(),
        env: if flags.without_environment { vec![] } else { environment() },
        overrides: flags.overrides.clone(),
    }
}

fn environment() -> Vec<(String, String)> {
    let ours = |name: &str| ["CAIRN_", "SHELL_TOOL_"].iter().any(|prefix| name.starts_with(prefix));
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).filter(|(name, _)| ours(name)).collect()
}

/// Reads every layer.
///
/// # Errors
/// What the user must put right, by file and key.
pub fn load(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Result<Loaded, ConfigErrors> {
    if let Some(folder) = env.cairn_config.as_ref().filter(|folder| !folder.is_dir()) {
        let message = format!("{} is not a folder", folder.display());
        let origin = Source::Env("CAIRN_CONFIG".into());
        return Err(ConfigErrors(vec![ConfigError { origin, key: None, message }]));
    }
    cairn_config::load(&inputs(env, flags, project), &DiskFiles)
}
