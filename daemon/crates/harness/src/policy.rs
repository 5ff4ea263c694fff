//! The policy: a pure function from rules and a call to a decision.
//!
//! Order: finalDeny → the run's own limits → session memory → overrides → deny → allow → default. A
//! rule is `tool`, `tool(path)` or, for commands, `run_shell(git status *)`; `*` stands for any
//! tool, and a path covers everything beneath it, by complete components.

mod granting;
mod mode;
mod narrower;
mod reading;
mod text;

use std::{collections::BTreeMap, path::Path, time::Duration};

use cairn_workspace::{PathPattern, Root};

use crate::{
    DecidedBy, DomainUse, Fallback, Grants, RuleError, RuleList, RunLimit, ToolEffect,
    command::{CommandLine, Kind, Part, Pattern},
    egress::{Domain, DomainPattern},
};

/// Verdict of the rules about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Request an approval of the call.
    Ask,
    Deny,
}

/// A verdict and the rule it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The source of the verdict.
    pub by: DecidedBy,
}

/// A rule: a tool and optionally a path or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    tool: String,
    scope: Scope,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Any,
    Path(PathPattern),
    Command(Pattern),
    Domain(DomainPattern),
}

/// The name in rules about domains: `network(crates.io)`.
pub(crate) const NETWORK: &str = "network";

/// The tool whose rules about paths apply to reading by any tool.
const READ: &str = "read_file";

/// The tool whose rules apply to commands, and its other names.
const SHELL: (&str, &[&str]) = ("run_shell", &["bash", "shell"]);

/// Answers that apply to a call: those for its session, and those for good.
pub type Answers<'a> = (&'a [(Rule, Verdict)], &'a [Rule]);

/// A rule with examples that are checked when it is read.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckedRule {
    pub rule: String,
    /// Examples that it must match: command lines for a rule about commands, else paths.
    pub matches: Vec<String>,
    /// Examples that it must not match.
    pub rejects: Vec<String>,
}

impl CheckedRule {
    /// Parses the rule and checks every example. `verdict` is the purpose of the rule: one that
    /// allows must match a complete command line, one that denies any part of it.
    ///
    /// # Errors
    /// The error of the rule, or the example with another result.
    pub fn read(&self, verdict: Verdict) -> Result<Rule, RuleError> {
        let rule: Rule = self.rule.parse()?;
        let tries = |example: &String| {
            let (line, grants) = (CommandLine::parse(example), Grants::default());
            let about_commands = matches!(rule.scope, Scope::Command(_));
            let paths = if about_commands { vec![] } else { vec![example.clone()] };
            let tool = if rule.tool == "*" { SHELL.0 } else { &rule.tool };
            let command = about_commands.then_some(&line);
            let subject = Subject { paths: &paths, command, ..Subject::new(tool, &grants) };
            let part =
                |p| rule.matches_part(&subject, &line, p, verdict == Verdict::Allow, &|_| false);
            match (about_commands, verdict) {
                (false, _) => rule.matches(&subject, verdict == Verdict::Allow),
                (true, Verdict::Allow) => line.parts.iter().all(part),
                (true, _) => line.parts.iter().any(part),
            }
        };
        if let Some(example) = self.matches.iter().find(|e| !tries(e)) {
            return Err(RuleError::Misses { rule: rule.to_string(), example: example.clone() });
        }
        if let Some(example) = self.rejects.iter().find(|e| tries(e)) {
            return Err(RuleError::Overreaches {
                rule: rule.to_string(),
                example: example.clone(),
            });
        }
        Ok(rule)
    }
}

/// All rules of a daemon.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Denials that nothing overrides.
    pub final_deny: Vec<Rule>,
    /// Rules with precedence over deny and allow.
    pub overrides: Vec<(Rule, Verdict)>,
    pub deny: Vec<Rule>,
    pub allow: Vec<Rule>,
    /// Calls that need an approval, whatever the default is. A rule that names a tool alone gives
    /// way to a mode in which the tool needs none.
    pub confirm: Vec<Rule>,
    /// Verdict for calls that no rule matches and that are not read-only.
    pub default: Verdict,
    /// The only paths of a root that tools may write to; all of it when `None`.
    pub write_paths: Option<Vec<PathPattern>>,
    /// Bounds on calls by tool, which replace the tool's own.
    pub limits: BTreeMap<String, CallLimits>,
    /// Reason why the rules are unknown; every call is then denied, since a configuration that
    /// cannot be read may contain denials.
    pub unreadable: Option<String>,
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
            write_paths: None,
            limits: BTreeMap::new(),
            unreadable: None,
        }
    }
}

