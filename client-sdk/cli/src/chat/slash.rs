//! Slash commands: one table for parsing, help and completion.

use fuzzy_matcher::{FuzzyMatcher as _, skim::SkimMatcherV2};

use super::{
    custom_commands::CustomCommands,
    inline::{self, LineStyle},
};
use crate::render::output::plain;

/// Input of the chat, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Nothing,
    /// Text for the model.
    Prompt(String),
    /// A line for the user's shell.
    Shell(String),
    /// A command and its argument.
    Command(Slash, String),
    /// A command that is not built in, and its argument.
    Other(String, String),
}

/// A command of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slash {
    Provider,
    Model,
    Resume,
    Image,
    Paste,
    Config,
    Tools,
    Plan,
    Mode,
    Cost,
    Clear,
    Compress,
    System,
    Tasks,
    Undo,
    Rules,
    Trust,
    Help,
    Exit,
}

/// Command, names, arguments, description.
const TABLE: &[(Slash, &[&str], &str, &str)] = &[
    (
        Slash::Provider,
        &["provider"],
        "[list|current|NAME [MODEL]]",
        "show the providers, or switch to another one",
    ),
    (Slash::Model, &["model"], "[NAME]", "choose another model of the provider"),
    (Slash::Resume, &["resume"], "", "choose an earlier chat of this folder and continue it"),
    (Slash::Image, &["image"], "PATH", "add a picture to the next message"),
    (Slash::Paste, &["paste"], "", "add the clipboard's picture, or insert its text"),
    (Slash::Config, &["config"], "[KEY]", "show the settings"),
    (Slash::Tools, &["tools"], "", "list the tools that are offered to the model"),
    (Slash::Plan, &["plan"], "", "show the model's plan"),
    (
        Slash::Mode,
        &["mode"],
        "[plan|ask|accept-edits|auto]",
        "show the mode, or switch to another one, as Shift+Tab does",
    ),
    (Slash::Cost, &["cost"], "", "show the tokens and the cost of this session"),
    (Slash::Clear, &["clear", "reset"], "", "clear the conversation"),
    (Slash::Compress, &["compress"], "", "replace the conversation with a summary"),
    (
        Slash::System,
        &["system"],
        "[TEXT|default]",
        "show the system text, or replace its base and clear the conversation",
    ),
    (
        Slash::Tasks,
        &["tasks"],
        "[ID | stop ID]",
        "show the background commands, the output of one, or stop one",
    ),
    (
        Slash::Undo,
        &["undo"],
        "",
        "undo the file changes of the last turn; again for the one before",
    ),
    (
        Slash::Rules,
        &["rules"],
        "[remove RULE]",
        "show the granted rules with their projects, or remove one",
    ),
    (Slash::Trust, &["trust"], "", "show what this folder brings, and trust it or not"),
    (Slash::Help, &["help"], "", "show this"),
    (Slash::Exit, &["exit", "quit"], "", "exit, like Ctrl+D"),
];

/// Parses a line. Two leading slashes or exclamation marks escape one.
pub fn read(line: &str) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::Nothing;
    }
    if let Some(rest) = line.strip_prefix('!') {
        return match rest.trim_start() {
            _ if rest.starts_with('!') => Typed::Prompt(rest.to_owned()),
            // A picture in Markdown.
            command if command.is_empty() || rest.starts_with('[') => {
                Typed::Prompt(line.to_owned())
            }
            command => Typed::Shell(command.to_owned()),
        };
    }
    let Some(rest) = line.strip_prefix('/') else { return Typed::Prompt(line.to_owned()) };
    // A path, or a comment of a programming language.
    if rest.starts_with('/') {
        return Typed::Prompt(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match TABLE.iter().find(|(_, names, _, _)| names.contains(&name)) {
        Some((slash, ..)) => Typed::Command(*slash, argument.trim().to_owned()),
        None => Typed::Other(name.to_owned(), argument.trim().to_owned()),
    }
}

/// Usages and descriptions that are no commands.
const OTHERS: &[(&str, &str)] = &[
    ("> TEXT", "with --shell: send TEXT to the model; anything else is a command"),
    ("!COMMAND", "run COMMAND in your own shell, here; the model does not see it"),
    ("//TEXT, !!TEXT", "send TEXT with one slash or exclamation mark to the model"),
    ("@PATH", "add a file or a folder's listing to the message; a picture's path adds the picture"),
];
/// Lines of the help after the commands.
const KEYS: &[&str] = &[
    "Alt+Enter or \\ at a line's end starts a new line; Tab completes; / and @ open a menu.",
    "Shift+Tab switches to the next mode: ask, accept-edits, auto, plan.",
    "Ctrl+R searches the history; Ctrl+O shows the last result completely.",
    "While the model works: type and press Enter to add a message, Esc or Ctrl+C stops it;",
    "commands run after the turn, /help and /exit at once.",
    "A question takes y or n; a, A, p, P and E select a rule; Enter stores it. While a text is",
    "typed, and for a moment after any key, no key answers.",
    "Ctrl+C at the prompt clears the line; three quick ones exit, and so does Ctrl+D.",
];
/// Columns of a usage.
const USAGE_COLUMNS: usize = 39;
/// Columns below which a description has a row of its own.
const NARROW: usize = 90;

/// Renders the help of all commands for a terminal of `width` columns.
pub fn help(custom: &CustomCommands, width: usize) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for (_, names, arguments, does) in TABLE {
        let all: Vec<String> = names.iter().map(|n| format!("/{n}")).collect();
        rows.push((format!("{} {arguments}", all.join(", ")), (*does).to_owned()));
    }
    for command in &custom.commands {
        let usage = plain(&format!("/{} {}", command.name, command.arguments));
        rows.push((usage, plain(&command.description)));
    }
    rows.extend(OTHERS.iter().map(|(usage, does)| ((*usage).to_owned(), (*does).to_owned())));
    let mut lines: Vec<String> = Vec::new();
    for (usage, does) in rows {
        if width < NARROW {
            lines.extend(wrapped(&format!("  {}", usage.trim_end()), "", 4, width));
            lines.extend(wrapped(&does, "    ", 4, width));
        } else {
            let first = format!("  {usage:<USAGE_COLUMNS$} ");
            lines.extend(wrapped(&does, &first, USAGE_COLUMNS + 3, width));
        }
    }
    lines.extend(KEYS.iter().flat_map(|line| wrapped(line, "", 0, width)));
    lines.join("\n") + "\n"
}

