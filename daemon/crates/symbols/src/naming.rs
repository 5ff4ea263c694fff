//! The name of a definition, and other properties of its node.

use tree_sitter::Node;

use super::extract::MAX_NAME;
use super::languages::NameSource;

/// The name that a node defines, with its qualifying container (`Foo::bar`, `func (f *Foo) bar`).
pub fn name(
    node: &Node<'_>,
    by: NameSource,
    text: &[u8],
    lang: &str,
) -> Option<(Option<String>, String)> {
    let name_node = match by {
        NameSource::Field => node
            .child_by_field_name("name")
            .or_else(|| node.child_by_field_name("property"))
            .map(|n| n.child_by_field_name("bound_identifier").unwrap_or(n))?,
        NameSource::Key => node.child_by_field_name("key")?,
        NameSource::Left => {
            let left = node.child_by_field_name("left")?;
            let target = left.child_by_field_name("property").unwrap_or(left);
            let function_name = || node.child_by_field_name("right")?.child_by_field_name("name");
            // `module.exports = function name() {}`
            if text.get(target.byte_range()) == Some(b"exports") {
                function_name().unwrap_or(target)
            } else {
                target
            }
        }
        NameSource::Type => innermost(*node, |n| {
            n.child_by_field_name("type").or_else(|| n.child_by_field_name("name"))
        })?,
        NameSource::Declarator => innermost(*node, |n| {
            n.child_by_field_name("declarator").or_else(|| inner_declarator(n))
        })?,
        NameSource::First => {
            named_children(node).find(|n| matches!(n.kind(), "name" | "identifier"))?
        }
    };
    let text_of = |n: &Node<'_>| text.get(n.byte_range()).and_then(|t| std::str::from_utf8(t).ok());
    let full_name = text_of(&name_node)?.trim_matches(['"', '\'']);
    let (mut container, name) = match lang {
        "cpp" | "ruby" => qualified(full_name, "::"),
        "swift" | "lua" => qualified(full_name, "."),
        _ => (None, full_name),
    };
    if lang == "lua"
        && let Some((table, _)) = name.rsplit_once(':')
    {
        container = Some(table);
    }
    let name = if lang == "lua" { name.rsplit(':').next()? } else { name };
    let without_type_arguments = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.contains(char::is_whitespace)
        && (!name.contains(['(', '[', '{'])
            || name.starts_with("operator")
            || name.starts_with("[]"));
    let receiver = || {
        let text = text_of(&node.child_by_field_name("receiver")?)?;
        receiver(text)
    };
    let container = container.or_else(|| if lang == "go" { receiver() } else { None });
    without_type_arguments
        .then(|| (container.filter(|c| !c.is_empty()).map(str::to_owned), name.to_owned()))
}

fn innermost<'a>(
    node: Node<'a>,
    inner: impl Fn(&Node<'a>) -> Option<Node<'a>>,
) -> Option<Node<'a>> {
    let mut name_node = inner(&node)?;
    while let Some(deeper) = inner(&name_node) {
        name_node = deeper;
    }
    Some(name_node)
}

/// The inner node of `(*name)` and `&name` in declarators, which have no field for it.
fn inner_declarator<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    matches!(
        node.kind(),
        "parenthesized_declarator" | "attributed_declarator" | "reference_declarator"
    )
    .then(|| node.named_child(0))
    .flatten()
}

/// Splits a qualified name into its last part and the part before it, both without type arguments.
fn qualified<'t>(text: &'t str, separator: &str) -> (Option<&'t str>, &'t str) {
    let (mut from, mut before, mut depth, mut at) = (0, None, 0i32, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if text[from..].starts_with("operator") {
            return (before, &text[from..]);
        }
        match bytes[at] {
            b'<' => depth += 1,
            b'>' => depth -= 1,
            _ if depth == 0 && bytes[at..].starts_with(separator.as_bytes()) => {
                before = Some(without_type_arguments(&text[from..at]));
                at += separator.len();
                from = at;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    (before, without_type_arguments(&text[from..]))
}

/// A name without its type arguments.
fn without_type_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name).trim()
}

/// The type of a Go receiver: `(s *S[T])` → `S`.
fn receiver(text: &str) -> Option<&str> {
    let name = text.trim_matches(['(', ')']).split('[').next()?.split_whitespace().last()?;
    Some(name.trim_start_matches('*'))
}

fn named_children<'a>(node: &Node<'a>) -> impl Iterator<Item = Node<'a>> {
    let node = *node;
    (0..node.named_child_count()).filter_map(move |i| node.named_child(i as u32))
}

/// True if one of the first children, keywords included, has this kind.
pub fn has_child(node: &Node<'_>, kind: &str) -> bool {
    (0..node.child_count().min(8)).any(|i| node.child(i).is_some_and(|c| c.kind() == kind))
}

/// True if the assigned value is a function or a class.
pub fn assigns_function(node: &Node<'_>) -> bool {
    let value = node.child_by_field_name("value").or_else(|| node.child_by_field_name("right"));
    value.is_some_and(|v| {
        matches!(
            v.kind(),
            "arrow_function" | "function_expression" | "generator_function" | "class"
        )
    })
}

/// True for a pure virtual member function of a C++ class (`= 0`).
pub fn is_pure_virtual(node: &Node<'_>) -> bool {
    node.child_by_field_name("default_value").is_some()
        && node.child_by_field_name("declarator").is_some_and(|d| d.kind() == "function_declarator")
}

/// Node kinds of Zig's types, each the value of the constant that names it.
const ZIG_TYPES: [(&str, &str); 5] = [
    ("struct_declaration", "struct"),
    ("enum_declaration", "enum"),
    ("union_declaration", "union"),
    ("opaque_declaration", "type"),
    ("error_set_declaration", "type"),
];

/// True for a declaration of Zig in a file or type, which `parent` is, that does not import
/// (`@import`, `@This`).
pub fn is_zig_member(node: &Node<'_>, parent: &str, text: &[u8]) -> bool {
    let is_type = ZIG_TYPES.iter().any(|(node, _)| *node == parent);
    let imports = |n: &Node<'_>| {
        let call = text.get(n.byte_range()).unwrap_or(b"");
        n.kind() == "builtin_function" && (call.starts_with(b"@import") || call == b"@This()")
    };
    (is_type || parent == "source_file") && !named_children(node).any(|n| imports(&n))
}

/// The kind of a declaration in Zig, where types are values of constants.
pub fn zig_kind(node: &Node<'_>) -> &'static str {
    let type_of = |n: Node<'_>| ZIG_TYPES.iter().find(|(node, _)| *node == n.kind());
    match named_children(node).find_map(type_of) {
        Some((_, kind)) => kind,
        None if has_child(node, "var") => "variable",
        None => "constant",
    }
}

/// The kind of a Swift type; Swift has one node kind for all types and for extensions, which are
/// not definitions.
pub fn swift_kind(node: &Node<'_>) -> &'static str {
    match node.child_by_field_name("declaration_kind").map_or("", |k| k.kind()) {
        "struct" => "struct",
        "enum" => "enum",
        "actor" => "actor",
        "extension" => "",
        _ => "class",
    }
}

/// The kind of `class EXPORT Name … {`, which the grammar parses as a function `Name` that returns
/// `class EXPORT`.
pub fn class_with_macro(node: &Node<'_>) -> Option<&'static str> {
    if node.child_by_field_name("declarator")?.kind() != "identifier" {
        return None;
    }
    match node.child_by_field_name("type")?.kind() {
        "class_specifier" => Some("class"),
        "struct_specifier" => Some("struct"),
        _ => None,
    }
}
