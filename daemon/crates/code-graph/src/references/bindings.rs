//! Names that are bound where they appear, and types as they are written, by family of languages.

use tree_sitter::Node;

use super::pass::{Frame, Pass};
use super::tables::Family;
use super::types::{constructed, type_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindKind {
    Parameter,
    Local,
    Import,
    Definition,
    /// A prototype of C, whose definition may be in another file.
    Declaration,
    Class,
    /// A statement that refers to the variable of an outer scope: `global x`.
    Outer,
}

#[derive(Debug)]
pub struct Bind {
    pub kind: BindKind,
    pub type_name: Option<String>,
    /// Scopes between the current one and the owner: 1 for the name of a function.
    pub outward: usize,
    /// True if blocks do not contain it.
    pub is_hoisted: bool,
}

impl Bind {
    fn new(kind: BindKind) -> Self {
        Self { kind, type_name: None, outward: 0, is_hoisted: false }
    }

    fn outer(kind: BindKind) -> Self {
        Self { outward: 1, ..Self::new(kind) }
    }

    fn typed(kind: BindKind, type_name: Option<String>) -> Self {
        Self { type_name, ..Self::new(kind) }
    }
}

/// The ancestors of a name, nearest first, each with the field through which the path leads.
struct Above<'f, 't>(&'f [Frame<'t>]);

impl<'t> Above<'_, 't> {
    fn node(&self, level: usize) -> Option<Node<'t>> {
        self.0.len().checked_sub(level + 1).map(|i| self.0[i].node)
    }

    fn kind(&self, level: usize) -> &'t str {
        self.node(level).map_or("", |n| n.kind())
    }

    /// The field of the ancestor at `level` in its parent.
    fn field(&self, level: usize) -> &'t str {
        self.0.len().checked_sub(level + 1).and_then(|i| self.0[i].field).unwrap_or("")
    }

    /// The level below the first ancestor whose kind is not in `kinds`.
    fn climb(&self, kinds: &[&str]) -> usize {
        (0..).find(|level| !kinds.contains(&self.kind(level + 1))).unwrap_or(0)
    }
}

/// The binding that the last frame makes, if it makes one.
pub fn bind(pass: &Pass<'_>, frames: &[Frame<'_>]) -> Option<Bind> {
    let above = Above(frames);
    match pass.table.family {
        Family::Python => python(pass, &above),
        Family::Script => script(pass, &above),
        Family::Go => go(pass, &above),
        Family::Java => java(pass, &above),
        Family::C => c(pass, &above),
        Family::Rust => rust(pass, &above),
    }
}

fn python(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    match (parent, field) {
        ("function_definition", "name") => return Some(Bind::outer(BindKind::Definition)),
        ("class_definition", "name") => return Some(Bind::outer(BindKind::Class)),
        ("parameters" | "lambda_parameters", _) | ("default_parameter", "name") => {
            return Some(Bind::new(BindKind::Parameter));
        }
        ("typed_default_parameter", "name") | ("typed_parameter", "") => {
            let annotation = above.node(1)?.child_by_field_name("type");
            let name = annotation.and_then(|n| type_name(pass.slice(&n)));
            return Some(Bind::typed(BindKind::Parameter, name));
        }
        ("list_splat_pattern" | "dictionary_splat_pattern", _)
            if above.kind(2).contains("parameter") =>
        {
            return Some(Bind::new(BindKind::Parameter));
        }
        ("aliased_import", "alias") | ("global_statement" | "nonlocal_statement", _) => {
            let is_import = parent == "aliased_import";
            return Some(Bind::new(if is_import { BindKind::Import } else { BindKind::Outer }));
        }
        ("dotted_name", _) => {
            let is_first = above.node(1)?.named_child(0) == above.node(0);
            let is_statement = above.kind(2) == "import_statement";
            let is_name = above.kind(2) == "import_from_statement" && above.field(1) == "name";
            let binds = is_name || is_statement && is_first;
            return binds.then(|| Bind::new(BindKind::Import));
        }
        ("as_pattern_target", _) | ("named_expression", "name") => {
            return Some(Bind::new(BindKind::Local));
        }
        ("keyword_argument", "name") => return None,
        _ => {}
    }
    let level = above.climb(&[
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "as_pattern_target",
    ]);
    let is_left = above.field(level) == "left";
    match above.kind(level + 1) {
        "assignment" if is_left => {
            let assignment = above.node(level + 1)?;
            let declared = assignment.child_by_field_name("type");
            let declared = declared.and_then(|n| type_name(pass.slice(&n)));
            let value = || constructed(pass, &assignment.child_by_field_name("right")?);
            let name = if level == 0 { declared.or_else(value) } else { None };
            Some(Bind::typed(BindKind::Local, name))
        }
        "augmented_assignment" | "for_statement" | "for_in_clause" if is_left => {
            Some(Bind::new(BindKind::Local))
        }
        _ => None,
    }
}

