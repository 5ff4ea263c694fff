//! One turn: start, follow and display it, handling keys and approvals meanwhile.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use cairn_client_sdk::{Client, ClientError, Follow, Item, Record};
use cairn_protocol::{
    approval::{Approval, ApprovalResolveParams},
    event::AgentEvt,
    id::{ApprovalId, RunId, SessionId},
    turn::{Outcome, RunResult, RunStartParams, SteerParams, TurnRef},
};
use console::style;

use super::{
    Chat, approval_prompt,
    diff::DiffPainter,
    keys::{Key, KeyPress, Keys},
    message::Message,
    notify::Notifier,
    questions::{KeyEffect, Questions},
    screen::{Out, Screen, TerminalCapabilities},
    shell::Line,
    slash::{self, Slash, Typed},
    view::View,
};
use crate::{
    app::App,
    exit::{FAILED, Failure, INTERRUPTED, OK, REFUSED},
    render::output::{self, plain},
};

/// Time for reconnecting after a lost connection; a restarted service is back within it.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of redrawing the status.
const TICK: Duration = Duration::from_millis(100);
/// Interrupts within this time count together.
const INTERRUPT_WINDOW: Duration = Duration::from_secs(2);
/// Maximum number of commands that wait for the end of a turn.
const MAX_QUEUED: usize = 16;
/// An interruption of this operation ends a turn.
const TURN_OPERATION: &str = "turn";

/// The end of a turn as the terminal sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The turn ended by itself or was cancelled.
    Finished(Box<RunResult>),
    /// The user does not wait for the end.
    Detached,
}

impl End {
    /// Returns the exit code of a chat that ends with this turn.
    pub fn code(&self) -> u8 {
        match self {
            End::Detached => INTERRUPTED,
            End::Finished(result) => match result.status {
                Outcome::Completed => OK,
                Outcome::Failed | Outcome::TimedOut => FAILED,
                Outcome::Denied => REFUSED,
                Outcome::Cancelled => INTERRUPTED,
            },
        }
    }
}

/// Counts interrupts in quick succession.
#[derive(Debug, Default)]
pub struct Interrupts(VecDeque<Instant>);

impl Interrupts {
    /// Adds an interrupt and returns the number of recent ones.
    pub fn add(&mut self, now: Instant) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.duration_since(*first) > INTERRUPT_WINDOW) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

struct Turn<'c, 'a> {
    chat: &'c mut Chat<'a>,
    id: String,
    view: View,
    questions: Questions,
    /// Approvals that this client answered.
    mine: HashSet<ApprovalId>,
    stopping: bool,
    detached: bool,
    result: Option<Box<RunResult>>,
    notifier: Notifier,
    /// The record of the turn's acceptance; the ones before it are not of this turn.
    first: u64,
    run: RunId,
}

/// Creates the subscription to a session's events after a record.
pub fn follow(client: &Client, session: &SessionId, after: u64) -> Follow {
    client.follow(session, after).patience(RECONNECT_TIMEOUT)
}

