//! Items of a folder that run or instruct agents, with all files on which their effect depends.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use cairn_agent::prompt::instructions;
use cairn_protocol::trust::TrustKind;
use sha2::{Digest as _, Sha256};

use crate::{
    extensions::{agent_plugins, agent_skills, hooks},
    root_config,
};

/// Most files of one item, and most bytes of them together.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Most nested folders of one item.
const MAX_DEPTH: usize = 16;
/// Most items of a kind.
const MAX_ITEMS: usize = 64;
/// Most scripts that start one another.
const MAX_CHAIN: usize = 8;
/// Most bytes of a script that are searched for others.
const MAX_SCRIPT: u64 = 256 * 1024;
/// Time after a change in which another one may leave the same time of change.
const CLOCK_STEP: Duration = Duration::from_millis(100);
/// Programs that run the file that follows them.
const RUNNERS: &[&str] = &[
    ".", "source", "exec", "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "node", "deno",
    "bun", "tsx", "ts-node", "python", "python2", "python3", "ruby", "perl", "php", "lua", "pwsh",
    "run", "nohup", "time",
];
/// Most command lines that are listed.
const MAX_COMMANDS: usize = 64;
/// Names that stand for the project's folder in a hook's command.
const PROJECT_NAMES: &[&str] =
    &["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${CAIRN_PROJECT_DIR}", "$CAIRN_PROJECT_DIR"];

/// One item as it is now.
#[derive(Debug, Clone)]
pub struct Item {
    pub kind: TrustKind,
    /// Path relative to the folder.
    pub path: String,
    /// Its files by their path relative to the folder.
    pub files: BTreeMap<String, Vec<u8>>,
    pub commands: Vec<String>,
    /// Parts for other programs, which are not run here.
    pub unsupported: Vec<String>,
    /// Reason why it cannot be trusted.
    pub problem: Option<String>,
}

impl Item {
    fn new(kind: TrustKind, path: &str) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            files: BTreeMap::new(),
            commands: vec![],
            unsupported: vec![],
            problem: None,
        }
    }

    /// Returns the SHA-256 of the names and contents of all files.
    pub fn sha256(&self) -> String {
        let mut all = Sha256::new();
        for (path, bytes) in &self.files {
            all.update((path.len() as u64).to_be_bytes());
            all.update(path.as_bytes());
            all.update((bytes.len() as u64).to_be_bytes());
            all.update(bytes);
        }
        hex::encode(all.finalize())
    }

    /// Adds a file of the folder, by the content that opening it gives.
    fn add(&mut self, folder: &Path, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        let rel = path.strip_prefix(folder).ok().and_then(Path::to_str);
        let Some(rel) = rel.filter(|_| real.starts_with(folder)) else {
            self.problem = Some(format!("'{}' leads out of the folder", path.display()));
            return;
        };
        if self.files.contains_key(rel) {
            return;
        }
        let used: u64 = self.files.values().map(|bytes| bytes.len() as u64).sum();
        let meta = fs::metadata(&real);
        if !meta.as_ref().is_ok_and(fs::Metadata::is_file) {
            // A pipe would block whoever opens it.
            self.problem = Some(format!("'{rel}' is not a file"));
            return;
        }
        let size = meta.map_or(0, |meta| meta.len());
        if self.files.len() >= MAX_FILES || used + size > MAX_BYTES {
            self.problem = Some(format!("it has more than {MAX_FILES} files or {MAX_BYTES} bytes"));
            return;
        }
        match fs::read(&real) {
            Ok(bytes) => drop(self.files.insert(rel.to_owned(), bytes)),
            Err(error) => self.problem = Some(format!("'{rel}' cannot be read: {error}")),
        }
    }

    fn add_folder(&mut self, folder: &Path, inner: &Path, depth: usize) {
        if depth > MAX_DEPTH {
            self.problem = Some(format!("it has more than {MAX_DEPTH} nested folders"));
            return;
        }
        let entries = fs::read_dir(inner).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if self.problem.is_some() {
                return;
            }
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() && path.is_symlink() => {
                    self.problem = Some(format!("'{}' is a link to a folder", path.display()));
                }
                Ok(meta) if meta.is_dir() => self.add_folder(folder, &path, depth + 1),
                Ok(meta) if meta.is_file() => self.add(folder, &path),
                // Pipes and broken links are nothing that runs.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn add_commands(&mut self, folder: &Path, commands: Vec<String>) {
        let mut scripts: BTreeSet<PathBuf> =
            commands.iter().flat_map(|command| named_files(folder, command)).collect();
        for _ in 0..MAX_CHAIN {
            let mut started = BTreeSet::new();
            for path in &scripts {
                self.add(folder, path);
                started.extend(started_by(folder, path));
            }
            started.retain(|path| {
                let rel = path.strip_prefix(folder).ok().and_then(Path::to_str);
                rel.is_some_and(|rel| !self.files.contains_key(rel))
            });
            if started.is_empty() {
                break;
            }
            scripts = started;
        }
        self.commands = commands.into_iter().take(MAX_COMMANDS).collect();
    }
}

