//! The configuration of this process: which files, which environment, which flags.

use std::path::PathBuf;

use cairn_config::{ConfigErrors, DiskFiles, Inputs, Loaded};
use cairn_protocol::location::Env;
use serde_json::Value;

/// What the command line adds to the files.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// Values by dotted key.
    pub overrides: Vec<(String, Value)>,
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
        env: std::env::vars()
            .filter(|(name, _)| ["CAIRN_", "SHELL_TOOL_"].iter().any(|p| name.starts_with(p)))
            .collect(),
        overrides: flags.overrides.clone(),
    }
}

/// Reads every layer.
///
/// # Errors
/// What the user must put right, by file and key.
pub fn load(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Result<Loaded, ConfigErrors> {
    cairn_config::load(&inputs(env, flags, project), &DiskFiles)
}
