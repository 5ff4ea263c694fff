//! Ranking in two steps: windows by the data of the index, then the definitions in the best windows
//! by their own text. All weights are defined here, and each result can explain the share of each
//! feature.

mod diverse;
mod page;
mod passages;
mod prior;
mod translations;
mod trim;
mod windows;

use cairn_protocol::search::Share;

use crate::parsed::QueryKind;

pub use diverse::{Repeat, diversify, mmr};
pub use passages::{
    Passage, SemanticContext, by_definitions, is_returned_complete, window_passage,
};
pub use prior::is_secondary;
pub use translations::{Script, Translation, one_translation};
pub use trim::trim;
pub use windows::{Base, Ranker};

/// The kind of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Lexical,
    Semantic,
    /// By words and vectors.
    Hybrid,
}

/// The index of a passage or candidate and its score.
pub type Scored = (usize, f32);

/// Ranking features of a passage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Features {
    /// BM25F of its window, 0 to 1 among the candidates.
    pub window_words: f32,
    /// BM25 of all candidates of its file, 0 to 1.
    pub file_words: f32,
    /// Similarity of the nearest window of its file, 0 to 1.
    pub file_meaning: f32,
    /// Share of the query (by rarity) that the path covers.
    pub path: f32,
    /// 1 if every word of the file's name is in the query. For `mod`, `index` and other common
    /// names the folder's name counts.
    pub file_name: f32,
    /// Share of the query that the best name defined in its window covers.
    pub window_names: f32,
    /// BM25 of the passage itself, as a share of the query.
    pub words: f32,
    /// Coverage of the query (by rarity) by its best line: 0 up to six tenths, 1 for all of it. A
    /// query that quotes a line is looking for that line.
    pub line: f32,
    /// Cosine of the passage with the query, scaled to 0 for the farthest candidate window and 1
    /// for the nearest.
    pub meaning: f32,
    /// Cosine of its name with the query.
    pub name_meaning: f32,
    /// Share of its name that is in the query.
    pub name: f32,
    /// 1 if its name is the query or one of its identifiers; less for a name in another case or
    /// container, or of less weight in a long query.
    pub exact: f32,
    /// The same for a definition that starts in its window, if the query is one name; further
    /// reduced for another case or container.
    pub definition_of: f32,
    /// 1 for a window that contains the query's only name literally.
    pub literal: f32,
    /// Weight of the query's names that its file defines, 0 to 1.
    pub file_names: f32,
    /// 1 if the query contains its file's path, less if the path means several files.
    pub named_path: f32,
    /// 1 for a document.
    pub document: f32,
    /// 1 for a definition, 0 for a window.
    pub definition: f32,
    /// 1 for a type or a module, since queries ask for members more often than for their
    /// containers; 0 if the query names it.
    pub container: f32,
    /// Logarithm of its lines, scaled to 1 from ten lines on; 1 if the query names it.
    pub size: f32,
    /// Cosine with the query by the re-scoring model: 1 for the nearest passage, 0 for the
    /// farthest one and for passages that were not re-scored.
    pub rerank: f32,
    /// Factor of its path.
    pub prior: f32,
}

/// The weight of each feature.
#[derive(Debug)]
pub struct Weights {
    window_words: f32,
    file_words: f32,
    file_meaning: f32,
    path: f32,
    file_name: f32,
    window_names: f32,
    words: f32,
    line: f32,
    meaning: f32,
    name_meaning: f32,
    name: f32,
    exact: f32,
    definition_of: f32,
    literal: f32,
    file_names: f32,
    named_path: f32,
    document: f32,
    definition: f32,
    container: f32,
    size: f32,
    rerank: f32,
}

