//! The rules that were granted for good.

use std::path::Path;

use cairn_protocol::{
    error::{Failure, Reason},
    tool::{GrantedRule, NarrowParams, RevokeParams},
};

use super::Harness;
use crate::{Rule, RuleError};

impl Harness {
    /// Returns the rules that were granted for good.
    pub fn granted(&self) -> Vec<GrantedRule> {
        self.approvals.grants().list()
    }

    /// Revokes a granted rule.
    ///
    /// # Errors
    /// `invalid_params`, `storage_failed`.
    pub async fn revoke(&self, params: &RevokeParams) -> Result<(), Failure> {
        let project = params.project.as_deref().map(Path::new);
        self.approvals.grants().revoke(&params.rule, project).await
    }

    /// Replaces a granted rule by a narrower one.
    ///
    /// # Errors
    /// `invalid_params`, `storage_failed`.
    pub async fn narrow(&self, params: &NarrowParams) -> Result<(), Failure> {
        let bad = |e: RuleError| Failure::new(Reason::InvalidParams, format!("to: {e}"));
        let to: Rule = params.to.parse().map_err(bad)?;
        let project = params.project.as_deref().map(Path::new);
        self.approvals.grants().narrow(&params.rule, &to, project).await
    }
}
