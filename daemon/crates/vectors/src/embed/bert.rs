//! The forward pass of BERT on candle's tensors.
//!
//! Texts of a batch are concatenated without padding; only attention separates them. The
//! implementation of candle-transformers is not used because it pads, masks and runs every sum as a
//! separate pass, which threads wait for.

use candle_core::{CpuStorage, D, Device, InplaceOp2, InplaceOp3, Layout, Module, Result, Tensor};
use candle_nn::{LayerNorm, VarBuilder};
use serde_json::Value;

use super::MAX_DIM;

/// The dimensions of a model, read from `config.json`.
pub struct Shape {
    pub vocabulary: usize,
    pub dim: usize,
    pub positions: usize,
    heads: usize,
    layers: usize,
    intermediate: usize,
    token_types: usize,
    epsilon: f64,
    activation: Activation,
}

/// The activation function of a layer's feed-forward part.
#[derive(Clone, Copy)]
enum Activation {
    Gelu,
    GeluByTanh,
    Relu,
}

impl Shape {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// A message with the key that is missing or not supported.
    pub fn read(config: &Value) -> std::result::Result<Self, String> {
        let kind = config["model_type"].as_str().unwrap_or("none");
        if kind != "bert" {
            return Err(format!("model_type is '{kind}': only 'bert' is supported"));
        }
        let number = |name: &str, limit: u64| match config[name].as_u64() {
            Some(n) if (1..=limit).contains(&n) => Ok(n as usize),
            Some(n) => Err(format!("{name} is {n}: 1 to {limit} are supported")),
            None => Err(format!("{name} is missing")),
        };
        let activation = match config["hidden_act"].as_str().unwrap_or("gelu") {
            "gelu" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluByTanh,
            "relu" => Activation::Relu,
            other => {
                return Err(format!(
                    "hidden_act is '{other}': gelu, gelu_new and relu are supported"
                ));
            }
        };
        let positions = config["position_embedding_type"].as_str().unwrap_or("absolute");
        if positions != "absolute" {
            return Err(format!(
                "position_embedding_type is '{positions}': only 'absolute' is supported"
            ));
        }
        let shape = Self {
            vocabulary: number("vocab_size", 2_000_000)?,
            dim: number("hidden_size", MAX_DIM as u64)?,
            positions: number("max_position_embeddings", 65_536)?,
            heads: number("num_attention_heads", 64)?,
            layers: number("num_hidden_layers", 48)?,
            intermediate: number("intermediate_size", 16_384)?,
            token_types: number("type_vocab_size", 16)?,
            epsilon: config["layer_norm_eps"].as_f64().unwrap_or(1e-12),
            activation,
        };
        if !shape.dim.is_multiple_of(shape.heads) {
            return Err(format!(
                "hidden_size {} cannot be shared by {} heads",
                shape.dim, shape.heads
            ));
        }
        Ok(shape)
    }
}

pub struct Bert {
    words: Tensor,
    /// Position embeddings plus the type embedding of a first sentence, since there is no second
    /// one.
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Query (already divided by the square root of a head's size), key and value.
    input: Linear,
    mixed: Linear,
    mixed_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
    heads: usize,
    activation: Activation,
}

impl Bert {
    /// Loads the tensors.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    pub fn load(all: &VarBuilder<'_>, shape: &Shape) -> Result<Self> {
        let words = "embeddings.word_embeddings.weight";
        let all = if all.contains_tensor(words) { all.clone() } else { all.pp("bert") };
        let dim = shape.dim;
        let token_types =
            all.get((shape.token_types, dim), "embeddings.token_type_embeddings.weight")?;
        let positions = all.get((shape.positions, dim), "embeddings.position_embeddings.weight")?;
        let layer = |n| Layer::load(&all.pp(format!("encoder.layer.{n}")), shape);
        Ok(Self {
            words: all.get((shape.vocabulary, dim), words)?,
            positions: positions.broadcast_add(&token_types.narrow(0, 0, 1)?)?,
            norm: norm(&all, "embeddings.LayerNorm", shape)?,
            layers: (0..shape.layers).map(layer).collect::<Result<_>>()?,
        })
    }

