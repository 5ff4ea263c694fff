//! One turn: started, followed, shown; keys and questions answered on the way.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use cairn_client_sdk::{ClientError, Follow, Item, Record};
use cairn_protocol::{
    approval::{Approval, ApprovalResolveParams},
    event::AgentEvt,
    id::ApprovalId,
    turn::{Input, Outcome, RunResult, RunStartParams, SteerParams, TurnRef},
};
use console::style;

use super::{
    Chat,
    ask::{self, Asking},
    keys::{Key, Keys},
    screen::{Abilities, Out, Screen},
    view::View,
};
use crate::{
    app::App,
    exit::{FAILED, Failure, INTERRUPTED, OK, REFUSED},
    output::{self, plain},
};

/// How long a cut connection is tried again; a service comes back within it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two drawings of the status.
const TICK: Duration = Duration::from_millis(100);
/// Within this time, interrupts belong together.
const QUICK: Duration = Duration::from_secs(2);
/// The operation whose interruption ends a turn.
const OP: &str = "turn";

/// How a turn ended for the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// By itself, or told to stop.
    Ended(Box<RunResult>),
    /// The user does not wait for its end.
    Left,
}

impl End {
    /// The exit code of a chat that ends with it.
    pub fn code(&self) -> u8 {
        match self {
            End::Left => INTERRUPTED,
            End::Ended(result) => match result.status {
                Outcome::Completed => OK,
                Outcome::Failed | Outcome::TimedOut => FAILED,
                Outcome::Denied => REFUSED,
                Outcome::Cancelled => INTERRUPTED,
            },
        }
    }
}

/// Interrupts that come quickly after one another.
#[derive(Debug, Default)]
pub struct Interrupts(VecDeque<Instant>);

impl Interrupts {
    /// One more; the answer is how many there were lately.
    pub fn add(&mut self, now: Instant) -> usize {
        self.0.push_back(now);
        while self.0.front().is_some_and(|first| now.duration_since(*first) > QUICK) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

/// A turn at work.
struct Turn<'c, 'a> {
    chat: &'c mut Chat<'a>,
    id: String,
    view: View,
    asking: VecDeque<Asking>,
    /// Questions that this client answered.
    mine: HashSet<ApprovalId>,
    typed: String,
    stopping: bool,
    left: bool,
    result: Option<Box<RunResult>>,
}

impl Chat<'_> {
    /// Takes a turn and shows it to its end.
    pub async fn turn(&mut self, input: String, context: Option<String>) -> Result<End, Failure> {
        let mut keys = if self.interactive { Keys::take() } else { None };
        self.screen.raw = keys.is_some();
        self.screen.measure();
        let ended = self.taken(input, context, &mut keys).await;
        self.screen.clear()?;
        self.screen.raw = false;
        self.left_over(keys.map(Keys::give_back).unwrap_or_default());
        ended
    }

    async fn taken(
        &mut self,
        input: String,
        context: Option<String>,
        keys: &mut Option<Keys>,
    ) -> Result<End, Failure> {
        let turn_id = uuid::Uuid::now_v7().to_string();
        let params = RunStartParams {
            session_id: self.session.clone(),
            turn_id: turn_id.clone(),
            input: Input::Text(input),
            context,
            policy: Some(self.policy.clone()),
            metadata: std::collections::BTreeMap::new(),
        };
        let receipt = self.client.run_start(&params).await?;
        self.last_turn = Some(turn_id.clone());
        let mut follow = self.client.follow(&self.session, receipt.seq.saturating_sub(1)).patience(PATIENCE);
        let view = View::new(self.screen.abilities(), self.wanted);
        let mut turn = Turn {
            chat: self,
            id: turn_id,
            view,
            asking: VecDeque::new(),
            mine: HashSet::new(),
            typed: String::new(),
            stopping: false,
            left: false,
            result: None,
        };
        let ended = turn.work(&mut follow, keys).await;
        let (left, result, typed) = (turn.left, turn.result.take(), std::mem::take(&mut turn.typed));
        self.unsaid.push_str(&typed);
        self.seen(follow.last());
        ended?;
        match result {
            Some(result) => Ok(End::Ended(result)),
            None if left => Ok(End::Left),
            None => Err(Failure::failed("the daemon ended while the turn was going on")
                .hint("ask again; 'cairn trace show' has what was done")),
        }
    }

    /// Keys that were pressed for a turn that had ended: text is for the next one.
    fn left_over(&mut self, keys: Vec<Key>) {
        for key in keys {
            match key {
                Key::Interrupt => {
                    self.unsaid.clear();
                    self.leave |= self.interrupts.add(Instant::now()) >= 3;
                }
                Key::Char(c) => self.unsaid.push(c),
                Key::Backspace => drop(self.unsaid.pop()),
                Key::Escape => self.unsaid.clear(),
                // A line is not sent before its user has seen what it would answer.
                Key::Enter | Key::End => {}
            }
        }
    }
}

impl Turn<'_, '_> {
    async fn work(&mut self, follow: &mut Follow, keys: &mut Option<Keys>) -> Result<(), Failure> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while self.result.is_none() && !self.left {
            tokio::select! {
                item = follow.next() => {
                    if self.item(item?)? {
                        return Ok(());
                    }
                }
                key = next(keys) => match key {
                    Some(key) => self.key(key).await?,
                    None => *keys = None,
                },
                Some(()) = self.chat.signals.recv() => self.interrupted().await?,
                _ = tick.tick() => self.draw()?,
            }
        }
        Ok(())
    }

