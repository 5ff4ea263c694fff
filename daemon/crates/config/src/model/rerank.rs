//! A second judgement in search.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// A second judgement of the best answers of a hybrid search.
    RerankConfig "camelCase" {
        /// Folder of the model, as for `embedder`; none when empty.
        model: String = String::new(),
        /// Answers that are judged, best first.
        top: u32 = 50,
        /// Milliseconds after which the rest keeps its place.
        max_ms: u64 = 2_000,
    }
}
