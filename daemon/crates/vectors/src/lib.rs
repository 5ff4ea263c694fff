//! Vectors of text: embedding models, the stored form of vectors, and the index that scans them.

mod bulk;
mod dense;
mod embed;
mod simd;
mod vector;

pub use bulk::embed as embed_cached;
pub use dense::{DenseIndex, Records, Scan};
pub use embed::{Embedder, Table};
pub use vector::{pack, unpack};
