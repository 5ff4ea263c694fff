//! Commands of the user and of the project: Markdown files whose text is sent to the model.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// Folder of the commands in the user's configuration.
const USER_FOLDER: &str = "commands";
/// Folders of a project's commands; the first one with a name wins.
const PROJECT_FOLDERS: &[&str] = &[".cairn/commands", ".claude/commands"];
/// Maximum number of commands.
const MAX_COMMANDS: usize = 200;
/// Maximum bytes of a command's file.
const MAX_BYTES: u64 = 64 * 1024;
/// Maximum characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// A command from a Markdown file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCommand {
    pub name: String,
    pub description: String,
    /// Arguments as the help shows them.
    pub arguments: String,
    body: String,
}

/// The commands of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomCommands {
    pub commands: Vec<CustomCommand>,
    /// Number of the project's files that are not used, because the folder is not trusted.
    pub untrusted: usize,
}

impl CustomCommands {
    /// Reads the commands of the user's configuration folder, of agent plugins and of a trusted
    /// project. A
    /// command of the user comes before one of the project with its name.
    pub fn read(
        user: Option<&Path>,
        plugins: &[PathBuf],
        project: Option<&Path>,
        is_trusted: bool,
    ) -> Self {
        let mut all = Self::default();
        for folder in user.into_iter().chain(plugins.iter().map(PathBuf::as_path)) {
            all.add(&folder.join(USER_FOLDER), None);
        }
        let Some(project) = project.and_then(|p| p.canonicalize().ok()) else { return all };
        for sub in PROJECT_FOLDERS {
            let folder = project.join(sub);
            if is_trusted {
                all.add(&folder, Some(&project));
            } else {
                all.untrusted += files(&folder).len();
            }
        }
        all
    }

    /// Adds the commands of a folder; a link out of `within` is not followed.
    fn add(&mut self, folder: &Path, within: Option<&Path>) {
        for (name, path) in files(folder) {
            let is_inside = within.is_none_or(|within| {
                path.canonicalize().is_ok_and(|real| real.starts_with(within))
            });
            let is_known = self.commands.iter().any(|known| known.name == name);
            if is_known || !is_inside || self.commands.len() == MAX_COMMANDS {
                continue;
            }
            self.commands.extend(read_file(&path).map(|text| parse(name, &text)));
        }
    }

    /// Returns the command of this name.
    pub fn find(&self, name: &str) -> Option<&CustomCommand> {
        self.commands.iter().find(|command| command.name == name)
    }
}

impl CustomCommand {
    /// Returns the text for the model: `$ARGUMENTS` is replaced by all arguments, `$1` to `$9` by
    /// single ones. Arguments that have no position follow the text.
    pub fn text(&self, arguments: &str) -> String {
        let words = shlex::split(arguments)
            .unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect());
        let mut out = String::new();
        let mut is_used = false;
        let mut rest = self.body.as_str();
        while let Some((head, tail)) = rest.split_once('$') {
            out.push_str(head);
            if let Some(after) = tail.strip_prefix("ARGUMENTS") {
                out.push_str(arguments);
                is_used = true;
                rest = after;
            } else if let Some(digit) = tail.chars().next().and_then(|c| c.to_digit(10))
                && digit > 0
            {
                out.push_str(words.get(digit as usize - 1).map_or("", String::as_str));
                is_used = true;
                rest = &tail[1..];
            } else {
                out.push('$');
                rest = tail;
            }
        }
        out.push_str(rest);
        if !is_used && !arguments.is_empty() {
            out.push_str("\n\nArguments: ");
            out.push_str(arguments);
        }
        out
    }
}

/// Lists the Markdown files of a folder with their names; those of a folder in it are named
/// `folder:file`.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    for path in entries(folder) {
        let Some(name) = stem(&path) else { continue };
        if path.is_dir() {
            let inner = entries(&path).into_iter().filter(|p| is_markdown(p));
            all.extend(inner.filter_map(|p| Some((format!("{name}:{}", stem(&p)?), p.clone()))));
        } else if is_markdown(&path) {
            all.push((name, path));
        }
    }
    all.truncate(MAX_COMMANDS);
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_COMMANDS);
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    paths
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "md") && path.is_file()
}

/// Returns the name of a file or folder if it can be typed as a command.
fn stem(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!stem.is_empty() && stem.len() <= 64 && stem.chars().all(is_plain)).then(|| stem.to_owned())
}

fn read_file(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_BYTES && !text.trim().is_empty()).then_some(text)
}

/// Splits a text into the fields of its front matter, which may be absent, and its body.
fn parse(name: String, text: &str) -> CustomCommand {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let split = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let (front, body) = split.unwrap_or(("", &text));
    let field = |key: &str| {
        let line = front.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let first_line = || {
        let line = body.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
        line.trim_start_matches('#').trim().to_owned()
    };
    let description = field("description").filter(|d| !d.is_empty()).unwrap_or_else(first_line);
    CustomCommand {
        name,
        description: description.chars().take(MAX_DESCRIPTION).collect(),
        arguments: field("argument-hint").unwrap_or_default(),
        body: body.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn front_matter_describes_and_arguments_are_filled_in() {
        let text = "---\ndescription: \"Fix an issue\"\nargument-hint: [NUMBER] [HOW]\n---\n\nFix $1, $2$3; all: $ARGUMENTS. Cost: $5 $x $\n";
        let command = parse("fix".into(), text);
        assert_eq!(
            (&*command.description, &*command.arguments),
            ("Fix an issue", "[NUMBER] [HOW]")
        );
        assert_eq!(
            command.text("12 'with care $1'"),
            "Fix 12, with care $1; all: 12 'with care $1'. Cost:  $x $"
        );
        assert_eq!(command.text("it's"), "Fix it's, ; all: it's. Cost:  $x $");
        let bare = parse("bare".into(), "# Review\nLook at it.");
        assert_eq!(bare.description, "Review");
        assert_eq!(bare.text(""), "# Review\nLook at it.");
        assert_eq!(bare.text("now"), "# Review\nLook at it.\n\nArguments: now");
    }

    #[test]
    fn project_commands_need_trust() {
        let dir = tempfile::tempdir().unwrap();
        let (user, project) = (dir.path().join("config"), dir.path().join("repo"));
        put(&user, "commands/mine.md", "Mine.");
        put(&user, "commands/both.md", "Of the user.");
        put(&project, ".cairn/commands/both.md", "Of the project.");
        put(&project, ".cairn/commands/git/commit.md", "Commit.");
        put(&project, ".claude/commands/old.md", "Old.");
        put(&project, ".claude/commands/not a name.md", "x");
        put(&project, ".claude/commands/empty.md", " \n");
        put(&project, ".claude/commands/huge.md", &"x".repeat(70_000));
        put(dir.path(), "secret.md", "Secret.");
        let link = project.join(".cairn/commands/link.md");
        std::os::unix::fs::symlink(dir.path().join("secret.md"), link).unwrap();
        let names = |all: &CustomCommands| {
            all.commands.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let trusted = CustomCommands::read(Some(&user), &[], Some(&project), true);
        assert_eq!(names(&trusted), "both mine git:commit old");
        assert_eq!(trusted.find("both").unwrap().text(""), "Of the user.");
        assert_eq!(trusted.untrusted, 0);
        let untrusted = CustomCommands::read(Some(&user), &[], Some(&project), false);
        assert_eq!((names(&untrusted).as_str(), untrusted.untrusted), ("both mine", 6));
        assert_eq!(CustomCommands::read(None, &[], None, true), CustomCommands::default());
    }
}
