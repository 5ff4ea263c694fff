//! `apply_patch`: changes of several files in the form that models are trained on, applied all or
//! not at all.

mod hunks;
mod names;
mod parse;
mod unified;

use std::{collections::BTreeSet, sync::Arc};

use cairn_harness::{Caller, Intent, MustAsk, Output, Permit, Rule, Tool, ToolSpec, arguments};
use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::{MAX_WRITTEN_BYTES, ResolvedPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Deps,
    edit::{self, Change, DeleteFile, EditFile, ModeChange, Plan as _},
    reading,
};
use parse::{Destination, FilePatch, Hunk};

/// Arguments of the tool `apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatch {
    /// The patch: `*** Begin Patch` … `*** End Patch`, or a unified diff.
    patch: String,
}

struct PatchTool(Deps);

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(PatchTool(deps.clone()))]
}

/// The changes of a patch.
#[derive(Default)]
struct Planned {
    changes: Vec<(ResolvedPath, Change)>,
    must_ask: Option<MustAsk>,
    /// Places that were found without regard to white space.
    notes: Vec<String>,
}

impl Planned {
    fn add(&mut self, target: ResolvedPath, change: Change, why: Option<MustAsk>) {
        self.changes.push((target, change));
        self.must_ask = match (self.must_ask.take(), why) {
            (Some(earlier), Some(why)) => Some(earlier.stricter(why)),
            (earlier, why) => earlier.or(why),
        };
    }

    fn delete(
        &mut self,
        target: ResolvedPath,
        before: Vec<u8>,
        why: Option<MustAsk>,
    ) -> Result<(), Failure> {
        let executable = target.root().is_executable(target.real())?;
        let mode = ModeChange { before: Some(executable), after: executable };
        let change = Change::delete(target.entry(), before).with_mode(mode);
        self.add(target, change, why);
        Ok(())
    }

    fn note_mode(&mut self, path: &str) {
        self.notes.push(format!("undoing the turn does not restore the mode of '{path}'"));
    }
}

/// Returns the tools whose rules apply to the change of a file, each with its path.
fn effects(file: &FilePatch) -> Vec<(&'static str, &str)> {
    match file {
        FilePatch::Add { path, .. } => vec![("write_file", path)],
        FilePatch::Delete { path, .. } => vec![("delete_file", path)],
        FilePatch::Update { path, to: None, .. } => vec![("edit_file", path)],
        FilePatch::Update { path, to: Some(to), .. } if to.is_copy => {
            vec![("read_file", path), ("write_file", &to.path)]
        }
        FilePatch::Update { path, to: Some(to), .. } => {
            vec![("edit_file", path), ("delete_file", path), ("write_file", &to.path)]
        }
    }
}

fn read(target: &ResolvedPath) -> Result<Option<Vec<u8>>, Failure> {
    Ok(target.root().read_file(target.real(), MAX_WRITTEN_BYTES)?)
}

fn exists(target: &ResolvedPath) -> Failure {
    let text = format!("'{}' exists already: update it instead of adding it", target.real());
    Failure::new(Reason::InvalidParams, text)
}

/// Refuses to delete a file whose content is not the one that the patch deletes.
fn check_deleted(rel: &str, before: &[u8], hunks: &[Hunk]) -> Result<(), Failure> {
    let after =
        if hunks.is_empty() { before.to_vec() } else { hunks::apply(rel, before, hunks)?.0 };
    let is_empty = cairn_workspace::TextFile::parse(&after).is_some_and(|f| f.text().is_empty());
    if is_empty {
        return Ok(());
    }
    let text = format!("the patch deletes '{rel}', which has more content than the patch");
    Err(Failure::new(Reason::InvalidParams, text))
}

impl PatchTool {
    fn plan(
        &self,
        session: &SessionId,
        files: &[FilePatch],
        locate: &dyn Fn(&str) -> Result<ResolvedPath, Failure>,
    ) -> Result<Planned, Failure> {
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        let mut planned = Planned::default();
        let mut named = BTreeSet::new();
        for file in files {
            let (path, to) = match file {
                FilePatch::Update { path, to, .. } => (path, to.as_ref()),
                FilePatch::Add { path, .. } | FilePatch::Delete { path, .. } => (path, None),
            };
            let target = locate(path)?;
            let is_copied = to.is_some_and(|to| to.is_copy);
            let to = to.map(|to| locate(&to.path)).transpose()?;
            // The source of a copy may be changed by another part of the patch.
            let source = (!is_copied).then_some(&target);
            for target in [source, to.as_ref()].into_iter().flatten() {
                if !named.insert(target.real().to_owned()) {
                    return Err(bad(format!("the patch names '{}' twice", target.real())));
                }
            }
            self.plan_file(session, file, (target, to), &mut planned)?;
        }
        // A folder may take the place of a file.
        planned.changes.sort_by_key(|(_, change)| change.after.is_some());
        Ok(planned)
    }

