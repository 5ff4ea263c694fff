//! The packages of Debian and RPM, written by nfpm.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    content::Content,
    files::{self, Entry},
    process, project,
};

/// Folder of the programs. `/usr/bin/cairn` is a link: the daemon looks for `cairn-sandbox`
/// beside the file that a link leads to, and that is no command for people.
const PROGRAMS: &str = "usr/lib/cairn";
const DOCUMENTS: &str = "usr/share/doc/cairn";
/// Release of the package within a version of the program.
const RELEASE: &str = "1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Deb,
    Rpm,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
        }
    }
}

/// Writes the package of one format.
pub fn write(content: &Content, format: Format, out: &Path) -> Result<Vec<PathBuf>, String> {
    if content.target.debian.is_empty() {
        return Err(format!("there is no .{} for {}", format.name(), content.target.name));
    }
    let stage = super::work_folder().join(format!("{}-{}", format.name(), content.target.name));
    files::empty_folder(&stage)?;
    let root = stage.join("root");
    for entry in entries(content, format)? {
        entry.write_below(&root)?;
    }
    let scripts = [("postinstall", "linux/postinst.sh"), ("preremove", "linux/prerm.sh")];
    for (name, template) in scripts {
        Entry::program(name, project::template(template, &[])?.into_bytes()).write_below(&stage)?;
    }
    let config = stage.join("nfpm.json");
    let text = serde_json::to_string_pretty(&config_of(content, format, &stage)?)
        .map_err(|e| e.to_string())?;
    files::write(&config, text.as_bytes())?;
    let target = out.join(file_name(content, format));
    files::write(&target, b"")?;
    let mut nfpm = Command::new(super::tools()?.join("nfpm"));
    nfpm.env("SOURCE_DATE_EPOCH", content.time.to_string()).arg("package");
    nfpm.arg("--config").arg(&config).args(["--packager", format.name(), "--target"]).arg(&target);
    process::output_of(&mut nfpm)?;
    Ok(vec![target])
}

fn file_name(content: &Content, format: Format) -> String {
    let (version, target) = (&content.version, content.target);
    match format {
        Format::Deb => format!("cairn_{version}-{RELEASE}_{}.deb", target.debian),
        Format::Rpm => format!("cairn-{version}-{RELEASE}.{}.rpm", target.machine),
    }
}

/// Returns the files of the package below `/`.
fn entries(content: &Content, format: Format) -> Result<Vec<Entry>, String> {
    let mut all = Vec::new();
    for entry in &content.programs {
        all.push(Entry::program(format!("{PROGRAMS}/{}", entry.path), entry.bytes.clone()));
    }
    for entry in &content.completions {
        let path = entry.path.replace("zsh/site-functions", zsh_folder(format));
        all.push(Entry { path: format!("usr/{path}"), ..entry.clone() });
    }
    for entry in &content.man_pages {
        let bytes = files::gzip(&entry.bytes)?;
        all.push(Entry { path: format!("usr/{}.gz", entry.path), bytes, is_executable: false });
    }
    all.extend(units(content)?);
    all.push(Entry::text("usr/share/cairn/apparmor", project::template("linux/apparmor", &[])?));
    all.extend(documents(content, format)?);
    Ok(all)
}

/// The units that `cairn service install` writes for one user, for all users.
fn units(content: &Content) -> Result<Vec<Entry>, String> {
    let mut units = Vec::new();
    for name in ["cairn.service", "cairn.socket"] {
        let template = files::read_text(&project::root().join("daemon/systemd").join(name))?;
        let page = if content.man_pages.is_empty() { project::REPOSITORY } else { "man:cairn(1)" };
        let text = template
            .replace(" 'cairn service install' fills in the capitals between at-signs.", "")
            .replace("@BIN@", "/usr/bin/cairn")
            .replace("@ENVIRONMENT@\n", "")
            .replace("@PORT@", "7433")
            .replace("[Unit]\n", &format!("[Unit]\nDocumentation={page}\n"));
        if ["@BIN@", "@ENVIRONMENT@", "@PORT@"].iter().any(|word| text.contains(word)) {
            return Err(format!(
                "systemd/{name} has a word between at-signs that the package does not fill in"
            ));
        }
        units.push(Entry::text(format!("usr/lib/systemd/user/{name}"), text));
    }
    Ok(units)
}

/// Debian's own folder of zsh differs from the one of zsh's authors.
fn zsh_folder(format: Format) -> &'static str {
    match format {
        Format::Deb => "zsh/vendor-completions",
        Format::Rpm => "zsh/site-functions",
    }
}

