//! Notifications on the desktop, by the program of the system. Texts of models and files are
//! arguments of it, never part of a script.

use std::{process::Stdio, time::Duration};

use tokio::process::Command;

/// Time limit of the program.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Most characters of a text.
const MAX_TEXT: usize = 300;

/// A script that shows its arguments: the title and the text.
const APPLE_SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/// Shows a notification; a failure is logged.
pub async fn notify(title: &str, text: &str) {
    let (program, arguments) = command_line(std::env::consts::OS, title, text);
    let mut command = Command::new(program);
    command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true);
    let status = async { command.spawn()?.wait().await };
    match tokio::time::timeout(TIMEOUT, status).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!("{program} showed no notification: {status}"),
        Ok(Err(error)) => tracing::warn!("{program} showed no notification: {error}"),
        Err(_) => tracing::warn!("{program} took longer than {} s", TIMEOUT.as_secs()),
    }
}

/// Returns the program of an operating system and its arguments.
fn command_line(system: &str, title: &str, text: &str) -> (&'static str, Vec<String>) {
    if system == "macos" {
        let (title, text) = (plain(title), plain(text));
        return ("osascript", vec!["-e".into(), APPLE_SCRIPT.into(), "--".into(), title, text]);
    }
    // The text may have markup; the title may not.
    let arguments = ["--app-name=Cairn", "--"].map(str::to_owned);
    let texts = [plain(title), escape(&plain(text))];
    ("notify-send", arguments.into_iter().chain(texts).collect())
}

/// Removes control characters except line ends, and cuts the text.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || *c == '\n').take(MAX_TEXT).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_arguments_without_meaning() {
        let hostile = "--icon=x $(id) `id` \"; rm -rf / <b>\u{1b}[2J\u{7}";
        let (program, arguments) = command_line("linux", hostile, hostile);
        assert_eq!(program, "notify-send");
        assert_eq!(
            arguments,
            [
                "--app-name=Cairn",
                "--",
                "--icon=x $(id) `id` \"; rm -rf / <b>[2J",
                "--icon=x $(id) `id` \"; rm -rf / &lt;b&gt;[2J",
            ]
        );
        let (program, arguments) = command_line("macos", "\" & (do shell script \"id\")", "b");
        assert_eq!(program, "osascript");
        assert_eq!(arguments, ["-e", APPLE_SCRIPT, "--", "\" & (do shell script \"id\")", "b"]);
        let long = command_line("linux", &"x".repeat(5000), "").1;
        assert_eq!(long[2].len(), MAX_TEXT);
    }
}
