//! The list of sessions in a terminal: each with the end of its conversation, and keys that open,
//! answer or delete it.

use std::io::{self, Write as _};

use cairn_client_sdk::{Client, ClientError};
use cairn_protocol::{
    board::{Board, BoardParams, BoardRow},
    id::SessionId,
    time::Timestamp,
};
use console::{style, truncate_str};
use crossterm::{
    ExecutableCommand as _, cursor,
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    terminal::{self, EnterAlternateScreen, LeaveAlternateScreen},
};

use crate::{
    app::App,
    chat::{self, LastTurn, age},
    exit::Failure,
    render::output::plain,
    session_name,
};

/// Keys of the list, the most important ones first.
const KEYS: [&str; 6] =
    ["Enter continue", "Esc leave", "^O viewer", "^A answer", "^L log", "^D delete"];
/// Columns of a row before the title.
const TITLE_COLUMN: usize = 24;
/// Maximum bytes of a text of the preview.
const MAX_PREVIEW: usize = 4096;

/// The command that follows the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Chat,
    Viewer,
    Answer,
    Log,
}

impl Action {
    /// Returns the words of the command before the session's id.
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["chat", "--session"],
            Self::Viewer => &["open"],
            Self::Answer => &["approvals", "--watch", "--session"],
            Self::Log => &["trace", "show"],
        }
    }
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Stay,
    Leave,
    Run(Action, SessionId),
    Delete(SessionId),
}

/// The list with its selection.
struct Picker {
    rows: Vec<BoardRow>,
    /// Typed letters; rows whose title or folder has them are listed.
    filter: String,
    /// Position among the listed rows.
    at: usize,
    preview: LastTurn,
    /// The session that the preview shows.
    previewed: Option<SessionId>,
    /// The session whose deletion is to be confirmed.
    doomed: Option<SessionId>,
    message: String,
}

/// The terminal in raw mode with its alternate screen, until this is dropped.
struct FullScreen;

impl FullScreen {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self;
        io::stderr().execute(EnterAlternateScreen)?.execute(cursor::Hide)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // A terminal that is gone cannot be restored.
        let _closed = io::stderr().execute(cursor::Show);
        let _closed = io::stderr().execute(LeaveAlternateScreen);
        let _closed = terminal::disable_raw_mode();
    }
}

/// Lets the user choose a session and what to do with it; `None` if they leave.
///
/// # Errors
/// The daemon's errors, and those of the terminal.
pub async fn choose(app: &App<'_>, limit: u32) -> Result<Option<(Action, SessionId)>, Failure> {
    let client = app.connect().await?;
    let board = client.session_board(&BoardParams { limit: Some(limit) }).await?;
    if board.rows.is_empty() {
        app.info("there is no session yet; 'cairn chat' starts one");
        return Ok(None);
    }
    let unreadable = |e: io::Error| Failure::failed(format!("the terminal cannot be used: {e}"));
    let mut picker = Picker::new(board);
    let _screen = FullScreen::enter().map_err(unreadable)?;
    loop {
        picker.draw().map_err(unreadable)?;
        if picker.load(&client).await {
            picker.draw().map_err(unreadable)?;
        }
        // A key ends each wait, so that no thread reads the terminal after this.
        let event = tokio::task::spawn_blocking(event::read).await;
        let event = event.map_err(|e| Failure::failed(format!("the list ended: {e}")))?;
        let Event::Key(key) = event.map_err(unreadable)? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match picker.key(key) {
            Step::Stay => {}
            Step::Leave => return Ok(None),
            Step::Run(action, session) => return Ok(Some((action, session))),
            Step::Delete(session) => picker.delete(&client, &session).await?,
        }
    }
}

impl Picker {
    fn new(board: Board) -> Self {
        Self {
            rows: board.rows,
            filter: String::new(),
            at: 0,
            preview: LastTurn::default(),
            previewed: None,
            doomed: None,
            message: String::new(),
        }
    }

