//! `cargo xtask dist`: the packages of a release, from two programs.

mod clients;
mod linux;
mod manifests;
mod npm;
mod tarball;
mod tools;
mod wheel;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, ValueEnum};

use crate::{
    content::Content,
    files, portable,
    project::{self, Target},
};

/// Arguments of `cargo xtask dist`.
#[derive(Debug, Args)]
pub struct DistArgs {
    /// Take cairn and cairn-sandbox from this folder instead of building them
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// The platform, as a Rust target; this machine's without it
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Only these packages, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PACKAGES")]
    only: Vec<Package>,
    /// The folder for the packages
    #[arg(long, default_value = "target/packages", value_name = "DIR")]
    out: PathBuf,
    /// Man pages, instead of those that `cairn man` writes
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,
    /// Another version on the packages, for tests of upgrades
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"), value_name = "VERSION")]
    package_version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Package {
    /// The archive, its checksum, and install.sh
    Tar,
    Deb,
    Rpm,
    /// The program for pip and uv
    Wheel,
    /// The program for npm and npx
    Npm,
    /// The client library for Python
    Python,
    /// The client library for TypeScript
    Typescript,
    /// Homebrew's formula and the Containerfile; they need the archive in the out folder
    Manifests,
}

/// Builds the packages and prints a table of their sizes.
pub fn run(args: &DistArgs) -> Result<(), String> {
    let target = match &args.target {
        Some(triple) => Target::named(triple)?,
        None => Target::host()?,
    };
    let out = std::path::absolute(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let selected = selection(&args.only, target);
    let mut written: Vec<PathBuf> = Vec::new();
    let binaries = match &args.binaries {
        Some(folder) => Some(folder.clone()),
        None if selected.iter().any(|package| package.needs_program()) => {
            let built = portable::build(target, &out, &args.package_version)?;
            written.push(built.debug_archive);
            Some(built.folder)
        }
        None => None,
    };
    let content = match binaries {
        Some(folder) if selected.iter().any(|package| package.needs_program()) => {
            let content =
                Content::collect(&folder, target, &args.package_version, args.man.as_deref())?;
            report_content(&content);
            Some(content)
        }
        _ => None,
    };
    for package in selected {
        let started = Instant::now();
        let files = build(package, content.as_ref(), &args.package_version, &out)?;
        for file in &files {
            let bytes = files::read(file)?.len();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            println!(
                "{:<72} {:>9.2} MB  {:>5.1} s",
                name,
                megabytes(bytes),
                started.elapsed().as_secs_f64()
            );
        }
        written.extend(files);
    }
    write_checksums(&out)
}

impl Package {
    fn needs_program(self) -> bool {
        !matches!(self, Self::Python | Self::Typescript | Self::Manifests)
    }
}

/// Returns the packages to build; without a list, all that the platform has.
fn selection(only: &[Package], target: Target) -> BTreeSet<Package> {
    if !only.is_empty() {
        return only.iter().copied().collect();
    }
    let of_linux = |package: &Package| !matches!(package, Package::Deb | Package::Rpm);
    Package::value_variants()
        .iter()
        .copied()
        .filter(|package| target.is_linux() || of_linux(package))
        .collect()
}

fn build(
    package: Package,
    content: Option<&Content>,
    version: &str,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let program = || content.ok_or_else(|| "the package needs the program".to_owned());
    match package {
        Package::Tar => tarball::write(program()?, out),
        Package::Deb => linux::write(program()?, linux::Format::Deb, out),
        Package::Rpm => linux::write(program()?, linux::Format::Rpm, out),
        Package::Wheel => wheel::write(program()?, out),
        Package::Npm => npm::write(program()?, out),
        Package::Python => clients::python(version, out),
        Package::Typescript => clients::typescript(version, out),
        Package::Manifests => manifests::write(version, out),
    }
}

fn report_content(content: &Content) {
    for entry in &content.programs {
        println!("{:<72} {:>9.2} MB", entry.path, megabytes(entry.bytes.len()));
    }
    if content.target.is_linux() {
        let foreign = content.needs.foreign();
        println!(
            "needs glibc 2.{}{}",
            content.needs.glibc,
            if foreign.is_empty() { "" } else { " and:" }
        );
        for library in foreign {
            println!("  {library}: not on every system; the portable build links it statically");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files, printed with two digits")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Writes `SHA256SUMS` over the packages of all runs with this out folder.
fn write_checksums(out: &Path) -> Result<(), String> {
    let mut text = String::new();
    for path in files::files_below(out)? {
        let name = path.to_string_lossy();
        let is_package =
            [".gz", ".tgz", ".deb", ".rpm", ".whl", ".sh"].iter().any(|end| name.ends_with(end));
        // Files in folders below are parts of packages.
        if is_package && path.components().count() == 1 {
            let sum = files::sha256(&files::read(&out.join(&path))?);
            let _infallible = writeln!(text, "{}  {name}", hex::encode(sum));
        }
    }
    files::write(&out.join("SHA256SUMS"), text.as_bytes())
}

/// Returns the folder of the tools from PyPI.
pub fn tools() -> Result<PathBuf, String> {
    tools::python()
}

/// Returns the folder for parts of packages and tools, which is no part of a release.
pub fn work_folder() -> PathBuf {
    project::root().join("target/dist-work")
}
