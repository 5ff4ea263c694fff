//! The prompt: reads a line, does what it says, and reads the next.

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
    editor::{self, Sign},
    shell::Line,
    slash::{self, Slash, Typed},
    turn::End,
};
use crate::exit::{Failure, INTERRUPTED, OK};

/// The file of the data root with what was typed.
const HISTORY: &str = "chat_history";

pub async fn run(chat: &mut Chat<'_>) -> Result<u8, Failure> {
    let history = chat.app.data_root()?.path().join(HISTORY);
    let leave = Arc::new(AtomicBool::new(false));
    let folder = Arc::new(Mutex::new(chat.folder.clone()));
    let mut editor = editor::editor(&folder, &history)?.with_break_signal(Arc::clone(&leave));
    let model = chat.model_name().await?;
    let sign = if chat.shell.is_some() { "; > before what is for the model" } else { "" };
    chat.app.remark(&format!("{model} in {}; /help shows the commands{sign}", chat.folder.display()));
    loop {
        if chat.leave {
            return Ok(INTERRUPTED);
        }
        let text = std::mem::take(&mut chat.unsaid);
        if !text.is_empty() {
            editor.run_edit_commands(&[reedline::EditCommand::InsertString(text)]);
        }
        let (back, signal) = read(chat, editor, &leave).await?;
        editor = back;
        match signal {
            Signal::Success(line) => {
                let left = entered(chat, &editor::joined(&line)).await;
                if let Some(shell) = &chat.shell {
                    *folder.lock().unwrap_or_else(PoisonError::into_inner) = shell.folder().to_owned();
                }
                match left {
                    Ok(false) => {}
                    Ok(true) => return Ok(if chat.leave { INTERRUPTED } else { OK }),
                    Err(failure) => {
                        chat.app.complain(&failure);
                        // The daemon may have been restarted; without one nothing more can be said here.
                        if failure.is_unreachable() {
                            chat.reconnect().await?;
                            chat.app.remark("connected again; say it once more");
                        }
                    }
                }
            }
            Signal::CtrlC => {
                chat.leave |= chat.interrupts.add(Instant::now()) >= 3 || chat.wanted.quiet;
            }
            Signal::CtrlD => return Ok(OK),
            _ => {}
        }
    }
}

/// Reads a line in a thread of its own, so that the connection lives meanwhile.
async fn read(
    chat: &mut Chat<'_>,
    mut editor: Reedline,
    leave: &AtomicBool,
) -> Result<(Reedline, Signal), Failure> {
    let sign = match &chat.shell {
        Some(shell) => Sign::Shell(shell.shown(), shell.failed),
        None => Sign::Chat,
    };
    let mut reading = tokio::task::spawn_blocking(move || {
        let signal = editor.read_line(&sign);
        // Written at once, as a terminal may be closed at any time; that it cannot be is no reason to stop.
        let _lost = editor.sync_history();
        (editor, signal)
    });
    let ended = loop {
        tokio::select! {
            ended = &mut reading => break ended,
            // Pressed before the editor had the keyboard.
            Some(()) = chat.signals.recv() => {
                if chat.interrupts.add(Instant::now()) >= 3 {
                    chat.leave = true;
                    leave.store(true, Ordering::SeqCst);
                }
            }
        }
    };
    let (editor, signal) = ended.map_err(|e| Failure::failed(format!("the prompt ended: {e}")))?;
    let signal = signal.map_err(|e| Failure::failed(format!("the terminal cannot be read: {e}")))?;
    Ok((editor, signal))
}

/// Does what a line says, in the shell or the chat; true to leave.
async fn entered(chat: &mut Chat<'_>, line: &str) -> Result<bool, Failure> {
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

/// Runs a line in the user's shell, in this terminal. It hears Ctrl+C from the terminal itself; three quick ones leave.
async fn execute(chat: &mut Chat<'_>, line: &str) -> Result<bool, Failure> {
    let Some(shell) = &mut chat.shell else { return Ok(false) };
    let mut child = shell.command(line).spawn().map_err(|e| {
        Failure::failed(format!("the shell cannot be started: {e}")).hint("set SHELL to the path of one")
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.map_err(|e| Failure::failed(format!("the command: {e}")))?,
            Some(()) = chat.signals.recv() => {
                if chat.interrupts.add(Instant::now()) >= 3 {
                    chat.leave = true;
                    let _gone = child.start_kill();
                }
            }
        }
    };
    if let Some(told) = shell.ended(status) {
        chat.app.remark(&told);
    }
    Ok(chat.leave)
}

/// Does what was typed; true to leave.
async fn act(chat: &mut Chat<'_>, typed: Typed) -> Result<bool, Failure> {
    match typed {
        Typed::Nothing => Ok(false),
        Typed::Say(text) => {
            // The model works in the chat's folder, wherever the user's shell is.
            let away = chat.shell.as_ref().map(|s| s.folder()).filter(|f| *f != chat.folder);
            let context = away.map(|folder| format!("The user's shell is in {}.", folder.display()));
            let end = chat.turn(text, context).await?;
            let quiet_stop = chat.wanted.quiet && end.code() == INTERRUPTED;
            chat.leave |= quiet_stop;
            Ok(chat.leave || end == End::Left)
        }
        Typed::Command(Slash::Exit, _) => Ok(true),
        Typed::Command(command, argument) => chat.command(command, &argument).await.map(|()| false),
        Typed::Unknown(name) => {
            let name = style(format!("/{}", crate::output::plain(&name))).bold();
            Err(Failure::usage(format!("there is no command {name}"))
                .hint("/help shows the commands; a second slash says it to the model"))
        }
    }
}