fn wrapped(text: &str, first: &str, hang: usize, width: usize) -> Vec<String> {
    let line_style = LineStyle { base: console::Style::new(), first: first.to_owned(), hang };
    inline::words(text, &line_style, width)
}

/// Lists the names that fit a typed one with their descriptions: those that begin with it, then
/// those that have its letters in order.
pub fn completions(typed: &str, custom: &CustomCommands) -> Vec<(String, String)> {
    let built_in = TABLE.iter().flat_map(|(_, names, _, does)| {
        names.iter().map(|name| (format!("/{name}"), (*does).to_owned()))
    });
    let own = custom
        .commands
        .iter()
        .map(|command| (format!("/{}", command.name), plain(&command.description)));
    let matcher = SkimMatcherV2::default();
    let mut fitting: Vec<(bool, (String, String))> = built_in
        .chain(own)
        .filter(|(name, _)| matcher.fuzzy_match(name, typed).is_some())
        .map(|entry| (!entry.0.starts_with(typed), entry))
        .collect();
    fitting.sort_by_key(|(is_secondary, _)| *is_secondary);
    fitting.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_lines_are_parsed() {
        let command = |slash, text: &str| Typed::Command(slash, text.into());
        for (line, expected) in [
            ("", Typed::Nothing),
            ("  \t", Typed::Nothing),
            (" hello /there ", Typed::Prompt("hello /there".into())),
            ("/help", command(Slash::Help, "")),
            ("/provider ollama  qwen3:14b", command(Slash::Provider, "ollama  qwen3:14b")),
            ("/system You are\nbrief", command(Slash::System, "You are\nbrief")),
            ("/reset", command(Slash::Clear, "")),
            ("/fix 12 now", Typed::Other("fix".into(), "12 now".into())),
            ("/quit", command(Slash::Exit, "")),
            ("/Exit", Typed::Other("Exit".into(), String::new())),
            ("/", Typed::Other(String::new(), String::new())),
            ("//etc/hosts: what is it", Typed::Prompt("/etc/hosts: what is it".into())),
            ("/etc/hosts", Typed::Other("etc/hosts".into(), String::new())),
            ("! ls -l", Typed::Shell("ls -l".into())),
            ("!", Typed::Prompt("!".into())),
            ("!![] is true", Typed::Prompt("![] is true".into())),
            ("![alt](a.png)", Typed::Prompt("![alt](a.png)".into())),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn every_command_is_documented_and_parses() {
        let custom = CustomCommands::default();
        let help = help(&custom, 110);
        let narrow = super::help(&custom, 60);
        for (slash, names, arguments, does) in TABLE {
            for name in *names {
                assert_eq!(read(&format!("/{name} x")), Typed::Command(*slash, "x".into()));
                assert!(help.contains(&format!("/{name}")), "{name}");
                assert!(completions("/", &custom).iter().any(|(n, _)| *n == format!("/{name}")));
            }
            assert!(help.contains(arguments) && narrow.contains(arguments) && help.contains(does));
        }
        assert!(help.lines().all(|l| l.chars().count() <= 110), "{help}");
        assert!(narrow.lines().all(|l| l.chars().count() <= 60), "{narrow}");
        assert_eq!(
            completions("/co", &custom).iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(),
            ["/config", "/cost", "/compress"]
        );
        assert_eq!(completions("/cmpr", &custom)[0].0, "/compress");
        assert!(completions("/zz", &custom).is_empty());
    }
}