/// Returns the words of a command line that may be paths, without the targets of its redirections.
pub fn words(command: &str) -> Vec<String> {
    let text = without_targets(command);
    // A quote inside a word joins its parts.
    let text: String = text.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
    let between = |c: char| c.is_whitespace() || ";&|<>()`=,{}".contains(c);
    text.split(between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn words_in(folder: &Path, command: &str) -> Vec<String> {
    let path = folder.to_string_lossy();
    words(&PROJECT_NAMES.iter().fold(command.to_owned(), |text, name| text.replace(name, &path)))
}

/// Returns the paths below a folder that a command line names with a `/` and that do not exist yet,
/// relative to the folder: who creates one decides what runs.
pub fn missing_files(folder: &Path, command: &str) -> Vec<String> {
    let words = words_in(folder, command);
    let paths = words.iter().filter(|word| word.contains('/') && !word.ends_with('/'));
    let inner = paths.filter_map(|word| {
        let path = clean(&folder.join(word));
        let rel = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        (!rel.is_empty() && path.symlink_metadata().is_err()).then_some(rel)
    });
    inner.take(MAX_ITEMS).collect()
}

/// Returns the files of a folder that a command line names, however it quotes and joins them: one
/// too many is harmless, since it only has to be trusted as well.
pub fn named_files(folder: &Path, command: &str) -> BTreeSet<PathBuf> {
    let words = words_in(folder, command);
    let mut folders = vec![folder.to_owned()];
    // A command may change into a folder first.
    let is_inner = |path: &PathBuf| path.starts_with(folder) && path.is_dir();
    folders.extend(words.iter().map(|word| folder.join(word)).filter(is_inner).take(MAX_ITEMS));
    let mut all = BTreeSet::new();
    for word in words.iter().take(MAX_FILES) {
        for at in &folders {
            let path = at.join(word);
            let Ok(real) = path.canonicalize() else { continue };
            if real.is_file() && real.starts_with(folder) {
                let inner = path.strip_prefix(folder).map(clean).unwrap_or_default();
                all.insert(folder.join(inner));
            }
        }
    }
    all
}

/// Returns the files of a folder that a script starts as programs. What it only names, as the
/// arguments of a formatter, does not count, nor what a program loads by itself.
fn started_by(folder: &Path, script: &Path) -> BTreeSet<PathBuf> {
    let Ok(file) = fs::File::open(script) else { return BTreeSet::new() };
    let mut bytes = Vec::new();
    if file.take(MAX_SCRIPT).read_to_end(&mut bytes).is_err() {
        return BTreeSet::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let words = words_in(folder, &text);
    let all = named_files(folder, &text);
    let follows_runner = |path: &Path| {
        words.iter().enumerate().any(|(at, word)| {
            let mut before = words[..at].iter().rev().skip_while(|word| word.starts_with('-'));
            let runner = before.next().map(|word| word.rsplit('/').next().unwrap_or(word));
            path.ends_with(clean(Path::new(word))) && runner.is_some_and(|r| RUNNERS.contains(&r))
        })
    };
    all.into_iter().filter(|path| is_program(path) || follows_runner(path)).collect()
}

/// Returns true for a file that can be executed.
fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

/// The look of a folder: names, identities and times of change, which no program can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderStamp(u64);

/// Returns the stamp of a folder and everything in it; `None` if it has too much, or changed so
/// recently that a further change could look the same.
pub fn stamp_of(inner: &Path) -> Option<FolderStamp> {
    let mut hasher = DefaultHasher::new();
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut open = vec![inner.to_owned()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        seen += 1;
        if seen > MAX_FILES * 2 {
            return None;
        }
        path.hash(&mut hasher);
        // A link and what it leads to can both change.
        let own = fs::symlink_metadata(&path).ok();
        let real = own.as_ref().filter(|meta| meta.is_symlink()).map(|_| fs::metadata(&path).ok());
        for meta in [own.as_ref(), real.as_ref().and_then(Option::as_ref)].into_iter().flatten() {
            let changed = (meta.ctime(), meta.ctime_nsec());
            (meta.dev(), meta.ino(), meta.size(), meta.mode(), changed).hash(&mut hasher);
            let since = Duration::new(
                u64::try_from(changed.0).unwrap_or(0),
                u32::try_from(changed.1).unwrap_or(0),
            );
            newest = newest.max(SystemTime::UNIX_EPOCH + since);
        }
        if own.is_some_and(|meta| meta.is_dir()) {
            let mut inner: Vec<PathBuf> =
                fs::read_dir(&path).ok()?.flatten().map(|entry| entry.path()).collect();
            inner.sort();
            open.extend(inner);
        }
    }
    // A time in the future is that of a clock that was set back.
    let is_settled = newest.elapsed().is_ok_and(|age| age > CLOCK_STEP);
    is_settled.then(|| FolderStamp(hasher.finish()))
}

/// Removes the targets of redirections, which a command writes and does not run.
fn without_targets(text: &str) -> String {
    let mut parts = text.split('>');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(['&', '|']).trim_start();
        let end = rest.find(|c: char| c.is_whitespace() || ";&|<()".contains(c));
        out.push(' ');
        out.push_str(end.map_or("", |end| &rest[end..]));
    }
    out
}

/// Removes `.` and `..` from a path by their names.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

/// Returns the hooks of a project's settings file with their scripts; `None` if it has none.
pub fn hooks_of(folder: &Path, name: &str) -> Option<Item> {
    let path = folder.join(name);
    path.symlink_metadata().ok()?;
    let mut item = Item::new(TrustKind::Hooks, name);
    item.add(folder, &path);
    let Some(bytes) = item.files.get(name) else { return Some(item) };
    let value: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            item.problem = Some(format!("it is not JSON: {error}"));
            return Some(item);
        }
    };
    value.get("hooks")?;
    match hooks::parse(&value) {
        Ok(parsed) => {
            item.unsupported = parsed.unsupported;
            let commands = parsed
                .groups
                .values()
                .flatten()
                .flat_map(|group| group.hooks.iter().map(|hook| hook.command.clone()))
                .collect();
            item.add_commands(folder, commands);
        }
        Err(error) => item.problem = Some(error),
    }
    Some(item)
}

