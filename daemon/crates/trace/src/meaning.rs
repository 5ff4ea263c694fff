//! Entries of the history with a meaning similar to a query's, by vectors of their texts.

use std::sync::Arc;

use cairn_store::{
    StoreError,
    rusqlite::{Connection, params},
};

/// Number of entries that are compared, newest first.
const MAX_COMPARED: u32 = 200_000;
/// Cosine below which two texts have nothing in common.
const MIN_COSINE: f32 = 0.55;
/// Bytes of a text that are embedded.
const MAX_TEXT: usize = 4_000;
/// Scale of a stored value.
const SCALE: f32 = 127.0;

/// An embedding model for texts of the history.
pub trait TextEmbedder: Send + Sync {
    /// Returns the vector of a text, of length 1, or empty if there is none.
    fn embed(&self, text: &str) -> Vec<f32>;

    /// Returns a number that identifies the model: vectors of two models are never compared.
    fn model(&self) -> i64;
}

/// Stores the vector of an entry's text.
pub fn add(
    tx: &Connection,
    embedder: &Arc<dyn TextEmbedder>,
    entry: i64,
    text: &str,
) -> Result<(), StoreError> {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let vector = quantized(&embedder.embed(text.get(..end).unwrap_or_default()));
    if !vector.is_empty() {
        tx.prepare_cached("INSERT OR REPLACE INTO history_vector VALUES (?1, ?2, ?3)")?
            .execute(params![entry, embedder.model(), vector])?;
    }
    Ok(())
}

/// Returns the entries nearest to a query, best first, at most `limit`.
pub fn nearest(
    conn: &Connection,
    embedder: &Arc<dyn TextEmbedder>,
    query: &str,
    limit: usize,
) -> Result<Vec<i64>, StoreError> {
    let query = quantized(&embedder.embed(query));
    if query.is_empty() {
        return Ok(vec![]);
    }
    let mut all = conn.prepare_cached(
        "SELECT id, vec FROM history_vector WHERE model = ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let mut rows = all.query(params![embedder.model(), MAX_COMPARED])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cosine = cosine(row.get_ref(1)?.as_blob().unwrap_or_default(), &query);
        if cosine >= MIN_COSINE {
            found.push((cosine, row.get::<_, i64>(0)?));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    found.truncate(limit);
    Ok(found.into_iter().map(|(_, entry)| entry).collect())
}

/// Returns a vector with one byte per value; empty for one without a direction.
fn quantized(vector: &[f32]) -> Vec<u8> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length == 0.0 {
        return vec![];
    }
    let byte = |value: &f32| ((value / length * SCALE).round() as i8).to_le_bytes();
    vector.iter().flat_map(byte).collect()
}

fn cosine(one: &[u8], other: &[u8]) -> f32 {
    let value = |byte: &u8| i32::from(i8::from_le_bytes([*byte]));
    if one.len() != other.len() {
        return 0.0;
    }
    let (mut dot, mut squares) = (0, (0, 0));
    for (a, b) in one.iter().map(value).zip(other.iter().map(value)) {
        dot += a * b;
        squares = (squares.0 + a * a, squares.1 + b * b);
    }
    dot as f32 / ((squares.0 as f32) * (squares.1 as f32)).sqrt().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_of_quantized_vectors() {
        let one = quantized(&[3.0, 4.0]);
        assert!((cosine(&one, &quantized(&[0.6, 0.8])) - 1.0).abs() < 0.01);
        assert!(cosine(&one, &quantized(&[-4.0, 3.0])).abs() < 0.01);
        assert!(cosine(&one, &quantized(&[-3.0, -4.0])) < -0.99);
        assert_eq!((cosine(&one, &[1]), quantized(&[0.0]).len()), (0.0, 0));
    }
}
