//! The hooks that are in force: of the configuration, of agent plugins, of Claude Code's settings,
//! and of a trusted project.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_config::{Config, HookCommand, HookGroup, HooksConfig};
use cairn_engine::plugin::Hook;
use cairn_protocol::trust::TrustKind;
use regex::Regex;
use serde_json::Value;

use super::{
    super::agent_plugins::{self, AgentPlugin},
    forms::parse,
};
use crate::trust::{TrustStore, items};

/// Files of a project with hooks.
pub const PROJECT_FILES: &[&str] = &[".claude/settings.json", ".claude/settings.local.json"];
/// File of the user's settings for Claude Code, below the home folder.
const CLAUDE_FILE: &str = ".claude/settings.json";
/// Maximum bytes of a settings file.
const MAX_FILE: u64 = 256 * 1024;
/// Maximum bytes of a compiled matcher.
const MAX_REGEX: usize = 1 << 20;
/// Maximum number of hooks that run at one event.
const MAX_HOOKS: usize = 32;

/// Declares the events with their names.
macro_rules! events {
    ($($name:ident: $hook:ident,)*) => {
        /// An event with the name that hooks have for it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Event { $($name),* }

        impl Event {
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// Returns the event of an engine's hook; `None` for one that hooks do not have.
            pub fn of(hook: Hook) -> Option<Self> {
                match hook {
                    $(Hook::$hook => Some(Self::$name),)*
                    Hook::BeforeModel | Hook::AfterModel => None,
                }
            }
        }
    };
}

events! {
    PreToolUse: BeforeTool,
    PostToolUse: AfterTool,
    UserPromptSubmit: UserPrompt,
    SessionStart: SessionStart,
    SessionEnd: SessionStop,
    Stop: TurnStop,
    SubagentStop: SubagentStop,
    PreCompact: BeforeCompact,
    Notification: Notification,
}

/// Hooks by the event that runs them.
pub type Groups = BTreeMap<Event, Vec<HookGroup>>;

/// The origin of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file or key that names the hook.
    pub name: String,
    /// Folder of the plugin that brings it.
    pub plugin: Option<PathBuf>,
    /// True if it may allow calls.
    pub may_allow: bool,
    /// True if the hook itself says whether it runs in the sandbox: it is the user's own.
    pub is_own: bool,
}

/// The sources of a configuration. Clones share them.
#[derive(Clone)]
pub struct Sources(Arc<Inner>);

struct Inner {
    own: Groups,
    import_claude: Option<PathBuf>,
    may_allow: bool,
    outside_sandbox: Vec<String>,
    trust: Arc<TrustStore>,
    plugins: Vec<AgentPlugin>,
}

impl Sources {
    pub fn new(
        config: &Config,
        home: Option<&Path>,
        plugins: Vec<AgentPlugin>,
        trust: Arc<TrustStore>,
    ) -> Self {
        let hooks = &config.hooks;
        let claude = home.map(|home| home.join(CLAUDE_FILE)).filter(|_| hooks.import_claude);
        Self(Arc::new(Inner {
            own: of_config(hooks),
            import_claude: claude,
            may_allow: hooks.may_allow,
            outside_sandbox: hooks.outside_sandbox.clone(),
            trust,
            plugins,
        }))
    }

    /// Returns false if there is no hook in any folder.
    pub fn may_have_hooks(&self) -> bool {
        let Inner { own, import_claude, trust, plugins, .. } = &*self.0;
        !own.is_empty()
            || import_claude.is_some()
            || trust.has_records()
            || plugins.iter().any(|plugin| !plugin.hooks.is_empty())
    }

    /// Returns the files and folders of a project that bring hooks or plugins which are not trusted
    /// as they are now.
    pub fn untrusted_in(&self, root: &Path) -> Vec<String> {
        untrusted_in(&self.0.trust, root)
    }

    /// Returns true if a hook runs in the sandbox.
    pub fn is_sandboxed(&self, source: &Source, hook: &HookCommand) -> bool {
        if source.is_own {
            return hook.sandbox;
        }
        !self.0.outside_sandbox.contains(&hook.command)
    }

