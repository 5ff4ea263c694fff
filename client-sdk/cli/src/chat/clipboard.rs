//! The clipboard, read through the programs that the desktop has for it.

use std::{process::Stdio, time::Duration};

use tokio::{io::AsyncReadExt as _, process::Command};

use super::images::{Image, MAX_IMAGE};
use crate::exit::Failure;

/// Most time that a program has for its answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Programs for an image, with their arguments.
const IMAGE_PROGRAMS: &[&[&str]] = &[
    &["wl-paste", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
    &["pngpaste", "-"],
];
/// Programs for a text, with their arguments.
const TEXT_PROGRAMS: &[&[&str]] =
    &[&["wl-paste", "--no-newline"], &["xclip", "-selection", "clipboard", "-out"], &["pbpaste"]];

/// The content of the clipboard.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    Image(Image),
    Text(String),
}

/// Reads the clipboard: an image, else its text.
///
/// # Errors
/// A failure if there is no program for it, or nothing in the clipboard.
pub async fn read() -> Result<Content, Failure> {
    if let Some(bytes) = first_answer(IMAGE_PROGRAMS).await {
        return Image::of_bytes("clipboard".into(), &bytes).map(Content::Image);
    }
    match first_answer(TEXT_PROGRAMS).await.map(String::from_utf8) {
        Some(Ok(text)) => Ok(Content::Text(text)),
        Some(Err(_)) => Err(Failure::failed("the clipboard has neither a picture nor text")),
        None => Err(Failure::failed("the clipboard is empty or cannot be read")
            .hint("install wl-clipboard or xclip (on macOS pngpaste), or use /image PATH")),
    }
}

/// Returns the first answer that is not empty.
async fn first_answer(programs: &[&[&str]]) -> Option<Vec<u8>> {
    for line in programs {
        let (program, arguments) = line.split_first()?;
        let answer = tokio::time::timeout(TIMEOUT, output(program, arguments)).await;
        if let Ok(Some(bytes)) = answer {
            return Some(bytes);
        }
    }
    None
}

/// Returns what a program prints if it succeeds, at most one byte more than an image may have.
async fn output(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().ok()?;
    let mut bytes = Vec::new();
    child.stdout.take()?.take(MAX_IMAGE + 1).read_to_end(&mut bytes).await.ok()?;
    let is_cut = bytes.len() as u64 > MAX_IMAGE;
    let is_success = is_cut || child.wait().await.is_ok_and(|status| status.success());
    (is_success && !bytes.is_empty()).then_some(bytes)
}
