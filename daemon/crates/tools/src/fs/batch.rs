//! Many operations: the order in which they are executed, the resulting changes, and the report.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_harness::{Caller, MustAsk, Output, Permit, arguments};
use cairn_protocol::error::{Failure, Reason};
use cairn_search::CancelFlag;
use cairn_workspace::{MAX_WRITTEN_BYTES, ResolvedPath};
use serde_json::{Value, json};

use super::{Action, FsEdit, FsRequest, Op, look_at};
use crate::{
    Deps,
    edit::{self, Change, Plan},
    look,
};

/// Most operations of a call.
pub const MAX_OPS: usize = 50;
/// Most files that a call's operations may name.
pub const MAX_FILES: usize = 20;
/// Most bytes of one operation's result that a report contains.
const MAX_READ: usize = 2048;

/// Files as they were when the call was first planned.
#[derive(Default)]
pub struct Files(BTreeMap<String, Option<Vec<u8>>>);

impl Files {
    fn original(&mut self, target: &ResolvedPath) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(known) = self.0.get(target.real()) {
            return Ok(known.clone());
        }
        let content = target.root().read_file(target.real(), MAX_WRITTEN_BYTES)?;
        self.0.insert(target.real().to_owned(), content.clone());
        Ok(content)
    }
}

/// A file that the call changes.
struct Touched {
    target: ResolvedPath,
    before: Option<Vec<u8>>,
    now: Option<Vec<u8>>,
    /// The first line that an edit changed since the complete file was written.
    below: Option<usize>,
    /// Facts about the form of the file that the caller should know.
    notes: Vec<String>,
}

/// Outcome of an operation.
enum Step {
    /// Reported with this text and the content that it read.
    Done(String, Option<(Value, bool)>),
    Failed(Failure),
    NotRun,
}

/// Reader of files while a call is executed.
type Look<'a> = &'a dyn Fn(&Op) -> Result<(Value, bool), Failure>;

/// Planned operations of a call, and the files they change.
#[derive(Default)]
pub struct Batch {
    steps: Vec<Step>,
    touched: Vec<Touched>,
    must_ask: Option<MustAsk>,
}

impl Batch {
    /// Plans the call; nothing is changed. Without `look` read-only operations are skipped.
    pub fn plan(
        deps: &Deps,
        caller: &Caller<'_>,
        request: &FsRequest,
        files: &mut Files,
        look: Option<Look<'_>>,
    ) -> Self {
        let ops = request.ops();
        let mut batch =
            Self { steps: ops.iter().map(|_| Step::NotRun).collect(), ..Self::default() };
        for at in order(ops) {
            let step = match batch.step(deps, caller, &ops[at], files, look) {
                Ok((message, read)) => Step::Done(message, read),
                Err(failure) => Step::Failed(failure),
            };
            let stop = matches!(step, Step::Failed(_)) && !request.continues_on_error();
            batch.steps[at] = step;
            if stop {
                break;
            }
        }
        batch
    }

