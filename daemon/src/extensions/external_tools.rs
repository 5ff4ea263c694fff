//! Tools that are programs of the user's: those that the configuration names, and those in the tools folder that have a
//! `.tool.json` beside them. They come and go without a restart.

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

/// Programs in the tools folder.
const MAX_TOOLS: usize = 64;
/// Bytes of a `.tool.json`.
const MAX_SIDECAR: u64 = 64 * 1024;
/// Bytes of a program.
const MAX_PROGRAM: u64 = 64 * 1024 * 1024;
/// How the name of a sidecar ends.
const SIDECAR: &str = ".tool.json";

/// What a `.tool.json` says of the program whose name it bears.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    network: bool,
}

/// Keeps the engine's tools as the configuration and the tools folder have them.
pub struct Programs {
    externals: Externals,
    /// The tools folder.
    folder: Option<PathBuf>,
    /// The folder of skills, each of which may have a folder `tools` of its own.
    skills: Option<PathBuf>,
    /// Where programs are run from: the folder they lie in may be one that no process sees.
    copies: PathBuf,
    state: Mutex<State>,
}

struct State {
    configured: Vec<ExternalTool>,
    /// What was last seen of the files.
    seen: Option<Vec<(PathBuf, Stamp)>>,
}

/// What changes with a file's content.
type Stamp = (u64, u64, i64, i64, u64, u32);

impl Programs {
    /// Programs of the folders `tools` and `skills` in the configuration's folder and of the configuration itself, run from
    /// copies in `copies`.
    pub fn new(config_dir: Option<&Path>, copies: PathBuf, configured: Vec<ExternalTool>) -> Arc<Self> {
        let state = Mutex::new(State { configured, seen: None });
        let inner = |name| config_dir.map(|dir| dir.join(name));
        let (folder, skills) = (inner("tools"), inner("skills"));
        Arc::new(Self { externals: Externals::default(), folder, skills, copies, state })
    }

    /// Takes another configuration.
    pub fn configure(&self, engine: &Engine, configured: Vec<ExternalTool>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { configured, seen: None };
        drop(state);
        self.look(engine);
    }

