//! Decisions of the rules about a call, and about the calls that it delegates.

use std::sync::Arc;

use cairn_protocol::turn::ExecutionMode;
use cairn_workspace::{PathPattern, ResolvedPath, Root, View};

use super::Harness;
use crate::{
    Call, CallLimits, DecidedBy, Decision, Fallback, Grants, Rule, Rules, RunLimit, Subject,
    ToolSpec, Verdict, WhenMissing,
    command::CommandLine,
    paths::{CallPath, Resolver, named},
    registry::Entry,
    sandbox::Tier,
};

/// The rules as they apply to one call.
#[derive(Clone)]
pub(crate) struct Judge {
    rules: Arc<Rules>,
    granted: Arc<Vec<Rule>>,
    memory: Arc<Vec<(Rule, Verdict)>>,
    grants: Grants,
    own: Option<Root>,
    /// True if processes of the call run in a complete sandbox without the complete network.
    confined: bool,
}

/// One spelling of a path, with the limits of the run that apply to it.
#[derive(Clone, Copy)]
struct Spelling<'a> {
    text: &'a str,
    root: Option<&'a Root>,
    links: &'a [(PathPattern, PathPattern)],
    grants: &'a Grants,
}

/// A decision with the paths that it covers.
pub(super) struct Judged {
    pub decision: Decision,
    pub paths: Vec<CallPath>,
}

impl Harness {
    /// Returns the rules for `call`, whose run paths are resolved.
    pub(crate) fn judge(&self, call: &Call, memory: Arc<Vec<(Rule, Verdict)>>) -> Judge {
        Judge {
            rules: self.rules(call.root.as_ref()),
            granted: Arc::new(self.approvals.granted_in(call.root.as_ref())),
            memory,
            grants: call.grants.clone(),
            own: call.root.clone(),
            confined: self.confines(call),
        }
    }

    /// Returns true if no process of the call can leave the sandbox. Only the mode that depends on
    /// it tries the sandbox.
    fn confines(&self, call: &Call) -> bool {
        let grants = &call.grants;
        grants.mode == ExecutionMode::Auto
            && !grants.unconfined
            && !grants.network
            && self.sandbox.when_missing_is() != WhenMissing::Off
            && self.sandbox.probe().tier == Tier::Full
    }

    pub(super) fn decide(&self, entry: &Entry, call: &Call, judge: &Judge) -> Judged {
        let resolver = Resolver { roots: self.roots.as_ref(), own: call.root.as_ref() };
        let parts = entry.tool.delegated_calls(&call.arguments);
        let mut paths = named(&entry.spec, &call.arguments, &resolver);
        if parts.is_empty() {
            let decision = judge.decide(&entry.spec, call, &paths);
            return Judged { decision, paths };
        }
        let mut decisions = Vec::new();
        // The run's list of tools applies to the called name alone.
        let inner = Judge { grants: Grants { ops: None, ..call.grants.clone() }, ..judge.clone() };
        for (name, arguments) in parts {
            let part = Call { name: name.to_owned(), arguments, ..call.clone() };
            let Ok(entry) = self.registry.find(name) else {
                let by = DecidedBy::UnknownTool(name.to_owned());
                return Judged { decision: Decision { verdict: Verdict::Deny, by }, paths };
            };
            let named = named(&entry.spec, &part.arguments, &resolver);
            decisions.push(inner.decide(&entry.spec, &part, &named));
            paths.extend(named);
        }
        // The reach of its paths is decided for each part.
        let own = ToolSpec { narrows: true, ..entry.spec.clone() };
        Judged { decision: strictest(judge.decide(&own, call, &paths), decisions), paths }
    }
}

impl Judge {
    /// Returns the paths of `root` that rules hide from a tool, with the earlier answers of this
    /// session; `None` when they hide the same paths as from all tools.
    pub(crate) fn view_for(&self, tool: &str, root: &Root) -> Option<View> {
        let answers = (self.memory.as_slice(), self.granted.as_slice());
        let differs = self.rules.differ_for(tool, answers);
        differs.then(|| root.view_by(Arc::new(self.rules.read_rules_of(tool, answers))))
    }

    /// Returns the paths of `root` that a command may write to, absolute and resolved; `None` for
    /// all of it.
    pub(crate) fn write_paths(&self, root: &Root) -> Option<Vec<std::path::PathBuf>> {
        let named = self
            .rules
            .write_paths
            .as_ref()?
            .iter()
            .filter_map(|pattern| pattern.prefix_in(&root.path));
        let real = named.filter_map(|rel| root.locate(&rel).ok());
        Some(
            real.filter(|path| path.real() == path.requested())
                .map(|path| path.absolute())
                .collect(),
        )
    }

    pub(crate) fn memory(&self) -> &[(Rule, Verdict)] {
        &self.memory
    }

