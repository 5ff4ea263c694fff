//! Files that run later and that a process has changed: Cairn's own are put back, the others stay
//! only if a rule or an approver accepts them. A process can write any name, so its effect is
//! judged when it ends, whatever its command line said.

mod watch;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use cairn_protocol::approval::{ApprovalDecision, Preview};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use cairn_workspace::{AutorunChange, AutorunClass, Root};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(crate) use self::watch::AutorunWatch;
use self::watch::Workspace;
use crate::{
    Answered, Approvals, Call, DecidedBy, Grants, Intent, Rule, Subject, Verdict, WaitClock, diff,
    gate::decide::Judge,
};

/// The name in rules about such files: `autorun(node_modules/.bin)`.
pub(crate) const AUTORUN: &str = "autorun";
/// Most paths that a question or a note lists.
const MAX_LISTED: usize = 50;
/// Most rules that an answer can store.
const MAX_RULES: usize = 8;

/// The gate of what one call's processes leave behind.
pub(crate) struct AutorunGate {
    pub watch: Arc<AutorunWatch>,
    pub approvals: Arc<Approvals>,
    pub trace: Trace,
    pub judge: Judge,
    /// The call, whose arguments are for the approver.
    pub call: Call,
    /// Notes for the model.
    pub notes: Mutex<Vec<String>>,
}

/// Changes of a process that are not decided about. Dropped without a decision, as by a call that was
/// cancelled, all of them are put back.
pub(crate) struct Unsettled {
    gate: Arc<AutorunGate>,
    /// The workspace; none if it could not be looked at.
    workspace: Option<Arc<Workspace>>,
    root: Root,
    changes: Vec<AutorunChange>,
    is_partial: bool,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let Some(workspace) = self.workspace.as_ref().filter(|_| !self.changes.is_empty()) else {
            return;
        };
        let folder = self.gate.watch.rejected_folder();
        for change in std::mem::take(&mut self.changes) {
            if let Err(error) = watch::put_back(workspace, &self.root, &change, &folder) {
                tracing::error!(path = change.path, %error, "a file that runs later stays");
            }
        }
    }
}

impl AutorunGate {
    /// Returns the same gate for a process that outlives its call.
    pub fn detached(&self, cancel: CancellationToken) -> Self {
        Self {
            watch: Arc::clone(&self.watch),
            approvals: Arc::clone(&self.approvals),
            trace: self.trace.clone(),
            judge: self.judge.clone(),
            call: Call { cancel, clock: Arc::default(), ..self.call.clone() },
            notes: Mutex::default(),
        }
    }

    /// Runs `work`, which starts a process in `root`, and returns what it has changed if it could
    /// write there. `work` receives the paths that the process must not reach: sockets at which
    /// programs of outside listen. This blocks.
    pub fn around<T>(
        self: &Arc<Self>,
        (root, writable): (&Root, bool),
        work: impl FnOnce(Vec<PathBuf>) -> T,
    ) -> (T, Option<Unsettled>) {
        let started = self.watch.begin(root);
        let sockets = started.as_ref().map(watch::Writing::sockets).unwrap_or_default();
        let writing = started.filter(|_| writable);
        let done = work(sockets);
        if !writable {
            return (done, None);
        }
        let is_partial = writing.as_ref().is_some_and(|writing| writing.is_partial);
        let (workspace, changes) = writing.map(watch::Writing::end).unzip();
        let unsettled = Unsettled {
            gate: Arc::clone(self),
            workspace,
            root: root.clone(),
            changes: changes.unwrap_or_default(),
            is_partial,
        };
        (done, Some(unsettled))
    }

