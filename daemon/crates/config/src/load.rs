//! Reading and merging of the layers.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    environment,
    files::Files,
    keys,
    model::Config,
    project::{rule_of, tighten},
};

#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The system's file; `/etc/cairn/config.json` when `None`.
    pub system: Option<PathBuf>,
    /// The user's configuration folder, which contains `config.json`.
    pub config_dir: Option<PathBuf>,
    /// The user's home folder, which contains `.cairn.json` and replaces `~`.
    pub home: Option<PathBuf>,
    /// The project's canonical folder. Its `.cairn.json` can only tighten safety.
    pub project_dir: Option<PathBuf>,
    /// Decides whether the text of the project's file is trusted; it is not when `None`.
    pub trusts: Option<ProjectTrust>,
    /// A file that the user named; it must exist.
    pub explicit: Option<PathBuf>,
    /// Environment variables; see [`crate::variables`].
    pub env: Vec<(String, String)>,
    /// Values of command-line flags by dotted key.
    pub overrides: Vec<(String, Value)>,
}

/// Returns true for the text of a project's file, by the project's folder and the text, that the
/// user trusts.
type JudgeOfText = dyn Fn(&Path, &str) -> bool + Send + Sync;

/// The judge of the texts of projects' files.
#[derive(Clone)]
pub struct ProjectTrust(Arc<JudgeOfText>);

impl ProjectTrust {
    /// Creates a judge from a function of the project's folder and the text.
    pub fn new(judge: impl Fn(&Path, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }
}

impl fmt::Debug for ProjectTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectTrust")
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    Default,
    File(PathBuf),
    /// The name of an environment variable.
    Env(String),
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Env(name) => write!(f, "${name}"),
            Source::Flag => f.write_str("command line"),
        }
    }
}

/// A problem that does not prevent loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub source: Source,
    pub key: String,
    /// The problem and its remedy.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // For an unknown variable, the key is the variable itself.
        if matches!(&self.source, Source::Env(name) if *name == self.key) {
            return write!(f, "{}: {}", self.source, self.message);
        }
        write!(f, "{}: {}: {}", self.source, self.key, self.message)
    }
}

/// A problem that prevents loading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {message}", .key.as_ref().map(|k| format!(": {k}")).unwrap_or_default())]
pub struct ConfigError {
    pub origin: Source,
    /// The dotted key, if a single value is wrong.
    pub key: Option<String>,
    pub message: String,
}

/// All problems at once, so that the user can fix them in one go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values with `~` expanded.
    pub config: Config,
    /// The origin of each value by dotted key.
    pub sources: BTreeMap<String, Source>,
    pub warnings: Vec<Warning>,
}

/// The values of one source.
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) values: Map<String, Value>,
    pub(crate) is_project: bool,
    /// True if the user trusts exactly this text of a project's file.
    pub(crate) is_trusted: bool,
}

/// Reads and merges all layers, later ones over earlier ones: system, user, home, project,
/// explicit, environment, flags. A later list replaces an earlier one completely. A project's file
/// can only tighten (see [`crate::rule_of`]) unless the user trusts its text.
///
/// # Errors
/// Every file that cannot be read or is not JSON, and every value of the wrong type, by file and
/// key.
pub fn load(inputs: &Inputs, files: &dyn Files) -> Result<Loaded, ConfigErrors> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let mut layers = file_layers(inputs, files, &mut errors);
    let (env, unknown) = environment::layers(&inputs.env, &mut errors);
    layers.extend(env);
    for (name, nearest) in unknown {
        let message = format!("no such variable{}", suggestion(nearest));
        warnings.push(Warning { source: Source::Env(name.clone()), key: name, message });
    }
    if !inputs.overrides.is_empty() {
        let mut values = Map::new();
        inputs.overrides.iter().for_each(|(key, value)| keys::set(&mut values, key, value.clone()));
        layers.push(Layer { source: Source::Flag, values, is_project: false, is_trusted: false });
    }
    for layer in &mut layers {
        // Before anything reads the keys, so that no rule about a key misses its other spelling.
        warnings.extend(respelled(&layer.source, keys::respell(&mut layer.values)));
        for (key, nearest) in keys::unknown(&layer.values) {
            let message = format!("no such key{}", suggestion(nearest));
            warnings.push(Warning { source: layer.source.clone(), key, message });
        }
        if let Err(e) =
            serde_path_to_error::deserialize::<_, Config>(Value::Object(layer.values.clone()))
        {
            let key = Some(e.path().to_string()).filter(|p| p != ".");
            errors.push(ConfigError {
                origin: layer.source.clone(),
                key,
                message: e.inner().to_string(),
            });
        }
    }
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    merge(inputs, &layers, warnings)
}

/// One warning for all keys of a layer that are not in their own spelling.
fn respelled(source: &Source, renamed: Vec<(String, String)>) -> Option<Warning> {
    let others = renamed.len().saturating_sub(1);
    let (key, name) = renamed.into_iter().next()?;
    let more = match others {
        0 => String::new(),
        1 => "; another key is not in its own either".to_owned(),
        n => format!("; {n} other keys are not in theirs either"),
    };
    let message = format!("read as {name}, which is the key's spelling{more}");
    Some(Warning { source: source.clone(), key, message })
}

fn suggestion(nearest: Option<String>) -> String {
    nearest.map(|n| format!("; did you mean {n}?")).unwrap_or_default()
}

