//! Valid and invalid model folders, and their vectors.

use std::fs;
use std::path::Path;

use cairn_protocol::error::Reason;
use cairn_search::Embedder;
use candle_core::{Device, Tensor};
use serde_json::json;

use super::tiny;

fn likeness(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn folder(seed: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    tiny::write(dir.path(), seed);
    dir
}

#[test]
fn vectors_do_not_depend_on_the_batch() {
    let dir = folder(1);
    let model = Embedder::from_folder(dir.path()).unwrap();
    assert_eq!(model.dim(), tiny::DIM);
    let texts: Vec<String> =
        (0..40).map(|n| "parse header ".repeat(n % 11) + &format!("wombat{n}")).collect();
    let pieces: Vec<[&[u8]; 3]> =
        texts.iter().map(|t| [t.as_bytes(), &b" "[..], &b"token"[..]]).collect();
    let together = model.embed_all(&pieces, &|| true).unwrap().unwrap();
    assert_eq!(together.len(), texts.len());
    for (vector, text) in together.iter().zip(&pieces) {
        let alone = model.embed(text).unwrap();
        let norm = alone.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!((norm - 1.0).abs() < 1e-4, "{norm}");
        assert!(vector.iter().zip(&alone).all(|(a, b)| (a - b).abs() < 1e-4));
    }
    assert!(likeness(&together[0], &together[10]) < 0.999);
    assert!(model.embed_all(&pieces, &|| false).unwrap().is_none());
}

#[test]
fn words_beyond_the_256th_do_not_count() {
    let dir = folder(1);
    let model = Embedder::from_folder(dir.path()).unwrap();
    let embed = |text: String| model.embed(&[text.as_bytes()]).unwrap();
    let long = embed("parse ".repeat(300));
    assert_eq!(long, embed("parse ".repeat(254) + &"socket ".repeat(100)));
    assert_ne!(long, embed("parse ".repeat(253) + &"socket ".repeat(100)));
    // Neither invalid UTF-8 nor empty text is an error.
    assert_eq!(model.embed(&[b"\xff\xfe\x00"]).unwrap().len(), tiny::DIM);
    assert_eq!(model.embed(&[b""]).unwrap().len(), tiny::DIM);
}

#[test]
fn hash_covers_everything_that_determines_the_vectors() {
    let (one, other) = (folder(1), folder(2));
    let hash = |dir: &Path| *Embedder::from_folder(dir).unwrap().hash();
    let first = hash(one.path());
    assert_eq!(first, hash(one.path()));
    assert_ne!(first, hash(other.path()));
    let mean = Embedder::from_folder(one.path()).unwrap().embed(&[b"parse header"]).unwrap();
    fs::create_dir(one.path().join("1_Pooling")).unwrap();
    let pooling = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false});
    fs::write(one.path().join("1_Pooling/config.json"), pooling.to_string()).unwrap();
    assert_ne!(first, hash(one.path()));
    assert_ne!(mean, Embedder::from_folder(one.path()).unwrap().embed(&[b"parse header"]).unwrap());
}

type Harm = fn(&Path);

fn configure(folder: &Path, key: &str, value: serde_json::Value) {
    let mut config = tiny::config();
    config[key] = value;
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

fn weights(folder: &Path, change: impl FnOnce(&mut std::collections::HashMap<String, Tensor>)) {
    let mut all = tiny::weights(1);
    change(&mut all);
    candle_core::safetensors::save(&all, folder.join("model.safetensors")).unwrap();
}

#[test]
fn invalid_folder_is_refused_with_the_reason() {
    let cases: &[(Harm, &str)] = &[
        (|f| fs::remove_file(f.join("config.json")).unwrap(), "cannot read config.json"),
        (|f| fs::remove_file(f.join("tokenizer.json")).unwrap(), "cannot read tokenizer.json"),
        (|f| fs::write(f.join("config.json"), "{").unwrap(), "config.json is not JSON"),
        (|f| configure(f, "model_type", json!("roberta")), "model_type is 'roberta'"),
        (|f| configure(f, "hidden_size", json!(2048)), "hidden_size is 2048: 1 to 1024"),
        (|f| configure(f, "hidden_size", json!(null)), "hidden_size is missing"),
        (|f| configure(f, "num_attention_heads", json!(5)), "cannot be shared by 5 heads"),
        (|f| configure(f, "hidden_act", json!("silu")), "hidden_act is 'silu'"),
        (|f| configure(f, "position_embedding_type", json!("relative_key")), "'relative_key'"),
        (|f| configure(f, "vocab_size", json!(10)), "more than the 10 of config.json"),
        (
            |f| configure(f, "num_hidden_layers", json!(3)),
            "model.safetensors does not hold the model",
        ),
        (
            |f| configure(f, "intermediate_size", json!(48)),
            "model.safetensors does not hold the model",
        ),
        (|f| fs::write(f.join("tokenizer.json"), "{}").unwrap(), "tokenizer.json: "),
        (
            |f| {
                let path = f.join("model.safetensors");
                let complete_ = fs::read(&path).unwrap();
                fs::write(&path, &complete_[..complete_.len() / 2]).unwrap();
            },
            "model.safetensors does not hold the model",
        ),
        (
            |f| fs::write(f.join("model.safetensors"), "").unwrap(),
            "model.safetensors does not hold",
        ),
        (
            |f| weights(f, |all| drop(all.remove("encoder.layer.1.output.dense.bias"))),
            "encoder.layer.1.output.dense.bias",
        ),
        (
            |f| {
                weights(f, |all| {
                    let nan = Tensor::from_vec(vec![f32::NAN; tiny::DIM], tiny::DIM, &Device::Cpu)
                        .unwrap();
                    drop(all.insert("encoder.layer.1.output.dense.bias".into(), nan));
                });
            },
            "vectors that are not finite numbers",
        ),
        (
            |f| {
                fs::create_dir(f.join("1_Pooling")).unwrap();
                fs::write(f.join("1_Pooling/config.json"), r#"{"pooling_mode_max_tokens": true}"#)
                    .unwrap();
            },
            "1_Pooling/config.json: pooling by the mean",
        ),
    ];
    for (damage, expected) in cases {
        let dir = folder(1);
        Embedder::from_folder(dir.path()).unwrap();
        damage(dir.path());
        let error = Embedder::from_folder(dir.path()).unwrap_err();
        assert_eq!(error.reason, Reason::InvalidParams);
        assert!(error.message.contains(expected), "{expected}: {}", error.message);
        assert!(error.message.contains(&*dir.path().to_string_lossy()), "{}", error.message);
    }
}
