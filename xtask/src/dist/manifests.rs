//! Files of a release that name the archives of it: Homebrew's formula, and the Containerfile.

use std::path::{Path, PathBuf};

use super::tarball;
use crate::{
    files,
    project::{self, TARGETS},
};

/// Writes the formula, with the checksums of the archives in `out`, and the Containerfile.
pub fn write(version: &str, out: &Path) -> Result<Vec<PathBuf>, String> {
    let mut values = vec![("@VERSION@".to_owned(), version.to_owned())];
    for target in TARGETS {
        let archive = out.join(format!("{}.tar.gz", tarball::name(version, target.name)));
        let sum = match std::fs::read(&archive) {
            Ok(bytes) => hex::encode(files::sha256(&bytes)),
            Err(_) => {
                println!("{} is missing: the formula has no checksum for it", archive.display());
                "0".repeat(64)
            }
        };
        values.push((format!("@SHA256-{}@", target.name), sum));
    }
    let values: Vec<(&str, &str)> =
        values.iter().map(|(word, value)| (word.as_str(), value.as_str())).collect();
    let mut written = Vec::new();
    for (template, name) in
        [("homebrew/cairn.rb", "cairn.rb"), ("oci/Containerfile", "Containerfile")]
    {
        let path = out.join(name);
        files::write(&path, project::template(template, &values)?.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}
