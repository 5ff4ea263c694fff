//! The files that the packages share: programs, completions, man pages, documents.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    elf::Needs,
    files::{self, Entry},
    licences, process,
    project::{self, Target},
};

/// Shells, and the completion's path below the prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/cairn"),
    ("zsh", "share/zsh/site-functions/_cairn"),
    ("fish", "share/fish/vendor_completions.d/cairn.fish"),
];

/// The shared files of one platform and version.
pub struct Content {
    pub version: String,
    pub target: Target,
    /// Time that all files carry, in seconds since 1970.
    pub time: u64,
    /// `cairn`, and `cairn-sandbox` where there is one; paths are the bare names.
    pub programs: Vec<Entry>,
    /// Completions, with paths below a prefix such as `/usr`.
    pub completions: Vec<Entry>,
    /// Man pages, with paths below a prefix.
    pub man_pages: Vec<Entry>,
    /// Readme, changelog and licences; paths are the bare names.
    pub documents: Vec<Entry>,
    /// Needs of the programs; empty on macOS.
    pub needs: Needs,
}

impl Content {
    /// Reads the programs of `binaries` and runs `cairn` for its completions and man pages.
    pub fn collect(
        binaries: &Path,
        target: Target,
        version: &str,
        man: Option<&Path>,
    ) -> Result<Self, String> {
        let program = binaries.join("cairn");
        let mut programs = vec![Entry::program("cairn", files::read(&program)?)];
        let sandbox = binaries.join("cairn-sandbox");
        if sandbox.exists() {
            programs.push(Entry::program("cairn-sandbox", files::read(&sandbox)?));
        }
        let mut needs = Needs::default();
        if target.is_linux() {
            for entry in &programs {
                needs.merge(Needs::of(&entry.bytes).map_err(|e| format!("{}: {e}", entry.path))?);
            }
        }
        let completions = COMPLETIONS
            .iter()
            .map(|(shell, path)| {
                let text = process::output_of(Command::new(&program).args(["completions", shell]))?;
                Ok(Entry::text(*path, text))
            })
            .collect::<Result<Vec<Entry>, String>>()?;
        let mut documents = Vec::new();
        for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            documents.push(Entry::text(name, files::read_text(&project::root().join(name))?));
        }
        documents.push(Entry::text("THIRD-PARTY.txt", licences::of_dependencies(target)?));
        let time = project::source_date()?;
        let man_pages = man_pages(&program, man)?;
        let version = version.to_owned();
        Ok(Self { version, target, time, programs, completions, man_pages, documents, needs })
    }
}

/// Returns the man pages of a folder, or those that the program writes.
fn man_pages(program: &Path, given: Option<&Path>) -> Result<Vec<Entry>, String> {
    let written = std::env::temp_dir().join(format!("cairn-man-{}", std::process::id()));
    let folder: PathBuf = if let Some(folder) = given {
        folder.to_path_buf()
    } else {
        files::empty_folder(&written)?;
        if let Err(message) = process::output_of(Command::new(program).arg("man").arg(&written)) {
            println!("no man pages: {}", message.lines().next().unwrap_or_default());
        }
        written.clone()
    };
    let pages = files::files_below(&folder)?
        .into_iter()
        .map(|path| {
            let text = files::read_text(&folder.join(&path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Entry::text(format!("share/man/man1/{name}"), text))
        })
        .collect();
    // A temporary folder that stays harms no package.
    let _left = std::fs::remove_dir_all(written);
    pages
}
