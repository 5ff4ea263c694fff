//! `write_file`, `edit_file`, `delete_file`: a change is computed first, shown to the approver, and
//! then applied exactly as shown or not at all.

mod after;
mod apply;
mod change;
pub mod find;
pub mod indent;
mod notebook;
pub mod occurrences;
pub mod rewrite;

use std::sync::Arc;

use cairn_harness::{
    Caller, Intent, MustAsk, Output, Permit, Rule, Tool, ToolEffect, ToolSpec, arguments, diff,
};
use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::{Autorun, AutorunClass, MAX_WRITTEN_BYTES, ResolvedPath};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub use after::AfterEdit;
pub use apply::apply_all;
pub use change::{Change, ModeChange, Piece};

use crate::{Deps, reading};

/// Arguments of the tool `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Path of the file, relative to the workspace. Missing folders are created.
    path: String,
    /// The complete new content of the file.
    content: String,
}

/// Arguments of the tool `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Path of the file, relative to the workspace.
    path: String,
    /// The text to replace, without line numbers; must occur once unless `replace_all` is set.
    #[serde(default)]
    old_text: Option<String>,
    /// Text that replaces it.
    #[serde(default)]
    new_text: Option<String>,
    /// Replaces every occurrence instead of one.
    #[serde(default)]
    replace_all: bool,
    /// Instead of `old_text` and `new_text`: several replacements, all or none.
    #[serde(default)]
    edits: Vec<Piece>,
}

impl EditFile {
    fn pieces(self) -> Result<Vec<Piece>, Failure> {
        let bad = |text: &str| Err(Failure::new(Reason::InvalidParams, text));
        match (self.old_text, self.new_text) {
            (Some(old_text), Some(new_text)) if self.edits.is_empty() => {
                Ok(vec![Piece { old_text, new_text, replace_all: self.replace_all }])
            }
            (None, None) if self.edits.is_empty() => bad("old_text and new_text are missing"),
            (None, None) if self.edits.len() > MAX_PIECES => bad("edits has more than 100 entries"),
            (None, None) if self.replace_all => bad("replace_all belongs into each of the edits"),
            (None, None) => Ok(self.edits),
            _ => bad("give either old_text and new_text, or edits"),
        }
    }
}

/// Most replacements of one call.
const MAX_PIECES: usize = 100;

/// Arguments of the tool `delete_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// Path of the file, relative to the workspace.
    path: String,
}

/// Arguments of a tool of this file, which compute its change.
pub trait Plan: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const EFFECT: ToolEffect = ToolEffect::Edit;
    /// Another tool whose rules apply to this one too.
    const RULES_OF: Option<&'static str> = None;
    /// Returns the path of the file, as it was named.
    fn path(&self) -> &str;
    /// Returns the change of a file that contains `before`.
    fn plan(self, rel: &str, before: Option<Vec<u8>>) -> Result<Change, Failure>;
    /// Returns the reason why this change needs an approval.
    fn must_ask(seen: bool, before: Option<&[u8]>) -> Option<MustAsk>;
}

impl Plan for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Creates a file, or replaces an existing one completely, whose \
        encoding and line ends it retains. Parent folders are created. To change a part of a file use \
        edit_file: it is shorter and safer. The user may be asked first.";
    fn path(&self) -> &str {
        &self.path
    }
    fn plan(self, rel: &str, before: Option<Vec<u8>>) -> Result<Change, Failure> {
        Ok(Change::write(rel, before, self.content))
    }
    fn must_ask(seen: bool, before: Option<&[u8]>) -> Option<MustAsk> {
        let blind = !seen && before.is_some_and(|b| !b.is_empty());
        blind.then(|| {
            MustAsk::Unread(
                "it replaces a file that was not read, or has changed since it was read".to_owned(),
            )
        })
    }
}

