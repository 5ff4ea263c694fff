//! Tests of references by scopes, imports and types.

mod calls;
mod files;
mod limits;
mod scopes;

use std::sync::atomic::AtomicBool;

use cairn_code_graph::{Confidence, Reference, ReferenceKind, Target, View, references_in};

/// The references as `line:column kind confidence`.
pub fn render(references: &[Reference]) -> String {
    let one = |r: &Reference| {
        let kind = match r.kind {
            ReferenceKind::Definition => "def",
            ReferenceKind::Import => "import",
            ReferenceKind::Call => "call",
            ReferenceKind::Type => "type",
            ReferenceKind::Write => "write",
            ReferenceKind::Read => "read",
        };
        let sign = match r.confidence {
            Confidence::Exact => "",
            Confidence::Likely => "~",
            Confidence::Ambiguous => "?",
        };
        format!("{}:{} {kind}{sign}", r.line, r.column)
    };
    references.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub fn target(kind: &str, container: &str, name: &str, line: u32) -> Target {
    Target {
        name: name.to_owned(),
        kind: kind.to_owned(),
        container: (!container.is_empty()).then(|| container.to_owned()),
        path: "home".to_owned(),
        line,
        is_default: false,
        is_unique: false,
    }
}

pub fn find(lang: &str, text: &str, target: &Target, view: &View) -> String {
    let stop = AtomicBool::new(false);
    let found = references_in(lang, "x", text.as_bytes(), target, view, &stop);
    render(&found.expect("the text is parsed"))
}

pub fn at_home(lang: &str, text: &str, target: &Target) -> String {
    find(lang, text, target, &View::of_home())
}