    /// Shows an item; true when nothing more comes of this turn.
    fn item(&mut self, item: Item) -> Result<bool, Failure> {
        match item {
            Item::Event(record) => return self.record(&record),
            Item::Live(json) => {
                // What a newer daemon tells live is left alone.
                if let Ok(evt) = serde_json::from_str::<AgentEvt>(&json) {
                    self.chat.log_progress(&evt);
                    if !self.chat.json() {
                        let out = self.view.live(evt);
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
        // A record of a newer daemon's kind is passed on and otherwise left alone.
        let Ok(envelope) = record.envelope() else { return Ok(false) };
        let Some(evt) = envelope.body.evt() else { return Ok(false) };
        self.chat.log_event(evt);
        match evt {
            AgentEvt::RunCompleted { result } if result.turn_id != self.id => return Ok(false),
            AgentEvt::RunCompleted { result } => self.result = Some(result.clone()),
            AgentEvt::ApprovalRequired { approval } if self.chat.interactive => {
                self.asking
                    .push_back(Asking::new(approval.approval_id.clone(), approval.patterns.first().cloned()));
            }
            AgentEvt::ApprovalResolved { approval_id, resolution } => {
                self.asking.retain(|a| a.approval != *approval_id);
                let mine = self.mine.contains(approval_id);
                self.note(ask::answered(resolution, mine))?;
            }
            _ => {}
        }
        if !self.chat.json() {
            let out = self.view.take(evt.clone());
            self.show(&out)?;
        }
        Ok(matches!(evt, AgentEvt::Interrupted { op } if op == OP))
    }

    async fn key(&mut self, key: Key) -> Result<(), Failure> {
        if key == Key::Interrupt {
            return self.interrupted().await;
        }
        if let Some(asking) = self.asking.front_mut() {
            if let Some((decision, reason, pattern)) = asking.key(key).answer() {
                let approval_id = asking.approval.clone();
                self.asking.pop_front();
                self.resolve(ApprovalResolveParams { approval_id, decision, reason, pattern }).await?;
            }
            return self.draw();
        }
        match key {
            // More than the daemon takes is not typed.
            Key::Char(c) if self.typed.len() < 16 * 1024 => self.typed.push(c),
            Key::Backspace => drop(self.typed.pop()),
            Key::Escape => self.typed.clear(),
            Key::Enter if !self.typed.trim().is_empty() => self.steer().await?,
            _ => {}
        }
        self.draw()
    }

    async fn resolve(&mut self, params: ApprovalResolveParams) -> Result<(), Failure> {
        self.mine.insert(params.approval_id.clone());
        let Err(error) = self.chat.client.approval_resolve(&params).await else { return Ok(()) };
        self.mine.remove(&params.approval_id);
        match error {
            // Somebody was faster; the record of their answer tells who.
            ClientError::Rpc { message, .. } => self.note(format!("  {}\n", plain(&message))),
            error => Err(error.into()),
        }
    }

    async fn steer(&mut self) -> Result<(), Failure> {
        let text = std::mem::take(&mut self.typed).trim().to_owned();
        let params = SteerParams { session_id: self.chat.session.clone(), text };
        match self.chat.client.run_steer(&params).await {
            Ok(_) => Ok(()),
            Err(ClientError::Rpc { message, .. }) => {
                // It is not lost: it can be sent with the next turn.
                self.chat.unsaid.push_str(&params.text);
                self.note(format!("{} {}\n", style("not said:").yellow().for_stderr(), plain(&message)))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn interrupted(&mut self) -> Result<(), Failure> {
        let quick = self.chat.interrupts.add(Instant::now());
        let again = self.stopping && (self.chat.wanted.quiet || !self.chat.interactive);
        if again || quick >= 3 {
            self.left = true;
            self.chat.leave = true;
            return Ok(());
        }
        if std::mem::replace(&mut self.stopping, true) {
            return Ok(());
        }
        self.asking.clear();
        let turn = TurnRef { session_id: self.chat.session.clone(), turn_id: Some(self.id.clone()) };
        match self.chat.client.run_cancel(&turn).await {
            // Refused because it has just ended: its last record is on the way.
            Ok(_) | Err(ClientError::Rpc { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        if self.chat.json() || !self.chat.screen.abilities().status {
            return Ok(());
        }
        let rows = match self.asking.front() {
            Some(asking) => vec![asking.row()],
            None => self.view.status(Some(&self.typed)),
        };
        Ok(self.chat.screen.status(&rows)?)
    }

    fn note(&mut self, text: String) -> Result<(), Failure> {
        if self.chat.json() || self.chat.wanted.quiet {
            return Ok(());
        }
        self.show(&[Out::Note(text)])
    }

    fn show(&mut self, out: &[Out]) -> Result<(), Failure> {
        self.chat.screen.write(out)?;
        if out.is_empty() { Ok(()) } else { self.draw_if_kept() }
    }

    /// Draws the status again right behind what was written over it.
    fn draw_if_kept(&mut self) -> Result<(), Failure> {
        if self.result.is_some() { Ok(()) } else { self.draw() }
    }
}

/// Shows a question outside a turn and waits for its keys.
pub async fn asked_by_keys(app: &App<'_>, approval: &Approval) -> Result<ApprovalResolveParams, Failure> {
    let mut screen = Screen::new(Abilities::of_process(app.globals.quiet));
    screen.write(&[Out::Note(ask::question(approval))])?;
    let no = || Failure::told("denied_by_user", "the question was not answered".into());
    let mut keys = Keys::take().ok_or_else(no)?;
    screen.raw = true;
    let mut asking = Asking::new(approval.approval_id.clone(), approval.patterns.first().cloned());
    loop {
        screen.status(&[asking.row()])?;
        match keys.next().await {
            None | Some(Key::Interrupt) => return Err(no()),
            Some(key) => {
                if let Some((decision, reason, pattern)) = asking.key(key).answer() {
                    let approval_id = approval.approval_id.clone();
                    return Ok(ApprovalResolveParams { approval_id, decision, reason, pattern });
                }
            }
        }
    }
}

async fn next(keys: &mut Option<Keys>) -> Option<Key> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quick_interrupts_belong_together() {
        let begin = Instant::now();
        let mut interrupts = Interrupts::default();
        let counts: Vec<usize> = [0, 500, 900, 3000, 3100, 5200]
            .map(|ms| interrupts.add(begin + Duration::from_millis(ms)))
            .to_vec();
        assert_eq!(counts, [1, 2, 3, 1, 2, 1]);
    }
}
