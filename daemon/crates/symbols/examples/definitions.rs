//! Prints the definitions of the files of a folder, for a comparison with another program:
//! `cargo run --example definitions -p cairn-symbols -- FOLDER` prints path, line, last line, kind,
//! container and name, separated by tabs.
#![expect(clippy::print_stdout, reason = "an example")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use cairn_symbols::extract::{extract, has_definitions};
use cairn_workspace::language_of;

fn main() {
    let top = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_symlink() || path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                print_definitions(&top, &path);
            }
        }
    }
}

fn print_definitions(top: &Path, path: &Path) {
    let name = path.strip_prefix(top).unwrap_or(path).to_string_lossy();
    let Some(lang) = language_of(&name).filter(|lang| has_definitions(lang)) else { return };
    let Ok(text) = std::fs::read(path) else { return };
    let extracted = extract(lang, &name, &text, &AtomicBool::new(false)).unwrap_or_default();
    for s in extracted.symbols {
        let container = s.container.unwrap_or_default();
        println!("{name}\t{}\t{}\t{}\t{container}\t{}", s.start_line, s.end_line, s.kind, s.name);
    }
}