/// Bounds on the calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Longest duration of a call; the tool's own when `None`.
    pub timeout: Option<Duration>,
    /// Most characters of the texts in its output, in total; the tool's own when `None`.
    pub max_output_chars: Option<usize>,
}

/// Subject of a decision.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    pub tool: &'a str,
    /// Paths in its arguments, relative to the root if they are inside it.
    pub paths: &'a [String],
    /// True if the paths lie in the session's own root.
    pub inside: bool,
    /// Absolute path of that root, for rules about absolute paths.
    pub top: Option<&'a Path>,
    /// Paths that rules name and their targets ([`Rules::links`]): a denial of one name applies to
    /// the other.
    pub links: &'a [(PathPattern, PathPattern)],
    /// The command line that the call would run.
    pub command: Option<&'a CommandLine>,
    /// True if the tool only reads.
    pub read_only: bool,
    /// True if the tool uses the network.
    pub network: bool,
    /// The tool's use of domains, where the run has no other network.
    pub domains: DomainUse,
    /// True if the tool limits itself to the run's paths when more is requested.
    pub narrows: bool,
    /// Changes that the tool makes.
    pub effect: ToolEffect,
    /// True if each effect of the call is decided by itself.
    pub delegates: bool,
    /// True if the call runs in a complete sandbox without the complete network.
    pub confined: bool,
    /// Limits of its run.
    pub grants: &'a Grants,
    /// Earlier decisions for this session.
    pub memory: &'a [(Rule, Verdict)],
    /// Rules granted for good by answers to approvals.
    pub granted: &'a [Rule],
}

impl<'a> Subject<'a> {
    /// Creates a call of `tool` without paths or command.
    pub fn new(tool: &'a str, grants: &'a Grants) -> Self {
        Self {
            tool,
            paths: &[],
            inside: false,
            top: None,
            links: &[],
            command: None,
            read_only: false,
            network: false,
            domains: DomainUse::None,
            narrows: false,
            effect: ToolEffect::Any,
            delegates: false,
            confined: false,
            grants,
            memory: &[],
            granted: &[],
        }
    }

    /// Returns true if a rule about `pattern` matches `path`. A denial also matches the target of
    /// its own path.
    fn covers(&self, pattern: &PathPattern, path: &str, denies: bool) -> bool {
        let hit = |pattern: &PathPattern| match self.top {
            Some(top) if !path.starts_with('/') => pattern.covers_in(top, path),
            _ => pattern.is_absolute() == path.starts_with('/') && pattern.covers(path),
        };
        let leads = |(named, real): &(PathPattern, PathPattern)| named == pattern && hit(real);
        hit(pattern) || (denies && self.links.iter().any(leads))
    }
}

/// Returns true if `path` is `prefix` or lies beneath it, by complete components.
pub fn beneath(path: &str, prefix: &str) -> bool {
    let (path, prefix): (Vec<&str>, Vec<&str>) = (parts(path).collect(), parts(prefix).collect());
    !path.contains(&"..") && path.starts_with(&prefix)
}

/// Returns a path without empty components and dots.
pub fn plain(path: &str) -> String {
    parts(path).collect::<Vec<_>>().join("/")
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty() && *c != ".")
}

/// Returns a path of a command relative to the root; one that leads out of it begins with `..` or
/// `/`.
fn placed(folder: &str, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut out: Vec<&str> = Vec::new();
    for part in parts(&joined) {
        if part == ".." && out.last().is_some_and(|p| *p != "..") {
            out.pop();
        } else {
            out.push(part);
        }
    }
    let lead = if path.starts_with('/') { "/" } else { "" };
    format!("{lead}{}", out.join("/"))
}

impl Rule {
    /// Returns the rule about a tool as such, whatever the call.
    pub fn of_tool(tool: &str) -> Self {
        Self { tool: tool.to_owned(), scope: Scope::Any }
    }

    /// Returns the domains that it names, all of them when `None`, if it is about the network.
    pub(crate) fn domain(&self) -> Option<Option<&DomainPattern>> {
        match &self.scope {
            Scope::Any => (self.tool == NETWORK).then_some(None),
            Scope::Domain(pattern) => Some(Some(pattern)),
            _ => None,
        }
    }