/// Fitted by `model/fit.py` on the tuning split: on requests, cobra, thor, serde, junit4 and libuv,
/// and on eight larger repositories, which `docs/search.md` names. `exact` and `line` are set by
/// hand, since those queries neither name nor quote their results; `definition_of` is more than all
/// else together, so that a definition of the query's only name is before what resembles it. (The output of the script
/// differs from HYBRID by at most 0.1.)
const HYBRID: Weights = Weights {
    window_words: 0.43,
    file_words: 0.42,
    file_meaning: 0.33,
    path: 0.44,
    file_name: 0.11,
    window_names: 0.0,
    words: 0.0,
    line: 0.8,
    meaning: 0.8,
    name_meaning: 0.75,
    name: 0.0,
    exact: 0.25,
    definition_of: 5.0,
    literal: 0.5,
    file_names: 0.0,
    named_path: 0.4,
    document: 0.0,
    definition: 0.01,
    container: -0.64,
    size: 0.76,
    rerank: 0.0,
};
/// For the texts of issues; fitted by `eval/fit_kinds.py` on 282 issues of 15 repositories, from
/// HYBRID and with a penalty on the distance to it. Small weights are left out.
const ISSUE: Weights = Weights {
    window_words: 0.42,
    file_words: 0.28,
    file_meaning: 0.14,
    path: 0.54,
    file_name: 0.11,
    window_names: 0.0,
    words: -0.19,
    line: 0.1,
    meaning: 0.35,
    name_meaning: 0.68,
    name: -0.12,
    exact: 0.22,
    definition_of: 0.0,
    literal: 0.0,
    file_names: 0.16,
    named_path: 0.4,
    document: 0.0,
    definition: -0.2,
    container: -0.63,
    size: 0.83,
    rerank: 0.0,
};
/// For questions about use; fitted in the same way on 183 headings of documents.
const USE: Weights = Weights {
    window_words: 0.85,
    file_words: 0.05,
    file_meaning: 0.0,
    path: 0.0,
    file_name: 0.26,
    window_names: 0.0,
    words: 0.31,
    line: 0.33,
    meaning: 0.39,
    name_meaning: 1.7,
    name: -0.31,
    exact: 0.25,
    definition_of: 0.0,
    literal: 0.0,
    file_names: 0.0,
    named_path: 0.0,
    document: 0.72,
    definition: -0.79,
    container: -0.64,
    size: -0.45,
    rerank: 0.0,
};
const LEXICAL: Weights = Weights {
    window_words: 0.46,
    file_words: 0.52,
    file_meaning: 0.0,
    path: 0.62,
    file_name: 0.17,
    window_names: 0.67,
    words: 0.41,
    line: 0.8,
    meaning: 0.0,
    name_meaning: 0.0,
    name: 0.35,
    exact: 0.25,
    definition_of: 5.0,
    literal: 0.5,
    file_names: 0.0,
    named_path: 0.4,
    document: 0.0,
    definition: 0.15,
    container: -0.62,
    size: 0.68,
    rerank: 0.0,
};
const SEMANTIC: Weights = Weights {
    window_words: 0.0,
    file_words: 0.0,
    file_meaning: 0.55,
    path: 0.0,
    file_name: 0.0,
    window_names: 0.0,
    words: 0.0,
    line: 0.0,
    meaning: 0.64,
    name_meaning: 0.94,
    name: 0.0,
    exact: 0.0,
    definition_of: 0.0,
    literal: 0.0,
    file_names: 0.0,
    named_path: 0.0,
    document: 0.0,
    definition: -0.13,
    container: -0.6,
    size: 0.98,
    rerank: 0.0,
};
/// For a hybrid search that was re-scored with all-MiniLM-L6-v2; fitted on the tuning split and the
/// six smaller of those repositories.
const RESCORED: Weights = Weights {
    window_words: 0.39,
    file_words: 0.31,
    file_meaning: 0.25,
    path: 0.12,
    file_name: 0.11,
    window_names: 0.0,
    words: 0.0,
    line: 0.8,
    meaning: 0.55,
    name_meaning: 0.64,
    name: 0.0,
    exact: 0.25,
    definition_of: 0.0,
    literal: 0.0,
    file_names: 0.0,
    named_path: 0.0,
    document: 0.0,
    definition: 0.05,
    container: -0.71,
    size: 0.77,
    rerank: 0.28,
};

/// Names of the features that the path's factor does not apply to.
const DEFINITION_OF: &str = "definitionOf";
const LITERAL: &str = "literal";

