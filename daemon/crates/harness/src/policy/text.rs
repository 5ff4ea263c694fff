//! Rules as text.

use std::{fmt, str::FromStr};

use cairn_workspace::PathPattern;

use super::{NETWORK, Rule, SHELL, Scope};
use crate::{RuleError, command::Pattern, egress::DomainPattern};

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Path(path) => write!(f, "{}({path})", self.tool),
            Scope::Command(pattern) => write!(f, "{}({pattern})", self.tool),
            Scope::Domain(pattern) => write!(f, "{}({pattern})", self.tool),
            Scope::Any => f.write_str(&self.tool),
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let bad = || RuleError::Form(text.to_owned());
        let (tool, inner) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(bad)?)),
        };
        let tool = tool.trim();
        if tool.is_empty() || inner == Some("") {
            return Err(bad());
        }
        let tool = if SHELL.1.contains(&tool) { SHELL.0 } else { tool };
        let scope = match inner {
            None => Scope::Any,
            Some(command) if tool == SHELL.0 => {
                let of_rule = |source| RuleError::Command { rule: text.to_owned(), source };
                Scope::Command(Pattern::read(command).map_err(of_rule)?)
            }
            Some(domain) if tool == NETWORK => {
                let pattern = DomainPattern::parse(domain);
                Scope::Domain(pattern.ok_or_else(|| RuleError::Domain(text.to_owned()))?)
            }
            Some(path) => {
                let of_rule = |source| RuleError::Path { rule: text.to_owned(), source };
                Scope::Path(PathPattern::read(path).map_err(of_rule)?)
            }
        };
        Ok(Self { tool: tool.into(), scope })
    }
}
