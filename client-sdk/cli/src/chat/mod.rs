//! `cairn chat`: agent turns in a terminal.

mod actions;
mod approval_prompt;
mod args;
mod calls;
mod clipboard;
mod custom_commands;
mod diff;
mod editor;
mod figures;
mod files;
mod form_prompt;
mod images;
mod inline;
mod keys;
mod live_output;
mod local;
mod log;
mod markdown;
mod mentions;
mod menu;
mod message;
mod mode;
mod notices;
mod notify;
mod offer;
mod pastes;
mod picker;
mod questions;
mod repl;
mod resume;
mod screen;
mod setup;
mod shell;
mod slash;
mod status_line;
mod table;
mod tasks;
mod turn;
mod view;

use std::{
    collections::VecDeque,
    io::{IsTerminal as _, Read as _},
    path::PathBuf,
};

use cairn_client_sdk::{Client, Connector, Follow};
use cairn_config::ChatNotify;
use cairn_protocol::{
    id::{ApprovalId, SessionId},
    turn::ExecutionPolicy,
};
use tokio::signal::unix::Signal;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output,
};

pub use approval_prompt::granted;
pub use args::ChatArgs;
pub use inline::wrap;
pub use keys::has_keyboard;
pub use notices::{LastTurn, last_turn};
pub use picker::choose_in_terminal as choose;
pub use resume::age;
pub use setup::declared_root;
pub use turn::prompt_for_approval;

/// Maximum bytes read from standard input.
const MAX_PIPED: u64 = 1024 * 1024;

/// A chat: one session as this terminal shows it.
struct Chat<'a> {
    app: &'a App<'a>,
    client: Client,
    session: SessionId,
    /// Requests of other sessions that were named.
    reported: Vec<ApprovalId>,
    /// Root folder of the session.
    folder: PathBuf,
    /// The last displayed record.
    seq: u64,
    /// The subscription to the session's events, which stays open between turns.
    follow: Option<Follow>,
    policy: ExecutionPolicy,
    offer: offer::Offer,
    display: view::DisplayOptions,
    screen: screen::Screen,
    /// A person is at the keyboard and can be asked.
    interactive: bool,
    /// The file that stores the session for `--continue`.
    local: Option<PathBuf>,
    log: Option<log::Log>,
    /// The turns of this chat that were not undone, oldest first.
    turns: Vec<String>,
    /// Typed text that was not sent; the next prompt starts with it.
    unsent: String,
    /// The last line was not sent and stays in the prompt, with its pastes.
    is_unsent: bool,
    /// Interrupts that arrive while the terminal does not report them as keys.
    signals: Signal,
    interrupts: turn::Interrupts,
    /// Set when the user wants to quit.
    quit: bool,
    /// Set when the chat ends after the current turn.
    is_leaving: bool,
    /// Commands that were typed while the model worked, which run after the turn.
    queued: VecDeque<String>,
    /// The user's shell, with `--shell`.
    shell: Option<shell::Shell>,
    /// Provider and model for display.
    model: String,
    /// Used and available tokens of the model's context, after its last answer.
    usage: Option<(u64, u64)>,
    /// Cost of this chat's turns in millionths of a dollar, as far as it is known.
    cost_micro_usd: Option<u64>,
    /// Pictures that go with the next message.
    pictures: Vec<images::Image>,
    /// Sources of the prompt's completions.
    sources: editor::Sources,
    /// The last result that was displayed in part.
    folded: Option<view::FoldedResult>,
    notify: ChatNotify,
}

/// A question without an interactive prompt.
struct OneShot {
    prompt: String,
    context: Option<String>,
    /// The prompt was typed, so that it may mention files.
    is_typed: bool,
}

