//! `/resume` and `--resume`: the chats of the folder, to continue one of them.

use cairn_client_sdk::Client;
use cairn_protocol::{
    event::AgentEvt,
    model::Part,
    session::{PageParams, Session},
    time::Timestamp,
    trace::TraceGetParams,
};

use super::{Chat, picker};
use crate::{
    exit::Failure,
    render::output::{self, plain},
};

/// Maximum sessions of the list.
const MAX_SESSIONS: usize = 50;
/// Sessions per page, and pages that are read.
const PAGE: u32 = 200;
const MAX_PAGES: usize = 5;
/// Records of a session in which turns are counted.
const MAX_RECORDS: u32 = 500;
/// Maximum characters of a session's first words.
const MAX_WORDS: usize = 60;

/// A chat that can be continued.
struct Earlier {
    session: Session,
    words: String,
    turns: usize,
    /// The log has more records than were counted.
    is_partial: bool,
}

impl Earlier {
    /// Renders time, turns and first words.
    fn row(&self, now: Timestamp) -> String {
        let more = if self.is_partial { "+" } else { "" };
        let unit = if self.turns == 1 && !self.is_partial { "turn " } else { "turns" };
        let age = age(now.0 - self.session.updated_at.0);
        format!("{age:>8}  {:>3}{more} {unit}  {}", self.turns, self.words)
    }
}

impl Chat<'_> {
    /// Lets the user choose one of the folder's chats; without a terminal it lists them.
    pub async fn resume(&mut self) -> Result<(), Failure> {
        let chats = self.earlier().await?;
        if chats.is_empty() {
            self.app.info("there is no earlier chat of this folder");
            return Ok(());
        }
        let now = Timestamp::now();
        let rows: Vec<String> = chats.iter().map(|chat| chat.row(now)).collect();
        if !self.interactive {
            return Ok(output::line(&rows.join("\n"))?);
        }
        self.screen.measure();
        let capabilities = self.screen.capabilities();
        let Some(at) = picker::choose("continue", rows, capabilities).await? else { return Ok(()) };
        let Some(chosen) = chats.into_iter().nth(at) else { return Ok(()) };
        self.session = chosen.session.session_id;
        self.turns.clear();
        self.usage = None;
        self.cost_micro_usd = None;
        self.seen_from(chosen.session.head_seq).await?;
        self.refresh_model().await?;
        self.app.info(&format!("continuing '{}'", chosen.words));
        self.print_last_turn().await
    }

    /// Lists the chats of the folder, the latest first, without the current one.
    async fn earlier(&self) -> Result<Vec<Earlier>, Failure> {
        let mut sessions: Vec<Session> = Vec::new();
        let mut cursor = None;
        let folder = self.folder.to_string_lossy().into_owned();
        for _ in 0..MAX_PAGES {
            let params = PageParams { cursor, limit: Some(PAGE), ..PageParams::default() };
            let page = self.client.session_list(&params).await?;
            let is_here = |s: &Session| {
                s.root.as_ref() == Some(&folder) && s.session_id != self.session && s.head_seq > 0
            };
            sessions.extend(page.data.into_iter().filter(is_here));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        sessions.sort_by_key(|s| std::cmp::Reverse(s.updated_at));
        let mut chats = Vec::new();
        for session in sessions.into_iter().take(MAX_SESSIONS) {
            chats.extend(describe(&self.client, session).await?);
        }
        Ok(chats)
    }
}

/// Reads the first words of a session; `None` if it is no chat.
async fn describe(client: &Client, session: Session) -> Result<Option<Earlier>, Failure> {
    let params =
        TraceGetParams { trace_id: session.session_id.clone(), after: 0, limit: Some(MAX_RECORDS) };
    let page = client.trace_get(&params).await?;
    let mut inputs = page.data.iter().filter_map(|envelope| match envelope.body.evt() {
        Some(AgentEvt::TurnAccepted { input, .. }) => Some(input),
        _ => None,
    });
    let Some(first) = inputs.next() else { return Ok(None) };
    let turns = 1 + inputs.count();
    let mut lines = typed(first).unwrap_or_default().lines();
    let line = lines.find(|l| !l.trim().is_empty()).unwrap_or_default();
    let words: String = plain(line.trim()).chars().take(MAX_WORDS).collect();
    Ok(Some(Earlier { session, words, turns, is_partial: page.next_after.is_some() }))
}

/// Returns the text that the user typed: it follows the context, and pictures follow it.
pub fn typed(input: &[Part]) -> Option<&str> {
    input.iter().rev().find_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    })
}

/// Describes a time that has passed.
pub fn age(millis: i64) -> String {
    let minutes = millis.max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min"),
        60..1440 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let minute = 60_000;
        for (millis, expected) in [
            (-5, "now"),
            (59_999, "now"),
            (minute, "1 min"),
            (90 * minute, "1 h"),
            (2 * 1440 * minute, "2 d"),
        ] {
            assert_eq!(age(millis), expected);
        }
    }
}
