//! A second judgement of the best passages of a hybrid search, by a model that is too slow to judge all.
//!
//! What it says is one more feature of the ranker. Vectors of passages are kept, so that they are made once for a text.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::embed::Embedder;
use crate::rank::Mode;
use crate::search::{Query, Ranking};
use crate::sync::{CancelFlag, lock};

/// Vectors that are kept at most: twice this. One of 384 dimensions takes 1.6 KB.
const KEPT: usize = 4096;
/// Texts that are embedded between two looks at the clock, for each thread.
const STEP: usize = 4;

/// How much one search may be re-scored.
#[derive(Debug, Clone, Copy)]
pub struct RescoreLimits {
    /// Passages, best first, 1 to 200.
    pub top: usize,
    /// Time after which the rest keeps its place. It is overstepped by the texts at work, some tenths of a second.
    pub time: Duration,
    /// Threads, 1 to 64.
    pub threads: usize,
}

/// The model that re-scores, and what it has read.
pub struct Rescorer {
    model: std::sync::Arc<Embedder>,
    limits: RescoreLimits,
    pool: rayon::ThreadPool,
    kept: Mutex<Kept>,
}

/// How much of a search was re-scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescored {
    /// Nothing: no model is set, or meaning does not count.
    Not,
    /// What should be.
    Fully,
    /// The best of it, then time was up.
    Partly,
    /// Nothing, because time was up at once or the model failed.
    Late,
}

impl Rescored {
    /// Whether the second judgement counts.
    pub fn counts(self) -> bool {
        matches!(self, Self::Fully | Self::Partly)
    }

    /// Whether less was re-scored than should be.
    pub fn lacks(self) -> bool {
        matches!(self, Self::Partly | Self::Late)
    }
}

impl std::fmt::Debug for Rescorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rescorer({:?}, {:?})", self.model, self.limits)
    }
}

impl Rescorer {
    /// With a model of any kind.
    ///
    /// # Errors
    /// `internal` when the system gives no threads.
    pub fn new(model: std::sync::Arc<Embedder>, limits: RescoreLimits) -> Result<Self, Failure> {
        let limits =
            RescoreLimits { top: limits.top.clamp(1, 200), threads: limits.threads.clamp(1, 64), ..limits };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(limits.threads)
            .thread_name(|n| format!("cairn-rescore-{n}"))
            .build()
            .map_err(|e| Failure::new(Reason::Internal, format!("no threads for re-scoring: {e}")))?;
        Ok(Self { model, limits, pool, kept: Mutex::default() })
    }

    /// The cosine of each text with the query; nothing for those that time did not suffice for, which are the last.
    fn cosines(
        &self,
        query: &str,
        texts: &[String],
        cancel: &CancelFlag,
    ) -> Result<Vec<Option<f32>>, Failure> {
        let started = Instant::now();
        let asked = self.model.embed(&[query.as_bytes()])?;
        let near = |v: &[f32]| v.iter().zip(&asked).map(|(a, b)| a * b).sum::<f32>();
        let keys: Vec<Key> = texts.iter().map(|text| key(text)).collect();
        let mut found: Vec<Option<f32>> = {
            let mut kept = lock(&self.kept);
            keys.iter().map(|key| kept.get(key).map(&near)).collect()
        };
        let missing: Vec<usize> = (0..texts.len()).filter(|i| found[*i].is_none()).collect();
        for step in missing.chunks(STEP * self.limits.threads) {
            cancel.check()?;
            if started.elapsed() >= self.limits.time {
                break;
            }
            let some: Vec<[&[u8]; 3]> =
                step.iter().map(|i| [texts[*i].as_bytes(), &b""[..], &b""[..]]).collect();
            let made = self.pool.install(|| self.model.embed_all(&some, &|| !cancel.is_cancelled()))?;
            let mut kept = lock(&self.kept);
            for (i, vector) in step.iter().zip(made.into_iter().flatten()) {
                found[*i] = Some(near(&vector));
                kept.put(keys[*i], vector.into());
            }
        }
        cancel.check()?;
        Ok(found)
    }
}

type Key = [u8; 16];

fn key(text: &str) -> Key {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    *hash.first_chunk().unwrap_or(&[0; 16])
}

/// Vectors by the hash of their text: those used lately, and those used before them.
#[derive(Default)]
struct Kept {
    new: FxHashMap<Key, Box<[f32]>>,
    old: FxHashMap<Key, Box<[f32]>>,
}

impl Kept {
    fn get(&mut self, key: &Key) -> Option<&[f32]> {
        if let Some(vector) = self.old.remove(key) {
            self.put(*key, vector);
        }
        self.new.get(key).map(|v| &**v)
    }

    fn put(&mut self, key: Key, vector: Box<[f32]>) {
        if self.new.len() >= KEPT {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, vector);
    }
}

impl Query<'_> {
    /// Lets the model judge the best passages, and puts all in order again.
    ///
    /// # Errors
    /// `cancelled`, or when a text cannot be read. A model that fails leaves the order as it is.
    pub fn rescore(&mut self, ranking: &mut Ranking) -> Result<(), Failure> {
        let set = self.roots.first().and_then(|index| index.opts.rescorer.clone());
        let Some(rescorer) = set.filter(|_| self.mode == Mode::Hybrid) else { return Ok(()) };
        let top: Vec<usize> = ranking.scored.iter().take(rescorer.limits.top).map(|(i, _)| *i).collect();
        let text = |i: &usize| {
            let passage = &ranking.passages[*i];
            let path = self.candidates[passage.candidate].path.replace('/', " ");
            Ok(format!("{path} {}", self.text(passage, &ranking.texts)?))
        };
        let texts: Vec<String> = top.iter().map(text).collect::<Result<_, Failure>>()?;
        let cosines = match rescorer.cosines(&self.params.query, &texts, &self.cancel) {
            Ok(cosines) => cosines,
            Err(error) if error.reason == Reason::Cancelled => return Err(error),
            Err(error) => {
                tracing::warn!(error = error.message, "not re-scored");
                vec![None; top.len()]
            }
        };
        self.rescored = match cosines.iter().flatten().count() {
            all if all == cosines.len() => Rescored::Fully,
            0 => Rescored::Late,
            _ => Rescored::Partly,
        };
        let known = || cosines.iter().flatten().copied();
        let low = known().fold(f32::MAX, f32::min);
        let range = (known().fold(f32::MIN, f32::max) - low).max(1e-6);
        for (i, cosine) in top.iter().zip(&cosines) {
            ranking.passages[*i].features.rerank = cosine.map_or(0.0, |cosine| (cosine - low) / range);
        }
        ranking.scored = self.sorted(&ranking.passages);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_bounded() {
        let mut kept = Kept::default();
        let at = |n: usize| key(&n.to_string());
        for n in 0..5 * KEPT {
            kept.put(at(n), vec![n as f32].into());
            assert!(kept.get(&at(0)).is_some(), "{n}");
            assert!(kept.new.len() <= KEPT && kept.old.len() <= KEPT);
        }
        assert_eq!(kept.get(&at(5 * KEPT - 1)), Some(&[(5 * KEPT - 1) as f32][..]));
        assert_eq!(kept.get(&at(1)), None);
    }
}
