//! Skills in the open format of Agent Skills: a folder with a `SKILL.md`, whose front matter has a
//! name and a description and whose body is the text that an agent reads when it needs it.

use std::path::{Path, PathBuf};

use cairn_protocol::skill::SkillFile;

use super::{super::hooks, LoadedSkill, MAX_SKILLS, read_text};
use crate::trust::TrustStore;

/// Name of the file that makes a folder a skill.
pub const FILE: &str = "SKILL.md";
/// Folders of a project that contain skills; the first one with a name wins.
pub const PROJECT_FOLDERS: &[&str] = &[".agents/skills", ".claude/skills"];
/// Maximum characters of a description.
const MAX_DESCRIPTION: usize = 1024;

/// Lists the folders in a folder of skills, sorted.
pub fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all.truncate(MAX_SKILLS);
    all
}

/// Reads the skills of a project that `trusted` accepts by their folder, and those of its trusted
/// plugins; invalid ones are logged and omitted. A link out of the project is not followed. This
/// blocks on file I/O.
pub(super) fn of_project(
    root: &Path,
    trusted: &dyn Fn(&Path) -> bool,
    trust: &TrustStore,
) -> Vec<LoadedSkill> {
    let Ok(real) = root.canonicalize() else { return vec![] };
    let inside = |folder: &PathBuf| {
        folder.join(FILE).canonicalize().is_ok_and(|file| file.starts_with(&real))
    };
    let plugins = hooks::trusted_plugins(trust, root).into_iter().map(|plugin| plugin.skills);
    let own = PROJECT_FOLDERS.iter().flat_map(|sub| folders(&real.join(sub)));
    let own = own.filter(|folder| trusted(folder));
    let all = own.chain(plugins.flat_map(|source| folders(&source))).filter(inside);
    let mut skills: Vec<LoadedSkill> = Vec::new();
    for folder in all.take(MAX_SKILLS) {
        match read(&folder) {
            Ok(skill) if skills.iter().any(|known| known.file.id == skill.file.id) => {}
            Ok(skill) => skills.push(skill),
            Err(error) => tracing::warn!("skill {}: {error}", folder.display()),
        }
    }
    skills
}

/// Reads a folder with a `SKILL.md`.
///
/// # Errors
/// A description of what is missing or invalid.
pub(super) fn read(folder: &Path) -> Result<LoadedSkill, String> {
    let text = read_text(&folder.join(FILE))?.ok_or("it has no SKILL.md")?;
    let (fields, body) = front_matter(&text)?;
    let field = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, v)| v.clone());
    let folder_name = || folder.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
    let id = field("name").unwrap_or_else(folder_name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || id.len() > 64 || !id.chars().all(plain) {
        let id: String = id.chars().take(64).collect();
        return Err(format!(
            "its name '{}' must have letters, digits, - and _, at most 64",
            id.escape_debug()
        ));
    }
    let description = field("description").ok_or("its front matter has no description")?;
    let file = SkillFile {
        id,
        version: field("version").unwrap_or_default(),
        description: description.chars().take(MAX_DESCRIPTION).collect(),
        prompt_block: Some(body.to_owned()),
        tools: vec![],
        policy: Default::default(),
    };
    Ok(LoadedSkill { file, folder: Some(folder.to_owned()), deny: vec![], confirm: vec![] })
}

/// Keys with their values, in the order of the text.
type Fields = Vec<(String, String)>;

/// Splits a text into the fields of its front matter and its body. Only what skills use of YAML is
/// understood: plain and quoted scalars, block scalars (`|`, `>`) and continued lines; nested
/// fields are ignored.
fn front_matter(text: &str) -> Result<(Fields, &str), String> {
    const MISSING: &str = "SKILL.md must begin with front matter between two lines ---";
    let text = text.trim_start_matches('\u{feff}');
    let rest =
        text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")).ok_or(MISSING)?;
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if line == "---" {
            let unquoted = fields.into_iter().map(|(k, v)| (k, unquote(v.trim()).to_owned()));
            return Ok((unquoted.collect(), rest[at..].trim_start()));
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            let value = value.trim();
            let is_block = matches!(value, "|" | ">" | "|-" | ">-" | "|+" | ">+");
            let value = if is_block { String::new() } else { value.to_owned() };
            fields.push((key.trim().to_owned(), value));
        }
    }
    Err(MISSING.to_owned())
}

fn unquote(text: &str) -> &str {
    let inner = |mark: char| text.strip_prefix(mark).and_then(|t| t.strip_suffix(mark));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, folder: &str, text: &str) {
        std::fs::create_dir_all(root.join(folder)).unwrap();
        std::fs::write(root.join(folder).join(FILE), text).unwrap();
    }

    #[test]
    fn front_matter_has_plain_quoted_and_folded_fields() {
        let text = "---\nname: pdf\ndescription: >-\n  Reads: PDF\n  files.\nlicense: 'MIT'\n\
                    metadata:\n  a: b\n---\n\n# Body\n";
        let (fields, body) = front_matter(text).unwrap();
        let value = |key: &str| fields.iter().find(|(k, _)| k == key).unwrap().1.clone();
        assert_eq!(value("name"), "pdf");
        assert_eq!(value("description"), "Reads: PDF files.");
        assert_eq!(value("license"), "MIT");
        assert_eq!(body, "# Body\n");
        assert!(front_matter("# Body").is_err() && front_matter("---\nname: x\n").is_err());
    }

    #[test]
    fn project_skills_come_from_both_folders_and_links_out_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        put(&root, ".agents/skills/pdf", "---\nname: pdf\ndescription: One.\n---\nText.");
        put(&root, ".claude/skills/pdf", "---\nname: pdf\ndescription: Two.\n---\nOther.");
        put(&root, ".claude/skills/docx", "---\ndescription: \"Three.\"\n---\nDocx.");
        put(&root, ".claude/skills/bad", "no front matter");
        put(dir.path(), "outside", "---\nname: outside\ndescription: x\n---\nSecret.");
        std::os::unix::fs::symlink(dir.path().join("outside"), root.join(".agents/skills/link"))
            .unwrap();
        let trust = TrustStore::new(dir.path().join("trust"), |_| false);
        let skills = of_project(&root, &|_| true, &trust);
        let all: Vec<_> =
            skills.iter().map(|s| (s.file.id.as_str(), s.file.description.as_str())).collect();
        assert_eq!(all, [("pdf", "One."), ("docx", "Three.")]);
        assert_eq!(skills[0].file.prompt_block.as_deref(), Some("Text."));
    }
}
