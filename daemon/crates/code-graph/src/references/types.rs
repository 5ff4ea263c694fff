//! Types as they are written: of values, fields and classes.

use tree_sitter::Node;

use super::pass::{Frame, Pass, ScopeId};
use super::tables::Family;

/// The type of a value that is a constructor's call.
pub fn constructed(pass: &Pass<'_>, value: &Node<'_>) -> Option<String> {
    let field = |name: &str| value.child_by_field_name(name);
    let callee = match value.kind() {
        "call" | "call_expression" => field("function")?,
        "new_expression" => return type_name(pass.slice(&field("constructor")?)),
        "object_creation_expression" | "composite_literal" => {
            return type_name(pass.slice(&field("type")?));
        }
        "struct_expression" => return type_name(pass.slice(&field("name")?)),
        "await" | "await_expression" | "unary_expression" | "expression_list"
        | "try_expression" => {
            return constructed(pass, &value.named_child(0)?);
        }
        "as_expression" => return type_name(pass.slice(&value.named_child(1)?)),
        _ => return None,
    };
    let text = pass.slice(&callee);
    let owner = match pass.table.family {
        // `C::new(…)` makes a `C`.
        Family::Rust => text.rsplit_once("::")?.0,
        Family::Go => text.rsplit('.').next()?.strip_prefix("New")?,
        _ => text,
    };
    type_name(owner).filter(|name| name.starts_with(char::is_uppercase))
}

/// The name of a type as it is written, without its module, arguments and modifiers.
pub fn type_name(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches([':', '&', '*', '\'', '"', '[', ']', ' ']);
    let mut text = text.trim_end_matches(['\'', '"', ' ', '*', '&', '?']);
    for prefix in [
        "mut ",
        "const ",
        "readonly ",
        "dyn ",
        "impl ",
        "struct ",
        "Optional[",
        "typing.Optional[",
        "Annotated[",
        "inject(",
    ] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    let is_void = |part: &&str| !matches!(*part, "None" | "null" | "undefined" | "");
    let text = text.split('|').map(str::trim).find(is_void)?;
    let end = text.find(['[', '<', '(', '{', ',', ']', ' ', '=', '!']).unwrap_or(text.len());
    let path = &text[..end];
    let name = path.rsplit(['.', ':']).next()?.trim_matches(['\'', '"']);
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// The name of a class, or of the type of an `impl`.
pub fn class_name(pass: &Pass<'_>, node: &Node<'_>) -> Option<String> {
    let field = if node.kind() == "impl_item" { "type" } else { "name" };
    type_name(pass.slice(&node.child_by_field_name(field)?))
}

/// Names of the types that a class extends.
pub fn bases(pass: &Pass<'_>, node: &Node<'_>) -> Vec<String> {
    let mut cursor = node.walk();
    let is_list = |n: &Node<'_>| {
        matches!(
            n.kind(),
            "argument_list"
                | "class_heritage"
                | "superclass"
                | "super_interfaces"
                | "base_class_clause"
                | "extends_type_clause"
                | "extends_interfaces"
        )
    };
    let lists: Vec<Node<'_>> = node.named_children(&mut cursor).filter(is_list).collect();
    let words = lists.iter().flat_map(|list| {
        let is_break = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
        pass.slice(list).split(is_break).filter_map(type_name).collect::<Vec<_>>()
    });
    words.take(64).collect()
}

/// The name of the function or class that the last frame opens.
pub fn definition_name(pass: &Pass<'_>, frames: &[Frame<'_>]) -> Option<String> {
    let [.., this] = frames else { return None };
    let node = this.node;
    if let Some(name) = node.child_by_field_name("name") {
        return Some(pass.slice(&name).to_owned());
    }
    if node.kind() == "impl_item" {
        return class_name(pass, &node);
    }
    if let Some(mut declarator) = node.child_by_field_name("declarator") {
        while let Some(inner) = declarator.child_by_field_name("declarator") {
            declarator = inner;
        }
        return Some(pass.slice(&declarator).to_owned());
    }
    // A function that a variable or property is set to.
    let owner = frames.len().checked_sub(2).map(|i| frames[i].node)?;
    let field = ["name", "key", "property", "left"];
    let name = field.iter().find_map(|f| owner.child_by_field_name(f))?;
    let is_named = matches!(
        owner.kind(),
        "variable_declarator"
            | "pair"
            | "public_field_definition"
            | "field_definition"
            | "assignment_expression"
    );
    is_named.then(|| pass.slice(&name).to_owned())
}

/// Records the types of fields that a node declares: `self.x = C()`, `private x: C`.
pub fn field_types(pass: &mut Pass<'_>, frames: &[Frame<'_>], scope: ScopeId) {
    let Some(class) = pass.scopes[scope].class else { return };
    let Some(Frame { node, .. }) = frames.last() else { return };
    let field = |name: &str| node.child_by_field_name(name);
    let typed = |pass: &Pass<'_>, name: &str| field(name).and_then(|n| type_name(pass.slice(&n)));
    let (name, type_name) = match node.kind() {
        "assignment" | "assignment_expression" => {
            let Some(left) = field("left") else { return };
            let left = pass.slice(&left);
            let Some(name) = left.strip_prefix("self.").or(left.strip_prefix("this.")) else {
                return;
            };
            let value = field("right");
            let declared = typed(pass, "type");
            let constructed = || value.and_then(|n| constructed(pass, &n));
            let parameter = || {
                let name = value.map(|n| pass.slice(&n).to_owned())?;
                pass.bindings.get(&scope)?.get(&name)?.iter().find_map(|b| b.type_name.clone())
            };
            (name.to_owned(), declared.or_else(constructed).or_else(parameter))
        }
        "public_field_definition" => {
            let Some(name) = field("name") else { return };
            let constructed = || {
                let value = field("value")?;
                let text = pass.slice(&value);
                let injected = text.strip_prefix("inject(").and_then(self::type_name);
                injected.or_else(|| constructed(pass, &value))
            };
            (pass.slice(&name).to_owned(), typed(pass, "type").or_else(constructed))
        }
        "required_parameter" => {
            let mut cursor = node.walk();
            let is_modifier =
                |n: Node<'_>| matches!(n.kind(), "accessibility_modifier" | "readonly");
            let is_field = node.children(&mut cursor).any(is_modifier);
            let Some(name) = field("pattern").filter(|_| is_field) else { return };
            (pass.slice(&name).to_owned(), typed(pass, "type"))
        }
        _ => return,
    };
    if let Some(type_name) = type_name {
        pass.classes[class].fields.entry(name).or_insert(type_name);
    }
}
