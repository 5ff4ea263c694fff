//! The line editor of the prompt: history, completion, continuation lines.

use std::{
    borrow::Cow,
    fs::OpenOptions,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use console::style;
use crossterm::style::Color;
use reedline::{
    ColumnarMenu, Completer, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent,
    ReedlineMenu, Span, Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use super::{
    custom_commands::CustomCommands,
    files::Files,
    local,
    menu::{self, AutoMenu, Keyboard, NAMES, SharedLine},
    pastes::Pastes,
    slash,
};
use crate::{exit::Failure, render::theme::Theme};

/// Maximum lines of history.
const HISTORY: usize = 2000;
/// Maximum number of offered completions.
const MAX_COMPLETIONS: usize = 100;
/// Maximum number of folder entries to examine.
const MAX_ENTRIES: usize = 5000;

/// The folder for completing paths, which follows the shell.
pub type Folder = Arc<Mutex<PathBuf>>;

/// The sources of the completions.
#[derive(Clone, Default)]
pub struct Sources {
    pub folder: Folder,
    pub files: Files,
    pub commands: Arc<CustomCommands>,
    pub pastes: Pastes,
}

/// Builds an editor that stores its history in `history`.
pub fn editor(sources: &Sources, history: &Path, theme: Theme) -> Result<Reedline, Failure> {
    // Created here, so that other users cannot read it.
    let private = local::private(OpenOptions::new().create(true).append(true)).open(history);
    private.map_err(|e| Failure::path(history, &e))?;
    let unfit = |e: reedline::ReedlineError| Failure::failed(format!("{}: {e}", history.display()));
    let remembered = FileBackedHistory::with_file(HISTORY, history.to_owned()).map_err(unfit)?;
    let mut keys = default_emacs_keybindings();
    let next =
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(NAMES.into()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys.add_binding(
        KeyModifiers::ALT,
        KeyCode::Enter,
        ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
    );
    let line = SharedLine::default();
    let names = menu::styled(ColumnarMenu::default().with_name(NAMES), theme);
    let auto = AutoMenu::new(line.clone(), theme);
    let keyboard = Keyboard::new(Emacs::new(keys), line.clone(), sources.pastes.clone());
    Ok(Reedline::create()
        .with_history(Box::new(remembered))
        .with_completer(Box::new(Names { sources: sources.clone() }))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(names)))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(auto)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_highlighter(Box::new(line))
        .with_edit_mode(Box::new(keyboard))
        .with_validator(Box::new(ContinuationValidator))
        // Without it, reedline marks the selected entry by capitals and does not shorten entries.
        .with_ansi_colors(true)
        .use_bracketed_paste(true))
}

/// Joins continuation lines, removing the backslashes.
pub fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Validates that a line does not end with a backslash, which continues it.
struct ContinuationValidator;

impl Validator for ContinuationValidator {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

/// Completes commands, mentions and paths.
struct Names {
    sources: Sources,
}

impl Completer for Names {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        let typed = line.get(..pos).unwrap_or(line);
        let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &typed[start..];
        let suggest =
            |value: String, description: Option<String>, append_whitespace: bool| Suggestion {
                value,
                description,
                span: Span::new(start, pos),
                append_whitespace,
                ..Suggestion::default()
            };
        if start == 0 && word.starts_with('/') {
            return slash::completions(word, &self.sources.commands)
                .into_iter()
                .map(|(name, does)| suggest(name, Some(does), true))
                .collect();
        }
        if let Some(path) = word.strip_prefix('@') {
            let paths = self.sources.files.matching(path.trim_start_matches('"'));
            return paths
                .into_iter()
                .map(|path| suggest(mention(&path), None, !path.ends_with('/')))
                .collect();
        }
        let folder = self.sources.folder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let paths = paths(&folder, word);
        paths.into_iter().map(|path| suggest(path.clone(), None, !path.ends_with('/'))).collect()
    }
}

/// Returns the mention of a path, in quotes if it has spaces.
fn mention(path: &str) -> String {
    if path.contains(char::is_whitespace) { format!("@\"{path}\"") } else { format!("@{path}") }
}

/// Lists paths in `folder` that start with `word`; folders end with a slash.
fn paths(folder: &Path, word: &str) -> Vec<String> {
    let (head, begin) = word.rfind('/').map_or(("", word), |at| word.split_at(at + 1));
    let Ok(entries) = std::fs::read_dir(folder.join(head)) else { return vec![] };
    let matching = entries.take(MAX_ENTRIES).flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let fits = name.starts_with(begin) && (begin.starts_with('.') || !name.starts_with('.'));
        let slash = if entry.path().is_dir() { "/" } else { "" };
        (fits && !name.contains(char::is_control)).then(|| format!("{head}{name}{slash}"))
    });
    let mut matching: Vec<String> = matching.collect();
    matching.sort_unstable();
    matching.truncate(MAX_COMPLETIONS);
    matching
}

pub enum PromptSign {
    /// The chat's prompt below a status line, which may be empty.
    Chat(String),
    /// The shell's prompt: its folder, and true if the last command failed.
    Shell(String, bool),
}

impl Prompt for PromptSign {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        match self {
            Self::Chat(status) if status.is_empty() => style("●").green().to_string().into(),
            Self::Chat(status) => format!("{}\n{}", style(status).dim(), style("●").green()).into(),
            Self::Shell(folder, failed) => {
                let mark = if *failed { style("$").red() } else { style("$").green() };
                format!("{} {mark}", style(folder).cyan()).into()
            }
        }
    }

    fn get_prompt_color(&self) -> Color {
        Color::Reset
    }

    fn get_prompt_multiline_color(&self) -> nu_ansi_term::Color {
        nu_ansi_term::Color::Default
    }

    fn get_indicator_color(&self) -> Color {
        Color::Reset
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        " ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "… ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!(" history '{}': ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_paths_are_completed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        for name in ["src/a.rs", "src/b.rs", ".hidden", "setup.py"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let folder = Arc::new(Mutex::new(dir.path().to_owned()));
        let mut names = Names { sources: Sources { folder, ..Sources::default() } };
        for (line, expected) in [
            ("/cl", vec!["/clear"]),
            ("/qu", vec!["/quit"]),
            ("read s", vec!["setup.py", "src/"]),
            ("read src/", vec!["src/a.rs", "src/b.rs", "src/deep/"]),
            ("s", vec!["setup.py", "src/"]),
            (".h", vec![".hidden"]),
            ("read @s", vec![]),
            ("read /cl", vec![]),
            ("gone/", vec![]),
        ] {
            let got: Vec<String> =
                names.complete(line, line.len()).into_iter().map(|s| s.value).collect();
            assert_eq!(got, expected, "{line}");
        }
        let one = &names.complete("read src/a", 10)[0];
        assert_eq!((one.span.start, one.span.end, one.append_whitespace), (5, 10, true));
        assert_eq!(mention("two words"), "@\"two words\"");
    }

    #[test]
    fn backslash_continues_the_line() {
        assert!(matches!(ContinuationValidator.validate("a \\"), ValidationResult::Incomplete));
        assert!(matches!(ContinuationValidator.validate("a"), ValidationResult::Complete));
        assert_eq!(joined("a \\\nb\nc"), "a \nb\nc");
    }

    #[test]
    fn history_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let history = dir.path().join("chat_history");
        let _editor = editor(&Sources::default(), &history, Theme::Unknown).unwrap();
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&history.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
