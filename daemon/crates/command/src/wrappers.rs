//! Programs that run the command in their own arguments.

use super::{Kind, MAX_DEPTH, Part, lexer::Word, tree};

/// A wrapper program whose command follows its options.
struct Wrapper {
    name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options whose value is the next word.
    values: &'static [&'static str],
    /// Number of words between the options and the command.
    operands: usize,
    /// True if the wrapper is a part of its own too: it changes the user of the command, or what
    /// the command can reach.
    is_relevant: bool,
    /// True if further arguments come from elsewhere.
    reads_stdin: bool,
}

const fn wrapper(
    name: &'static str,
    flags: &'static [&'static str],
    values: &'static [&'static str],
) -> Wrapper {
    Wrapper { name, flags, values, operands: 0, is_relevant: false, reads_stdin: false }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", &["-i", "-", "--ignore-environment", "-v"], &["-u", "--unset"]),
    Wrapper {
        reads_stdin: true,
        ..wrapper(
            "xargs",
            &["-0", "--null", "-r", "--no-run-if-empty", "-t", "-x", "-p"],
            &["-n", "-P", "-L", "-d", "-s", "-I"],
        )
    },
    wrapper("nohup", &[], &[]),
    wrapper("time", &["-p", "-v"], &["-f"]),
    Wrapper {
        operands: 1,
        ..wrapper(
            "timeout",
            &["--foreground", "--preserve-status", "-v"],
            &["-s", "-k", "--signal", "--kill-after"],
        )
    },
    wrapper("nice", &[], &["-n"]),
    wrapper("ionice", &["-t"], &["-c", "-n"]),
    wrapper("stdbuf", &["-oL", "-eL", "-o0", "-e0", "-i0", "-iL"], &["-o", "-e", "-i"]),
    wrapper("setsid", &["-w", "-f", "--wait", "--fork"], &[]),
    wrapper("command", &["-p"], &[]),
    wrapper("builtin", &[], &[]),
    wrapper("exec", &["-c", "-l"], &["-a"]),
    wrapper("coproc", &[], &[]),
    Wrapper {
        is_relevant: true,
        ..wrapper("sudo", &["-n", "-E", "-H", "-i", "-s", "-k", "-b"], &["-u", "-g", "-p", "-C"])
    },
    Wrapper { is_relevant: true, ..wrapper("doas", &["-n", "-s"], &["-u", "-C"]) },
    Wrapper { is_relevant: true, ..wrapper("busybox", &[], &[]) },
    Wrapper { is_relevant: true, ..wrapper("toybox", &[], &[]) },
    Wrapper { is_relevant: true, ..wrapper("unshare", &["-r", "-n", "-m", "-p", "-f", "-U"], &[]) },
    Wrapper { is_relevant: true, operands: 1, ..wrapper("chroot", &[], &[]) },
    Wrapper { is_relevant: true, operands: 1, ..wrapper("flock", &["-n", "-x", "-s"], &["-w"]) },
    Wrapper { is_relevant: true, ..wrapper("strace", &["-f", "-q"], &["-e", "-o"]) },
    Wrapper { is_relevant: true, ..wrapper("watch", &["-d", "-t"], &["-n"]) },
];

/// Shells that accept a command line after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"];

/// Returns the commands that a command runs, including itself where it is relevant, and the reason
/// why they are uncertain.
///
/// # Errors
/// Commands nested too deep, or one that cannot be parsed.
pub(super) fn unwrap(
    part: Part,
    depth: usize,
) -> Result<(Vec<Part>, Option<&'static str>), String> {
    if depth > MAX_DEPTH {
        return Err(format!("commands are nested more than {MAX_DEPTH} levels deep"));
    }
    let name = part.program().to_owned();
    if part.kind == Kind::Opaque || part.words.first().is_none_or(|w| w.value().is_none()) {
        return Ok((vec![part], None));
    }
    if SHELLS.contains(&name.as_str()) {
        return shell(part, depth);
    }
    if name == "eval" {
        let words: Option<Vec<&str>> = part.words.iter().skip(1).map(Word::value).collect();
        return match words {
            Some(words) => line(&part, &words.join(" "), depth),
            None => Ok((vec![opaque(part)], None)),
        };
    }
    if name == "find" || name == "fd" || name == "fdfind" {
        return unwrap_find(part, depth);
    }
    match WRAPPERS.iter().find(|w| w.name == name) {
        Some(wrapper) if part.words.len() > 1 => wrapped(wrapper, part, depth),
        _ => Ok((vec![part], None)),
    }
}

fn opaque(mut part: Part) -> Part {
    part.kind = Kind::Opaque;
    part
}