fn script(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    script_name(pass, above).or_else(|| script_pattern(pass, above))
}

/// A name that a declaration has in a field of its own.
fn script_name(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    match (parent, field) {
        (
            "function_declaration"
            | "generator_function_declaration"
            | "function_signature"
            | "type_alias_declaration",
            "name",
        ) => Some(Bind::outer(BindKind::Definition)),
        (
            "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration",
            "name",
        ) => Some(Bind::outer(BindKind::Class)),
        ("internal_module", "name") => Some(Bind::outer(BindKind::Definition)),
        ("function_expression" | "class", "name") | ("type_parameter", "name") => {
            Some(Bind::new(BindKind::Definition))
        }
        ("import_specifier", _) => {
            let has_alias = above.node(1)?.child_by_field_name("alias").is_some();
            let binds = field == "alias" || !has_alias;
            binds.then(|| Bind::new(BindKind::Import))
        }
        ("import_clause" | "namespace_import" | "import_require_clause", _) => {
            Some(Bind::new(BindKind::Import))
        }
        ("arrow_function", "parameter")
        | ("formal_parameters", _)
        | ("catch_clause", "parameter") => Some(Bind::new(BindKind::Parameter)),
        (
            "method_definition"
            | "public_field_definition"
            | "field_definition"
            | "method_signature"
            | "property_signature"
            | "abstract_method_signature",
            "name" | "property",
        ) => {
            let is_function = parent.contains("method") && parent != "property_signature";
            let opens_scope = pass.table.functions.contains(&parent);
            let mut bind = Bind::new(BindKind::Definition);
            bind.outward = usize::from(is_function && opens_scope);
            Some(bind)
        }
        ("enum_body", _) | ("enum_assignment", "name") => Some(Bind::new(BindKind::Definition)),
        _ => None,
    }
}

/// A variable or parameter, also inside of a destructuring pattern.
fn script_pattern(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let level = above.climb(&[
        "object_pattern",
        "array_pattern",
        "rest_pattern",
        "assignment_pattern",
        "object_assignment_pattern",
        "pair_pattern",
    ]);
    let in_default = (0..level).any(|l| {
        above.kind(l + 1).ends_with("assignment_pattern") && above.field(l) == "right"
            || above.kind(l + 1) == "pair_pattern" && above.field(l) == "key"
    });
    if in_default {
        return None;
    }
    let is_direct = level == 0;
    let owner = above.node(level + 1)?;
    let annotated =
        |field: &str| owner.child_by_field_name(field).and_then(|n| type_name(pass.slice(&n)));
    match (owner.kind(), above.field(level)) {
        ("variable_declarator", "name") => {
            let value = || constructed(pass, &owner.child_by_field_name("value")?);
            let name = if is_direct { annotated("type").or_else(value) } else { None };
            let mut bind = Bind::typed(BindKind::Local, name);
            bind.is_hoisted = above.kind(level + 2) == "variable_declaration";
            Some(bind)
        }
        ("required_parameter" | "optional_parameter", "pattern") => {
            let name = if is_direct { annotated("type") } else { None };
            Some(Bind::typed(BindKind::Parameter, name))
        }
        ("formal_parameters", _) => Some(Bind::new(BindKind::Parameter)),
        ("for_in_statement", "left") if owner.child_by_field_name("kind").is_some() => {
            Some(Bind::new(BindKind::Local))
        }
        _ => None,
    }
}