    fn step(
        &mut self,
        deps: &Deps,
        caller: &Caller<'_>,
        op: &Op,
        files: &mut Files,
        look: Option<Look<'_>>,
    ) -> Result<(String, Option<(Value, bool)>), Failure> {
        if op.action == Action::Read
            && let Ok(target) = caller.own_path(op.path())
            && let Some(file) = self.touched.iter().find(|t| t.target.real() == target.real())
        {
            let rel = target.real();
            // The file as the call has changed it so far.
            let missing =
                || Failure::new(Reason::PathNotFound, format!("'{rel}' no longer exists"));
            let content = file.now.as_deref().ok_or_else(missing)?;
            return Ok((
                "ok".into(),
                Some(look::render_file(rel, content, &arguments(op.arguments.clone())?)),
            ));
        }
        if !op.action.changes() {
            return Ok(("ok".into(), look.map(|look| look(op)).transpose()?));
        }
        let target = caller.own_path(op.path())?;
        let rel = if op.action == Action::Delete { target.entry() } else { target.real() };
        let earlier = self.touched.iter().position(|t| t.target.real() == target.real());
        let (before, now, below) = match earlier.map(|at| &self.touched[at]) {
            Some(t) => (t.before.clone(), t.now.clone(), t.below),
            None => {
                let original = files.original(&target)?;
                (original.clone(), original, None)
            }
        };
        let first = earlier.is_none();
        let seen =
            now.as_deref().is_some_and(|b| deps.seen.knows(caller.session, target.real(), b));
        let worked = work_out(op, rel, now.clone(), seen, below)?;
        let Worked { now, why, below, message, notes } = worked;
        // Content that the call itself has written is known to it.
        let deletes = op.action == Action::Delete;
        let why = why.filter(|_| first || deletes);
        self.must_ask = match (self.must_ask.take(), why) {
            (Some(earlier), Some(why)) => Some(earlier.stricter(why)),
            (earlier, why) => earlier.or(why),
        };
        let file = Touched { target, before, now, below, notes };
        match earlier {
            Some(at) => self.touched[at] = file,
            None => self.touched.push(file),
        }
        Ok((message, None))
    }

    /// Returns the changes, one for each file.
    pub fn changes(&self) -> Vec<(ResolvedPath, Change)> {
        let change = |t: &Touched| match (&t.before, &t.now) {
            (before, Some(now)) => {
                let mut change = Change::replace(t.target.real(), before.clone(), now.clone());
                change.notes.clone_from(&t.notes);
                Some(change)
            }
            (Some(before), None) => Some(Change::delete(t.target.entry(), before.clone())),
            (None, None) => None,
        };
        let net = self.touched.iter().filter(|t| t.before != t.now);
        net.filter_map(|t| Some((t.target.clone(), change(t)?))).collect()
    }

    /// Returns the reason why this call needs an approval.
    pub fn must_ask(&self) -> Option<MustAsk> {
        self.must_ask.clone()
    }

    /// Returns the failure of the first operation that cannot be executed.
    pub fn first_failure(&self) -> Option<Failure> {
        let many = self.steps.len() > 1;
        self.steps.iter().enumerate().find_map(|(at, step)| match step {
            Step::Failed(f) if many => {
                Some(Failure { message: format!("op {}: {}", at + 1, f.message), ..f.clone() })
            }
            Step::Failed(f) => Some(f.clone()),
            _ => None,
        })
    }
}

/// Planned effect of an operation on a file.
struct Worked {
    now: Option<Vec<u8>>,
    why: Option<MustAsk>,
    below: Option<usize>,
    message: String,
    notes: Vec<String>,
}

fn with_notes(message: String, notes: &[String]) -> String {
    if notes.is_empty() { message } else { format!("{message} ({})", notes.join("; ")) }
}

/// Plans an operation on a file.
fn work_out(
    op: &Op,
    rel: &str,
    now: Option<Vec<u8>>,
    seen: bool,
    below: Option<usize>,
) -> Result<Worked, Failure> {
    if op.action == Action::Edit {
        let edit: FsEdit = arguments(op.arguments.clone())?;
        let missing = || {
            Failure::new(
                Reason::PathNotFound,
                format!("'{rel}' does not exist; the action write creates it"),
            )
        };
        let why = edit::EditFile::must_ask(seen, now.as_deref());
        let edited = edit.make(now.ok_or_else(missing)?, below)?;
        if edited.content.len() as u64 > MAX_WRITTEN_BYTES {
            return Err(Failure::new(
                Reason::TooLarge,
                format!("'{rel}' would have {} bytes", edited.content.len()),
            ));
        }
        let below = edited.lines.map(|(first, _)| first).or(below);
        let mut message = format!("ok, {} replaced", edited.replacements);
        if let Some(matched) = edited.matched {
            message += &format!(", matched with other white space: {matched}");
        }
        let message = with_notes(message, &edited.notes);
        return Ok(Worked { now: Some(edited.content), why, below, message, notes: edited.notes });
    }
    if op.action == Action::Delete {
        let delete: edit::DeleteFile = arguments(op.arguments.clone())?;
        let why = edit::DeleteFile::must_ask(seen, now.as_deref());
        let now = delete.plan(rel, now)?.after;
        let message = "ok, deleted".to_owned();
        return Ok(Worked { now, why, below: None, message, notes: vec![] });
    }
    let write: edit::WriteFile = arguments(op.arguments.clone())?;
    let why = edit::WriteFile::must_ask(seen, now.as_deref());
    let change = write.plan(rel, now)?;
    let bytes = change.after.as_ref().map_or(0, Vec::len);
    let message = with_notes(format!("ok, {bytes} bytes"), &change.notes);
    Ok(Worked { now: change.after, why, below: None, message, notes: change.notes })
}