    /// The last states of texts of token ids: one row per token, text after text.
    ///
    /// # Errors
    /// When a token id is invalid or a text has more tokens than the model has positions.
    pub fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let ids: Vec<u32> = texts.concat();
        let positions: Vec<u32> = texts.iter().flat_map(|text| 0..text.len() as u32).collect();
        let count = ids.len();
        let words = self.words.index_select(&Tensor::from_vec(ids, count, &Device::Cpu)?, 0)?;
        let positions =
            self.positions.index_select(&Tensor::from_vec(positions, count, &Device::Cpu)?, 0)?;
        let mut states = self.norm.forward(&(words + positions)?)?;
        let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        for layer in &self.layers {
            states = layer.forward(&states, &lengths)?;
        }
        Ok(states)
    }
}

impl Layer {
    fn load(all: &VarBuilder<'_>, shape: &Shape) -> Result<Self> {
        let (dim, intermediate) = (shape.dim, shape.intermediate);
        let weights_of = |name: &str, out: usize, from: usize| {
            let at = all.pp(name);
            Ok::<_, candle_core::Error>((at.get((out, from), "weight")?, at.get(out, "bias")?))
        };
        let linear = |name: &str, out: usize, from: usize| {
            weights_of(name, out, from).map(|(weight, bias)| Linear { weight, bias })
        };
        let scale = 1.0 / ((dim / shape.heads) as f64).sqrt();
        let query = weights_of("attention.self.query", dim, dim)?;
        let key = weights_of("attention.self.key", dim, dim)?;
        let value = weights_of("attention.self.value", dim, dim)?;
        let weight = Tensor::cat(&[&(query.0 * scale)?, &key.0, &value.0], 0)?;
        let bias = Tensor::cat(&[&(query.1 * scale)?, &key.1, &value.1], 0)?;
        Ok(Self {
            input: Linear { weight, bias },
            mixed: linear("attention.output.dense", dim, dim)?,
            mixed_norm: norm(all, "attention.output.LayerNorm", shape)?,
            up: linear("intermediate.dense", intermediate, dim)?,
            down: linear("output.dense", dim, intermediate)?,
            norm: norm(all, "output.LayerNorm", shape)?,
            heads: shape.heads,
            activation: shape.activation,
        })
    }

    fn forward(&self, states: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let input = self.input.forward(states, None)?;
        let (mut from, mut mixed) = (0, Vec::with_capacity(lengths.len()));
        for length in lengths {
            mixed.push(self.attend(&input.narrow(0, from, *length)?)?);
            from += length;
        }
        let mixed = if mixed.len() == 1 { mixed.remove(0) } else { Tensor::cat(&mixed, 0)? };
        let states = self.mixed_norm.forward(&self.mixed.onto(&mixed, states)?)?;
        let intermediate = self.up.forward(&states, Some(self.activation))?;
        self.norm.forward(&self.down.onto(&intermediate, &states)?)
    }

    /// Self-attention within one text.
    fn attend(&self, input: &Tensor) -> Result<Tensor> {
        let (tokens, wide) = input.dims2()?;
        let dim = wide / 3;
        let parts =
            input.reshape((tokens, 3, self.heads, dim / self.heads))?.permute((1, 2, 0, 3))?;
        let part = |n: usize| parts.narrow(0, n, 1)?.squeeze(0)?.contiguous();
        let scores = part(0)?.matmul(&part(1)?.transpose(D::Minus2, D::Minus1)?)?;
        let shares = candle_nn::ops::softmax_last_dim(&scores)?;
        shares.matmul(&part(2)?)?.transpose(0, 1)?.contiguous()?.reshape((tokens, dim))
    }
}

/// A matrix with a bias.
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn forward(&self, rows: &Tensor, activation: Option<Activation>) -> Result<Tensor> {
        let product = rows.matmul(&self.weight.t()?)?;
        product.inplace_op2(&self.bias, &Finish(activation))?;
        Ok(product)
    }

    /// The same with `others` added in the same pass.
    fn onto(&self, rows: &Tensor, others: &Tensor) -> Result<Tensor> {
        let product = rows.matmul(&self.weight.t()?)?;
        product.inplace_op3(&self.bias, others, &Onto)?;
        Ok(product)
    }
}

