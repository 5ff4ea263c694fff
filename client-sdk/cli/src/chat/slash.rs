//! Slash commands: one table for parsing, help and completion.

use std::fmt::Write as _;

/// Input of the chat, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Nothing,
    /// Text for the model.
    Prompt(String),
    /// A command and its argument.
    Command(Slash, String),
    /// Name of an unknown command.
    Unknown(String),
}

/// A command of the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slash {
    Provider,
    Model,
    Config,
    Tools,
    Plan,
    Clear,
    Compress,
    System,
    Tasks,
    Undo,
    Rules,
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
    (Slash::Model, &["model"], "[NAME]", "list the provider's models, or select another one"),
    (Slash::Config, &["config"], "[KEY]", "show the settings"),
    (Slash::Tools, &["tools"], "", "list the tools that are offered to the model"),
    (Slash::Plan, &["plan"], "", "show the model's plan"),
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
        "[revoke RULE]",
        "show the rules you granted with 'A', or revoke one",
    ),
    (Slash::Help, &["help"], "", "show this"),
    (Slash::Exit, &["exit", "quit"], "", "exit, like Ctrl+D"),
];

/// Parses a line. Two leading slashes escape one.
pub fn read(line: &str) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::Nothing;
    }
    let Some(rest) = line.strip_prefix('/') else { return Typed::Prompt(line.to_owned()) };
    // A path, or a comment of a programming language.
    if rest.starts_with('/') {
        return Typed::Prompt(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match TABLE.iter().find(|(_, names, _, _)| names.contains(&name)) {
        Some((slash, ..)) => Typed::Command(*slash, argument.trim().to_owned()),
        None => Typed::Unknown(name.to_owned()),
    }
}

/// Renders the help of all commands.
pub fn help() -> String {
    let mut out = String::new();
    for (_, names, arguments, does) in TABLE {
        let all: Vec<String> = names.iter().map(|n| format!("/{n}")).collect();
        let usage = format!("{} {arguments}", all.join(", "));
        let _infallible = writeln!(out, "  {usage:<39} {does}");
    }
    out.push_str("  > TEXT                                  with --shell: send TEXT to the model; anything else is a command\n");
    out.push_str(
        "  //TEXT                                  send TEXT with one slash to the model\n",
    );
    out.push_str(
        "Alt+Enter or \\ at a line's end starts a new line; Tab completes commands and paths.\n",
    );
    out.push_str(
        "While the model works: type and press Enter to add a message, Ctrl+C stops it.\n",
    );
    out.push_str(
        "Ctrl+C at the prompt clears the line; three quick ones exit, and so does Ctrl+D.\n",
    );
    out
}

/// Lists the names that start with `prefix`, including the slash.
pub fn completions(begin: &str) -> Vec<(String, &'static str)> {
    let all =
        TABLE.iter().flat_map(|(_, names, _, does)| names.iter().map(|n| (format!("/{n}"), *does)));
    all.filter(|(name, _)| name.starts_with(begin)).collect()
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
            ("/quit", command(Slash::Exit, "")),
            ("/Exit", Typed::Unknown("Exit".into())),
            ("/", Typed::Unknown(String::new())),
            ("//etc/hosts: what is it", Typed::Prompt("/etc/hosts: what is it".into())),
            ("/etc/hosts", Typed::Unknown("etc/hosts".into())),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }

    #[test]
    fn every_command_is_documented_and_parses() {
        let help = help();
        for (slash, names, arguments, does) in TABLE {
            for name in *names {
                assert_eq!(read(&format!("/{name} x")), Typed::Command(*slash, "x".into()));
                assert!(help.contains(&format!("/{name}")), "{name}");
                assert!(completions("/").iter().any(|(n, _)| *n == format!("/{name}")));
            }
            assert!(help.contains(arguments) && help.contains(does));
        }
        assert!(help.lines().all(|l| l.len() <= 110), "{help}");
        assert_eq!(
            completions("/co").iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(),
            ["/config", "/compress"]
        );
    }
}
