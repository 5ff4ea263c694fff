//! Tables of the node kinds that are definitions in each language.

use super::languages::Condition::{
    Always, Body, Computed, Constant, FunctionValue, Member, PureVirtual, TopLevel,
};
use super::languages::NameSource::{Declarator, Field, First, Key, Left, Type};
use super::languages::Row;

pub const RUST: &[Row] = &[
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
pub const PYTHON: &[Row] = &[
    ("class_definition", "class", Field, Always),
    ("function_definition", "function", Field, Always),
    ("assignment", "constant", Left, TopLevel),
];
pub const JAVASCRIPT: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("function_declaration", "function", Field, Always),
    ("generator_function_declaration", "function", Field, Always),
    ("method_definition", "method", Field, Always),
    ("variable_declarator", "function", Field, FunctionValue),
    ("assignment_expression", "function", Left, FunctionValue),
    ("pair", "method", Key, FunctionValue),
    ("field_definition", "method", Field, FunctionValue),
];
pub const TYPESCRIPT: &[Row] = &[
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
pub const GO: &[Row] = &[
    ("function_declaration", "function", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("type_spec", "type", Field, Always),
    ("type_alias", "type", Field, Always),
    ("const_spec", "constant", Field, TopLevel),
    ("var_spec", "variable", Field, TopLevel),
];
pub const C: &[Row] = &[
    ("function_definition", "function", Declarator, Always),
    ("struct_specifier", "struct", Field, Body),
    ("union_specifier", "union", Field, Body),
    ("enum_specifier", "enum", Field, Body),
    ("type_definition", "type", Declarator, Always),
    ("preproc_def", "macro", Field, Always),
    ("preproc_function_def", "macro", Field, Always),
];
pub const CPP: &[Row] = &[
    ("function_definition", "function", Declarator, Always),
    ("field_declaration", "method", Declarator, PureVirtual),
    ("class_specifier", "class", Field, Body),
    ("struct_specifier", "struct", Field, Body),
    ("union_specifier", "union", Field, Body),
    ("enum_specifier", "enum", Field, Body),
    ("namespace_definition", "module", Field, Body),
    ("concept_definition", "type", Field, Always),
    ("alias_declaration", "type", Field, TopLevel),
    ("type_definition", "type", Declarator, Always),
    ("preproc_def", "macro", Field, Always),
    ("preproc_function_def", "macro", Field, Always),
];
pub const JAVA: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("interface_declaration", "interface", Field, Always),
    ("enum_declaration", "enum", Field, Always),
    ("record_declaration", "record", Field, Always),
    ("annotation_type_declaration", "interface", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("constructor_declaration", "constructor", Field, Always),
];
pub const RUBY: &[Row] = &[
    ("class", "class", Field, Always),
    ("module", "module", Field, Always),
    ("method", "function", Field, Always),
    ("singleton_method", "function", Field, Always),
    ("assignment", "constant", Left, Constant),
];
pub const SWIFT: &[Row] = &[
    ("class_declaration", "class", Field, Always),
    ("protocol_declaration", "protocol", Field, Always),
    ("function_declaration", "function", Field, Always),
    ("protocol_function_declaration", "method", Field, Always),
    ("init_declaration", "constructor", Field, Always),
    ("typealias_declaration", "type", Field, Always),
    ("property_declaration", "property", Field, Computed),
    ("protocol_property_declaration", "property", Field, Always),
];
pub const CSHARP: &[Row] = &[
    ("namespace_declaration", "module", Field, Always),
    ("file_scoped_namespace_declaration", "module", Field, Always),
    ("class_declaration", "class", Field, Always),
    ("struct_declaration", "struct", Field, Always),
    ("interface_declaration", "interface", Field, Always),
    ("enum_declaration", "enum", Field, Always),
    ("record_declaration", "record", Field, Always),
    ("delegate_declaration", "type", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("constructor_declaration", "constructor", Field, Always),
    ("property_declaration", "property", Field, Always),
    ("event_declaration", "property", Field, Always),
    ("local_function_statement", "function", Field, Always),
];
pub const PHP: &[Row] = &[
    ("namespace_definition", "module", Field, Always),
    ("class_declaration", "class", Field, Always),
    ("interface_declaration", "interface", Field, Always),
    ("trait_declaration", "trait", Field, Always),
    ("enum_declaration", "enum", Field, Always),
    ("function_definition", "function", Field, Always),
    ("method_declaration", "method", Field, Always),
    ("const_element", "constant", First, Always),
];
pub const LUA: &[Row] = &[("function_declaration", "function", Field, Always)];
pub const ZIG: &[Row] = &[
    ("function_declaration", "function", Field, Member),
    ("variable_declaration", "constant", First, Member),
];
