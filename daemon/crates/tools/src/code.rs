//! Views of a complete root: `count_languages`, `rank_files` and `list_folders`.

use std::{collections::BTreeMap, sync::Arc};

use cairn_harness::Tool;
use cairn_protocol::{explore::LayoutEntry, session::Empty};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Deps, reading::reading};

/// Arguments of the tool `rank_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RankFilesParams {
    /// Number of files, at most 200.
    #[serde(default = "default_k")]
    k: u32,
}

fn default_k() -> u32 {
    20
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let languages = reading(
        deps,
        "count_languages",
        "Lines by language (code, comments and blanks), as tokei counts them.",
        "languages",
        |_, permit, _: Empty, _| {
            let parts = permit.reach(".")?;
            let languages =
                cairn_workspace::count_languages(permit.require_root()?, &[], parts.as_deref());
            Ok((serde_json::json!({"languages": languages}), false))
        },
    );
    let rank = reading(
        deps,
        "rank_files",
        "Files by how much the rest of the code refers to their definitions.",
        "file_ranking",
        |deps, permit, params: RankFilesParams, _| {
            let k = params.k.clamp(1, 200) as usize;
            let most = if permit.shows_all() { k } else { usize::MAX };
            let mut files = deps.indexes.rank_files(&permit.require_root()?.id, most)?;
            files.retain(|file| permit.shows(&file.path));
            files.truncate(k);
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
            let root = &permit.require_root()?.id;
            let folders: Vec<LayoutEntry> = if permit.shows_all() {
                deps.indexes.folders(root)?.into_iter().map(entry).collect()
            } else {
                let paths = deps.indexes.paths(root)?;
                folders_of(paths.iter().filter(|path| permit.shows(path)))
            };
            Ok((serde_json::json!({"folders": folders}), false))
        },
    );
    vec![Arc::new(languages), Arc::new(rank), Arc::new(folders)]
}

/// Returns the top-level folders of these files, in the form of `list_folders`.
fn folders_of<'a>(paths: impl Iterator<Item = &'a String>) -> Vec<LayoutEntry> {
    let mut folders: BTreeMap<&str, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    for path in paths {
        let (files, languages) =
            folders.entry(path.split_once('/').map_or(".", |(top, _)| top)).or_default();
        *files += 1;
        if let Some(language) = cairn_workspace::language_of(path) {
            *languages.entry(language).or_default() += 1;
        }
    }
    let entry = |(path, (files, languages)): (&str, (u64, BTreeMap<&str, u64>))| {
        let main =
            languages.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
        LayoutEntry {
            path: path.to_owned(),
            files,
            role: main.map_or("", |(name, _)| name).to_owned(),
        }
    };
    folders.into_iter().map(entry).collect()
}
