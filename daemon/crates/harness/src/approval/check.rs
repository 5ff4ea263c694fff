//! Answers that a request does not allow, and its rules as text.

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalResolveParams},
    error::{Failure, Reason},
};

use crate::{Rule, user_input};

/// Parses the rules of a request as the log has them. One text is one rule, whatever it contains.
pub(super) fn rules(texts: &[String]) -> Result<Vec<Rule>, Failure> {
    let rule = |text: &String| {
        let bad = |e| Failure::new(Reason::Internal, format!("a rule of an approval: {e}"));
        text.parse::<Rule>().map_err(bad)
    };
    texts.iter().map(rule).collect()
}

pub(super) fn texts(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(Rule::to_string).collect()
}

/// Rejects a pattern that was not offered, and a pattern with an answer that stores no rule.
pub(super) fn check_pattern(
    approval: &Approval,
    decision: ApprovalDecision,
    pattern: Option<&Vec<String>>,
) -> Result<(), Failure> {
    let Some(pattern) = pattern else { return Ok(()) };
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if decision != ApprovalDecision::Session && !decision.is_permanent() {
        return bad("pattern is only valid with the decisions session, always, everywhere".into());
    }
    if !approval.patterns.contains(pattern) {
        let offered: Vec<String> = approval.patterns.iter().map(|rules| rules.join(", ")).collect();
        let offered = offered.join("', '");
        return bad(format!("pattern is not one of those offered: '{offered}'"));
    }
    Ok(())
}

/// Rejects an answer for a project where the session has none.
pub(super) fn check_project(
    approval: &Approval,
    decision: ApprovalDecision,
) -> Result<(), Failure> {
    if decision != ApprovalDecision::Always || approval.project.is_some() {
        return Ok(());
    }
    let text = "the session has no root, so that always has no project: \
                answer once, session or everywhere";
    Err(Failure::new(Reason::InvalidParams, text))
}

/// Rejects values without a form, an answer that does not fill the form, and values for a call that
/// does not wait for them.
pub(super) fn check_form(
    approval: &Approval,
    params: &ApprovalResolveParams,
    is_awaited: bool,
) -> Result<(), Failure> {
    let bad = |text: &str| Err(Failure::new(Reason::InvalidParams, text));
    match (&approval.form, params.decision) {
        (_, ApprovalDecision::Deny) => Ok(()),
        (None, _) if params.values.is_empty() => Ok(()),
        (None, _) => bad("values are only valid for an approval with a form"),
        (Some(_), _) if approval.resolution.is_none() && !is_awaited => {
            let text = "the call that requested the values no longer waits for them";
            Err(Failure::new(Reason::ApprovalNotFound, text))
        }
        (Some(form), ApprovalDecision::Once) => user_input::check(form, &params.values),
        (Some(_), _) => bad("a form is answered with the decision once and its values, or denied"),
    }
}