    /// Returns the hooks of an event about `subject`, the name of a tool, with those of the project
    /// whose exact content is trusted. This blocks on file I/O.
    pub fn of(
        &self,
        event: Event,
        subject: Option<&[String]>,
        project: Option<&Path>,
    ) -> Vec<(Source, HookCommand)> {
        let inner = &*self.0;
        let mut all = Vec::new();
        let mut add = |groups: &Groups, source: Source| {
            for group in groups.get(&event).into_iter().flatten() {
                if matches(&group.matcher, subject) {
                    all.extend(group.hooks.iter().map(|hook| (source.clone(), hook.clone())));
                }
            }
        };
        let may_allow = inner.may_allow;
        let source = |name: String| Source { name, plugin: None, may_allow, is_own: true };
        add(&inner.own, source("hooks".into()));
        if let Some(path) = &inner.import_claude {
            add(&read_or_log(path), source(path.display().to_string()));
        }
        for plugin in &inner.plugins {
            add(&plugin.hooks, of_plugin(plugin, may_allow, true));
        }
        if let Some(root) = project.filter(|_| inner.trust.has_records()) {
            for name in PROJECT_FILES {
                let source =
                    Source { may_allow: false, is_own: false, ..source((*name).to_owned()) };
                add(&inner.trusted_hooks(root, name), source);
            }
            for plugin in trusted_plugins(&inner.trust, root) {
                add(&plugin.hooks, of_plugin(&plugin, false, false));
            }
        }
        all.retain(|(_, hook)| hook.kind == "command" && !hook.command.trim().is_empty());
        all.truncate(MAX_HOOKS);
        all
    }
}

impl Inner {
    /// Returns the hooks of a project's file, from exactly the content that is trusted.
    fn trusted_hooks(&self, root: &Path, name: &str) -> Groups {
        let Ok(root) = root.canonicalize() else { return Groups::new() };
        let Some(item) = items::hooks_of(&root, name) else { return Groups::new() };
        if !self.trust.trusts(&root, &item) {
            return Groups::new();
        }
        let bytes = item.files.get(name).map(Vec::as_slice).unwrap_or_default();
        let parsed = serde_json::from_slice::<Value>(bytes).map_err(|error| error.to_string());
        parsed.and_then(|value| Ok(parse(&value)?.groups)).unwrap_or_else(|error| {
            tracing::warn!("hooks of {name}: {error}");
            Groups::new()
        })
    }
}

/// Returns the plugins of a project whose exact content is trusted.
pub fn trusted_plugins(trust: &TrustStore, root: &Path) -> Vec<AgentPlugin> {
    let mut all = agent_plugins::of_project(root);
    all.retain(|plugin| trust.trusts_folder(root, TrustKind::Plugin, &plugin.folder));
    all
}

fn of_plugin(plugin: &AgentPlugin, may_allow: bool, is_own: bool) -> Source {
    let name = format!("plugin {}", plugin.name);
    Source { name, plugin: Some(plugin.folder.clone()), may_allow, is_own }
}

fn of_config(hooks: &HooksConfig) -> Groups {
    let group = |event: Event| match event {
        Event::PreToolUse => &hooks.pre_tool_use,
        Event::PostToolUse => &hooks.post_tool_use,
        Event::UserPromptSubmit => &hooks.user_prompt_submit,
        Event::SessionStart => &hooks.session_start,
        Event::SessionEnd => &hooks.session_end,
        Event::Stop => &hooks.stop,
        Event::SubagentStop => &hooks.subagent_stop,
        Event::PreCompact => &hooks.pre_compact,
        Event::Notification => &hooks.notification,
    };
    let all = Event::ALL.iter().map(|event| (*event, group(*event).clone()));
    all.filter(|(_, groups)| !groups.is_empty()).collect()
}

/// Returns true if a matcher applies to one of the names; one for all tools also applies to events
/// without a tool.
fn matches(matcher: &str, names: Option<&[String]>) -> bool {
    let Some(names) = names else { return true };
    if matcher.is_empty() || matcher == "*" {
        return true;
    }
    let regex = regex::RegexBuilder::new(&format!("^(?:{matcher})$")).size_limit(MAX_REGEX).build();
    match regex {
        Ok(regex) => names.iter().any(|name| Regex::is_match(&regex, name)),
        Err(error) => {
            // A hook that guards something must not be lost by a mistake in its matcher.
            tracing::warn!(%error, "a hook's matcher is invalid, so that it runs for every tool");
            true
        }
    }
}

/// Reads the user's settings file; an invalid one is logged.
fn read_or_log(path: &Path) -> Groups {
    match read(path) {
        Ok(groups) => groups,
        Err(error) => {
            tracing::warn!("hooks of {}: {error}", path.display());
            Groups::new()
        }
    }
}

fn read(path: &Path) -> Result<Groups, String> {
    let Ok(real) = path.canonicalize() else { return Ok(Groups::new()) };
    let meta = fs::metadata(&real).map_err(|error| error.to_string())?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(format!("it is not a file of at most {MAX_FILE} bytes"));
    }
    let text = fs::read_to_string(&real).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    // The file has other settings beside its hooks.
    match value.get("hooks") {
        Some(_) => Ok(parse(&value)?.groups),
        None => Ok(Groups::new()),
    }
}

