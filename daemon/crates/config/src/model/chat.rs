//! The chat in a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// The chat in a terminal.
    ChatConfig "camelCase" {
        /// Colours for a dark or a light background; `auto` detects the terminal's.
        theme: ChatTheme = ChatTheme::Auto,
        /// Notification when the chat waits for the user and the terminal has no focus, or after
        /// ten seconds.
        notify: ChatNotify = ChatNotify::Auto,
        /// Mode of a new chat: `plan`, `ask`, `accept-edits` or `auto`.
        mode: ChatMode = ChatMode::Ask,
        /// Requests and shows the progress of reading the prompt.
        prompt_progress: bool = true,
    }
}

/// Background that colours are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatTheme {
    /// The background that the terminal reports.
    Auto,
    /// A dark background.
    Dark,
    /// A light background.
    Light,
}

/// Form of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatNotify {
    /// No notification.
    Off,
    /// The terminal's bell.
    Bell,
    /// The escape sequence OSC 9, for iTerm2, WezTerm, Ghostty, Kitty and others.
    Osc9,
    /// The escape sequence OSC 777, for terminals on VTE and urxvt.
    Osc777,
    /// The form that the terminal is known to have, else the bell.
    Auto,
}

/// Calls that need no approval, and whether anything may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChatMode {
    /// Nothing is changed.
    Plan,
    /// Every change needs an approval, unless a rule allows it.
    Ask,
    /// Edits of files need no approval.
    AcceptEdits,
    /// Edits of files, and commands in the sandbox, need no approval.
    Auto,
}
