//! The knowledge store as tools: one for each operation, and `memory`, which has the operation as
//! an argument.

use std::sync::Arc;

use cairn_harness::{
    Caller, Intent, MustAsk, Output, Permit, Rule, Tool, ToolSpec, arguments, diff,
};
use cairn_memory::Store;
use cairn_protocol::{
    approval::Preview,
    error::Failure,
    memory::{
        MemoryKeywordsParams, MemoryListParams, MemoryOp, MemoryRef, MemorySearchParams,
        MemoryText, MemoryWriteParams,
    },
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Deps;

/// Instructions for models, in every tool that stores or reads knowledge.
const LOOP: &str = "Search here before you search the web, search the web even if something was found, \
    combine both, and store new facts that will stay true.";

/// One operation under its own name.
struct One<P> {
    store: Store,
    name: &'static str,
    description: &'static str,
    read_only: bool,
    op: fn(P) -> MemoryOp,
}

/// All operations under one name.
struct All(Store);

/// Returns the tools; none without a store.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let Some(store) = &deps.memory else { return vec![] };
    vec![
        one(
            store,
            "memory_search",
            "Searches entries stored in earlier sessions. Returns names and matching lines; read an \
            entry with memory_load.",
            true,
            |p: MemorySearchParams| MemoryOp::Search(p),
        ),
        one(
            store,
            "memory_list",
            "Lists the entries of the knowledge store.",
            true,
            |p: MemoryListParams| MemoryOp::List(p),
        ),
        one(
            store,
            "memory_keywords",
            "Lists the keywords of the knowledge store, with the number of entries of each.",
            true,
            |p: MemoryKeywordsParams| MemoryOp::Keywords(p),
        ),
        one(
            store,
            "memory_load",
            "Reads an entry of the knowledge store.",
            true,
            |p: MemoryRef| MemoryOp::Load(p),
        ),
        one(
            store,
            "memory_save",
            "Stores an entry, or replaces the one with the same keywords. For facts that will help in \
            later sessions, not for the current task. Entries whose name begins with `fix-` can never \
            be changed again.",
            false,
            |p: MemoryWriteParams| MemoryOp::Save(p),
        ),
        one(
            store,
            "memory_append",
            "Appends to an entry of the knowledge store, or creates it.",
            false,
            |p: MemoryWriteParams| MemoryOp::Append(p),
        ),
        one(
            store,
            "memory_delete",
            "Deletes an entry of the knowledge store.",
            false,
            |p: MemoryRef| MemoryOp::Delete(p),
        ),
        Arc::new(All(store.clone())),
    ]
}

fn one<P>(
    store: &Store,
    name: &'static str,
    description: &'static str,
    read_only: bool,
    op: fn(P) -> MemoryOp,
) -> Arc<dyn Tool>
where
    P: DeserializeOwned + JsonSchema + 'static,
{
    Arc::new(One { store: store.clone(), name, description, read_only, op })
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

    async fn intent(&self, _: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let op = (self.op)(arguments(value.clone())?);
        intent(&self.store, op).await
    }

    async fn run(&self, _: Permit, value: Value) -> Result<Output, Failure> {
        let op = (self.op)(arguments(value)?);
        run(&self.store, op).await
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

    async fn intent(&self, _: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let op = arguments(value.clone())?;
        intent(&self.0, op).await
    }

    async fn run(&self, _: Permit, value: Value) -> Result<Output, Failure> {
        let op = arguments(value)?;
        run(&self.0, op).await
    }
}

/// Returns the effect of a change, for the approver. An entry that would be replaced is asked about,
/// with the difference: it may be the user's own.
async fn intent(store: &Store, op: MemoryOp) -> Result<Intent, Failure> {
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
        let (store, keywords) = (store.clone(), params.keywords.clone());
        // A bad name fails in the call itself.
        let known = crate::reading::off_thread(move || Ok(store.load(&keywords).ok())).await?;
        // The store ends an entry with a newline.
        let is_other = |known: &MemoryText| known.content.trim_end() != params.content.trim_end();
        if let Some(known) = known.filter(is_other) {
            let (before, after) = (known.content.as_bytes(), params.content.as_bytes());
            let name = &known.name;
            intent.preview.diff =
                Some(diff::unified(name, Some(before), Some(after), diff::MAX_DIFF));
            intent.must_ask = Some(MustAsk::Unruled(format!("it replaces the entry '{name}'")));
            intent.grants = vec![Rule::of_tool("memory_save")];
        }
    }
    Ok(intent)
}

async fn run(store: &Store, op: MemoryOp) -> Result<Output, Failure> {
    let store = store.clone();
    let value = crate::reading::off_thread(move || Ok(store.apply(op)?)).await?;
    let truncated = value.get("nextCursor").is_some();
    Output::of("memory", &value, truncated)
}
