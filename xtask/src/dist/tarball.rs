//! The archive, its checksum, and the script that installs it.

use std::path::{Path, PathBuf};

use crate::{
    content::Content,
    files::{self, Entry},
    project,
};

/// Returns the name of the archive, and of the folder in it, without `.tar.gz`.
pub fn name(version: &str, target: &str) -> String {
    format!("cairn-{version}-{target}")
}

/// Writes the archive, its checksum and `install.sh`.
pub fn write(content: &Content, out: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = name(&content.version, content.target.name);
    let below = |prefix: &str, entry: &Entry| Entry {
        path: format!("{folder}/{prefix}{}", entry.path),
        bytes: entry.bytes.clone(),
        is_executable: entry.is_executable,
    };
    let mut entries: Vec<Entry> = Vec::new();
    entries.extend(content.programs.iter().map(|entry| below("bin/", entry)));
    entries
        .extend(content.completions.iter().chain(&content.man_pages).map(|entry| below("", entry)));
    entries.extend(content.documents.iter().map(|entry| below("share/doc/cairn/", entry)));
    let archive = out.join(format!("{folder}.tar.gz"));
    let bytes = files::tar_gz(&entries, content.time)?;
    files::write(&archive, &bytes)?;
    let sum = out.join(format!("{folder}.tar.gz.sha256"));
    files::write(
        &sum,
        format!("{}  {folder}.tar.gz\n", hex::encode(files::sha256(&bytes))).as_bytes(),
    )?;
    let script = Entry {
        path: "install.sh".into(),
        bytes: project::template("install.sh", &[("@VERSION@", &content.version)])?.into_bytes(),
        is_executable: true,
    };
    script.write_below(out)?;
    Ok(vec![archive, sum, out.join("install.sh")])
}