fn documents(content: &Content, format: Format) -> Result<Vec<Entry>, String> {
    let mut all = Vec::new();
    for entry in &content.documents {
        let name = entry.path.as_str();
        let folder =
            if name.starts_with("LICENSE") { "usr/share/licenses/cairn" } else { DOCUMENTS };
        match (format, name) {
            // Debian states licences in `copyright`.
            (Format::Deb, "LICENSE-MIT" | "LICENSE-APACHE") => {}
            (Format::Deb, "CHANGELOG.md") => {
                let bytes = files::gzip(&entry.bytes)?;
                all.push(Entry {
                    path: format!("{folder}/changelog.gz"),
                    bytes,
                    is_executable: false,
                });
            }
            (_, "THIRD-PARTY.txt") => {
                let bytes = files::gzip(&entry.bytes)?;
                all.push(Entry {
                    path: format!("{folder}/{name}.gz"),
                    bytes,
                    is_executable: false,
                });
            }
            _ => all.push(Entry { path: format!("{folder}/{name}"), ..entry.clone() }),
        }
    }
    if format == Format::Deb {
        all.push(Entry::text(
            format!("{DOCUMENTS}/copyright"),
            project::template("linux/copyright", &[])?,
        ));
        let bytes = files::gzip(debian_changelog(content)?.as_bytes())?;
        all.push(Entry {
            path: format!("{DOCUMENTS}/changelog.Debian.gz"),
            bytes,
            is_executable: false,
        });
        let overrides = project::template("linux/lintian-overrides", &[])?;
        all.push(Entry::text("usr/share/lintian/overrides/cairn", overrides));
    }
    Ok(all)
}

fn debian_changelog(content: &Content) -> Result<String, String> {
    let time = format!("@{}", content.time);
    let mut date = Command::new("date");
    let date = process::output_of(date.env("LC_ALL", "C").args(["-u", "-R", "-d", &time]))?;
    Ok(format!(
        "cairn ({}-{RELEASE}) unstable; urgency=medium\n\n  * Release {}; see changelog.gz.\n\n -- {}  {}\n",
        content.version,
        content.version,
        project::maintainer(),
        date.trim()
    ))
}

/// Returns nfpm's configuration: JSON, which is YAML as well.
fn config_of(content: &Content, format: Format, stage: &Path) -> Result<Value, String> {
    let root = stage.join("root");
    let mut contents =
        vec![json!({"src": "../lib/cairn/cairn", "dst": "/usr/bin/cairn", "type": "symlink"})];
    for path in files::files_below(&root)? {
        let mode = if path.starts_with(PROGRAMS) { 0o755 } else { 0o644 };
        contents.push(json!({
            "src": root.join(&path),
            "dst": format!("/{}", path.display()),
            "file_info": {"mode": mode, "owner": "root", "group": "root"},
        }));
    }
    let depends = match format {
        Format::Deb => deb_depends(content),
        Format::Rpm => rpm_depends(content),
    };
    // Debian's package manager removes empty folders by itself.
    let folders = [
        "/usr/lib/cairn",
        "/usr/share/cairn",
        "/usr/share/doc/cairn",
        "/usr/share/licenses/cairn",
        // Several packages may own a folder, and the shells need not be installed.
        "/usr/share/zsh",
        "/usr/share/zsh/site-functions",
        "/usr/share/fish",
        "/usr/share/fish/vendor_completions.d",
    ];
    for folder in folders.iter().filter(|_| format == Format::Rpm) {
        contents.push(json!({"dst": folder, "type": "dir", "file_info": {"mode": 0o755}}));
    }
    Ok(json!({
        "name": "cairn",
        "arch": content.target.debian,
        "platform": "linux",
        "version": content.version,
        "release": RELEASE,
        "version_schema": "semver",
        "section": "devel",
        "priority": "optional",
        "maintainer": project::maintainer(),
        "description": description(),
        "homepage": project::REPOSITORY,
        "license": project::LICENCE,
        "depends": depends,
        // Commands run in its sandbox.
        "recommends": ["bubblewrap"],
        "suggests": ["git"],
        "contents": contents,
        "scripts": {"postinstall": stage.join("postinstall"), "preremove": stage.join("preremove")},
        "deb": {"compression": "xz"},
        "rpm": {"compression": "xz", "summary": project::SUMMARY, "group": "Development/Tools", "buildhost": "cairn"},
    }))
}

fn deb_depends(content: &Content) -> Vec<String> {
    let mut depends = vec![format!("libc6 (>= 2.{})", content.needs.glibc)];
    let packages = [("libgcc_s.so.1", "libgcc-s1 | libgcc1"), ("libz.so.1", "zlib1g")];
    for (library, package) in packages {
        if content.needs.libraries.iter().any(|name| name == library) {
            depends.push(package.to_owned());
        }
    }
    depends
}

/// Returns the needs of the program under the names that rpm gives to libraries.
fn rpm_depends(content: &Content) -> Vec<String> {
    let others = content
        .needs
        .libraries
        .iter()
        .filter(|name| name.contains(".so.") && !name.starts_with("ld-"));
    let names = others.filter(|name| *name != "libc.so.6").map(|name| format!("{name}()(64bit)"));
    names.chain([format!("libc.so.6(GLIBC_2.{})(64bit)", content.needs.glibc)]).collect()
}

fn description() -> String {
    format!(
        "{}\nCairn indexes and searches code, explores a codebase, and runs the turns\nof coding agents \
         through one gate with permissions, approvals and a\nsandbox. Every command and event is in a durable \
         log. Search and\nexploration work offline.",
        project::SUMMARY
    )
}
