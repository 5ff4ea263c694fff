//! What a definition looks like in each language, as tables over node kinds.

use std::sync::OnceLock;

use tree_sitter::Language;

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
}

/// A row: node kind, symbol kind, how it is named, when it counts.
type Row = (&'static str, &'static str, NameBy, When);

/// What to do at a node.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// Nothing.
    Pass,
    /// An identifier: a reference.
    Ident,
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

use NameBy::{Declarator, Field, Key, Left, Type};
use When::{Always, Body, FunctionValue, TopLevel};

const RUST: &[Row] = &[
    ("function_item", "function", Field, Always),
    ("function_signature_item", "method", Field, Always),
    ("struct_item", "struct", Field, Always),
    ("enum_item", "enum", Field, Always),
    ("union_item", "union", Field, Always),
    ("trait_item", "trait", Field, Always),
    ("type_item", "type", Field, TopLevel),
    ("const_item", "constant", Field, Always),
    ("static_item", "constant", Field, Always),
    ("mod_item", "module", Field, Body),
    ("macro_definition", "macro", Field, Always),
    ("impl_item", "", Type, Always),
];
const PYTHON: &[Row] = &[
    ("class_definition", "class", Field, Always),
    ("function_definition", "function", Field, Always),
    ("assignment", "constant", Left, TopLevel),
];
const JAVASCRIPT: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("function_declaration", "function", Field, Always),
    ("generator_function_declaration", "function", Field, Always),
    ("method_definition", "method", Field, Always),
    ("variable_declarator", "function", Field, FunctionValue),
    ("assignment_expression", "function", Left, FunctionValue),
    ("pair", "method", Key, FunctionValue),
    ("field_definition", "method", Field, FunctionValue),
];
const TYPESCRIPT: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("abstract_class_declaration", "class", Field, Always),
    ("interface_declaration", "interface", Field, Always),
    ("type_alias_declaration", "type", Field, Always),
    ("enum_declaration", "enum", Field, Always),
    ("internal_module", "module", Field, Always),
    ("function_declaration", "function", Field, Always),
    ("generator_function_declaration", "function", Field, Always),
    ("function_signature", "function", Field, Always),
    ("method_definition", "method", Field, Always),
    ("abstract_method_signature", "method", Field, Always),
    ("method_signature", "method", Field, Always),
    ("variable_declarator", "function", Field, FunctionValue),
    ("assignment_expression", "function", Left, FunctionValue),
    ("pair", "method", Key, FunctionValue),
    ("public_field_definition", "method", Field, FunctionValue),
];
const GO: &[Row] = &[
    ("function_declaration", "function", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("type_spec", "type", Field, Always),
    ("type_alias", "type", Field, Always),
    ("const_spec", "constant", Field, TopLevel),
    ("var_spec", "variable", Field, TopLevel),
];
const C: &[Row] = &[
    ("function_definition", "function", Declarator, Always),
    ("struct_specifier", "struct", Field, Body),
    ("union_specifier", "union", Field, Body),
    ("enum_specifier", "enum", Field, Body),
    ("type_definition", "type", Declarator, Always),
    ("preproc_def", "macro", Field, Always),
    ("preproc_function_def", "macro", Field, Always),
];
const JAVA: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("interface_declaration", "interface", Field, Always),
    ("enum_declaration", "enum", Field, Always),
    ("record_declaration", "record", Field, Always),
    ("annotation_type_declaration", "interface", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("constructor_declaration", "constructor", Field, Always),
];

const IDENTS: [&str; 6] = [
    "identifier",
    "type_identifier",
    "field_identifier",
    "property_identifier",
    "shorthand_property_identifier",
    "package_identifier",
];

/// The grammar of a language by its name, when it is one that is parsed.
pub fn grammar(lang: &str) -> Option<&'static Grammar> {
    static ALL: [OnceLock<Grammar>; 8] = [const { OnceLock::new() }; 8];
    let (slot, rows, make): (usize, _, fn() -> Language) = match lang {
        "rust" => (0, RUST, || tree_sitter_rust::LANGUAGE.into()),
        "python" => (1, PYTHON, || tree_sitter_python::LANGUAGE.into()),
        "javascript" => (2, JAVASCRIPT, || tree_sitter_javascript::LANGUAGE.into()),
        "typescript" => (3, TYPESCRIPT, || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
        "tsx" => (4, TYPESCRIPT, || tree_sitter_typescript::LANGUAGE_TSX.into()),
        "go" => (5, GO, || tree_sitter_go::LANGUAGE.into()),
        "c" => (6, C, || tree_sitter_c::LANGUAGE.into()),
        "java" => (7, JAVA, || tree_sitter_java::LANGUAGE.into()),
        _ => return None,
    };
    Some(ALL[slot].get_or_init(|| build(make(), rows)))
}

fn build(language: Language, rows: &'static [Row]) -> Grammar {
    let actions = (0..language.node_kind_count())
        .map(|id| {
            let id = id as u16;
            let kind = language.node_kind_for_id(id).unwrap_or("");
            if !language.node_kind_is_named(id) {
                Action::Pass
            } else if IDENTS.contains(&kind) {
                Action::Ident
            } else {
                rows.iter().position(|r| r.0 == kind).map_or(Action::Pass, |i| Action::Define(i as u8))
            }
        })
        .collect();
    Grammar { language, actions, rows }
}
