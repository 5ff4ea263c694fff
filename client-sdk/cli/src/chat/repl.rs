//! The interactive loop: reads a line, executes it, and reads the next.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use cairn_client_sdk::{Notice, Notices};
use console::style;
use reedline::{Reedline, Signal};

use super::{
    Chat,
    editor::{self, PromptSign},
    images, menu,
    shell::Line,
    slash::{self, Slash, Typed},
    turn::End,
};
use crate::{
    exit::{Failure, INTERRUPTED, OK},
    render::output,
};

/// The history file in the data root.
const HISTORY: &str = "chat_history";

pub async fn run(chat: &mut Chat<'_>) -> Result<u8, Failure> {
    let history = chat.app.data_root()?.path().join(HISTORY);
    let editor_break = Arc::new(AtomicBool::new(false));
    let theme = chat.screen.capabilities().theme;
    let sources = chat.sources.clone();
    let mut editor =
        editor::editor(&sources, &history, theme)?.with_break_signal(Arc::clone(&editor_break));
    if chat.shell.is_none() {
        // The status line stays with the prompt alone.
        editor = editor.with_transient_prompt(Box::new(PromptSign::Chat(String::new())));
    }
    chat.refresh_model().await?;
    chat.subscribe().await?;
    let model = &chat.model;
    let sign = if chat.shell.is_some() { "; > MESSAGE goes to the model" } else { "" };
    chat.app.info(&format!("{model} in {}; /help shows the commands{sign}", chat.folder.display()));
    chat.check_model().await?;
    loop {
        if chat.quit {
            return Ok(INTERRUPTED);
        }
        // Subscribed before the list is read: a request that follows it is not missed.
        let notices = chat.client.notices();
        chat.report_waiting().await?;
        let (back, signal) = next(chat, editor, notices, &editor_break).await?;
        editor = back;
        match signal {
            Signal::Success(line) => {
                let result = execute_line(chat, &editor::joined(&line)).await;
                if let Some(shell) = &chat.shell {
                    *sources.folder.lock().unwrap_or_else(PoisonError::into_inner) =
                        shell.folder().to_owned();
                }
                if std::mem::take(&mut chat.is_unsent) {
                    chat.unsent = line;
                } else if chat.unsent.is_empty() {
                    sources.pastes.clear();
                }
                match result {
                    Ok(false) => {}
                    Ok(true) => return Ok(if chat.quit { INTERRUPTED } else { OK }),
                    Err(failure) => {
                        chat.app.warn(&failure);
                        // The daemon may have been restarted; without one the chat cannot continue.
                        if failure.is_unreachable() {
                            chat.reconnect().await?;
                            chat.app.info("reconnected; send it again");
                        }
                    }
                }
            }
            Signal::CtrlC => {
                chat.quit |= chat.interrupts.add(Instant::now()) >= 3 || chat.display.quiet;
            }
            Signal::CtrlD => return Ok(OK),
            // A request waits for an answer: the loop names it, and the typed line stays. The
            // cursor is still inside the prompt.
            Signal::ExternalBreak(_) => output::line("")?,
            Signal::HostCommand(name) if name == menu::UNFOLD => chat.unfold()?,
            Signal::HostCommand(name) if name == menu::MODE => chat.switch_mode(),
            Signal::HostCommand(_) => {
                if let Some(refusal) = sources.pastes.take_refusal() {
                    // The cursor is still inside the prompt.
                    output::line("")?;
                    chat.app.warn(&refusal);
                }
            }
            _ => {}
        }
    }
}

/// Returns the next line: one that was typed while the model worked, else from the keyboard.
async fn next(
    chat: &mut Chat<'_>,
    mut editor: Reedline,
    notices: Notices,
    editor_break: &AtomicBool,
) -> Result<(Reedline, Signal), Failure> {
    if let Some(line) = chat.queued.pop_front() {
        let text = format!("● {}", output::plain(&line));
        output::line(&style(text).dim().to_string())?;
        return Ok((editor, Signal::Success(line)));
    }
    let text = std::mem::take(&mut chat.unsent);
    if !text.is_empty() {
        editor.run_edit_commands(&[reedline::EditCommand::InsertString(text)]);
    }
    read(chat, editor, notices, editor_break).await
}

/// Reads a line on a separate thread, so that the connection stays alive.
async fn read(
    chat: &mut Chat<'_>,
    mut editor: Reedline,
    mut notices: Notices,
    editor_break: &AtomicBool,
) -> Result<(Reedline, Signal), Failure> {
    let sign = match &chat.shell {
        Some(shell) => PromptSign::Shell(shell.display_folder(), shell.failed),
        None => PromptSign::Chat(chat.status_line()),
    };
    let mut reading = tokio::task::spawn_blocking(move || {
        let signal = editor.read_line(&sign);
        // Written at once, because a terminal may be closed at any time; failures are ignored.
        let _lost = editor.sync_history();
        (editor, signal)
    });
    let mut is_connected = true;
    let outcome = loop {
        tokio::select! {
            outcome = &mut reading => break outcome,
            notice = notices.next(), if is_connected => match notice {
                Some(Notice::Approval(notice)) if notice.decision.is_none() => {
                    editor_break.store(true, Ordering::SeqCst);
                }
                Some(_) => {}
                None => is_connected = false,
            },
            // Pressed before the editor had the keyboard.
            Some(()) = chat.signals.recv() => {
                if chat.interrupts.add(Instant::now()) >= 3 {
                    chat.quit = true;
                    editor_break.store(true, Ordering::SeqCst);
                }
            }
        }
    };
    let (editor, signal) =
        outcome.map_err(|e| Failure::failed(format!("the prompt ended: {e}")))?;
    let signal =
        signal.map_err(|e| Failure::failed(format!("the terminal cannot be read: {e}")))?;
    Ok((editor, signal))
}