impl Chat<'_> {
    /// Runs a turn and displays it to its end.
    pub async fn turn(&mut self, message: Message) -> Result<End, Failure> {
        let mut keys = if self.interactive { Keys::take() } else { None };
        self.screen.raw = keys.is_some();
        self.screen.measure();
        let outcome = self.run_turn(message, &mut keys).await;
        self.screen.clear()?;
        self.screen.raw = false;
        self.handle_unread_keys(keys.map(Keys::release).unwrap_or_default());
        outcome
    }

    async fn run_turn(
        &mut self,
        message: Message,
        keys: &mut Option<Keys>,
    ) -> Result<End, Failure> {
        let turn_id = uuid::Uuid::now_v7().to_string();
        self.policy.ops = self.offer.ops(&self.client, self.policy.mode).await?;
        let params = RunStartParams {
            session_id: self.session.clone(),
            turn_id: turn_id.clone(),
            input: message.input,
            context: message.context.map(Into::into),
            policy: Some(self.policy.clone()),
            metadata: std::collections::BTreeMap::new(),
        };
        // Before the turn: whatever ends this process, `--continue` finds this chat.
        self.seen(self.seq);
        let receipt = self.client.run_start(&params).await?;
        self.turns.push(turn_id.clone());
        let mut follow = match self.follow.take() {
            Some(follow) if follow.last() < receipt.seq => follow,
            _ => self::follow(&self.client, &self.session, receipt.seq.saturating_sub(1)),
        };
        let view = View::new(self.screen.capabilities(), self.display);
        let notifier = Notifier::new(self.notify, Instant::now());
        let mut turn = Turn {
            chat: self,
            id: turn_id,
            view,
            questions: Questions::default(),
            mine: HashSet::new(),
            stopping: false,
            detached: false,
            result: None,
            notifier,
            first: receipt.seq,
            run: receipt.run_id,
        };
        let outcome = turn.work(&mut follow, keys).await;
        turn.notify_end()?;
        if let Some(folded) = turn.view.take_folded() {
            turn.chat.folded = Some(folded);
        }
        let detached = turn.detached;
        let result = turn.result.take();
        let typed = turn.questions.take_typed();
        self.unsent.push_str(&typed);
        self.seen(follow.last());
        outcome.map_err(|failure| match failure.is_unreachable() {
            true => {
                failure.hint("the daemon stopped during the turn: 'cairn chat --continue' goes on")
            }
            false => failure,
        })?;
        if self.interactive {
            self.follow = Some(follow);
        }
        match result {
            Some(result) => Ok(End::Finished(result)),
            None if detached => Ok(End::Detached),
            None => Err(Failure::failed("the daemon stopped during the turn")
                .hint("ask again; 'cairn trace show' has what was done")),
        }
    }

    /// Handles keys pressed for a turn that had ended: text goes to the next one.
    fn handle_unread_keys(&mut self, keys: Vec<Key>) {
        for key in keys {
            match key {
                Key::Interrupt => {
                    self.unsent.clear();
                    self.quit |= self.interrupts.add(Instant::now()) >= 3;
                }
                Key::Char(c) => self.unsent.push(c),
                Key::Backspace => drop(self.unsent.pop()),
                Key::Clear | Key::Escape => self.unsent.clear(),
                Key::Paste(text) => self.unsent.push_str(&text),
                // A line is not sent before the user has seen the output that it would respond to.
                Key::Enter | Key::End | Key::Unfold | Key::Focus(_) => {}
            }
        }
    }
}

