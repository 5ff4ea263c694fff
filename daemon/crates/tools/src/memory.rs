//! The knowledge store as tools: one for each operation, and `memory`, which has the operation as
//! an argument.

use std::sync::Arc;

use cairn_harness::{
    Caller, Intent, MustAsk, Output, Permit, Rule, Tool, ToolSpec, arguments, diff,
};
use cairn_memory::{Memory, MemoryView};
use cairn_protocol::{
    approval::Preview,
    error::Failure,
    memory::{
        MemoryKeywordsParams, MemoryListParams, MemoryOp, MemoryRef, MemorySearchParams,
        MemoryText, MemoryWriteParams,
    },
};
use cairn_workspace::Root;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Deps;

/// Instructions for models, in every tool that stores or reads knowledge.
const LOOP: &str = "Search here before you search the web, search the web even if something was found, \
    combine both, and store new facts that will stay true.";

/// One operation under its own name.
struct One<P> {
    memory: Memory,
    name: &'static str,
    description: &'static str,
    read_only: bool,
    op: fn(P) -> MemoryOp,
}

/// All operations under one name.
struct All(Memory);

/// Returns the tools; none without a store.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let Some(memory) = &deps.memory else { return vec![] };
    vec![
        one(
            memory,
            "memory_search",
            "Searches entries stored in earlier sessions. Returns names and matching lines; read an \
            entry with memory_load.",
            true,
            |p: MemorySearchParams| MemoryOp::Search(p),
        ),
        one(
            memory,
            "memory_list",
            "Lists the entries of the knowledge store.",
            true,
            |p: MemoryListParams| MemoryOp::List(p),
        ),
        one(
            memory,
            "memory_keywords",
            "Lists the keywords of the knowledge store, with the number of entries of each.",
            true,
            |p: MemoryKeywordsParams| MemoryOp::Keywords(p),
        ),
        one(
            memory,
            "memory_load",
            "Reads an entry of the knowledge store.",
            true,
            |p: MemoryRef| MemoryOp::Load(p),
        ),
        one(
            memory,
            "memory_save",
            "Stores an entry of this project, or replaces the one with the same keywords. For facts \
            that will help in later sessions, not for the current task. Entries whose name begins with `fix-` can never \
            be changed again.",
            false,
            |p: MemoryWriteParams| MemoryOp::Save(p),
        ),
        one(
            memory,
            "memory_append",
            "Appends to an entry of the knowledge store, or creates it.",
            false,
            |p: MemoryWriteParams| MemoryOp::Append(p),
        ),
        one(
            memory,
            "memory_delete",
            "Deletes an entry of the knowledge store.",
            false,
            |p: MemoryRef| MemoryOp::Delete(p),
        ),
        Arc::new(All(memory.clone())),
    ]
}

fn one<P>(
    memory: &Memory,
    name: &'static str,
    description: &'static str,
    read_only: bool,
    op: fn(P) -> MemoryOp,
) -> Arc<dyn Tool>
where
    P: DeserializeOwned + JsonSchema + 'static,
{
    Arc::new(One { memory: memory.clone(), name, description, read_only, op })
}

#[async_trait::async_trait]
impl<P: DeserializeOwned + JsonSchema + 'static> Tool for One<P> {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::reading::<P>(self.name, self.description);
        let addendum = if self.name == "memory_search" { LOOP } else { "" };
        ToolSpec {
            read_only: self.read_only,
            // A deletion cannot be undone, so it needs an approval.
            own_state: self.name != "memory_delete",
            paths: &[],
            addendum: addendum.into(),
            ..spec
        }
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let op = (self.op)(arguments(value.clone())?);
        intent(&self.memory, caller.root, op).await
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let op = (self.op)(arguments(value)?);
        run(&self.memory, permit.root(), op).await
    }
}

#[async_trait::async_trait]
impl Tool for All {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::writing::<MemoryOp>(
            "memory",
            "Searches, reads and changes entries stored in earlier sessions: `action` selects the operation.",
        );
        ToolSpec { own_state: true, paths: &[], addendum: LOOP.into(), ..spec }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        let name = match value.get("action").and_then(Value::as_str) {
            Some("search") => "memory_search",
            Some("list") => "memory_list",
            Some("keywords") => "memory_keywords",
            Some("load") => "memory_load",
            Some("save") => "memory_save",
            Some("append") => "memory_append",
            Some("delete") => "memory_delete",
            _ => return vec![],
        };
        let mut rest = value.clone();
        rest.as_object_mut().map(|o| o.remove("action"));
        vec![(name, rest)]
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let op = arguments(value.clone())?;
        intent(&self.0, caller.root, op).await
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let op = arguments(value)?;
        run(&self.0, permit.root(), op).await
    }
}

/// Returns the effect of a change, for the approver. An entry that would be replaced, or hidden in
/// this project, is asked about with the difference: it may be the user's own.
async fn intent(memory: &Memory, root: Option<&Root>, op: MemoryOp) -> Result<Intent, Failure> {
    let summary = match &op {
        MemoryOp::Save(p) => {
            format!("store an entry '{}' of {} bytes in memory", p.keywords, p.content.len())
        }
        MemoryOp::Append(p) => {
            format!("add {} bytes to the entry '{}' of memory", p.content.len(), p.keywords)
        }
        MemoryOp::Delete(p) => format!("delete the entry '{}' of memory", p.keywords),
        _ => String::new(),
    };
    let mut intent =
        Intent { preview: Preview { summary, ..Preview::default() }, ..Intent::default() };
    if let MemoryOp::Save(params) = op {
        let keywords = params.keywords.clone();
        // A bad name fails in the call itself.
        let known = in_project(memory, root, move |view| Ok(view.load(&keywords).ok())).await?;
        // The store ends an entry with a newline.
        let is_other = |known: &MemoryText| known.content.trim_end() != params.content.trim_end();
        if let Some(known) = known.filter(is_other) {
            let (before, after) = (known.content.as_bytes(), params.content.as_bytes());
            let name = &known.name;
            intent.preview.diff =
                Some(diff::unified(name, Some(before), Some(after), diff::MAX_DIFF));
            let why = match known.general {
                true => format!("it hides the general entry '{name}' in this project"),
                false => format!("it replaces the entry '{name}'"),
            };
            intent.must_ask = Some(MustAsk::Unruled(why));
            intent.grants = vec![Rule::of_tool("memory_save")];
        }
    }
    Ok(intent)
}

async fn run(memory: &Memory, root: Option<&Root>, op: MemoryOp) -> Result<Output, Failure> {
    let value = in_project(memory, root, move |view| Ok(view.apply(op)?)).await?;
    let truncated = value.get("nextCursor").is_some();
    Output::of("memory", &value, truncated)
}

/// Runs `work` on the entries of the session's project: no argument of a call chooses another.
async fn in_project<T: Send + 'static>(
    memory: &Memory,
    root: Option<&Root>,
    work: impl FnOnce(MemoryView) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (memory, folder) = (memory.clone(), root.map(|root| root.path.clone()));
    crate::reading::off_thread(move || work(memory.project(folder.as_deref()))).await
}
