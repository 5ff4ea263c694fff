//! The configuration of this process: files, environment, flags.

use std::{ffi::OsString, path::PathBuf};

use cairn_config::{ConfigError, ConfigErrors, DiskFiles, Inputs, Loaded, Source};
use cairn_protocol::location::Env;
use serde_json::Value;

/// Additions of the command line to the files.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Value of `--config`, if given.
    pub config: Option<PathBuf>,
    /// Values by dotted key.
    pub overrides: Vec<(String, Value)>,
    /// Set if variables of the environment are ignored: for a daemon started on demand they belong
    /// to its client.
    pub without_environment: bool,
}

/// Builds the configuration inputs. A daemon serves many projects and so reads no project file;
/// `project` is for commands that work in one.
pub fn inputs(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Inputs {
    Inputs {
        system: None,
        config_dir: env.config_dir(),
        home: env.home.clone(),
        project_dir: project,
        trusted_as: None,
        explicit: flags.config.clone(),
        env: if flags.without_environment { vec![] } else { environment() },
        overrides: flags.overrides.clone(),
    }
}

fn environment() -> Vec<(String, String)> {
    let ours = |name: &str| ["CAIRN_", "SHELL_TOOL_"].iter().any(|prefix| name.starts_with(prefix));
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).filter(|(name, _)| ours(name)).collect()
}

/// Loads every layer for a project that is trusted as another folder is, if one is given.
///
/// # Errors
/// Problems for the user to fix, by file and key.
pub fn load_as(
    env: &Env,
    flags: &Flags,
    project: PathBuf,
    trusted_as: Option<PathBuf>,
) -> Result<Loaded, ConfigErrors> {
    let inputs = Inputs { trusted_as, ..inputs(env, flags, Some(project)) };
    cairn_config::load(&inputs, &DiskFiles)
}

/// Loads every layer.
///
/// # Errors
/// Problems for the user to fix, by file and key.
pub fn load(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Result<Loaded, ConfigErrors> {
    if let Some(folder) = env.cairn_config.as_ref().filter(|folder| !folder.is_dir()) {
        let message = format!("{} is not a folder", folder.display());
        let origin = Source::Env("CAIRN_CONFIG".into());
        return Err(ConfigErrors(vec![ConfigError { origin, key: None, message }]));
    }
    cairn_config::load(&inputs(env, flags, project), &DiskFiles)
}
