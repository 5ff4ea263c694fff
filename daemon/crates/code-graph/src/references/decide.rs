//! The decision about each occurrence of a name: this definition, another one, or unknown.

use super::bindings::BindKind;
use super::pass::{Binding, Class, Occurrence, Pass, Receiver, ScopeId, ScopeKind};
use super::tables::Family;
use super::{Confidence, Reference, ReferenceKind, Target, View};

/// Lines between the first line of a definition and its name: decorators and modifiers.
const MAX_HEAD: usize = 40;
/// Maximum classes between a class and its base in one file.
const MAX_BASES: usize = 16;

/// Names of the classes in a file that inherit the target and do not define it.
pub fn heirs(pass: &Pass<'_>, target: &Target, view: &View) -> Vec<String> {
    let decider = Decider { pass, target, view, home: None, home_row: usize::MAX };
    let inherits = |class: &usize| {
        !decider.defines(*class)
            && decider.is_subclass(*class, 0)
            && (!view.is_same_file || target.container.as_ref() != Some(&pass.classes[*class].name))
    };
    (0..pass.classes.len()).filter(inherits).map(|c| pass.classes[c].name.clone()).collect()
}

struct Decider<'a> {
    pass: &'a Pass<'a>,
    target: &'a Target,
    view: &'a View,
    /// Scope of the definition, if this is its file.
    home: Option<ScopeId>,
    /// Row of the definition's name.
    home_row: usize,
}

/// The references among the occurrences of a pass.
pub fn decide(pass: &Pass<'_>, target: &Target, view: &View) -> Vec<Reference> {
    decide_among(pass, target, view, &|_| true)
}

/// The references among those occurrences of a pass that `is_named` admits: a pass for several
/// targets has names that only some of them go by.
pub fn decide_among(
    pass: &Pass<'_>,
    target: &Target,
    view: &View,
    is_named: &dyn Fn(&Occurrence) -> bool,
) -> Vec<Reference> {
    let home = if view.is_same_file { find_home(pass, target) } else { None };
    // A function that is assigned to a member is defined by the first use on its line.
    let assigned = target.line.saturating_sub(1) as usize;
    let home_row = home.map_or(assigned, |(row, _)| row);
    let home = home.map(|(_, scope)| scope);
    let decider = Decider { pass, target, view, home, home_row };
    let reference = |o: &Occurrence| {
        let confidence = decider.confidence(o)?;
        let is_assigned = o.receiver.is_some() || o.is_key;
        let defines = o.is_binding || decider.home.is_none() && is_assigned;
        let is_definition = view.is_same_file && defines && o.row == home_row;
        Some(Reference {
            line: o.row as u32 + 1,
            column: o.column as u32,
            kind: if is_definition { ReferenceKind::Definition } else { o.kind },
            enclosing: o.enclosing.clone(),
            confidence,
        })
    };
    pass.occurrences.iter().filter(|o| is_named(o)).filter_map(reference).collect()
}

/// The row of the definition's name and the scope that it is bound in.
fn find_home(pass: &Pass<'_>, target: &Target) -> Option<(usize, ScopeId)> {
    let first = target.line.saturating_sub(1) as usize;
    let is_head = |o: &&Occurrence| {
        let is_near = target.line == 0 || (first..first + MAX_HEAD).contains(&o.row);
        o.is_binding && o.name == target.name && is_near
    };
    let found = pass.occurrences.iter().filter(is_head).min_by_key(|o| o.row)?;
    Some((found.row, found.scope))
}

