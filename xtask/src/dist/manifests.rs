//! Files of a release that name the archives of it: Homebrew's formula, the Containerfile, and the
//! signed manifest that `cairn update` reads.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::tarball;
use crate::{
    files,
    project::{self, TARGETS},
};

/// Path of the secret key with which the program `minisign` signs the manifest.
const KEY_VARIABLE: &str = "CAIRN_SIGNING_KEY";
/// Its password; a key made with `minisign -G -W` has none.
const PASSWORD_VARIABLE: &str = "CAIRN_SIGNING_PASSWORD";

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
    written.extend(write_signed(version, out)?);
    Ok(written)
}

/// Writes `manifest.json`, and its signature if there is a key.
fn write_signed(version: &str, out: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<Value> = Vec::new();
    for path in files::files_below(out)? {
        let name = path.to_string_lossy().into_owned();
        let is_archive =
            name.starts_with(&format!("cairn-{version}-")) && name.ends_with(".tar.gz");
        if is_archive || name == "install.sh" {
            let bytes = files::read(&out.join(&path))?;
            let sum = hex::encode(files::sha256(&bytes));
            files.push(json!({"name": name, "sha256": sum, "size": bytes.len()}));
        }
    }
    let manifest = json!({"name": "cairn", "version": version, "files": files});
    let mut text = serde_json::to_string_pretty(&manifest).map_err(|e| e.to_string())?;
    text.push('\n');
    let path = out.join("manifest.json");
    files::write(&path, text.as_bytes())?;
    let signature = out.join("manifest.json.minisig");
    // One of an earlier manifest would not hold.
    let _may_not_exist = std::fs::remove_file(&signature);
    let Some(key) = std::env::var_os(KEY_VARIABLE) else {
        println!("manifest.json is not signed: set {KEY_VARIABLE} to the file of a minisign key");
        return Ok(vec![path]);
    };
    sign(&path, Path::new(&key), version)?;
    Ok(vec![path, signature])
}

fn sign(manifest: &Path, key: &Path, version: &str) -> Result<(), String> {
    let failed = |why: String| format!("minisign cannot sign {}: {why}", manifest.display());
    let mut signer = Command::new("minisign")
        .args(["-S", "-t", &format!("cairn {version}"), "-s"])
        .arg(key)
        .arg("-m")
        .arg(manifest)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    let password = std::env::var(PASSWORD_VARIABLE).unwrap_or_default();
    if let Some(mut stdin) = signer.stdin.take() {
        // A key without a password is not asked for one.
        let _closed = writeln!(stdin, "{password}");
    }
    match signer.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("it ended with {status}"))),
        Err(e) => Err(failed(e.to_string())),
    }
}
