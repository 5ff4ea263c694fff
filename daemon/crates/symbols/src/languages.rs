//! The grammars, and the action at each kind of node.

use std::sync::OnceLock;

use tree_sitter::Language;

use super::tables;

/// The source of a definition's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    Field,
    /// The innermost declarator, as in C.
    Declarator,
    /// The field `left`: its last identifier.
    Left,
    Key,
    /// The field `type`, which names a scope that is not a definition (Rust's `impl`).
    Type,
    /// The first child with a name.
    First,
}

/// The condition under which a node is a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// Outside of all other definitions, near the root of the tree.
    TopLevel,
    /// With a function as its value.
    FunctionValue,
    Body,
    /// With an assignment target that is a constant by its spelling, as in Ruby.
    Constant,
    /// With a body that computes its value, or outside of all types (Swift's properties).
    Computed,
    /// As a pure virtual function (`= 0` in C++).
    PureVirtual,
    /// Directly in a file or in a type, and not as another name for a module (Zig).
    Member,
}

/// A row: node kind, symbol kind, source of the name, condition.
pub type Row = (&'static str, &'static str, NameSource, Condition);

/// The action at a node.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    Pass,
    /// Record an identifier as a reference.
    Ident,
    /// Skip the node, since it and its children contain no definitions.
    Skip,
    /// A definition, by its row's index in the table.
    Define(u8),
}

/// A language's grammar and tables.
pub struct Grammar {
    pub language: Language,
    /// One action per node kind id.
    pub actions: Vec<Action>,
    /// The rows of definitions.
    pub rows: &'static [Row],
}

/// Node kinds of identifiers in all grammars.
const IDENTIFIER_KINDS: &[&str] = &[
    "identifier",
    "type_identifier",
    "field_identifier",
    "property_identifier",
    "shorthand_property_identifier",
    "package_identifier",
    "namespace_identifier",
    "simple_identifier",
    "constant",
    "name",
    "word",
];

/// Node kinds without definitions, except in JavaScript and TypeScript, where types in them may
/// have methods.
const SKIPPED_KINDS: &[&str] = &[
    "comment",
    "line_comment",
    "block_comment",
    "string",
    "string_literal",
    "use_declaration",
    "attribute_item",
    "inner_attribute_item",
    "token_tree",
    "parameters",
    "type_parameters",
    "type_arguments",
    "import_statement",
    "import_declaration",
    "import_from_statement",
    "import_spec",
    "formal_parameters",
    "parameter_list",
    "annotation",
    "marker_annotation",
    "package_declaration",
    "preproc_include",
    "initializer_list",
    "element_value_array_initializer",
];

/// The data of a language before its grammar is loaded.
type Entry = (&'static str, &'static [Row], fn() -> Language);

const LANGUAGES: &[Entry] = &[
    ("rust", tables::RUST, || tree_sitter_rust::LANGUAGE.into()),
    ("python", tables::PYTHON, || tree_sitter_python::LANGUAGE.into()),
    ("javascript", tables::JAVASCRIPT, || tree_sitter_javascript::LANGUAGE.into()),
    ("typescript", tables::TYPESCRIPT, || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
    ("tsx", tables::TYPESCRIPT, || tree_sitter_typescript::LANGUAGE_TSX.into()),
    ("go", tables::GO, || tree_sitter_go::LANGUAGE.into()),
    ("c", tables::C, || tree_sitter_c::LANGUAGE.into()),
    ("cpp", tables::CPP, || tree_sitter_cpp::LANGUAGE.into()),
    ("java", tables::JAVA, || tree_sitter_java::LANGUAGE.into()),
    ("ruby", tables::RUBY, || tree_sitter_ruby::LANGUAGE.into()),
    ("swift", tables::SWIFT, || tree_sitter_swift::LANGUAGE.into()),
    ("csharp", tables::CSHARP, || tree_sitter_c_sharp::LANGUAGE.into()),
    ("php", tables::PHP, || tree_sitter_php::LANGUAGE_PHP.into()),
    ("lua", tables::LUA, || tree_sitter_lua::LANGUAGE.into()),
    ("zig", tables::ZIG, || tree_sitter_zig::LANGUAGE.into()),
];

/// The grammar of a language by its name, if there is one.
pub fn grammar(lang: &str) -> Option<&'static Grammar> {
    static LOADED: [OnceLock<Grammar>; LANGUAGES.len()] =
        [const { OnceLock::new() }; LANGUAGES.len()];
    let slot = LANGUAGES.iter().position(|e| e.0 == lang)?;
    Some(LOADED.get(slot)?.get_or_init(|| build(&LANGUAGES[slot])))
}

/// The static name of a language that has a grammar.
pub fn name(lang: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|e| e.0 == lang).map(|e| e.0)
}

/// True if a language has a grammar; it is not loaded.
pub fn has_grammar(lang: &str) -> bool {
    LANGUAGES.iter().any(|e| e.0 == lang)
}

fn build((name, rows, make): &Entry) -> Grammar {
    let language = make();
    let is_script = matches!(*name, "javascript" | "typescript" | "tsx");
    let actions = (0..language.node_kind_count())
        .map(|id| {
            let id = id as u16;
            let kind = language.node_kind_for_id(id).unwrap_or("");
            if !language.node_kind_is_named(id) {
                Action::Pass
            } else if let Some(row) = rows.iter().position(|r| r.0 == kind) {
                Action::Define(row as u8)
            } else if IDENTIFIER_KINDS.contains(&kind) {
                Action::Ident
            } else if !is_script && SKIPPED_KINDS.contains(&kind) {
                Action::Skip
            } else {
                Action::Pass
            }
        })
        .collect();
    Grammar { language, actions, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_a_filter_value() {
        for (lang, rows, _) in LANGUAGES {
            for (node, kind, ..) in *rows {
                assert!(kind.is_empty() || crate::KINDS.contains(kind), "{lang} {node} {kind}");
            }
        }
    }
}
