//! External tools: programs of the user, either named in the configuration or placed in the tools
//! folder with a `.tool.json` beside them. Changes take effect without a restart.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::ExternalTool;
use cairn_engine::Engine;
use cairn_tools::{ExternalSpec, Externals};
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of programs in the tools folder.
const MAX_TOOLS: usize = 64;
/// Maximum bytes of a `.tool.json`.
const MAX_SIDECAR: u64 = 64 * 1024;
/// Maximum bytes of a program.
const MAX_PROGRAM: u64 = 64 * 1024 * 1024;
/// File name suffix of a sidecar.
const SIDECAR_SUFFIX: &str = ".tool.json";

/// The content of a `.tool.json`, which describes the program of the same name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sidecar {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
    /// Older files have it in snake_case.
    #[serde(default, alias = "timeout_seconds")]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    network: bool,
}

/// Synchronises the engine's external tools with the configuration and the tools folder.
pub struct ExternalTools {
    externals: Externals,
    folder: Option<PathBuf>,
    /// The folder of skills, each of which may have its own folder `tools`.
    skills: Option<PathBuf>,
    /// Programs run from copies in this folder, because sandboxed processes may not see the
    /// original folder.
    copies: PathBuf,
    state: Mutex<State>,
}

struct State {
    configured: Vec<ExternalTool>,
    /// The files at the last scan.
    seen: Option<Vec<(PathBuf, Stamp)>>,
}

/// Metadata that changes with a file's content.
type Stamp = (u64, u64, i64, i64, u64, u32);

impl ExternalTools {
    /// Manages the programs of the configuration and of the folders `tools` and `skills` in the
    /// configuration folder, run from copies in `copies`.
    pub fn new(
        config_dir: Option<&Path>,
        copies: PathBuf,
        configured: Vec<ExternalTool>,
    ) -> Arc<Self> {
        let state = Mutex::new(State { configured, seen: None });
        let inner = |name| config_dir.map(|dir| dir.join(name));
        let folder = inner("tools");
        let skills = inner("skills");
        Arc::new(Self { externals: Externals::default(), folder, skills, copies, state })
    }

    /// Applies a changed configuration.
    pub fn configure(&self, engine: &Engine, configured: Vec<ExternalTool>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { configured, seen: None };
        drop(state);
        self.scan(engine);
    }

    /// Scans the files and applies changes. This blocks on file I/O.
    pub fn scan(&self, engine: &Engine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Some(self.stamps(&state.configured));
        if state.seen == seen {
            return;
        }
        let (mut specs, mut wrong) = self.specs(&state.configured);
        for spec in &mut specs {
            match copy(&spec.program, &self.copies) {
                Ok(copy) => spec.program = copy,
                Err(error) => wrong.push(format!(
                    "external tool {}: {}: {error}",
                    spec.name,
                    spec.program.display()
                )),
            }
        }
        specs.retain(|spec| spec.program.starts_with(&self.copies));
        self.remove_stale_copies(&specs);
        wrong.extend(self.externals.set(engine.registry(), specs));
        wrong.iter().for_each(|text| tracing::warn!("{text}"));
        state.seen = seen;
    }

    /// Lists the sidecars of the tools folder, then of skills, by name.
    fn sidecars(&self) -> Vec<PathBuf> {
        let inside = |folder: &Path| {
            let mut all: Vec<PathBuf> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .map(|e| e.path())
                .collect();
            all.sort();
            all
        };
        let skill_folders = self.skills.as_deref().map(inside).unwrap_or_default().into_iter();
        let folders =
            self.folder.clone().into_iter().chain(skill_folders.map(|skill| skill.join("tools")));
        let is_sidecar = |p: &PathBuf| p.to_str().is_some_and(|p| p.ends_with(SIDECAR_SUFFIX));
        folders.flat_map(|folder| inside(&folder)).filter(is_sidecar).take(MAX_TOOLS).collect()
    }

    fn stamps(&self, configured: &[ExternalTool]) -> Vec<(PathBuf, Stamp)> {
        let sidecar = self.sidecars().into_iter().flat_map(|s| [program_path(&s), s]);
        let named = configured.iter().flat_map(|t| [t.path.clone(), sidecar_path(&t.path)]);
        let stamp = |path: PathBuf| stamp(&path).map(|stamp| (path, stamp));
        sidecar.chain(named).filter_map(stamp).collect()
    }

