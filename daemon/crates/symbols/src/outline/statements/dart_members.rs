//! Definitions of Dart, whose functions have no keyword.

use super::{Found, Reader, Scope, State};

/// Words before a bracket that are no name of a function.
const NO_NAMES: [&str; 14] = [
    "if", "for", "while", "switch", "catch", "return", "assert", "super", "this", "Function", "on",
    "await", "throw", "new",
];

impl Reader<'_, '_> {
    pub(super) fn dart_word(&mut self, at: usize, word: &str) {
        if !self.is_member_level() {
            return;
        }
        let next = |n: usize| {
            let token = self.tokens.get(at + n).filter(|t| t.is_word())?;
            Some(self.outline.word(token).to_owned())
        };
        let (kind, name) = match word {
            "class" | "enum" | "typedef" => (word, next(1)),
            "mixin" if next(1).as_deref() != Some("class") => ("class", next(1)),
            "extension" if next(1).as_deref() == Some("type") => ("class", next(2)),
            "extension" if next(1).as_deref() != Some("on") => ("class", next(1)),
            "get" if !self.is_punct(at + 2, b'(') => ("property", next(1)),
            _ => return,
        };
        let kind = match kind {
            "typedef" => "type",
            "enum" => "enum",
            "property" => "property",
            _ => "class",
        };
        if let Some(name) = name.filter(|name| name != "const") {
            self.define(at, &Found { kind, name: &name, container: None });
        }
    }

    /// A function whose parameters begin at the token `at`.
    pub(super) fn dart_function(&mut self, at: usize) {
        if !self.is_member_level() || self.scopes.last().is_some_and(|s| s.is_in_values) {
            return;
        }
        let Some(name_at) = self.before_type_parameters(at) else { return };
        let name_token = &self.tokens[name_at];
        let name = self.outline.word(name_token).to_owned();
        let before = name_at.checked_sub(1);
        let is_annotation = before.is_some_and(|b| self.is_punct(b, b'@'));
        let is_member = before.is_some_and(|b| self.is_punct(b, b'.'));
        if !name_token.is_word() || NO_NAMES.contains(&name.as_str()) || is_annotation {
            return;
        }
        let owner = self.scopes.last().map(|s| s.name.clone());
        let qualifier = before.and_then(|b| b.checked_sub(1)).map(|q| &self.tokens[q]);
        let is_of_owner = qualifier.is_some_and(|q| Some(self.outline.word(q)) == owner.as_deref());
        let kind = match &owner {
            None if is_member => return,
            None => "function",
            Some(_) if is_member && is_of_owner => "constructor",
            Some(_) if is_member => return,
            Some(owner) if *owner == name => "constructor",
            Some(_) => "method",
        };
        self.define(name_at, &Found { kind, name: &name, container: None });
    }

    /// The token before the brackets of parameters, and before type parameters there.
    fn before_type_parameters(&self, at: usize) -> Option<usize> {
        let mut at = at.checked_sub(1)?;
        if !self.is_punct(at, b'>') {
            return Some(at);
        }
        let mut angles = 0_i32;
        for _ in 0..super::MAX_HEADER {
            angles += i32::from(self.is_punct(at, b'>')) - i32::from(self.is_punct(at, b'<'));
            at = at.checked_sub(1)?;
            if angles == 0 {
                return Some(at);
            }
        }
        None
    }

    /// A field, or a variable of the file with its value, which the token `at` begins.
    pub(super) fn dart_value(&mut self, at: usize) {
        let name = self.previous(at).filter(|t| t.is_word());
        let name = name.map(|t| self.outline.word(t).to_owned());
        let is_constant = self.has_modifier(at, "const") || self.has_modifier(at, "final");
        match name.filter(|_| self.scopes.is_empty()) {
            Some(name) => {
                let kind = if is_constant { "constant" } else { "variable" };
                self.define(at - 1, &Found { kind, name: &name, container: None });
                if let Some(scope) = self.scopes.last_mut() {
                    scope.state = State::Expression;
                }
            }
            None => self.scopes.push(Scope {
                symbol: None,
                name: String::new(),
                kind: "variable",
                depth: self.brackets.len(),
                indent: self.indent,
                state: State::Expression,
                is_in_values: false,
            }),
        }
    }
}
