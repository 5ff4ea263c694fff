//! The menu that opens while the user types `/` or `@`, and the keys that it changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use nu_ansi_term::{Color, Style};
use reedline::{
    ColumnarMenu, Completer, EditCommand, EditMode, Editor, Emacs, Highlighter, Menu,
    MenuBuilder as _, MenuEvent, Painter, PromptEditMode, ReedlineEvent, ReedlineRawEvent,
    StyledText, Suggestion,
};

use super::pastes::Pastes;
use crate::render::theme::Theme;

/// Name of the menu that opens by itself.
pub const AUTO: &str = "auto";
/// Name of the menu that Tab opens.
pub const NAMES: &str = "names";
/// Ctrl+O at the prompt.
pub const UNFOLD: &str = "unfold";
/// Shift+Tab at the prompt.
pub const MODE: &str = "mode";
/// A paste over the limit.
pub const REFUSED: &str = "paste refused";

/// The edited line as the keys see it: an [`EditMode`] does not receive the buffer, so that the
/// painter's highlighter stores it here.
#[derive(Debug, Default)]
struct Line {
    text: String,
    cursor: usize,
    /// A key since the last painting changed the line in a way that is not known here.
    is_stale: bool,
    /// The menu that opens by itself is open.
    is_open: bool,
    /// Enter chooses the selected entry, because the user moved to it.
    has_moved: bool,
    /// The menu was requested, so that a single entry is chosen at once.
    is_requested: bool,
    /// Ctrl+R searches the history.
    is_searching: bool,
}

