//! The model that makes vectors: a static table, or a transformer from a folder.
//!
//! The built-in table is there with every model: it judges definitions within a window, which are too many for a
//! transformer to read during a search.

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

/// Largest dimension accepted.
const MAX_DIM: usize = 1024;
/// Bytes of a text that a transformer is given: far more than the tokens that count take.
const MAX_TEXT: usize = 8 * 1024;
/// Chunks that are embedded before their vectors are stored: by a table within a tenth of a second, by a transformer
/// within some seconds.
const BATCH: (usize, usize) = (2048, 32);

/// What makes vectors of texts.
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
    /// The model inside the binary: `static-code-v1`, 384 dimensions.
    ///
    /// # Errors
    /// Never, as long as the tests of this crate pass.
    pub fn builtin() -> Result<Self, Failure> {
        Ok(Self { table: Table::builtin()?, transformer: None })
    }

    /// The embedder a config names: empty or `builtin` for the one inside, else a folder.
    ///
    /// # Errors
    /// As [`Embedder::from_folder`].
    pub fn named(name: &str) -> Result<Self, Failure> {
        if matches!(name, "" | "builtin") { Self::builtin() } else { Self::from_folder(Path::new(name)) }
    }

    /// A model from a folder: a transformer when it has a `model.safetensors` (with `config.json` and
    /// `tokenizer.json`), else a static table (`table.bin` and `vocab.txt`).
    ///
    /// # Errors
    /// `invalid_params` with what is missing or wrong; `not_supported` for a transformer in a build without the feature.
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

    /// Dimensions of its vectors.
    pub fn dim(&self) -> usize {
        self.transformer.as_ref().map_or(self.table.dim(), Transformer::dim)
    }

    /// Its name, as `index.status` tells it.
    pub fn name(&self) -> &str {
        self.transformer.as_ref().map_or(self.table.name(), Transformer::name)
    }

    /// SHA-256 of all that decides its vectors: those of two models never mix.
    pub fn hash(&self) -> &[u8; 32] {
        self.transformer.as_ref().map_or_else(|| self.table.hash(), Transformer::hash)
    }

    /// The vector of `text` (its pieces one after the other), of length 1; all zero when nothing of it has a meaning.
    ///
    /// # Errors
    /// `internal` when a transformer fails.
    pub fn embed(&self, text: &[&[u8]]) -> Result<Vec<f32>, Failure> {
        let Some(transformer) = &self.transformer else { return Ok(self.table.embed(text)) };
        let made = transformer.embed(&[joined(text)], &|| true)?;
        Ok(made.and_then(|mut all| all.pop()).unwrap_or_default())
    }

    /// The vectors of many texts, each in three pieces, by the threads of the pool this runs in. Nothing when `go_on` said
    /// no, which a transformer asks before each of its batches.
    ///
    /// # Errors
    /// `internal` when a transformer fails.
    pub fn embed_all(
        &self,
        texts: &[[&[u8]; 3]],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        let Some(transformer) = &self.transformer else {
            return Ok(Some(texts.par_iter().map(|text| bulk::embed(&self.table, text)).collect()));
        };
        let texts: Vec<String> = texts.iter().map(|text| joined(text)).collect();
        transformer.embed(&texts, go_on)
    }

    /// The static table that judges parts of windows: its own when it is one, else the built-in one.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Whether that table is not what made the vectors of the index.
    pub(crate) fn is_transformer(&self) -> bool {
        self.transformer.is_some()
    }

    /// Chunks that are embedded before their vectors are stored.
    pub(crate) fn batch(&self) -> usize {
        if self.is_transformer() { BATCH.1 } else { BATCH.0 }
    }
}

/// The pieces as one text, cut at its limit.
fn joined(pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    for piece in pieces {
        let left = MAX_TEXT.saturating_sub(text.len());
        // A character that the cut takes apart is one sign that means nothing.
        let cut: Cow<'_, str> = String::from_utf8_lossy(&piece[..piece.len().min(left)]);
        text.push_str(&cut);
    }
    text
}
