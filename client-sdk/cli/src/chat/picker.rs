//! A list to choose from with arrows and a typed filter.

use console::truncate_str;
use inquire::{InquireError, Select, ui::RenderConfig};

use crate::exit::Failure;

/// Rows of the list.
const ROWS: usize = 12;

/// Lets the user choose one of `rows`; `None` if they cancel.
///
/// # Errors
/// The terminal cannot be read.
pub async fn choose(
    title: &str,
    rows: Vec<String>,
    width: usize,
) -> Result<Option<usize>, Failure> {
    let title = title.to_owned();
    // A row that wraps would leave parts behind when the list is redrawn.
    let columns = width.saturating_sub(4).max(10);
    let rows: Vec<String> =
        rows.iter().map(|row| truncate_str(row, columns, "…").into_owned()).collect();
    let picked = tokio::task::spawn_blocking(move || {
        let mut select = Select::new(&title, rows).with_page_size(ROWS);
        if columns < 76 {
            select = select.without_help_message();
        }
        if !console::colors_enabled() {
            select = select.with_render_config(RenderConfig::empty());
        }
        select.raw_prompt()
    });
    let picked = picked.await.map_err(|e| Failure::failed(format!("the list ended: {e}")))?;
    match picked {
        Ok(option) => Ok(Some(option.index)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => Ok(None),
        Err(error) => Err(Failure::failed(format!("the terminal cannot be read: {error}"))),
    }
}