    /// Takes the notes for the model.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Decides what stays: rules about `autorun`, else an approver. Everything else is put back.
    /// Returns the paths that were put back.
    pub async fn settle(&self, mut unsettled: Unsettled, clock: &WaitClock) -> Vec<String> {
        if unsettled.is_partial {
            self.note(
                "the workspace has too many entries to compare all files that run later".into(),
            );
        }
        let Some(workspace) = unsettled.workspace.clone().filter(|_| !unsettled.changes.is_empty())
        else {
            return vec![];
        };
        let root = unsettled.root.clone();
        let mut questions = Vec::new();
        let mut refused = Vec::new();
        for change in unsettled.changes.clone() {
            if change.autorun.class == AutorunClass::Own {
                let by = DecidedBy::OwnFile(change.path.clone());
                refused.push((change, by));
                continue;
            }
            let decision = self.judge.autorun(&change.path);
            match decision.verdict {
                Verdict::Allow => {
                    workspace.release(&change, true);
                    self.record(&change.path, true, &decision.by).await;
                }
                Verdict::Deny => refused.push((change, decision.by)),
                Verdict::Ask => questions.push(change),
            }
        }
        let folder = self.watch.rejected_folder();
        let mut paths = self.put_back((&workspace, &root), refused, &folder).await;
        // The files of a call that is cancelled during the question are put back.
        unsettled.changes.clone_from(&questions);
        if !questions.is_empty() {
            let (verdict, by) = self.ask(&questions, clock).await;
            unsettled.changes.clear();
            if verdict == Verdict::Allow {
                for change in &questions {
                    workspace.release(change, true);
                    self.record(&change.path, true, &by).await;
                }
            } else {
                let refused = questions.into_iter().map(|change| (change, by.clone())).collect();
                paths.extend(self.put_back((&workspace, &root), refused, &folder).await);
            }
        }
        unsettled.changes.clear();
        paths
    }

    /// Puts files back, with a row of the audit for each; returns their paths.
    async fn put_back(
        &self,
        (workspace, root): (&Arc<Workspace>, &Root),
        refused: Vec<(AutorunChange, DecidedBy)>,
        rejected: &Path,
    ) -> Vec<String> {
        let paths: Vec<String> = refused.iter().map(|(change, _)| change.path.clone()).collect();
        if refused.is_empty() {
            return paths;
        }
        let mut texts = Vec::new();
        for (change, by) in refused {
            self.record(&change.path, false, &by).await;
            let (workspace, root) = (Arc::clone(workspace), root.clone());
            let (folder, path) = (rejected.to_owned(), change.path.clone());
            let work = move || watch::put_back(&workspace, &root, &change, &folder);
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(())) => texts.push(format!("'{path}' ({by})")),
                Ok(Err(error)) => {
                    texts.push(format!("'{path}' ({by}), which failed: {error}"));
                    tracing::error!(path, %error, "a file that runs later stays");
                }
                Err(error) => tracing::error!(path, %error, "a file that runs later stays"),
            }
        }
        let more = texts.len().saturating_sub(MAX_LISTED);
        texts.truncate(MAX_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.note(format!(
            "these files cause programs to run later, and were put back as they were: {}{more}; the \
            new content is in {}",
            texts.join(", "),
            rejected.display()
        ));
        paths
    }

    async fn record(&self, path: &str, is_retained: bool, by: &DecidedBy) {
        let intent = AuditIntent {
            session: self.call.session.clone(),
            tool: AUTORUN.into(),
            args_digest: cairn_trace::digest(&json!({"path": path})),
            decision: if is_retained { "allow" } else { "deny" },
            rule: by.to_string(),
            call: None,
            command: Some(path.to_owned()),
        };
        let done = AuditOutcome {
            millis: 0,
            outcome: if is_retained { "ok".into() } else { "put back".into() },
            exit_code: None,
            truncated: false,
        };
        let recorded = async {
            let row = self.trace.audit_intent(intent, None).await?;
            self.trace.audit_outcome(row, done, None).await
        };
        if let Err(error) = recorded.await {
            tracing::error!(path, %error, "a changed file that runs later cannot be recorded");
        }
    }

    /// Requests an approval of all of these files together.
    async fn ask(&self, changes: &[AutorunChange], clock: &WaitClock) -> (Verdict, DecidedBy) {
        let question = DecidedBy::Tool("a command changed files that run later".into());
        if !self.approvals.has_approver(&self.call.session) {
            let why = "a command changed it, and no approver is connected";
            return (Verdict::Deny, DecidedBy::Tool(why.into()));
        }
        let command = self.call.arguments.get("command").cloned().unwrap_or_default();
        let paths: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
        let call = Call {
            name: AUTORUN.into(),
            arguments: json!({"paths": paths, "command": command}),
            call_id: None,
            resumed: false,
            ..self.call.clone()
        };
        let intent = Intent {
            preview: preview(changes, command.as_str().map(str::to_owned)),
            grants: rules(&paths),
            ..Intent::default()
        };
        let text = question.to_string();
        let asking = self.approvals.ask(&call, &intent, &text, false);
        match self.call.clock.while_waiting(clock.while_waiting(asking)).await {
            Ok(answer) => {
                let verdict = match answer.decision {
                    ApprovalDecision::Deny => Verdict::Deny,
                    _ => Verdict::Allow,
                };
                let (decision, client) = (answer.decision, answer.by);
                let by = Answered { decision, client, question: Box::new(question) };
                (verdict, DecidedBy::Answered(by))
            }
            Err(failure) => (Verdict::Deny, DecidedBy::Tool(failure.message)),
        }
    }
}

