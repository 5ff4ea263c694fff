//! The placeholder for transformers in builds without the feature, which refuses their folders.

use std::path::Path;

use cairn_protocol::error::{Failure, Reason};

/// The file that marks a folder as a transformer.
pub const WEIGHTS: &str = "model.safetensors";

pub enum Transformer {}

impl Transformer {
    /// Always fails.
    ///
    /// # Errors
    /// `not_supported`, with the command that builds with support.
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let text = format!(
            "model {} is a transformer, which this build does not include: build with 'cargo build --release \
             --features transformer', or name 'builtin' or a folder with a static table",
            folder.display()
        );
        Err(Failure::new(Reason::NotSupported, text))
    }

    pub fn dim(&self) -> usize {
        match *self {}
    }

    pub fn name(&self) -> &str {
        match *self {}
    }

    pub fn hash(&self) -> &[u8; 32] {
        match *self {}
    }

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
    fn transformer_is_refused_with_the_command_that_supports_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(WEIGHTS), "").unwrap();
        let error = Embedder::from_folder(dir.path()).unwrap_err();
        assert_eq!(error.reason, Reason::NotSupported);
        assert!(error.message.contains("--features transformer"), "{}", error.message);
    }
}
