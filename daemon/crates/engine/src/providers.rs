//! Models and approvals of sessions.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalNotice, ApprovalResolveParams},
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::{ApprovalId, SessionId},
    model::ModelInfo,
    sandbox::SandboxProbe,
    tool::{GrantedRule, NarrowParams, RevokeParams},
    turn::{ModelChoice, ProviderInfo, ProviderSet, ProviderSetParams},
};
use cairn_trace::{Append, NewRecord};
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::{Approver, Engine, session::Request};

impl Engine {
    /// Returns the model of a session: its own choice, or the default.
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

    /// Returns the available providers.
    ///
    /// # Errors
    /// `not_supported` when the host set none up.
    pub fn providers(&self) -> Result<Vec<ProviderInfo>, Failure> {
        Ok(self.model_source()?.list())
    }

    /// Returns the model of a session, or the default.
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

    /// Sets the model of a session, from its next turn on. Its history is retained.
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
        let model_choice = ModelChoice {
            provider: params.provider.unwrap_or_else(|| old.provider.clone()),
            model: params
                .model
                .unwrap_or_else(|| if same { old.model.clone() } else { String::new() }),
            endpoint: params.endpoint.or_else(|| old.endpoint.clone().filter(|_| same)),
        };
        let before = models.provider(&old).ok().and_then(|p| p.context_tokens());
        let provider = models.provider(&model_choice)?;
        let choice = ModelChoice {
            provider: provider.name().into(),
            model: provider.model().into(),
            endpoint: model_choice.endpoint,
        };
        let context_tokens = provider.context_tokens();
        let mut warnings = Vec::new();
        if let (Some(before), Some(now)) = (before, context_tokens)
            && now < before
        {
            warnings.push(format!(
                "{} has a context of {now} tokens, the previous model had {before}: older turns may be \
                condensed",
                choice.model
            ));
        }
        let evt = AgentEvt::ProviderChanged { model: choice.clone() };
        let origin = Some(Origin { client, ..Origin::default() });
        let record =
            NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } };
        self.inner.trace.append(Append::new(&session, vec![record]).model(choice.clone())).await?;
        Ok(ProviderSet { choice, context_tokens, warnings })
    }

    /// Returns the models of a provider.
    ///
    /// # Errors
    /// `provider_unknown`; errors of the request to it.
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

    /// Returns pending approvals, or all.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn approvals(&self, list: ApprovalListParams) -> Result<Vec<Approval>, Failure> {
        let listed = self.inner.trace.approvals(list.clone()).await?;
        // Requests of interrupted turns have no call that watches their time.
        if self.inner.harness.approvals().close_overdue(&listed).await? {
            return Ok(self.inner.trace.approvals(list).await?);
        }
        Ok(listed)
    }

    /// Returns one approval.
    ///
    /// # Errors
    /// `approval_not_found`, or an error of the log.
    pub async fn approval(&self, id: &ApprovalId) -> Result<Approval, Failure> {
        Ok(self.inner.trace.approval(id).await?)
    }

    /// Answers an approval. If the daemon was restarted while it was pending, its turn resumes.
    ///
    /// # Errors
    /// `approval_not_found`, `approval_resolved`, `storage_failed`.
    pub async fn resolve_approval(
        &self,
        params: ApprovalResolveParams,
        by: &str,
    ) -> Result<Approval, Failure> {
        self.require_open()?;
        let pending = self.inner.trace.approval(&params.approval_id).await?;
        let (run, by) = (pending.run_id, by.to_owned());
        let request = Request::Answer { params, run, by };
        let approval = self.request(&pending.session_id, request).await?.approval()?;
        // A turn resumes by itself. For an explore its root must be looked up here.
        let session = self.inner.trace.session(&approval.session_id).await?;
        if session.state == RunState::Interrupted {
            match self.resume_session(&session.session_id).await {
                Ok(_) => {}
                // Another client was first, or the run cannot be resumed.
                Err(failure) if failure.reason == Reason::NotResumable => {}
                Err(failure) => {
                    tracing::warn!(session = %session.session_id, %failure, "not resumed")
                }
            }
        }
        Ok(approval)
    }

    /// Registers a connected approver until the returned value is dropped.
    pub fn approver(&self) -> Approver {
        self.inner.harness.approvals().join()
    }

    /// Subscribes to approvals that are pending and to answers, of all sessions.
    pub fn approval_notices(&self) -> broadcast::Receiver<ApprovalNotice> {
        self.inner.harness.approvals().notices()
    }

    /// Returns the rules that were granted for good.
    pub fn granted(&self) -> Vec<GrantedRule> {
        self.inner.harness.granted()
    }

    /// Revokes a granted rule.
    ///
    /// # Errors
    /// `invalid_params` when no rule has that text; `storage_failed`.
    pub async fn revoke(&self, params: &RevokeParams) -> Result<(), Failure> {
        self.inner.harness.revoke(params).await
    }

    /// Replaces a granted rule by a narrower one.
    ///
    /// # Errors
    /// `invalid_params` when no rule has that text, or the new one is not narrower;
    /// `storage_failed`.
    pub async fn narrow(&self, params: &NarrowParams) -> Result<(), Failure> {
        self.inner.harness.narrow(params).await
    }

    /// Returns the confinement of commands on this machine. The first call tries it out, which
    /// takes a moment.
    ///
    /// # Errors
    /// `internal` when the probe itself failed.
    pub async fn sandbox_probe(&self) -> Result<SandboxProbe, Failure> {
        let sandbox = std::sync::Arc::clone(self.inner.harness.sandbox());
        let broken = |what: String| {
            Failure::new(Reason::Internal, format!("the sandbox could not be checked: {what}"))
        };
        let look = move || serde_json::to_value(sandbox.probe());
        let probe = tokio::task::spawn_blocking(look).await.map_err(|e| broken(e.to_string()))?;
        probe.and_then(serde_json::from_value).map_err(|e| broken(e.to_string()))
    }

    /// Clears the conversation of a session: its log stays, its next turn starts with an empty
    /// conversation.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy` while a turn is active.
    pub async fn clear_conversation(
        &self,
        session: &SessionId,
        client: Option<String>,
    ) -> Result<(), Failure> {
        self.request(session, Request::Clear(client)).await.map(drop)
    }
}
