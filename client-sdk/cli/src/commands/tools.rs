//! `cairn tools`: the list of tools, and single calls.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use cairn_client_sdk::{Client, ClientError, Item};
use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalResolveParams},
    event::AgentEvt,
    session::{Empty, Page, SessionCreateParams},
    tool::{ToolCallParams, ToolInfo, ToolResult},
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    chat::{declared_root, has_keyboard, prompt_for_approval},
    exit::{Failure, INTERRUPTED, OK},
    render::{
        output::{self, plain},
        when,
    },
    session_name,
};

/// Time limit of a call, including the wait for an approval.
const CALL_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Maximum columns of a tool's line.
const COLUMNS: usize = 110;

const EXAMPLES: &str = "\
Examples:
  cairn tools
  cairn tools call read_file '{\"path\": \"README.md\"}'
  cairn tools call write_file '{\"path\": \"a.txt\", \"content\": \"x\"}' --yes

A call goes through the same rules, approvals and audit as a model's. Approvals are requested here: y once, n no; a
for this session, A always in this project, E everywhere, each with Enter; --yes approves once. Without --yes and
without a terminal the call waits for another client; without any it is denied. 'cairn rules' lists what was granted.
Rules of 'permissions.finalDeny' always apply.
Exit codes: 0 done, 1 the tool failed, 2 invalid usage, 3 no such tool or denied, 4 no daemon, 130 interrupted.";

/// Arguments of `cairn tools`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ToolsArgs {
    /// The action; lists the tools when omitted.
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// The registered tools
    List,
    /// Run one tool and print its result
    Call {
        /// The tool
        name: String,
        /// Its arguments, a JSON object
        #[arg(value_name = "JSON", default_value = "{}", hide_default_value = true)]
        arguments: String,
        /// Work in this folder, or in the root of that id
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
        /// Approve all questions of this call
        #[arg(long)]
        yes: bool,
    },
}

/// The approver of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver {
    /// No approver.
    None,
    /// The person at the keyboard.
    Keyboard,
    /// Approved in advance.
    Preapproved,
}

pub async fn run(app: &App<'_>, args: ToolsArgs) -> Result<u8, Failure> {
    match args.action.unwrap_or(Action::List) {
        Action::List => list(app).await,
        Action::Call { name, arguments, root, yes } => {
            let arguments = serde_json::from_str(&arguments).map_err(|e| {
                Failure::usage(format!("the arguments are not JSON: {e}"))
                    .hint("as in '{\"path\": \"a.rs\"}'")
            })?;
            let approver = match yes {
                true => Approver::Preapproved,
                false if crate::chat::has_keyboard() && !app.globals.json => Approver::Keyboard,
                false => Approver::None,
            };
            let connector = app.connector();
            let client = app
                .connect_with(if approver == Approver::None {
                    connector
                } else {
                    connector.approver()
                })
                .await?;
            let location =
                match root.as_deref().and_then(|r| r.to_str()).filter(|r| r.starts_with("root_")) {
                    Some(id) => id.to_owned(),
                    None => {
                        let location = app
                            .canonical(root.as_deref().unwrap_or(&app.location(&client).await?))?;
                        declared_root(app, &client, &location, root.is_some()).await?
                    }
                };
            let title = Some(format!("tools call {name}"));
            let params = SessionCreateParams { title, root: Some(location), ..Default::default() };
            let session = client.session_create(&params).await?.session_id;
            call(app, &client, &ToolCallParams { session_id: session, name, arguments }, approver)
                .await
        }
    }
}

async fn list(app: &App<'_>) -> Result<u8, Failure> {
    let client = app.connect().await?;
    if let Some(page) = app.answer::<Page<ToolInfo>>(&client, "tool.list", &Empty {}).await? {
        output::print(&table(&page.data))?;
    }
    Ok(OK)
}

