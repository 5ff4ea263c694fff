//! `--shell`: the prompt as the user's own shell, with `>` for the model. Typed lines run in this
//! terminal as in the user's shell; the effects of `cd`, `export` and `unset` persist between
//! lines.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    process::ExitStatus,
};

use tokio::process::Command;

use super::slash::{self, Typed};

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Nothing,
    /// A command of the chat, or text for the model.
    Chat(Typed),
    /// Change the folder; to the home folder if none is given.
    Cd(Option<String>),
    Export(Vec<(String, String)>),
    Unset(Vec<String>),
    /// A command for the user's shell.
    Run(String),
}

impl super::Chat<'_> {
    /// Creates a shell in the chat's folder.
    pub(super) fn new_shell(&self) -> Shell {
        let program = std::env::var_os("SHELL").map(PathBuf::from);
        Shell::new(self.folder.clone(), program, self.app.env.home.clone())
    }
}

/// The state that persists between lines.
#[derive(Debug)]
pub struct Shell {
    program: PathBuf,
    home: Option<PathBuf>,
    folder: PathBuf,
    before: Option<PathBuf>,
    /// Variables that were exported (`Some`) or unset (`None`).
    changed: BTreeMap<String, Option<String>>,
    /// Set if the last command failed.
    pub failed: bool,
}

impl Shell {
    /// Creates a shell in `folder` that runs lines with `program`, the user's shell.
    pub fn new(folder: PathBuf, program: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let program = program.filter(|p| p.is_absolute()).unwrap_or_else(|| "/bin/sh".into());
        Self { program, home, folder, before: None, changed: BTreeMap::new(), failed: false }
    }

    /// Returns the current folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder for the prompt, with `~` for the home folder.
    pub fn display_folder(&self) -> String {
        let inside = self.home.as_ref().and_then(|home| self.folder.strip_prefix(home).ok());
        match inside {
            Some(rest) if rest.as_os_str().is_empty() => "~".into(),
            Some(rest) => format!("~/{}", rest.display()),
            None => self.folder.display().to_string(),
        }
    }

    /// Parses a line. Only a plain `cd`, `export` or `unset` is handled here; lines with `&&`, `;`,
    /// pipes and the like run in the user's shell, where the effect ends with the line.
    pub fn read(&self, line: &str) -> Line {
        let line = line.trim();
        if line.is_empty() {
            return Line::Nothing;
        }
        if let Some(prompt) = line.strip_prefix('>') {
            let prompt = prompt.trim();
            return if prompt.is_empty() {
                Line::Nothing
            } else {
                Line::Chat(Typed::Prompt(prompt.to_owned()))
            };
        }
        if line.starts_with('/')
            && let command @ Typed::Command(..) = slash::read(line)
        {
            return Line::Chat(command);
        }
        let run = || Line::Run(line.to_owned());
        let Some(words) = words(line, &|name| self.variable(name)) else { return run() };
        let (Some(name), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
            return run();
        };
        match (name.as_str(), rest) {
            ("cd", []) => Line::Cd(None),
            ("cd", [to]) => Line::Cd(Some(to.clone())),
            ("export", [_, ..]) => {
                let pair = |word: &String| {
                    let (key, value) = word.split_once('=')?;
                    is_name(key).then(|| (key.to_owned(), self.expand_home(value)))
                };
                rest.iter().map(pair).collect::<Option<Vec<_>>>().map_or_else(run, Line::Export)
            }
            ("unset", [_, ..]) if rest.iter().all(|name| is_name(name)) => {
                Line::Unset(rest.to_vec())
            }
            _ => run(),
        }
    }

    /// Changes the folder.
    ///
    /// # Errors
    /// The reason why that is impossible.
    pub fn cd(&mut self, to: Option<&str>) -> Result<(), String> {
        let target = match to {
            None => self.home.clone().ok_or("cd: there is no home folder")?,
            Some("-") => self.before.clone().ok_or("cd: there is no previous folder")?,
            Some(to) => self.folder.join(self.expand_home(to)),
        };
        let target = plain(&target);
        let meta =
            std::fs::metadata(&target).map_err(|e| format!("cd: {}: {e}", target.display()))?;
        if !meta.is_dir() {
            return Err(format!("cd: {}: not a folder", target.display()));
        }
        // A folder that cannot be listed cannot be worked in either.
        std::fs::read_dir(target.join("."))
            .map_err(|e| format!("cd: {}: {e}", target.display()))?;
        self.before = Some(std::mem::replace(&mut self.folder, target));
        Ok(())
    }

    /// Sets environment variables of later commands.
    pub fn export(&mut self, pairs: Vec<(String, String)>) {
        self.changed.extend(pairs.into_iter().map(|(key, value)| (key, Some(value))));
    }

    /// Unsets environment variables of later commands.
    pub fn unset(&mut self, names: Vec<String>) {
        self.changed.extend(names.into_iter().map(|name| (name, None)));
    }

    /// Builds the command that runs a line.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(line)
            .current_dir(&self.folder)
            .env("PWD", &self.folder)
            .kill_on_drop(true);
        if let Some(before) = &self.before {
            command.env("OLDPWD", before);
        }
        for (key, value) in &self.changed {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command
    }