    /// Looks at the files, and takes what is new. Blocks.
    pub fn look(&self, engine: &Engine) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = Some(self.stamps(&state.configured));
        if state.seen == seen {
            return;
        }
        let (mut wanted, mut wrong) = self.wanted(&state.configured);
        for spec in &mut wanted {
            match copy(&spec.program, &self.copies) {
                Ok(copy) => spec.program = copy,
                Err(error) => {
                    wrong.push(format!("external tool {}: {}: {error}", spec.name, spec.program.display()))
                }
            }
        }
        wanted.retain(|spec| spec.program.starts_with(&self.copies));
        self.tidy(&wanted);
        wrong.extend(self.externals.set(engine.registry(), wanted));
        wrong.iter().for_each(|text| tracing::warn!("{text}"));
        state.seen = seen;
    }

    /// Sidecars of the tools folder and then of skills, in the order of their names.
    fn sidecars(&self) -> Vec<PathBuf> {
        let inside = |folder: &Path| {
            let mut all: Vec<PathBuf> =
                fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|e| e.path()).collect();
            all.sort();
            all
        };
        let of_skills = self.skills.as_deref().map(inside).unwrap_or_default().into_iter();
        let folders = self.folder.clone().into_iter().chain(of_skills.map(|skill| skill.join("tools")));
        let is_sidecar = |p: &PathBuf| p.to_str().is_some_and(|p| p.ends_with(SIDECAR));
        folders.flat_map(|folder| inside(&folder)).filter(is_sidecar).take(MAX_TOOLS).collect()
    }

    fn stamps(&self, configured: &[ExternalTool]) -> Vec<(PathBuf, Stamp)> {
        let beside = self.sidecars().into_iter().flat_map(|s| [program_of(&s), s]);
        let named = configured.iter().flat_map(|t| [t.path.clone(), sidecar_of(&t.path)]);
        let stamp = |path: PathBuf| stamp(&path).map(|stamp| (path, stamp));
        beside.chain(named).filter_map(stamp).collect()
    }

    /// What there should be, the configuration's first, and what is wrong with the rest.
    fn wanted(&self, configured: &[ExternalTool]) -> (Vec<ExternalSpec>, Vec<String>) {
        let (mut wanted, mut wrong) = (Vec::new(), Vec::new());
        for tool in configured.iter().filter(|t| t.enabled) {
            if tool.r#type != "executable" {
                wrong.push(format!(
                    "external tool {}: the type is 'executable', not '{}'",
                    tool.name, tool.r#type
                ));
                continue;
            }
            let file = sidecar_of(&tool.path);
            let beside = if file.exists() { read(&file).map(Some) } else { Ok(None) };
            match beside {
                Ok(beside) => wanted.push(merged(tool, beside)),
                Err(error) => wrong.push(format!("{}: {error}", file.display())),
            }
        }
        for file in self.sidecars() {
            match read(&file) {
                // A tool that the configuration names is as the configuration says, and off where it says so.
                Ok(own) if configured.iter().any(|t| t.name == own.name) => {}
                Ok(own) => wanted.push(ExternalSpec {
                    name: own.name,
                    description: own.description,
                    parameters: own.parameters,
                    program: program_of(&file),
                    timeout: own.timeout_seconds.map(Duration::from_secs),
                    network: own.network,
                    replaces_builtin: false,
                }),
                Err(error) => wrong.push(format!("{}: {error}", file.display())),
            }
        }
        (wanted, wrong)
    }

    /// Removes copies that no tool runs any more.
    fn tidy(&self, wanted: &[ExternalSpec]) {
        let Ok(entries) = fs::read_dir(&self.copies) else { return };
        for entry in entries.filter_map(Result::ok).map(|e| e.path()) {
            if !wanted.iter().any(|spec| spec.program.starts_with(&entry))
                && let Err(error) = fs::remove_dir_all(&entry)
            {
                tracing::warn!(path = %entry.display(), %error, "an old copy cannot be removed");
            }
        }
    }
}

fn merged(tool: &ExternalTool, beside: Option<Sidecar>) -> ExternalSpec {
    let (mut description, mut parameters, mut seconds, mut network) =
        (String::new(), Value::Null, None, false);
    if let Some(own) = beside {
        (description, parameters, seconds, network) =
            (own.description, own.parameters, own.timeout_seconds, own.network);
    }
    ExternalSpec {
        name: tool.name.clone(),
        description: tool.description.clone().unwrap_or(description),
        parameters: tool.parameters.clone().unwrap_or(parameters),
        program: tool.path.clone(),
        timeout: tool.timeout_seconds.or(seconds).map(Duration::from_secs),
        network: tool.network.unwrap_or(network),
        replaces_builtin: tool.replaces_builtin,
    }
}

fn program_of(sidecar: &Path) -> PathBuf {
    PathBuf::from(sidecar.to_string_lossy().trim_end_matches(SIDECAR))
}

fn sidecar_of(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(SIDECAR);
    name.into()
}

fn read(file: &Path) -> Result<Sidecar, String> {
    let meta = fs::metadata(file).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.len() > MAX_SIDECAR {
        return Err(format!("it is no file of at most {MAX_SIDECAR} bytes"));
    }
    let text = fs::read_to_string(file).map_err(|e| e.to_string())?;
    serde_json::from_str(&text).map_err(|e| format!("it does not describe a tool: {e}"))
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size(), meta.mode()))
}

