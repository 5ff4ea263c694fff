//! Licences of the crates in the program, as their authors ask to have them passed on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{files, process, project, project::Target};

/// Beginnings of the names of files with a licence or its notices.
const LICENCE_FILES: &[&str] =
    &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];

/// Depth at which a crate has the sources of a C library.
const LIBRARY_DEPTH: usize = 2;

/// Returns one text: each licence once, after the crates that have it.
///
/// # Errors
/// A message if `cargo metadata` fails or a file cannot be read.
pub fn of_dependencies(target: Target) -> Result<String, String> {
    let args =
        ["metadata", "--format-version", "1", "--locked", "--filter-platform", target.triple];
    let metadata = process::output("cargo", &args, &project::root())?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let linked = linked(&metadata);
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in items(&metadata["packages"]) {
        let id = text(&package["id"]);
        if package["source"].is_null() || !linked.contains(id) {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let licence = package["license"].as_str().unwrap_or("see the text");
        let folder = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new(""));
        let mut own = licence_texts(folder)?;
        // The sources of a C library lie in a folder of the crate that links it.
        if !package["links"].is_null() {
            for below in folders_below(folder, LIBRARY_DEPTH) {
                own.extend(licence_texts(&below)?);
            }
        }
        own.sort();
        own.dedup();
        if own.is_empty() {
            texts.entry(String::new()).or_default().insert(format!("{name} ({licence})"));
        }
        for text in own {
            texts.entry(text).or_default().insert(format!("{name} ({licence})"));
        }
    }
    Ok(render(&texts))
}

fn render(texts: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut out = String::from("Cairn contains these libraries, each under its own licence.\n");
    for (text, names) in texts {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let body = if text.is_empty() { "These have no licence file of their own." } else { text };
        let _infallible = write!(out, "\n{}\n{}\n\n{body}\n", "=".repeat(80), names.join("\n"));
    }
    out
}

/// Returns the ids of all packages that the program is linked with, and of their build scripts'
/// own dependencies none.
fn linked(metadata: &Value) -> BTreeSet<String> {
    let nodes: BTreeMap<&str, &Value> =
        items(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let packages = items(&metadata["packages"]);
    let mut pending: Vec<&str> = packages
        .filter(|package| package["name"] == "cairn-daemon")
        .map(|package| text(&package["id"]))
        .collect();
    let mut all = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if !all.insert(id.to_owned()) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let is_normal = |dependency: &&Value| {
            items(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
        };
        pending.extend(
            items(&node["deps"]).filter(is_normal).map(|dependency| text(&dependency["pkg"])),
        );
    }
    all
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn folders_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    if depth > 1 {
        let deeper: Vec<PathBuf> =
            folders.iter().flat_map(|path| folders_below(path, depth - 1)).collect();
        folders.extend(deeper);
    }
    folders
}

fn licence_texts(folder: &Path) -> Result<Vec<String>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && LICENCE_FILES.iter().any(|start| name.starts_with(start))
    });
    paths.sort();
    let read = |path: &PathBuf| {
        let bytes = files::read(path)?;
        let lines: Vec<String> = String::from_utf8_lossy(&bytes)
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        Ok(lines.join("\n").trim_matches('\n').to_owned())
    };
    paths.iter().map(read).collect()
}