fn untrusted_in(trust: &TrustStore, root: &Path) -> Vec<String> {
    let Ok(root) = root.canonicalize() else { return vec![] };
    let hooks = PROJECT_FILES.iter().filter_map(|name| items::hooks_of(&root, name));
    let hooks = hooks.filter(|item| !trust.trusts(&root, item)).map(|item| item.path);
    let plugins = agent_plugins::project_folders(&root).into_iter();
    let plugins = plugins
        .filter(|folder| !trust.trusts_folder(&root, TrustKind::Plugin, folder))
        .filter_map(|folder| Some(folder.strip_prefix(&root).ok()?.display().to_string()));
    hooks.chain(plugins).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matchers_are_alternatives_of_complete_names() {
        let names = ["Bash".to_owned(), "run_shell".to_owned()];
        for (matcher, expected) in [
            ("", true),
            ("*", true),
            ("Bash", true),
            ("run_shell", true),
            ("Edit|Bash", true),
            ("B.*", true),
            ("Bas", false),
            ("Edit|Write", false),
            ("(", true),
        ] {
            assert_eq!(matches(matcher, Some(&names)), expected, "{matcher}");
        }
        assert!(matches("startup", None));
    }

    #[test]
    fn settings_are_parsed_and_other_events_ignored() {
        let command = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]);
        let groups =
            parse(&json!({"hooks": {"PreToolUse": command, "Elsewhere": 7}})).unwrap().groups;
        assert_eq!(groups.keys().collect::<Vec<_>>(), [&Event::PreToolUse]);
        assert_eq!(groups[&Event::PreToolUse][0].hooks[0].timeout, 60);
        assert!(parse(&json!({"hooks": {"Stop": {"command": "x"}}})).unwrap_err().contains("Stop"));
        let off = json!({"disableAllHooks": true, "hooks": {"PreToolUse": command}});
        assert!(parse(&off).unwrap().groups.is_empty());
    }

    #[test]
    fn hooks_of_a_project_run_by_content_and_may_not_allow() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        fs::create_dir_all(root.join(".claude")).unwrap();
        fs::create_dir_all(root.join("scripts")).unwrap();
        fs::write(root.join("scripts/check.sh"), "true\n").unwrap();
        let settings = |command: &str| {
            json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
                .to_string()
        };
        fs::write(root.join(PROJECT_FILES[0]), settings("sh scripts/check.sh")).unwrap();
        fs::write(dir.path().join("outside.json"), settings("x")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside.json"), root.join(PROJECT_FILES[1]))
            .unwrap();
        let mut config = Config::default();
        config.hooks.may_allow = true;
        config.hooks.stop = vec![HookGroup {
            hooks: vec![HookCommand { command: "mine".into(), ..HookCommand::default() }],
            ..HookGroup::default()
        }];
        // A path of the configuration makes nothing run.
        let trust = TrustStore::new(dir.path().join("trust"), |_| true);
        let sources = Sources::new(&config, None, vec![], Arc::clone(&trust));
        let commands = |sources: &Sources| -> Vec<(bool, String)> {
            let all = sources.of(Event::Stop, None, Some(&root));
            all.into_iter().map(|(source, hook)| (source.may_allow, hook.command)).collect()
        };
        let mine = (true, "mine".to_owned());
        assert_eq!(commands(&sources), std::slice::from_ref(&mine));
        assert_eq!(untrusted_in(&trust, &root).len(), 2);
        let accept = || {
            let state = trust.state(&root, true).unwrap();
            let item = state.items.iter().find(|item| item.path == PROJECT_FILES[0]).unwrap();
            assert_eq!(item.files, [PROJECT_FILES[0], "scripts/check.sh"]);
            let content = item.content();
            let folder = root.to_string_lossy().into_owned();
            let params = cairn_protocol::trust::TrustSetParams {
                folder,
                trust: vec![content],
                refuse: vec![],
            };
            trust.set(&params).unwrap();
        };
        accept();
        let both = [mine.clone(), (false, "sh scripts/check.sh".to_owned())];
        assert_eq!(commands(&sources), both);
        // A changed script is another content, and so is a changed hook.
        fs::write(root.join("scripts/check.sh"), "evil\n").unwrap();
        assert_eq!(commands(&sources), std::slice::from_ref(&mine));
        let state = trust.state(&root, true).unwrap();
        let diff = state.items.iter().find_map(|item| item.diff.clone()).unwrap();
        assert!(diff.contains("-true") && diff.contains("+evil"), "{diff}");
        accept();
        assert_eq!(commands(&sources), both);
        fs::write(root.join(PROJECT_FILES[0]), settings("sh scripts/check.sh --more")).unwrap();
        assert_eq!(commands(&sources), std::slice::from_ref(&mine));
        // The same content in another folder is not trusted there.
        let other = dir.path().join("other");
        fs::rename(&root, &other).unwrap();
        assert_eq!(sources.of(Event::Stop, None, Some(&other)).len(), 1);
    }
}