    pub(crate) fn granted(&self) -> &[Rule] {
        &self.granted
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the path of the session's root.
    pub(crate) fn own_path(&self) -> Option<&std::path::Path> {
        self.own.as_ref().map(|root| root.path.as_path())
    }

    /// Returns the rules themselves, for decisions about domains.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Returns the domains that need no further approval, for an approver.
    pub(super) fn allowed_domains(&self) -> Vec<String> {
        self.rules.allowed_domains(&self.memory, &self.granted)
    }

    /// Returns the bounds on a call of a tool.
    pub(crate) fn limits(&self, tool: &str) -> CallLimits {
        self.rules.limits.get(tool).copied().unwrap_or_default()
    }

    /// Decides each path by itself and under each of its spellings; the strictest answer counts.
    fn decide(&self, spec: &ToolSpec, call: &Call, paths: &[CallPath]) -> Decision {
        let command = command_line(spec, call, paths);
        if paths.is_empty() {
            return self.one(spec, command.as_ref(), None);
        }
        let all = paths.iter().map(|path| match &path.resolved {
            Some(path) => self.path(spec, command.as_ref(), path),
            None => {
                let spelling =
                    Spelling { text: &path.text, root: None, links: &[], grants: &self.grants };
                self.one(spec, command.as_ref(), Some(spelling))
            }
        });
        strictest_of(all)
    }

    /// Decides about a tool and one path, including paths that no argument named.
    pub(crate) fn path(
        &self,
        spec: &ToolSpec,
        command: Option<&CommandLine>,
        path: &ResolvedPath,
    ) -> Decision {
        let same = self.own.as_ref().is_none_or(|own| own.id == path.root().id);
        if self.grants.paths.is_some() && !same {
            return Decision { verdict: Verdict::Deny, by: DecidedBy::RunLimit(RunLimit::Paths) };
        }
        // The run's own paths limit the target of a path, not its spelling.
        let anywhere = Grants { paths: None, ..self.grants.clone() };
        let links = self.rules.links(path.root());
        let all = path.spellings().map(|text| {
            let grants = if text == path.real() { &self.grants } else { &anywhere };
            let root = Some(path.root());
            self.one(spec, command, Some(Spelling { text, root, links: &links, grants }))
        });
        strictest_of(all)
    }

    fn one(
        &self,
        spec: &ToolSpec,
        command: Option<&CommandLine>,
        path: Option<Spelling<'_>>,
    ) -> Decision {
        let paths: Vec<String> = path.iter().map(|path| path.text.to_owned()).collect();
        let root = path.and_then(|path| path.root).or(self.own.as_ref());
        let decision = self.rules.decide(&Subject {
            paths: &paths,
            inside: path.and_then(|path| path.root).zip(self.own.as_ref()).is_some_and(is_same),
            top: root.map(|root| root.path.as_path()),
            links: path.map_or(&[], |path| path.links),
            command,
            read_only: spec.read_only,
            network: spec.network,
            domains: spec.domains,
            narrows: spec.narrows,
            effect: spec.effect,
            delegates: spec.delegates,
            confined: self.confined,
            memory: &self.memory,
            granted: &self.granted,
            ..Subject::new(&spec.name, path.map_or(&self.grants, |path| path.grants))
        });
        if spec.own_state && decision.verdict == Verdict::Ask && decision.by.is_fallback() {
            return Decision {
                verdict: Verdict::Allow,
                by: DecidedBy::Fallback(Fallback::OwnState),
            };
        }
        decision
    }
}

fn is_same((root, own): (&Root, &Root)) -> bool {
    root.id == own.id
}

fn rank(decision: &Decision) -> u8 {
    match decision.verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny => 2,
    }
}

/// Returns the first of the strictest decisions.
fn strictest_of(all: impl Iterator<Item = Decision>) -> Decision {
    let stricter = |a: Decision, b: Decision| if rank(&b) > rank(&a) { b } else { a };
    // The list is never empty: a path has at least one spelling.
    all.reduce(stricter).unwrap_or(Decision { verdict: Verdict::Deny, by: DecidedBy::NoPath })
}

/// Returns the strictest decision about a call and the calls it delegates. The default applies only
/// if no rule matches, and the decision about the call's own name only if its parts have none.
fn strictest(own: Decision, parts: Vec<Decision>) -> Decision {
    let ruled = !own.by.is_fallback();
    let allowed = own.verdict == Verdict::Allow && ruled;
    let parts = parts.into_iter().filter(|part| !(allowed && part.by.is_fallback()));
    let own_rule = ruled.then(|| own.clone());
    own_rule.into_iter().chain(parts).max_by_key(rank).unwrap_or(own)
}

/// Returns the command line in the arguments, parsed once for all rules.
fn command_line(spec: &ToolSpec, call: &Call, paths: &[CallPath]) -> Option<CommandLine> {
    let text = call.arguments.get(spec.command?)?.as_str()?;
    let folder = paths
        .first()
        .map(|path| path.resolved.as_ref().map_or(path.text.as_str(), ResolvedPath::real));
    Some(CommandLine::parse(text).within(folder.unwrap_or_default()))
}
