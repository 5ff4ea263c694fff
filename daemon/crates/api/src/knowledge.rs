//! The methods of the knowledge store and of skills.

use cairn_protocol::{
    error::{Failure, Reason},
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryOp,
        MemoryRef, MemorySearchParams, MemoryText, MemoryWriteParams, ProjectMemoryKeywordsParams,
        ProjectMemoryListParams, ProjectMemoryRef, ProjectMemorySearchParams,
        ProjectMemoryWriteParams,
    },
    plugin::PluginInfo,
    session::{Empty, Page},
    skill::SkillInfo,
};
use serde::de::DeserializeOwned;

use crate::{connection::Caller, method::Method, rights::Right};

async fn apply<T: DeserializeOwned>(
    cx: Caller,
    project: Option<String>,
    op: MemoryOp,
) -> Result<T, Failure> {
    let value = cx.api().engine.knowledge(project, op).await?;
    serde_json::from_value(value).map_err(|e| {
        Failure::new(
            Reason::Internal,
            format!("the knowledge store returned an unexpected answer: {e}"),
        )
    })
}

/// The methods that change entries are for people and programs; models use tools.
pub fn methods() -> Vec<Method> {
    let mut methods = memory_methods();
    methods.extend(extension_methods());
    methods
}

fn memory_methods() -> Vec<Method> {
    vec![
        Method::new(
            "memory.search",
            "Searches the knowledge store.",
            |cx, p: ProjectMemorySearchParams| {
                let ProjectMemorySearchParams { project, query, limit, cursor } = p;
                let op = MemoryOp::Search(MemorySearchParams { query, limit, cursor });
                apply::<Page<MemoryEntry>>(cx, project, op)
            },
        ),
        Method::new(
            "memory.list",
            "Entries of the knowledge store, by name.",
            |cx, p: ProjectMemoryListParams| {
                let ProjectMemoryListParams { project, limit, cursor } = p;
                let op = MemoryOp::List(MemoryListParams { limit, cursor });
                apply::<Page<MemoryEntry>>(cx, project, op)
            },
        ),
        Method::new(
            "memory.keywords",
            "Keywords of the knowledge store, most used first.",
            |cx, p: ProjectMemoryKeywordsParams| {
                let op = MemoryOp::Keywords(MemoryKeywordsParams { limit: p.limit });
                apply::<Page<MemoryKeyword>>(cx, p.project, op)
            },
        ),
        Method::new(
            "memory.load",
            "An entry of the knowledge store.",
            |cx, p: ProjectMemoryRef| {
                apply::<MemoryText>(
                    cx,
                    p.project,
                    MemoryOp::Load(MemoryRef { keywords: p.keywords }),
                )
            },
        ),
        Method::new(
            "memory.save",
            "Creates or replaces an entry.",
            |cx, p: ProjectMemoryWriteParams| {
                let ProjectMemoryWriteParams { project, keywords, content } = p;
                let op = MemoryOp::Save(MemoryWriteParams { keywords, content });
                apply::<MemoryChange>(cx, project, op)
            },
        )
        .detached(Right::Prompt),
        Method::new(
            "memory.append",
            "Appends to an entry, or creates it.",
            |cx, p: ProjectMemoryWriteParams| {
                let ProjectMemoryWriteParams { project, keywords, content } = p;
                let op = MemoryOp::Append(MemoryWriteParams { keywords, content });
                apply::<MemoryChange>(cx, project, op)
            },
        )
        .detached(Right::Prompt),
        Method::new("memory.delete", "Deletes an entry.", |cx, p: ProjectMemoryRef| {
            apply::<MemoryChange>(
                cx,
                p.project,
                MemoryOp::Delete(MemoryRef { keywords: p.keywords }),
            )
        })
        .detached(Right::Prompt),
    ]
}

fn extension_methods() -> Vec<Method> {
    vec![
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
