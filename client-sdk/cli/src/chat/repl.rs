//! The interactive loop: reads a line, executes it, and reads the next.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use console::style;
use reedline::{Reedline, Signal};

use super::{
    Chat,
    editor::{self, PromptSign},
    shell::Line,
    slash::{self, Slash, Typed},
    turn::End,
};
use crate::exit::{Failure, INTERRUPTED, OK};

/// The history file in the data root.
const HISTORY: &str = "chat_history";

pub async fn run(chat: &mut Chat<'_>) -> Result<u8, Failure> {
    let history = chat.app.data_root()?.path().join(HISTORY);
    let quit = Arc::new(AtomicBool::new(false));
    let folder = Arc::new(Mutex::new(chat.folder.clone()));
    let mut editor = editor::editor(&folder, &history)?.with_break_signal(Arc::clone(&quit));
    let model = chat.model_name().await?;
    let sign = if chat.shell.is_some() { "; > MESSAGE goes to the model" } else { "" };
    chat.app.info(&format!("{model} in {}; /help shows the commands{sign}", chat.folder.display()));
    loop {
        if chat.quit {
            return Ok(INTERRUPTED);
        }
        let text = std::mem::take(&mut chat.unsent);
        if !text.is_empty() {
            editor.run_edit_commands(&[reedline::EditCommand::InsertString(text)]);
        }
        let (back, signal) = read(chat, editor, &quit).await?;
        editor = back;
        match signal {
            Signal::Success(line) => {
                let result = execute_line(chat, &editor::joined(&line)).await;
                if let Some(shell) = &chat.shell {
                    *folder.lock().unwrap_or_else(PoisonError::into_inner) =
                        shell.folder().to_owned();
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
            _ => {}
        }
    }
}

/// Reads a line on a separate thread, so that the connection stays alive.
async fn read(
    chat: &mut Chat<'_>,
    mut editor: Reedline,
    quit: &AtomicBool,
) -> Result<(Reedline, Signal), Failure> {
    let sign = match &chat.shell {
        Some(shell) => PromptSign::Shell(shell.display_folder(), shell.failed),
        None => PromptSign::Chat,
    };
    let mut reading = tokio::task::spawn_blocking(move || {
        let signal = editor.read_line(&sign);
        // Written at once, because a terminal may be closed at any time; failures are ignored.
        let _lost = editor.sync_history();
        (editor, signal)
    });
    let outcome = loop {
        tokio::select! {
            outcome = &mut reading => break outcome,
            // Pressed before the editor had the keyboard.
            Some(()) = chat.signals.recv() => {
                if chat.interrupts.add(Instant::now()) >= 3 {
                    chat.quit = true;
                    quit.store(true, Ordering::SeqCst);
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
        Line::Run(line) => return execute(chat, &line).await,
    }
    Ok(false)
}

/// Runs a line in the user's shell, in this terminal. The command receives Ctrl+C from the
/// terminal; three quick ones quit.
async fn execute(chat: &mut Chat<'_>, line: &str) -> Result<bool, Failure> {
    let Some(shell) = &mut chat.shell else { return Ok(false) };
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
        Typed::Prompt(text) => {
            // The model works in the chat's folder, wherever the user's shell is.
            let away = chat.shell.as_ref().map(|s| s.folder()).filter(|f| *f != chat.folder);
            let context =
                away.map(|folder| format!("The user's shell is in {}.", folder.display()));
            let end = chat.turn(text, context).await?;
            let quiet_stop = chat.display.quiet && end.code() == INTERRUPTED;
            chat.quit |= quiet_stop;
            Ok(chat.quit || end == End::Detached)
        }
        Typed::Command(Slash::Exit, _) => Ok(true),
        Typed::Command(command, argument) => chat.command(command, &argument).await.map(|()| false),
        Typed::Unknown(name) => {
            let name = style(format!("/{}", crate::render::output::plain(&name))).bold();
            Err(Failure::usage(format!("there is no command {name}"))
                .hint("/help shows the commands; a second slash sends it to the model"))
        }
    }
}