impl Weights {
    /// The weights of a kind of search and query; `rescored` applies to hybrid searches only.
    pub fn of(mode: Mode, kind: QueryKind, rescored: bool) -> &'static Self {
        match mode {
            Mode::Hybrid if rescored => &RESCORED,
            Mode::Hybrid => match kind {
                QueryKind::Issue => &ISSUE,
                QueryKind::Use => &USE,
                _ => &HYBRID,
            },
            Mode::Lexical => &LEXICAL,
            Mode::Semantic => &SEMANTIC,
        }
    }
}

impl Features {
    /// Each feature by its name on the wire, with its value and weight.
    fn named(&self, w: &Weights) -> [(&'static str, f32, f32); 21] {
        [
            ("windowWords", self.window_words, w.window_words),
            ("fileWords", self.file_words, w.file_words),
            ("fileMeaning", self.file_meaning, w.file_meaning),
            ("path", self.path, w.path),
            ("fileName", self.file_name, w.file_name),
            ("windowNames", self.window_names, w.window_names),
            ("words", self.words, w.words),
            ("line", self.line, w.line),
            ("meaning", self.meaning, w.meaning),
            ("nameMeaning", self.name_meaning, w.name_meaning),
            ("name", self.name, w.name),
            ("exact", self.exact, w.exact),
            (DEFINITION_OF, self.definition_of, w.definition_of),
            (LITERAL, self.literal, w.literal),
            ("fileNames", self.file_names, w.file_names),
            ("namedPath", self.named_path, w.named_path),
            ("document", self.document, w.document),
            ("definition", self.definition, w.definition),
            ("container", self.container, w.container),
            ("size", self.size, w.size),
            ("rerank", self.rerank, w.rerank),
        ]
    }

    /// The score: the weighted sum times the path's factor, which a definition of the query's only
    /// name is exempt from.
    pub fn score(&self, w: &Weights) -> f32 {
        let all = self.named(w);
        let sum: f32 = all.iter().map(|(_, value, weight)| value * weight).sum();
        let exempt = self.definition_of * w.definition_of + self.literal * w.literal;
        (sum - exempt) * self.prior + exempt
    }

    /// Each feature by its name, and the path's factor as `prior`.
    pub fn values(&self) -> Vec<(&'static str, f32)> {
        let named = self.named(&HYBRID);
        named
            .iter()
            .map(|(name, value, _)| (*name, *value))
            .chain([("prior", self.prior)])
            .collect()
    }

    /// The share of each feature in `score`, the largest first; the shares add up to the score. The
    /// reduction of a further result of the same file is `repeat`; a path's factor below 1 is
    /// listed without a share.
    pub fn shares(&self, w: &Weights, score: f32) -> Vec<Share> {
        let mut all: Vec<Share> = self
            .named(w)
            .into_iter()
            .filter(|(_, value, weight)| value * weight != 0.0)
            .map(|(feature, value, weight)| Share {
                feature: feature.to_owned(),
                value: f64::from(value),
                share: f64::from(
                    value
                        * weight
                        * if [DEFINITION_OF, LITERAL].contains(&feature) {
                            1.0
                        } else {
                            self.prior
                        },
                ),
            })
            .collect();
        let unrepeated = self.score(w);
        if unrepeated > score {
            let (value, share) = (f64::from(score / unrepeated), f64::from(score - unrepeated));
            all.push(Share { feature: "repeat".to_owned(), value, share });
        }
        all.sort_by(|a, b| b.share.abs().total_cmp(&a.share.abs()));
        if self.prior < 1.0 {
            all.push(Share {
                feature: "prior".to_owned(),
                value: f64::from(self.prior),
                share: 0.0,
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_score() {
        let f = Features {
            window_words: 0.5,
            meaning: 0.9,
            definition: 1.0,
            prior: 0.3,
            ..Features::default()
        };
        let w = Weights::of(Mode::Hybrid, QueryKind::Text, false);
        for (score, share_count) in [(f.score(w), 4), (0.9 * f.score(w), 5)] {
            let shares = f.shares(w, score);
            let sum: f64 = shares.iter().map(|s| s.share).sum();
            assert!(
                (sum - f64::from(score)).abs() < 1e-6 && shares.len() == share_count,
                "{shares:?}"
            );
        }
    }
}
