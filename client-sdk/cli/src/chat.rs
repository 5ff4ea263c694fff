//! `cairn chat`: agent turns in a terminal.

mod actions;
mod args;
mod ask;
mod calls;
mod editor;
mod figures;
mod inline;
mod keys;
mod local;
mod log;
mod markdown;
mod repl;
mod screen;
mod setup;
mod shell;
mod slash;
mod turn;
mod view;

use std::{
    io::{IsTerminal as _, Read as _},
    path::PathBuf,
};

use cairn_client_sdk::{Client, Connector};
use cairn_protocol::{id::SessionId, turn::ExecutionPolicy};
use tokio::signal::unix::Signal;

use crate::{
    app::App,
    exit::{Failure, OK},
    output,
};

pub use args::ChatArgs;
pub use keys::has_keyboard;
pub use setup::declared;
pub use turn::asked_by_keys;

/// Bytes that are read of standard input.
const MAX_PIPED: u64 = 1024 * 1024;

/// A chat: one session as this terminal sees it.
struct Chat<'a> {
    app: &'a App<'a>,
    client: Client,
    session: SessionId,
    /// The root it works in.
    folder: PathBuf,
    /// The last record that was seen.
    seq: u64,
    policy: ExecutionPolicy,
    wanted: view::Wanted,
    screen: screen::Screen,
    /// Somebody sits at the keyboard and can be asked.
    interactive: bool,
    /// The folder whose file remembers the session.
    local: Option<PathBuf>,
    log: Option<log::Log>,
    last_turn: Option<String>,
    /// What was typed and not said: the next line begins with it.
    unsaid: String,
    /// Interrupts that come while the terminal does not hand them over as a key.
    signals: Signal,
    interrupts: turn::Interrupts,
    /// The user wants to be gone.
    leave: bool,
    /// The user's shell, with `--shell`.
    shell: Option<shell::Shell>,
}

/// What is asked without a prompt of its own.
struct OneShot {
    prompt: String,
    context: Option<String>,
}

pub async fn run(app: &App<'_>, args: ChatArgs) -> Result<u8, Failure> {
    let settings = setup::settings(app, &args)?;
    let lists = args.list_models || args.show_system_prompt;
    let one_shot = if lists { None } else { one_shot(&args)? };
    args.check(app.globals.json, one_shot.is_some())?;
    let asked = keys::has_keyboard() && !app.globals.json;
    let client = app.client_of(connector(app, asked)).await?;
    if args.list_models {
        return crate::models::list(app, &client, args.provider.clone()).await;
    }
    let mut chat = setup::chat(app, client, &args, &settings, asked).await?;
    if args.show_system_prompt {
        let shown = chat.client.prompt_show(&Client::session(&chat.session)).await?;
        if chat.json() {
            output::json(&shown)?;
        } else {
            output::line(&shown.system)?;
        }
        return Ok(OK);
    }
    match one_shot {
        Some(asked) => {
            let end = chat.turn(asked.prompt, asked.context).await?;
            if let (true, turn::End::Ended(result)) = (app.globals.json, &end) {
                output::json(result)?;
            }
            Ok(end.code())
        }
        None => repl::run(&mut chat).await,
    }
}

/// How a chat connects: it answers approvals when somebody can be asked.
fn connector(app: &App<'_>, asked: bool) -> Connector {
    if asked { app.connector().approver() } else { app.connector() }
}

/// The question of `-p`, or the one that is piped in.
fn one_shot(args: &ChatArgs) -> Result<Option<OneShot>, Failure> {
    let piped = if std::io::stdin().is_terminal() { None } else { piped()? };
    match (&args.prompt, piped) {
        (Some(prompt), _) if prompt.trim().is_empty() => Err(Failure::usage("the prompt is empty")),
        (Some(prompt), context) => Ok(Some(OneShot { prompt: prompt.clone(), context })),
        (None, Some(prompt)) => Ok(Some(OneShot { prompt, context: None })),
        (None, None) if keys::has_keyboard() => Ok(None),
        (None, None) => Err(Failure::usage("there is no terminal to chat on").hint("ask one thing with -p")),
    }
}

/// What standard input holds; `None` for nothing.
fn piped() -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::failed(format!("standard input cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_PIPED {
        return Err(Failure::usage("more than 1 MiB is piped in").hint("name a file in the folder instead"));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("what is piped in is no UTF-8 text"))?;
    Ok(Some(text).filter(|t| !t.trim().is_empty()))
}

impl Chat<'_> {
    fn json(&self) -> bool {
        self.app.globals.json
    }

    /// Connects anew; the session is the daemon's, and goes on.
    async fn reconnect(&mut self) -> Result<(), Failure> {
        self.client = self.app.client_of(connector(self.app, self.interactive)).await?;
        Ok(())
    }

    /// Remembers how far the session was seen.
    fn seen(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
        let Some(folder) = &self.local else { return };
        let local = local::Local { session_id: self.session.clone(), seq: self.seq };
        if let Err(failure) = local::write(folder, &local) {
            self.app.remark(&failure.text());
        }
    }
}
