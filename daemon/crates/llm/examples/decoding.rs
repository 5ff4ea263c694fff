//! Measures the decoding of answers in MB/s: `cargo run --release -p cairn-llm --example decoding`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::time::Instant;

use cairn_llm::{Decoder, Format, Limits, ModelRequest};

const SIZE: usize = 30_000_000;
/// Typical size of a read from a socket.
const PIECE: usize = 16 * 1024;

fn main() {
    for (format, event) in [
        (
            Format::OpenAi,
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1763712000,\"model\":\"m\",\"system_fingerprint\":\"f\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
        ),
        (
            Format::Anthropic,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n",
        ),
        (
            Format::Ollama,
            "{\"model\":\"m\",\"created_at\":\"2025-11-21T08:00:00.123456Z\",\"message\":{\"role\":\"assistant\",\"content\":\" word\"},\"done\":false}\n",
        ),
    ] {
        let body = event.repeat(SIZE / event.len());
        let mut best = f64::MAX;
        let mut chunks = 0;
        for _ in 0..5 {
            let mut decoder =
                Decoder::new(format, "it", &ModelRequest::default(), Limits::default());
            let started = Instant::now();
            chunks = 0;
            for piece in body.as_bytes().chunks(PIECE) {
                decoder.feed(piece).unwrap();
                chunks += std::iter::from_fn(|| decoder.next()).count();
            }
            best = best.min(started.elapsed().as_secs_f64());
        }
        let (megabytes, events) = (body.len() as f64 / 1e6 / best, chunks as f64 / best);
        println!(
            "{format:?}: {megabytes:.0} MB/s, {events:.0} events/s (best of 5, {chunks} events)"
        );
    }
}