    /// Returns the rows that the filter leaves.
    fn listed(&self) -> Vec<&BoardRow> {
        let filter = self.filter.to_lowercase();
        let is_listed = |row: &&BoardRow| {
            let folder = row.session.root.as_deref().unwrap_or_default();
            row.session.title.to_lowercase().contains(&filter)
                || folder.to_lowercase().contains(&filter)
        };
        self.rows.iter().filter(is_listed).collect()
    }

    fn selected(&self) -> Option<&BoardRow> {
        self.listed().get(self.at).copied()
    }

    /// Reads the preview of the selected session; returns true if it has changed.
    async fn load(&mut self, client: &Client) -> bool {
        let selected = self.selected().map(|row| &row.session);
        let Some((session, head)) = selected.map(|s| (s.session_id.clone(), s.head_seq)) else {
            return false;
        };
        if self.previewed.as_ref() == Some(&session) {
            return false;
        }
        match chat::last_turn(client, &session, head).await {
            Ok(turn) => self.preview = turn,
            Err(failure) => {
                self.preview = LastTurn::default();
                self.message = failure.text();
            }
        }
        self.previewed = Some(session);
        true
    }

    async fn delete(&mut self, client: &Client, session: &SessionId) -> Result<(), Failure> {
        match client.session_delete(&Client::session(session)).await {
            Ok(_) => {
                self.rows.retain(|row| row.session.session_id != *session);
                self.message = format!("deleted {}", session_name::short(session));
                self.at = self.at.min(self.listed().len().saturating_sub(1));
            }
            // A running session cannot be deleted.
            Err(ClientError::Rpc { message, .. }) => self.message = plain(&message),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn key(&mut self, key: KeyEvent) -> Step {
        if let Some(session) = self.doomed.take() {
            self.message.clear();
            return match key.code {
                KeyCode::Char('y' | 'Y') => Step::Delete(session),
                _ => Step::Stay,
            };
        }
        self.message.clear();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.listed().len().saturating_sub(1);
        let selected = self.selected().map(|row| row.session.session_id.clone());
        let run = |action| selected.clone().map_or(Step::Stay, |id| Step::Run(action, id));
        match key.code {
            KeyCode::Char('c') if control => return Step::Leave,
            KeyCode::Esc => return Step::Leave,
            KeyCode::Enter => return run(Action::Chat),
            KeyCode::Char('o') if control => return run(Action::Viewer),
            KeyCode::Char('l') if control => return run(Action::Log),
            KeyCode::Char('a') if control => match self.selected() {
                Some(row) if row.waiting.is_empty() => {
                    self.message = "this session waits for no answer".to_owned();
                }
                _ => return run(Action::Answer),
            },
            KeyCode::Char('d') if control => self.doomed = selected,
            KeyCode::Delete => self.doomed = selected,
            KeyCode::Char('u') if control => self.refilter(|filter| filter.clear()),
            KeyCode::Char('p') if control => self.at = self.at.saturating_sub(1),
            KeyCode::Char('n') if control => self.at = (self.at + 1).min(last),
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            KeyCode::PageUp => self.at = self.at.saturating_sub(10),
            KeyCode::PageDown => self.at = (self.at + 10).min(last),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = last,
            KeyCode::Backspace => self.refilter(|filter| {
                filter.pop();
            }),
            KeyCode::Char(c) if !control && !c.is_control() => {
                self.refilter(|filter| filter.push(c));
            }
            _ => {}
        }
        Step::Stay
    }

    fn refilter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.at = 0;
    }

    fn draw(&self) -> io::Result<()> {
        let (columns, rows) = terminal::size().unwrap_or((80, 24));
        let frame = self.frame(usize::from(columns), usize::from(rows), Timestamp::now());
        let text = format!("\u{1b}[H{}\u{1b}[K\u{1b}[J", frame.join("\u{1b}[K\r\n"));
        let mut out = io::stderr().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Renders the screen: the list, the end of the selected conversation, and the keys.
    fn frame(&self, columns: usize, rows: usize, now: Timestamp) -> Vec<String> {
        // The last column stays free, because a terminal may wrap after it.
        let width = columns.saturating_sub(1).max(10);
        let listed = self.listed();
        // Three rows are the filter, the rule and the keys.
        let height = listed.len().clamp(1, (rows.saturating_sub(3) / 2).max(1));
        let mut out = vec![format!("{} {}", style("sessions ›").dim(), plain(&self.filter))];
        let first = self.at.saturating_sub(height - 1);
        for (at, row) in listed.iter().enumerate().skip(first).take(height) {
            out.push(list_row(row, at == self.at, width, now));
        }
        if listed.is_empty() {
            out.push(style("no session has these letters").dim().to_string());
        }
        out.push(style("─".repeat(width)).dim().to_string());
        let preview = self.selected().map(|row| self.preview_of(row, width)).unwrap_or_default();
        let space = rows.saturating_sub(out.len() + 1);
        // The end of the answer is what the conversation continues with.
        let head = preview.len().min(2);
        if preview.len() > space {
            out.extend_from_slice(&preview[..head.min(space)]);
            let tail = space.saturating_sub(head);
            out.extend_from_slice(&preview[preview.len() - tail..]);
        } else {
            out.extend(preview);
            out.resize(rows.saturating_sub(1).max(out.len()), String::new());
        }
        out.push(self.last_row(width));
        out
    }

    fn last_row(&self, width: usize) -> String {
        let text = match (&self.doomed, self.selected()) {
            (Some(_), Some(row)) => {
                let title = session_name::title(&row.session);
                let question = format!("y deletes this session with its log: {title}");
                return style(truncate_str(&question, width, "…").into_owned()).red().to_string();
            }
            _ if !self.message.is_empty() => self.message.clone(),
            _ => {
                let mut keys = String::new();
                for key in KEYS {
                    if keys.len() + key.len() + 3 <= width {
                        keys =
                            if keys.is_empty() { key.into() } else { format!("{keys} · {key}") };
                    }
                }
                keys
            }
        };
        style(truncate_str(&text, width, "…").into_owned()).dim().to_string()
    }

    fn preview_of(&self, row: &BoardRow, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        let folder = row.session.root.as_deref().unwrap_or("no folder");
        let branch = row.branch.as_ref().map(|b| format!(" on {}", plain(b))).unwrap_or_default();
        let facts =
            format!("{}  {}{branch}", session_name::short(&row.session.session_id), plain(folder));
        out.push(style(truncate_str(&facts, width, "…").into_owned()).dim().to_string());
        for approval in &row.waiting {
            let text = format!("? {}", plain(&approval.preview.summary));
            out.push(style(truncate_str(&text, width, "…").into_owned()).yellow().to_string());
        }
        if self.previewed.as_ref() != Some(&row.session.session_id) {
            return out;
        }
        let LastTurn { question, answer } = &self.preview;
        if let Some(question) = question {
            let rows = wrapped(question, width.saturating_sub(2));
            out.extend(rows.into_iter().map(|row| style(format!("› {row}")).bold().to_string()));
        }
        match answer {
            Some(answer) => out.extend(wrapped(answer, width)),
            None if question.is_some() => out.push(style("no answer yet").dim().to_string()),
            None => out.push(style("no request yet").dim().to_string()),
        }
        out
    }
}

fn list_row(row: &BoardRow, is_selected: bool, width: usize, now: Timestamp) -> String {
    let age = age(now.0 - row.session.updated_at.0);
    let state = super::state(row);
    let mark = if is_selected { ">" } else { " " };
    let title = session_name::title(&row.session);
    let columns = width.saturating_sub(TITLE_COLUMN);
    let title = truncate_str(&title, columns, "…").into_owned();
    let title = if is_selected { style(title).bold().to_string() } else { title };
    let text = format!("{mark} {age:>6}  {state:<13} {title}");
    truncate_str(&text, width, "…").into_owned()
}

/// Wraps the lines of a text, safe to print.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let end = (0..=text.len().min(MAX_PREVIEW)).rev().find(|at| text.is_char_boundary(*at));
    let text = text[..end.unwrap_or(0)].trim();
    text.lines().flat_map(|line| chat::wrap(&plain(line), width.max(1))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn picker(titles: &[&str]) -> Picker {
        let row = |title: &&str| {
            let session = json!({"sessionId": SessionId::new(), "title": title, "state": "completed",
                "createdAt": "2026-11-26T14:00:00Z", "updatedAt": "2026-11-26T14:00:00Z",
                "headSeq": 3, "root": "/home/me/src/ledger"});
            serde_json::from_value(json!({"session": session, "waiting": [], "queued": 0})).unwrap()
        };
        let mut picker = Picker::new(Board { rows: titles.iter().map(row).collect() });
        picker.previewed = picker.selected().map(|row| row.session.session_id.clone());
        picker.preview = LastTurn {
            question: Some("how is it done?".into()),
            answer: Some(
                "It is done in many steps, and each of them \u{1b}[2J is small. ".repeat(30),
            ),
        };
        picker
    }

    fn frame(picker: &Picker, columns: usize) -> Vec<String> {
        let rows = picker.frame(columns, 24, Timestamp(0));
        rows.iter().map(|row| console::strip_ansi_codes(row).into_owned()).collect()
    }

    fn press(picker: &mut Picker, code: KeyCode, modifiers: KeyModifiers) -> Step {
        picker.key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn frame_fits_the_terminal() {
        let long = "a title of many words ".repeat(20);
        let picker = picker(&[&long, "second", "third \u{1b}[2J"]);
        for columns in [20, 60, 80, 200] {
            let rows = frame(&picker, columns);
            assert_eq!(rows.len(), 24, "{rows:#?}");
            for row in &rows {
                assert!(console::measure_text_width(row) < columns, "{columns}: {row}");
                assert!(!row.contains('\u{1b}'), "{row}");
            }
        }
        let rows = frame(&picker, 80).join("\n");
        for part in
            ["> ", "second", "› how is it done?", "each of them", "Enter continue", "^D delete"]
        {
            assert!(rows.contains(part), "{part}: {rows}");
        }
    }

    #[test]
    fn keys_choose_filter_and_delete() {
        let mut picker = picker(&["first", "second", "third"]);
        let id = |picker: &Picker, at: usize| picker.rows[at].session.session_id.clone();
        let (second, third) = (id(&picker, 1), id(&picker, 2));
        let none = KeyModifiers::NONE;
        assert_eq!(press(&mut picker, KeyCode::Down, none), Step::Stay);
        assert_eq!(
            press(&mut picker, KeyCode::Enter, none),
            Step::Run(Action::Chat, second.clone())
        );
        let control = KeyModifiers::CONTROL;
        let open = press(&mut picker, KeyCode::Char('o'), control);
        assert_eq!(open, Step::Run(Action::Viewer, second.clone()));
        // Nothing waits, and a deletion needs a second key.
        assert_eq!(press(&mut picker, KeyCode::Char('a'), control), Step::Stay);
        assert!(frame(&picker, 80)[23].contains("waits for no answer"));
        press(&mut picker, KeyCode::Char('d'), control);
        assert!(frame(&picker, 80)[23].contains("y deletes this session"));
        assert_eq!(press(&mut picker, KeyCode::Char('x'), none), Step::Stay);
        press(&mut picker, KeyCode::Delete, none);
        assert_eq!(press(&mut picker, KeyCode::Char('y'), none), Step::Delete(second));
        for letter in "thi".chars() {
            press(&mut picker, KeyCode::Char(letter), none);
        }
        assert_eq!(press(&mut picker, KeyCode::Enter, none), Step::Run(Action::Chat, third));
        press(&mut picker, KeyCode::Char('z'), none);
        assert_eq!(press(&mut picker, KeyCode::Enter, none), Step::Stay);
        assert!(frame(&picker, 80)[1].contains("no session has these letters"));
        assert_eq!(press(&mut picker, KeyCode::Esc, none), Step::Leave);
    }
}
