//! Translated documents: of one document in several languages, one is among the results.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scored;

/// Minimum score of a translation in the script of the query, as a share of the best score of any.
const MIN_SHARE: f32 = 0.6;
/// Extensions of documents that are translated as separate files.
const EXTENSIONS: [&str; 8] = ["md", "mdx", "markdown", "rst", "adoc", "txt", "html", "htm"];
/// Codes of languages with their scripts, as folders and file names have them. `cn`, `tw`, `jp` and
/// the like are countries that stand for a language.
const LANGUAGES: [(&str, Script); 35] = [
    ("en", Script::English),
    ("de", Script::Latin),
    ("fr", Script::Latin),
    ("es", Script::Latin),
    ("pt", Script::Latin),
    ("br", Script::Latin),
    ("it", Script::Latin),
    ("nl", Script::Latin),
    ("pl", Script::Latin),
    ("tr", Script::Latin),
    ("vi", Script::Latin),
    ("id", Script::Latin),
    ("cs", Script::Latin),
    ("sv", Script::Latin),
    ("hu", Script::Latin),
    ("ro", Script::Latin),
    ("zh", Script::Han),
    ("cn", Script::Han),
    ("tw", Script::Han),
    ("hk", Script::Han),
    ("ja", Script::Kana),
    ("jp", Script::Kana),
    ("ko", Script::Hangul),
    ("kr", Script::Hangul),
    ("ru", Script::Cyrillic),
    ("uk", Script::Cyrillic),
    ("ua", Script::Cyrillic),
    ("bg", Script::Cyrillic),
    ("ar", Script::Other),
    ("fa", Script::Other),
    ("he", Script::Other),
    ("hi", Script::Other),
    ("th", Script::Other),
    ("el", Script::Other),
    ("bn", Script::Other),
];
/// Codes that are also words or names of tools, and count only after a dot: `README.it.md`.
const AMBIGUOUS: [&str; 6] = ["it", "id", "cs", "br", "es", "vi"];
/// Names of scripts after the code of a language.
const SCRIPT_NAMES: [&str; 4] = ["hans", "hant", "latn", "cyrl"];

/// The script of a language or query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Latin; a query in Latin script is as a rule in this language.
    English,
    Latin,
    Han,
    Kana,
    Hangul,
    Cyrillic,
    Other,
}

impl Script {
    /// The script of a query: the one that tells its language, else Latin.
    pub fn of_query(text: &str) -> Self {
        let has = |is: fn(char) -> bool| text.chars().any(is);
        if has(|c| matches!(c, '\u{3041}'..='\u{30FF}')) {
            Self::Kana
        } else if has(|c| matches!(c, '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7FB}')) {
            Self::Hangul
        } else if has(|c| matches!(c, '\u{3400}'..='\u{9FFF}')) {
            Self::Han
        } else if has(|c| matches!(c, '\u{400}'..='\u{52F}')) {
            Self::Cyrillic
        } else if has(|c| matches!(c, '\u{370}'..='\u{3FF}' | '\u{530}'..='\u{109F}')) {
            Self::Other
        } else {
            Self::English
        }
    }

    /// The preference for a translation with this language, greatest first; `None` for a document
    /// without one, which is the original.
    fn preference(self, translation: Option<Self>) -> u8 {
        match (self, translation) {
            (script, Some(other)) if script == other => 2,
            (_, None) | (Self::English, Some(Self::Latin)) => 1,
            _ => 0,
        }
    }
}

/// A document in one of its languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// Its path without the language, in small letters.
    document: String,
    script: Option<Script>,
}

impl Translation {
    /// The document that a path means; `None` for other files.
    pub fn of(path: &str) -> Option<Self> {
        let lower = path.to_lowercase();
        let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
        if !EXTENSIONS.contains(&extension) {
            return None;
        }
        let mut script = None;
        let mut document = String::with_capacity(lower.len());
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            match script_of(folder).filter(|_| !AMBIGUOUS.contains(&folder)) {
                Some(found) => script = Some(found),
                None => {
                    document.push_str(folder);
                    document.push('/');
                }
            }
        }
        let (stem, found) = without_language(stem);
        document.push_str(stem);
        document.push('.');
        document.push_str(extension);
        Some(Self { document, script: found.or(script) })
    }
}

/// A file name without its extension and without the language at its end: `readme_zh-cn`.
fn without_language(stem: &str) -> (&str, Option<Script>) {
    for (at, separator) in stem.match_indices(['.', '_', '-']).filter(|(at, _)| *at > 0) {
        let code = &stem[at + separator.len()..];
        if let Some(script) = script_of(code)
            && (separator == "." || !AMBIGUOUS.contains(&code))
        {
            return (&stem[..at], Some(script));
        }
    }
    (stem, None)
}

