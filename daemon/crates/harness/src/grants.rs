//! Rules that a user granted for good by answering `always`: a file that the user can read, edit
//! and shorten.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::{
    error::{Failure, Reason},
    time::Timestamp,
    tool::GrantedRule,
};
use cairn_workspace::replace_private_file;
use serde::{Deserialize, Serialize};

use crate::{Rule, RuleError};

/// Most rules that the file may contain.
const MAX_RULES: usize = 1000;

/// The granted rules, in memory and in their file.
pub struct Grants {
    /// `None` stores them in memory alone.
    path: Option<PathBuf>,
    rules: Mutex<Vec<StoredRule>>,
    /// Serialises changes from the read of the list to the write of the file: two simultaneous
    /// answers are both stored, and a revoked rule does not return.
    changing: tokio::sync::Mutex<()>,
}

/// A granted rule, parsed when it is read.
#[derive(Debug, Clone)]
struct StoredRule {
    rule: Rule,
    granted_by: String,
    granted_at: Timestamp,
}

impl StoredRule {
    fn read(granted: GrantedRule) -> Result<Self, RuleError> {
        let GrantedRule { rule, granted_by, granted_at } = granted;
        Ok(Self { rule: rule.parse()?, granted_by, granted_at })
    }

    fn describe(&self) -> GrantedRule {
        GrantedRule {
            rule: self.rule.to_string(),
            granted_by: self.granted_by.clone(),
            granted_at: self.granted_at,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    allow: Vec<GrantedRule>,
}

impl Grants {
    /// Loads the rules of the file at `path`; none when there is no file.
    ///
    /// # Errors
    /// `storage_failed` for a file that cannot be read or parsed.
    pub fn load(path: Option<PathBuf>) -> Result<Self, Failure> {
        let rules = match &path {
            None => vec![],
            Some(path) => match std::fs::read(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
                Err(error) => return Err(unusable(path, &error)),
                Ok(bytes) => {
                    let file: File =
                        serde_json::from_slice(&bytes).map_err(|e| unusable(path, &e))?;
                    let all = file.allow.into_iter().map(StoredRule::read);
                    all.collect::<Result<_, _>>().map_err(|e| unusable(path, &e))?
                }
            },
        };
        Ok(Self { path, rules: Mutex::new(rules), changing: tokio::sync::Mutex::default() })
    }

    fn lock_rules(&self) -> MutexGuard<'_, Vec<StoredRule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all rules, oldest first.
    pub fn list(&self) -> Vec<GrantedRule> {
        self.lock_rules().iter().map(StoredRule::describe).collect()
    }

    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.lock_rules().iter().map(|stored| stored.rule.clone()).collect()
    }

    /// Adds rules and stores them, all or none.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(crate) async fn add(&self, new: Vec<Rule>, by: &str) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock().await;
        let mut rules = self.lock_rules().clone();
        for rule in new {
            if rules.iter().any(|stored| stored.rule == rule) {
                continue;
            }
            if rules.len() >= MAX_RULES {
                let text = format!("{MAX_RULES} rules are already granted: revoke some");
                return Err(Failure::new(Reason::StorageFailed, text));
            }
            let (granted_by, granted_at) = (by.to_owned(), Timestamp::now());
            rules.push(StoredRule { rule, granted_by, granted_at });
        }
        self.store(rules).await
    }

    /// Revokes a rule.
    ///
    /// # Errors
    /// `invalid_params` when no rule has that text; `storage_failed`.
    pub(crate) async fn revoke(&self, rule: &str) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock().await;
        let mut rules = self.lock_rules().clone();
        let before = rules.len();
        rules.retain(|stored| stored.rule.to_string() != rule);
        if rules.len() == before {
            let text = format!("no rule '{}' was granted", rule.escape_default());
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        self.store(rules).await
    }

    async fn store(&self, rules: Vec<StoredRule>) -> Result<(), Failure> {
        if let Some(path) = self.path.clone() {
            let file = File { allow: rules.iter().map(StoredRule::describe).collect() };
            let write = move || write(&path, &file).map_err(|e| unusable(&path, &e));
            tokio::task::spawn_blocking(write)
                .await
                .map_err(|e| Failure::new(Reason::Internal, format!("writing failed: {e}")))??;
        }
        *self.lock_rules() = rules;
        Ok(())
    }
}

/// Writes the file atomically, readable by the user alone.
fn write(path: &std::path::Path, file: &File) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    replace_private_file(path, serde_json::to_string_pretty(file)?.as_bytes())
}

fn unusable(path: &std::path::Path, cause: &impl std::fmt::Display) -> Failure {
    Failure::new(Reason::StorageFailed, format!("granted rules in {}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several writers change one file at once.
    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_changes_lose_and_restore_no_rule() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("permissions.json");
        let grants = std::sync::Arc::new(Grants::load(Some(path.clone())).unwrap());
        let rule = |text: &str| vec![text.parse::<Rule>().unwrap()];
        grants.add(rule("old"), "cli").await.unwrap();
        let add = |n: usize| {
            let grants = std::sync::Arc::clone(&grants);
            let rule = rule(&format!("tool_{n}"));
            tokio::spawn(async move { grants.add(rule, "cli").await })
        };
        let adding: Vec<_> = (0..40).map(add).collect();
        grants.revoke("old").await.unwrap();
        for one in adding {
            one.await.unwrap().unwrap();
        }
        for known in [grants.list(), Grants::load(Some(path)).unwrap().list()] {
            assert_eq!(known.len(), 40, "{known:?}");
            assert!(known.iter().all(|g| g.rule != "old"));
        }
    }

    #[tokio::test]
    async fn granted_rules_persist_and_can_be_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cairn/permissions.json");
        let grants = Grants::load(Some(path.clone())).unwrap();
        let rule = || vec!["write_file(src)".parse::<Rule>().unwrap()];
        grants.add(rule(), "cli").await.unwrap();
        grants.add(rule(), "cli").await.unwrap();
        let reloaded = Grants::load(Some(path.clone())).unwrap();
        assert_eq!(reloaded.list().len(), 1);
        assert_eq!(reloaded.revoke("write_file").await.unwrap_err().reason, Reason::InvalidParams);
        reloaded.revoke("write_file(src)").await.unwrap();
        assert!(Grants::load(Some(path.clone())).unwrap().rules().is_empty());
        std::fs::write(&path, "{").unwrap();
        let failure = Grants::load(Some(path.clone())).err().unwrap();
        assert!(failure.message.contains("permissions.json"), "{failure}");
    }
}
