//! Rules about reading: which paths the answers of all tools, and of one tool, may show.

use cairn_workspace::{PathPattern, ReadRule, Reading};

use super::{Answers, READ, Rule, Rules, Scope, Verdict};
use crate::{DecidedBy, RuleList};

impl Rules {
    /// Returns true if the rules about reading differ for this exact tool from those of all tools.
    pub fn differ_for(&self, tool: &str, (memory, granted): Answers<'_>) -> bool {
        let overrides = self.overrides.iter().map(|(rule, _)| rule);
        let mut lists = self
            .final_deny
            .iter()
            .chain(overrides)
            .chain(&self.deny)
            .chain(&self.allow)
            .chain(&self.confirm);
        let is_answer = |rule: &Rule| rule.names(tool) || rule.tool == READ;
        lists.any(|rule| rule.tool == tool && matches!(rule.scope, Scope::Path(_) | Scope::Any))
            || memory.iter().any(|(rule, _)| is_answer(rule))
            || granted.iter().any(is_answer)
    }

    /// Returns the rules about reading, in their order, for the answers of every tool: rules about
    /// paths of any tool and of `read_file`.
    pub fn read_rules(&self) -> Vec<ReadRule> {
        self.read_rules_for(None, (&[], &[]))
    }

    /// Returns the same for one tool: with the rules that name it, and with the answers that apply
    /// to the call. A rule that allows every call of the tool allows every path.
    pub fn read_rules_of(&self, tool: &str, answers: Answers<'_>) -> Vec<ReadRule> {
        self.read_rules_for(Some(tool), answers)
    }

    fn read_rules_for(&self, tool: Option<&str>, (memory, granted): Answers<'_>) -> Vec<ReadRule> {
        if let (Some(why), Ok(pattern)) = (&self.unreadable, PathPattern::read(".")) {
            return vec![ReadRule { pattern, reading: Reading::Hidden, rule: why.clone() }];
        }
        let list = |list: RuleList, rules: &[Rule], verdict: Verdict| -> Vec<ReadRule> {
            rules.iter().filter_map(|rule| read_rule(list, rule, verdict, tool)).collect()
        };
        let chosen = |list: RuleList, rules: &[(Rule, Verdict)]| -> Vec<ReadRule> {
            rules.iter().filter_map(|(rule, v)| read_rule(list, rule, *v, tool)).collect()
        };
        // The order of the decisions: what they allow must not be refused when it is opened.
        [
            list(RuleList::FinalDeny, &self.final_deny, Verdict::Deny),
            chosen(RuleList::Session, memory),
            chosen(RuleList::Overrides, &self.overrides),
            list(RuleList::Deny, &self.deny, Verdict::Deny),
            list(RuleList::Allow, &self.allow, Verdict::Allow),
            list(RuleList::Granted, granted, Verdict::Allow),
            list(RuleList::Confirm, &self.confirm, Verdict::Ask),
        ]
        .concat()
    }
}

/// Returns the rule about reading that a rule of a list stands for, if it concerns the answers of
/// all tools, or of `tool`.
fn read_rule(
    list: RuleList,
    rule: &Rule,
    verdict: Verdict,
    tool: Option<&str>,
) -> Option<ReadRule> {
    let (pattern, is_relevant) = match &rule.scope {
        Scope::Path(pattern) => {
            let is_general = rule.tool == "*" || rule.tool == READ;
            (pattern.clone(), is_general || tool == Some(rule.tool.as_str()))
        }
        // A denial of the tool itself has refused the call already.
        Scope::Any if verdict == Verdict::Allow => {
            (PathPattern::read(".").ok()?, tool == Some(rule.tool.as_str()))
        }
        _ => return None,
    };
    let reading = match verdict {
        Verdict::Allow => Reading::Visible,
        Verdict::Ask => Reading::NeedsApproval,
        Verdict::Deny => Reading::Hidden,
    };
    let by = DecidedBy::Rule { list, rule: rule.clone(), part: None };
    is_relevant.then(|| ReadRule { pattern, reading, rule: by.to_string() })
}
