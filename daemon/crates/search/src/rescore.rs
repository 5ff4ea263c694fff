//! Re-scores the best passages of a hybrid search with a model that is too slow for all of them.
//!
//! Its similarity is one more feature of the ranker. Vectors of passages are cached by the hash of
//! their text.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use crate::query::Query;
use crate::rank::Mode;
use crate::ranking::{self, Ranking};
use cairn_index_base::{CancelFlag, lock};
use cairn_vectors::Embedder;

/// Vectors per generation of the cache, which has two. A vector of 384 dimensions takes 1.6 KB.
const GENERATION_SIZE: usize = 4096;
/// Texts per thread that are embedded between two checks of the clock.
const STEP: usize = 4;

/// Limits of re-scoring for one search.
#[derive(Debug, Clone, Copy)]
pub struct RescoreLimits {
    /// Number of best passages, 1 to 200.
    pub top: usize,
    /// Time limit, after which the remaining passages are not re-scored. Texts that are being
    /// embedded may exceed it by some tenths of a second.
    pub time: Duration,
    /// Number of threads, 1 to 64.
    pub threads: usize,
}

/// The re-scoring model with its cache of vectors.
pub struct Rescorer {
    model: std::sync::Arc<Embedder>,
    limits: RescoreLimits,
    pool: rayon::ThreadPool,
    cache: Mutex<VectorCache>,
}

/// The extent to which a search was re-scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescored {
    /// Not at all: there is no model, or the search is not hybrid.
    Off,
    Complete,
    /// Only the best passages within the time limit.
    Partial,
    /// None, because the time limit passed or the model failed.
    TimedOut,
}

impl Rescored {
    /// True if the feature has values.
    pub fn counts(self) -> bool {
        matches!(self, Self::Complete | Self::Partial)
    }

    /// True if fewer passages were re-scored than requested.
    pub fn is_partial(self) -> bool {
        matches!(self, Self::Partial | Self::TimedOut)
    }
}

impl std::fmt::Debug for Rescorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rescorer({:?}, {:?})", self.model, self.limits)
    }
}

impl Rescorer {
    /// Creates a rescorer with its own threads.
    ///
    /// # Errors
    /// `internal` when no thread can be started.
    pub fn new(model: std::sync::Arc<Embedder>, limits: RescoreLimits) -> Result<Self, Failure> {
        let limits = RescoreLimits {
            top: limits.top.clamp(1, 200),
            threads: limits.threads.clamp(1, 64),
            ..limits
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(limits.threads)
            .thread_name(|n| format!("cairn-rescore-{n}"))
            .build()
            .map_err(|e| {
                Failure::new(Reason::Internal, format!("cannot start threads for re-scoring: {e}"))
            })?;
        Ok(Self { model, limits, pool, cache: Mutex::default() })
    }

    /// The cosine of each text with the query; `None` for the last texts if the time limit was
    /// reached.
    fn cosines(
        &self,
        query: &str,
        texts: &[String],
        cancel: &CancelFlag,
    ) -> Result<Vec<Option<f32>>, Failure> {
        let started = Instant::now();
        let query_vector = self.model.embed(&[query.as_bytes()])?;
        let similarity = |v: &[f32]| v.iter().zip(&query_vector).map(|(a, b)| a * b).sum::<f32>();
        let keys: Vec<Key> = texts.iter().map(|text| key(text)).collect();
        let mut cosines: Vec<Option<f32>> = {
            let mut cache = lock(&self.cache);
            keys.iter().map(|key| cache.get(key).map(&similarity)).collect()
        };
        let uncached: Vec<usize> = (0..texts.len()).filter(|i| cosines[*i].is_none()).collect();
        for step in uncached.chunks(STEP * self.limits.threads) {
            cancel.check()?;
            if started.elapsed() >= self.limits.time {
                break;
            }
            let some: Vec<[&[u8]; 3]> =
                step.iter().map(|i| [texts[*i].as_bytes(), &b""[..], &b""[..]]).collect();
            let vectors =
                self.pool.install(|| self.model.embed_all(&some, &|| !cancel.is_cancelled()))?;
            let mut cache = lock(&self.cache);
            for (i, vector) in step.iter().zip(vectors.into_iter().flatten()) {
                cosines[*i] = Some(similarity(&vector));
                cache.insert(keys[*i], vector.into());
            }
        }
        cancel.check()?;
        Ok(cosines)
    }
}

type Key = [u8; 16];

fn key(text: &str) -> Key {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    *hash.first_chunk().unwrap_or(&[0; 16])
}

/// A cache of vectors by the hash of their text, with two generations.
#[derive(Default)]
struct VectorCache {
    recent: FxHashMap<Key, Box<[f32]>>,
    older: FxHashMap<Key, Box<[f32]>>,
}

impl VectorCache {
    fn get(&mut self, key: &Key) -> Option<&[f32]> {
        if let Some(vector) = self.older.remove(key) {
            self.insert(*key, vector);
        }
        self.recent.get(key).map(|v| &**v)
    }

