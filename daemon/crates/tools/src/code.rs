//! Views of a complete root: `count_languages`, `rank_files`, `list_folders`, `list_contents`,
//! `code_graph` and `trace_flow`.

use std::{collections::BTreeMap, sync::Arc};

use cairn_harness::Tool;
use cairn_protocol::{
    error::{Failure, Reason},
    explore::{Flow, LayoutEntry},
    session::Empty,
};
use cairn_search::FlowStart;
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

/// Arguments of the tool `list_folders`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListFoldersParams {
    /// Levels of folders, 1 to 8.
    #[serde(default = "default_depth")]
    depth: u32,
}

fn default_depth() -> u32 {
    1
}

/// Most folders of an answer; deeper ones are left out first.
const MAX_FOLDERS: usize = 2_000;

/// Arguments of the tool `code_graph`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CodeGraphParams {
    /// Folders and files whose imports of each other are counted, at most 100; a file belongs to
    /// the longest path that contains it.
    #[serde(default)]
    groups: Vec<String>,
    /// Number of files, at most 1000.
    #[serde(default = "default_k")]
    k: u32,
}

/// Arguments of the tool `trace_flow`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TraceFlowParams {
    /// File of the entrypoint, relative to the root.
    path: String,
    /// Line of the entrypoint, starting at 1.
    line: Option<u32>,
    /// Names of functions, of which the first that the file defines runs first; at most 20.
    #[serde(default)]
    names: Vec<String>,
    /// Folders and files of the components, at most 100; a file belongs to the longest path that
    /// contains it.
    #[serde(default)]
    groups: Vec<String>,
}

/// Most names of one request.
const MAX_NAMES: usize = 20;
/// Most groups of one request.
const MAX_GROUPS: usize = 100;

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
        "Folders with the number of files in them and their main language.",
        "folders",
        |deps, permit, params: ListFoldersParams, _| {
            let paths = deps.indexes.paths(&permit.require_root()?.id)?;
            let visible = paths.iter().filter(|path| permit.shows(path));
            let mut folders = folders_of(visible, params.depth.clamp(1, 8) as usize);
            let is_cut = folders.len() > MAX_FOLDERS;
            folders.sort_by_key(|folder| folder.path.matches('/').count());
            folders.truncate(MAX_FOLDERS);
            folders.sort_by(|a, b| a.path.cmp(&b.path));
            Ok((serde_json::json!({"folders": folders}), is_cut))
        },
    );
    let graph = reading(
        deps,
        "code_graph",
        "The files that most others import, and the imports between folders, resolved to files.",
        "code_graph",
        |deps, permit, params: CodeGraphParams, _| {
            check_count("groups", params.groups.len(), MAX_GROUPS)?;
            let root = &permit.require_root()?.id;
            let k = params.k.clamp(1, 1000) as usize;
            let shows = |path: &str| permit.shows(path);
            let graph = deps.indexes.code_graph(root, &params.groups, k, &shows)?;
            Ok((serde_json::to_value(graph).unwrap_or_default(), false))
        },
    );
    vec![
        Arc::new(languages),
        Arc::new(rank),
        Arc::new(folders),
        contents_tool(deps),
        Arc::new(graph),
        flow_tool(deps),
    ]
}

fn contents_tool(deps: &Deps) -> Arc<dyn Tool> {
    let contents = reading(
        deps,
        "list_contents",
        "The files with the hashes of their contents: what a replay compares a tree with.",
        "contents",
        |deps, permit, _: Empty, _| {
            let mut files = deps.indexes.contents(&permit.require_root()?.id)?;
            files.retain(|path, _| permit.shows(path));
            Ok((serde_json::json!({"files": files}), false))
        },
    );
    Arc::new(contents)
}

fn flow_tool(deps: &Deps) -> Arc<dyn Tool> {
    let tool = reading(
        deps,
        "trace_flow",
        "The path of the first request or command from an entrypoint, along calls that are certain.",
        "flow",
        |deps, permit, params: TraceFlowParams, flag| {
            check_count("groups", params.groups.len(), MAX_GROUPS)?;
            check_count("names", params.names.len(), MAX_NAMES)?;
            let root = &permit.require_root()?.id;
            let shows = |path: &str| permit.shows(path);
            let names = &params.names;
            let start = FlowStart { path: &params.path, line: params.line, names };
            let steps = deps.indexes.flow(root, &start, &params.groups, &shows, flag)?;
            Ok((Flow { entrypoint: params.path, steps }, false))
        },
    );
    Arc::new(tool)
}

fn check_count(what: &str, count: usize, most: usize) -> Result<(), Failure> {
    if count > most {
        let text = format!("{count} {what}; at most {most}");
        return Err(Failure::new(Reason::InvalidParams, text));
    }
    Ok(())
}

/// Returns the folders of these files to `depth` levels, each with all files below it; `.` has the
/// files beside the top-level folders.
fn folders_of<'a>(paths: impl Iterator<Item = &'a String>, depth: usize) -> Vec<LayoutEntry> {
    let mut folders: BTreeMap<&str, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    let mut add = |folder, path| {
        let (files, languages) = folders.entry(folder).or_default();
        *files += 1;
        if let Some(language) = cairn_workspace::language_of(path) {
            *languages.entry(language).or_default() += 1;
        }
    };
    for path in paths {
        if !path.contains('/') {
            add(".", path);
        }
        for (at, _) in path.match_indices('/').take(depth) {
            add(&path[..at], path);
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