/// Adds a bias to each row and applies the activation in one pass.
struct Finish(Option<Activation>);

impl InplaceOp2 for Finish {
    fn name(&self) -> &'static str {
        "finish"
    }

    fn cpu_fwd(
        &self,
        rows: &mut CpuStorage,
        at: &Layout,
        bias: &CpuStorage,
        of: &Layout,
    ) -> Result<()> {
        let bias = values(bias, of)?;
        for row in values_mut(rows, at)?.chunks_exact_mut(bias.len().max(1)) {
            let each = row.iter_mut().zip(bias);
            match self.0 {
                None => each.for_each(|(x, b)| *x += b),
                Some(Activation::Gelu) => each.for_each(|(x, b)| *x = gelu(*x + b)),
                Some(Activation::GeluByTanh) => each.for_each(|(x, b)| *x = gelu_by_tanh(*x + b)),
                Some(Activation::Relu) => each.for_each(|(x, b)| *x = (*x + b).max(0.0)),
            }
        }
        Ok(())
    }
}

/// Adds a bias and another matrix in one pass.
struct Onto;

impl InplaceOp3 for Onto {
    fn name(&self) -> &'static str {
        "onto"
    }

    fn cpu_fwd(
        &self,
        rows: &mut CpuStorage,
        at: &Layout,
        bias: &CpuStorage,
        of: &Layout,
        others: &CpuStorage,
        there: &Layout,
    ) -> Result<()> {
        let (bias, others) = (values(bias, of)?, values(others, there)?);
        let width = bias.len().max(1);
        for (row, other) in
            values_mut(rows, at)?.chunks_exact_mut(width).zip(others.chunks_exact(width))
        {
            row.iter_mut().zip(other).zip(bias).for_each(|((x, y), b)| *x += y + b);
        }
        Ok(())
    }
}

fn values<'a>(storage: &'a CpuStorage, at: &Layout) -> Result<&'a [f32]> {
    match at.contiguous_offsets() {
        Some((from, to)) => Ok(&storage.as_slice::<f32>()?[from..to]),
        None => candle_core::bail!("a matrix is not contiguous"),
    }
}

fn values_mut<'a>(storage: &'a mut CpuStorage, at: &Layout) -> Result<&'a mut [f32]> {
    match (storage, at.contiguous_offsets()) {
        (CpuStorage::F32(all), Some((from, to))) => Ok(&mut all[from..to]),
        _ => candle_core::bail!("a matrix is not contiguous f32"),
    }
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn gelu_by_tanh(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

/// The error function as a quotient of polynomials, accurate to 1e-6; a loop over it is vectorised.
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let over = [
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    let under = [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2];
    let over = over.iter().fold(-2.726_142_3e-10, |sum, part| sum * square + part);
    let under = under.iter().fold(-1.456_607_2e-5, |sum, part| sum * square + part);
    x * over / under
}

fn norm(all: &VarBuilder<'_>, name: &str, shape: &Shape) -> Result<LayerNorm> {
    let at = all.pp(name);
    Ok(LayerNorm::new(at.get(shape.dim, "weight")?, at.get(shape.dim, "bias")?, shape.epsilon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_function_is_accurate() {
        for n in -600..=600 {
            let x = f64::from(n) / 100.0;
            // The Taylor series; beyond 4 the function is 1 to seven digits.
            let (mut term, mut expected) = (x, x);
            for k in 1..200 {
                term *= -x * x / f64::from(k);
                expected += term / f64::from(2 * k + 1);
            }
            expected *= std::f64::consts::FRAC_2_SQRT_PI;
            if x.abs() > 4.0 {
                expected = x.signum();
            }
            let value = f64::from(erf(x as f32));
            assert!((value - expected).abs() < 2e-6, "{x}: {value} {expected}");
        }
    }

    #[test]
    fn both_forms_of_gelu_agree() {
        for n in -80..=80 {
            let x = n as f32 / 10.0;
            assert!((gelu(x) - gelu_by_tanh(x)).abs() < 1e-3, "{x}");
        }
        assert!(gelu(0.0) == 0.0 && (gelu(9.0) - 9.0).abs() < 1e-5);
    }
}
