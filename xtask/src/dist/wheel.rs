//! The wheel that is the program, and the source archive that explains itself where no wheel fits.
//!
//! A wheel is a zip archive with a list of its files (PyPA, "Binary distribution format"). Files below `….data/scripts` become commands.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    content::Content,
    files::{self, Entry},
    portable,
    project::{self, LICENCE, REGISTRY_NAME, REPOSITORY, SUMMARY, Target},
};

/// Writes the wheel and the source archive.
pub fn write(content: &Content, out: &Path) -> Result<Vec<PathBuf>, String> {
    let module = REGISTRY_NAME.replace('-', "_");
    let stem = format!("{module}-{}", content.version);
    let metadata = metadata(&content.version)?;
    let info = format!("{stem}.dist-info");
    let tags = tags(content);
    let mut entries: Vec<Entry> = Vec::new();
    for program in &content.programs {
        entries.push(Entry::program(
            format!("{stem}.data/scripts/{}", program.path),
            program.bytes.clone(),
        ));
    }
    // `uvx cairn-agent` runs the command that is named like the package.
    let alias = "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/cairn\" \"$@\"\n";
    entries.push(Entry::program(format!("{stem}.data/scripts/{REGISTRY_NAME}"), alias.into()));
    // No completions and man pages: pip leaves their folders behind when it removes the package.
    for entry in content.documents.iter().filter(|entry| is_licence(entry)) {
        entries.push(Entry { path: format!("{info}/licenses/{}", entry.path), ..entry.clone() });
    }
    entries.push(Entry::text(format!("{info}/METADATA"), metadata.as_str()));
    let mut wheel =
        String::from("Wheel-Version: 1.0\nGenerator: cairn-xtask\nRoot-Is-Purelib: false\n");
    for tag in &tags {
        let _infallible = writeln!(wheel, "Tag: py3-none-{tag}");
    }
    entries.push(Entry::text(format!("{info}/WHEEL"), wheel));
    let record = record(&entries, &format!("{info}/RECORD"));
    entries.push(Entry::text(format!("{info}/RECORD"), record));
    let path = out.join(format!("{stem}-py3-none-{}.whl", tags.join(".")));
    files::write(&path, &files::zip(&entries)?)?;
    let source = out.join(format!("{stem}.tar.gz"));
    files::write(
        &source,
        &files::tar_gz(&refusal(&stem, &content.version, &metadata)?, content.time)?,
    )?;
    Ok(vec![path, source])
}

fn is_licence(entry: &Entry) -> bool {
    entry.path.starts_with("LICENSE") || entry.path.starts_with("THIRD-PARTY")
}

/// Returns the platform tags that the program fulfils.
fn tags(content: &Content) -> Vec<String> {
    let Target { machine, node, .. } = content.target;
    if node.0 == "darwin" {
        // The oldest systems that Rust supports on each.
        let version = if machine == "arm64" { "11_0" } else { "10_12" };
        return vec![format!("macosx_{version}_{machine}")];
    }
    let glibc = content.needs.glibc.max(portable::GLIBC);
    let mut tags = vec![format!("manylinux_2_{glibc}_{machine}")];
    if glibc == portable::GLIBC {
        // The name of the same before pip 20.3.
        tags.push(format!("manylinux2014_{machine}"));
    }
    tags
}

fn metadata(version: &str) -> Result<String, String> {
    let readme = project::template("python/README.md", &[])?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: {REGISTRY_NAME}\nVersion: {version}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENCE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY.txt\nProject-URL: Homepage, {REPOSITORY}\n\
         Classifier: Environment :: Console\nClassifier: Topic :: Software Development\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
    ))
}

fn record(entries: &[Entry], own: &str) -> String {
    let mut text = String::new();
    for entry in entries {
        let sum = URL_SAFE_NO_PAD.encode(files::sha256(&entry.bytes));
        let _infallible = writeln!(text, "{},sha256={sum},{}", entry.path, entry.bytes.len());
    }
    text + own + ",,\n"
}

/// Returns the files of a source archive whose build ends with the reason why there is no wheel:
/// pip takes it where no wheel has a fitting tag.
fn refusal(stem: &str, version: &str, metadata: &str) -> Result<Vec<Entry>, String> {
    let project = format!(
        "[build-system]\nrequires = []\nbuild-backend = \"refuse\"\nbackend-path = [\".\"]\n\n\
         [project]\nname = \"{REGISTRY_NAME}\"\nversion = \"{version}\"\n"
    );
    let mut entries = vec![
        Entry::text(format!("{stem}/PKG-INFO"), metadata),
        Entry::text(format!("{stem}/pyproject.toml"), project),
        Entry::text(format!("{stem}/refuse.py"), project::template("python/refuse.py", &[])?),
        Entry::text(
            format!("{stem}/THIRD-PARTY.txt"),
            "The wheels have the licences of their libraries.\n",
        ),
    ];
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let text = files::read_text(&project::root().join(name))?;
        entries.push(Entry::text(format!("{stem}/{name}"), text));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_lists_itself_without_a_checksum() {
        let text = record(&[Entry::text("a", "")], "x/RECORD");
        assert_eq!(text, "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nx/RECORD,,\n");
    }
}
