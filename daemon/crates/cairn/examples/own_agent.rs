//! A custom agent with its own tool and system text, without a daemon:
//!
//! `cargo run -p cairn-embedded --example own_agent -- http://localhost:8080/v1 "days until 2030-01-01?"`
//!
//! Without arguments a scripted model demonstrates the flow.

use std::sync::Arc;

use cairn::{ApprovalDecision, Failure, FnTool, ScriptedAnswer, ScriptedCall, Session, Step};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Days {
    /// A date such as 2030-01-01.
    until: String,
}

async fn days(args: Days) -> Result<String, Failure> {
    Ok(format!("{} has {} characters; a real tool would count days", args.until, args.until.len()))
}

fn script() -> Arc<cairn::Scripted> {
    let call = ScriptedCall {
        id: None,
        name: "days_until".into(),
        arguments: serde_json::json!({"until": "2030-01-01"}),
    };
    Arc::new(cairn::Scripted::new(vec![
        ScriptedAnswer::new(vec![Step::Call(call)]),
        ScriptedAnswer::new(vec![Step::Text("Soon.".into())]),
    ]))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let builder = match args.first() {
        Some(url) => Session::remote(url, ""),
        None => Session::provider(script()),
    };
    let session = builder
        .system("You count days. Use days_until, then answer in one short sentence.")
        .with_default_tools(false)
        .add_tool(FnTool::new("days_until", "Counts the days until a date.", days))
        .on_approval(|_| ApprovalDecision::Deny)
        .init()
        .await?;
    let question = args.get(1).map_or("how many days until 2030-01-01?", String::as_str);
    let answer = session.chat(question).await?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("{answer}\n").as_bytes()).ok();
    session.close().await;
    Ok(())
}
