//! Decisions about domains by the rules `network(domain)`.

use super::{Domain, DomainPattern};
use crate::{DecidedBy, Decision, Fallback, Rule, RuleList, Rules, Verdict};

impl Rules {
    /// Decides about a domain; `None` is a host without one, such as an address, which only rules
    /// about all of the network cover. A permission must name the network: a rule for all tools
    /// grants none, and neither does the default.
    pub fn decide_domain(
        &self,
        domain: Option<&Domain>,
        memory: &[(Rule, Verdict)],
        granted: &[Rule],
    ) -> Decision {
        let by = |list, rule: &Rule, verdict| Decision {
            verdict,
            by: DecidedBy::Rule { list, rule: rule.clone(), part: None },
        };
        let listed = |list, rules: &[Rule], verdict| {
            let rule = rules.iter().find(|rule| rule.covers_domain(domain, verdict))?;
            Some(by(list, rule, verdict))
        };
        let chosen = |list, rules: &[(Rule, Verdict)]| {
            let (rule, verdict) = rules.iter().find(|(rule, v)| rule.covers_domain(domain, *v))?;
            Some(by(list, rule, *verdict))
        };
        if let Some(why) = self.unreadable.clone() {
            return Decision { verdict: Verdict::Deny, by: DecidedBy::UnreadableRules(why) };
        }
        listed(RuleList::FinalDeny, &self.final_deny, Verdict::Deny)
            .or_else(|| chosen(RuleList::Session, memory))
            .or_else(|| chosen(RuleList::Overrides, &self.overrides))
            .or_else(|| listed(RuleList::Deny, &self.deny, Verdict::Deny))
            .or_else(|| listed(RuleList::Allow, &self.allow, Verdict::Allow))
            .or_else(|| listed(RuleList::Granted, granted, Verdict::Allow))
            .or_else(|| listed(RuleList::Confirm, &self.confirm, Verdict::Ask))
            .unwrap_or(Decision {
                verdict: Verdict::Ask,
                by: DecidedBy::Fallback(Fallback::UnlistedDomain),
            })
    }

    /// Returns true if a rule may refuse some domain: a network that no proxy watches is then
    /// closed.
    pub(crate) fn restrict_network(&self) -> bool {
        let denies = |verdict: &Verdict| *verdict != Verdict::Allow;
        let overridden = self.overrides.iter().filter(|(_, v)| denies(v)).map(|(rule, _)| rule);
        let mut all =
            self.final_deny.iter().chain(overridden).chain(&self.deny).chain(&self.confirm);
        self.unreadable.is_some() || all.any(|rule| rule.domain().is_some())
    }

    /// Returns the patterns of the domains that are allowed, for an approver.
    pub(crate) fn allowed_domains(
        &self,
        memory: &[(Rule, Verdict)],
        granted: &[Rule],
    ) -> Vec<String> {
        let chosen = memory.iter().chain(&self.overrides);
        let chosen = chosen.filter(|(_, verdict)| *verdict == Verdict::Allow).map(|(rule, _)| rule);
        let mut all: Vec<String> = chosen
            .chain(&self.allow)
            .chain(granted)
            .filter_map(|rule| {
                rule.domain().map(|p| p.map_or("*".into(), DomainPattern::to_string))
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }
}
