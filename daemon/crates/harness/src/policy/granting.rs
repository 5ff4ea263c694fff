//! The rules that an answer to a request grants: they allow the same call again.

use cairn_workspace::{ResolvedPath, Root};

use super::{Rule, SHELL, Scope};
use crate::{
    CallPaths,
    command::{CommandLine, Pattern},
};

/// Characters that have another meaning in the path of a rule.
const OF_PATTERNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

impl Rule {
    /// Returns the rules that together allow this same command line again, for a user's decision.
    /// Each is the rule that its text is read as, because rules are stored as text.
    pub fn for_command(line: &CommandLine) -> Vec<Self> {
        let rule = |pattern| Self { tool: SHELL.0.into(), scope: Scope::Command(pattern) };
        let is_stable = |rule: &Self| rule.to_string().parse().as_ref() == Ok(rule);
        let rules: Vec<Self> = Pattern::of(line).into_iter().map(rule).collect();
        if rules.iter().all(is_stable) {
            return rules;
        }
        let exact = rule(Pattern::Text(line.text.trim().into()));
        if is_stable(&exact) { vec![exact] } else { vec![] }
    }

    /// Returns the rules that together allow a call of a reading tool with the same paths again, for
    /// a user's decision; none if a path is unknown or would be read as a pattern. Paths in other
    /// roots than `own` are absolute, so that they name no file of another root.
    pub(crate) fn for_paths(tool: &str, paths: &CallPaths, own: Option<&Root>) -> Vec<Self> {
        let count = paths.texts().count();
        if count == 0 {
            return vec![Self::of_tool(tool)];
        }
        if paths.iter().count() != count {
            return vec![];
        }
        let literal = |path: String| {
            let is_plain = !path.is_empty() && !path.contains(OF_PATTERNS);
            is_plain.then(|| format!("{tool}({path})").parse().ok()).flatten()
        };
        let spellings = |path: &ResolvedPath| {
            let is_own = own.is_some_and(|own| own.id == path.root().id);
            let location = |text: &str| match is_own {
                true => text.to_owned(),
                false => path.root().path.join(text).to_string_lossy().into_owned(),
            };
            path.spellings().map(location).collect::<Vec<_>>()
        };
        let rules = paths.iter().flat_map(spellings).map(literal);
        rules.collect::<Option<Vec<Self>>>().unwrap_or_default()
    }
}
