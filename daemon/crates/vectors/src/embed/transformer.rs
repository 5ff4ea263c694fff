//! A BERT model from a folder in the usual layout: `config.json`, `tokenizer.json`,
//! `model.safetensors`.
//!
//! The vector of a text is the mean of its tokens' last states, or the state of the first token if
//! `1_Pooling/config.json` configures it, normalised to length 1. Short texts are batched.

use std::path::Path;

use cairn_protocol::error::{Failure, Reason};
use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use super::bert::{Bert, Shape};

/// The file that marks a folder as a transformer.
pub const WEIGHTS: &str = "model.safetensors";
/// Maximum bytes of the weights.
const MAX_WEIGHTS: u64 = 4 * 1024 * 1024 * 1024;
/// Maximum bytes of any other file.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Maximum tokens of a text, including the two special tokens at its ends.
const MAX_TOKENS: usize = 256;
/// Maximum tokens of a batch, unless a single text has more; larger batches need more memory and
/// are not faster.
const BATCH: usize = 256;
/// Version of the computation; it changes when the same files yield different vectors.
const FORM: &[u8] = b"bert 1";

/// A BERT model with its tokenizer.
pub struct Transformer {
    model: Bert,
    tokenizer: Tokenizer,
    /// True if the state of the first token is the vector instead of the mean of all.
    pools_first_token: bool,
    dim: usize,
    name: String,
    hash: [u8; 32],
}

/// The position of a text, and the ids of its tokens.
type Encoded = (usize, Vec<u32>);