    fn plan_file(
        &self,
        session: &SessionId,
        file: &FilePatch,
        (target, to): (ResolvedPath, Option<ResolvedPath>),
        planned: &mut Planned,
    ) -> Result<(), Failure> {
        let before = read(&target)?;
        let rel = target.real().to_owned();
        let seen = before.as_deref().is_some_and(|b| self.0.seen.knows(session, &rel, b));
        let missing = || Failure::new(Reason::PathNotFound, format!("'{rel}' does not exist"));
        match file {
            FilePatch::Add { .. } if before.is_some() => return Err(exists(&target)),
            FilePatch::Add { content, executable, .. } => {
                let change = Change::replace(&rel, None, content.clone().into_bytes());
                let mode = ModeChange { before: None, after: *executable };
                planned.add(target, change.with_mode(mode), None);
            }
            FilePatch::Delete { hunks, .. } => {
                let before = before.ok_or_else(missing)?;
                if let Some(hunks) = hunks {
                    check_deleted(&rel, &before, hunks)?;
                }
                planned.delete(target, before, DeleteFile::must_ask(seen, None))?;
            }
            FilePatch::Update { hunks, to: destination, executable, .. } => {
                let before = before.ok_or_else(missing)?;
                let why = EditFile::must_ask(seen, Some(&before));
                let (after, notes) = match hunks[..] {
                    [] => (before.clone(), vec![]),
                    _ => hunks::apply(&rel, &before, hunks)?,
                };
                planned.notes.extend(notes);
                let now = target.root().is_executable(&rel)?;
                let mode = ModeChange { before: Some(now), after: executable.unwrap_or(now) };
                match to.zip(destination.as_ref()) {
                    None => {
                        let change = Change::replace(&rel, Some(before), after);
                        let change = if executable.is_some() {
                            planned.note_mode(&rel);
                            change.with_mode(mode)
                        } else {
                            change
                        };
                        planned.add(target, change, why);
                    }
                    Some((to, Destination { is_copy, .. })) => {
                        if read(&to)?.is_some() {
                            return Err(exists(&to));
                        }
                        let created = Change::replace(to.real(), None, after);
                        let new_mode = ModeChange { before: None, ..mode };
                        planned.add(to, created.with_mode(new_mode), why);
                        if !is_copy {
                            planned.delete(target, before, DeleteFile::must_ask(seen, None))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Tool for PatchTool {
    fn spec(&self) -> ToolSpec {
        let text = "Changes several files in one call, all or none. The patch has the form \
            `*** Begin Patch`, then for each file `*** Update File: PATH` with hunks (`@@` and a line \
            above the change if its place is not unique; then lines with ' ', '-' or '+'), \
            `*** Add File: PATH` with '+' lines, or `*** Delete File: PATH`, and `*** End Patch`. \
            Unified diffs of git, GNU diff and svn are accepted too.";
        ToolSpec {
            paths: &[],
            timeout: self.0.after_edit.call_timeout(),
            ..ToolSpec::writing::<ApplyPatch>("apply_patch", text)
        }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        // A patch that cannot be parsed is not applied either.
        let text = value.get("patch").and_then(Value::as_str).unwrap_or_default();
        let files = parse::parse(text).unwrap_or_default();
        let effects = files.iter().flat_map(effects);
        effects.map(|(tool, path)| (tool, json!({"path": path}))).collect()
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let args: ApplyPatch = arguments(value.clone())?;
        let files = parse::parse(&args.patch)?;
        let planned = self.plan(caller.session, &files, &|path| caller.own_path(path))?;
        let kinds: BTreeSet<&str> = files.iter().flat_map(effects).map(|(tool, _)| tool).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let edits_read_content = planned.must_ask.is_none() && kinds == [EditFile::NAME];
        let patterns = edit::folder_pattern(&planned.changes, &kinds).into_iter().collect();
        let intent = edit::intent_of(&planned.changes, "apply_patch", planned.must_ask);
        let grants = kinds.iter().map(|tool| Rule::of_tool(tool)).collect();
        Ok(Intent { grants, patterns, edits_read_content, ..intent })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let args: ApplyPatch = arguments(value)?;
        let tool = Self(self.0.clone());
        let (permit, planned) = reading::off_thread(move || {
            let files = parse::parse(&args.patch)?;
            let locate = |path: &str| permit.resolve_own(path);
            let planned = tool.plan(permit.session(), &files, &locate)?;
            edit::require_same(&permit, &planned.changes)?;
            Ok((permit, planned))
        })
        .await?;
        let checked = self.0.after_edit.before(&permit, &planned.changes).await;
        let tool = Self(self.0.clone());
        let (permit, targets, output) = reading::off_thread(move || {
            let results: Vec<Value> =
                planned.changes.iter().map(|(_, change)| change.result()).collect();
            let targets: Vec<ResolvedPath> =
                planned.changes.iter().map(|(target, _)| target.clone()).collect();
            edit::apply_all(&permit, planned.changes, &tool.0.seen)?;
            let mut value = json!({"success": true, "changes": results});
            if !planned.notes.is_empty() {
                value["notes"] = planned.notes.into();
            }
            Ok((permit, targets, Output::of("patch", &value, false)?))
        })
        .await?;
        Ok(self.0.after_edit.run(&permit, &targets, &self.0.seen, checked, output).await)
    }
}
