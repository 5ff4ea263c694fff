//! Whole-root views: `count_languages`, `rank_files` and `list_folders`.

use std::sync::Arc;

use cairn_harness::Tool;
use cairn_protocol::{explore::LayoutEntry, session::Empty};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Deps, reading::reading};

/// Arguments of `rank_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RankFilesParams {
    /// Files wanted, at most 200.
    #[serde(default = "default_k")]
    k: u32,
}

fn default_k() -> u32 {
    20
}

/// Every tool of this file.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let languages = reading(
        deps,
        "count_languages",
        "Lines by language (code, comments and blanks), as tokei counts them.",
        "languages",
        |_, permit, _: Empty, _| {
            let languages = cairn_workspace::count_languages(permit.need_root()?, &[]);
            Ok((serde_json::json!({"languages": languages}), false))
        },
    );
    let rank = reading(
        deps,
        "rank_files",
        "Files by how much the rest of the code refers to their definitions.",
        "file_ranking",
        |deps, permit, params: RankFilesParams, _| {
            let files = deps.indexes.rank_files(&permit.need_root()?.id, params.k.clamp(1, 200) as usize)?;
            Ok((serde_json::json!({"files": files}), false))
        },
    );
    let folders = reading(
        deps,
        "list_folders",
        "Top-level folders with their files and main language.",
        "folders",
        |deps, permit, _: Empty, _| {
            let entry = |f: cairn_search::Folder| LayoutEntry {
                path: f.path,
                files: f.files,
                role: f.language.unwrap_or_default().to_owned(),
            };
            let folders = deps.indexes.folders(&permit.need_root()?.id)?;
            let folders: Vec<LayoutEntry> = folders.into_iter().map(entry).collect();
            Ok((serde_json::json!({"folders": folders}), false))
        },
    );
    vec![languages, rank, folders]
}