impl Transformer {
    /// Reads a folder and embeds a word to verify the model.
    ///
    /// # Errors
    /// `invalid_params` for a missing or invalid file.
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let bad = |what: String| {
            Failure::new(Reason::InvalidParams, format!("model {}: {what}", folder.display()))
        };
        let read = |name: &str, limit: u64| {
            let path = folder.join(name);
            let size = std::fs::metadata(&path)
                .map_err(|e| bad(format!("cannot read {name}: {e}")))?
                .len();
            if size > limit {
                return Err(bad(format!("{name} has {size} bytes, the limit is {limit}")));
            }
            std::fs::read(&path).map_err(|e| bad(format!("cannot read {name}: {e}")))
        };
        let settings = read("config.json", MAX_FILE)?;
        let config: Value = serde_json::from_slice(&settings)
            .map_err(|e| bad(format!("config.json is not JSON: {e}")))?;
        let shape = Shape::read(&config).map_err(|e| bad(format!("config.json: {e}")))?;
        let words = read("tokenizer.json", MAX_FILE)?;
        let tokenizer =
            tokenizer_of(&words, &shape).map_err(|e| bad(format!("tokenizer.json: {e}")))?;
        let pooling = match folder.join("1_Pooling/config.json").exists() {
            true => read("1_Pooling/config.json", MAX_FILE)?,
            false => Vec::new(),
        };
        let pools_first_token =
            reads_first_token(&pooling).map_err(|e| bad(format!("1_Pooling/config.json: {e}")))?;
        let weights = read(WEIGHTS, MAX_WEIGHTS)?;
        let mut hash = Sha256::new();
        for part in [FORM, &settings[..], &words, &[u8::from(pools_first_token)], &weights] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let model = VarBuilder::from_slice_safetensors(&weights, DType::F32, &Device::Cpu)
            .and_then(|tensors| Bert::load(&tensors, &shape))
            .map_err(|e| {
                bad(format!("{WEIGHTS} does not contain the model of config.json: {}", short(&e)))
            })?;
        let name =
            folder.file_name().map_or_else(|| "model".into(), |n| n.to_string_lossy().into_owned());
        let transformer = Self {
            model,
            tokenizer,
            pools_first_token,
            dim: shape.dim,
            name,
            hash: hash.finalize().into(),
        };
        let probe = transformer
            .forward(&[&(0, transformer.encode("word")?)])
            .map_err(|e| bad(short(&e)))?;
        if !probe.iter().flatten().all(|x| x.is_finite()) {
            return Err(bad(format!("{WEIGHTS} produces vectors that are not finite numbers")));
        }
        Ok(transformer)
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of everything that determines its vectors.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The vectors of texts in their order. `None` if `should_continue` returns false, which is
    /// checked before each batch.
    ///
    /// # Errors
    /// `internal` when the computation fails.
    pub fn embed(
        &self,
        texts: &[String],
        should_continue: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        let encode = |(at, text): (usize, &String)| Ok((at, self.encode(text)?));
        let mut encoded: Vec<Encoded> =
            texts.par_iter().enumerate().map(encode).collect::<Result<_, Failure>>()?;
        encoded.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
        let run = |batch: &Vec<&Encoded>| {
            if !should_continue() {
                return Ok(None);
            }
            let vectors = self.forward(batch).map_err(|e| self.failure(&short(&e)))?;
            Ok(Some(batch.iter().map(|(at, _)| *at).zip(vectors).collect::<Vec<_>>()))
        };
        let computed: Option<Vec<_>> =
            batches(&encoded).par_iter().map(run).collect::<Result<_, Failure>>()?;
        let mut vectors = vec![Vec::new(); texts.len()];
        let Some(computed) = computed else { return Ok(None) };
        for (at, vector) in computed.into_iter().flatten() {
            vectors[at] = vector;
        }
        Ok(Some(vectors))
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let encoding =
            self.tokenizer.encode_fast(text, true).map_err(|e| self.failure(&e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The vectors of one batch.
    fn forward(&self, batch: &[&Encoded]) -> candle_core::Result<Vec<Vec<f32>>> {
        let texts: Vec<&[u32]> = batch.iter().map(|(_, ids)| ids.as_slice()).collect();
        let states = self.model.forward(&texts)?.to_vec2::<f32>()?;
        let mut rest = states.as_slice();
        let pool = |text: &&[u32]| {
            let (own, behind) = rest.split_at(text.len());
            rest = behind;
            let mut sum = vec![0f32; self.dim];
            for state in own.iter().take(if self.pools_first_token { 1 } else { own.len() }) {
                sum.iter_mut().zip(state).for_each(|(s, x)| *s += x);
            }
            let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            if norm > 0.0 {
                sum.iter_mut().for_each(|x| *x /= norm);
            }
            sum
        };
        Ok(texts.iter().map(pool).collect())
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::new(Reason::Internal, format!("model {} cannot embed a text: {why}", self.name))
    }
}

/// Groups texts into batches; `encoded` must be sorted by descending length.
fn batches(encoded: &[Encoded]) -> Vec<Vec<&Encoded>> {
    let mut all: Vec<Vec<&Encoded>> = Vec::new();
    let mut tokens = 0;
    for text in encoded {
        match all.last_mut() {
            Some(last) if tokens + text.1.len() <= BATCH => last.push(text),
            _ => {
                all.push(vec![text]);
                tokens = 0;
            }
        }
        tokens += text.1.len();
    }
    all
}

/// The first line of an error; the following lines are a backtrace.
fn short(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The tokenizer, with truncation and without padding.
fn tokenizer_of(own: &[u8], shape: &Shape) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(own).map_err(|e| e.to_string())?;
    let words = tokenizer.get_vocab_size(true);
    if words > shape.vocabulary {
        return Err(format!("{words} tokens, more than the {} of config.json", shape.vocabulary));
    }
    let max_length = MAX_TOKENS.min(shape.positions);
    tokenizer.with_padding(None);
    tokenizer
        .with_truncation(Some(TruncationParams { max_length, ..TruncationParams::default() }))
        .map_err(|e| e.to_string())?;
    Ok(tokenizer)
}

/// True if the pooling configuration selects the first token; without the file, the mean is used.
fn reads_first_token(own: &[u8]) -> Result<bool, String> {
    if own.is_empty() {
        return Ok(false);
    }
    let own: Value = serde_json::from_slice(own).map_err(|e| format!("not JSON: {e}"))?;
    let is = |name: &str| own[name].as_bool() == Some(true);
    match (is("pooling_mode_mean_tokens"), is("pooling_mode_cls_token")) {
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        _ => Err("only mean pooling and first-token pooling are supported".into()),
    }
}
