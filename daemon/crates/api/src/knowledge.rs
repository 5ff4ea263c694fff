//! The methods of the knowledge store and of skills.

use cairn_protocol::{
    error::{Failure, Reason},
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryOp,
        MemoryRef, MemorySearchParams, MemoryText, MemoryWriteParams,
    },
    session::{Empty, Page},
    skill::SkillInfo,
};
use serde::de::DeserializeOwned;

use crate::{connection::Caller, method::Method, rights::Right};

async fn ask<T: DeserializeOwned>(cx: Caller, op: MemoryOp) -> Result<T, Failure> {
    let value = cx.api().engine.knowledge(op).await?;
    serde_json::from_value(value)
        .map_err(|e| Failure::new(Reason::Internal, format!("the knowledge store answered oddly: {e}")))
}

/// All of them. Those that change something are a person's or program's own doing; what a model does goes by the tools.
pub fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "memory.search",
            "Entries of the knowledge store that fit a query.",
            |cx, p: MemorySearchParams| ask::<Page<MemoryEntry>>(cx, MemoryOp::Search(p)),
        ),
        Method::new("memory.list", "Entries of the knowledge store, by name.", |cx, p: MemoryListParams| {
            ask::<Page<MemoryEntry>>(cx, MemoryOp::List(p))
        }),
        Method::new(
            "memory.keywords",
            "Keywords of the knowledge store, those with most entries first.",
            |cx, p: MemoryKeywordsParams| ask::<Page<MemoryKeyword>>(cx, MemoryOp::Keywords(p)),
        ),
        Method::new("memory.load", "An entry of the knowledge store.", |cx, p: MemoryRef| {
            ask::<MemoryText>(cx, MemoryOp::Load(p))
        }),
        Method::new("memory.save", "Makes an entry, or replaces it.", |cx, p: MemoryWriteParams| {
            ask::<MemoryChange>(cx, MemoryOp::Save(p))
        })
        .detached(Right::Prompt),
        Method::new("memory.append", "Adds to an entry, or makes it.", |cx, p: MemoryWriteParams| {
            ask::<MemoryChange>(cx, MemoryOp::Append(p))
        })
        .detached(Right::Prompt),
        Method::new("memory.delete", "Deletes an entry.", |cx, p: MemoryRef| {
            ask::<MemoryChange>(cx, MemoryOp::Delete(p))
        })
        .detached(Right::Prompt),
        Method::new(
            "skill.list",
            "The skills there are, and whether agents are told of them.",
            |cx, _: Empty| async move {
                Ok::<_, Failure>(Page::<SkillInfo> { data: cx.api().engine.skills(), next_cursor: None })
            },
        ),
    ]
}
