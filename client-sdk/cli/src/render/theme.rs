//! Colours for a dark or a light background.

use std::time::Duration;

use cairn_config::ChatTheme;

/// Most time that the terminal has to report its background.
const QUERY_TIMEOUT: Duration = Duration::from_millis(150);

/// The background that colours are chosen for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// An unknown background: the sixteen colours, which follow the terminal's own theme.
    #[default]
    Unknown,
    Dark,
    Light,
}

impl Theme {
    /// Returns the configured theme. `auto` queries the terminal, and reads `COLORFGBG` if that
    /// does not report its background.
    pub fn detect(setting: ChatTheme) -> Self {
        match setting {
            ChatTheme::Dark => Self::Dark,
            ChatTheme::Light => Self::Light,
            ChatTheme::Auto => Self::queried().unwrap_or_else(|| {
                let colours = std::env::var("COLORFGBG").ok();
                colours.as_deref().map_or(Self::Unknown, Self::of_colour_variable)
            }),
        }
    }

    fn queried() -> Option<Self> {
        use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};
        let mut options = QueryOptions::default();
        options.timeout = QUERY_TIMEOUT;
        match theme_mode(options).ok()? {
            ThemeMode::Dark => Some(Self::Dark),
            ThemeMode::Light => Some(Self::Light),
        }
    }

    /// Parses `COLORFGBG`, such as `15;0`: its last number is the background's colour.
    fn of_colour_variable(text: &str) -> Self {
        match text.rsplit(';').next().and_then(|n| n.parse::<u8>().ok()) {
            Some(0..=6 | 8) => Self::Dark,
            Some(7 | 9..=15) => Self::Light,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_variable_names_the_background() {
        for (text, expected) in [
            ("15;0", Theme::Dark),
            ("0;15", Theme::Light),
            ("0;default;7", Theme::Light),
            ("12;8", Theme::Dark),
            ("", Theme::Unknown),
            ("0;default", Theme::Unknown),
            ("0;999", Theme::Unknown),
        ] {
            assert_eq!(Theme::of_colour_variable(text), expected, "{text}");
        }
        assert_eq!(Theme::detect(ChatTheme::Light), Theme::Light);
    }
}