    /// Determines the tools that should exist, those of the configuration first, and the problems
    /// with others.
    fn specs(&self, configured: &[ExternalTool]) -> (Vec<ExternalSpec>, Vec<String>) {
        let mut specs = Vec::new();
        let mut wrong = Vec::new();
        for tool in configured.iter().filter(|t| t.enabled) {
            if tool.r#type != "executable" {
                wrong.push(format!(
                    "external tool {}: the type is 'executable', not '{}'",
                    tool.name, tool.r#type
                ));
                continue;
            }
            let file = sidecar_path(&tool.path);
            let sidecar = if file.exists() { read(&file).map(Some) } else { Ok(None) };
            match sidecar {
                Ok(sidecar) => specs.push(merge_sidecar(tool, sidecar)),
                Err(error) => wrong.push(format!("{}: {error}", file.display())),
            }
        }
        for file in self.sidecars() {
            match read(&file) {
                // The configuration overrides a tool's sidecar, including its `enabled`.
                Ok(own) if configured.iter().any(|t| t.name == own.name) => {}
                Ok(own) => specs.push(ExternalSpec {
                    name: own.name,
                    description: own.description,
                    parameters: own.parameters,
                    program: program_path(&file),
                    timeout: own.timeout_seconds.map(Duration::from_secs),
                    network: own.network,
                    // Only the user's configuration passes variables on: a tool may come with a skill.
                    env: vec![],
                    replaces_builtin: false,
                }),
                Err(error) => wrong.push(format!("{}: {error}", file.display())),
            }
        }
        (specs, wrong)
    }

    /// Removes copies that no tool uses any more.
    fn remove_stale_copies(&self, specs: &[ExternalSpec]) {
        let Ok(entries) = fs::read_dir(&self.copies) else { return };
        for entry in entries.filter_map(Result::ok).map(|e| e.path()) {
            if !specs.iter().any(|spec| spec.program.starts_with(&entry))
                && let Err(error) = fs::remove_dir_all(&entry)
            {
                tracing::warn!(path = %entry.display(), %error, "an old copy cannot be removed");
            }
        }
    }
}

fn merge_sidecar(tool: &ExternalTool, sidecar: Option<Sidecar>) -> ExternalSpec {
    let mut description = String::new();
    let mut parameters = Value::Null;
    let mut seconds = None;
    let mut network = false;
    if let Some(own) = sidecar {
        description = own.description;
        parameters = own.parameters;
        seconds = own.timeout_seconds;
        network = own.network;
    }
    ExternalSpec {
        name: tool.name.clone(),
        description: tool.description.clone().unwrap_or(description),
        parameters: tool.parameters.clone().unwrap_or(parameters),
        program: tool.path.clone(),
        timeout: tool.timeout_seconds.or(seconds).map(Duration::from_secs),
        network: tool.network.unwrap_or(network),
        env: environment(&tool.env),
        replaces_builtin: tool.replaces_builtin,
    }
}

/// Returns the variables of the daemon's environment with these names.
fn environment(names: &[String]) -> Vec<(String, String)> {
    let value = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
    names.iter().filter_map(value).collect()
}

fn program_path(sidecar: &Path) -> PathBuf {
    PathBuf::from(sidecar.to_string_lossy().trim_end_matches(SIDECAR_SUFFIX))
}

fn sidecar_path(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(SIDECAR_SUFFIX);
    name.into()
}

fn read(file: &Path) -> Result<Sidecar, String> {
    let meta = fs::metadata(file).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.len() > MAX_SIDECAR {
        return Err(format!("it is not a file of at most {MAX_SIDECAR} bytes"));
    }
    let text = fs::read_to_string(file).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("it does not describe a tool: {e}"))
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size(), meta.mode()))
}