/// A copy of a program in a folder of its own, made anew when the program has changed.
fn copy(program: &Path, copies: &Path) -> Result<PathBuf, String> {
    let meta = fs::metadata(program).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.mode() & 0o111 == 0 {
        return Err("it is no executable file: chmod +x makes it one".into());
    }
    if meta.len() > MAX_PROGRAM {
        return Err(format!("it has more than {MAX_PROGRAM} bytes"));
    }
    // Whoever could write to it could run as the user.
    if meta.mode() & 0o002 != 0 {
        return Err("everybody may write to it: chmod o-w forbids that".into());
    }
    let name = program.file_name().ok_or("it has no name")?;
    let (dev, ino, mtime, nanos, size, _) = stamp(program).ok_or("it is gone")?;
    let folder = copies.join(format!("{dev:x}-{ino:x}-{mtime:x}-{nanos:x}-{size:x}"));
    let made = folder.join(name);
    if made.is_file() {
        return Ok(made);
    }
    let partial = folder.join(".partial");
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(&folder)?;
        fs::copy(program, &partial)?;
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o500))?;
        fs::rename(&partial, &made)
    };
    make().map_err(|e| e.to_string())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(file: &Path, text: &str, mode: u32) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_configuration_and_the_folder_name_tools() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tools");
        fs::create_dir(&folder).unwrap();
        for (name, sidecar) in [
            ("a", r#"{"name": "a", "description": "A.", "timeout_seconds": 7, "network": true}"#),
            ("b", r#"{"name": "b"}"#),
            ("off", r#"{"name": "off"}"#),
            ("bad", "{"),
            ("more", r#"{"name": "more", "replaces_builtin": true}"#),
        ] {
            put(&folder.join(name), "#!/bin/sh\n", 0o755);
            put(&folder.join(format!("{name}{SIDECAR}")), sidecar, 0o644);
        }
        let named = |name: &str| ExternalTool {
            name: name.into(),
            path: folder.join("a"),
            ..ExternalTool::default()
        };
        let configured = [
            ExternalTool { description: Some("Mine.".into()), timeout_seconds: Some(9), ..named("mine") },
            ExternalTool { enabled: false, ..named("off") },
            ExternalTool { r#type: "library".into(), ..named("other") },
        ];
        let programs = Programs::new(Some(dir.path()), dir.path().join("copies"), vec![]);
        let (wanted, wrong) = programs.wanted(&configured);
        let told: Vec<_> =
            wanted.iter().map(|w| (w.name.as_str(), w.description.as_str(), w.network)).collect();
        assert_eq!(told, [("mine", "Mine.", true), ("a", "A.", true), ("b", "", false)]);
        assert_eq!(
            (wanted[0].timeout, wanted[1].timeout),
            (Some(Duration::from_secs(9)), Some(Duration::from_secs(7)))
        );
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert_eq!(wanted[1].program, folder.join("a"));
    }

    #[test]
    fn a_program_is_copied_when_it_changes_and_refused_when_it_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (program, copies) = (dir.path().join("p"), dir.path().join("copies"));
        put(&program, "#!/bin/sh\n", 0o755);
        let first = copy(&program, &copies).unwrap();
        assert_eq!(copy(&program, &copies).unwrap(), first);
        assert_eq!(fs::metadata(&first).unwrap().mode() & 0o777, 0o500);
        put(&program, "#!/bin/sh\necho\n", 0o755);
        assert_ne!(copy(&program, &copies).unwrap(), first);
        for (mode, want) in [(0o644, "chmod +x"), (0o757, "chmod o-w")] {
            put(&program, "#!/bin/sh\n", mode);
            assert!(copy(&program, &copies).unwrap_err().contains(want));
        }
        assert!(copy(dir.path(), &copies).is_err() && copy(&dir.path().join("none"), &copies).is_err());
    }

    #[test]
    fn the_examples_describe_their_programs() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let dir = tempfile::tempdir().unwrap();
        let programs = Programs::new(Some(&folder), dir.path().join("copies"), vec![]);
        let (wanted, wrong) = programs.wanted(&[]);
        assert_eq!(wrong, [""; 0]);
        let names: Vec<&str> = wanted.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["git-status", "run-tests", "web-fetch", "web-search"]);
        for spec in wanted {
            copy(&spec.program, &programs.copies).unwrap();
        }
    }
}
