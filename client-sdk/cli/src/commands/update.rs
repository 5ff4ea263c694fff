//! `cairn update`: replaces a program that `install.sh` installed by the newest release, after the
//! signature of its manifest and the checksums of its files.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use minisign_verify::{PublicKey, Signature};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{
    app::App,
    exit::{Failure, OK},
    program::Owner,
    render::output,
    version,
};

/// The key of the project's releases, if this build has one.
const RELEASE_KEY: Option<&str> = option_env!("CAIRN_RELEASE_KEY");
/// The address of the newest release.
const LATEST: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/releases/latest/download");
const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "manifest.json.minisig";
const INSTALLER: &str = "install.sh";
/// Maximum bytes of the manifest, its signature and the installer.
const MAX_SMALL: u64 = 1024 * 1024;
/// Maximum bytes of an archive.
const MAX_ARCHIVE: u64 = 512 * 1024 * 1024;

#[derive(Debug, Clone, Args)]
pub struct UpdateArgs {
    /// Only print whether there is a newer version
    #[arg(long)]
    check: bool,
    /// Take the release from a folder or another address
    #[arg(long, value_name = "DIR|URL")]
    from: Option<String>,
    /// The minisign public key that signed the release, if not the project's
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// The files of a release, as its manifest lists them.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Manifest {
    version: String,
    files: Vec<ReleaseFile>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct ReleaseFile {
    name: String,
    /// Lower-case hexadecimal digits.
    sha256: String,
    /// Bytes of the file.
    size: u64,
}

impl Manifest {
    fn file(&self, name: &str) -> Result<&ReleaseFile, Failure> {
        self.files.iter().find(|file| file.name == name).ok_or_else(|| {
            let text = format!("release {} has no file {name}", self.version);
            Failure::failed(text).hint("there may be no package for this system")
        })
    }
}

pub fn run(app: &App<'_>, args: &UpdateArgs) -> Result<u8, Failure> {
    let owner = crate::installed_by();
    let prefix = match &owner {
        Owner::Script(prefix) => Some(prefix),
        _ if args.check => None,
        owner => {
            let text = format!("this program belongs to {}", owner.name());
            return Err(Failure::refused(text).hint(format!("update it: {}", owner.update_line())));
        }
    };
    let key = key(args.key.as_deref())?;
    let base = args.from.as_deref().unwrap_or(LATEST);
    let source = Source { app, base };
    let manifest =
        verified(&key, &source.read(MANIFEST, MAX_SMALL)?, &source.read(SIGNATURE, MAX_SMALL)?)?;
    let is_newer = version::is_older(version::OWN, &manifest.version);
    if args.check || !is_newer {
        return report(app, &owner, &manifest.version, is_newer);
    }
    let Some(prefix) = prefix else { return report(app, &owner, &manifest.version, is_newer) };
    install(&source, &manifest, prefix)?;
    Ok(OK)
}

/// Reads the key that signs releases.
fn key(file: Option<&Path>) -> Result<PublicKey, Failure> {
    let invalid = |e: minisign_verify::Error| Failure::failed(format!("the key is invalid: {e}"));
    match (file, RELEASE_KEY) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file).map_err(|e| Failure::path(file, &e))?;
            PublicKey::decode(text.trim()).map_err(invalid)
        }
        (None, Some(key)) => PublicKey::from_base64(key).map_err(invalid),
        (None, None) => {
            Err(Failure::failed("this program is no release: it has no key to check one")
                .hint("name the key that signed the release with --key FILE"))
        }
    }
}

/// Checks the signature and parses the manifest.
fn verified(key: &PublicKey, manifest: &[u8], signature: &[u8]) -> Result<Manifest, Failure> {
    let refused = |why: String| {
        Failure::refused(format!("the signature of {MANIFEST} does not hold: {why}"))
            .hint("nothing was changed; the release may have been altered on its way")
    };
    let text = std::str::from_utf8(signature).map_err(|e| refused(e.to_string()))?;
    let signature = Signature::decode(text).map_err(|e| refused(e.to_string()))?;
    key.verify(manifest, &signature, false).map_err(|e| refused(e.to_string()))?;
    serde_json::from_slice(manifest)
        .map_err(|e| Failure::failed(format!("{MANIFEST} cannot be read: {e}")))
}

/// A folder or an address with the files of a release.
struct Source<'a> {
    app: &'a App<'a>,
    base: &'a str,
}

