//! The portable program: built against an old glibc, stripped, its debug information in an archive of its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    dist,
    elf::Needs,
    files::{self, Entry},
    process, project,
    project::Target,
};

/// The oldest glibc that the program runs on: that of RHEL 7 and of the tag manylinux2014.
pub const GLIBC: u32 = 17;

pub struct Built {
    /// Folder with the stripped `cairn` and `cairn-sandbox`.
    pub folder: PathBuf,
    pub debug_archive: PathBuf,
}

/// Builds the binaries of the daemon with the profile `dist`, strips them, and writes the archive
/// of their debug information.
///
/// # Errors
/// A message if a tool is missing, the build fails, or the program needs more than the oldest
/// supported system has.
pub fn build(target: Target, out: &Path, version: &str) -> Result<Built, String> {
    let compiled = compile(target)?;
    let folder = dist::work_folder().join(target.name).join("bin");
    files::empty_folder(&folder)?;
    let mut debug = Vec::new();
    for name in ["cairn", "cairn-sandbox"] {
        let source = compiled.join(name);
        let stripped = folder.join(name);
        let full = files::read(&source)?;
        debug.push(split(&source, &stripped, target)?);
        let bytes = files::read(&stripped)?;
        println!("{name}: {} bytes with debug information, {} stripped", full.len(), bytes.len());
        if target.is_linux() {
            check(name, &Needs::of(&bytes)?)?;
        }
    }
    let debug_archive = out.join(format!("cairn-debug-{version}-{}.tar.gz", target.name));
    files::write(&debug_archive, &files::tar_gz(&debug, project::source_date()?)?)?;
    Ok(Built { folder, debug_archive })
}

/// Runs the compiler and returns the folder of its binaries.
fn compile(target: Target) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(project::root());
    let triple = if target.is_linux() {
        let tools = dist::tools()?;
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("{}:{path}", tools.display()));
        // libgit2 would otherwise be linked with the zlib of this machine.
        cargo.env("LIBZ_SYS_STATIC", "1").arg("zigbuild");
        format!("{}.2.{GLIBC}", target.triple)
    } else {
        cargo.arg("build");
        target.triple.to_owned()
    };
    cargo.args([
        "--locked",
        "--profile",
        "dist",
        "-p",
        "cairn-daemon",
        "--bins",
        "--target",
        &triple,
    ]);
    process::run(&mut cargo)?;
    let base = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| project::root().join("target"), PathBuf::from);
    Ok(project::root().join(base).join(target.triple).join("dist"))
}

/// Writes the stripped program and returns its debug information, for an archive.
fn split(source: &Path, stripped: &Path, target: Target) -> Result<Entry, String> {
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files::copy(source, stripped)?;
    if !target.is_linux() {
        process::run(Command::new("strip").arg("-x").arg(stripped))?;
        return Ok(Entry::program(format!("{name}.unstripped"), files::read(source)?));
    }
    // Named as the link in the stripped program names it.
    let debug = stripped.with_file_name(format!("{name}.debug"));
    let mut keep = Command::new("objcopy");
    process::run(
        keep.args(["--only-keep-debug", "--compress-debug-sections"]).arg(source).arg(&debug),
    )?;
    process::run(
        Command::new("objcopy").args(["--strip-all", "--remove-section=.comment"]).arg(stripped),
    )?;
    let mut link = Command::new("objcopy");
    process::run(link.arg(format!("--add-gnu-debuglink={}", debug.display())).arg(stripped))?;
    let bytes = files::read(&debug)?;
    std::fs::remove_file(&debug).map_err(|e| format!("{}: {e}", debug.display()))?;
    Ok(Entry { path: format!("{name}.debug"), bytes, is_executable: false })
}

fn check(name: &str, needs: &Needs) -> Result<(), String> {
    let foreign = needs.foreign();
    if needs.glibc > GLIBC || !foreign.is_empty() {
        return Err(format!(
            "{name} is not portable: it needs glibc 2.{} (at most 2.{GLIBC} is allowed) and the libraries {foreign:?}",
            needs.glibc
        ));
    }
    Ok(())
}
