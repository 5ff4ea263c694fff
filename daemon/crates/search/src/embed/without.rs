//! What stands for a transformer in a build without the feature: a folder of one is refused.

use std::path::Path;

use cairn_protocol::error::{Failure, Reason};

/// The file that makes a folder one of a transformer.
pub const WEIGHTS: &str = "model.safetensors";

/// There is none.
pub enum Transformer {}

impl Transformer {
    /// Refuses.
    ///
    /// # Errors
    /// `not_supported`, with how to build what supports it.
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let text = format!(
            "model {} is a transformer, which this build leaves out: build with 'cargo build --release \
             --features transformer', or name 'builtin' or a folder with a static table",
            folder.display()
        );
        Err(Failure::new(Reason::NotSupported, text))
    }

    /// Dimensions.
    pub fn dim(&self) -> usize {
        match *self {}
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Its hash.
    pub fn hash(&self) -> &[u8; 32] {
        match *self {}
    }

    /// Vectors.
    ///
    /// # Errors
    /// None.
    pub fn embed(
        &self,
        _: &[String],
        _: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Embedder;

    #[test]
    fn a_transformer_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(WEIGHTS), "").unwrap();
        let error = Embedder::from_folder(dir.path()).unwrap_err();
        assert_eq!(error.reason, Reason::NotSupported);
        assert!(error.message.contains("--features transformer"), "{}", error.message);
    }
}