fn go(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    let declared = |level: usize| {
        let node = above.node(level)?.child_by_field_name("type")?;
        type_name(pass.slice(&node))
    };
    match (parent, field) {
        ("function_declaration" | "method_declaration", "name") => {
            Some(Bind::outer(BindKind::Definition))
        }
        ("type_spec" | "type_alias", "name") => Some(Bind::new(BindKind::Class)),
        ("const_spec", "name") | ("var_spec", "name") => {
            let value = || constructed(pass, &above.node(1)?.child_by_field_name("value")?);
            Some(Bind::typed(BindKind::Local, declared(1).or_else(value)))
        }
        ("parameter_declaration" | "variadic_parameter_declaration", "name") => {
            Some(Bind::typed(BindKind::Parameter, declared(1)))
        }
        ("field_declaration", "name") | ("method_elem" | "method_spec", "name") => {
            Some(Bind::new(BindKind::Definition))
        }
        ("import_spec", "name") => Some(Bind::new(BindKind::Import)),
        ("expression_list", _) if above.field(1) == "left" => match above.kind(2) {
            "short_var_declaration" | "range_clause" => {
                let right = above.node(2)?.child_by_field_name("right")?;
                let value = right.named_child(0).and_then(|n| constructed(pass, &n));
                let is_first = above.node(1)?.named_child(0) == above.node(0);
                let is_range = above.kind(2) == "range_clause";
                let name = value.filter(|_| is_first && !is_range);
                Some(Bind::typed(BindKind::Local, name))
            }
            _ => None,
        },
        _ => None,
    }
}

fn java(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    let declared = |level: usize| {
        let node = above.node(level)?.child_by_field_name("type")?;
        type_name(pass.slice(&node))
    };
    if field != "name" {
        let is_lambda = matches!(parent, "lambda_expression" | "inferred_parameters");
        return (is_lambda && field != "body").then(|| Bind::new(BindKind::Parameter));
    }
    match parent {
        "method_declaration" | "constructor_declaration" => Some(Bind::outer(BindKind::Definition)),
        kind if pass.table.classes.contains(&kind) => Some(Bind::outer(BindKind::Class)),
        "variable_declarator" => {
            let value = || constructed(pass, &above.node(1)?.child_by_field_name("value")?);
            let name = declared(2).filter(|n| n != "var").or_else(value);
            let is_field = matches!(above.kind(2), "field_declaration" | "constant_declaration");
            let kind = if is_field { BindKind::Definition } else { BindKind::Local };
            Some(Bind::typed(kind, name))
        }
        "formal_parameter" | "resource" | "catch_formal_parameter" | "enhanced_for_statement" => {
            Some(Bind::typed(BindKind::Parameter, declared(1)))
        }
        "enum_constant" => Some(Bind::new(BindKind::Definition)),
        "type_parameter" => Some(Bind::new(BindKind::Class)),
        _ => None,
    }
}

fn c(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    if field == "name" && matches!(parent, "preproc_def" | "preproc_function_def") {
        return Some(Bind { outward: 8, ..Bind::new(BindKind::Definition) });
    }
    let is_tag = ["struct_specifier", "class_specifier", "union_specifier", "enum_specifier"];
    if field == "name" && is_tag.contains(&parent) {
        // Without a body it names a type that is defined elsewhere.
        above.node(1)?.child_by_field_name("body")?;
        let outward = usize::from(pass.table.classes.contains(&parent));
        return Some(Bind { outward, is_hoisted: true, ..Bind::new(BindKind::Class) });
    }
    if parent == "enumerator" && field == "name" {
        return Some(Bind::new(BindKind::Definition));
    }
    let level = above.climb(&[
        "pointer_declarator",
        "array_declarator",
        "reference_declarator",
        "init_declarator",
        "parenthesized_declarator",
        "function_declarator",
        "qualified_identifier",
    ]);
    let in_declarators = (0..=level).all(|l| {
        matches!(above.field(l), "declarator" | "name")
            || above.kind(l + 1) == "reference_declarator"
    });
    if !in_declarators {
        return None;
    }
    let is_function = (0..level).any(|l| above.kind(l + 1) == "function_declarator");
    let owner = above.node(level + 1)?;
    let declared = owner.child_by_field_name("type").and_then(|n| type_name(pass.slice(&n)));
    match owner.kind() {
        "function_definition" => Some(Bind::outer(BindKind::Definition)),
        "field_declaration" if is_function => Some(Bind::new(BindKind::Definition)),
        "declaration" if is_function => Some(Bind::new(BindKind::Declaration)),
        "declaration" => Some(Bind::typed(BindKind::Local, declared)),
        "field_declaration" | "type_definition" => {
            Some(Bind::typed(BindKind::Definition, declared))
        }
        "parameter_declaration" | "optional_parameter_declaration" => {
            Some(Bind::typed(BindKind::Parameter, declared))
        }
        "for_range_loop" => Some(Bind::typed(BindKind::Local, declared)),
        _ => None,
    }
}

