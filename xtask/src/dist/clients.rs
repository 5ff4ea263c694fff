//! The client libraries as packages: a wheel for Python, an archive of npm for TypeScript.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::tools;
use crate::{files, process, project};

/// Writes the wheel and the source archive of the Python client.
pub fn python(version: &str, out: &Path) -> Result<Vec<PathBuf>, String> {
    let source = stage("client-sdk/python", "client-python", "pyproject.toml", version, |v| {
        format!("version = \"{v}\"")
    })?;
    let built = super::work_folder().join("client-python-built");
    files::empty_folder(&built)?;
    // In the tools' own environment, which has the backend at its pinned version.
    let mut build = Command::new(tools::python()?.join("python"));
    build.args(["-m", "build", "--no-isolation", "--outdir"]).arg(&built).arg(&source);
    build.env("SOURCE_DATE_EPOCH", project::source_date()?.to_string());
    process::output_of(&mut build)?;
    let mut written = Vec::new();
    for path in files::files_below(&built)? {
        files::copy(&built.join(&path), &out.join(&path))?;
        written.push(out.join(path));
    }
    Ok(written)
}

/// Writes the archive of the TypeScript client, with its compiled files, types and source maps.
pub fn typescript(version: &str, out: &Path) -> Result<Vec<PathBuf>, String> {
    let source =
        stage("client-sdk/typescript", "client-typescript", "package.json", version, |v| {
            format!("\"version\": \"{v}\"")
        })?;
    let modules = tools::node_modules()?;
    let mut compiler = Command::new("node");
    compiler.arg(modules.join("typescript/bin/tsc")).arg("-p").arg(&source);
    process::output_of(compiler.arg("--typeRoots").arg(modules.join("@types")))?;
    Ok(vec![tools::npm_pack(&source, out)?])
}

/// Copies a client's sources, with the licences and the version of the package.
fn stage(
    client: &str,
    name: &str,
    manifest: &str,
    version: &str,
    line: impl Fn(&str) -> String,
) -> Result<PathBuf, String> {
    let own = env!("CARGO_PKG_VERSION");
    let folder = project::root().join(client);
    let stage = super::work_folder().join(name);
    files::empty_folder(&stage)?;
    for path in files::files_below(&folder)? {
        let is_built = ["node_modules", "dist", "__pycache__"];
        if path.components().any(|part| is_built.iter().any(|built| part.as_os_str() == *built)) {
            continue;
        }
        files::write(&stage.join(&path), &files::read(&folder.join(&path))?)?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files::copy(&project::root().join(licence), &stage.join(licence))?;
    }
    let path = stage.join(manifest);
    let text = files::read_text(&path)?;
    if !text.contains(&line(own)) {
        return Err(format!("{client}/{manifest} has not the version {own} of the workspace"));
    }
    files::write(&path, text.replace(&line(own), &line(version)).as_bytes())?;
    Ok(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_the_version_of_the_workspace() {
        let own = env!("CARGO_PKG_VERSION");
        let read = |path: &str| std::fs::read_to_string(project::root().join(path)).unwrap();
        assert!(read("client-sdk/python/pyproject.toml").contains(&format!("version = \"{own}\"")));
        assert!(
            read("client-sdk/typescript/package.json").contains(&format!("\"version\": \"{own}\""))
        );
    }
}
