//! Work trees of sessions, and notifications of runs that go on without a client.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Work trees of sessions.
    WorktreesConfig "camelCase" {
        /// Command line that prepares a new work tree before its session starts; it runs in the
        /// sandbox. A project's file can name it in a trusted folder only.
        setup: Option<String> = None,
    }
}

section! {
    /// Notifications when an unattended run ends or waits for an answer.
    NotificationsConfig "camelCase" {
        /// Shows a notification on the desktop, by `notify-send` or `osascript`; also of other
        /// approvals that have waited for ten seconds.
        desktop: bool = false,
        /// Address to which each event is posted as JSON, signed as Standard Webhooks specifies.
        webhook: Option<String> = None,
        /// File with the secret of the signatures, which only its owner can read (mode 0600).
        webhook_secret_file: Option<PathBuf> = None,
        /// Program and arguments that print the secret, for a keychain.
        webhook_secret_command: Vec<String> = vec![],
        /// Allows a webhook at an address of this machine or of a private network, and `http`.
        webhook_private: bool = false,
    }
}

/// Returns true if a webhook may be at this address: `https`, or `http` in a private network.
pub(super) fn is_webhook(text: &str, is_private: bool) -> bool {
    let rest = match text.strip_prefix("http://").filter(|_| is_private) {
        Some(rest) => rest,
        None => text.strip_prefix("https://").unwrap_or_default(),
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty() && !host.contains('@') && !rest.contains(char::is_whitespace)
}
