//! Skills: folders that teach agents a kind of work, of the configuration, of `~/.agents/skills` and
//! of trusted projects, and `tool-access.json`, which enables or disables each tool. Changes take
//! effect without a restart.

pub mod agent_skills;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use cairn_engine::{Engine, Rule};
use cairn_protocol::skill::{SkillFile, SkillInfo, SkillPolicy};
use serde::Deserialize;

use crate::trust::TrustStore;

/// Maximum number of skills.
const MAX_SKILLS: usize = 64;
/// Maximum bytes of a `skill.json` and of `tool-access.json`.
const MAX_FILE: u64 = 64 * 1024;
/// Maximum bytes of a prompt block.
const MAX_BLOCK: usize = 16 * 1024;
/// The prompt block of the built-in skill.
const SHELL_PROMPT: &str = include_str!("skills/shell.md");

/// The switch of a tool: `{"enabled": false}`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    enabled: bool,
}

/// A file and the time of its last change.
type Stamp = (PathBuf, i64, i64, u64);

/// A skill as defined by its folder.
#[derive(Debug, Clone, PartialEq)]
struct LoadedSkill {
    file: SkillFile,
    folder: Option<PathBuf>,
    deny: Vec<Rule>,
    confirm: Vec<Rule>,
}

#[derive(Default)]
struct State {
    seen: Option<Vec<Stamp>>,
    skills: Vec<LoadedSkill>,
    switches: BTreeMap<String, bool>,
}

/// The user's skills and switches, synchronised with the files.
pub struct Skills {
    /// Folders that contain skills; the first one with a name wins.
    sources: Vec<PathBuf>,
    /// Folders of skills in agent plugins.
    plugin_sources: RwLock<Vec<PathBuf>>,
    access: Option<PathBuf>,
    state: RwLock<State>,
}

impl Skills {
    /// Manages the skills in `skills/` and the switches in `context/tool-access.json` of the
    /// configuration folder, and the skills in `.agents/skills` of the home folder.
    pub fn new(config_dir: Option<&Path>, home: Option<&Path>) -> Arc<Self> {
        let own = config_dir.map(|dir| dir.join("skills"));
        let shared = home.map(|home| home.join(".agents/skills"));
        let sources = own.into_iter().chain(shared).collect();
        let access = config_dir.map(|dir| dir.join("context").join("tool-access.json"));
        Arc::new(Self {
            sources,
            plugin_sources: RwLock::default(),
            access,
            state: RwLock::default(),
        })
    }

    /// Sets the folders of skills in agent plugins, for the next scan. Other skills come before
    /// theirs.
    pub fn set_plugins(&self, folders: Vec<PathBuf>) {
        *self.plugin_sources.write().unwrap_or_else(PoisonError::into_inner) = folders;
    }

    /// Scans the files and applies changes. Invalid files are logged and ignored; an unreadable
    /// switch file leaves the switches unchanged. This blocks on file I/O.
    pub fn scan(&self, engine: &Engine) {
        let seen = Some(self.stamps());
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.seen == seen {
            return;
        }
        let (skills, wrong) = self.read();
        wrong.iter().for_each(|text| tracing::warn!("{text}"));
        match self.switches() {
            Ok(switches) => state.switches = switches,
            Err(error) => tracing::error!("tool-access.json is ignored: {error}"),
        }
        state.skills = skills;
        state.seen = seen;
        let on = |skill: &&LoadedSkill| reason(skill, &state.switches, engine).is_none();
        let rules = |of: fn(&LoadedSkill) -> &Vec<Rule>| {
            state.skills.iter().filter(on).flat_map(of).cloned().collect()
        };
        engine.set_access(rules(|s| &s.deny), rules(|s| &s.confirm), state.switches.clone());
    }

    /// Lists the user's skills and those of a project that `trusted` accepts by their folder. A skill
    /// of the user covers one of the project with the same name. This blocks on file I/O.
    pub fn list(
        &self,
        engine: &Engine,
        project: Option<&Path>,
        trusted: &dyn Fn(&Path) -> bool,
        trust: &TrustStore,
    ) -> Vec<SkillInfo> {
        let of_project = |root| agent_skills::of_project(root, trusted, trust);
        let project = project.map(of_project).unwrap_or_default();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let one = |skill: &LoadedSkill| {
            let reason = reason(skill, &state.switches, engine);
            let folder = skill.folder.as_ref().map(|f| f.to_string_lossy().into_owned());
            SkillInfo { skill: skill.file.clone(), enabled: reason.is_none(), reason, folder }
        };
        let covered =
            |skill: &&LoadedSkill| state.skills.iter().any(|s| s.file.id == skill.file.id);
        let further = project.iter().filter(|skill| !covered(skill));
        let mut all: Vec<SkillInfo> = state.skills.iter().chain(further).map(one).collect();
        all.sort_by(|a, b| a.skill.id.cmp(&b.skill.id));
        all
    }