/// Returns the commands of a text that a part passes to a shell.
fn line(
    part: &Part,
    text: &str,
    depth: usize,
) -> Result<(Vec<Part>, Option<&'static str>), String> {
    let (mut parts, unsure) = tree::read(text, depth + 1)?;
    // Its redirections and variables must be allowed too.
    parts.push(Part { words: vec![], ..part.clone() });
    parts.push(Part { kind: Kind::Wrapper, ..part.clone() });
    Ok((parts, unsure))
}

fn shell(part: Part, depth: usize) -> Result<(Vec<Part>, Option<&'static str>), String> {
    let mut runs_text = false;
    for word in part.words.iter().skip(1) {
        match word.value() {
            Some(option)
                if option.len() > 1 && option.starts_with('-') && !option.starts_with("--") =>
            {
                // Other options read files at the start, or the keyboard.
                if !option[1..].bytes().all(|b| b"ceuxvf".contains(&b)) {
                    return Ok((vec![opaque(part)], None));
                }
                runs_text |= option.contains('c');
            }
            Some(text) if runs_text => {
                let text = text.to_owned();
                return line(&part, &text, depth);
            }
            _ => break,
        }
    }
    if runs_text { Ok((vec![opaque(part)], None)) } else { Ok((vec![part], None)) }
}

fn wrapped(
    wrapper: &Wrapper,
    part: Part,
    depth: usize,
) -> Result<(Vec<Part>, Option<&'static str>), String> {
    let Some(inner) = behind(wrapper, &part) else {
        // The command is not understood; its words are still searched for denied commands.
        let mut parts = vec![opaque(part.clone())];
        parts.extend(suffixes(&part));
        return Ok((parts, None));
    };
    if inner.words.is_empty() {
        return Ok((vec![part], None));
    }
    let (mut parts, unsure) = unwrap(inner, depth + 1)?;
    let kind = if wrapper.is_relevant { Kind::Plain } else { Kind::Wrapper };
    parts.push(Part { kind, ..part });
    Ok((parts, unsure))
}

/// Returns the command behind the options of a wrapper.
fn behind(wrapper: &Wrapper, part: &Part) -> Option<Part> {
    let mut words = part.words.iter().skip(1).peekable();
    let mut assignments = part.assignments.clone();
    while let Some(word) = words.peek() {
        let Some(text) = word.value() else { break };
        if text == "--" {
            words.next();
            break;
        }
        let assigns = wrapper.name == "env" && text.contains('=') && !text.starts_with('-');
        if assigns {
            let (name, value) = text.split_once('=')?;
            assignments.push((name.to_owned(), Word::known(value)));
        } else if !text.starts_with('-') {
            break;
        } else if wrapper.values.contains(&text) {
            words.next();
            words.peek()?.value()?;
        } else {
            let joined = wrapper.values.iter().any(|v| text.starts_with(v) && text.len() > v.len());
            let number = wrapper.name == "nice" && text[1..].bytes().all(|b| b.is_ascii_digit());
            if !wrapper.flags.contains(&text) && !joined && !number {
                return None;
            }
        }
        words.next();
    }
    for _ in 0..wrapper.operands {
        words.next()?.value()?;
    }
    let mut inner = Part { words: words.cloned().collect(), assignments, ..part.clone() };
    if wrapper.reads_stdin {
        inner.words.push(Word::unknown(""));
    }
    Some(inner)
}

/// Returns possible commands of a wrapper that is not understood, only for matching denials.
fn suffixes(part: &Part) -> Vec<Part> {
    let later = (1..part.words.len().min(16))
        .filter(|n| part.words[*n].certainty == super::Certainty::Known);
    later.map(|n| opaque(Part { words: part.words[n..].to_vec(), ..part.clone() })).collect()
}

/// Handles `find -exec` and similar: its command is examined, and the complete part is never plain.
fn unwrap_find(part: Part, depth: usize) -> Result<(Vec<Part>, Option<&'static str>), String> {
    const RUNS: &[&str] =
        &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
    let mut parts = Vec::new();
    let runs = |w: &Word| w.value().is_some_and(|v| RUNS.contains(&v));
    for at in part.words.iter().enumerate().filter(|(_, w)| runs(w)).map(|(n, _)| n) {
        let words = part.words.iter().skip(at + 1);
        let words: Vec<Word> = words
            .take_while(|w| w.value() != Some(";") && w.value() != Some("+"))
            .cloned()
            .collect();
        let inner = Part { words, redirections: vec![], ..part.clone() };
        parts.extend(unwrap(inner, depth + 1)?.0);
    }
    let outer = if parts.is_empty() { part } else { opaque(part) };
    parts.push(outer);
    Ok((parts, None))
}
