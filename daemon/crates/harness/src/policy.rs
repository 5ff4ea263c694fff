//! The policy: a pure function from rules and a call to a decision.
//!
//! Order: finalDeny → the run's own limits → session memory → overrides → deny → allow → default. A rule is
//! `tool` or `tool(path)`; `*` stands for any tool, and a path covers what lies beneath it, by whole components.

use std::{fmt, str::FromStr};

use crate::Grants;

/// What may be done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Do it.
    Allow,
    /// Ask somebody.
    Ask,
    /// Do not.
    Deny,
}

/// A verdict and the rule it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// Which rule said so.
    pub rule: String,
}

/// A rule: a tool and, if it has one, the path it speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    path: Option<String>,
}

/// All rules of a daemon.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Never, whatever else says so.
    pub final_deny: Vec<Rule>,
    /// Rules that come before deny and allow.
    pub overrides: Vec<(Rule, Verdict)>,
    /// Denied.
    pub deny: Vec<Rule>,
    /// Allowed.
    pub allow: Vec<Rule>,
    /// Asked about, whatever the default is.
    pub confirm: Vec<Rule>,
    /// For calls that no rule speaks of and that are not read-only.
    pub default: Verdict,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            final_deny: vec![],
            overrides: vec![],
            deny: vec![],
            allow: vec![],
            confirm: vec![],
            default: Verdict::Ask,
        }
    }
}

/// What is decided about.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Paths its arguments name, relative to the root where they lie in it.
    pub paths: &'a [String],
    /// Whether it only reads.
    pub read_only: bool,
    /// Whether it uses the network.
    pub network: bool,
    /// Whether it keeps to the run's paths by itself where it is asked for more.
    pub narrows: bool,
    /// What its run may do.
    pub grants: &'a Grants,
    /// What was decided for this session before.
    pub memory: &'a [(Rule, Verdict)],
    /// What was allowed for good by answers to approvals.
    pub granted: &'a [Rule],
}

/// Whether `path` is `prefix` or lies beneath it, by whole components.
pub fn beneath(path: &str, prefix: &str) -> bool {
    let (path, prefix): (Vec<&str>, Vec<&str>) = (parts(path).collect(), parts(prefix).collect());
    !path.contains(&"..") && path.starts_with(&prefix)
}

/// A path without empty components and dots.
pub fn plain(path: &str) -> String {
    parts(path).collect::<Vec<_>>().join("/")
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty() && *c != ".")
}

impl Rule {
    /// A rule that denies must match when any path does; one that allows, only when all do.
    fn matches(&self, subject: &Subject<'_>, all: bool) -> bool {
        if self.tool != "*" && self.tool != subject.tool {
            return false;
        }
        let Some(prefix) = &self.path else { return true };
        let mut hits = subject.paths.iter().map(|p| beneath(p, prefix));
        if all { !subject.paths.is_empty() && hits.all(|h| h) } else { hits.any(|h| h) }
    }
}

impl Rules {
    /// What these rules say of `subject`.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision {
        let found = |name: &str, rules: &[Rule], verdict, all| {
            let rule = rules.iter().find(|r| r.matches(subject, all))?;
            Some(Decision { verdict, rule: format!("{name}: {rule}") })
        };
        let chosen = |name: &str, rules: &[(Rule, Verdict)]| {
            let (rule, verdict) = rules.iter().find(|(r, v)| r.matches(subject, *v == Verdict::Allow))?;
            Some(Decision { verdict: *verdict, rule: format!("{name}: {rule}") })
        };
        found("finalDeny", &self.final_deny, Verdict::Deny, false)
            .or_else(|| limits(subject))
            .or_else(|| chosen("session", subject.memory))
            .or_else(|| chosen("overrides", &self.overrides))
            .or_else(|| found("deny", &self.deny, Verdict::Deny, false))
            .or_else(|| found("allow", &self.allow, Verdict::Allow, true))
            .or_else(|| found("granted", subject.granted, Verdict::Allow, true))
            .or_else(|| found("confirm", &self.confirm, Verdict::Ask, false))
            .unwrap_or_else(|| self.fall_back(subject))
    }

    fn fall_back(&self, subject: &Subject<'_>) -> Decision {
        if subject.read_only {
            return Decision {
                verdict: Verdict::Allow,
                rule: "default: read-only inside declared roots".into(),
            };
        }
        if subject.network && subject.grants.network {
            return Decision { verdict: Verdict::Allow, rule: "default: network granted to this run".into() };
        }
        Decision { verdict: self.default, rule: "default: not read-only".into() }
    }
}

