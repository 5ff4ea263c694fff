//! Reads query files of bounded size.

use std::{io::Read, path::Path};

use cairn_search_metrics::queries::parse;
pub use cairn_search_metrics::queries::{Queries, Query};

use crate::exit::Failure;

/// Maximum bytes of a query file.
const MAX_FILE: u64 = 64 << 20;
/// Maximum number of reported invalid lines.
const MAX_REPORTED: usize = 20;

/// Reads a query file.
///
/// # Errors
/// The file cannot be read, or has invalid lines, each of which is reported.
pub fn read(path: &Path) -> Result<Queries, Failure> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Failure::path(path, &e))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|e| Failure::path(path, &e))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::usage(format!("{} is longer than {MAX_FILE} bytes", path.display())));
    }
    parse(&text).map_err(|broken| {
        let mut lines: Vec<String> = broken.iter().take(MAX_REPORTED).cloned().collect();
        if broken.len() > MAX_REPORTED {
            lines.push(format!("{} more lines are invalid", broken.len() - MAX_REPORTED));
        }
        Failure::usage(format!("{}: {}", path.display(), lines.join("\n  "))).hint(
            "a line is {\"query\": \"...\", \"relevant\": [{\"path\": \"...\"}]}; see 'cairn eval --help'",
        )
    })
}
