//! The node kinds of each grammar that scopes, members and calls have.

/// A family of languages with common rules for bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Python,
    Script,
    Go,
    Java,
    C,
    Rust,
}

/// Node kind, and the fields of its object and its member.
type Member = (&'static str, &'static str, &'static str);

pub struct Table {
    pub family: Family,
    /// Leaves that are names.
    pub names: &'static [&'static str],
    /// Scopes that own parameters and variables.
    pub functions: &'static [&'static str],
    /// Scopes of variables inside a function.
    pub blocks: &'static [&'static str],
    pub classes: &'static [&'static str],
    pub members: &'static [Member],
    /// Node kind of a call, and the field of its callee.
    pub calls: &'static [(&'static str, &'static str)],
    /// The word for the current object; empty if there is none.
    pub this: &'static [&'static str],
    /// Nodes that contain only types.
    pub types: &'static [&'static str],
}

const PYTHON: Table = Table {
    family: Family::Python,
    names: &["identifier"],
    functions: &["function_definition", "lambda"],
    blocks: &[
        "list_comprehension",
        "set_comprehension",
        "dictionary_comprehension",
        "generator_expression",
    ],
    classes: &["class_definition"],
    members: &[("attribute", "object", "attribute")],
    calls: &[("call", "function")],
    this: &["self", "cls"],
    types: &["type"],
};

const SCRIPT: Table = Table {
    family: Family::Script,
    names: &[
        "identifier",
        "type_identifier",
        "property_identifier",
        "private_property_identifier",
        "shorthand_property_identifier",
        "shorthand_property_identifier_pattern",
        // Its call refers to the constructor of the base.
        "super",
    ],
    functions: &[
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function_declaration",
        "generator_function",
        "function_signature",
        "function_type",
        "method_signature",
        "abstract_method_signature",
        "call_signature",
        "construct_signature",
        "type_alias_declaration",
    ],
    blocks: &[
        "statement_block",
        "for_statement",
        "for_in_statement",
        "catch_clause",
        "switch_body",
        "class_static_block",
        "conditional_type",
        "mapped_type_clause",
        "internal_module",
    ],
    classes: &[
        "class_declaration",
        "class",
        "abstract_class_declaration",
        "interface_declaration",
        "enum_declaration",
    ],
    members: &[
        ("member_expression", "object", "property"),
        ("nested_type_identifier", "module", "name"),
        ("nested_identifier", "object", "property"),
    ],
    calls: &[
        ("call_expression", "function"),
        ("new_expression", "constructor"),
        ("jsx_opening_element", "name"),
        ("jsx_self_closing_element", "name"),
        ("decorator", ""),
    ],
    this: &["this"],
    types: &["type_annotation", "type_arguments", "implements_clause", "extends_type_clause"],
};

const GO: Table = Table {
    family: Family::Go,
    names: &["identifier", "type_identifier", "field_identifier", "package_identifier"],
    functions: &["function_declaration", "method_declaration", "func_literal"],
    blocks: &[
        "block",
        "if_statement",
        "for_statement",
        "expression_switch_statement",
        "type_switch_statement",
        "expression_case",
        "default_case",
        "type_case",
        "communication_case",
    ],
    classes: &[],
    members: &[("selector_expression", "operand", "field"), ("qualified_type", "package", "name")],
    calls: &[("call_expression", "function")],
    this: &[],
    types: &[],
};

const JAVA: Table = Table {
    family: Family::Java,
    names: &["identifier", "type_identifier"],
    functions: &["method_declaration", "constructor_declaration", "lambda_expression"],
    blocks: &[
        "block",
        "for_statement",
        "enhanced_for_statement",
        "catch_clause",
        "try_with_resources_statement",
        "switch_block_statement_group",
    ],
    classes: &[
        "class_declaration",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "annotation_type_declaration",
    ],
    members: &[
        ("method_invocation", "object", "name"),
        ("field_access", "object", "field"),
        ("scoped_type_identifier", "", ""),
        ("method_reference", "", ""),
    ],
    calls: &[("method_invocation", "name"), ("object_creation_expression", "type")],
    this: &["this"],
    types: &[],
};

const C: Table = Table {
    family: Family::C,
    names: &["identifier", "type_identifier", "field_identifier", "namespace_identifier"],
    functions: &["function_definition", "lambda_expression"],
    blocks: &["compound_statement", "for_statement", "for_range_loop", "if_statement"],
    classes: &["class_specifier", "struct_specifier", "union_specifier"],
    members: &[
        ("field_expression", "argument", "field"),
        ("qualified_identifier", "scope", "name"),
    ],
    calls: &[("call_expression", "function")],
    this: &["this"],
    types: &[],
};

const RUST: Table = Table {
    family: Family::Rust,
    names: &["identifier", "type_identifier", "field_identifier", "shorthand_field_identifier"],
    functions: &["function_item", "closure_expression", "function_signature_item"],
    blocks: &[
        "block",
        "match_arm",
        "if_expression",
        "while_expression",
        "for_expression",
        "mod_item",
    ],
    classes: &["impl_item", "trait_item"],
    members: &[
        ("field_expression", "value", "field"),
        ("scoped_identifier", "path", "name"),
        ("scoped_type_identifier", "path", "name"),
    ],
    calls: &[("call_expression", "function"), ("macro_invocation", "macro")],
    this: &["self", "Self"],
    types: &[],
};

pub fn table(lang: &str) -> Option<&'static Table> {
    static TABLES: [Table; 6] = [PYTHON, SCRIPT, GO, JAVA, C, RUST];
    let family = match lang {
        "python" => Family::Python,
        "javascript" | "typescript" | "tsx" => Family::Script,
        "go" => Family::Go,
        "java" => Family::Java,
        "c" | "cpp" => Family::C,
        "rust" => Family::Rust,
        _ => return None,
    };
    TABLES.iter().find(|t| t.family == family)
}