/// Reads the existing files in the order of their precedence.
fn file_layers(inputs: &Inputs, files: &dyn Files, errors: &mut Vec<ConfigError>) -> Vec<Layer> {
    let project = inputs.project_dir.as_ref().map(|d| d.join(".cairn.json"));
    let home = inputs.home.as_ref().map(|h| h.join(".cairn.json"));
    let user = inputs.config_dir.as_ref().map(|d| d.join("config.json"));
    let system = inputs.system.clone().unwrap_or_else(|| "/etc/cairn/config.json".into());
    // `.cairn.json` in the home folder is the user's own file, not a project's.
    let project = project.filter(|p| Some(p) != home.as_ref());
    let candidates = [
        (Some(system), false),
        (user, false),
        (home, false),
        (project, true),
        (inputs.explicit.clone(), false),
    ];
    let mut layers = Vec::new();
    for (path, is_project) in
        candidates.into_iter().filter_map(|(path, is_project)| Some((path?, is_project)))
    {
        let source = Source::File(path.clone());
        let mut report = |message: String| {
            errors.push(ConfigError { origin: source.clone(), key: None, message })
        };
        match files.read(&path) {
            Ok(Some(text)) if text.trim().is_empty() => {}
            Ok(Some(text)) => match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(Value::Object(values)) => {
                    // Exactly the text that was read, so that no other one takes effect.
                    let is_trusted = is_project
                        && inputs
                            .trusts
                            .as_ref()
                            .zip(inputs.project_dir.as_deref())
                            .is_some_and(|(trusts, project)| (trusts.0)(project, &text));
                    layers.push(Layer { source, values, is_project, is_trusted });
                }
                Ok(_) => report("must be a JSON object".into()),
                Err(e) => report(format!("is not JSON: {e}")),
            },
            Ok(None) if inputs.explicit.as_ref() == Some(&path) => report("does not exist".into()),
            Ok(None) => {}
            Err(e) => report(format!("cannot be read: {e}")),
        }
    }
    layers
}

fn merge(
    inputs: &Inputs,
    layers: &[Layer],
    mut warnings: Vec<Warning>,
) -> Result<Loaded, ConfigErrors> {
    let Ok(Value::Object(mut merged)) = serde_json::to_value(Config::default()) else {
        let message = "the defaults cannot be written as JSON".to_owned();
        return Err(ConfigErrors(vec![ConfigError {
            origin: Source::Default,
            key: None,
            message,
        }]));
    };
    let mut sources: BTreeMap<String, Source> =
        keys::flatten(&merged).into_iter().map(|(key, _)| (key, Source::Default)).collect();
    for layer in layers {
        for (key, value) in keys::flatten(&layer.values) {
            let mut value = value.clone();
            if layer.is_project {
                if key == "safety.sandboxBlockedPaths" {
                    value = absolute(value, inputs.project_dir.as_deref());
                }
                let (rule, lifted) = rule_of(&key);
                if !(layer.is_trusted && lifted) {
                    let now = effective(&merged, &key);
                    match tighten(rule, now.as_ref(), &value) {
                        Ok(tight) if now.as_ref() == Some(&tight) => continue,
                        Ok(tight) => value = tight,
                        Err(why) => {
                            let way_out = if lifted {
                                "trust its content with 'cairn trust' to allow it"
                            } else {
                                "set it in your own config instead"
                            };
                            let message = format!("ignored: {why}; {way_out}");
                            warnings.push(Warning { source: layer.source.clone(), key, message });
                            continue;
                        }
                    }
                }
            }
            keys::set(&mut merged, &key, value);
            sources.insert(key, layer.source.clone());
        }
    }
    let error_at = |key: &str, message: String| {
        let origin = sources.get(key).cloned().unwrap_or(Source::Default);
        ConfigErrors(vec![ConfigError { origin, key: Some(key.to_owned()), message }])
    };
    let mut config: Config = serde_path_to_error::deserialize(Value::Object(merged))
        .map_err(|e| error_at(&e.path().to_string(), e.inner().to_string()))?;
    if let Some((key, why)) = config.invalid_values().into_iter().next() {
        return Err(error_at(key, why));
    }
    expand_all(&mut config, inputs.home.as_deref());
    // Unknown keys are reported as warnings and are not sources of values.
    let known = |key: &String| keys::leaves().iter().any(|leaf| keys::matches(leaf, key));
    sources.retain(|key, _| known(key));
    Ok(Loaded { config, sources, warnings })
}

/// Resolves the relative paths of a project's list against the project's folder.
fn absolute(value: Value, project: Option<&Path>) -> Value {
    let (Value::Array(paths), Some(project)) = (&value, project) else { return value };
    let one = |path: &Value| match path.as_str() {
        Some(text) if !text.starts_with(['/', '~']) => {
            Value::from(project.join(text).to_string_lossy())
        }
        _ => path.clone(),
    };
    paths.iter().map(one).collect()
}

/// Looks up the current value of a key; tools without settings have the default ones.
fn effective(merged: &Map<String, Value>, key: &str) -> Option<Value> {
    keys::get(merged, key).cloned().or_else(|| {
        let field = key.strip_prefix("tools.builtin.")?.split_once('.')?.1;
        serde_json::to_value(crate::model::BuiltinTool::default()).ok()?.get(field).cloned()
    })
}

fn expand_all(config: &mut Config, home: Option<&Path>) {
    let paths = config
        .roots
        .iter_mut()
        .chain(&mut config.trust.folders)
        .chain(&mut config.safety.sandbox_blocked_paths);
    for path in paths.chain(config.tools.external.iter_mut().map(|t| &mut t.path)) {
        *path = expand(path, home);
    }
    let models = [&mut config.embedder, &mut config.rerank.model];
    for path in config.safety.sandbox_allowed_paths.iter_mut().chain(models) {
        if path.starts_with('~') {
            *path = expand(Path::new(path.as_str()), home).to_string_lossy().into_owned();
        }
    }
}

/// Replaces a leading `~` by the home folder.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_path_buf(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}
