//! Text of a call that the audit stores, without secrets.

use cairn_protocol::approval::Preview;

use crate::{Call, CallPaths, Intent, registry::Entry};

/// Most characters of code that the audit stores.
const MAX_AUDITED: usize = 4000;

/// Returns what the audit stores of a call beside its tool: the command line, the code, or the
/// paths.
pub(super) fn subject(
    intent: Option<&Intent>,
    (entry, call): (&Entry, &Call),
    paths: &CallPaths,
) -> Option<String> {
    intent
        .and_then(|intent| shell_line(&intent.preview))
        .or_else(|| code(entry, call))
        .or_else(|| joined(paths))
}

/// Returns the command line that the audit stores.
fn shell_line(preview: &Preview) -> Option<String> {
    let command = preview.command.as_deref()?;
    let folder = preview.folder.as_deref().unwrap_or(".");
    Some(format!("{folder}$ {}", crate::redact::secrets(command)))
}

/// Returns the code that a tool runs, as the audit stores it.
fn code(entry: &Entry, call: &Call) -> Option<String> {
    let text = call.arguments.get(entry.spec.code?)?.as_str()?;
    Some(crate::redact::secrets(&text.chars().take(MAX_AUDITED).collect::<String>()))
}

/// Returns the paths of a call that the audit stores.
fn joined(paths: &CallPaths) -> Option<String> {
    let text = paths.texts().collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then(|| text.chars().take(MAX_AUDITED).collect())
}
