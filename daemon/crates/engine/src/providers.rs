//! Which model a session talks to.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalResolveParams},
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    model::ModelInfo,
    sandbox::SandboxProbe,
    tool::GrantedRule,
    turn::{ModelChoice, ProviderInfo, ProviderSet, ProviderSetParams},
};
use cairn_trace::{Append, NewRecord};
use uuid::Uuid;

use crate::{Approver, Engine, session::Request};

impl Engine {
    /// Whom a session talks to: what was chosen for it, or the default.
    pub(crate) async fn model_choice(&self, session: &SessionId) -> Result<ModelChoice, Failure> {
        match self.inner.trace.chosen_model(session).await? {
            Some(choice) => Ok(choice),
            None => {
                let root = self.inner.trace.session(session).await?.root;
                let root = root.and_then(|root| self.inner.roots.find(&root).ok());
                match self.inner.root_settings.of(root.as_ref()).and_then(|own| own.model.clone()) {
                    Some(choice) => Ok(choice),
                    None => Ok(self.model_source().map(|m| m.default_choice()).unwrap_or_default()),
                }
            }
        }
    }

    /// The providers there are.
    ///
    /// # Errors
    /// `not_supported` when the host set none up.
    pub fn providers(&self) -> Result<Vec<ProviderInfo>, Failure> {
        Ok(self.model_source()?.list())
    }

    /// What a session talks to, or the default.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn current_model(&self, session: Option<&SessionId>) -> Result<ModelChoice, Failure> {
        match session {
            Some(id) => {
                self.inner.trace.session(id).await?;
                self.model_choice(id).await
            }
            None => Ok(self.model_source()?.default_choice()),
        }
    }

    /// Sets what a session talks to, from its next turn on. Its history is kept.
    ///
    /// # Errors
    /// `session_not_found`, `provider_unknown`, `model_unauthorized`.
    pub async fn set_model(
        &self,
        params: ProviderSetParams,
        client: Option<String>,
    ) -> Result<ProviderSet, Failure> {
        let session = self.inner.trace.session(&params.session_id).await?.session_id;
        let models = self.model_source()?;
        let old = self.model_choice(&session).await?;
        let same = params.provider.as_ref().is_none_or(|p| *p == old.provider);
        let wanted = ModelChoice {
            provider: params.provider.unwrap_or_else(|| old.provider.clone()),
            model: params.model.unwrap_or_else(|| if same { old.model.clone() } else { String::new() }),
            endpoint: params.endpoint.or_else(|| old.endpoint.clone().filter(|_| same)),
        };
        let before = models.provider(&old).ok().and_then(|p| p.context_tokens());
        let provider = models.provider(&wanted)?;
        let choice = ModelChoice {
            provider: provider.name().into(),
            model: provider.model().into(),
            endpoint: wanted.endpoint,
        };
        let context_tokens = provider.context_tokens();
        let mut warnings = Vec::new();
        if let (Some(before), Some(now)) = (before, context_tokens)
            && now < before
        {
            warnings.push(format!(
                "{} has a context of {now} tokens, the model before it {before}: older turns may be condensed",
                choice.model
            ));
        }
        let evt = AgentEvt::ProviderChanged { model: choice.clone() };
        let origin = Some(Origin { client, ..Origin::default() });
        let record = NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } };
        self.inner.trace.append(Append::new(&session, vec![record]).model(choice.clone())).await?;
        Ok(ProviderSet { choice, context_tokens, warnings })
    }

    /// The models a provider has.
    ///
    /// # Errors
    /// `provider_unknown`; those of asking it.
    pub async fn models(&self, provider: Option<String>) -> Result<Vec<ModelInfo>, Failure> {
        let source = self.model_source()?;
        let default = source.default_choice();
        let choice = match provider {
            Some(provider) if provider != default.provider => {
                ModelChoice { provider, ..ModelChoice::default() }
            }
            _ => default,
        };
        Ok(source.provider(&choice)?.models().await?)
    }

    /// Approvals that wait, or all.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn approvals(&self, list: ApprovalListParams) -> Result<Vec<Approval>, Failure> {
        Ok(self.inner.trace.approvals(list).await?)
    }

    /// Answers an approval. When the daemon had ended while it waited, its turn goes on.
    ///
    /// # Errors
    /// `approval_not_found`, `approval_resolved`, `storage_failed`.
    pub async fn resolve_approval(
        &self,
        params: ApprovalResolveParams,
        by: &str,
    ) -> Result<Approval, Failure> {
        self.need_open()?;
        let asked = self.inner.trace.approval(&params.approval_id).await?;
        let (run, by) = (asked.run_id, by.to_owned());
        let request = Request::Answer { params, run, by };
        let approval = self.request(&asked.session_id, request).await?.approval()?;
        // A turn goes on by itself. What an explore needs, its root, is looked for here.
        let session = self.inner.trace.session(&approval.session_id).await?;
        if session.state == RunState::Interrupted {
            match self.resume_session(&session.session_id).await {
                Ok(_) => {}
                // Another client was first, or the run is not one that can go on.
                Err(failure) if failure.reason == Reason::NotResumable => {}
                Err(failure) => tracing::warn!(session = %session.session_id, %failure, "not resumed"),
            }
        }
        Ok(approval)
    }

    /// Counts somebody who can answer approvals, for as long as the answer of this lives.
    pub fn approver(&self) -> Approver {
        self.inner.harness.approvals().join()
    }

    /// Rules that were granted for good.
    pub fn granted(&self) -> Vec<GrantedRule> {
        self.inner.harness.granted()
    }

    /// Takes a granted rule back.
    ///
    /// # Errors
    /// `invalid_params` when there is none of that text; `storage_failed`.
    pub async fn revoke(&self, rule: &str) -> Result<(), Failure> {
        self.inner.harness.revoke(rule).await
    }

    /// How commands are confined here. The first look tries it out, which takes a moment.
    ///
    /// # Errors
    /// `internal` when the look itself failed.
    pub async fn sandbox_probe(&self) -> Result<SandboxProbe, Failure> {
        let sandbox = std::sync::Arc::clone(self.inner.harness.sandbox());
        let broken =
            |what: String| Failure::new(Reason::Internal, format!("the sandbox could not be tried: {what}"));
        let look = move || serde_json::to_value(sandbox.probe());
        let probe = tokio::task::spawn_blocking(look).await.map_err(|e| broken(e.to_string()))?;
        probe.and_then(serde_json::from_value).map_err(|e| broken(e.to_string()))
    }

    /// Empties the conversation of a session: its log stays, its next turn starts afresh.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy` while a turn is at work.
    pub async fn clear_conversation(
        &self,
        session: &SessionId,
        client: Option<String>,
    ) -> Result<(), Failure> {
        self.request(session, Request::Clear(client)).await.map(drop)
    }
}
