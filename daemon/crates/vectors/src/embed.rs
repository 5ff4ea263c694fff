//! The embedding model: a static table, or a transformer from a folder.
//!
//! The built-in table is available beside every model: it compares definitions within a window,
//! which are too many for a transformer to embed during a search.

#[cfg(feature = "transformer")]
mod bert;
mod rows;
#[cfg(feature = "transformer")]
mod transformer;
#[cfg(not(feature = "transformer"))]
#[path = "embed/without.rs"]
mod transformer;

use std::borrow::Cow;
use std::path::Path;

use cairn_protocol::error::{Failure, Reason};
use rayon::prelude::*;

use crate::bulk;
pub use rows::{MAX_WORDS, Table};
use transformer::Transformer;

/// Largest dimension that is accepted.
const MAX_DIM: usize = 1024;
/// Maximum bytes of a text that a transformer receives, far more than its token limit needs.
const MAX_TEXT: usize = 8 * 1024;
/// Chunks per batch of a table, which takes a tenth of a second, and of a transformer, which takes
/// some seconds.
const BATCH: (usize, usize) = (2048, 32);

/// The model that computes vectors of texts.
pub struct Embedder {
    table: Table,
    transformer: Option<Transformer>,
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embedder({})", self.name())
    }
}

impl Embedder {
    /// The built-in model: `static-code-v1` with 384 dimensions.
    ///
    /// # Errors
    /// Never, as long as the tests of this crate pass.
    pub fn builtin() -> Result<Self, Failure> {
        Ok(Self { table: Table::builtin()?, transformer: None })
    }

    /// The embedder that a configuration names: empty or `builtin` for the built-in one, otherwise
    /// a folder.
    ///
    /// # Errors
    /// As [`Embedder::from_folder`].
    pub fn named(name: &str) -> Result<Self, Failure> {
        if matches!(name, "" | "builtin") {
            Self::builtin()
        } else {
            Self::from_folder(Path::new(name))
        }
    }

    /// A model from a folder: a transformer if the folder has a `model.safetensors` (with
    /// `config.json` and `tokenizer.json`), otherwise a static table (`table.bin` and
    /// `vocab.txt`).
    ///
    /// # Errors
    /// `invalid_params` for a missing or invalid file; `not_supported` for a transformer in a build
    /// without the feature.
    pub fn from_folder(folder: &Path) -> Result<Self, Failure> {
        if !folder.is_dir() {
            let why = format!("model {}: there is no such folder", folder.display());
            return Err(Failure::new(Reason::InvalidParams, why));
        }
        if folder.join(transformer::WEIGHTS).exists() {
            Ok(Self { table: Table::builtin()?, transformer: Some(Transformer::load(folder)?) })
        } else {
            Ok(Self { table: Table::from_folder(folder)?, transformer: None })
        }
    }

    /// Number of dimensions of its vectors.
    pub fn dim(&self) -> usize {
        self.transformer.as_ref().map_or(self.table.dim(), Transformer::dim)
    }

    /// The model's name, as `index.status` reports it.
    pub fn name(&self) -> &str {
        self.transformer.as_ref().map_or(self.table.name(), Transformer::name)
    }

    /// SHA-256 of everything that determines its vectors, so that vectors of different models are
    /// never mixed.
    pub fn hash(&self) -> &[u8; 32] {
        self.transformer.as_ref().map_or_else(|| self.table.hash(), Transformer::hash)
    }

    /// The vector of the concatenated pieces of `text`, of length 1; all zero if no word is known.
    ///
    /// # Errors
    /// `internal` when a transformer fails.
    pub fn embed(&self, text: &[&[u8]]) -> Result<Vec<f32>, Failure> {
        let Some(transformer) = &self.transformer else { return Ok(self.table.embed(text)) };
        let vectors = transformer.embed(&[joined(text)], &|| true)?;
        Ok(vectors.and_then(|mut all| all.pop()).unwrap_or_default())
    }

    /// The vectors of many texts of three pieces each, computed by the threads of the current pool.
    /// `None` if `should_continue` returns false, which a transformer checks before each of its
    /// batches.
    ///
    /// # Errors
    /// `internal` when a transformer fails.
    pub fn embed_all(
        &self,
        texts: &[[&[u8]; 3]],
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        let Some(transformer) = &self.transformer else {
            return Ok(Some(texts.par_iter().map(|text| bulk::embed(&self.table, text)).collect()));
        };
        let texts: Vec<String> = texts.iter().map(|text| joined(text)).collect();
        transformer.embed(&texts, should_continue)
    }

    /// The static table that compares parts of windows: the model itself if it is a table,
    /// otherwise the built-in one.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// True if the vectors of the index come from a transformer.
    pub fn is_transformer(&self) -> bool {
        self.transformer.is_some()
    }

    /// Number of chunks that are embedded before their vectors are stored.
    pub fn batch(&self) -> usize {
        if self.is_transformer() { BATCH.1 } else { BATCH.0 }
    }
}

/// Concatenates the pieces up to the limit.
fn joined(pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    for piece in pieces {
        let remaining = MAX_TEXT.saturating_sub(text.len());
        // A character that the limit splits becomes a replacement character, which has no meaning.
        let cut: Cow<'_, str> = String::from_utf8_lossy(&piece[..piece.len().min(remaining)]);
        text.push_str(&cut);
    }
    text
}
