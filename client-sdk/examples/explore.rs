//! Explores a folder and prints a summary: `cargo run -p cairn-client-sdk --example explore --
//! FOLDER`.
//!
//! If the daemon is restarted meanwhile, the example continues after the last record.
#![expect(clippy::print_stdout, reason = "an example prints")]

use cairn_client_sdk::{ClientError, Connector, Item};
use cairn_protocol::{envelope::Body, event::AgentEvt, location::Env};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let cairn = Connector::local(Env::from_process()).connect().await?;
    let params = json!({"root": std::path::absolute(&folder).unwrap_or(folder.into())});
    let run: cairn_protocol::explore::RunReceipt =
        cairn.call("orchestrate.explore.start", &params).await?;
    let mut records = cairn.follow(&run.session_id, 0);
    loop {
        let Item::Event(record) = records.next().await? else { continue };
        println!("{}", record.json);
        if let Body::Evt { evt: AgentEvt::Completed { summary } } = record.envelope()?.body {
            println!("{:?}", summary.languages);
            return Ok(());
        }
    }
}
