//! The grammars, and what is done at each kind of node.

use std::sync::OnceLock;

use tree_sitter::Language;

use super::tables;

/// How the name of a definition is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameBy {
    /// The field `name`.
    Field,
    /// The innermost declarator, as C has it.
    Declarator,
    /// The field `left`: its last identifier.
    Left,
    /// The field `key`.
    Key,
    /// The field `type`: names a scope, no definition (Rust's `impl`).
    Type,
    /// The first child with a name.
    First,
}

/// Where a definition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Anywhere.
    Always,
    /// Outside every other definition, near the root of the tree.
    TopLevel,
    /// With a function as its value.
    FunctionValue,
    /// With a body.
    Body,
    /// When what is assigned to is a constant by its spelling, as in Ruby.
    Constant,
    /// With a body that computes its value, or outside of all types (Swift's properties).
    Computed,
    /// Without a body ever (`= 0` in C++).
    PureVirtual,
}

/// A row: node kind, symbol kind, how it is named, when it counts.
pub type Row = (&'static str, &'static str, NameBy, When);

/// What to do at a node.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// Go on to its children.
    Pass,
    /// An identifier: a reference.
    Ident,
    /// Neither it nor what is in it defines anything.
    Barren,
    /// A definition, by its row's index in the table.
    Define(u8),
}

/// A language's grammar and tables.
pub struct Grammar {
    /// The grammar.
    pub language: Language,
    /// One action for each node kind id.
    pub actions: Vec<Action>,
    /// The rows of definitions.
    pub rows: &'static [Row],
}

/// Kinds of identifiers in all grammars.
const IDENTS: &[&str] = &[
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

/// Kinds in which nothing is defined, but for scripts: there, types in them may have methods.
const BARREN: &[&str] = &[
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

/// What there is to know of one language before its grammar is loaded.
type Entry = (&'static str, &'static [Row], fn() -> Language);

const ALL: &[Entry] = &[
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
];

/// The grammar of a language by its name, when it is one that is parsed.
pub fn grammar(lang: &str) -> Option<&'static Grammar> {
    static LOADED: [OnceLock<Grammar>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];
    let slot = ALL.iter().position(|e| e.0 == lang)?;
    Some(LOADED.get(slot)?.get_or_init(|| build(&ALL[slot])))
}

/// The name of a language that has a grammar, for as long as the program runs.
pub fn name(lang: &str) -> Option<&'static str> {
    ALL.iter().find(|e| e.0 == lang).map(|e| e.0)
}

/// Whether a language has a grammar; loads nothing.
pub fn has_grammar(lang: &str) -> bool {
    ALL.iter().any(|e| e.0 == lang)
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
            } else if IDENTS.contains(&kind) {
                Action::Ident
            } else if !is_script && BARREN.contains(&kind) {
                Action::Barren
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
    fn every_kind_can_be_asked_for() {
        for (lang, rows, _) in ALL {
            for (node, kind, ..) in *rows {
                assert!(kind.is_empty() || crate::symbols::KINDS.contains(kind), "{lang} {node} {kind}");
            }
        }
    }
}