/// Returns a folder of an item with all of its files.
pub fn folder_item(folder: &Path, kind: TrustKind, inner: &Path) -> Option<Item> {
    let rel = inner.strip_prefix(folder).ok()?.to_str()?.to_owned();
    let mut item = Item::new(kind, &rel);
    item.add_folder(folder, inner, 0);
    Some(item)
}

/// Returns a file of a folder as an item.
fn file_item(folder: &Path, kind: TrustKind, name: &str) -> Option<Item> {
    let path = folder.join(name);
    path.symlink_metadata().ok()?;
    let mut item = Item::new(kind, name);
    item.add(folder, &path);
    Some(item)
}

/// Lists everything that a folder, by its canonical path, brings. This blocks on file I/O.
pub fn items(folder: &Path) -> Vec<Item> {
    let mut all = Vec::new();
    let is_file = |name: &&&str| folder.join(name).is_file();
    let instructions = instructions::NAMES.iter().find(is_file);
    all.extend(instructions.and_then(|name| file_item(folder, TrustKind::Instructions, name)));
    all.extend(file_item(folder, TrustKind::Settings, root_config::FILE));
    all.extend(hooks::PROJECT_FILES.iter().filter_map(|name| hooks_of(folder, name)));
    for plugin in agent_plugins::project_folders(folder) {
        all.extend(folder_item(folder, TrustKind::Plugin, &plugin).map(|mut item| {
            item.commands = agent_plugins::commands_of(&plugin);
            item
        }));
    }
    for source in agent_skills::PROJECT_FOLDERS {
        for skill in agent_skills::folders(&folder.join(source)) {
            if skill.join(agent_skills::FILE).is_file() && all.len() < MAX_ITEMS * 4 {
                all.extend(folder_item(folder, TrustKind::Skill, &skill));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_scripts_start_belong_to_a_hook() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        fs::create_dir_all(folder.join("s")).unwrap();
        fs::create_dir_all(folder.join("src")).unwrap();
        for (name, text) in [
            ("s/a.sh", "#!/bin/sh\ncd s && . ./lib.sh\nnode --trace s/b.js\neslint src/main.js\n"),
            ("s/lib.sh", "bash -eu s/c.sh a.sh\n"),
            ("s/b.js", "require('child_process').exec('./s/tool')\n"),
            ("s/c.sh", "true\n"),
            ("s/tool", "x"),
            ("src/main.js", "x"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.join("s/tool"), mode).unwrap();
        let mut item = Item::new(TrustKind::Hooks, "x");
        item.add_commands(&folder, vec!["sh s/a.sh".into()]);
        let files: Vec<&str> = item.files.keys().map(String::as_str).collect();
        assert_eq!(files, ["s/a.sh", "s/b.js", "s/c.sh", "s/lib.sh", "s/tool"]);
    }

    #[test]
    fn stamp_of_a_folder_changes_with_each_change() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("in")).unwrap();
        fs::write(at("in/a"), "one").unwrap();
        std::os::unix::fs::symlink("in/a", at("link")).unwrap();
        assert_eq!(stamp_of(dir.path()), None, "it has just changed");
        let mut seen = Vec::new();
        let mut next = || {
            std::thread::sleep(CLOCK_STEP * 2);
            let stamp = stamp_of(dir.path()).unwrap();
            assert!(!seen.contains(&stamp), "{seen:?}");
            seen.push(stamp);
        };
        next();
        fs::write(at("in/a"), "two").unwrap();
        next();
        fs::write(at("in/b"), "").unwrap();
        next();
        fs::remove_file(at("link")).unwrap();
        std::os::unix::fs::symlink("in/b", at("link")).unwrap();
        next();
    }

    #[test]
    fn scripts_are_found_in_every_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        fs::create_dir_all(folder.join("scripts/in")).unwrap();
        for name in ["scripts/a.sh", "scripts/in/b.py", "c"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        let absolute = folder.join("scripts/a.sh").display().to_string();
        for (command, want) in [
            ("./scripts/a.sh --all", vec!["scripts/a.sh"]),
            ("\"$CLAUDE_PROJECT_DIR\"/scripts/a.sh", vec!["scripts/a.sh"]),
            ("${CLAUDE_PROJECT_DIR}/scripts/in/b.py", vec!["scripts/in/b.py"]),
            ("cd scripts && ./a.sh", vec!["scripts/a.sh"]),
            ("python3 scripts/in/../in/b.py; sh c", vec!["c", "scripts/in/b.py"]),
            ("sh -c 'sh scripts/\"a\".sh'", vec!["scripts/a.sh"]),
            (&absolute, vec!["scripts/a.sh"]),
            ("cat c >> scripts/a.sh; echo 2>scripts/in/b.py", vec!["c"]),
            ("true", vec![]),
        ] {
            let want: BTreeSet<PathBuf> = want.iter().map(|name| folder.join(name)).collect();
            assert_eq!(named_files(&folder, command), want, "{command}");
        }
        let missing = "sh scripts/later.sh && ./x/../y.py > out/log; true scripts/a.sh plain";
        assert_eq!(missing_files(&folder, missing), ["scripts/later.sh", "y.py"]);
    }
}
