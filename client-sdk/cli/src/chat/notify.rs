//! Notifications when the chat waits for the user.

use std::time::{Duration, Instant};

use cairn_config::ChatNotify;

use crate::render::output::plain;

/// Time after which a user is notified even if the terminal has the focus.
const DELAY: Duration = Duration::from_secs(10);
/// Maximum characters of a notification.
const MAX_TEXT: usize = 120;

/// Notifies the user of one turn.
#[derive(Debug)]
pub struct Notifier {
    form: ChatNotify,
    is_focused: bool,
    started: Instant,
    /// Text of a question that waits, and the time since when.
    waiting: Option<(String, Instant)>,
}

impl Notifier {
    /// Creates a notifier; `auto` is resolved by the variables of the environment.
    pub fn new(setting: ChatNotify, now: Instant) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let form = form(setting, &variable);
        Self { form, is_focused: true, started: now, waiting: None }
    }

    pub fn set_focus(&mut self, is_focused: bool) {
        self.is_focused = is_focused;
    }

    /// Notes that a question waits for the user. It is announced at once if the terminal has no
    /// focus, else by [`Notifier::overdue`].
    pub fn wait(&mut self, text: &str, now: Instant) -> Option<String> {
        if !self.is_focused {
            return self.sequence(text);
        }
        self.waiting = Some((text.to_owned(), now));
        None
    }

    /// Notes that the question was answered.
    pub fn answered(&mut self) {
        self.waiting = None;
    }

    /// Returns the notification of a question that waits too long, or whose terminal has no focus; once.
    pub fn overdue(&mut self, now: Instant) -> Option<String> {
        let (_, since) = self.waiting.as_ref()?;
        if self.is_focused && now.duration_since(*since) < DELAY {
            return None;
        }
        let (text, _) = self.waiting.take()?;
        self.sequence(&text)
    }

    /// Returns the notification at the end of a turn.
    pub fn finished(&mut self, text: &str, now: Instant) -> Option<String> {
        self.waiting = None;
        if self.is_focused && now.duration_since(self.started) < DELAY {
            return None;
        }
        self.sequence(text)
    }

    fn sequence(&self, text: &str) -> Option<String> {
        let text: String = plain(text).chars().take(MAX_TEXT).collect();
        match self.form {
            ChatNotify::Off => None,
            ChatNotify::Bell | ChatNotify::Auto => Some("\u{7}".to_owned()),
            ChatNotify::Osc9 => Some(format!("\u{1b}]9;{text}\u{7}")),
            ChatNotify::Osc777 => {
                Some(format!("\u{1b}]777;notify;cairn;{}\u{7}", text.replace(';', ",")))
            }
        }
    }
}

/// Resolves `auto` to the form that a terminal is known to have.
fn form(setting: ChatNotify, variable: &dyn Fn(&str) -> Option<String>) -> ChatNotify {
    if setting != ChatNotify::Auto {
        return setting;
    }
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    // A multiplexer passes the bell on, and marks the window.
    if is_set("TMUX") || is_set("STY") {
        return ChatNotify::Bell;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    if matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty") || is_set("KITTY_WINDOW_ID")
    {
        return ChatNotify::Osc9;
    }
    let is_urxvt = variable("TERM").is_some_and(|term| term.starts_with("rxvt"));
    if is_set("VTE_VERSION") || is_urxvt { ChatNotify::Osc777 } else { ChatNotify::Bell }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notifier(form: ChatNotify, now: Instant) -> Notifier {
        Notifier { form, is_focused: true, started: now, waiting: None }
    }

    #[test]
    fn user_is_notified_without_focus_or_after_a_while() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut notifier = notifier(ChatNotify::Osc9, start);
        assert_eq!(notifier.wait("allow?", start), None);
        assert_eq!(notifier.overdue(after(9)), None);
        assert_eq!(notifier.overdue(after(10)).as_deref(), Some("\u{1b}]9;allow?\u{7}"));
        assert_eq!(notifier.overdue(after(20)), None);
        notifier.wait("allow?", after(21));
        notifier.answered();
        assert_eq!(notifier.overdue(after(60)), None);
        notifier.set_focus(false);
        assert!(notifier.wait("allow?", after(61)).is_some());
        assert!(notifier.finished("done", after(1)).is_some());
        notifier.set_focus(true);
        assert!(notifier.finished("done", after(9)).is_none());
        assert!(notifier.finished("done", after(10)).is_some());
        notifier.wait("allow?", after(11));
        notifier.set_focus(false);
        assert!(notifier.overdue(after(12)).is_some());
    }

    #[test]
    fn text_cannot_end_the_sequence() {
        let now = Instant::now();
        let mut osc = notifier(ChatNotify::Osc777, now);
        osc.set_focus(false);
        let got = osc.wait("a\u{7}\u{1b}\\;b", now).unwrap();
        assert_eq!(got, "\u{1b}]777;notify;cairn;a\\u{7}\\u{1b}\\,b\u{7}");
        let mut off = notifier(ChatNotify::Off, now);
        off.set_focus(false);
        assert_eq!(off.wait("x", now), None);
    }

    #[test]
    fn form_follows_the_terminal() {
        for (variables, expected) in [
            (vec![("TERM_PROGRAM", "WezTerm")], ChatNotify::Osc9),
            (vec![("KITTY_WINDOW_ID", "1")], ChatNotify::Osc9),
            (vec![("VTE_VERSION", "7006")], ChatNotify::Osc777),
            (vec![("TERM", "rxvt-unicode-256color")], ChatNotify::Osc777),
            (vec![("TMUX", "/tmp/x"), ("TERM_PROGRAM", "WezTerm")], ChatNotify::Bell),
            (vec![], ChatNotify::Bell),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(form(ChatNotify::Auto, &variable), expected, "{variables:?}");
            assert_eq!(form(ChatNotify::Off, &variable), ChatNotify::Off);
        }
    }
}
