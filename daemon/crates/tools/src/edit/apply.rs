//! Changes of several files that are applied all or not at all.

use cairn_harness::Permit;
use cairn_protocol::error::Failure;
use cairn_workspace::ResolvedPath;

use super::Change;
use crate::seen::Seen;

/// Applies the changes in order. If one fails, those before it are reverted.
///
/// # Errors
/// The error of the change that failed; a file that could not be restored is named in it.
pub fn apply_all(
    permit: &Permit,
    changes: Vec<(ResolvedPath, Change)>,
    seen: &Seen,
) -> Result<(), Failure> {
    let mut applied: Vec<(ResolvedPath, Change)> = Vec::new();
    for (target, change) in changes {
        match change.clone().apply(permit, &target, seen) {
            Ok(()) => applied.push((target, change)),
            Err(mut failure) => {
                for (target, change) in applied.into_iter().rev() {
                    let path = if change.before.is_some() { target.real() } else { target.entry() };
                    if let Err(why) = change.reverted(path).apply(permit, &target, seen) {
                        failure.message +=
                            &format!("; '{}' was not restored: {why}", target.real());
                    }
                }
                return Err(failure);
            }
        }
    }
    Ok(())
}
