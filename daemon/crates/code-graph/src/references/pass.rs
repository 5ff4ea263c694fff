//! One pass over a syntax tree: scopes with their bindings, classes with the types of their fields,
//! and occurrences of the names that are searched.

use std::time::Instant;

use rustc_hash::FxHashMap;
use tree_sitter::{Node, Tree};

use super::bindings::{self, Bind, BindKind};
use super::tables::{Family, Table};
use super::types;
use super::{Enclosing, ReferenceKind};

/// Nodes that are visited between two checks of the clock.
const NODES_BETWEEN_CHECKS: u32 = 256;
/// Maximum occurrences of the names in one file.
const MAX_OCCURRENCES: usize = 50_000;

/// Statements that import, or export the names of another file.
const STATEMENTS: [&str; 6] = [
    "import_statement",
    "import_from_statement",
    "future_import_statement",
    "import_declaration",
    "use_declaration",
    "export_statement",
];

/// The arguments of a macro of Rust.
const TOKENS: &str = "token_tree";
/// Maximum names of a receiver in the arguments of a macro.
const MAX_TOKENS: usize = 16;

pub type ScopeId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    Module,
    Function,
    Block,
    Class,
}

#[derive(Debug)]
pub struct Scope {
    pub kind: ScopeKind,
    pub parent: ScopeId,
    /// Index of the innermost class around it.
    pub class: Option<usize>,
    end: usize,
}

#[derive(Debug)]
pub struct Binding {
    pub kind: BindKind,
    /// Name of the type, if it is written.
    pub type_name: Option<String>,
    /// Position of the name in the text.
    pub at: usize,
}

#[derive(Debug)]
pub struct Class {
    pub name: String,
    pub bases: Vec<String>,
    pub scope: ScopeId,
    /// Types of fields by name.
    pub fields: FxHashMap<String, String>,
}

/// The expression before a member's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receiver {
    /// Names joined by `.`, such as `self.x`.
    Path(String),
    /// A value made by a call of this name.
    Constructed(String),
    Super,
    Unknown,
}

#[derive(Debug)]
pub struct Occurrence {
    pub name: String,
    /// Position in the text.
    pub at: usize,
    pub row: usize,
    pub column: usize,
    pub kind: ReferenceKind,
    /// `None` for a plain name.
    pub receiver: Option<Receiver>,
    pub scope: ScopeId,
    /// First line of the statement, for imports.
    pub statement_row: usize,
    pub enclosing: Option<Enclosing>,
    /// True for a key or label, which refers to a member only.
    pub is_key: bool,
    /// The kind of the binding, if the name is bound here.
    pub bind: Option<BindKind>,
    /// True if this name is bound here.
    pub is_binding: bool,
}

/// A node with the name of its field in its parent.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'t> {
    pub node: Node<'t>,
    pub field: Option<&'t str>,
}

pub struct Pass<'a> {
    pub text: &'a [u8],
    pub table: &'static Table,
    names: &'a [&'a str],
    until: Instant,
    pub scopes: Vec<Scope>,
    /// Bindings of each scope by name.
    pub bindings: FxHashMap<ScopeId, FxHashMap<String, Vec<Binding>>>,
    pub classes: Vec<Class>,
    pub occurrences: Vec<Occurrence>,
    enclosing: Vec<(usize, Enclosing)>,
}

