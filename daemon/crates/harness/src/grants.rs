//! Rules that a user granted for good by answering `always`, which holds for one project, or
//! `everywhere`: a file that the user can read, edit and shorten.

use std::{
    path::{Path, PathBuf},
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
    /// The project in which it applies; every project if `None`.
    project: Option<PathBuf>,
    granted_by: String,
    granted_at: Timestamp,
}

impl StoredRule {
    fn read(granted: GrantedRule) -> Result<Self, RuleError> {
        let GrantedRule { rule, project, granted_by, granted_at } = granted;
        let (rule, project) = (rule.parse()?, project.map(PathBuf::from));
        Ok(Self { rule, project, granted_by, granted_at })
    }

    fn describe(&self) -> GrantedRule {
        GrantedRule {
            rule: self.rule.to_string(),
            project: self.project.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
            granted_by: self.granted_by.clone(),
            granted_at: self.granted_at,
        }
    }

    /// Returns true for the rule with this text; with `project` only if it is of that project.
    fn is_named(&self, rule: &str, project: Option<&Path>) -> bool {
        self.rule.to_string() == rule && (project.is_none() || self.project.as_deref() == project)
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

    /// Returns the rules that apply in a project: its own, and those of every project.
    pub(crate) fn rules_in(&self, project: Option<&Path>) -> Vec<Rule> {
        let applies =
            |stored: &&StoredRule| stored.project.is_none() || stored.project.as_deref() == project;
        self.lock_rules().iter().filter(applies).map(|stored| stored.rule.clone()).collect()
    }

    /// Adds rules for a project, or for every project, and stores them, all or none.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(crate) async fn add(
        &self,
        new: Vec<Rule>,
        project: Option<PathBuf>,
        by: &str,
    ) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock().await;
        let mut rules = self.lock_rules().clone();
        for rule in new {
            if rules.iter().any(|stored| stored.rule == rule && stored.project == project) {
                continue;
            }
            if rules.len() >= MAX_RULES {
                let text = format!("{MAX_RULES} rules are already granted: revoke some");
                return Err(Failure::new(Reason::StorageFailed, text));
            }
            let (granted_by, granted_at) = (by.to_owned(), Timestamp::now());
            let project = project.clone();
            rules.push(StoredRule { rule, project, granted_by, granted_at });
        }
        self.store(rules).await
    }

    /// Revokes a rule: that of a project, or without `project` that of every place.
    ///
    /// # Errors
    /// `invalid_params` when no rule has that text; `storage_failed`.
    pub(crate) async fn revoke(&self, rule: &str, project: Option<&Path>) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock().await;
        let mut rules = self.lock_rules().clone();
        let before = rules.len();
        rules.retain(|stored| !stored.is_named(rule, project));
        if rules.len() == before {
            return Err(not_granted(rule));
        }
        self.store(rules).await
    }

    /// Replaces a rule by one that covers less.
    ///
    /// # Errors
    /// `invalid_params` when no rule has that text, or the new one is not narrower;
    /// `storage_failed`.
    pub(crate) async fn narrow(
        &self,
        rule: &str,
        to: &Rule,
        project: Option<&Path>,
    ) -> Result<(), Failure> {
        let _one_at_a_time = self.changing.lock().await;
        let mut rules = self.lock_rules().clone();
        let mut count = 0;
        for stored in rules.iter_mut().filter(|stored| stored.is_named(rule, project)) {
            if !to.is_within(&stored.rule) {
                let text = format!("'{to}' is not known to cover less than '{}'", stored.rule);
                return Err(Failure::new(Reason::InvalidParams, text));
            }
            stored.rule = to.clone();
            count += 1;
        }
        if count == 0 {
            return Err(not_granted(rule));
        }
        let mut seen: Vec<(Rule, Option<PathBuf>)> = Vec::new();
        rules.retain(|stored| {
            let key = (stored.rule.clone(), stored.project.clone());
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        });
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

fn not_granted(rule: &str) -> Failure {
    let text = format!("no rule '{}' was granted", rule.escape_default());
    Failure::new(Reason::InvalidParams, text)
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
        grants.add(rule("old"), None, "cli").await.unwrap();
        let add = |n: usize| {
            let grants = std::sync::Arc::clone(&grants);
            let rule = rule(&format!("tool_{n}"));
            tokio::spawn(async move { grants.add(rule, None, "cli").await })
        };
        let adding: Vec<_> = (0..40).map(add).collect();
        grants.revoke("old", None).await.unwrap();
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
        grants.add(rule(), None, "cli").await.unwrap();
        grants.add(rule(), None, "cli").await.unwrap();
        let reloaded = Grants::load(Some(path.clone())).unwrap();
        assert_eq!(reloaded.list().len(), 1);
        let unknown = reloaded.revoke("write_file", None).await.unwrap_err();
        assert_eq!(unknown.reason, Reason::InvalidParams);
        reloaded.revoke("write_file(src)", None).await.unwrap();
        assert!(Grants::load(Some(path.clone())).unwrap().rules_in(None).is_empty());
        std::fs::write(&path, "{").unwrap();
        let failure = Grants::load(Some(path.clone())).err().unwrap();
        assert!(failure.message.contains("permissions.json"), "{failure}");
    }

    #[tokio::test]
    async fn rule_of_a_project_applies_there_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("permissions.json");
        let grants = Grants::load(Some(path.clone())).unwrap();
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        let [one, two] = ["/one", "/two"].map(Path::new);
        grants.add(vec![rule("write_file")], Some(one.into()), "cli").await.unwrap();
        grants.add(vec![rule("delete_file")], None, "cli").await.unwrap();
        let grants = Grants::load(Some(path)).unwrap();
        assert_eq!(grants.rules_in(Some(one)), [rule("write_file"), rule("delete_file")]);
        for elsewhere in [Some(two), Some(Path::new("/one/sub")), None] {
            assert_eq!(grants.rules_in(elsewhere), [rule("delete_file")], "{elsewhere:?}");
        }
        // The same rule may be granted in several places, and is revoked in one of them.
        grants.add(vec![rule("write_file")], Some(two.into()), "cli").await.unwrap();
        let wider = grants.narrow("write_file", &rule("delete_file"), Some(two)).await;
        assert_eq!(wider.unwrap_err().reason, Reason::InvalidParams);
        grants.narrow("write_file", &rule("write_file(src/**)"), Some(two)).await.unwrap();
        grants.revoke("write_file", Some(one)).await.unwrap();
        assert_eq!(grants.rules_in(Some(one)), [rule("delete_file")]);
        assert_eq!(grants.rules_in(Some(two)), [rule("delete_file"), rule("write_file(src/**)")]);
    }
}
