//! Mistakes on the command line, in words that name the way out.

use std::{io::Write as _, process::ExitCode};

use clap::error::{ContextKind, Error, ErrorKind};

use crate::exit::{Failure, OK};

/// Texts of parsers of the standard library, and what they mean to a person.
const TEXTS: [(&str, &str); 5] = [
    ("invalid digit found in string", "it is not a whole number"),
    ("cannot parse integer from empty string", "it is not a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number would be zero for non-zero type", "the number must be above 0"),
    ("invalid float literal", "it is not a number"),
];

/// Likeness of a name to a known one from which it is proposed.
const MIN_LIKENESS: f64 = 0.8;

/// Prints a message of the parser, which may be the help, and returns the exit code.
pub fn report(mut error: Error, has_json: bool) -> ExitCode {
    if !error.use_stderr() {
        // Standard output may be closed.
        let _closed = error.print();
        return ExitCode::from(OK);
    }
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none()
    {
        // Only the advice to pass the unknown option as a value.
        error.remove(ContextKind::Suggested);
    }
    let rendered = error.render();
    let plain = in_words(&rendered.to_string());
    let failure = Failure::usage(summary(&plain));
    if has_json {
        return failure.report(true);
    }
    let text = if console::colors_enabled_stderr() {
        in_words(&rendered.ansi().to_string())
    } else {
        plain
    };
    // Standard error may be closed.
    let _closed = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(failure.code())
}

fn in_words(text: &str) -> String {
    TEXTS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns the message without the usage below it, in one line.
fn summary(text: &str) -> String {
    let head = text.split("\n\nUsage:").next().unwrap_or_default();
    let head = head.split("\n\nFor more information").next().unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().skip_while(|word| *word == "error:").collect();
    words.join(" ")
}

/// Returns the known name that is most like a misspelt one.
pub fn nearest<'n>(known: impl IntoIterator<Item = &'n str>, name: &str) -> Option<&'n str> {
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(likeness, _)| *likeness > MIN_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parser_messages_are_put_in_words() {
        let parse = |line: &[&str]| {
            let error = crate::help::command().try_get_matches_from(line).unwrap_err();
            summary(&in_words(&error.render().to_string()))
        };
        for (line, expected) in [
            (&["cairn", "search", "x", "-k", "many"][..], "it is not a whole number"),
            (&["cairn", "sessions", "-k", "0"], "0 is not in 1..=100"),
            (&["cairn", "run", "x", "--budget", "-1"], "an amount above 0, such as 2 or 0.5"),
            (&["cairn", "grep", "x", "-A", "-1"], "a number of lines from 0 to 100"),
            (&["cairn", "explore", ""], "a value is required for '[PATH|URL]'"),
            (&["cairn", "symbols"], "the following required arguments were not provided: <QUERY>"),
            (&["cairn", "serach", "x"], "similar subcommands exist"),
        ] {
            let message = parse(line);
            assert!(message.contains(expected), "{line:?}: {message}");
            assert!(!message.contains("For more information"), "{message}");
        }
    }

    #[test]
    fn misspelt_names_are_found() {
        let known = ["llm.model", "llm.endpoint", "ui.color"];
        assert_eq!(nearest(known, "llm.modle"), Some("llm.model"));
        assert_eq!(nearest(known, "nothing"), None);
    }
}
