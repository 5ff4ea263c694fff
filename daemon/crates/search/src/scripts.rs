//! Queries in scripts without spaces between words, or of which the embedding table knows no word.

use cairn_tokenizer::scripts::is_pair;
use cairn_tokenizer::words::has_unknown_script;

use crate::lexical::Term;
use crate::query::Query;
use crate::rank::Mode;

/// True if some words of the query have no vector, because their script is not in the table.
pub fn is_unknown(query: &Query<'_>) -> bool {
    let is_table = |root: &crate::query::QueryRoot| !root.index.opts.embedder.is_transformer();
    query.mode != Mode::Lexical
        && query.roots.iter().any(is_table)
        && has_unknown_script(&query.params.query)
}

/// True if two words are overlapping pairs of characters, such as 配置 and 置日 of 配置日志.
pub fn is_overlap(first: &str, second: &str) -> bool {
    let is_next = second.chars().next().is_some_and(|c| first.ends_with(c));
    is_next && is_pair(first) && is_pair(second)
}

/// Removes the pairs that no text contains if both of their characters are in other pairs that
/// texts contain: such a pair joins the end of one word and the start of the next, and as the
/// rarest term it would outweigh both words.
pub fn without_joints(terms: Vec<Term>) -> Vec<Term> {
    let is_present = |term: Option<&Term>, has: &dyn Fn(&str) -> bool| {
        term.is_some_and(|t| t.chunks > 0 && is_pair(&t.stem) && has(&t.stem))
    };
    let is_joint = |at: usize| {
        let pair = &terms[at].stem;
        let (Some(first), Some(last)) = (pair.chars().next(), pair.chars().next_back()) else {
            return false;
        };
        let before = at.checked_sub(1).and_then(|n| terms.get(n));
        terms[at].chunks == 0
            && is_pair(pair)
            && is_present(before, &|stem| stem.ends_with(first))
            && is_present(terms.get(at + 1), &|stem| stem.starts_with(last))
    };
    let joints: Vec<bool> = (0..terms.len()).map(is_joint).collect();
    terms.into_iter().zip(joints).filter(|(_, is_joint)| !is_joint).map(|(term, _)| term).collect()
}

#[cfg(test)]
mod tests {
    use cairn_tokenizer::words::query_stems;

    use super::*;

    fn remaining(query: &str, absent: &[&str]) -> String {
        let term = |stem: &cairn_tokenizer::words::Stem| Term {
            stem: *stem,
            chunks: u64::from(!absent.contains(&&**stem)),
            rarity: 1.0,
        };
        let terms = without_joints(query_stems(query).iter().map(term).collect());
        terms.iter().map(|t| t.stem.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn absent_pairs_between_present_words_are_removed() {
        assert_eq!(remaining("配置日志", &["置日"]), "配置 日志");
        assert_eq!(remaining("配置日志", &["置日", "日志"]), "配置 置日 日志");
        assert_eq!(remaining("配置日志", &[]), "配置 置日 日志");
        assert_eq!(remaining("parse file", &["file"]), "pars fil");
    }
}