    fn folders(&self) -> Vec<PathBuf> {
        let plugins = self.plugin_sources.read().unwrap_or_else(PoisonError::into_inner);
        self.sources.iter().chain(&*plugins).flat_map(|from| agent_skills::folders(from)).collect()
    }

    fn stamps(&self) -> Vec<Stamp> {
        let names = ["skill.json", "prompt.md", agent_skills::FILE];
        let files = self.folders().into_iter().flat_map(|f| names.map(|name| f.join(name)));
        let stamp = |path: PathBuf| {
            let meta = fs::metadata(&path).ok()?;
            Some((path, meta.mtime(), meta.mtime_nsec(), meta.size()))
        };
        files.chain(self.access.clone()).filter_map(stamp).collect()
    }

    /// Reads the built-in skill and those of the folders, by id, and the problems with others.
    fn read(&self) -> (Vec<LoadedSkill>, Vec<String>) {
        let mut skills = vec![shell()];
        let mut wrong = Vec::new();
        for folder in self.folders() {
            match read(&folder) {
                Ok(skill) if skill.file.id == "shell" => skills[0] = skill,
                Ok(skill) if skills.iter().any(|known| known.file.id == skill.file.id) => {}
                Ok(skill) => skills.push(skill),
                Err(error) => wrong.push(format!("skill {}: {error}", folder.display())),
            }
        }
        skills.sort_by(|a, b| a.file.id.cmp(&b.file.id));
        (skills, wrong)
    }

    fn switches(&self) -> Result<BTreeMap<String, bool>, String> {
        let Some(text) = self.access.as_deref().map(read_text).transpose()?.flatten() else {
            return Ok(BTreeMap::new());
        };
        let switches: BTreeMap<String, Switch> = serde_json::from_str(&text).map_err(|e| {
            format!("{e}; it is an object like {{\"run_shell\": {{\"enabled\": false}}}}")
        })?;
        Ok(switches.into_iter().map(|(name, switch)| (name, switch.enabled)).collect())
    }
}

/// Reads a file; `None` if it does not exist.
fn read_text(path: &Path) -> Result<Option<String>, String> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(format!("{} is not a file of at most {MAX_FILE} bytes", path.display()));
    }
    fs::read_to_string(path).map(Some).map_err(|e| format!("{}: {e}", path.display()))
}

fn read(folder: &Path) -> Result<LoadedSkill, String> {
    if !folder.join("skill.json").exists() && folder.join(agent_skills::FILE).exists() {
        return agent_skills::read(folder);
    }
    let text = read_text(&folder.join("skill.json"))?.ok_or("it has no skill.json")?;
    let mut file: SkillFile =
        serde_json::from_str(&text).map_err(|e| format!("skill.json: {e}"))?;
    let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if file.id != name || name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let id: String = file.id.chars().take(64).collect();
        return Err(format!(
            "its id '{}' must be the folder's name: letters, digits, - and _, at most 64",
            id.escape_debug()
        ));
    }
    let block = match file.prompt_block.take() {
        Some(block) => block,
        None => read_text(&folder.join("prompt.md"))?
            .ok_or("it has neither promptBlock nor prompt.md")?,
    };
    if block.len() > MAX_BLOCK {
        return Err(format!("its text has {} bytes; the limit is {MAX_BLOCK}", block.len()));
    }
    file.prompt_block = Some(block);
    let rules = |what: &str, all: &[String]| -> Result<Vec<Rule>, String> {
        all.iter().map(|text| text.parse().map_err(|e| format!("policy.{what}: {e}"))).collect()
    };
    let deny = rules("deny", &file.policy.deny)?;
    let confirm = rules("confirm", &file.policy.confirm)?;
    Ok(LoadedSkill { file, folder: Some(folder.to_owned()), deny, confirm })
}