impl Decider<'_> {
    fn confidence(&self, o: &Occurrence) -> Option<Confidence> {
        let is_import = o.kind == ReferenceKind::Import;
        if is_import && self.view.import_lines.contains(&(o.statement_row as u32 + 1)) {
            let is_name = o.name == self.target.importable() || self.view.names.contains(&o.name);
            return is_name.then_some(Confidence::Exact);
        }
        if o.is_binding {
            return self.binding(o);
        }
        if o.name == "super" {
            let class = self.pass.scopes[o.scope].class?;
            let is_call = self.target.is_constructor() && o.kind == ReferenceKind::Call;
            let inherits = is_call && o.receiver.is_none() && self.is_subclass(class, 0);
            return inherits.then_some(Confidence::Exact);
        }
        let is_assigned = self.view.is_same_file && self.home.is_none();
        if is_assigned && o.row == self.home_row && o.name == self.target.name {
            return Some(Confidence::Exact);
        }
        if o.is_key {
            return None;
        }
        // Macros have scopes of their own.
        let is_macro = self.target.kind == "macro" && self.pass.table.family == Family::Rust;
        if is_macro && o.kind == ReferenceKind::Call {
            return Some(Confidence::Likely);
        }
        match &o.receiver {
            Some(receiver) if self.target.is_member() => self.member(o, receiver),
            Some(receiver) => self.qualified(o, receiver),
            None => self.plain(o),
        }
    }

    /// A name that is bound here: the definition itself, or another declaration of it.
    fn binding(&self, o: &Occurrence) -> Option<Confidence> {
        let is_home = self.home == Some(o.scope);
        if is_home && (o.row == self.home_row || self.pass.table.family != Family::Go) {
            return Some(Confidence::Exact);
        }
        // An override belongs to the method that it overrides, as in the compiler's service.
        let class = self.pass.classes.iter().position(|c| c.scope == o.scope);
        if self.pass.table.family == Family::Script
            && self.target.is_member()
            && self.target.name != "constructor"
            && class.is_some_and(|c| self.is_subclass(c, 0))
        {
            return Some(Confidence::Likely);
        }
        let name = class.map(|c| self.pass.classes[c].name.as_str());
        if self.pass.table.family == Family::C
            && self.target.is_member()
            && name == self.target.container.as_deref()
        {
            return Some(Confidence::Likely);
        }
        // A prototype in a header declares the function that another file defines.
        let is_global = self.pass.scopes[o.scope].kind == ScopeKind::Module;
        let is_prototype = is_global
            && o.bind == Some(BindKind::Declaration)
            && !self.target.is_member()
            && (self.view.is_same_package || self.view.is_same_file);
        is_prototype.then_some(Confidence::Likely)
    }

    /// The innermost binding of a name that is visible in a scope.
    fn lookup(&self, o: &Occurrence, name: &str) -> Option<(ScopeId, &Binding)> {
        let pass = self.pass;
        let sees_members = matches!(pass.table.family, Family::Java | Family::C);
        let scope = o.scope;
        let mut at = scope;
        // Elsewhere a variable is known in its block as a part of it, before its declaration.
        let is_ordered = !matches!(pass.table.family, Family::Python | Family::Script);
        loop {
            let kind = pass.scopes[at].kind;
            let is_visible = match pass.table.family {
                Family::Script | Family::Rust => kind != ScopeKind::Class,
                _ => kind != ScopeKind::Class || at == scope || sees_members,
            };
            if is_visible
                && let Some(all) = pass.bindings.get(&at).and_then(|names| names.get(name))
                && let Some(first) = all.iter().find(|b| {
                    !is_ordered
                        || b.at <= o.at
                        || b.kind != BindKind::Local
                        || kind == ScopeKind::Module
                })
                && all.iter().all(|b| b.kind != BindKind::Outer)
            {
                // A later binding may be the one with a type.
                let typed = all.iter().find(|b| b.type_name.is_some());
                return Some((at, typed.unwrap_or(first)));
            }
            if at == 0 {
                return None;
            }
            at = pass.scopes[at].parent;
        }
    }

    fn plain(&self, o: &Occurrence) -> Option<Confidence> {
        let found = self.lookup(o, &o.name);
        if let Some(home) = self.home {
            if o.name == self.target.name && found.is_some_and(|(scope, _)| scope == home) {
                return Some(Confidence::Exact);
            }
            return None;
        }
        if self.target.is_member() {
            // An inherited member, or one that is imported by its name.
            let is_imported = self.view.members.contains(&o.name);
            return (is_imported && found.is_none()).then_some(Confidence::Exact);
        }
        let view = self.view;
        match found {
            Some((_, binding)) if binding.kind == BindKind::Import => {
                let is_named = view.names.contains(&o.name);
                is_named.then_some(Confidence::Exact)
            }
            Some((scope, binding)) => {
                let is_module = self.pass.scopes[scope].kind == ScopeKind::Module;
                let is_variable = binding.kind == BindKind::Local;
                let is_named = view.names.contains(&o.name);
                if is_named && is_module && is_variable {
                    return Some(Confidence::Exact);
                }
                let is_declared = self.pass.table.family == Family::C
                    && is_module
                    && view.is_same_package
                    && binding.kind == BindKind::Declaration;
                is_declared.then_some(Confidence::Likely)
            }
            None if view.names.contains(&o.name) => Some(Confidence::Exact),
            None if o.name != self.target.name => None,
            None if view.is_same_package => Some(Confidence::Exact),
            None => view.has_glob.then_some(Confidence::Likely),
        }
    }

    /// `receiver.name`, where the target is no member of a type.
    fn qualified(&self, o: &Occurrence, receiver: &Receiver) -> Option<Confidence> {
        let Receiver::Path(path) = receiver else { return None };
        if self.is_module(o, path) {
            return Some(Confidence::Exact);
        }
        // A module inside of the file names what is around it.
        let is_outer = matches!(path.as_str(), "super" | "self");
        if is_outer && self.home.is_some() && self.pass.table.family == Family::Rust {
            return Some(Confidence::Likely);
        }
        let container = self.target.container.as_deref()?;
        let is_inner = path.rsplit('.').next() == Some(container) && o.name == self.target.name;
        is_inner.then_some(Confidence::Likely)
    }

    /// True if `path` is a module that exports the target under the name of the occurrence.
    fn is_module(&self, o: &Occurrence, path: &str) -> bool {
        let is_match = |(module, name): &(String, String)| module == path && *name == o.name;
        if !self.view.modules.iter().any(is_match) {
            return false;
        }
        let head = path.split('.').next().unwrap_or_default();
        let found = self.lookup(o, head);
        // `mod a;` makes a module of a name.
        let is_rust = self.pass.table.family == Family::Rust;
        found.is_none_or(|(_, b)| is_rust || matches!(b.kind, BindKind::Import | BindKind::Local))
    }

    /// `receiver.name`, where the target is a member of a type.
    fn member(&self, o: &Occurrence, receiver: &Receiver) -> Option<Confidence> {
        if o.name != self.target.name {
            return None;
        }
        if self.is_rust_field(o, receiver) {
            return None;
        }
        let unknown = if self.target.is_unique && self.is_plausible(receiver) {
            Confidence::Likely
        } else {
            Confidence::Ambiguous
        };
        let known = match receiver {
            Receiver::Constructed(name) => self.of_type(name),
            Receiver::Super => {
                let class = self.pass.scopes[o.scope].class?;
                let Class { bases, scope, .. } = &self.pass.classes[class];
                if self.home == Some(*scope) {
                    return None;
                }
                bases.iter().any(|b| self.is_owner(b)).then_some(Confidence::Exact)
            }
            Receiver::Path(path) => self.of_path(o, path)?,
            Receiver::Unknown => None,
        };
        Some(known.unwrap_or(unknown))
    }

    /// True if a member of unknown type is likely the only one of its name in the tree. Types of
    /// other crates have members of any name, so a file must name the type in Rust.
    fn is_plausible(&self, receiver: &Receiver) -> bool {
        if self.pass.table.family != Family::Rust {
            return self.view.is_related();
        }
        let is_field = matches!(receiver, Receiver::Path(path) if path.contains('.'));
        !is_field && (self.view.is_same_file || !self.view.names.is_empty())
    }

    /// True for a field of Rust, which may have the name of a method.
    fn is_rust_field(&self, o: &Occurrence, receiver: &Receiver) -> bool {
        let of_type = |path: &str| {
            path.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase))
        };
        let is_path = matches!(receiver, Receiver::Path(path) if of_type(path));
        self.pass.table.family == Family::Rust
            && self.target.kind == "method"
            && o.kind != ReferenceKind::Call
            && !is_path
    }

    /// The confidence by the type of a path: `None` if it is another type, `Some(None)` if it is
    /// unknown.
    fn of_path(&self, o: &Occurrence, path: &str) -> Option<Option<Confidence>> {
        let (head, rest) = path.split_once('.').unwrap_or((path, ""));
        let class = self.pass.scopes[o.scope].class;
        if self.pass.table.this.contains(&head) {
            let Some(class) = class else { return Some(None) };
            if rest.is_empty() {
                return self.of_class(class);
            }
            let field = self.pass.classes[class].fields.get(rest);
            return Some(field.and_then(|name| self.of_type(name)));
        }
        if !rest.is_empty() {
            let (module, name) = path.rsplit_once('.').unwrap_or_default();
            let of_module = |(m, n): &(String, String)| m == module && n == name;
            let is_owner = self.view.modules.iter().any(of_module);
            return Some(is_owner.then_some(Confidence::Exact));
        }
        let Some((_, binding)) = self.lookup(o, head) else {
            return Some(self.is_owner(head).then_some(Confidence::Exact));
        };
        match binding.kind {
            BindKind::Import | BindKind::Class if self.is_owner(head) => {
                Some(Some(Confidence::Exact))
            }
            BindKind::Class => Some(self.of_type(head)),
            _ => Some(binding.type_name.as_deref().and_then(|name| self.of_type(name))),
        }
    }

    /// A member of the current object. `None` if its class has a member of that name itself.
    fn of_class(&self, class: usize) -> Option<Option<Confidence>> {
        let name = &self.pass.classes[class].name;
        if self.view.is_same_file {
            let is_home = self.home == Some(self.pass.classes[class].scope);
            if is_home || self.home.is_none() && self.is_owner(name) {
                return Some(Some(Confidence::Exact));
            }
        } else if self.is_owner(name) && self.pass.table.family == Family::Rust {
            return Some(Some(Confidence::Exact));
        }
        if self.defines(class) {
            return None;
        }
        Some(self.is_subclass(class, 0).then_some(Confidence::Exact))
    }

    fn defines(&self, class: usize) -> bool {
        let scope = self.pass.classes[class].scope;
        let names = self.pass.bindings.get(&scope);
        names.is_some_and(|names| names.contains_key(&self.target.name))
    }

    /// The confidence of a member of a value with a type of this name.
    fn of_type(&self, name: &str) -> Option<Confidence> {
        if self.is_owner(name) {
            return Some(Confidence::Likely);
        }
        let class = self.pass.classes.iter().position(|c| c.name == name)?;
        let inherits = !self.defines(class) && self.is_subclass(class, 0);
        inherits.then_some(Confidence::Likely)
    }

    fn is_subclass(&self, class: usize, depth: usize) -> bool {
        depth < MAX_BASES
            && self.pass.classes[class].bases.iter().any(|base| {
                let is_other = |c: &usize| self.pass.classes[*c].name == *base && *c != class;
                self.is_owner(base)
                    || (0..self.pass.classes.len())
                        .find(is_other)
                        .is_some_and(|c| self.is_subclass(c, depth + 1))
            })
    }

    /// True if a name of a type, as this file writes it, is the type that contains the target.
    fn is_owner(&self, name: &str) -> bool {
        let is_container = self.target.container.as_deref() == Some(name);
        if self.view.heirs.iter().any(|n| n == name) {
            return true;
        }
        if self.view.is_same_file {
            return is_container;
        }
        let is_visible = self.view.has_glob || self.view.is_same_package;
        let of_module = |(_, exported): &(String, String)| exported == name;
        self.view.names.iter().any(|n| n == name)
            || is_container && (is_visible || self.view.modules.iter().any(of_module))
    }
}