/// Copies a program into its own folder, again whenever the program has changed.
fn copy(program: &Path, copies: &Path) -> Result<PathBuf, String> {
    let meta = fs::metadata(program).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.mode() & 0o111 == 0 {
        return Err("it is not executable: run chmod +x".into());
    }
    if meta.len() > MAX_PROGRAM {
        return Err(format!("it has more than {MAX_PROGRAM} bytes"));
    }
    // Anyone able to write to it could run code as the user.
    if meta.mode() & 0o002 != 0 {
        return Err("every user can write to it: run chmod o-w on it".into());
    }
    let name = program.file_name().ok_or("it has no name")?;
    let (dev, ino, mtime, nanos, size, _) = stamp(program).ok_or("it no longer exists")?;
    let folder = copies.join(format!("{dev:x}-{ino:x}-{mtime:x}-{nanos:x}-{size:x}"));
    let copy_path = folder.join(name);
    if copy_path.is_file() {
        return Ok(copy_path);
    }
    let partial = folder.join(".partial");
    let create_copy = || -> std::io::Result<()> {
        fs::create_dir_all(&folder)?;
        fs::copy(program, &partial)?;
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o500))?;
        fs::rename(&partial, &copy_path)
    };
    create_copy().map_err(|e| e.to_string())?;
    Ok(copy_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn tools_come_from_configuration_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tools");
        fs::create_dir(&folder).unwrap();
        for (name, sidecar) in [
            ("a", r#"{"name": "a", "description": "A.", "timeout_seconds": 7, "network": true}"#),
            ("b", r#"{"name": "b", "timeoutSeconds": 8}"#),
            ("off", r#"{"name": "off"}"#),
            ("bad", "{"),
            ("more", r#"{"name": "more", "replacesBuiltin": true}"#),
        ] {
            put(&folder.join(name), "#!/bin/sh\n", 0o755);
            put(&folder.join(format!("{name}{SIDECAR_SUFFIX}")), sidecar, 0o644);
        }
        let named = |name: &str| ExternalTool {
            name: name.into(),
            path: folder.join("a"),
            ..ExternalTool::default()
        };
        let configured = [
            ExternalTool {
                description: Some("Mine.".into()),
                timeout_seconds: Some(9),
                ..named("mine")
            },
            ExternalTool { enabled: false, ..named("off") },
            ExternalTool { r#type: "library".into(), ..named("other") },
        ];
        let programs = ExternalTools::new(Some(dir.path()), dir.path().join("copies"), vec![]);
        let (specs, wrong) = programs.specs(&configured);
        let summary: Vec<_> =
            specs.iter().map(|w| (w.name.as_str(), w.description.as_str(), w.network)).collect();
        assert_eq!(summary, [("mine", "Mine.", true), ("a", "A.", true), ("b", "", false)]);
        let timeouts: Vec<_> = specs.iter().map(|spec| spec.timeout).collect();
        assert_eq!(timeouts, [9, 7, 8].map(|seconds| Some(Duration::from_secs(seconds))));
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert_eq!(specs[1].program, folder.join("a"));
    }

    #[test]
    fn changed_program_is_copied_and_invalid_one_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("p");
        let copies = dir.path().join("copies");
        put(&program, "#!/bin/sh\n", 0o755);
        let first = copy(&program, &copies).unwrap();
        assert_eq!(copy(&program, &copies).unwrap(), first);
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o500);
        put(&program, "#!/bin/sh\necho\n", 0o755);
        assert_ne!(copy(&program, &copies).unwrap(), first);
        for (mode, expected) in [(0o644, "chmod +x"), (0o757, "chmod o-w")] {
            put(&program, "#!/bin/sh\n", mode);
            assert!(copy(&program, &copies).unwrap_err().contains(expected));
        }
        assert!(
            copy(dir.path(), &copies).is_err() && copy(&dir.path().join("none"), &copies).is_err()
        );
    }

    #[test]
    fn example_sidecars_are_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let dir = tempfile::tempdir().unwrap();
        let programs = ExternalTools::new(Some(&folder), dir.path().join("copies"), vec![]);
        let (specs, wrong) = programs.specs(&[]);
        assert_eq!(wrong, [""; 0]);
        let names: Vec<&str> = specs.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["git-status", "run-tests", "web-fetch", "web-search"]);
        for spec in specs {
            copy(&spec.program, &programs.copies).unwrap();
        }
    }
}