/// Returns the built-in skill.
fn shell() -> LoadedSkill {
    let file = SkillFile {
        id: "shell".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        description: "Runs commands in the workspace's sandbox.".into(),
        prompt_block: Some(SHELL_PROMPT.to_owned()),
        tools: vec!["run_shell".into(), "shell".into()],
        policy: SkillPolicy::default(),
    };
    LoadedSkill { file, folder: None, deny: vec![], confirm: vec![] }
}

/// Returns the reason why a skill is off: it has tools, and none of them can be called.
fn reason(
    skill: &LoadedSkill,
    switches: &BTreeMap<String, bool>,
    engine: &Engine,
) -> Option<String> {
    let there = |name: &String| engine.registry().has(name) && switches.get(name) != Some(&false);
    let off = !skill.file.tools.is_empty() && !skill.file.tools.iter().any(there);
    off.then(|| format!("none of its tools is available: {}", skill.file.tools.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, file: &str, text: &str) {
        fs::create_dir_all(folder.join("skills").join(name)).unwrap();
        fs::write(folder.join("skills").join(name).join(file), text).unwrap();
    }

    #[test]
    fn folders_are_skills_and_problems_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        put(
            at,
            "review",
            "skill.json",
            r#"{"id": "review", "version": "1", "tools": ["git_diff"], "policy": {"deny": ["write_file"]}}"#,
        );
        put(at, "review", "prompt.md", "Read the diff first.");
        put(at, "inline", "skill.json", r#"{"id": "inline", "promptBlock": "Be brief."}"#);
        put(at, "other", "skill.json", r#"{"id": "another", "promptBlock": "x"}"#);
        put(at, "empty", "skill.json", r#"{"id": "empty"}"#);
        put(
            at,
            "loose",
            "skill.json",
            r#"{"id": "loose", "promptBlock": "x", "policy": {"allow": ["run_shell"]}}"#,
        );
        put(
            at,
            "badrule",
            "skill.json",
            r#"{"id": "badrule", "promptBlock": "x", "policy": {"deny": ["("]}}"#,
        );
        put(
            at,
            "long",
            "skill.json",
            &format!(r#"{{"id": "long", "promptBlock": "{}"}}"#, "x".repeat(MAX_BLOCK + 1)),
        );
        let (skills, wrong) = Skills::new(Some(at), None).read();
        let ids: Vec<&str> = skills.iter().map(|s| s.file.id.as_str()).collect();
        assert_eq!(ids, ["inline", "review", "shell"]);
        assert_eq!(
            (skills[1].file.prompt_block.as_deref(), skills[1].deny.len()),
            (Some("Read the diff first."), 1)
        );
        for (at, part) in [
            "badrule: policy.deny",
            "empty: it has neither",
            "long: its text",
            "loose: skill.json: unknown field `allow`",
            "other: its id 'another'",
        ]
        .iter()
        .enumerate()
        {
            assert!(wrong[at].contains(part), "{part}: {wrong:?}");
        }
        assert_eq!(wrong.len(), 5);
        // A skill of the user replaces the built-in one of the same id.
        put(
            at,
            "shell",
            "skill.json",
            r#"{"id": "shell", "promptBlock": "Mine.", "tools": ["run_shell"]}"#,
        );
        assert_eq!(
            Skills::new(Some(at), None).read().0[2].file.prompt_block.as_deref(),
            Some("Mine.")
        );
    }

    #[test]
    fn switches_are_read_and_invalid_ones_reported() {
        let dir = tempfile::tempdir().unwrap();
        let skills = Skills::new(Some(dir.path()), None);
        assert_eq!(skills.switches().unwrap(), BTreeMap::new());
        fs::create_dir(dir.path().join("context")).unwrap();
        let file = dir.path().join("context/tool-access.json");
        fs::write(&file, r#"{"run_shell": {"enabled": false}, "shell": {"enabled": true}}"#)
            .unwrap();
        let expected =
            BTreeMap::from([("run_shell".to_owned(), false), ("shell".to_owned(), true)]);
        assert_eq!(skills.switches().unwrap(), expected);
        for wrong in ["{", "[]", r#"{"run_shell": false}"#, r#"{"run_shell": {"enabeld": true}}"#] {
            fs::write(&file, wrong).unwrap();
            assert!(skills.switches().is_err(), "{wrong}");
        }
    }
}
