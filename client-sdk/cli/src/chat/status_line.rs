//! The line above the prompt: model, context, mode and branch.

use std::path::Path;

use cairn_protocol::turn::{ExecutionPolicy, SandboxUse};
use console::measure_text_width;

use super::figures;
use crate::render::output::plain;

/// Maximum bytes of `.git` and `HEAD`.
const MAX_HEAD: u64 = 4096;
/// Maximum characters of a branch's name.
const MAX_BRANCH: usize = 40;

/// The parts of the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusLine {
    pub model: String,
    /// Used and available tokens of the context.
    pub context: Option<(u64, u64)>,
    pub mode: String,
    /// Cost of the chat in millionths of a dollar, if it is known.
    pub cost_micro_usd: Option<u64>,
    pub branch: Option<String>,
}

impl StatusLine {
    /// Renders as many parts as fit, from the left.
    pub fn render(&self, width: usize) -> String {
        let context = self
            .context
            .filter(|(_, window)| *window > 0)
            .map(|(used, window)| format!("ctx {}%", (used.saturating_mul(100) / window).min(100)));
        let cost = self.cost_micro_usd.map(figures::dollars);
        let mode = Some(self.mode.clone());
        let parts = [Some(self.model.clone()), context, mode, cost, self.branch.clone()];
        let mut line = String::new();
        for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
            let separator = if line.is_empty() { "" } else { " · " };
            let columns = measure_text_width(&line) + separator.len() + measure_text_width(&part);
            if columns >= width {
                break;
            }
            line.push_str(separator);
            line.push_str(&part);
        }
        line
    }
}

/// Names the mode of a policy.
pub fn mode(policy: &ExecutionPolicy) -> String {
    let mode = policy.mode.unwrap_or_default().as_str();
    match (policy.dry_run, policy.sandbox) {
        (true, _) => "dry run".into(),
        (false, Some(SandboxUse::Off)) => format!("{mode}, no sandbox"),
        (false, _) => mode.into(),
    }
}

/// Returns the branch of the repository that contains a folder, or the start of its commit.
pub fn branch(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|f| f.join(".git")).find(|git| git.exists())?;
    let git = if git.is_dir() {
        git
    } else {
        // In a worktree the file names the folder.
        let text = read_small(&git)?;
        git.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim())
    };
    let head = read_small(&git.join("HEAD"))?;
    let head = head.trim();
    let name: String = match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.chars().take(MAX_BRANCH).collect(),
        None if head.len() >= 40 && head.chars().all(|c| c.is_ascii_hexdigit()) => {
            head.chars().take(8).collect()
        }
        None => return None,
    };
    Some(plain(&name))
}

fn read_small(path: &Path) -> Option<String> {
    let is_small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_HEAD);
    if is_small { std::fs::read_to_string(path).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_are_dropped_from_the_right() {
        let line = StatusLine {
            model: "openai gpt-5".into(),
            context: Some((300, 1000)),
            mode: "ask".into(),
            cost_micro_usd: None,
            branch: Some("feature/long-name".into()),
        };
        assert_eq!(line.render(80), "openai gpt-5 · ctx 30% · ask · feature/long-name");
        assert_eq!(line.render(40), "openai gpt-5 · ctx 30% · ask");
        assert_eq!(line.render(20), "openai gpt-5");
        assert_eq!(line.render(5), "");
        let priced = StatusLine { cost_micro_usd: Some(20_500), ..line.clone() };
        assert_eq!(priced.render(50), "openai gpt-5 · ctx 30% · ask · $0.0205");
        let unknown = StatusLine { context: Some((3, 0)), branch: None, ..line };
        assert_eq!(unknown.render(80), "openai gpt-5 · ask");
    }

    #[test]
    fn branch_is_read_from_the_repository_and_its_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("src");
        std::fs::create_dir_all(dir.path().join(".git/worktrees/w")).unwrap();
        std::fs::create_dir_all(&inner).unwrap();
        let head = dir.path().join(".git/HEAD");
        std::fs::write(&head, "ref: refs/heads/main\n").unwrap();
        assert_eq!(branch(&inner).as_deref(), Some("main"));
        std::fs::write(&head, format!("{}\n", "ab12".repeat(10))).unwrap();
        assert_eq!(branch(&inner).as_deref(), Some("ab12ab12"));
        std::fs::write(&head, "nonsense\n").unwrap();
        assert_eq!(branch(&inner), None);
        let worktree = dir.path().join("w");
        std::fs::create_dir_all(&worktree).unwrap();
        std::fs::write(worktree.join(".git"), "gitdir: ../.git/worktrees/w\n").unwrap();
        std::fs::write(dir.path().join(".git/worktrees/w/HEAD"), "ref: refs/heads/\u{1b}x\n")
            .unwrap();
        assert_eq!(branch(&worktree).as_deref(), Some("\\u{1b}x"));
    }
}