impl Plan for EditFile {
    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Replaces a piece of text in a file, or several with edits. Read \
        the file first: old_text must be its text (without the line numbers that read_file shows) and \
        unique, unless replace_all is set. Complete lines may differ in white space; the answer then \
        has the text that was matched, and new_text is indented like it. The user is asked first if the file was not read or has \
        changed since.";
    fn path(&self) -> &str {
        &self.path
    }
    fn plan(self, rel: &str, before: Option<Vec<u8>>) -> Result<Change, Failure> {
        let Some(before) = before else {
            return Err(Failure::new(
                Reason::PathNotFound,
                format!("'{rel}' does not exist; write_file creates it"),
            ));
        };
        Change::edit_all(rel, before, &self.pieces()?)
    }
    fn must_ask(seen: bool, _before: Option<&[u8]>) -> Option<MustAsk> {
        (!seen).then(|| {
            MustAsk::Unread(
                "it edits a file that was not read, or has changed since it was read".to_owned(),
            )
        })
    }
}

impl Plan for DeleteFile {
    const NAME: &'static str = "delete_file";
    const EFFECT: ToolEffect = ToolEffect::Remove;
    const DESCRIPTION: &'static str = "Deletes a file. The user is asked first unless a rule allows it; \
        the deletion can be undone with the turn's id.";
    fn path(&self) -> &str {
        &self.path
    }
    fn plan(self, rel: &str, before: Option<Vec<u8>>) -> Result<Change, Failure> {
        let missing = || Failure::new(Reason::PathNotFound, format!("'{rel}' does not exist"));
        Ok(Change::delete(rel, before.ok_or_else(missing)?))
    }
    fn must_ask(_seen: bool, _before: Option<&[u8]>) -> Option<MustAsk> {
        Some(MustAsk::Unruled("deleting needs an approval unless a rule allows it".to_owned()))
    }
}

struct Changing<P> {
    deps: Deps,
    plan: std::marker::PhantomData<fn() -> P>,
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    fn one<P: Plan>(deps: &Deps) -> Arc<dyn Tool> {
        Arc::new(Changing::<P> { deps: deps.clone(), plan: std::marker::PhantomData })
    }
    vec![
        one::<WriteFile>(deps),
        one::<EditFile>(deps),
        one::<DeleteFile>(deps),
        one::<notebook::EditNotebook>(deps),
    ]
}

/// Returns the strictest of the files that something runs later, with its path.
pub fn strictest_autorun<'a>(
    paths: impl Iterator<Item = (&'a str, Option<Autorun>)>,
) -> Option<(&'a str, Autorun)> {
    let known = paths.filter_map(|(path, autorun)| Some((path, autorun?)));
    known.reduce(|first, next| if next.1.class > first.1.class { next } else { first })
}

/// Returns the demand that such a file makes on the call that changes it.
pub fn demand((path, autorun): (&str, Autorun)) -> Option<MustAsk> {
    match autorun.class {
        AutorunClass::Own => Some(MustAsk::Closed(path.to_owned())),
        AutorunClass::Start => Some(MustAsk::Always(autorun.reason(path))),
        AutorunClass::Source => None,
    }
}

/// Returns the intent of changes, for an approver. If a path leads elsewhere, both paths are named,
/// and the stricter treatment of either name applies.
pub fn intent_of(
    changes: &[(ResolvedPath, Change)],
    tool: &str,
    must_ask: Option<MustAsk>,
) -> Intent {
    let paths: Vec<String> = changes.iter().map(|(_, change)| change.path.clone()).collect();
    let spellings = changes
        .iter()
        .flat_map(|(target, _)| target.spellings().map(|path| (path, target.root().autorun(path))));
    let runs_later = strictest_autorun(spellings);
    let sensitive = runs_later.map(|(path, autorun)| autorun.reason(path));
    let links = changes.iter().filter(|(target, _)| target.requested() != target.real());
    let links = links
        .map(|(target, _)| format!("'{}' is a link to '{}'", target.requested(), target.real()));
    let why = must_ask.as_ref().map(|must| must.why().to_owned());
    let diffs = changes.iter().map(|(_, c)| c.diff(diff::MAX_DIFF)).collect::<Vec<_>>().concat();
    let long = diff::is_truncated(&diffs)
        .then(|| "only a part of the change is shown: its diff is too long".to_owned());
    let preview = Preview {
        summary: format!("{tool} {}", paths.join(", ")),
        diff: Some(diffs),
        warnings: links.chain(why).chain(sensitive).chain(long).collect(),
        paths,
        ..Preview::default()
    };
    let patterns = folder_pattern(changes, &[tool]).into_iter().collect();
    let must_ask = runs_later.and_then(demand).or(must_ask);
    Intent { preview, must_ask, grants: vec![Rule::of_tool(tool)], patterns, ..Intent::default() }
}

