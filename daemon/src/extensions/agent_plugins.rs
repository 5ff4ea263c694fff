//! Agent plugins: folders with a `plugin.json` that bring skills, MCP servers, commands and hooks.
//! Plugins of the user are named in the configuration; those of a project are in its own folder and
//! are used only if the user trusts it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

use cairn_config::McpServer;
use cairn_protocol::plugin::PluginInfo;
use serde::Deserialize;
use serde_json::Value;

use super::{
    hooks::{self, Groups},
    skills::agent_skills,
};

/// Positions of the manifest in a plugin; the first one that exists is used.
const MANIFESTS: &[&str] = &["plugin.json", ".claude-plugin/plugin.json"];
/// Positions of the list of MCP servers.
const SERVERS: &[&str] = &["mcp.json", ".mcp.json"];
/// Folder of a project's plugins.
const PROJECT_FOLDER: &str = ".agents/plugins";
/// Names that stand for the plugin's folder in its files.
const ROOT_NAMES: &[&str] = &["${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}"];
/// Maximum number of plugins of a source.
const MAX_PLUGINS: usize = 32;
/// Maximum number of servers and of commands of a plugin.
const MAX_ITEMS: usize = 64;
/// Maximum bytes of a file.
const MAX_FILE: u64 = 256 * 1024;

/// A plugin as its folder defines it.
#[derive(Debug, Clone, Default)]
pub struct AgentPlugin {
    pub name: String,
    pub folder: PathBuf,
    version: String,
    description: String,
    pub skills: PathBuf,
    commands: PathBuf,
    pub servers: BTreeMap<String, McpServer>,
    pub hooks: Groups,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    description: String,
    /// A path, or the content of the file.
    #[serde(default)]
    hooks: Option<Value>,
    #[serde(default)]
    mcp_servers: Option<Value>,
    #[serde(default)]
    skills: Option<String>,
    #[serde(default)]
    commands: Option<String>,
}

/// A server in the form of `mcp.json`.
#[derive(Deserialize)]
struct ServerEntry {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Reads the plugins of the user. This blocks on file I/O.
pub fn of_user(folders: &[PathBuf]) -> Vec<(PathBuf, Result<AgentPlugin, String>)> {
    folders.iter().take(MAX_PLUGINS).map(|folder| (folder.clone(), read(folder))).collect()
}

/// Reads the plugins of a project, which must be trusted; invalid ones are logged and omitted. A
/// link out of the project is not followed. This blocks on file I/O.
pub fn of_project(root: &Path) -> Vec<AgentPlugin> {
    let mut all = Vec::new();
    for folder in project_folders(root) {
        match read(&folder) {
            // Its servers would run outside of any session.
            Ok(plugin) => all.push(AgentPlugin { servers: BTreeMap::new(), ..plugin }),
            Err(error) => tracing::warn!("plugin {}: {error}", folder.display()),
        }
    }
    all
}

/// Returns the folders of a project's plugins.
pub fn project_folders(root: &Path) -> Vec<PathBuf> {
    let Ok(real) = root.canonicalize() else { return vec![] };
    let entries = fs::read_dir(real.join(PROJECT_FOLDER)).into_iter().flatten().flatten();
    let inside = |path: PathBuf| path.canonicalize().ok().filter(|path| path.starts_with(&real));
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| inside(entry.path())).collect();
    all.retain(|path| MANIFESTS.iter().any(|name| path.join(name).is_file()));
    all.sort();
    all.truncate(MAX_PLUGINS);
    all
}

/// Returns the command lines of a plugin's hooks.
pub fn commands_of(folder: &Path) -> Vec<String> {
    let groups = read(folder).map(|plugin| plugin.hooks).unwrap_or_default();
    let hooks = groups.values().flatten().flat_map(|group| &group.hooks);
    hooks.map(|hook| hook.command.clone()).collect()
}

fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let text = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
        Ok(meta) if !meta.is_file() || meta.len() > MAX_FILE => {
            return Err(format!("{} is not a file of at most {MAX_FILE} bytes", path.display()));
        }
        Ok(_) => fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?,
    };
    serde_json::from_str(&text).map(Some).map_err(|e| format!("{}: {e}", path.display()))
}

/// Returns a path that a manifest names, inside the plugin's folder.
fn inner(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(folder.join(path));
    }
    Err(format!("'{}' is not a path inside the plugin", path.display().to_string().escape_debug()))
}

/// Returns the content of a field that names a file or contains its content; else of the first of
/// the default files.
fn content(
    folder: &Path,
    field: Option<Value>,
    defaults: &[&str],
) -> Result<Option<Value>, String> {
    match field {
        Some(Value::String(path)) => read_json(&inner(folder, &path)?),
        Some(content) => Ok(Some(content)),
        None => {
            for name in defaults {
                if let Some(content) = read_json(&folder.join(name))? {
                    return Ok(Some(content));
                }
            }
            Ok(None)
        }
    }
}

fn read(folder: &Path) -> Result<AgentPlugin, String> {
    let manifest = content(folder, None, MANIFESTS)?.ok_or("it has no plugin.json")?;
    let manifest: Manifest =
        serde_json::from_value(manifest).map_err(|e| format!("plugin.json: {e}"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = manifest.name;
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let name: String = name.chars().take(64).collect();
        return Err(format!(
            "its name '{}' must have letters, digits, '.', '-' and '_', at most 64",
            name.escape_debug()
        ));
    }
    let path =
        |field: Option<String>, default: &str| inner(folder, field.as_deref().unwrap_or(default));
    let servers = content(folder, manifest.mcp_servers, SERVERS)?;
    let hooks = content(folder, manifest.hooks, &["hooks/hooks.json"])?;
    Ok(AgentPlugin {
        folder: folder.to_owned(),
        version: manifest.version.chars().take(64).collect(),
        description: manifest.description.chars().take(1024).collect(),
        skills: path(manifest.skills, "skills")?,
        commands: path(manifest.commands, "commands")?,
        servers: servers
            .map(|servers| read_servers(&name, folder, servers))
            .transpose()?
            .unwrap_or_default(),
        hooks: hooks.map(|hooks| hooks::parse(&hooks)).transpose()?.unwrap_or_default().groups,
        name,
    })
}

fn read_servers(
    plugin: &str,
    folder: &Path,
    mut value: Value,
) -> Result<BTreeMap<String, McpServer>, String> {
    let listed = value.get_mut("mcpServers").map(Value::take).unwrap_or(value);
    let entries: BTreeMap<String, ServerEntry> =
        serde_json::from_value(listed).map_err(|e| format!("its mcp servers: {e}"))?;
    let own = |text: String| {
        let folder = folder.to_string_lossy();
        ROOT_NAMES.iter().fold(text, |text, name| text.replace(name, &folder))
    };
    let map = |all: BTreeMap<String, String>| {
        all.into_iter().map(|(name, value)| (name, own(value))).collect()
    };
    let server = |(name, entry): (String, ServerEntry)| {
        let config = McpServer {
            command: entry.command.map(own),
            args: entry.args.into_iter().map(own).collect(),
            env: map(entry.env),
            cwd: Some(entry.cwd.map_or_else(|| folder.to_owned(), |cwd| own(cwd).into())),
            url: entry.url.map(own),
            headers: map(entry.headers),
            ..McpServer::default()
        };
        (format!("{plugin}_{name}"), config)
    };
    Ok(entries.into_iter().take(MAX_ITEMS).map(server).collect())
}

impl AgentPlugin {
    /// Returns the plugin as clients see it. This blocks on file I/O.
    pub fn info(&self) -> PluginInfo {
        let skills = agent_skills::folders(&self.skills);
        let skill = |folder: &PathBuf| {
            let is_skill = folder.join(agent_skills::FILE).is_file();
            folder.file_name().filter(|_| is_skill).map(|name| name.to_string_lossy().into_owned())
        };
        let commands = fs::read_dir(&self.commands).into_iter().flatten().flatten();
        let command = |entry: fs::DirEntry| {
            let path = entry.path();
            let is_command = path.extension().is_some_and(|extension| extension == "md");
            path.file_stem().filter(|_| is_command).map(|name| name.to_string_lossy().into_owned())
        };
        let mut commands: Vec<String> = commands.filter_map(command).take(MAX_ITEMS).collect();
        commands.sort();
        PluginInfo {
            name: self.name.clone(),
            version: self.version.clone(),
            description: self.description.clone(),
            folder: self.folder.to_string_lossy().into_owned(),
            skills: skills.iter().filter_map(skill).collect(),
            mcp_servers: self.servers.keys().cloned().collect(),
            commands,
            hooks: self.hooks.keys().map(|event| event.as_str().to_owned()).collect(),
            error: None,
        }
    }
}

/// Returns a plugin that cannot be loaded, as clients see it.
pub fn broken(folder: &Path, error: &str) -> PluginInfo {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    PluginInfo {
        name: name.unwrap_or_default(),
        folder: folder.to_string_lossy().into_owned(),
        error: Some(error.to_owned()),
        ..PluginInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn plugin_brings_what_its_folder_contains() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        put(at, ".claude-plugin/plugin.json", r#"{"name": "p", "version": "2", "unknown": 1}"#);
        put(at, "skills/s/SKILL.md", "---\ndescription: d\n---\nx");
        put(at, "commands/c.md", "x");
        put(at, "commands/c.txt", "x");
        put(
            at,
            ".mcp.json",
            r#"{"mcpServers": {"m": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"A": "${PLUGIN_ROOT}"}}}}"#,
        );
        put(
            at,
            "hooks/hooks.json",
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}], "Later": []}}"#,
        );
        let plugin = read(at).unwrap();
        let info = plugin.info();
        assert_eq!((info.name.as_str(), info.version.as_str()), ("p", "2"));
        assert_eq!((info.skills, info.commands), (vec!["s".into()], vec!["c".to_owned()]));
        assert_eq!((info.mcp_servers, info.hooks), (vec!["p_m".into()], vec!["Stop".to_owned()]));
        let server = &plugin.servers["p_m"];
        assert_eq!(server.command.as_deref(), Some(&*at.join("run").to_string_lossy()));
        assert_eq!(server.env["A"], at.to_string_lossy());
    }

    #[test]
    fn invalid_plugins_are_refused_with_a_reason() {
        for (manifest, reason) in [
            ("", "has no plugin.json"),
            ("{", "EOF"),
            (r#"{"version": "1"}"#, "missing field `name`"),
            (r#"{"name": "../x"}"#, "letters, digits"),
            (r#"{"name": "p", "skills": "../../etc"}"#, "not a path inside the plugin"),
            (r#"{"name": "p", "hooks": "/etc/passwd"}"#, "not a path inside the plugin"),
            (r#"{"name": "p", "mcpServers": [1]}"#, "its mcp servers"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            if !manifest.is_empty() {
                put(dir.path(), "plugin.json", manifest);
            }
            let error = read(dir.path()).unwrap_err();
            assert!(error.contains(reason), "{manifest}: {error}");
        }
    }

    #[test]
    fn plugin_of_a_project_stays_in_it_and_starts_no_server() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        let mine = project.join(".agents/plugins/mine");
        put(&mine, "plugin.json", r#"{"name": "mine", "mcpServers": {"m": {"command": "x"}}}"#);
        put(&dir.path().join("out"), "plugin.json", r#"{"name": "out"}"#);
        std::os::unix::fs::symlink(dir.path().join("out"), project.join(".agents/plugins/out"))
            .unwrap();
        let all = of_project(&project);
        assert_eq!(all.iter().map(|plugin| plugin.name.as_str()).collect::<Vec<_>>(), ["mine"]);
        assert!(all[0].servers.is_empty());
    }
}