/// Returns the order of execution: as given, except that operations on one file are reordered among
/// themselves, from its first edit to the operation that writes or deletes it: edits by lines from
/// the bottom up, so that their line numbers stay valid, then the other edits, then reads of it.
fn order(ops: &[Op]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ops.len()).collect();
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut assign_slots = |group: Vec<usize>| {
        let key = |at: &usize| {
            let line = ops[*at].arguments.get("start_line").and_then(Value::as_u64);
            (ops[*at].action == Action::Read, std::cmp::Reverse(line))
        };
        let mut sorted = group.clone();
        // A stable sort; of edits the largest line first, those without one last.
        sorted.sort_by_key(key);
        group.into_iter().zip(sorted).for_each(|(slot, at)| order[slot] = at);
    };
    for (at, op) in ops.iter().enumerate().filter(|(_, op)| op.action.names_file()) {
        let path = op.path().trim_start_matches("./").to_owned();
        match op.action {
            Action::Edit => groups.entry(path).or_default().push(at),
            Action::Read => groups.get_mut(&path).map_or((), |group| group.push(at)),
            _ => groups.remove(&path).map_or((), &mut assign_slots),
        }
    }
    groups.into_values().for_each(assign_slots);
    order
}

/// Returns the changes that a call would make, for the check of its files. Blocks.
pub fn planned(deps: &Deps, permit: &Permit, request: &FsRequest) -> Vec<(ResolvedPath, Change)> {
    if deps.after_edit.servers.is_none() || !request.ops().iter().any(|op| op.action.changes()) {
        return vec![];
    }
    let caller = Caller { session: permit.session(), root: permit.root(), paths: permit.paths() };
    Batch::plan(deps, &caller, request, &mut Files::default(), None).changes()
}

/// Executes a call whose operations change something, or of which there are many.
///
/// # Errors
/// Errors of a single operation; `file_changed` when the changes are not the approved ones.
pub fn run(
    deps: &Deps,
    permit: &Permit,
    request: &FsRequest,
    flag: &CancelFlag,
) -> Result<Output, Failure> {
    let caller = Caller { session: permit.session(), root: permit.root(), paths: permit.paths() };
    let mut files = Files::default();
    let planned = Batch::plan(deps, &caller, request, &mut files, None);
    edit::require_same(permit, &planned.changes())?;
    let look = |op: &Op| look_at(deps, permit, op, flag);
    let mut batch = Batch::plan(deps, &caller, request, &mut files, Some(&look));
    let changes = batch.changes();
    let many = matches!(request, FsRequest::Many { .. });
    if let (false, Some(failure)) = (many, batch.first_failure()) {
        return Err(failure);
    }
    let result = changes.first().map(|(_, change)| change.result());
    for (target, change) in changes {
        if let Err(failure) = change.apply(permit, &target, &deps.seen) {
            if !many {
                return Err(failure);
            }
            batch.lost(&caller, request.ops(), &target, &failure);
            if !request.continues_on_error() {
                break;
            }
        }
    }
    if !many {
        return Output::of(
            "file_change",
            &result.unwrap_or_else(|| json!({"success": true, "unchanged": true})),
            false,
        );
    }
    let (text, cut) = batch.report(request.ops());
    let failed = batch.steps.iter().filter(|s| matches!(s, Step::Failed(_))).count();
    let value =
        json!({"content": text, "success": failed == 0, "failed": failed, "truncated": cut});
    Output::of("batch", &value, cut)
}