/// Returns rules for these tools in the folder that contains every changed file; `None` for files
/// of the root itself.
pub fn folder_pattern(changes: &[(ResolvedPath, Change)], tools: &[&str]) -> Option<Vec<Rule>> {
    let folder =
        |(target, _): &(ResolvedPath, Change)| Some(target.real().rsplit_once('/')?.0.to_owned());
    let first = folder(changes.first()?)?;
    let plain = !first.contains(['*', '?', '[', '{', '(', ')', '\n']);
    let same = changes.iter().all(|change| folder(change).as_ref() == Some(&first));
    let rules = || tools.iter().map(|tool| format!("{tool}({first}/**)").parse().ok()).collect();
    (plain && same).then(rules).flatten()
}

/// Rejects changes that differ from the approved ones.
pub fn require_same(permit: &Permit, changes: &[(ResolvedPath, Change)]) -> Result<(), Failure> {
    let Some(approved) = permit.approved() else { return Ok(()) };
    let now = changes.iter().map(|(_, c)| c.diff(diff::MAX_DIFF)).collect::<Vec<_>>().concat();
    if approved.diff.as_deref() == Some(now.as_str()) {
        return Ok(());
    }
    let text = "the file changed since the change was approved: nothing was done";
    Err(Failure::new(Reason::FileChanged, text))
}

impl<P: Plan> Changing<P> {
    fn plan(
        &self,
        session: &SessionId,
        target: &ResolvedPath,
        args: P,
    ) -> Result<(Change, Option<MustAsk>), Failure> {
        let before = target.root().read_file(target.real(), MAX_WRITTEN_BYTES)?;
        let seen =
            before.as_deref().is_some_and(|b| self.deps.seen.knows(session, target.real(), b));
        let must_ask = P::must_ask(seen, before.as_deref());
        let named = if P::NAME == DeleteFile::NAME { target.entry() } else { target.real() };
        Ok((args.plan(named, before)?, must_ask))
    }
}

#[async_trait::async_trait]
impl<P: Plan> Tool for Changing<P> {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            paths: &["path"],
            effect: P::EFFECT,
            timeout: self.deps.after_edit.call_timeout(),
            ..ToolSpec::writing::<P>(P::NAME, P::DESCRIPTION)
        }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        let path = value.get("path").cloned().unwrap_or_default();
        P::RULES_OF.map(|tool| (tool, json!({"path": path}))).into_iter().collect()
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let args: P = arguments(value.clone())?;
        let target = caller.own_path(args.path())?;
        let (change, must_ask) = self.plan(caller.session, &target, args)?;
        // Content that was not read is a reason to ask.
        let edits = P::NAME == EditFile::NAME || P::RULES_OF.is_some();
        let edits_read_content = edits && must_ask.is_none();
        let intent = intent_of(&[(target, change)], P::NAME, must_ask);
        Ok(Intent { edits_read_content, ..intent })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let args: P = arguments(value)?;
        let target = permit.resolve_own(args.path())?;
        let (change, _) = self.plan(permit.session(), &target, args)?;
        require_same(&permit, &[(target.clone(), change.clone())])?;
        let deps = self.deps.clone();
        let checked = if P::EFFECT == ToolEffect::Edit {
            let changes = [(target.clone(), change.clone())];
            self.deps.after_edit.before(&permit, &changes).await
        } else {
            None
        };
        let (permit, target, output) = reading::off_thread(move || {
            let result = change.result();
            change.apply(&permit, &target, &deps.seen)?;
            Ok((permit, target, Output::of("file_change", &result, false)?))
        })
        .await?;
        Ok(self.deps.after_edit.run(&permit, &[target], &self.deps.seen, checked, output).await)
    }
}

/// Returns the result of a change that was applied.
pub fn done(path: &str, bytes: usize, replacements: Option<usize>) -> Value {
    let mut value = json!({"success": true, "path": path, "bytes_written": bytes});
    if let Some(n) = replacements {
        value["replacements"] = n.into();
    }
    value
}