impl<'a> Pass<'a> {
    pub fn new(
        text: &'a [u8],
        table: &'static Table,
        names: &'a [&'a str],
        until: Instant,
    ) -> Self {
        let module = Scope { kind: ScopeKind::Module, parent: 0, class: None, end: usize::MAX };
        Self {
            text,
            table,
            names,
            until,
            scopes: vec![module],
            bindings: FxHashMap::default(),
            classes: Vec::new(),
            occurrences: Vec::new(),
            enclosing: Vec::new(),
        }
    }

    pub fn slice(&self, node: &Node<'_>) -> &'a str {
        let bytes = self.text.get(node.byte_range()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Visits the tree. `None` if the time limit was reached.
    pub fn run(&mut self, tree: &Tree) -> Option<()> {
        let mut cursor = tree.walk();
        let mut frames: Vec<Frame<'_>> = Vec::new();
        let mut scope = 0;
        for visited in 0_u32.. {
            if visited.is_multiple_of(NODES_BETWEEN_CHECKS) && Instant::now() > self.until {
                return None;
            }
            let node = cursor.node();
            frames.push(Frame { node, field: cursor.field_name() });
            while self.scopes[scope].end <= node.start_byte() && scope != 0 {
                scope = self.scopes[scope].parent;
            }
            while self.enclosing.last().is_some_and(|(end, _)| *end <= node.start_byte()) {
                self.enclosing.pop();
            }
            if node.is_named() {
                scope = self.enter(&frames, scope);
            }
            if cursor.goto_first_child() {
                continue;
            }
            frames.pop();
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Some(());
                }
                frames.pop();
            }
        }
        None
    }

    /// Handles a node and returns the scope of its children.
    fn enter(&mut self, frames: &[Frame<'_>], scope: ScopeId) -> ScopeId {
        let Some(Frame { node, .. }) = frames.last() else { return scope };
        let kind = node.kind();
        if self.table.names.contains(&kind) || self.table.this.contains(&kind) {
            self.visit_name(frames, scope);
            return scope;
        }
        let scope_kind = if self.table.functions.contains(&kind) {
            ScopeKind::Function
        } else if self.table.classes.contains(&kind) {
            ScopeKind::Class
        } else if self.table.blocks.contains(&kind) {
            ScopeKind::Block
        } else {
            types::field_types(self, frames, scope);
            return scope;
        };
        self.open(frames, scope, scope_kind)
    }

    fn open(&mut self, frames: &[Frame<'_>], parent: ScopeId, kind: ScopeKind) -> ScopeId {
        let Some(Frame { node, .. }) = frames.last() else { return parent };
        let id = self.scopes.len();
        let mut class = self.scopes[parent].class;
        if kind == ScopeKind::Class {
            class = Some(self.classes.len());
            let name = types::class_name(self, node).unwrap_or_default();
            let bases = types::bases(self, node);
            self.classes.push(Class { name, bases, scope: id, fields: FxHashMap::default() });
        }
        self.scopes.push(Scope { kind, parent, class, end: node.end_byte() });
        let label = match kind {
            ScopeKind::Class => Some("class"),
            ScopeKind::Function if class.is_some() => Some("method"),
            ScopeKind::Function => Some("function"),
            _ => None,
        };
        if let Some(kind) = label
            && let Some(name) = types::definition_name(self, frames)
        {
            let start_line = node.start_position().row as u32 + 1;
            self.enclosing.push((node.end_byte(), Enclosing { name, kind, start_line }));
        }
        id
    }

    fn visit_name(&mut self, frames: &[Frame<'_>], scope: ScopeId) {
        let Some(Frame { node, .. }) = frames.last() else { return };
        let name = self.slice(node);
        let bind = bindings::bind(self, frames);
        let start = node.start_position();
        if let Some(bind) = &bind {
            let owner = self.owner(scope, bind);
            let binding = Binding {
                kind: bind.kind,
                type_name: bind.type_name.clone(),
                at: node.start_byte(),
            };
            let scope = self.bindings.entry(owner).or_default();
            scope.entry(name.to_owned()).or_default().push(binding);
        }
        if !self.names.contains(&name) || self.occurrences.len() >= MAX_OCCURRENCES {
            return;
        }
        let statement = frames.iter().rev().find(|f| STATEMENTS.contains(&f.node.kind()));
        // A name in an import that binds another one belongs to the other file.
        let is_foreign = bind.is_none()
            && self.table.family != Family::Rust
            && statement.is_some_and(|f| {
                let has_source = f.node.child_by_field_name("source").is_some();
                f.node.kind() != "export_statement" || has_source
            });
        let receiver = self.receiver(frames);
        let occurrence = Occurrence {
            name: name.to_owned(),
            at: node.start_byte(),
            row: start.row,
            column: start.column,
            kind: self.kind_of(frames, bind.as_ref()),
            receiver,
            scope: bind.as_ref().map_or(scope, |b| self.owner(scope, b)),
            statement_row: statement.map_or(start.row, |f| f.node.start_position().row),
            enclosing: self.enclosing.last().map(|(_, e)| e.clone()),
            is_key: bindings::is_key(self, frames) || is_foreign,
            bind: bind.as_ref().map(|b| b.kind),
            is_binding: bind.is_some(),
        };
        self.occurrences.push(occurrence);
    }

    /// The scope that a binding found in `scope` belongs to.
    fn owner(&self, scope: ScopeId, bind: &Bind) -> ScopeId {
        let mut owner = scope;
        for _ in 0..bind.outward {
            owner = self.scopes[owner].parent;
        }
        while bind.is_hoisted && self.scopes[owner].kind == ScopeKind::Block {
            owner = self.scopes[owner].parent;
        }
        owner
    }

    /// The receiver of the member that the last frame names.
    fn receiver(&self, frames: &[Frame<'_>]) -> Option<Receiver> {
        let [.., parent, this] = frames else { return None };
        if parent.node.kind() == TOKENS {
            return self.receiver_in_tokens(this.node.start_byte());
        }
        let rows = self.table.members.iter();
        let mut rows = rows.filter(|(kind, ..)| *kind == parent.node.kind());
        let (_, object, member) = rows.next()?;
        if this.field != Some(*member) {
            return None;
        }
        let Some(object) = parent.node.child_by_field_name(object) else {
            // A call without an object names a method of the class itself.
            return None;
        };
        Some(self.expression(&object))
    }

    /// The receiver of a name in the arguments of a macro, which have no syntax tree.
    fn receiver_in_tokens(&self, start: usize) -> Option<Receiver> {
        let before = |at: usize| self.text.get(..at).unwrap_or_default().trim_ascii_end();
        let joint = |text: &'a [u8]| text.strip_suffix(b"::").or_else(|| text.strip_suffix(b"."));
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
        let mut rest = joint(before(start))?;
        let mut names: Vec<&str> = Vec::new();
        loop {
            let text = rest.trim_ascii_end();
            let length = text.iter().rev().take_while(|b| is_part(b)).count();
            let (head, name) = text.split_at(text.len() - length);
            match std::str::from_utf8(name) {
                Ok(name) if !name.is_empty() && names.len() < MAX_TOKENS => names.push(name),
                _ => return Some(Receiver::Unknown),
            }
            match joint(head.trim_ascii_end()) {
                Some(next) => rest = next,
                None => break,
            }
        }
        names.reverse();
        Some(Receiver::Path(names.join(".")))
    }

    /// A receiver as far as it can be named.
    fn expression(&self, node: &Node<'_>) -> Receiver {
        match node.kind() {
            "super" if self.table.family != Family::Rust => Receiver::Super,
            "call" | "call_expression" | "new_expression" | "object_creation_expression" => {
                let callee = ["function", "constructor", "type"];
                let callee = callee.iter().find_map(|f| node.child_by_field_name(f));
                match callee.map(|c| self.slice(&c)) {
                    Some("super") => Receiver::Super,
                    Some(name) => {
                        types::type_name(name).map_or(Receiver::Unknown, Receiver::Constructed)
                    }
                    None => Receiver::Unknown,
                }
            }
            "parenthesized_expression"
            | "non_null_expression"
            | "await_expression"
            | "pointer_expression"
            | "reference_expression" => {
                let inner = node.named_child(0);
                inner.map_or(Receiver::Unknown, |n| match n.kind() {
                    // One level is enough for what people write.
                    "parenthesized_expression" => Receiver::Unknown,
                    _ => self.expression(&n),
                })
            }
            _ => {
                let text = self.slice(node);
                let is_path =
                    |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '$' | '?' | '!');
                if !text.is_empty() && text.len() < 200 && text.chars().all(is_path) {
                    Receiver::Path(text.replace("?.", ".").replace("!.", ".").replace("::", "."))
                } else {
                    Receiver::Unknown
                }
            }
        }
    }

    fn kind_of(&self, frames: &[Frame<'_>], bind: Option<&Bind>) -> ReferenceKind {
        match bind.map(|b| b.kind) {
            Some(BindKind::Import) => return ReferenceKind::Import,
            Some(BindKind::Definition | BindKind::Declaration | BindKind::Class) => {
                return ReferenceKind::Definition;
            }
            Some(BindKind::Local) => return ReferenceKind::Write,
            _ => {}
        }
        let is_import = |f: &&Frame<'_>| {
            matches!(
                f.node.kind(),
                "import_statement"
                    | "import_from_statement"
                    | "import_declaration"
                    | "use_declaration"
                    | "export_specifier"
                    | "import_spec"
            )
        };
        if frames.iter().rev().take(8).any(|f| is_import(&f)) {
            return ReferenceKind::Import;
        }
        let mut at = frames.len() - 1;
        if at > 0 && frames[at - 1].node.kind() == TOKENS {
            let after = self.text.get(frames[at].node.end_byte()..).unwrap_or_default();
            if after.trim_ascii_start().starts_with(b"(") {
                return ReferenceKind::Call;
            }
        }
        let member = self.table.members.iter();
        if at > 0 && member.into_iter().any(|(kind, ..)| *kind == frames[at - 1].node.kind()) {
            let is_object = self.table.family != Family::Java
                && frames[at].field.is_none_or(|f| {
                    matches!(f, "object" | "operand" | "argument" | "value" | "scope" | "path")
                });
            if is_object {
                return ReferenceKind::Read;
            }
            if self.table.family != Family::Java {
                at -= 1;
            }
        }
        let field = frames[at].field;
        let parent = at.checked_sub(1).map(|i| frames[i].node);
        let parent_kind = parent.map_or("", |p| p.kind());
        let is_callee = |(kind, callee): &(&str, &str)| {
            *kind == parent_kind && (callee.is_empty() || field == Some(*callee))
        };
        if self.table.calls.iter().any(is_callee) {
            return ReferenceKind::Call;
        }
        let is_type = frames[at].node.kind().contains("type_identifier")
            || frames.iter().rev().take(6).any(|f| self.table.types.contains(&f.node.kind()));
        if is_type {
            return ReferenceKind::Type;
        }
        let assigns = parent_kind.contains("assignment") && field == Some("left");
        if assigns { ReferenceKind::Write } else { ReferenceKind::Read }
    }
}