fn rust(pass: &Pass<'_>, above: &Above<'_, '_>) -> Option<Bind> {
    let (parent, field) = (above.kind(1), above.field(0));
    let declared = |level: usize| {
        let node = above.node(level)?.child_by_field_name("type")?;
        type_name(pass.slice(&node))
    };
    match (parent, field) {
        ("function_item" | "function_signature_item", "name") | ("mod_item", "name") => {
            return Some(Bind::outer(BindKind::Definition));
        }
        ("struct_item" | "enum_item" | "union_item" | "type_item", "name") => {
            return Some(Bind::new(BindKind::Class));
        }
        ("trait_item", "name") => return Some(Bind::outer(BindKind::Class)),
        (
            "const_item" | "static_item" | "macro_definition" | "enum_variant"
            | "field_declaration",
            "name",
        ) => {
            return Some(Bind::typed(BindKind::Definition, declared(1)));
        }
        ("type_parameter" | "const_parameter", "name") => {
            return Some(Bind::new(BindKind::Parameter));
        }
        ("closure_parameters", _) => return Some(Bind::new(BindKind::Parameter)),
        _ => {}
    }
    let level = above.climb(&[
        "tuple_pattern",
        "tuple_struct_pattern",
        "struct_pattern",
        "field_pattern",
        "ref_pattern",
        "mut_pattern",
        "reference_pattern",
        "slice_pattern",
        "captured_pattern",
        "or_pattern",
    ]);
    let is_part = (0..level)
        .any(|l| matches!(above.field(l), "type" | "name") && above.kind(l + 1) != "field_pattern");
    let name = pass.slice(&above.node(0)?);
    // A capital in a pattern is a constant or a variant.
    if is_part || name.starts_with(char::is_uppercase) {
        return None;
    }
    let owner = above.node(level + 1)?;
    match (owner.kind(), above.field(level)) {
        ("let_declaration", "pattern") => {
            let value = || constructed(pass, &owner.child_by_field_name("value")?);
            let name = if level == 0 { declared(level + 1).or_else(value) } else { None };
            Some(Bind::typed(BindKind::Local, name))
        }
        ("parameter", "pattern") => {
            let name = if level <= 1 { declared(level + 1) } else { None };
            Some(Bind::typed(BindKind::Parameter, name))
        }
        ("for_expression", "pattern") | ("let_condition", "pattern") | ("match_pattern", _) => {
            Some(Bind::new(BindKind::Local))
        }
        _ => None,
    }
}

/// True for a key of an object, a keyword argument or a label.
pub fn is_key(pass: &Pass<'_>, frames: &[Frame<'_>]) -> bool {
    let above = Above(frames);
    match pass.table.family {
        Family::Python => {
            let is_module = (0..3).any(|level| above.field(level) == "module_name");
            is_module || above.kind(1) == "keyword_argument" && above.field(0) == "name"
        }
        Family::Script => {
            matches!(above.kind(0), "property_identifier" | "private_property_identifier")
                && above.kind(1) != "member_expression"
                || above.kind(1) == "jsx_attribute"
        }
        Family::Go => above.kind(1) == "literal_element" && above.kind(2) == "keyed_element",
        Family::Rust => above.kind(1) == "field_initializer" && above.field(0) == "field",
        _ => above.kind(1).contains("label"),
    }
}
