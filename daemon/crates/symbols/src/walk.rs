//! One iterative pass over a syntax tree, so that deep nesting cannot exhaust the stack.

use std::time::Instant;

use rustc_hash::FxHashSet;
use tree_sitter::{Node, TreeCursor};

use super::bodies::LineMap;
use super::extract::{MAX_NAME, MAX_SYMBOLS, Symbol, ident_hash};
use super::languages::{Action, Condition, Grammar};
use super::naming;

/// Nodes that are visited between two checks of the clock.
const NODES_BETWEEN_CHECKS: u32 = 256;

/// An enclosing definition, or a scope that is not a definition.
struct Scope {
    end: usize,
    name: String,
    kind: &'static str,
}

impl Scope {
    /// True if functions in it are its methods.
    fn is_type(&self) -> bool {
        !matches!(
            self.kind,
            "function" | "method" | "constructor" | "constant" | "variable" | "macro" | "property"
        )
    }
}

pub struct Walk<'a> {
    text: &'a [u8],
    grammar: &'static Grammar,
    lang: &'a str,
    lines: &'a LineMap,
    until: Instant,
    scopes: Vec<Scope>,
    /// Kinds of the nodes around the present one, outermost first.
    ancestors: Vec<u16>,
    pub symbols: Vec<Symbol>,
}

impl<'a> Walk<'a> {
    pub fn new(
        text: &'a [u8],
        grammar: &'static Grammar,
        lang: &'a str,
        lines: &'a LineMap,
        until: Instant,
    ) -> Self {
        Self {
            text,
            grammar,
            lang,
            lines,
            until,
            scopes: Vec::new(),
            ancestors: Vec::new(),
            symbols: Vec::new(),
        }
    }