/// Executes a line in the shell or the chat; returns true to quit.
async fn execute_line(chat: &mut Chat<'_>, line: &str) -> Result<bool, Failure> {
    let Some(shell) = &mut chat.shell else { return act(chat, slash::read(line)).await };
    // A path of a program is a line for the shell, as everything that is not a command of the chat.
    if let typed @ Typed::Other(..) = slash::read(line)
        && matches!(&typed, Typed::Other(name, _) if chat.sources.commands.find(name).is_some())
    {
        return act(chat, typed).await;
    }
    match shell.read(line) {
        Line::Nothing => {}
        Line::Chat(typed) => return act(chat, typed).await,
        Line::Cd(to) => match shell.cd(to.as_deref()) {
            Ok(()) => shell.failed = false,
            Err(why) => {
                shell.failed = true;
                return Err(Failure::failed(why));
            }
        },
        Line::Export(pairs) => shell.export(pairs),
        Line::Unset(names) => shell.unset(names),
        Line::Run(line) => {
            let line = chat.sources.pastes.expand(&line);
            return execute(chat, &line).await;
        }
    }
    Ok(false)
}

/// Runs a line in the user's shell, in this terminal. The command receives Ctrl+C from the
/// terminal; three quick ones quit.
async fn execute(chat: &mut Chat<'_>, line: &str) -> Result<bool, Failure> {
    let mut unmarked = None;
    let own = chat.new_shell();
    let shell = match &mut chat.shell {
        Some(shell) => shell,
        None => unmarked.insert(own),
    };
    let mut child = shell.command(line).spawn().map_err(|e| {
        Failure::failed(format!("the shell cannot be started: {e}"))
            .hint("set SHELL to the path of one")
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(|e| Failure::failed(format!("the command: {e}")))?,
            Some(()) = chat.signals.recv() => {
                if chat.interrupts.add(Instant::now()) >= 3 {
                    chat.quit = true;
                    let _already_exited = child.start_kill();
                }
            }
        }
    };
    if let Some(message) = shell.record_exit(status) {
        chat.app.info(&message);
    }
    Ok(chat.quit)
}

/// Executes parsed input; returns true to quit.
async fn act(chat: &mut Chat<'_>, typed: Typed) -> Result<bool, Failure> {
    match typed {
        Typed::Nothing => Ok(false),
        Typed::Prompt(text) => send(chat, text).await,
        Typed::Shell(line) => {
            let line = chat.sources.pastes.expand(&line);
            execute(chat, &line).await
        }
        Typed::Command(Slash::Exit, _) => Ok(true),
        Typed::Command(command, argument) => {
            let argument = chat.sources.pastes.expand(&argument);
            chat.command(command, &argument).await.map(|()| false)
        }
        Typed::Other(name, argument) => {
            if let Some(command) = chat.sources.commands.find(&name) {
                let text = command.text(&argument);
                return send(chat, text).await;
            }
            // Terminals insert the path of a dropped picture at the start of the line.
            let line = format!("/{name} {argument}");
            if !images::files_in(&line, &chat.folder, None).is_empty() {
                return send(chat, line).await;
            }
            let name = style(format!("/{}", crate::render::output::plain(&name))).bold();
            Err(Failure::usage(format!("there is no command {name}"))
                .hint("/help shows the commands; a second slash sends it to the model"))
        }
    }
}

/// Sends a message to the model; returns true to quit. A message that cannot be sent stays in the
/// prompt.
async fn send(chat: &mut Chat<'_>, text: String) -> Result<bool, Failure> {
    // The model works in the chat's folder, wherever the user's shell is.
    let away = chat.shell.as_ref().map(|s| s.folder()).filter(|f| *f != chat.folder);
    let context = away.map(|folder| format!("The user's shell is in {}.\n", folder.display()));
    let composed = chat.compose(text, context).await;
    chat.is_unsent = composed.is_err();
    let message = composed?;
    let mut end = chat.turn(message).await?;
    if chat.is_leaving {
        return Ok(true);
    }
    if let Some(message) = chat.offer_plan(&end).await? {
        end = chat.turn(message).await?;
    }
    let quiet_stop = chat.display.quiet && end.code() == INTERRUPTED;
    chat.quit |= quiet_stop;
    Ok(chat.quit || chat.is_leaving || end == End::Detached)
}
