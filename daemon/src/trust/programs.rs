//! The programs and scripts that the daemon's configuration names: no tool changes them, wherever
//! they lie.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use cairn_config::Config;
use cairn_workspace::NamedPrograms;

use super::items;
use crate::extensions::hooks;

/// Time that the list of a root is reused.
const REUSE: Duration = Duration::from_millis(500);
/// Most roots whose list is stored.
const MAX_ROOTS: usize = 256;

/// The command lines and folders of the configuration, compared with each root.
#[derive(Default)]
pub struct ConfiguredPrograms {
    lines: RwLock<Vec<String>>,
    /// Folders whose complete content is run or read.
    folders: RwLock<Vec<PathBuf>>,
    known: Mutex<HashMap<PathBuf, NamedList>>,
}

/// The list of a root, and when it was made.
type NamedList = (Instant, Arc<Vec<String>>);

impl std::fmt::Debug for ConfiguredPrograms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfiguredPrograms")
    }
}

impl ConfiguredPrograms {
    /// Takes over the command lines of a configuration.
    pub fn configure(&self, config: &Config) {
        *self.lines.write().unwrap_or_else(PoisonError::into_inner) = lines(config);
        *self.folders.write().unwrap_or_else(PoisonError::into_inner) =
            config.agent_plugins.folders.clone();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn find(&self, root: &Path) -> Vec<String> {
        let mut all = Vec::new();
        let mut add = |path: &Path| {
            if let Some(rel) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                all.push(rel.to_owned());
            }
        };
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner).clone();
        for line in &lines {
            for path in items::named_files(root, line) {
                add(&path);
                // A link and its target are one program.
                if let Ok(real) = path.canonicalize() {
                    add(&real);
                }
            }
        }
        for name in hooks::PROJECT_FILES {
            let hooks = items::hooks_of(root, name).into_iter();
            for path in hooks.flat_map(|item| item.files.into_keys()) {
                if let Ok(real) = root.join(&path).canonicalize() {
                    add(&real);
                }
                add(&root.join(&path));
            }
        }
        all.extend(lines.iter().flat_map(|line| items::missing_files(root, line)));
        for folder in self.folders.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if let Some(rel) = real.strip_prefix(root).ok().and_then(Path::to_str) {
                all.push(format!("{rel}/"));
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

impl NamedPrograms for ConfiguredPrograms {
    fn named_in(&self, root: &Path) -> Arc<Vec<String>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, list)) = known.get(root)
            && at.elapsed() < REUSE
        {
            return Arc::clone(list);
        }
        if known.len() >= MAX_ROOTS {
            known.clear();
        }
        let list = Arc::new(self.find(root));
        known.insert(root.to_owned(), (Instant::now(), Arc::clone(&list)));
        list
    }
}

/// Returns all command lines of a configuration, each as one text.
fn lines(config: &Config) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let hooks = &config.hooks;
    let groups = [
        &hooks.pre_tool_use,
        &hooks.post_tool_use,
        &hooks.user_prompt_submit,
        &hooks.session_start,
        &hooks.session_end,
        &hooks.stop,
        &hooks.subagent_stop,
        &hooks.pre_compact,
        &hooks.notification,
    ];
    all.extend(
        groups.into_iter().flatten().flat_map(|g| g.hooks.iter().map(|h| h.command.clone())),
    );
    all.extend(config.plugins.iter().map(|plugin| plugin.command.join(" ")));
    all.extend(config.mcp.servers.values().map(|server| {
        let program = server.command.iter().map(String::as_str);
        program.chain(server.args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }));
    all.extend(config.tools.external.iter().map(|tool| tool.path.display().to_string()));
    all.extend(config.format.commands.values().map(|words| words.join(" ")));
    all.extend(config.diagnostics.command.clone());
    all.extend(config.worktrees.setup.clone());
    all.push(config.llm.api_key_command.join(" "));
    let agents = config.llm.agents.values().filter_map(|agent| agent.path.as_ref());
    all.extend(agents.map(|path| path.display().to_string()));
    all.push(config.notifications.webhook_secret_command.join(" "));
    all.retain(|line| !line.trim().is_empty());
    all
}
