//! Git's error output: progress, and the message of a failure.

use cairn_protocol::error::Reason;

/// Most bytes of git's message that are stored.
const MAX_WORDS: usize = 4 * 1024;
/// Longest line; longer ones are cut.
const MAX_LINE: usize = 1024;

/// Splits git's output into progress and message.
#[derive(Default)]
pub(super) struct Words {
    line: Vec<u8>,
    text: String,
}

impl Words {
    /// Appends bytes and passes each step of progress to `step`: the stage and 0 to 100.
    pub(super) fn feed(&mut self, bytes: &[u8], step: &mut dyn FnMut(&'static str, f64)) {
        for byte in bytes {
            if !matches!(byte, b'\r' | b'\n') {
                if self.line.len() < MAX_LINE {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim().to_owned();
            match parse(&line) {
                Some((stage, percent)) => step(stage, percent),
                None => self.append_message(&line),
            }
        }
    }

    fn append_message(&mut self, line: &str) {
        // The first line names the folder of the unfinished clone, which is of no use to the user.
        if line.is_empty()
            || line.starts_with("Cloning into ")
            || self.text.len() + line.len() > MAX_WORDS
        {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.extend(line.chars().filter(|c| !c.is_control()));
    }

    /// Returns the complete message, the last unfinished line included.
    pub(super) fn finish(mut self) -> String {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        self.append_message(line.trim());
        self.text
    }
}

/// Parses `Receiving objects:  45% (45/100)` and similar lines.
fn parse(line: &str) -> Option<(&'static str, f64)> {
    let line = line.strip_prefix("remote:").unwrap_or(line).trim_start();
    let (what, rest) = line.split_once(':')?;
    let stage = match what {
        "Enumerating objects" | "Counting objects" => "counting",
        "Compressing objects" => "compressing",
        "Receiving objects" => "receiving",
        "Resolving deltas" => "resolving",
        "Updating files" | "Checking out files" | "Filtering content" => "checkout",
        _ => return None,
    };
    let percent =
        rest.split_once('%').and_then(|(n, _)| n.trim().parse::<f64>().ok()).unwrap_or(0.0);
    Some((stage, percent.clamp(0.0, 100.0)))
}

/// Maps git's message to a reason.
pub(super) fn reason(words: &str) -> Reason {
    const WANTS_LOGIN: [&str; 11] = [
        "unable to get password from user",
        "terminal prompts disabled",
        "authentication failed",
        "could not read username",
        "could not read password",
        "permission denied (",
        "host key verification failed",
        "returned error: 401",
        "returned error: 403",
        "invalid credentials",
        "access denied",
    ];
    let words = words.to_ascii_lowercase();
    match WANTS_LOGIN.iter().any(|w| words.contains(w)) {
        true => Reason::AuthenticationRequired,
        false if words.contains("no space left on device") => Reason::DiskFull,
        false => Reason::CloneFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_and_messages_are_distinguished() {
        let mut words = Words::default();
        let mut steps = vec![];
        let text =
            b"Cloning into 'x'...\nremote: Counting objects: 100% (9/9), done.\nReceiving obj";
        words.feed(text, &mut |s, p| steps.push((s, p)));
        words.feed(
            b"ects:  45% (45/100)\rResolving deltas:   7% (1/9)\rfatal: it broke",
            &mut |s, p| steps.push((s, p)),
        );
        assert_eq!(steps, [("counting", 100.0), ("receiving", 45.0), ("resolving", 7.0)]);
        assert_eq!(words.finish(), "fatal: it broke");
        let mut long = Words::default();
        long.feed(&vec![b'x'; 1 << 20], &mut |_, _| {});
        long.feed(&b"\nline\n".repeat(10_000), &mut |_, _| {});
        assert!(long.finish().len() < 3 * MAX_WORDS);
    }

    #[test]
    fn classifies_failures_by_message() {
        for (words, want) in [
            (
                "fatal: could not read Username for 'https://h': terminal prompts disabled",
                Reason::AuthenticationRequired,
            ),
            ("git@h: Permission denied (publickey).", Reason::AuthenticationRequired),
            ("The requested URL returned error: 403", Reason::AuthenticationRequired),
            ("fatal: write error: No space left on device", Reason::DiskFull),
            ("fatal: repository 'x' not found", Reason::CloneFailed),
        ] {
            assert_eq!(reason(words), want, "{words}");
        }
    }
}
