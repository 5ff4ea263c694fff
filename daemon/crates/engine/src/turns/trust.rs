//! A question before a turn begins, about items of its folder that are not decided about.

use std::sync::Arc;

use cairn_harness::Intent;
use cairn_protocol::{
    approval::{ApprovalDecision, Preview},
    error::{Failure, Reason},
    trust::{FolderTrust, TrustItem, TrustSetParams, TrustState, TrustedContent},
};
use serde_json::json;

use super::TurnContext;
use crate::{Trust, roots::blocking};

/// The name of the question.
const TRUST: &str = "trust";
/// Most bytes of the differences in the question.
const MAX_DIFF: usize = 64 * 1024;

fn contents(items: &[&TrustItem]) -> Vec<TrustedContent> {
    items.iter().map(|item| item.content()).collect()
}

fn preview(folder: &str, items: &[&TrustItem]) -> Preview {
    let names: Vec<String> = items
        .iter()
        .map(|item| {
            let how = if item.state == TrustState::New { "new" } else { "changed" };
            format!("{how} {} {}", item.kind.noun(1), item.path)
        })
        .collect();
    let mut diff: String = items.iter().filter_map(|item| item.diff.as_deref()).collect();
    if diff.len() > MAX_DIFF {
        let mut end = MAX_DIFF;
        while !diff.is_char_boundary(end) {
            end -= 1;
        }
        diff.truncate(end);
        diff.push_str("\n[the rest is omitted: 'cairn trust --show' has it]\n");
    }
    let commands = items.iter().flat_map(|item| &item.commands);
    Preview {
        summary: format!("trust what {folder} brings: {}", names.join(", ")),
        diff: Some(diff).filter(|diff| !diff.is_empty()),
        paths: items.iter().map(|item| item.path.clone()).collect(),
        warnings: commands.take(16).map(|command| format!("it runs: {command}")).collect(),
        ..Preview::default()
    }
}

impl TurnContext {
    /// Asks about items of the folder that changed since it was trusted. Without an approver they
    /// stay unused, which is reported; an unattended run stops.
    ///
    /// # Errors
    /// `tool_denied` for an unattended run; `cancelled`; errors of the log and of the store.
    pub(crate) async fn settle_trust(&self) -> Result<(), Failure> {
        let Some(root) = self.root_path().filter(|_| !self.is_resumed() && self.feed().is_none())
        else {
            return Ok(());
        };
        let Some(trust) = self.engine().inner.trust.get().cloned() else { return Ok(()) };
        let (store, folder) = (Arc::clone(&trust), root.to_owned());
        let state = blocking(move || store.state(&folder, true)).await;
        let state = match state {
            Ok(state) if state.is_known => state,
            Ok(_) => return Ok(()),
            Err(failure) if failure.reason == Reason::NotSupported => return Ok(()),
            Err(failure) => {
                return self.warn(TRUST, format!("nothing is trusted: {failure}")).await;
            }
        };
        let items: Vec<&TrustItem> = state.undecided().collect();
        if items.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
        let what = format!(
            "{} changed since the folder was trusted, and is not used; 'cairn trust {}' shows \
            and trusts it",
            names.join(", "),
            state.folder
        );
        let approvals = self.engine().inner.harness.approvals();
        if approvals.is_unattended(self.session()) {
            let details = json!({"final": true});
            return Err(Failure::new(Reason::ToolDenied, what).with_details(details));
        }
        if !approvals.has_approver(self.session()) {
            return self.warn(TRUST, what).await;
        }
        self.ask_trust(&trust, &state, &items).await
    }

    async fn ask_trust(
        &self,
        trust: &Arc<dyn Trust>,
        state: &FolderTrust,
        items: &[&TrustItem],
    ) -> Result<(), Failure> {
        let arguments = json!({"folder": state.folder, "items": contents(items)});
        let call = self.core().call(None, TRUST, arguments);
        let intent = Intent { preview: preview(&state.folder, items), ..Intent::default() };
        let question = "its content is not the one that you trusted";
        let harness = &self.engine().inner.harness;
        let clock = Arc::clone(&self.inner.handle.clock);
        let answer = clock.while_waiting(harness.ask(&call, &intent, question)).await?;
        let mut params =
            TrustSetParams { folder: state.folder.clone(), trust: vec![], refuse: vec![] };
        match (answer.decision, answer.by.as_str()) {
            // Nobody looked at it: the next turn asks again.
            (ApprovalDecision::Deny, "deadline" | "cancelled" | "no_approver") => return Ok(()),
            (ApprovalDecision::Deny, _) => params.refuse = contents(items),
            _ => params.trust = contents(items),
        }
        // Its root may be a work tree, whose contents were shown.
        if let Some(root) = self.root_path() {
            params.folder = root.to_string_lossy().into_owned();
        }
        let store = Arc::clone(trust);
        match blocking(move || store.set(&params)).await {
            Ok(_) => Ok(()),
            Err(failure) => self.warn(TRUST, failure.to_string()).await,
        }
    }
}