/// The script of a language's code, possibly with a script or a country: `zh`, `zh-hans`, `pt_br`.
fn script_of(code: &str) -> Option<Script> {
    let mut parts = code.split(['-', '_']);
    let language = parts.next()?;
    let found = LANGUAGES.iter().find(|(code, _)| *code == language)?;
    let is_country = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_alphabetic());
    parts.all(|part| is_country(part) || SCRIPT_NAMES.contains(&part)).then_some(found.1)
}

/// A file with a translation of a document.
struct File {
    key: (usize, u32),
    score: f32,
    preference: (bool, u8),
}

/// Removes the passages of translated documents but for one translation of each: the one that the
/// query names, else the one in its script, unless its score is far lower, else the best one.
/// `translation` returns the root and id of a passage's file, its document, and whether the
/// query names its path.
pub fn one_translation(
    scored: &mut Vec<Scored>,
    script: Script,
    translation: impl Fn(usize) -> ((usize, u32), Option<Translation>, bool),
) {
    let mut seen: FxHashSet<(usize, u32)> = FxHashSet::default();
    let mut documents: FxHashMap<(usize, String), Vec<File>> = FxHashMap::default();
    let mut file_of = Vec::with_capacity(scored.len());
    for (i, score) in scored.iter() {
        let (key, found, is_named) = translation(*i);
        file_of.push(key);
        if let Some(found) = found.filter(|_| seen.insert(key)) {
            let preference = (is_named, script.preference(found.script));
            let files = documents.entry((key.0, found.document)).or_default();
            files.push(File { key, score: *score, preference });
        }
    }
    let mut removed: FxHashSet<(usize, u32)> = FxHashSet::default();
    for files in documents.values().filter(|files| files.len() > 1) {
        let least = MIN_SHARE * files[0].score.max(0.0);
        let is_near = |file: &&File| file.preference.0 || file.score >= least;
        // Files are in the order of their scores; the first of equal preference remains.
        let Some(chosen) = files.iter().rev().filter(is_near).max_by_key(|f| f.preference) else {
            continue;
        };
        removed.extend(files.iter().map(|f| f.key).filter(|key| *key != chosen.key));
    }
    let mut at = 0;
    scored.retain(|_| {
        at += 1;
        !removed.contains(&file_of[at - 1])
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str) -> Option<(String, Option<Script>)> {
        Translation::of(path).map(|t| (t.document, t.script))
    }

    #[test]
    fn translation_is_recognised_by_folder_or_file_name() {
        for (path, original, script) in [
            ("README.md", "readme.md", None),
            ("README.ja.md", "readme.md", Some(Script::Kana)),
            ("README_zh-CN.md", "readme.md", Some(Script::Han)),
            ("README_CN.md", "readme.md", Some(Script::Han)),
            ("README-pt_BR.md", "readme.md", Some(Script::Latin)),
            ("README.it.md", "readme.md", Some(Script::Latin)),
            ("docs/zh-Hans/guide.md", "docs/guide.md", Some(Script::Han)),
            ("docs/en/guide.rst", "docs/guide.rst", Some(Script::English)),
            ("docs/ko/api/index.html", "docs/api/index.html", Some(Script::Hangul)),
            ("docs/it/run.md", "docs/it/run.md", None),
            ("docs/how-to-use-it.md", "docs/how-to-use-it.md", None),
            ("docs/en-passant.md", "docs/en-passant.md", None),
        ] {
            assert_eq!(document(path), Some((original.to_owned(), script)), "{path}");
        }
        assert_eq!([document("src/zh/a.rs"), document("locales/ja.json")], [None, None]);
        assert_eq!([document(".md"), document("Makefile")], [None, None]);
    }

    #[test]
    fn translation_in_the_script_of_the_query_remains() {
        let paths = ["README.md", "src/a.rs", "README.zh.md", "README.ja.md", "README.md", "a.md"];
        let remaining = |query: &str, scores: [f32; 6], named: Option<usize>| {
            let mut scored: Vec<Scored> = scores.into_iter().enumerate().collect();
            let file = |i: usize| paths.iter().position(|path| *path == paths[i]).unwrap() as u32;
            one_translation(&mut scored, Script::of_query(query), |i| {
                ((0, file(i)), Translation::of(paths[i]), named == Some(i))
            });
            scored.into_iter().map(|(i, _)| i).collect::<Vec<_>>()
        };
        let near = [1.0, 0.95, 0.9, 0.8, 0.7, 0.6];
        assert_eq!(remaining("install", near, None), [0, 1, 4, 5]);
        assert_eq!(remaining("安装", near, None), [1, 2, 5]);
        assert_eq!(remaining("インストール", near, None), [1, 3, 5]);
        assert_eq!(remaining("설치", near, None), [0, 1, 4, 5]);
        assert_eq!(remaining("install", near, Some(3)), [1, 3, 5]);
        let far = [1.0, 0.95, 0.5, 0.4, 0.3, 0.2];
        assert_eq!(remaining("安装", far, None), [0, 1, 4, 5]);
    }
}