    fn insert(&mut self, key: Key, vector: Box<[f32]>) {
        if self.recent.len() >= GENERATION_SIZE {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, vector);
    }
}

/// Re-scores the best passages of a hybrid search and sorts all passages again.
///
/// # Errors
/// `cancelled`, or when a text cannot be read. A failure of the model leaves the order unchanged.
pub fn rescore(query: &Query<'_>, mut ranking: Ranking) -> Result<Ranking, Failure> {
    let configured = query.roots.first().and_then(|root| root.index.opts.rescorer.clone());
    let Some(rescorer) = configured.filter(|_| query.mode == Mode::Hybrid) else {
        return Ok(ranking);
    };
    let top: Vec<usize> =
        ranking.scored.iter().take(rescorer.limits.top).map(|(i, _)| *i).collect();
    let text = |i: &usize| {
        let passage = &ranking.passages[*i];
        let path = ranking.candidates[passage.candidate].path.replace('/', " ");
        Ok(format!("{path} {}", ranking.text(query, passage)?))
    };
    let texts: Vec<String> = top.iter().map(text).collect::<Result<_, Failure>>()?;
    let cosines = match rescorer.cosines(&query.params.query, &texts, &query.cancel) {
        Ok(cosines) => cosines,
        Err(error) if error.reason == Reason::Cancelled => return Err(error),
        Err(error) => {
            tracing::warn!(error = error.message, "re-scoring failed");
            vec![None; top.len()]
        }
    };
    ranking.rescored = match cosines.iter().flatten().count() {
        all if all == cosines.len() => Rescored::Complete,
        0 => Rescored::TimedOut,
        _ => Rescored::Partial,
    };
    let known = || cosines.iter().flatten().copied();
    let low = known().fold(f32::MAX, f32::min);
    let range = (known().fold(f32::MIN, f32::max) - low).max(1e-6);
    for (i, cosine) in top.iter().zip(&cosines) {
        ranking.passages[*i].features.rerank = cosine.map_or(0.0, |cosine| (cosine - low) / range);
    }
    ranking.scored =
        ranking::sorted(&ranking.candidates, &ranking.passages, ranking.weights(query));
    Ok(ranking)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_used_vectors_stay_and_the_cache_is_bounded() {
        let mut cache = VectorCache::default();
        let at = |n: usize| key(&n.to_string());
        for n in 0..5 * GENERATION_SIZE {
            cache.insert(at(n), vec![n as f32].into());
            assert!(cache.get(&at(0)).is_some(), "{n}");
            assert!(cache.recent.len() <= GENERATION_SIZE && cache.older.len() <= GENERATION_SIZE);
        }
        assert_eq!(
            cache.get(&at(5 * GENERATION_SIZE - 1)),
            Some(&[(5 * GENERATION_SIZE - 1) as f32][..])
        );
        assert_eq!(cache.get(&at(1)), None);
    }
}
