//! The configuration of this process: files, environment, flags.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use cairn_config::{ConfigError, ConfigErrors, DiskFiles, Inputs, Loaded, ProjectTrust, Source};
use cairn_protocol::location::{DataRoot, Env};
use serde_json::Value;

use crate::trust::TrustStore;

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
        trusts: None,
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

/// Loads every layer for a project, whose own file is compared with what the user trusted.
///
/// # Errors
/// Problems for the user to fix, by file and key.
pub fn load_project(
    env: &Env,
    flags: &Flags,
    project: PathBuf,
    trust: &Arc<TrustStore>,
) -> Result<Loaded, ConfigErrors> {
    let inputs = Inputs { trusts: Some(by_content(trust)), ..inputs(env, flags, Some(project)) };
    cairn_config::load(&inputs, &DiskFiles)
}

/// Returns the judge of a project's own file.
fn by_content(trust: &Arc<TrustStore>) -> ProjectTrust {
    let trust = Arc::clone(trust);
    ProjectTrust::new(move |folder, text| trust.trusts_settings(folder, text))
}

/// Opens the store of what the user trusted.
pub fn trust_store(env: &Env, flags: &Flags, root: &DataRoot) -> Arc<TrustStore> {
    let (env, flags) = (env.clone(), flags.clone());
    TrustStore::new(root.trust_dir(), move |folder| {
        load(&env, &flags, None).is_ok_and(|loaded| loaded.config.trust.covers(folder))
    })
}

/// Builds the inputs for a command of the user in a project.
pub fn command_inputs(env: &Env, flags: &Flags, project: Option<PathBuf>) -> Inputs {
    let trust = env.data_root().map(|root| trust_store(env, flags, &DataRoot(root)));
    let trusts = trust.as_ref().map(by_content);
    Inputs { trusts, ..inputs(env, flags, project) }
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
