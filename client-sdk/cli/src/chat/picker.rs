//! A list to choose from with arrows and a typed filter.

use console::truncate_str;
use inquire::{
    InquireError, Select,
    ui::{Color, RenderConfig, StyleSheet, Styled},
};

use super::screen::TerminalCapabilities;
use crate::{exit::Failure, render::theme::Theme};

/// Rows of the list.
const ROWS: usize = 12;

/// Lets the user choose one of `rows`; `None` if they cancel.
///
/// # Errors
/// The terminal cannot be read.
pub async fn choose(
    title: &str,
    rows: Vec<String>,
    capabilities: TerminalCapabilities,
) -> Result<Option<usize>, Failure> {
    let title = title.to_owned();
    // A row that wraps would leave parts behind when the list is redrawn.
    let columns = capabilities.width.saturating_sub(4).max(10);
    let rows: Vec<String> =
        rows.iter().map(|row| truncate_str(row, columns, "…").into_owned()).collect();
    let picked = tokio::task::spawn_blocking(move || {
        let mut select = Select::new(&title, rows).with_page_size(ROWS);
        if columns < 76 {
            select = select.without_help_message();
        }
        select.with_render_config(colours(capabilities.theme)).raw_prompt()
    });
    let picked = picked.await.map_err(|e| Failure::failed(format!("the list ended: {e}")))?;
    match picked {
        Ok(option) => Ok(Some(option.index)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => Ok(None),
        Err(error) => Err(Failure::failed(format!("the terminal cannot be read: {error}"))),
    }
}

/// Lets the user of a command choose one of `rows`; `None` if they cancel.
///
/// # Errors
/// The terminal cannot be read.
pub async fn choose_in_terminal(title: &str, rows: Vec<String>) -> Result<Option<usize>, Failure> {
    choose(title, rows, TerminalCapabilities::of_process(false)).await
}

/// Returns colours with enough contrast to the background.
fn colours(theme: Theme) -> RenderConfig<'static> {
    if !console::colors_enabled() {
        return RenderConfig::empty();
    }
    let colours = RenderConfig::default_colored();
    if theme != Theme::Light {
        return colours;
    }
    let blue = StyleSheet::new().with_fg(Color::DarkBlue);
    colours
        .with_selected_option(Some(blue))
        .with_highlighted_option_prefix(Styled::new(">").with_style_sheet(blue))
        .with_prompt_prefix(Styled::new("?").with_style_sheet(blue))
        .with_answered_prompt_prefix(Styled::new(">").with_style_sheet(blue))
        .with_answer(blue)
        .with_help_message(StyleSheet::new().with_fg(Color::DarkGrey))
}
