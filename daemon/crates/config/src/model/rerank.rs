//! Reranking of search results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Reranking of the best results of a hybrid search by a second model.
    RerankConfig "camelCase" {
        /// Folder of the model, as for `embedder`; no reranking when empty.
        model: String = String::new(),
        /// Number of results that are reranked, best first.
        top: u32 = 50,
        /// Milliseconds after which the remaining results stay in their order.
        max_ms: u64 = 2_000,
    }
}
