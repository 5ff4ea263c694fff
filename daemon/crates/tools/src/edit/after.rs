//! Steps after an edit: the user's formatter for the file's kind, and a check by a language server
//! or the user's command. All come from the user's own configuration and run in the sandbox, without
//! the network.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cairn_harness::{Output, Permit, sandbox::Confined};
use cairn_workspace::{MAX_WRITTEN_BYTES, ResolvedPath};
use serde_json::{Map, Value, json};

use crate::{
    lsp::{CheckedEdit, EditedFile, LanguageServers},
    seen::Seen,
};

use super::Change;

/// Most characters of a step's output that the model receives.
const MAX_OUTPUT: usize = 4000;
/// Most files that are formatted after one edit.
const MAX_FORMATTED: usize = 20;

/// Formatters and a check that run after each edit.
#[derive(Debug, Clone, Default)]
pub struct AfterEdit {
    /// Commands by the extension of a file, whose path is their last argument.
    pub formatters: BTreeMap<String, Vec<String>>,
    /// Language servers, which check the edited files.
    pub servers: Option<LanguageServers>,
    /// True if files must have a server: its absence is then reported.
    pub requires_servers: bool,
    /// Command line that checks the project, if a file has no answer of a server.
    pub check: Option<String>,
    /// Time limit of each.
    pub timeout: Duration,
}

/// Time limit of a call without steps after it.
const CALL: Duration = Duration::from_secs(30);

impl AfterEdit {
    /// Returns the time limit of a call that edits files.
    pub fn call_timeout(&self) -> Duration {
        let steps = MAX_FORMATTED * usize::from(!self.formatters.is_empty())
            + usize::from(self.check.is_some());
        let wait = self.servers.as_ref().map_or(Duration::ZERO, LanguageServers::wait);
        CALL + wait + self.timeout * u32::try_from(steps).unwrap_or(0)
    }

    /// Prepares the check of files that will be edited.
    pub async fn before(
        &self,
        permit: &Permit,
        changes: &[(ResolvedPath, Change)],
    ) -> Option<CheckedEdit> {
        let servers = self.servers.as_ref()?;
        let file = |(target, change): &(ResolvedPath, Change)| EditedFile {
            target: target.clone(),
            before: change.before.clone(),
        };
        Some(servers.before(permit, changes.iter().map(file).collect()).await)
    }

    /// Runs the steps for edited files and adds their results to the answer of the edit, which has
    /// succeeded in any case.
    pub async fn run(
        &self,
        permit: &Permit,
        files: &[ResolvedPath],
        seen: &Seen,
        checked: Option<CheckedEdit>,
        mut output: Output,
    ) -> Output {
        let mut formatted = Vec::new();
        let mut distinct = BTreeSet::new();
        for target in files.iter().filter(|target| distinct.insert(target.real())) {
            if formatted.len() < MAX_FORMATTED {
                formatted.extend(self.format(permit, target, seen).await);
            }
        }
        let diagnostics = self.check(permit, files, checked).await;
        let Some(fields) = output.value.as_object_mut() else { return output };
        if !formatted.is_empty() {
            fields.insert("formatter".into(), formatted.into());
        }
        if !diagnostics.is_empty() {
            fields.insert("diagnostics".into(), diagnostics.into());
        }
        output
    }

    /// Returns the new problems by the servers, and the result of the command for files without
    /// one.
    async fn check(
        &self,
        permit: &Permit,
        files: &[ResolvedPath],
        checked: Option<CheckedEdit>,
    ) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut has_unchecked = true;
        if let (Some(servers), Some(checked)) = (&self.servers, checked) {
            let report = servers.after(permit, checked).await;
            has_unchecked = report.has_unchecked();
            fields = report.fields(self.requires_servers);
        }
        if let (Some(line), true) = (&self.check, has_unchecked && !files.is_empty()) {
            let result = self.step(permit, script(permit, line)).await;
            let result = result.unwrap_or_else(|why| json!({"not_run": why}));
            fields.insert("command".into(), line.clone().into());
            fields.insert("result".into(), result);
        }
        fields
    }

    async fn format(&self, permit: &Permit, target: &ResolvedPath, seen: &Seen) -> Option<Value> {
        let (_, extension) = target.real().rsplit_once('.')?;
        let mut words = self.formatters.get(extension)?.clone();
        let path = target.absolute();
        // A deleted file has no format.
        let before = permit.read_file(target, MAX_WRITTEN_BYTES).ok()??;
        words.push(path.to_string_lossy().into_owned());
        let program = words.first().cloned().unwrap_or_default();
        let root = permit.root()?.path.clone();
        let result = self.step(permit, Some(Confined::program(words, root))).await;
        let after = permit.read_file(target, MAX_WRITTEN_BYTES).ok().flatten();
        let has_changed = after.as_ref() != Some(&before);
        if let Some(after) = &after {
            seen.note(permit.session(), target.real(), after);
        }
        let rel = target.real();
        Some(match result {
            Ok(result) if result["exit_code"] == 0 => {
                json!({"program": program, "path": rel, "changed": has_changed})
            }
            Ok(result) => json!({"program": program, "path": rel, "failed": result}),
            Err(why) => json!({"program": program, "path": rel, "not_run": why}),
        })
    }

    /// Runs a process; returns its exit code and the end of its output, or why it was not run.
    async fn step(&self, permit: &Permit, confined: Option<Confined>) -> Result<Value, String> {
        let mut confined = confined.ok_or_else(|| "the session has no root".to_owned())?;
        confined.limits.wall = self.timeout;
        confined.limits.output = MAX_OUTPUT;
        match permit.run(confined, |_, _| {}).await {
            Ok(process) => {
                let text = format!("{}{}", process.stdout.text, process.stderr.text);
                let skipped = text.chars().count().saturating_sub(MAX_OUTPUT);
                let tail: String = text.chars().skip(skipped).collect();
                Ok(json!({"exit_code": process.exit_code, "output": tail}))
            }
            Err(failure) => Err(failure.message),
        }
    }
}

fn script(permit: &Permit, line: &str) -> Option<Confined> {
    Some(Confined::script(line, permit.root()?.path.clone()))
}