fn limits(subject: &Subject<'_>) -> Option<Decision> {
    let deny = |rule: &str| Some(Decision { verdict: Verdict::Deny, rule: rule.into() });
    let grants = subject.grants;
    if grants.ops.as_ref().is_some_and(|ops| !ops.iter().any(|op| op == subject.tool)) {
        return deny("policy.ops of the run");
    }
    let within = |p: &str, base: &str| beneath(p, base) || (subject.narrows && beneath(base, p));
    let outside = |paths: &Vec<String>| subject.paths.iter().any(|p| !paths.iter().any(|b| within(p, b)));
    if grants.paths.as_ref().is_some_and(outside) {
        return deny("policy.paths of the run");
    }
    if subject.network && !grants.network {
        return deny("policy.network of the run");
    }
    None
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}({path})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl FromStr for Rule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a rule: write tool or tool(path)");
        let (tool, path) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(bad)?.to_owned())),
        };
        let tool = tool.trim();
        if tool.is_empty() || path.as_deref() == Some("") {
            return Err(bad());
        }
        Ok(Self { tool: tool.into(), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(list: &[&str]) -> Vec<Rule> {
        list.iter().map(|r| r.parse().unwrap()).collect()
    }

    fn check(rules: &Rules, tool: &str, path: &str, grants: &Grants, read_only: bool, want: (Verdict, &str)) {
        let paths: Vec<String> = if path.is_empty() { vec![] } else { vec![path.into()] };
        let (network, narrows) = (tool == "git_clone", tool == "search_hybrid");
        let subject =
            Subject { tool, paths: &paths, read_only, network, narrows, grants, memory: &[], granted: &[] };
        let got = rules.decide(&subject);
        assert_eq!((got.verdict, got.rule.as_str()), want, "{tool} {path}");
    }

    #[test]
    fn the_order_holds() {
        let set = Rules {
            final_deny: rules(&["*(secrets)"]),
            overrides: vec![("content_get_span(docs)".parse().unwrap(), Verdict::Allow)],
            deny: rules(&["content_get_span"]),
            allow: rules(&["write_file(src)"]),
            confirm: vec![],
            default: Verdict::Ask,
        };
        let (free, net) = (Grants::default(), Grants { network: true, ..Grants::default() });
        let tight = Grants {
            ops: Some(vec!["fs_list_dir".into(), "search_hybrid".into()]),
            paths: Some(vec!["src/inner".into()]),
            network: false,
        };
        use Verdict::{Allow, Ask, Deny};
        for (tool, path, grants, read_only, want) in [
            ("content_get_span", "secrets/key", &free, true, (Deny, "finalDeny: *(secrets)")),
            ("content_get_span", "secretsx/key", &free, true, (Deny, "deny: content_get_span")),
            ("content_get_span", "docs/a.md", &free, true, (Allow, "overrides: content_get_span(docs)")),
            ("content_get_span", "docs/../secrets", &free, true, (Deny, "deny: content_get_span")),
            ("fs_list_dir", ".", &free, true, (Allow, "default: read-only inside declared roots")),
            ("write_file", "src/a", &free, false, (Allow, "allow: write_file(src)")),
            ("write_file", "srcx/a", &free, false, (Ask, "default: not read-only")),
            ("git_clone", "", &free, false, (Deny, "policy.network of the run")),
            ("git_clone", "", &net, false, (Allow, "default: network granted to this run")),
            ("search_grep", "src", &tight, true, (Deny, "policy.ops of the run")),
            ("fs_list_dir", "lib", &tight, true, (Deny, "policy.paths of the run")),
            ("fs_list_dir", "src", &tight, true, (Deny, "policy.paths of the run")),
            ("fs_list_dir", "src/inner/x", &tight, true, (Allow, "default: read-only inside declared roots")),
            ("search_hybrid", "src", &tight, true, (Allow, "default: read-only inside declared roots")),
            ("search_hybrid", ".", &tight, true, (Allow, "default: read-only inside declared roots")),
            ("search_hybrid", "lib", &tight, true, (Deny, "policy.paths of the run")),
        ] {
            check(&set, tool, path, grants, read_only, want);
        }
    }

    #[test]
    fn rules_are_read_or_refused() {
        for good in ["*", "git_clone", "fs_list_dir(a/b)"] {
            assert_eq!(good.parse::<Rule>().unwrap().to_string(), good);
        }
        for bad in ["", "(x)", "a(", "a()"] {
            assert!(bad.parse::<Rule>().is_err(), "{bad}");
        }
    }
}