    /// Returns true if it is about `domain`; a host without one is covered by rules about all of
    /// the network. Only a denial may name all tools, and only a rule that names this machine opens
    /// it.
    pub(crate) fn covers_domain(&self, domain: Option<&Domain>, verdict: Verdict) -> bool {
        match self.domain() {
            Some(None) => {
                verdict != Verdict::Allow || domain.is_some_and(|domain| !domain.is_loopback())
            }
            Some(Some(pattern)) => domain.is_some_and(|domain| pattern.covers(domain)),
            None => verdict != Verdict::Allow && self.tool == "*" && self.scope == Scope::Any,
        }
    }

    /// Returns its tool; `*` for any.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns true if its `*` accepts no argument: the program's arguments are programs, or may
    /// name one.
    pub fn takes_no_argument(&self) -> bool {
        matches!(&self.scope, Scope::Command(pattern) if pattern.takes_none())
    }

    /// Returns the subcommands that its `*` covers, if it covers no others.
    pub fn covers_only(&self) -> Option<Vec<&'static str>> {
        match &self.scope {
            Scope::Command(pattern) => pattern.covers_only(),
            _ => None,
        }
    }

    fn uncovered_argument(&self, part: &Part) -> Option<String> {
        match &self.scope {
            Scope::Command(pattern) => pattern.uncovered_argument(part),
            _ => None,
        }
    }

    /// Returns true if it is about its tool as such, whatever the call.
    pub(crate) fn is_of_tool(&self) -> bool {
        self.scope == Scope::Any
    }

    fn names(&self, tool: &str) -> bool {
        self.tool == "*" || self.tool == tool || (self.tool == SHELL.0 && SHELL.1.contains(&tool))
    }

    /// Returns true if the rule matches. A denial matches when any path does; a permission only
    /// when all do.
    fn matches(&self, subject: &Subject<'_>, all: bool) -> bool {
        if !self.names(subject.tool) {
            return false;
        }
        match (&self.scope, subject.command) {
            (Scope::Any, _) => true,
            (Scope::Path(pattern), command) => {
                let mut hits = subject.paths.iter().map(|p| subject.covers(pattern, p, !all));
                if all {
                    return command.is_none() && !subject.paths.is_empty() && hits.all(|h| h);
                }
                let covers = |path: &str| subject.covers(pattern, path, true);
                let named = |line: &CommandLine| {
                    line.paths().any(|p| covers(p) || covers(&placed(&line.folder, p)))
                };
                hits.any(|h| h) || command.is_some_and(named)
            }
            (Scope::Command(_), None) | (Scope::Domain(_), _) => false,
            (Scope::Command(pattern), Some(line)) => {
                line.parts.iter().any(|part| pattern.denies(line, part))
            }
        }
    }

    /// Matches one part of a command line. `writes` says if a file may be written.
    fn matches_part(
        &self,
        subject: &Subject<'_>,
        line: &CommandLine,
        part: &Part,
        allows: bool,
        writes: &dyn Fn(&str) -> bool,
    ) -> bool {
        match &self.scope {
            _ if !self.names(subject.tool) => false,
            Scope::Any => true,
            Scope::Domain(_) => false,
            Scope::Path(_) => !allows && self.matches(subject, false),
            Scope::Command(pattern) if !allows => pattern.denies(line, part),
            Scope::Command(Pattern::Text(_)) => self.matches(subject, false),
            Scope::Command(_) if part.kind == Kind::Wrapper => line.is_parsed(),
            Scope::Command(pattern) => {
                let bare = part.words.is_empty() && part.kind == Kind::Plain && line.is_parsed();
                (bare || pattern.allows(line, part)) && line.extras_allowed(part, writes)
            }
        }
    }
}