impl Source<'_> {
    fn read(&self, name: &str, max_bytes: u64) -> Result<Vec<u8>, Failure> {
        let base = self.base.trim_end_matches('/');
        if base.starts_with("https://") || base.starts_with("http://") {
            let url = format!("{base}/{name}");
            return self.app.host.download(&url, max_bytes).map_err(Failure::failed);
        }
        let path = Path::new(base.strip_prefix("file://").unwrap_or(base)).join(name);
        let size = path.metadata().map_err(|e| Failure::path(&path, &e))?.len();
        if size > max_bytes {
            let text = format!("{}: {size} bytes, at most {max_bytes}", path.display());
            return Err(Failure::failed(text));
        }
        std::fs::read(&path).map_err(|e| Failure::path(&path, &e))
    }

    /// Reads a file of the release whose checksum holds.
    fn checked(&self, file: &ReleaseFile, max_bytes: u64) -> Result<Vec<u8>, Failure> {
        let bytes = self.read(&file.name, file.size.min(max_bytes))?;
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if sum == file.sha256 {
            return Ok(bytes);
        }
        let text = format!("the checksum of {} is wrong", file.name);
        Err(Failure::refused(text).hint("nothing was changed; try again later"))
    }
}

/// Runs the release's own installer on the checked archive.
fn install(source: &Source<'_>, manifest: &Manifest, prefix: &Path) -> Result<(), Failure> {
    let archive = format!("cairn-{}-{}.tar.gz", manifest.version, platform());
    let files = [(INSTALLER, MAX_SMALL), (archive.as_str(), MAX_ARCHIVE)];
    let folder = tempfile::tempdir()?;
    for (name, max_bytes) in files {
        let file = manifest.file(name)?;
        source.app.info(&format!("reading {name}, {}", output::bytes(file.size)));
        std::fs::write(folder.path().join(name), source.checked(file, max_bytes)?)?;
    }
    let sum = format!("{}  {archive}\n", manifest.file(&archive)?.sha256);
    std::fs::write(folder.path().join(format!("{archive}.sha256")), sum)?;
    let status = Command::new("sh")
        .arg(folder.path().join(INSTALLER))
        .arg("--prefix")
        .arg(prefix)
        .env("CAIRN_DOWNLOAD_BASE", folder.path())
        .stdin(Stdio::null())
        .status()
        .map_err(|e| Failure::failed(format!("sh: {e}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::failed("the installer failed; the older program is unchanged")),
    }
}

/// The platform's name in the names of archives.
fn platform() -> String {
    let os = if cfg!(target_os = "macos") { "macos" } else { std::env::consts::OS };
    format!("{}-{os}", std::env::consts::ARCH)
}

fn report(app: &App<'_>, owner: &Owner, newest: &str, is_newer: bool) -> Result<u8, Failure> {
    if app.globals.json {
        output::json(&serde_json::json!({
            "version": version::OWN,
            "newest": newest,
            "isNewer": is_newer,
            "installedBy": owner.name(),
            "update": owner.update_line(),
        }))?;
    } else if is_newer {
        output::line(&format!("{newest} is available, this is {}", version::OWN))?;
        output::line(&format!("update it: {}", owner.update_line()))?;
    } else {
        output::line(&format!("this is {}; the release has {newest}", version::OWN))?;
    }
    Ok(OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by `minisign -G -W` and `minisign -S -t "cairn 0.2.0"`.
    const KEY: &str = "RWShJftw/VZPL6HF3WYZtyyKC1JoQ0O3mS9jubswWvUNNKC1+7/sElcv";
    const OTHER_KEY: &str = "RWQyBqP4ROawS4Rb1Df/RG++nDfnjBcqs0V1EJst3asQ6mAtWIq+vFog";
    const MANIFEST: &str = concat!(
        r#"{"name": "cairn", "version": "0.2.0", "#,
        r#""files": [{"name": "install.sh", "sha256": "00", "size": 2}]}"#
    );
    const SIGNED: &str = include_str!("update/manifest.json.minisig");

    #[test]
    fn manifest_is_read_only_with_its_signature() {
        let key = PublicKey::from_base64(KEY).unwrap();
        let manifest = verified(&key, MANIFEST.as_bytes(), SIGNED.as_bytes()).unwrap();
        assert_eq!(manifest.version, "0.2.0");
        assert_eq!(manifest.file("install.sh").unwrap().size, 2);
        assert!(manifest.file("cairn-0.2.0-x86_64-linux.tar.gz").is_err());
        let altered = MANIFEST.replace("0.2.0", "9.9.9");
        let other = PublicKey::from_base64(OTHER_KEY).unwrap();
        let comment = SIGNED.replace("cairn 0.2.0", "cairn 9.9.9");
        assert!(verified(&key, altered.as_bytes(), SIGNED.as_bytes()).is_err());
        assert!(verified(&other, MANIFEST.as_bytes(), SIGNED.as_bytes()).is_err());
        assert!(verified(&key, MANIFEST.as_bytes(), comment.as_bytes()).is_err());
        assert!(verified(&key, MANIFEST.as_bytes(), b"").is_err());
        assert!(verified(&key, MANIFEST.as_bytes(), b"\xff").is_err());
    }
}
