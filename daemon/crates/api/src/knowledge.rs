//! The methods of the knowledge store and of skills.

use cairn_protocol::{
    error::{Failure, Reason},
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryOp,
        MemoryRef, MemorySearchParams, MemoryText, MemoryWriteParams,
    },
    plugin::PluginInfo,
    session::{Empty, Page},
    skill::SkillInfo,
};
use serde::de::DeserializeOwned;

use crate::{connection::Caller, method::Method, rights::Right};

async fn apply<T: DeserializeOwned>(cx: Caller, op: MemoryOp) -> Result<T, Failure> {
    let value = cx.api().engine.knowledge(op).await?;
    serde_json::from_value(value).map_err(|e| {
        Failure::new(
            Reason::Internal,
            format!("the knowledge store returned an unexpected answer: {e}"),
        )
    })
}

/// The methods that change entries are for people and programs; models use tools.
pub fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "memory.search",
            "Searches the knowledge store.",
            |cx, p: MemorySearchParams| apply::<Page<MemoryEntry>>(cx, MemoryOp::Search(p)),
        ),
        Method::new(
            "memory.list",
            "Entries of the knowledge store, by name.",
            |cx, p: MemoryListParams| apply::<Page<MemoryEntry>>(cx, MemoryOp::List(p)),
        ),
        Method::new(
            "memory.keywords",
            "Keywords of the knowledge store, most used first.",
            |cx, p: MemoryKeywordsParams| apply::<Page<MemoryKeyword>>(cx, MemoryOp::Keywords(p)),
        ),
        Method::new("memory.load", "An entry of the knowledge store.", |cx, p: MemoryRef| {
            apply::<MemoryText>(cx, MemoryOp::Load(p))
        }),
        Method::new("memory.save", "Creates or replaces an entry.", |cx, p: MemoryWriteParams| {
            apply::<MemoryChange>(cx, MemoryOp::Save(p))
        })
        .detached(Right::Prompt),
        Method::new(
            "memory.append",
            "Appends to an entry, or creates it.",
            |cx, p: MemoryWriteParams| apply::<MemoryChange>(cx, MemoryOp::Append(p)),
        )
        .detached(Right::Prompt),
        Method::new("memory.delete", "Deletes an entry.", |cx, p: MemoryRef| {
            apply::<MemoryChange>(cx, MemoryOp::Delete(p))
        })
        .detached(Right::Prompt),
        Method::new(
            "skill.list",
            "All skills, and whether they are offered to agents.",
            |cx, _: Empty| async move {
                Ok::<_, Failure>(Page::<SkillInfo> {
                    data: cx.api().engine.skills(None),
                    next_cursor: None,
                })
            },
        ),
        Method::new(
            "plugin.list",
            "The agent plugins of the user, and what each brings.",
            |cx, _: Empty| async move {
                let engine = cx.api().engine.clone();
                let list = tokio::task::spawn_blocking(move || engine.agent_plugins(None)).await;
                let data = list.map_err(|e| Failure::new(Reason::Internal, e.to_string()))?;
                Ok(Page::<PluginInfo> { data, next_cursor: None })
            },
        ),
    ]
}
