//! The built-in model finds the definition that a sentence describes, in packages that it was not
//! trained on.

use cairn_vectors::Embedder;

/// Minimum mean reciprocal rank of a model on the pairs of `model/floor.jsonl`; the model card has
/// the figure of the built-in one.
const FLOOR: f32 = 0.82;

#[test]
fn mean_reciprocal_rank_on_unseen_packages_reaches_the_floor() {
    let model = Embedder::builtin().unwrap();
    let pairs: Vec<serde_json::Value> = include_str!("../model/floor.jsonl")
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(pairs.len() >= 48);
    let vectors = |key: &str| -> Vec<Vec<f32>> {
        pairs.iter().map(|p| model.embed(&[p[key].as_str().unwrap().as_bytes()]).unwrap()).collect()
    };
    let (docs, code) = (vectors("doc"), vectors("code"));
    let likeness = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let reciprocal = |(at, doc): (usize, &Vec<f32>)| {
        let own = likeness(doc, &code[at]);
        1.0 / code.iter().filter(|c| likeness(doc, c) >= own).count() as f32
    };
    let mean = docs.iter().enumerate().map(reciprocal).sum::<f32>() / pairs.len() as f32;
    assert!(mean >= FLOOR, "mean reciprocal rank {mean}");
}