pub async fn run(app: &App<'_>, args: ChatArgs) -> Result<u8, Failure> {
    let settings = setup::settings(app, &args)?;
    let lists = args.list_models || args.show_system_prompt;
    let one_shot = if lists { None } else { one_shot(&args)? };
    args.check(app.globals.json, one_shot.is_some())?;
    let interactive = keys::has_keyboard() && !app.globals.json;
    if args.resume && !interactive {
        return Err(Failure::usage("--resume requires a terminal")
            .hint("'cairn sessions' lists the sessions; --continue continues the last chat"));
    }
    let client = app.connect_with(connector(app, interactive)).await?;
    if args.list_models {
        return crate::commands::models::list(app, &client, args.provider.clone()).await;
    }
    let mut chat = setup::chat(app, client, &args, &settings, interactive).await?;
    if args.show_system_prompt {
        let prompt = chat.system_prompt().await?;
        if chat.json() {
            output::json(&prompt)?;
        } else {
            output::line(&prompt.system)?;
        }
        return Ok(OK);
    }
    if !chat.json() {
        crate::commands::mcp::note_logins(app, &chat.client).await;
    }
    match one_shot {
        Some(question) => {
            let message = if question.is_typed {
                chat.compose(question.prompt, question.context).await?
            } else {
                message::Message::plain(question.prompt, question.context)
            };
            let end = chat.turn(message).await?;
            if let (true, turn::End::Finished(result)) = (app.globals.json, &end) {
                output::json(result)?;
            }
            Ok(end.code())
        }
        None => {
            if args.resume {
                chat.resume().await?;
            }
            repl::run(&mut chat).await
        }
    }
}

/// Builds the connector, which answers approvals if a person can be asked.
fn connector(app: &App<'_>, interactive: bool) -> Connector {
    if interactive { app.connector().approver() } else { app.connector() }
}

/// Returns the question of `-p`, or the piped one.
fn one_shot(args: &ChatArgs) -> Result<Option<OneShot>, Failure> {
    let piped = if std::io::stdin().is_terminal() { None } else { piped()? };
    match (&args.prompt, piped) {
        (Some(prompt), _) if prompt.trim().is_empty() => Err(Failure::usage("the prompt is empty")),
        (Some(prompt), context) => {
            Ok(Some(OneShot { prompt: prompt.clone(), context, is_typed: true }))
        }
        (None, Some(prompt)) => Ok(Some(OneShot { prompt, context: None, is_typed: false })),
        (None, None) if keys::has_keyboard() => Ok(None),
        (None, None) => {
            Err(Failure::usage("there is no terminal for a chat")
                .hint("ask a single question with -p"))
        }
    }
}

/// Reads standard input; `None` if it is empty.
fn piped() -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::failed(format!("standard input cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_PIPED {
        return Err(
            Failure::usage("more than 1 MiB is piped in").hint("name a file in the folder instead")
        );
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage("the piped input is not UTF-8 text"))?;
    Ok(Some(text).filter(|t| !t.trim().is_empty()))
}

impl Chat<'_> {
    fn json(&self) -> bool {
        self.app.globals.json
    }

    /// Reconnects; the daemon keeps the session.
    async fn reconnect(&mut self) -> Result<(), Failure> {
        self.client = self.app.connect_with(connector(self.app, self.interactive)).await?;
        self.connect_files();
        self.follow = None;
        Ok(())
    }

    /// Connects the completion of mentions to the daemon.
    fn connect_files(&self) {
        let root = self.folder.to_string_lossy().into_owned();
        self.sources.files.connect(self.client.clone(), root);
    }

    /// Continues another session from this record.
    async fn seen_from(&mut self, seq: u64) -> Result<(), Failure> {
        self.seq = 0;
        self.seen(seq);
        self.subscribe().await
    }

    /// Opens the subscription before a turn, since ephemeral events are not repeated: a fast model
    /// would have answered before the subscription of its turn.
    async fn subscribe(&mut self) -> Result<(), Failure> {
        let mut follow = turn::follow(&self.client, &self.session, self.seq);
        follow.open().await?;
        self.follow = Some(follow);
        Ok(())
    }

    /// Stores how far the session has been displayed.
    fn seen(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
        let Some(file) = &self.local else { return };
        let local = local::Local { session_id: self.session.clone(), seq: self.seq };
        if let Err(failure) = local::write(file, &local) {
            self.app.info(&failure.text());
        }
    }
}