impl Line {
    /// Follows keys that arrive together, before the line is painted.
    fn note(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char(c)
                if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
                    && self.text.is_char_boundary(self.cursor) =>
            {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
            _ => self.is_stale = true,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct SharedLine(Arc<Mutex<Line>>);

impl SharedLine {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the start of the word that the menu completes: a command at the start of the line, or
/// a mention.
pub fn completed_word(line: &str, cursor: usize) -> Option<usize> {
    let typed = line.get(..cursor)?;
    let start = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = typed.get(start..)?;
    ((start == 0 && word.starts_with('/')) || word.starts_with('@')).then_some(start)
}

impl Highlighter for SharedLine {
    fn highlight(&self, text: &str, cursor: usize) -> StyledText {
        let mut line = self.lock();
        text.clone_into(&mut line.text);
        line.cursor = cursor;
        line.is_stale = false;
        // The terminal's own colour is readable on any background.
        let mut styled = StyledText::new();
        styled.push((Style::new(), text.to_owned()));
        styled
    }
}

/// The keys of the prompt.
pub struct Keyboard {
    inner: Emacs,
    line: SharedLine,
    pastes: Pastes,
}

impl Keyboard {
    pub fn new(inner: Emacs, line: SharedLine, pastes: Pastes) -> Self {
        Self { inner, line, pastes }
    }

    /// Returns the event of a key that differs from the usual one.
    fn key(&self, key: KeyEvent) -> Option<ReedlineEvent> {
        let mut line = self.line.lock();
        let before = line.text.get(..line.cursor).unwrap_or_default().to_owned();
        let is_current = !line.is_stale;
        line.note(key);
        let has_moved = std::mem::take(&mut line.has_moved);
        line.is_requested = false;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('r') {
            line.is_searching = true;
            return None;
        }
        if line.is_searching {
            let ends = matches!(key.code, KeyCode::Enter | KeyCode::Esc) || control;
            line.is_searching = !ends;
            return None;
        }
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let begins_word = before.is_empty() || before.ends_with(char::is_whitespace);
        match key.code {
            KeyCode::Char('/') if plain && is_current && before.is_empty() => Some(opened('/')),
            KeyCode::Char('@') if plain && is_current && begins_word => Some(opened('@')),
            KeyCode::Char('o') if control => Some(ReedlineEvent::ExecuteHostCommand(UNFOLD.into())),
            KeyCode::BackTab if !line.is_open => {
                line.has_moved = true;
                Some(ReedlineEvent::UntilFound(vec![
                    // A menu that Tab opened has the key first.
                    ReedlineEvent::MenuPrevious,
                    ReedlineEvent::ExecuteHostCommand(MODE.into()),
                ]))
            }
            KeyCode::Tab if plain && line.is_open => Some(ReedlineEvent::Enter),
            KeyCode::Tab if plain => {
                line.has_moved = true;
                line.is_requested = true;
                completed_word(&line.text, line.cursor)?;
                Some(ReedlineEvent::UntilFound(vec![
                    ReedlineEvent::Menu(AUTO.into()),
                    ReedlineEvent::MenuNext,
                ]))
            }
            KeyCode::Up | KeyCode::Down | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => {
                line.has_moved = true;
                None
            }
            // The line is sent as it was typed unless the user chose an entry.
            KeyCode::Enter if key.modifiers.is_empty() && !has_moved => {
                Some(ReedlineEvent::Multiple(vec![ReedlineEvent::Esc, ReedlineEvent::Enter]))
            }
            _ => None,
        }
    }

    fn paste(&self, text: &str) -> ReedlineEvent {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_empty = text.is_empty();
        let inserted = self.pastes.add(text);
        if inserted.is_empty() && !is_empty {
            return ReedlineEvent::ExecuteHostCommand(REFUSED.into());
        }
        ReedlineEvent::Edit(vec![EditCommand::InsertString(inserted)])
    }
}

fn opened(c: char) -> ReedlineEvent {
    ReedlineEvent::Multiple(vec![
        ReedlineEvent::Edit(vec![EditCommand::InsertChar(c)]),
        ReedlineEvent::Menu(AUTO.into()),
    ])
}

impl EditMode for Keyboard {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        let changed = match &event {
            Event::Paste(text) => Some(self.paste(text)),
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            _ => None,
        };
        match (changed, ReedlineRawEvent::try_from(event)) {
            (Some(changed), _) => changed,
            (None, Ok(event)) => self.inner.parse_event(event),
            (None, Err(())) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

/// A menu that closes when nothing fits, and that chooses a single entry only if it was requested.
pub struct AutoMenu {
    inner: ColumnarMenu,
    line: SharedLine,
}

impl AutoMenu {
    pub fn new(line: SharedLine, theme: Theme) -> Self {
        Self { inner: styled(ColumnarMenu::default().with_name(AUTO), theme), line }
    }

    fn close_if_empty(&mut self) {
        if self.inner.is_active() && self.inner.get_values().is_empty() {
            self.inner.menu_event(MenuEvent::Deactivate);
        }
        self.line.lock().is_open = self.inner.is_active();
    }
}

/// Sets the colours of a menu. Without colours the selected entry is reversed alone.
pub fn styled(menu: ColumnarMenu, theme: Theme) -> ColumnarMenu {
    let (entry, description) = match theme {
        _ if !console::colors_enabled() => (Color::Default, Color::Default),
        Theme::Light => (Color::Fixed(25), Color::Fixed(242)),
        Theme::Dark => (Color::Fixed(75), Color::Fixed(245)),
        Theme::Unknown => (Color::Cyan, Color::DarkGray),
    };
    menu.with_marker(" ")
        .with_text_style(entry.normal())
        .with_match_text_style(entry.bold())
        .with_selected_text_style(entry.reverse())
        .with_selected_match_text_style(entry.bold().reverse())
        .with_description_text_style(description.normal())
}

impl Menu for AutoMenu {
    fn name(&self) -> &str {
        AUTO
    }

    fn indicator(&self) -> &str {
        " "
    }

    fn is_active(&self) -> bool {
        self.inner.is_active()
    }

    fn menu_event(&mut self, event: MenuEvent) {
        // The values are read with the next painting, unless reedline reads them at once.
        let is_read = self.can_quick_complete();
        self.inner.menu_event(match event {
            MenuEvent::Activate(read) => MenuEvent::Activate(read && is_read),
            MenuEvent::Edit(read) => MenuEvent::Edit(read && is_read),
            event => event,
        });
        self.line.lock().is_open = self.inner.is_active();
    }

    fn can_quick_complete(&self) -> bool {
        self.line.lock().is_requested
    }

    fn can_partially_complete(
        &mut self,
        _values_updated: bool,
        _editor: &mut Editor,
        _completer: &mut dyn Completer,
    ) -> bool {
        false
    }

    fn update_values(&mut self, editor: &mut Editor, completer: &mut dyn Completer) {
        self.inner.update_values(editor, completer);
        self.close_if_empty();
    }

    fn update_working_details(
        &mut self,
        editor: &mut Editor,
        completer: &mut dyn Completer,
        painter: &Painter,
    ) {
        self.inner.update_working_details(editor, completer, painter);
        self.close_if_empty();
    }

    fn replace_in_buffer(&self, editor: &mut Editor) {
        self.inner.replace_in_buffer(editor);
    }

    fn menu_required_lines(&self, terminal_columns: u16) -> u16 {
        if self.get_values().is_empty() {
            return 0;
        }
        self.inner.menu_required_lines(terminal_columns)
    }

    fn menu_string(&self, available_lines: u16, use_ansi_coloring: bool) -> String {
        if self.get_values().is_empty() {
            return String::new();
        }
        self.inner.menu_string(available_lines, use_ansi_coloring)
    }

    fn min_rows(&self) -> u16 {
        self.inner.min_rows()
    }

    fn get_values(&self) -> &[Suggestion] {
        self.inner.get_values()
    }
}

#[cfg(test)]
mod tests {
    use reedline::default_emacs_keybindings;

    use super::*;

    fn keyboard() -> Keyboard {
        let inner = Emacs::new(default_emacs_keybindings());
        Keyboard::new(inner, SharedLine::default(), Pastes::default())
    }

    fn press(keyboard: &mut Keyboard, code: KeyCode, modifiers: KeyModifiers) -> ReedlineEvent {
        let event = Event::Key(KeyEvent::new(code, modifiers));
        keyboard.parse_event(event.try_into().unwrap())
    }

    #[test]
    fn menu_opens_at_the_start_of_commands_and_mentions_alone() {
        let is_opened = |event: &ReedlineEvent| format!("{event:?}").contains("auto");
        for (line, c, expected) in [
            ("", '/', true),
            ("src", '/', false),
            ("see ", '/', false),
            ("", '@', true),
            ("see ", '@', true),
            ("ada", '@', false),
        ] {
            let mut keyboard = keyboard();
            keyboard.line.highlight(line, line.len());
            let event = press(&mut keyboard, KeyCode::Char(c), KeyModifiers::NONE);
            assert_eq!(is_opened(&event), expected, "{line:?} {c}");
        }
        // Keys that arrive together: the line is not painted between them.
        for (typed, c, expected) in [("a", '/', false), ("a ", '@', true), ("ab", '@', false)] {
            let mut keyboard = keyboard();
            for typed in typed.chars() {
                press(&mut keyboard, KeyCode::Char(typed), KeyModifiers::NONE);
            }
            let event = press(&mut keyboard, KeyCode::Char(c), KeyModifiers::NONE);
            assert_eq!(is_opened(&event), expected, "{typed:?} {c}");
        }
        let mut keyboard = keyboard();
        press(&mut keyboard, KeyCode::Backspace, KeyModifiers::NONE);
        let event = press(&mut keyboard, KeyCode::Char('/'), KeyModifiers::NONE);
        assert!(!is_opened(&event));
    }

    #[test]
    fn enter_sends_the_typed_line_unless_an_entry_was_chosen() {
        let mut keyboard = keyboard();
        let sends = |event: ReedlineEvent| {
            event == ReedlineEvent::Multiple(vec![ReedlineEvent::Esc, ReedlineEvent::Enter])
        };
        press(&mut keyboard, KeyCode::Char('/'), KeyModifiers::NONE);
        assert!(sends(press(&mut keyboard, KeyCode::Enter, KeyModifiers::NONE)));
        press(&mut keyboard, KeyCode::Down, KeyModifiers::NONE);
        assert!(!sends(press(&mut keyboard, KeyCode::Enter, KeyModifiers::NONE)));
        // Enter ends a search in the history.
        press(&mut keyboard, KeyCode::Char('r'), KeyModifiers::CONTROL);
        press(&mut keyboard, KeyCode::Char('/'), KeyModifiers::NONE);
        assert!(!sends(press(&mut keyboard, KeyCode::Enter, KeyModifiers::NONE)));
        assert!(sends(press(&mut keyboard, KeyCode::Enter, KeyModifiers::NONE)));
    }

    #[test]
    fn completed_words_are_commands_and_mentions() {
        for (line, expected) in [
            ("/he", Some(0)),
            ("/help x", None),
            ("see @src/a", Some(4)),
            ("see src/a", None),
            ("", None),
        ] {
            assert_eq!(completed_word(line, line.len()), expected, "{line}");
        }
    }
}