impl Rules {
    /// Decides about `subject`. Each part of a command line is decided by itself; the line may run
    /// when all parts may.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision {
        let never = || {
            let rule = self.final_deny.iter().find(|r| r.matches(subject, false))?;
            let part = subject.command.and_then(|line| {
                let hit = |p: &&Part| rule.matches_part(subject, line, p, false, &|_| false);
                line.parts.iter().find(hit).map(|p| p.display().to_string())
            });
            Some(DecidedBy::Rule { list: RuleList::FinalDeny, rule: rule.clone(), part })
        };
        let unreadable = self.unreadable.clone().map(DecidedBy::UnreadableRules);
        let before = unreadable
            .or_else(never)
            .or_else(|| mode::changes_in_plan(subject))
            .or_else(|| limits(subject).map(DecidedBy::RunLimit))
            .or_else(|| self.unwritable(subject));
        if let Some(by) = before {
            return Decision { verdict: Verdict::Deny, by };
        }
        if let Some(line) = subject.command {
            return self.decide_command(subject, line);
        }
        let first = |rule: &Rule, all| rule.matches(subject, all);
        self.chain(subject, &first).unwrap_or_else(|| self.fall_back(subject))
    }

    /// Returns a denial of a write outside the write paths of tools.
    fn unwritable(&self, subject: &Subject<'_>) -> Option<DecidedBy> {
        let patterns = self
            .write_paths
            .as_ref()
            .filter(|_| !subject.read_only && subject.command.is_none())?;
        let covered = |path: &String| {
            let inside = |pattern: &PathPattern| match subject.top {
                Some(top) => pattern.covers_in(top, path),
                None => pattern.covers(path),
            };
            patterns.iter().any(inside)
        };
        let outside = subject.paths.iter().find(|path| !covered(path))?;
        Some(DecidedBy::UnwritablePath(outside.clone()))
    }

    /// Decides about a command line alone, for any caller.
    pub fn decide_line(&self, line: &CommandLine) -> Decision {
        let grants = Grants::default();
        self.decide(&Subject { command: Some(line), ..Subject::new(SHELL.0, &grants) })
    }

    /// Returns true if every call of a tool is denied: the tool need not be offered.
    pub fn rule_out(&self, tool: &str) -> bool {
        let closes = |rule: &Rule| rule.names(tool) && rule.scope == Scope::Any;
        self.unreadable.is_some() || self.final_deny.iter().any(closes)
    }

    /// Returns the paths of `root` that rules name and whose target is elsewhere in it, with the
    /// targets.
    pub fn links(&self, root: &Root) -> Vec<(PathPattern, PathPattern)> {
        let overrides = self.overrides.iter().map(|(rule, _)| rule);
        let rules = self.final_deny.iter().chain(overrides).chain(&self.deny).chain(&self.confirm);
        let link = |rule: &Rule| match &rule.scope {
            Scope::Path(pattern) => Some((pattern.clone(), pattern.leads_to(root)?)),
            _ => None,
        };
        rules.filter_map(link).collect()
    }

    /// Applies session memory → overrides → deny → allow, with `matches(rule, true if it allows)`.
    fn chain(
        &self,
        subject: &Subject<'_>,
        matches: &dyn Fn(&Rule, bool) -> bool,
    ) -> Option<Decision> {
        let decision = |list, rule: &Rule, verdict| Decision {
            verdict,
            by: DecidedBy::Rule { list, rule: rule.clone(), part: None },
        };
        let chosen = |list, rules: &[(Rule, Verdict)]| {
            let (rule, verdict) = rules.iter().find(|(r, v)| matches(r, *v == Verdict::Allow))?;
            Some(decision(list, rule, *verdict))
        };
        let find_rule = |list, rules: &[Rule], verdict| {
            let rule = rules.iter().find(|r| matches(r, verdict == Verdict::Allow))?;
            Some(decision(list, rule, verdict))
        };
        chosen(RuleList::Session, subject.memory)
            .or_else(|| chosen(RuleList::Overrides, &self.overrides))
            .or_else(|| find_rule(RuleList::Deny, &self.deny, Verdict::Deny))
            .or_else(|| find_rule(RuleList::Allow, &self.allow, Verdict::Allow))
            .or_else(|| find_rule(RuleList::Granted, subject.granted, Verdict::Allow))
            .or_else(|| {
                let by_mode = mode::mode_allows(subject);
                let applies = |rule: &&Rule| !(by_mode && rule.is_of_tool());
                let mut confirm = self.confirm.iter().filter(applies);
                let rule = confirm.find(|rule| matches(rule, false))?;
                Some(decision(RuleList::Confirm, rule, Verdict::Ask))
            })
    }

    fn decide_command(&self, subject: &Subject<'_>, line: &CommandLine) -> Decision {
        let writes = |path: &str| {
            let paths = [placed(&line.folder, path)];
            let inside = !paths[0].starts_with(['/']) && !paths[0].starts_with("..");
            let file =
                Subject { tool: "write_file", paths: &paths, command: None, ..subject.clone() };
            inside && self.decide(&file).verdict == Verdict::Allow
        };
        let mut allowed = Vec::new();
        let mut needs_approval = None;
        for part in &line.parts {
            let matches =
                |rule: &Rule, allows| rule.matches_part(subject, line, part, allows, &writes);
            let decision = self
                .chain(subject, &matches)
                .unwrap_or_else(|| self.part_default(subject, line, part));
            let of_part = (decision.by, part.display().to_string());
            match decision.verdict {
                Verdict::Deny => {
                    return Decision {
                        verdict: Verdict::Deny,
                        by: DecidedBy::Parts(vec![of_part]),
                    };
                }
                Verdict::Ask => needs_approval = needs_approval.or(Some(of_part)),
                Verdict::Allow if part.kind != Kind::Wrapper => allowed.push(of_part),
                Verdict::Allow => {}
            }
        }
        match needs_approval {
            Some(part) => Decision { verdict: Verdict::Ask, by: DecidedBy::Parts(vec![part]) },
            None if line.parts.is_empty() => self.fall_back(subject),
            None => Decision { verdict: Verdict::Allow, by: DecidedBy::Parts(allowed) },
        }
    }

    /// Decides about a part that no rule matches. Text that cannot be parsed might be anything that
    /// is denied.
    fn part_default(&self, subject: &Subject<'_>, line: &CommandLine, part: &Part) -> Decision {
        let decision = self.fall_back(subject);
        let hidden =
            part.kind == Kind::Opaque || part.words.first().is_some_and(|w| w.value_hidden());
        let about_commands = |r: &Rule| matches!(r.scope, Scope::Command(_));
        let denials = self.final_deny.iter().chain(&self.deny).any(about_commands);
        if decision.verdict == Verdict::Allow && denials && (hidden || !line.is_parsed()) {
            let why = line.unsure.as_deref().unwrap_or("the command is not known in advance");
            let by = DecidedBy::Fallback(Fallback::Unclear(why.to_owned()));
            return Decision { verdict: Verdict::Ask, by };
        }
        let stops = |rule: &Rule| {
            let argument = rule.uncovered_argument(part)?;
            Some(match rule.takes_no_argument() && rule.covers_only() == Some(vec![]) {
                true => Fallback::ActsWithArguments(rule.clone()),
                false => Fallback::ActsBeyondRule(rule.clone(), argument),
            })
        };
        let rules = self.allow.iter().chain(self.overrides.iter().map(|(rule, _)| rule));
        // By default only a tool that acts needs an approval.
        let fallback = match (&line.unsure, decision.verdict) {
            (Some(why), Verdict::Ask) => Some(Fallback::ActsUnsure(why.clone())),
            (None, Verdict::Ask) => rules.chain(subject.granted.iter()).find_map(stops),
            _ => None,
        };
        Decision { by: fallback.map_or(decision.by, DecidedBy::Fallback), ..decision }
    }

    fn fall_back(&self, subject: &Subject<'_>) -> Decision {
        let (verdict, fallback) = if subject.read_only {
            (Verdict::Allow, Fallback::ReadOnly)
        } else if subject.network && subject.grants.network {
            (Verdict::Allow, Fallback::NetworkGranted)
        } else if subject.network
            && subject.grants.domains
            && subject.domains == DomainUse::EveryRequest
        {
            (Verdict::Allow, Fallback::EachDomain)
        } else if self.default == Verdict::Ask && mode::mode_allows(subject) {
            let by = DecidedBy::Mode(subject.grants.mode);
            return Decision { verdict: Verdict::Allow, by };
        } else {
            (self.default, Fallback::Acts)
        };
        Decision { verdict, by: DecidedBy::Fallback(fallback) }
    }
}

fn limits(subject: &Subject<'_>) -> Option<RunLimit> {
    let grants = subject.grants;
    if grants.ops.as_ref().is_some_and(|ops| !ops.iter().any(|op| op == subject.tool)) {
        return Some(RunLimit::Ops);
    }
    let within = |p: &str, base: &str| beneath(p, base) || (subject.narrows && beneath(base, p));
    let outside =
        |paths: &Vec<String>| subject.paths.iter().any(|p| !paths.iter().any(|b| within(p, b)));
    if grants.paths.as_ref().is_some_and(outside) {
        return Some(RunLimit::Paths);
    }
    let by_domain = grants.domains && subject.domains != DomainUse::None;
    if subject.network && !grants.network && !by_domain {
        return Some(RunLimit::Network);
    }
    None
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
