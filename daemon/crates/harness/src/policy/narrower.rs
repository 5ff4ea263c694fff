//! Comparison of two rules that allow: which one covers less.

use super::{Rule, Rules, Scope, Verdict};
use crate::command::{CommandLine, Pattern};

impl Rule {
    /// Returns true if it is certain that this rule matches no call that `wide` does not match, for
    /// rules that allow.
    pub(crate) fn is_within(&self, wide: &Self) -> bool {
        if self == wide {
            return true;
        }
        if wide.tool != "*" && wide.tool != self.tool {
            return false;
        }
        match (&wide.scope, &self.scope) {
            (Scope::Any, _) => true,
            (Scope::Path(wide), Scope::Path(narrow)) => {
                let narrow = narrow.to_string();
                let (wide_text, is_glob) = (wide.to_string(), |c| "*?[{".contains(c));
                let fixed: Vec<&str> =
                    narrow.split('/').take_while(|part| !part.contains(is_glob)).collect();
                // Names that no pattern without classes of characters covers by chance.
                let any = format!("{}/\u{1}any/\u{1}any", fixed.join("/"));
                !wide_text.contains(['[', '{', '!']) && !fixed.is_empty() && wide.covers(&any)
            }
            (Scope::Command(_), Scope::Command(narrow)) => {
                let wide =
                    Rules { allow: vec![wide.clone()], default: Verdict::Deny, ..Rules::default() };
                let allows = |text: &str| {
                    wide.decide_line(&CommandLine::parse(text)).verdict == Verdict::Allow
                };
                match narrow {
                    Pattern::Text(text) => allows(text),
                    Pattern::Words { open, .. } => {
                        let text = narrow.to_string();
                        let bare = text.strip_suffix(" *").unwrap_or(&text);
                        let longer = !*open || allows(&format!("{bare} anything"));
                        allows(bare) && longer
                    }
                }
            }
            (Scope::Domain(wide), Scope::Domain(narrow)) => {
                let (wide, narrow) = (wide.to_string(), narrow.to_string());
                let narrow = narrow.trim_start_matches("*.");
                wide.strip_prefix('*').is_some_and(|parent| narrow.ends_with(parent))
            }
            _ => false,
        }
    }
}