    /// Records a command's exit status and returns a message about it.
    pub fn record_exit(&mut self, status: ExitStatus) -> Option<String> {
        use std::os::unix::process::ExitStatusExt as _;
        self.failed = !status.success();
        match (status.code(), status.signal()) {
            (Some(0), _) | (_, Some(2)) => None,
            (Some(code), _) => Some(format!("exit {code}")),
            (None, signal) => Some(format!("terminated by signal {}", signal.unwrap_or_default())),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        match self.changed.get(name) {
            Some(own) => own.clone(),
            None => std::env::var(name).ok(),
        }
    }

    /// Expands a leading `~` to the home folder.
    fn expand_home(&self, text: &str) -> String {
        let home = self.home.as_ref().map(|home| home.to_string_lossy().into_owned());
        match (home, text.strip_prefix('~')) {
            (Some(home), Some("")) => home,
            (Some(home), Some(rest)) if rest.starts_with('/') => home + rest,
            _ => text.to_owned(),
        }
    }
}

/// Resolves `.` and `..` lexically, as shells do for the logical path.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Splits a plain command into words, with quotes removed and `$NAME` and `${NAME}` expanded.
/// `None` for a line that needs a shell.
fn words(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '$') => {
                let braces = chars.next_if_eq(&'{').is_some();
                let mut name = String::new();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                if !is_name(&name) || (braces && chars.next() != Some('}')) {
                    return None;
                }
                word.get_or_insert_default().push_str(&variable(&name).unwrap_or_default());
            }
            (None, '\\') => word.get_or_insert_default().push(chars.next()?),
            (Some(_), '\\') => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.get_or_insert_default().push(c),
                c => word.get_or_insert_default().extend(['\\', c]),
            },
            (_, '`') => return None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '&' | '|' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '#' | '\n') => {
                return None;
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::slash::Slash;

    fn shell(folder: &Path) -> Shell {
        Shell::new(folder.to_owned(), None, Some("/home/me".into()))
    }

    #[test]
    fn lines_are_classified() {
        let mut shell = shell(Path::new("/home/me/work"));
        shell.export(vec![("DIR".into(), "/data x".into())]);
        let export = |all: &[(&str, &str)]| {
            Line::Export(all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
        };
        for (line, expected) in [
            ("", Line::Nothing),
            (" > ", Line::Nothing),
            ("> what is this", Line::Chat(Typed::Prompt("what is this".into()))),
            (">what", Line::Chat(Typed::Prompt("what".into()))),
            ("/quit", Line::Chat(Typed::Command(Slash::Exit, String::new()))),
            ("/usr/bin/true", Line::Run("/usr/bin/true".into())),
            ("ls -l", Line::Run("ls -l".into())),
            ("echo a > b", Line::Run("echo a > b".into())),
            ("cd", Line::Cd(None)),
            ("cd ..", Line::Cd(Some("..".into()))),
            ("cd 'a b'", Line::Cd(Some("a b".into()))),
            ("cd $DIR/c", Line::Cd(Some("/data x/c".into()))),
            ("cd a && ls", Line::Run("cd a && ls".into())),
            ("cd *", Line::Run("cd *".into())),
            ("cd a b", Line::Run("cd a b".into())),
            ("cdx", Line::Run("cdx".into())),
            ("export A=1 B=\"two words\"", export(&[("A", "1"), ("B", "two words")])),
            ("export P=${DIR}:/y Q='$DIR'", export(&[("P", "/data x:/y"), ("Q", "$DIR")])),
            ("export H=~/x", export(&[("H", "/home/me/x")])),
            ("export A=$(date)", Line::Run("export A=$(date)".into())),
            ("export A", Line::Run("export A".into())),
            ("export 1A=x", Line::Run("export 1A=x".into())),
            ("unset A B", Line::Unset(vec!["A".into(), "B".into()])),
            ("unset -f x", Line::Run("unset -f x".into())),
            ("echo 'open", Line::Run("echo 'open".into())),
        ] {
            assert_eq!(shell.read(line), expected, "{line}");
        }
    }

    #[test]
    fn cd_changes_and_displays_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("a/b")).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        let mut shell = Shell::new(home.join("a"), Some("bash".into()), Some(home.clone()));
        assert_eq!(shell.program, Path::new("/bin/sh"), "no relative shell");
        for (to, display_folder) in [
            (Some("b"), "~/a/b"),
            (Some("../.."), "~"),
            (Some("-"), "~/a/b"),
            (Some("-"), "~"),
            (Some("~/a"), "~/a"),
            (None, "~"),
            (Some("/"), "/"),
        ] {
            shell.cd(to).unwrap();
            assert_eq!(shell.display_folder(), display_folder, "{to:?}");
        }
        for (to, why) in [("/gone", "No such file"), ("~/file", "not a folder")] {
            let error = shell.cd(Some(to)).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert_eq!(shell.display_folder(), "/", "it stays where it was");
        }
    }

    #[tokio::test]
    async fn commands_inherit_folder_and_variables() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = shell(&dir.path().canonicalize().unwrap());
        shell.export(vec![("KEPT".into(), "it's here".into())]);
        shell.unset(vec!["PATH".into()]);
        let line = "printf '%s|%s|%s' \"$KEPT\" \"${PATH-none}\" \"$(pwd)\"";
        let out = shell.command(line).output().await.unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let (first, rest) = text.split_once('|').unwrap();
        assert_eq!(first, "it's here");
        assert!(rest.ends_with(&shell.folder().display().to_string()), "{text}");
        let status = shell.command("exit 3").status().await.unwrap();
        assert_eq!((shell.record_exit(status), shell.failed), (Some("exit 3".into()), true));
        let status = shell.command("kill -9 $$").status().await.unwrap();
        assert_eq!(shell.record_exit(status).as_deref(), Some("terminated by signal 9"));
        let status = shell.command(":").status().await.unwrap();
        assert_eq!((shell.record_exit(status), shell.failed), (None, false));
    }
}
