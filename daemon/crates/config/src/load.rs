//! Reading the layers and merging them, with where each value comes from.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    environment,
    files::Files,
    keys,
    model::Config,
    project::{rule_of, tighten},
};

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The system's file; `/etc/cairn/config.json` when `None`.
    pub system: Option<PathBuf>,
    /// The user's configuration folder; `config.json` in it is read.
    pub config_dir: Option<PathBuf>,
    /// The user's home: `.cairn.json` in it is read, and `~` stands for it.
    pub home: Option<PathBuf>,
    /// The project's folder, canonical: `.cairn.json` in it is read, and may only tighten.
    pub project_dir: Option<PathBuf>,
    /// A file that the user names; it must exist.
    pub explicit: Option<PathBuf>,
    /// Variables of the environment; see [`crate::variables`].
    pub env: Vec<(String, String)>,
    /// Values of flags by dotted key.
    pub overrides: Vec<(String, Value)>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The built-in default.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
    /// A flag of the command line.
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

/// Something that is wrong but does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub source: Source,
    /// The dotted key.
    pub key: String,
    /// What is wrong, and the way out.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A variable is its own key.
        if matches!(&self.source, Source::Env(name) if *name == self.key) {
            return write!(f, "{}: {}", self.source, self.message);
        }
        write!(f, "{}: {}: {}", self.source, self.key, self.message)
    }
}

/// Something that is wrong and must be put right first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {message}", .key.as_ref().map(|k| format!(": {k}")).unwrap_or_default())]
pub struct ConfigError {
    /// Where it stands.
    pub origin: Source,
    /// The dotted key, when one value is wrong.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// All that is wrong, so that it can be put right in one go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// The configuration, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values, `~` expanded.
    pub config: Config,
    /// Where each value comes from, by dotted key.
    pub sources: BTreeMap<String, Source>,
    /// What is worth telling the user.
    pub warnings: Vec<Warning>,
}

/// Values of one origin.
pub(crate) struct Layer {
    pub(crate) source: Source,
    pub(crate) values: Map<String, Value>,
    pub(crate) is_project: bool,
}

/// Reads and merges all layers, later ones over earlier ones: system, user, home, project, explicit, environment, flags. Lists
/// are replaced as a whole, except by a project, whose file may only tighten (see [`crate::rule_of`]) unless its folder lies in
/// one that the user trusts.
///
/// # Errors
/// Every file that cannot be read or is not JSON, and every value of the wrong type, by file and key.
pub fn load(inputs: &Inputs, files: &dyn Files) -> Result<Loaded, ConfigErrors> {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let mut layers = file_layers(inputs, files, &mut errors);
    let (env, unknown) = environment::layers(&inputs.env, &mut errors);
    layers.extend(env);
    for (name, nearest) in unknown {
        let message = format!("no such variable{}", meant(nearest));
        warnings.push(Warning { source: Source::Env(name.clone()), key: name, message });
    }
    if !inputs.overrides.is_empty() {
        let mut values = Map::new();
        inputs.overrides.iter().for_each(|(key, value)| keys::set(&mut values, key, value.clone()));
        layers.push(Layer { source: Source::Flag, values, is_project: false });
    }
    for layer in &layers {
        for (key, nearest) in keys::unknown(&layer.values) {
            let message = format!("no such key{}", meant(nearest));
            warnings.push(Warning { source: layer.source.clone(), key, message });
        }
        if let Err(e) = serde_path_to_error::deserialize::<_, Config>(Value::Object(layer.values.clone())) {
            let key = Some(e.path().to_string()).filter(|p| p != ".");
            errors.push(ConfigError { origin: layer.source.clone(), key, message: e.inner().to_string() });
        }
    }
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    let trusted = is_trusted(inputs, &layers);
    merge(inputs, &layers, trusted, warnings)
}

fn meant(nearest: Option<String>) -> String {
    nearest.map(|n| format!("; did you mean {n}?")).unwrap_or_default()
}

