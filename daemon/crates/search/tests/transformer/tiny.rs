//! A BERT model of two layers with 32 dimensions, whose weights come from a fixed sequence of
//! numbers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde_json::{Value, json};

pub const DIM: usize = 32;
const INNER: usize = 64;
const LAYERS: usize = 2;
/// Complete words of its vocabulary; other words are split into letters.
const WORDS: &[&str] = &[
    "parse", "header", "socket", "listen", "wombat", "token", "verify", "matrix", "invert", "read",
    "file", "fn",
];

/// The content of `config.json`.
pub fn config() -> Value {
    json!({
        "model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu", "hidden_size": DIM,
        "intermediate_size": INNER, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "num_attention_heads": 4, "num_hidden_layers": LAYERS, "type_vocab_size": 2,
        "vocab_size": vocabulary().len(),
    })
}

fn vocabulary() -> Vec<String> {
    let mut all: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned).into();
    all.extend(WORDS.iter().map(|w| (*w).to_owned()));
    for sign in (b'a'..=b'z').chain(b'0'..=b'9') {
        all.push(char::from(sign).to_string());
        all.push(format!("##{}", char::from(sign)));
    }
    all.extend(["(", ")", "{", "}", ".", ",", ";", "_"].map(str::to_owned));
    all
}

fn tokenizer() -> Value {
    let ids: HashMap<String, usize> = vocabulary().into_iter().zip(0..).collect();
    let special = |word: &str| json!({"SpecialToken": {"id": word, "type_id": 0}});
    let known = |word: &str| json!({"id": word, "ids": [ids[word]], "tokens": [word]});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "special_tokens": {"[CLS]": known("[CLS]"), "[SEP]": known("[SEP]")}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": ids},
    })
}

/// Reproducible numbers between about -0.5 and 0.5.
struct Numbers(u64);

impl Numbers {
    fn tensor(&mut self, shape: &[usize], scale: f32) -> Tensor {
        let count: usize = shape.iter().product();
        let next = |_| {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * scale
        };
        Tensor::from_vec((0..count).map(next).collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap()
    }
}

/// All tensors of the model.
pub fn weights(seed: u64) -> HashMap<String, Tensor> {
    let mut numbers = Numbers(seed);
    let mut all = HashMap::new();
    let mut put = |name: String, tensor: Tensor| drop(all.insert(name, tensor));
    let norm = |name: &str, put: &mut dyn FnMut(String, Tensor)| {
        put(
            format!("{name}.weight"),
            Tensor::from_vec(vec![1f32; DIM], DIM, &Device::Cpu).unwrap(),
        );
        put(format!("{name}.bias"), Tensor::from_vec(vec![0f32; DIM], DIM, &Device::Cpu).unwrap());
    };
    for (name, rows, scale) in
        [("word", vocabulary().len(), 1.0), ("position", 512, 0.05), ("token_type", 2, 0.05)]
    {
        put(format!("embeddings.{name}_embeddings.weight"), numbers.tensor(&[rows, DIM], scale));
    }
    norm("embeddings.LayerNorm", &mut put);
    for layer in 0..LAYERS {
        let at = format!("encoder.layer.{layer}");
        let linear = [
            ("attention.self.query", DIM, DIM),
            ("attention.self.key", DIM, DIM),
            ("attention.self.value", DIM, DIM),
            ("attention.output.dense", DIM, DIM),
            ("intermediate.dense", INNER, DIM),
            ("output.dense", DIM, INNER),
        ];
        for (name, to, from) in linear {
            put(format!("{at}.{name}.weight"), numbers.tensor(&[to, from], 0.3));
            put(format!("{at}.{name}.bias"), numbers.tensor(&[to], 0.1));
        }
        norm(&format!("{at}.attention.output.LayerNorm"), &mut put);
        norm(&format!("{at}.output.LayerNorm"), &mut put);
    }
    all
}

/// Writes the model folder.
pub fn write(folder: &Path, seed: u64) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config().to_string()).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer().to_string()).unwrap();
    candle_core::safetensors::save(&weights(seed), folder.join("model.safetensors")).unwrap();
}