    /// Visits the tree and adds the hashes of its identifiers to `idents`, if given. `None` if the
    /// time limit was reached: the cost of a definition grows with the depth of its scopes.
    pub fn run(
        &mut self,
        cursor: &mut TreeCursor<'_>,
        mut idents: Option<&mut FxHashSet<u32>>,
    ) -> Option<()> {
        let mut depth = 0u32;
        for visited in 0_u32.. {
            if visited.is_multiple_of(NODES_BETWEEN_CHECKS) && Instant::now() > self.until {
                return None;
            }
            let node = cursor.node();
            let mut enter = true;
            match self.grammar.actions.get(node.kind_id() as usize) {
                Some(Action::Ident) => {
                    // `name` is a leaf in one grammar and a node with children in another.
                    if let Some(idents) = &mut idents {
                        let name = &self.text[node.byte_range()];
                        if (2..=MAX_NAME).contains(&name.len()) {
                            idents.insert(ident_hash(name));
                        }
                    } else {
                        enter = false;
                    }
                }
                Some(Action::Skip) => enter = idents.is_some(),
                Some(Action::Define(row)) => self.define(&node, *row, depth),
                _ => {}
            }
            if enter && cursor.goto_first_child() {
                depth += 1;
                self.ancestors.push(node.kind_id());
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(());
                }
                depth -= 1;
                self.ancestors.pop();
            }
        }
        None
    }

    fn define(&mut self, node: &Node<'_>, row: u8, depth: u32) {
        let (_, kind, name_by, when) = self.grammar.rows[row as usize];
        while self.scopes.last().is_some_and(|s| s.end <= node.start_byte()) {
            self.scopes.pop();
        }
        if !self.is_definition(node, when, depth) {
            return;
        }
        let Some((qualifier, name)) = naming::name(node, name_by, self.text, self.lang) else {
            return;
        };
        let mut end = node.end_byte();
        if kind == "module" && is_rest_of_file(node) {
            self.scopes.clear();
            end = usize::MAX;
        }
        let kind = self.refine(node, kind, qualifier.as_deref(), &name);
        // A scope without a kind is not a definition: Rust's `impl`, Swift's `extension`.
        if !kind.is_empty() && self.symbols.len() < MAX_SYMBOLS {
            debug_assert!(super::KINDS.contains(&kind), "a filter would refuse {kind}");
            let (start, last) = self.span(node);
            let enclosing = || self.scopes.last().map(|s| s.name.clone());
            let container = qualifier.or_else(enclosing);
            self.symbols.push(Symbol {
                name: name.clone(),
                kind,
                container,
                start_line: start,
                end_line: last,
            });
        }
        self.scopes.push(Scope { end, name, kind });
    }

    fn is_definition(&self, node: &Node<'_>, when: Condition, depth: u32) -> bool {
        match when {
            Condition::Always => true,
            Condition::TopLevel => {
                let inner = self.scopes.iter().filter(|s| s.kind != "module").count();
                inner == 0 && depth <= 3 + 2 * self.scopes.len() as u32
            }
            Condition::Body => node.child_by_field_name("body").is_some(),
            Condition::FunctionValue => naming::assigns_function(node),
            Condition::Constant => {
                node.child_by_field_name("left").is_some_and(|l| l.kind() == "constant")
            }
            Condition::Computed => {
                let is_computed = node.child_by_field_name("computed_value").is_some();
                self.scopes.last().is_none_or(|s| s.is_type() && is_computed)
            }
            Condition::PureVirtual => naming::is_pure_virtual(node),
            Condition::Member => {
                let parent = self.ancestors.last().copied().unwrap_or(0);
                let kind = self.grammar.language.node_kind_for_id(parent).unwrap_or("");
                naming::is_zig_member(node, kind, self.text)
            }
        }
    }

    /// First and last line in the original text, counted from 1.
    fn span(&self, node: &Node<'_>) -> (u32, u32) {
        let (start, end) = (node.start_position(), node.end_position());
        // Some nodes include the trailing newline; their last line is the one before.
        let row = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
        let first = start.row as u32 + 1 + self.lines.before_start(node.start_byte());
        (first, row as u32 + 1 + self.lines.before_end(node.end_byte()))
    }

    /// Refines the kind by the enclosing scope.
    fn refine(
        &self,
        node: &Node<'_>,
        kind: &'static str,
        qualifier: Option<&str>,
        name: &str,
    ) -> &'static str {
        let enclosing = self.scopes.last();
        let in_type = |s: &Scope| s.is_type() && (s.kind != "module" || self.lang == "ruby");
        match (self.lang, kind) {
            ("cpp", "function") => {
                if let Some(class) = naming::class_with_macro(node) {
                    return class;
                }
                let owner = match qualifier {
                    Some(q) => (!self.is_module(q)).then_some(q),
                    None => enclosing.filter(|s| in_type(s)).map(|s| s.name.as_str()),
                };
                owner.map_or(kind, |o| if o == name { "constructor" } else { "method" })
            }
            ("lua", "function") if qualifier.is_some() => "method",
            ("rust" | "python" | "ruby" | "swift", "function")
                if enclosing.is_some_and(in_type) =>
            {
                "method"
            }
            ("ruby", "function") if node.kind() == "singleton_method" => "method",
            ("zig", "function") if enclosing.is_some() => "method",
            ("zig", "constant") => naming::zig_kind(node),
            ("swift", "property") if enclosing.is_none() => "constant",
            ("swift", "class") => naming::swift_kind(node),
            ("csharp", "record") if naming::has_child(node, "struct") => "struct",
            ("go", "type") => match node.child_by_field_name("type").map_or("", |t| t.kind()) {
                "struct_type" => "struct",
                "interface_type" => "interface",
                _ => kind,
            },
            _ => kind,
        }
    }

    fn is_module(&self, name: &str) -> bool {
        self.scopes.iter().any(|s| s.kind == "module" && s.name == name)
    }
}

/// True for `namespace A.B;` and `namespace A\B;`, which contain the rest of the file.
fn is_rest_of_file(node: &Node<'_>) -> bool {
    match node.kind() {
        "file_scoped_namespace_declaration" => true,
        "namespace_definition" => node.child_by_field_name("body").is_none(),
        _ => false,
    }
}
