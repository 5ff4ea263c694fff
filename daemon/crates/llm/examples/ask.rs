//! Sends a prompt to a model and prints its answer as it arrives.
//!
//!     cargo run -p cairn-llm --example ask -- http://localhost:8080 'Why is the sky blue?' [PROVIDER [MODEL]]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::{error::Error, io::Write};

use cairn_llm::{Chunk, ModelRequest, Settings, connect, find_key};
use cairn_protocol::model::Message;
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, prompt, rest @ ..] = arguments.as_slice() else {
        return Err("usage: ask URL PROMPT [PROVIDER [MODEL]]".into());
    };
    let provider = rest.first().map_or("openai-compatible", String::as_str);
    let model = connect(&Settings {
        provider: provider.to_owned(),
        model: rest.get(1).cloned().unwrap_or_default(),
        endpoint: Some(endpoint.clone()),
        key: find_key(provider, |name| std::env::var(name).ok(), None)?,
        ..Settings::default()
    })?;
    model.prepare().await?;
    eprintln!("{} with {:?} tokens of context", model.model(), model.context_tokens());
    let messages = vec![Message::user(prompt)];
    let request = ModelRequest {
        messages,
        max_tokens: 500,
        prompt_progress: true,
        ..ModelRequest::default()
    };
    let mut answer = model.chat(request).await?;
    while let Some(chunk) = answer.next().await {
        match chunk? {
            Chunk::Text(text) => print!("{text}"),
            Chunk::Reasoning(text) => eprint!("{text}"),
            other => eprintln!("\n{other:?}"),
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}