impl Batch {
    /// Marks the operations on a file that could not be written as failed.
    fn lost(&mut self, caller: &Caller<'_>, ops: &[Op], target: &ResolvedPath, failure: &Failure) {
        for (op, step) in ops.iter().zip(&mut self.steps) {
            let same = caller.own_path(op.path()).is_ok_and(|own| own.real() == target.real());
            if op.action.changes() && same && matches!(step, Step::Done(..)) {
                *step = Step::Failed(failure.clone());
            }
        }
    }

    fn report(&self, ops: &[Op]) -> (String, bool) {
        let mut files: Vec<&str> = Vec::new();
        for op in ops.iter().filter(|op| op.action.names_file()) {
            if !files.contains(&op.path()) {
                files.push(op.path());
            }
        }
        let mut text = format!(
            "batch: {} ops across {} files ({})\n",
            ops.len(),
            files.len(),
            files.join(", ")
        );
        let mut cut = false;
        for (at, (op, step)) in ops.iter().zip(&self.steps).enumerate() {
            let _ok = write!(text, "{}. {} {}: ", at + 1, op.action.word(), op.path());
            let _ok = match step {
                Step::NotRun => writeln!(text, "not run"),
                Step::Failed(f) => writeln!(text, "error {}: {}", f.reason.as_str(), f.message),
                Step::Done(message, None) => writeln!(text, "{message}"),
                Step::Done(message, Some((value, clipped))) => {
                    let content = value.get("content").and_then(Value::as_str);
                    let content = content.map_or_else(|| value.to_string(), str::to_owned);
                    let (excerpt, more) = clip(&content);
                    cut |= more || *clipped;
                    let note = if more {
                        format!(
                            "\n[truncated at {MAX_READ} bytes: read it separately for the rest]"
                        )
                    } else {
                        String::new()
                    };
                    writeln!(text, "{message}\n{}{note}", excerpt.trim_end())
                }
            };
        }
        (text, cut)
    }
}

fn clip(text: &str) -> (&str, bool) {
    if text.len() <= MAX_READ {
        return (text, false);
    }
    let mut end = MAX_READ;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_a_file_are_applied_bottom_up() {
        let ops = |all: Value| {
            all.as_array().unwrap().iter().map(|v| Op::read(v).unwrap()).collect::<Vec<_>>()
        };
        let edit =
            |path: &str, line: u64| json!({"action": "edit", "path": path, "start_line": line});
        let text = |path: &str| json!({"action": "edit", "path": path, "old_text": "x"});
        let other = |action: &str, path: &str| json!({"action": action, "path": path});
        for (all, want) in [
            (json!([edit("a", 1), edit("b", 5), edit("a", 9), edit("b", 7)]), vec![2, 3, 0, 1]),
            (json!([text("a"), edit("./a", 1), edit("a", 2)]), vec![2, 1, 0]),
            (
                json!([other("read", "a"), edit("a", 1), other("read", "a"), edit("a", 2)]),
                vec![0, 3, 1, 2],
            ),
            (json!([edit("a", 1), other("write", "a"), edit("a", 2)]), vec![0, 1, 2]),
            (json!([edit("a", 1), other("list", "a"), edit("a", 2)]), vec![2, 1, 0]),
            (json!([edit("a", 1), other("write", "b"), edit("a", 2)]), vec![2, 1, 0]),
        ] {
            assert_eq!(order(&ops(all.clone())), want, "{all}");
        }
    }

    #[test]
    fn output_is_truncated_at_char_boundary() {
        let text = format!("{}ä", "x".repeat(MAX_READ - 1));
        assert_eq!(clip(&text), (&text[..MAX_READ - 1], true));
        assert_eq!(clip("abc"), ("abc", false));
    }
}
