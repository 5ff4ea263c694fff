//! Sessions as users name them: a part of an id is enough.

use std::{fmt, str::FromStr};

use cairn_client_sdk::Client;
use cairn_protocol::{
    id::SessionId,
    session::{PageParams, Session},
};

use crate::{
    exit::Failure,
    render::{output::plain, when},
};

/// Digits of a short id. The last ones of an id are random.
const SHORT: usize = 6;
/// Fewest digits that name a session or a request.
pub const MIN_DIGITS: usize = 4;
/// Sessions that are listed if several have the part.
const MAX_LISTED: u32 = 10;

/// A session as the user named it: its id, the first or last digits of it, or `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName(String);

impl FromStr for SessionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("ses_").unwrap_or(text);
        let is_part = digits.bytes().all(|b| b.is_ascii_hexdigit())
            && (MIN_DIGITS..=32).contains(&digits.len());
        if is_part || text == LAST {
            return Ok(Self(text.to_owned()));
        }
        Err("a session is named by its id, by at least 4 of the first or last digits of it, or as \
             'last'; 'cairn sessions' lists them"
            .into())
    }
}

/// Name of the newest session.
const LAST: &str = "last";

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SessionName {
    /// Returns the id of the session.
    ///
    /// # Errors
    /// `session_not_found` if no session has the name; a usage failure that lists them if several
    /// have it.
    pub async fn resolve(&self, client: &Client) -> Result<SessionId, Failure> {
        if let Ok(id) = self.0.parse() {
            return Ok(id);
        }
        let is_last = self.0 == LAST;
        let params = PageParams {
            id: (!is_last).then(|| self.0.clone()),
            limit: Some(if is_last { 1 } else { MAX_LISTED }),
            archived: !is_last,
            ..PageParams::default()
        };
        let found = client.session_list(&params).await?.data;
        match found.as_slice() {
            [] => {
                let text = if is_last {
                    "there is no session yet".to_owned()
                } else {
                    format!("no session's id begins or ends with '{}'", self.0)
                };
                Err(Failure::with_reason("session_not_found", text)
                    .hint("'cairn sessions' lists the sessions"))
            }
            [only] => Ok(only.session_id.clone()),
            several => {
                let rows: Vec<String> = several.iter().map(row).collect();
                let text =
                    format!("several sessions have the id '{}':\n  {}", self.0, rows.join("\n  "));
                Err(Failure::usage(text).hint("use more digits"))
            }
        }
    }
}

/// Returns the id of the session that a flag names, if it is given.
///
/// # Errors
/// As [`SessionName::resolve`].
pub async fn resolve(
    client: &Client,
    name: Option<&SessionName>,
) -> Result<Option<SessionId>, Failure> {
    match name {
        Some(name) => name.resolve(client).await.map(Some),
        None => Ok(None),
    }
}

fn row(session: &Session) -> String {
    format!("{}  {}  {}", session.session_id, when::short(session.updated_at), title(session))
}

/// Returns the short form of an id, which names the session in commands.
pub fn short(id: &SessionId) -> &str {
    last_digits(id.as_str())
}

/// Returns the digits of an id that stand for it in lists.
pub fn last_digits(id: &str) -> &str {
    &id[id.len().saturating_sub(SHORT)..]
}

/// Returns true if an id begins or ends with these digits, of which there are enough for a name.
pub fn has_digits(id: &str, digits: &str) -> bool {
    let digits = digits.split_once('_').map_or(digits, |(_, digits)| digits);
    let number = id.split_once('_').map_or(id, |(_, number)| number);
    digits.len() >= MIN_DIGITS && (number.starts_with(digits) || number.ends_with(digits))
}

/// Returns the title of a session, safe to print.
pub fn title(session: &Session) -> String {
    let title = plain(&session.title);
    if title.is_empty() { "(no request yet)".to_owned() } else { title }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_named_by_their_first_or_last_digits() {
        let id = "apr_01a2b3c4d5e6f708";
        for (digits, fits) in
            [("01a2", true), ("apr_01a2", true), ("f708", true), ("708", false), ("b3c4", false)]
        {
            assert_eq!(has_digits(id, digits), fits, "{digits}");
        }
    }

    #[test]
    fn parts_of_ids_are_names() {
        let id = SessionId::new();
        for name in [id.as_str(), short(&id), "last", "ses_0192", "0192abcd"] {
            assert!(name.parse::<SessionName>().is_ok(), "{name}");
        }
        for name in ["", "abc", "ses_", "latest", "../etc", "ses_xyz1", &"a".repeat(33)] {
            let error = name.parse::<SessionName>().unwrap_err();
            assert!(error.contains("cairn sessions"), "{name}: {error}");
        }
    }
}
