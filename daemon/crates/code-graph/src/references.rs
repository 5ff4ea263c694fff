//! References to a definition in a file that may contain them, by scopes and imports.
//!
//! The index stores no occurrences: the caller lists the files that contain the identifier and
//! passes their texts. A file is parsed completely, within the limits of all parsers.

mod bindings;
mod calls;
mod decide;
mod parse;
mod pass;
mod tables;
mod types;
mod view;

use std::sync::atomic::AtomicBool;

pub use calls::{Callee, TargetUse, calls_in, target_uses_in};
pub use view::{Sight, View, Views};

/// Maximum references in one file.
const MAX_REFERENCES: usize = 20_000;

/// A definition whose references are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub name: String,
    /// The kind, as in `cairn_symbols::KINDS`.
    pub kind: String,
    /// Name of the enclosing definition.
    pub container: Option<String>,
    pub path: String,
    /// First line of the definition, counted from 1.
    pub line: u32,
    /// True if the file exports it, or the type that contains it, as its default or only value.
    pub is_default: bool,
    /// True if no other definition in the tree has the name, so that a member of unknown type is
    /// likely this one.
    pub is_unique: bool,
}

impl Target {
    /// True for a member of a type, which is reached through a value of it.
    pub fn is_member(&self) -> bool {
        matches!(self.kind.as_str(), "method" | "property" | "constructor")
            && self.container.is_some()
    }

    /// True for a constructor, which is called by the name of its class.
    pub(crate) fn is_constructor(&self) -> bool {
        self.name == "constructor" || self.kind == "constructor"
    }

    /// The class of a member. Its line is not known.
    fn class(&self) -> Option<Self> {
        let name = self.container.clone()?;
        let kind = "class".to_owned();
        Some(Self { name, kind, container: None, line: 0, ..self.clone() })
    }

    /// The name that another file imports to reach it.
    pub fn importable(&self) -> &str {
        if self.is_member() { self.container.as_deref().unwrap_or(&self.name) } else { &self.name }
    }
}

/// The use that a reference makes of the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReferenceKind {
    Definition,
    Import,
    Call,
    Type,
    Write,
    Read,
}

/// The certainty that a reference means the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Confidence {
    /// Scopes and imports lead to it.
    Exact,
    /// Types that are written in the file, or the only definition of the name, lead to it.
    Likely,
    /// A member of a value whose type is not known.
    Ambiguous,
}

/// The definition around a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosing {
    pub name: String,
    pub kind: &'static str,
    pub start_line: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in bytes, counted from 0.
    pub column: u32,
    pub kind: ReferenceKind,
    pub enclosing: Option<Enclosing>,
    pub confidence: Confidence,
}

/// True if a file of JavaScript or TypeScript exports `name` as its default or only value.
pub fn is_default_export(text: &[u8], name: &str) -> bool {
    const HEADS: [&str; 6] = [
        "export default ",
        "export default function ",
        "export default async function ",
        "export default class ",
        "module.exports = ",
        "export = ",
    ];
    HEADS.iter().any(|head| {
        let phrase = format!("{head}{name}");
        memchr::memmem::find_iter(text, phrase.as_bytes()).any(|at| {
            let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
            text.get(at + phrase.len()).is_none_or(|b| !is_name(b))
        })
    })
}

/// Classes of a file that inherit `target`, a member of a type, without a definition of their own.
/// [`Views::add_subclass`] makes values of them known in other files.
pub fn subclasses_in(
    lang: &str,
    path: &str,
    text: &[u8],
    target: &Target,
    view: &View,
    stop: &AtomicBool,
) -> Vec<String> {
    let (lang, text) = cairn_symbols::extract::parsed_as(lang, path, text);
    let Some(table) = tables::table(lang).filter(|_| target.is_member()) else { return Vec::new() };
    let (target, view) = (target.clone(), view.clone());
    let found = parse::with_tree(lang, &text, stop, move |tree, text, until| {
        let mut pass = pass::Pass::new(text, table, &[], until);
        pass.run(tree)?;
        Some(decide::heirs(&pass, &target, &view))
    });
    found.flatten().unwrap_or_default()
}

/// The references to `target` in a file, in file order. `None` if the language has no grammar, a
/// limit was reached or `stop` was set.
pub fn references_in(
    lang: &str,
    path: &str,
    text: &[u8],
    target: &Target,
    view: &View,
    stop: &AtomicBool,
) -> Option<Vec<Reference>> {
    let (lang, text) = cairn_symbols::extract::parsed_as(lang, path, text);
    let table = tables::table(lang)?;
    let (target, view) = (target.clone(), view.clone());
    parse::with_tree(lang, &text, stop, move |tree, text, until| {
        let mut names: Vec<&str> = vec![&target.name];
        if !target.is_member() || target.is_constructor() {
            names.extend(view.names.iter().map(String::as_str));
            names.extend(view.modules.iter().map(|(_, name)| name.as_str()));
        }
        let class = target.is_constructor().then(|| target.class()).flatten();
        names.extend(class.as_ref().map(|c| c.name.as_str()));
        if class.is_some() {
            names.push("super");
        }
        let mut pass = pass::Pass::new(text, table, &names, until);
        pass.run(tree)?;
        let mut found = decide::decide(&pass, &target, &view);
        if let Some(class) = &class {
            found.retain(|r| matches!(r.kind, ReferenceKind::Definition | ReferenceKind::Call));
            let calls = decide::decide(&pass, class, &view);
            found.extend(calls.into_iter().filter(|r| r.kind == ReferenceKind::Call));
            found.sort_by_key(|r| (r.line, r.column));
        }
        found.truncate(MAX_REFERENCES);
        Some(found)
    })?
}