impl Turn<'_, '_> {
    async fn work(&mut self, follow: &mut Follow, keys: &mut Option<Keys>) -> Result<(), Failure> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.result.is_none() && !self.detached {
            self.fit();
            tokio::select! {
                item = follow.next() => {
                    if self.item(item?)? {
                        return Ok(());
                    }
                }
                press = next(keys) => match press {
                    Some(press) => self.key(press).await?,
                    None => *keys = None,
                },
                Some(()) = self.chat.signals.recv() => self.interrupted().await?,
                _ = tick.tick() => {
                    let overdue = self.notifier.overdue(Instant::now());
                    self.notify(overdue)?;
                    self.draw()?;
                }
            }
        }
        Ok(())
    }

    /// Takes over the width of the terminal, which may change at any time.
    fn fit(&mut self) {
        self.chat.screen.measure();
        self.view.resize(self.chat.screen.capabilities().width);
    }

    /// Displays an item; returns true if the turn has ended.
    fn item(&mut self, item: Item) -> Result<bool, Failure> {
        match item {
            Item::Event(record) if record.seq < self.first => {}
            Item::Event(record) => return self.record(&record),
            Item::Live(json) => {
                // Unknown ephemeral events of a newer daemon are skipped, and those of runs that
                // other clients started since the last turn.
                if let Ok(evt) = serde_json::from_str::<AgentEvt>(&json)
                    && run_of(&evt).is_none_or(|run| *run == self.run)
                {
                    self.chat.log_progress(&evt);
                    if !self.chat.json() {
                        let out = self.view.ephemeral(evt);
                        self.show(&out)?;
                    }
                }
            }
            Item::Synced(_) | Item::Lagged(_) => {}
        }
        Ok(false)
    }

    fn record(&mut self, record: &Record) -> Result<bool, Failure> {
        if self.chat.json() {
            output::line(&record.json)?;
        }
        // Unknown records of a newer daemon are only passed on.
        let Ok(envelope) = record.envelope() else { return Ok(false) };
        let Some(evt) = envelope.body.evt() else { return Ok(false) };
        self.chat.log_event(evt);
        match evt {
            AgentEvt::RunCompleted { result } if result.turn_id != self.id => return Ok(false),
            AgentEvt::RunCompleted { result } => {
                if let Some(cost) = result.usage.cost_micro_usd {
                    let total = self.chat.cost_micro_usd.get_or_insert(0);
                    *total = total.saturating_add(cost);
                }
                self.result = Some(result.clone());
            }
            AgentEvt::ApprovalRequired { approval } if self.chat.interactive => {
                // Its text is written when it is the first one, beside the keys that answer it.
                self.questions.add(approval);
                let text = format!("cairn: {} waits for your answer", approval.tool);
                let notification = self.notifier.wait(&text, Instant::now());
                self.notify(notification)?;
                self.draw()?;
                return Ok(false);
            }
            AgentEvt::ModelAnswer(answer) => {
                if let Some(window) = answer.context_tokens {
                    let usage = answer.usage;
                    self.chat.usage = Some((usage.input_tokens + usage.output_tokens, window));
                }
            }
            AgentEvt::ApprovalResolved { approval_id, resolution } => {
                if let Some(approval) = self.questions.remove(approval_id) {
                    let question = self.view.question(&approval);
                    self.note(question)?;
                }
                if self.questions.is_empty() {
                    self.notifier.answered();
                }
                let mine = self.mine.contains(approval_id);
                self.note(approval_prompt::answered(resolution, mine))?;
            }
            _ => {}
        }
        if !self.chat.json() {
            let out = self.view.record(evt.clone());
            self.show(&out)?;
        }
        Ok(matches!(evt, AgentEvt::Interrupted { op } if op == TURN_OPERATION))
    }

    async fn key(&mut self, press: KeyPress) -> Result<(), Failure> {
        match self.questions.key(press) {
            KeyEffect::None => {}
            KeyEffect::Answer(params) => self.resolve(params).await?,
            KeyEffect::Submit(line) => self.submit(line).await?,
            KeyEffect::TooLong => {
                let text = "not pasted: a message to a running model has at most 16 KiB\n";
                self.note(text.to_owned())?;
            }
            KeyEffect::Stop => return self.stop().await,
            KeyEffect::Other(Key::Interrupt) => return self.interrupted().await,
            KeyEffect::Other(Key::Unfold) => return self.unfold(),
            KeyEffect::Other(Key::Focus(is_focused)) => {
                self.notifier.set_focus(is_focused);
                return Ok(());
            }
            KeyEffect::Other(_) => {}
        }
        self.draw()
    }

    async fn resolve(&mut self, params: ApprovalResolveParams) -> Result<(), Failure> {
        self.mine.insert(params.approval_id.clone());
        let Err(error) = self.chat.client.approval_resolve(&params).await else { return Ok(()) };
        self.mine.remove(&params.approval_id);
        match error {
            // Another client was faster; the record of its answer names it.
            ClientError::Rpc { message, .. } => self.note(format!("  {}\n", plain(&message))),
            error => Err(error.into()),
        }
    }

    /// Sends the typed text to the model, or takes it as a command.
    async fn submit(&mut self, line: String) -> Result<(), Failure> {
        let typed = match &self.chat.shell {
            None => slash::read(&line),
            Some(shell) => match shell.read(&line) {
                Line::Nothing => Typed::Nothing,
                Line::Chat(typed) => typed,
                _ => Typed::Shell(line.clone()),
            },
        };
        match typed {
            Typed::Nothing => Ok(()),
            Typed::Prompt(text) => self.steer(text).await,
            Typed::Command(Slash::Exit, _) => {
                self.chat.is_leaving = true;
                self.stop().await
            }
            Typed::Command(Slash::Help, _) => {
                let width = self.chat.screen.capabilities().width;
                self.note(slash::help(&self.chat.sources.commands, width))
            }
            Typed::Command(..) | Typed::Other(..) | Typed::Shell(_) => self.queue(line),
        }
    }

    /// Stores a command until the turn has ended.
    fn queue(&mut self, line: String) -> Result<(), Failure> {
        let text = if self.chat.queued.len() < MAX_QUEUED {
            let text = format!("after this turn: {}", plain(&line));
            self.chat.queued.push_back(line);
            text
        } else {
            format!("not queued: {MAX_QUEUED} commands wait for the end of the turn")
        };
        self.note(format!("{}\n", style(text).dim().for_stderr()))
    }

    async fn steer(&mut self, text: String) -> Result<(), Failure> {
        let params = SteerParams { session_id: self.chat.session.clone(), text };
        match self.chat.client.run_steer(&params).await {
            Ok(_) => Ok(()),
            Err(ClientError::Rpc { message, .. }) => {
                // Kept so that it can be sent with the next turn.
                self.chat.unsent.push_str(&params.text);
                self.note(format!(
                    "{} {}\n",
                    style("not sent:").yellow().for_stderr(),
                    plain(&message)
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn interrupted(&mut self) -> Result<(), Failure> {
        let quick = self.chat.interrupts.add(Instant::now());
        let second_stop = self.stopping && (self.chat.display.quiet || !self.chat.interactive);
        if second_stop || quick >= 3 {
            self.detached = true;
            self.chat.quit = true;
            return Ok(());
        }
        self.stop().await
    }

    /// Stops the model.
    async fn stop(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.stopping, true) {
            return Ok(());
        }
        self.questions.clear();
        let turn =
            TurnRef { session_id: self.chat.session.clone(), turn_id: Some(self.id.clone()) };
        match self.chat.client.run_cancel(&turn).await {
            // Fails if the turn has just ended; its last record will follow.
            Ok(_) | Err(ClientError::Rpc { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Displays the last result completely.
    fn unfold(&mut self) -> Result<(), Failure> {
        let folded = self.view.take_folded();
        let text = match folded.as_ref().or(self.chat.folded.as_ref()) {
            Some(folded) => folded.render(),
            None => return Ok(()),
        };
        if folded.is_some() {
            self.chat.folded = folded;
        }
        self.note(text)
    }

    fn notify(&mut self, sequence: Option<String>) -> Result<(), Failure> {
        match sequence {
            Some(sequence) if self.chat.interactive => Ok(self.chat.screen.signal(&sequence)?),
            _ => Ok(()),
        }
    }

    /// Notifies the user of the turn's end, unless they ended it.
    fn notify_end(&mut self) -> Result<(), Failure> {
        if self.stopping || self.detached {
            return Ok(());
        }
        let sequence = self.notifier.finished("cairn: the answer is complete", Instant::now());
        self.notify(sequence)
    }

    fn draw(&mut self) -> Result<(), Failure> {
        if self.chat.json() {
            return Ok(());
        }
        if let Some(approval) = self.questions.undrawn() {
            let text = self.view.question(approval);
            self.chat.screen.write(&[Out::Note(text)])?;
        }
        let Some(row) = self.questions.row(Instant::now()) else {
            let rows = self.view.status(Some(self.questions.typed()));
            return Ok(self.chat.screen.status(&rows)?);
        };
        let mut rows = Vec::new();
        if !self.questions.typed().is_empty() {
            rows = self.view.status(Some(self.questions.typed()));
        }
        rows.push(row);
        self.chat.screen.question(&rows)?;
        self.questions.mark_drawn(Instant::now());
        Ok(())
    }

    fn note(&mut self, text: String) -> Result<(), Failure> {
        if self.chat.json() || self.chat.display.quiet {
            return Ok(());
        }
        self.show(&[Out::Note(text)])
    }

    fn show(&mut self, out: &[Out]) -> Result<(), Failure> {
        self.chat.screen.write(out)?;
        if out.is_empty() { Ok(()) } else { self.redraw_status() }
    }

    /// Redraws the status after output has replaced it.
    fn redraw_status(&mut self) -> Result<(), Failure> {
        if self.result.is_some() { Ok(()) } else { self.draw() }
    }
}

/// Shows an approval prompt outside of a turn and waits for its key.
pub async fn prompt_for_approval(
    app: &App<'_>,
    approval: &Approval,
) -> Result<ApprovalResolveParams, Failure> {
    let mut screen = Screen::new(TerminalCapabilities::of_process(app.globals.quiet));
    let mut diffs = DiffPainter::new(screen.capabilities());
    let no = || Failure::with_reason("denied_by_user", "the approval was not answered".into());
    let mut keys = Keys::take().ok_or_else(no)?;
    screen.raw = true;
    screen.write(&[Out::Note(approval_prompt::question(approval, &mut diffs))])?;
    let mut questions = Questions::default();
    questions.add(approval);
    let mut tick = tokio::time::interval(TICK);
    loop {
        let now = Instant::now();
        let typed = Some(questions.typed()).filter(|typed| !typed.is_empty());
        let typed = typed.map(|typed| format!("› {}", plain(typed)));
        screen.measure();
        screen.question(&typed.into_iter().chain(questions.row(now)).collect::<Vec<_>>())?;
        questions.mark_drawn(Instant::now());
        let press = tokio::select! {
            press = keys.next() => press.ok_or_else(no)?,
            _ = tick.tick() => continue,
        };
        match questions.key(press) {
            KeyEffect::Answer(params) => return Ok(params),
            KeyEffect::Stop | KeyEffect::Other(Key::Interrupt) => return Err(no()),
            _ => {}
        }
    }
}

/// Returns the run of an ephemeral event.
fn run_of(evt: &AgentEvt) -> Option<&RunId> {
    match evt {
        AgentEvt::TokenDelta { run_id, .. } | AgentEvt::PromptProgress { run_id, .. } => {
            Some(run_id)
        }
        _ => None,
    }
}

async fn next(keys: &mut Option<Keys>) -> Option<KeyPress> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_interrupts_are_counted_together() {
        let begin = Instant::now();
        let mut interrupts = Interrupts::default();
        let counts: Vec<usize> = [0, 500, 900, 3000, 3100, 5200]
            .map(|ms| interrupts.add(begin + Duration::from_millis(ms)))
            .to_vec();
        assert_eq!(counts, [1, 2, 3, 1, 2, 1]);
    }
}
