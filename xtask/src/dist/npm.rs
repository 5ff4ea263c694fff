//! The program for npm: a package with the command, and one for each platform with the program.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::tools;
use crate::{
    content::Content,
    files::{self, Entry},
    project::{self, LICENCE, REGISTRY_NAME, REPOSITORY, SUMMARY, TARGETS},
};

/// Writes the package with the command and the package of the content's platform.
pub fn write(content: &Content, out: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(vec![command_package(content, out)?, platform_package(content, out)?])
}

fn package(name: &str, version: &str) -> Map<String, Value> {
    let value = json!({
        "name": name,
        "version": version,
        "description": SUMMARY,
        "license": LICENCE,
        "homepage": REPOSITORY,
        "repository": {"type": "git", "url": format!("git+{REPOSITORY}.git")},
        "preferUnplugged": true,
    });
    value.as_object().cloned().unwrap_or_default()
}

fn pack(
    folder: &str,
    manifest: &Map<String, Value>,
    entries: &[Entry],
    out: &Path,
) -> Result<PathBuf, String> {
    let stage = super::work_folder().join(folder);
    files::empty_folder(&stage)?;
    let text = serde_json::to_string_pretty(manifest).map_err(|e| e.to_string())?;
    Entry::text("package.json", text + "\n").write_below(&stage)?;
    for entry in entries {
        entry.write_below(&stage)?;
    }
    tools::npm_pack(&stage, out)
}

fn licences() -> Result<Vec<Entry>, String> {
    let read = |name: &str| Ok(Entry::text(name, files::read_text(&project::root().join(name))?));
    ["LICENSE-MIT", "LICENSE-APACHE"].into_iter().map(read).collect()
}

fn command_package(content: &Content, out: &Path) -> Result<PathBuf, String> {
    let mut manifest = package(REGISTRY_NAME, &content.version);
    let platforms: Map<String, Value> =
        TARGETS.iter().map(|target| (target.npm_package(), json!(content.version))).collect();
    manifest.insert("bin".into(), json!({"cairn": "cairn.cjs"}));
    manifest.insert("engines".into(), json!({"node": ">=16"}));
    manifest.insert("files".into(), json!(["cairn.cjs", "LICENSE-*"]));
    manifest.insert("optionalDependencies".into(), Value::Object(platforms));
    let shim = project::template("npm/cairn.cjs", &[])?;
    let mut entries = vec![
        Entry::program("cairn.cjs", shim.into_bytes()),
        Entry::text("README.md", project::template("npm/README.md", &[])?),
    ];
    entries.extend(licences()?);
    pack("npm", &manifest, &entries, out)
}

fn platform_package(content: &Content, out: &Path) -> Result<PathBuf, String> {
    let target = content.target;
    let name = target.npm_package();
    let mut manifest = package(&name, &content.version);
    manifest.insert("os".into(), json!([target.node.0]));
    manifest.insert("cpu".into(), json!([target.node.1]));
    if target.is_linux() {
        manifest.insert("libc".into(), json!(["glibc"]));
    }
    manifest.insert("files".into(), json!(["bin", "share", "THIRD-PARTY.txt", "LICENSE-*"]));
    let readme = format!(
        "# {name}\n\nThe program of the package `{REGISTRY_NAME}` for {}: install that one.\n",
        target.name
    );
    let mut entries = vec![Entry::text("README.md", readme)];
    for program in &content.programs {
        entries.push(Entry::program(format!("bin/{}", program.path), program.bytes.clone()));
    }
    entries.extend(content.completions.iter().chain(&content.man_pages).cloned());
    entries
        .extend(content.documents.iter().filter(|entry| entry.path == "THIRD-PARTY.txt").cloned());
    entries.extend(licences()?);
    pack(&name, &manifest, &entries, out)
}