/// Renders tools, one per line.
pub fn table(all: &[ToolInfo]) -> String {
    let width = all.iter().map(|t| t.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for tool in all {
        let kind = if tool.read_only { style("reads ").green() } else { style("writes").yellow() };
        let mut notes = String::new();
        for (is, note) in [(tool.network, " (network)"), (tool.hidden, " (not offered to models)")]
        {
            notes.push_str(if is { note } else { "" });
        }
        let first = if tool.short.is_empty() {
            tool.description.lines().next().unwrap_or("")
        } else {
            &tool.short
        };
        let line = format!(
            "{:<width$}  {kind}  {}{}",
            plain(&tool.name),
            plain(first),
            style(notes).dim()
        );
        let _infallible = writeln!(out, "{}", console::truncate_str(&line, COLUMNS, "…"));
    }
    out
}

/// Calls a tool, answers its approvals, and prints its result.
async fn call(
    app: &App<'_>,
    client: &Client,
    params: &ToolCallParams,
    approver: Approver,
) -> Result<u8, Failure> {
    let Some(result) = result(app, client, params, approver).await? else { return Ok(INTERRUPTED) };
    if app.globals.json {
        output::json(&result)?;
    } else if result.error.is_none() {
        output::print(&text(&result))?;
    }
    match failure(&result) {
        None => Ok(OK),
        Some(failure) if app.globals.json => Ok(failure.code()),
        Some(failure) => Err(failure),
    }
}

/// Returns the failure of a call with its remedy.
pub fn failure(result: &ToolResult) -> Option<Failure> {
    let error = result.error.as_ref()?;
    let failure = Failure::with_reason(&error.reason, error.message.clone());
    Some(match error.reason.as_str() {
        "unknown_tool" => failure.hint("'cairn tools' lists the names"),
        "no_approver" => {
            failure.hint("approve in advance with --yes, or call it in a terminal and answer there")
        }
        _ => failure,
    })
}

/// Calls a tool and answers its approvals; `None` when it was interrupted.
pub async fn result(
    app: &App<'_>,
    client: &Client,
    params: &ToolCallParams,
    approver: Approver,
) -> Result<Option<ToolResult>, Failure> {
    let head = client.session_get(&Client::session(&params.session_id)).await?.head_seq;
    let mut follow = client.follow(&params.session_id, head);
    let calling = client.call_within::<_, ToolResult>("tool.call", params, CALL_TIMEOUT);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(calling, interrupt);
    loop {
        tokio::select! {
            result = &mut calling => return Ok(Some(result?)),
            item = follow.next() => {
                let Item::Event(record) = item? else { continue };
                let Ok(envelope) = record.envelope() else { continue };
                if let Some(AgentEvt::ApprovalRequired { approval }) = envelope.body.evt()
                    && approval.tool == params.name
                {
                    match approver {
                        Approver::None => app.info(&waiting_text(approval)),
                        _ => answer(app, client, approval, approver).await?,
                    }
                }
            }
            _ = &mut interrupt => return Ok(None),
        }
    }
}

/// Names a request that another client must answer, and where.
fn waiting_text(approval: &Approval) -> String {
    let id = session_name::last_digits(approval.approval_id.as_str());
    format!(
        "waiting for an answer until {}: {}; 'cairn approvals answer {id} yes' in another terminal \
         allows it, and so does the viewer",
        when::long(approval.expires_at),
        plain(&approval.preview.summary),
    )
}

/// Obtains the answer to an approval and sends it.
pub async fn answer(
    app: &App<'_>,
    client: &Client,
    approval: &Approval,
    approver: Approver,
) -> Result<(), Failure> {
    let approval_id = approval.approval_id.clone();
    let params = match approver {
        // A question of an MCP server needs values, which no flag approves in advance.
        Approver::Preapproved if approval.form.is_some() && has_keyboard() => {
            prompt_for_approval(app, approval).await?
        }
        Approver::Preapproved => {
            let decision = match approval.form {
                Some(_) => ApprovalDecision::Deny,
                None => ApprovalDecision::Once,
            };
            ApprovalResolveParams {
                approval_id,
                decision,
                reason: None,
                pattern: None,
                values: Default::default(),
            }
        }
        Approver::Keyboard | Approver::None => prompt_for_approval(app, approval).await?,
    };
    match client.approval_resolve(&params).await {
        Ok(_) => Ok(()),
        // Another client was faster.
        Err(ClientError::Rpc { message, .. }) => {
            app.info(&plain(&message));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Renders a result for a person: its text if it has one, else its JSON.
fn text(result: &ToolResult) -> String {
    let content = result.output.get("content").and_then(serde_json::Value::as_str);
    let mut text = match content {
        Some(content) => content.lines().map(|l| plain(l) + "\n").collect(),
        None => {
            output::plain_lines(&serde_json::to_string_pretty(&result.output).unwrap_or_default())
        }
    };
    if result.meta.truncated {
        text.push_str("(cut at a limit)\n");
    }
    text
}