impl Judge {
    /// Decides about a file that runs later: only a rule that names `autorun` allows one, and what
    /// may not be written at all is denied.
    fn autorun(&self, path: &str) -> crate::Decision {
        let paths = [path.to_owned()];
        let memory = self.memory();
        // The run's list of tools names what it may call, and this is no call.
        let grants = Grants { ops: None, ..self.grants().clone() };
        let decision = self.rules().decide(&Subject {
            paths: &paths,
            inside: true,
            top: self.own_path(),
            memory,
            granted: self.granted(),
            ..Subject::new(AUTORUN, &grants)
        });
        let names_it = match &decision.by {
            DecidedBy::Rule { rule, .. } => rule.tool() == AUTORUN,
            _ => false,
        };
        match decision.verdict {
            Verdict::Allow if !names_it => {
                let by = DecidedBy::Tool("a command changed files that run later".into());
                crate::Decision { verdict: Verdict::Ask, by }
            }
            _ => decision,
        }
    }
}

/// Returns the rules that allow these files again: of the folders that hold several, else of the
/// files. None when that would be too many to read.
fn rules(paths: &[String]) -> Vec<Rule> {
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        let folder = path.rsplit_once('/').map(|(folder, _)| folder);
        let siblings = |folder: &str| {
            paths.iter().filter(|p| p.rsplit_once('/').is_some_and(|(f, _)| f == folder)).count()
        };
        let named = folder.filter(|folder| siblings(folder) > 1).unwrap_or(path);
        let plain = !named.contains(['*', '?', '[', '{', '(', ')', '\n']);
        let rule = format!("{AUTORUN}({named})");
        if plain && !all.contains(&rule) {
            all.push(rule);
        } else if !plain {
            return vec![];
        }
    }
    let rules = all.iter().filter_map(|text| text.parse().ok());
    if all.len() > MAX_RULES { vec![] } else { rules.collect() }
}

fn preview(changes: &[AutorunChange], command: Option<String>) -> Preview {
    let mut diffs = String::new();
    for change in changes {
        let room = diff::MAX_DIFF.saturating_sub(diffs.len());
        let (before, after) = change.texts();
        let (before, after) = (before.as_deref(), after.as_deref());
        if room == 0 || (before.is_none() && after.is_none()) {
            continue;
        }
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        let (before, after) = (bytes(before), bytes(after));
        diffs.push_str(&diff::unified(&change.path, before.as_deref(), after.as_deref(), room));
    }
    let mut warnings: Vec<String> =
        changes.iter().map(|change| change.autorun.reason(&change.path)).collect();
    warnings.sort();
    warnings.dedup();
    let more = changes.len().saturating_sub(MAX_LISTED);
    warnings.truncate(MAX_RULES);
    if more > 0 {
        warnings.push(format!("{more} further files are not listed"));
    }
    let files = if changes.len() == 1 { "file" } else { "files" };
    Preview {
        summary: format!("keep {} changed {files} that run later", changes.len()),
        command,
        diff: (!diffs.is_empty()).then_some(diffs),
        paths: changes.iter().take(MAX_LISTED).map(|change| change.path.clone()).collect(),
        warnings,
        ..Preview::default()
    }
}