/// The files there are, in order.
fn file_layers(inputs: &Inputs, files: &dyn Files, errors: &mut Vec<ConfigError>) -> Vec<Layer> {
    let project = inputs.project_dir.as_ref().map(|d| d.join(".cairn.json"));
    let home = inputs.home.as_ref().map(|h| h.join(".cairn.json"));
    let user = inputs.config_dir.as_ref().map(|d| d.join("config.json"));
    let system = inputs.system.clone().unwrap_or_else(|| "/etc/cairn/config.json".into());
    // A project in the home folder itself has the user's own file.
    let project = project.filter(|p| Some(p) != home.as_ref());
    let places = [
        (Some(system), false),
        (user, false),
        (home, false),
        (project, true),
        (inputs.explicit.clone(), false),
    ];
    let mut layers = Vec::new();
    for (path, is_project) in places.into_iter().filter_map(|(path, is_project)| Some((path?, is_project))) {
        let source = Source::File(path.clone());
        let mut wrong =
            |message: String| errors.push(ConfigError { origin: source.clone(), key: None, message });
        match files.read(&path) {
            Ok(Some(text)) if text.trim().is_empty() => {}
            Ok(Some(text)) => match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(Value::Object(values)) => layers.push(Layer { source, values, is_project }),
                Ok(_) => wrong("must be a JSON object".into()),
                Err(e) => wrong(format!("is not JSON: {e}")),
            },
            Ok(None) if inputs.explicit.as_ref() == Some(&path) => wrong("does not exist".into()),
            Ok(None) => {}
            Err(e) => wrong(format!("cannot be read: {e}")),
        }
    }
    layers
}

/// Whether the project's folder lies in one that the user's own layers trust.
fn is_trusted(inputs: &Inputs, layers: &[Layer]) -> bool {
    let Some(project) = &inputs.project_dir else { return false };
    let last = layers
        .iter()
        .filter(|l| !l.is_project)
        .filter_map(|l| keys::get(&l.values, "trust.folders"))
        .next_back();
    last.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).any(|folder| {
        let folder = expand(Path::new(folder), inputs.home.as_deref());
        // A name with `..` in it does not say where it leads.
        let plain = !project.components().any(|c| c == Component::ParentDir);
        plain && folder.is_absolute() && project.starts_with(folder)
    })
}

fn merge(
    inputs: &Inputs,
    layers: &[Layer],
    trusted: bool,
    mut warnings: Vec<Warning>,
) -> Result<Loaded, ConfigErrors> {
    let Ok(Value::Object(mut merged)) = serde_json::to_value(Config::default()) else {
        let message = "the defaults cannot be written as JSON".to_owned();
        return Err(ConfigErrors(vec![ConfigError { origin: Source::Default, key: None, message }]));
    };
    let mut sources: BTreeMap<String, Source> =
        keys::flatten(&merged).into_iter().map(|(key, _)| (key, Source::Default)).collect();
    for layer in layers {
        for (key, value) in keys::flatten(&layer.values) {
            let mut value = value.clone();
            if layer.is_project {
                if key == "safety.sandbox_blocked_paths" {
                    value = absolute(value, inputs.project_dir.as_deref());
                }
                let (rule, lifted) = rule_of(&key);
                if !(trusted && lifted) {
                    let now = effective(&merged, &key);
                    match tighten(rule, now.as_ref(), &value) {
                        Ok(tight) if now.as_ref() == Some(&tight) => continue,
                        Ok(tight) => value = tight,
                        Err(why) => {
                            let way_out = if lifted {
                                "name this folder in trust.folders of your own config to allow it"
                            } else {
                                "set it in your own config instead"
                            };
                            let message = format!("not taken: {why}; {way_out}");
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
    let at = |key: &str, message: String| {
        let origin = sources.get(key).cloned().unwrap_or(Source::Default);
        ConfigErrors(vec![ConfigError { origin, key: Some(key.to_owned()), message }])
    };
    let mut config: Config = serde_path_to_error::deserialize(Value::Object(merged))
        .map_err(|e| at(&e.path().to_string(), e.inner().to_string()))?;
    if let Some((key, why)) = config.nonsense().into_iter().next() {
        return Err(at(key, why));
    }
    expand_all(&mut config, inputs.home.as_deref());
    // What is not known is not a value.
    let known = |key: &String| keys::leaves().iter().any(|leaf| keys::matches(leaf, key));
    sources.retain(|key, _| known(key));
    Ok(Loaded { config, sources, warnings })
}

/// The paths of a project's list, relative ones from its folder.
fn absolute(value: Value, project: Option<&Path>) -> Value {
    let (Value::Array(paths), Some(project)) = (&value, project) else { return value };
    let one = |path: &Value| match path.as_str() {
        Some(text) if !text.starts_with(['/', '~']) => Value::from(project.join(text).to_string_lossy()),
        _ => path.clone(),
    };
    paths.iter().map(one).collect()
}

/// The value at a key now; settings of a tool that nobody mentioned have their defaults.
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

/// A path with `~` at its beginning replaced by the home folder.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_path_buf(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}
