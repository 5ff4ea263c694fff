//! Denials and permissions by the mode of a run.

use cairn_protocol::turn::ExecutionMode;

use super::Subject;
use crate::{DecidedBy, ToolEffect};

/// Returns the denial of a change by a run that only plans.
pub(super) fn changes_in_plan(subject: &Subject<'_>) -> Option<DecidedBy> {
    let changes = !subject.read_only && !subject.delegates;
    (subject.grants.mode == ExecutionMode::Plan && changes)
        .then_some(DecidedBy::Mode(ExecutionMode::Plan))
}

/// Returns true if the mode of the run replaces the approval that the default requires.
pub(super) fn mode_allows(subject: &Subject<'_>) -> bool {
    let inside = subject.inside;
    match (subject.grants.mode, subject.effect) {
        (ExecutionMode::Plan | ExecutionMode::Ask, _) => false,
        (ExecutionMode::AcceptEdits, effect) => effect == ToolEffect::Edit && inside,
        (ExecutionMode::Auto, ToolEffect::Edit | ToolEffect::Remove) => inside,
        (ExecutionMode::Auto, ToolEffect::Any) => subject.command.is_some() && subject.confined,
    }
}
