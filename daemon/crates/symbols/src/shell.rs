//! Functions of shell scripts, found line by line.
//!
//! The scanner of the existing grammar, written in C, aborts the process or never returns on some
//! texts. Any file of a repository may contain such a text, and functions are the only definitions
//! of shell scripts.

use rustc_hash::FxHashSet;

use super::extract::{Extracted, MAX_NAME, MAX_SYMBOLS, Symbol, ident_hash};

/// Name of the language.
pub const LANGUAGE: &str = "bash";

/// The functions of a script in order, and the hashes of its words. A function ends with the line
/// that closes it at its own indentation, which is the common style; otherwise it ends where the
/// next function starts.
pub fn functions(text: &[u8]) -> Extracted {
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut idents = FxHashSet::default();
    let mut heredoc: Option<Vec<u8>> = None;
    let mut open_function: Option<usize> = None;
    for (at, line) in lines.iter().enumerate() {
        let row = u32::try_from(at + 1).unwrap_or(u32::MAX);
        if let Some(end) = &heredoc {
            if line.trim_ascii() == end.as_slice() {
                heredoc = None;
            }
            continue;
        }
        let code = line.trim_ascii();
        if code.starts_with(b"#") {
            continue;
        }
        add_words(code, &mut idents);
        heredoc = opens_heredoc(code);
        if let Some(name) = function(code) {
            if symbols.len() >= MAX_SYMBOLS {
                break;
            }
            close_function(&mut symbols, open_function.take(), row.saturating_sub(1));
            let end_line = if closed_on_its_line(code) { row } else { 0 };
            open_function = (end_line == 0).then_some(symbols.len());
            symbols.push(Symbol {
                name,
                kind: "function",
                container: None,
                start_line: row,
                end_line,
            });
        } else if let Some(index) = open_function
            && matches!(code.first(), Some(b'}' | b')'))
            && indent(line) <= indent(lines[symbols[index].start_line as usize - 1])
        {
            close_function(&mut symbols, open_function.take(), row);
        }
    }
    let last = lines.len() - usize::from(lines.last().is_some_and(|l| l.is_empty()));
    close_function(&mut symbols, open_function, u32::try_from(last).unwrap_or(u32::MAX));
    let mut idents: Vec<u32> = idents.into_iter().collect();
    idents.sort_unstable();
    Extracted { symbols, idents }
}

fn close_function(symbols: &mut [Symbol], open_function: Option<usize>, row: u32) {
    if let Some(symbol) = open_function.and_then(|index| symbols.get_mut(index)) {
        symbol.end_line = row.max(symbol.start_line);
    }
}

fn indent(line: &[u8]) -> usize {
    line.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// The name of the function that starts in a line: `name() {`, `function name {`.
fn function(code: &[u8]) -> Option<String> {
    let (rest, keyword) = match code.strip_prefix(b"function") {
        Some(rest) if rest.first().is_some_and(u8::is_ascii_whitespace) => {
            (rest.trim_ascii_start(), true)
        }
        _ => (code, false),
    };
    let is_name_byte =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':' | b'.' | b'@' | b'+');
    let length = rest.iter().take_while(|b| is_name_byte(b)).count();
    let (name, after) = rest.split_at(length);
    let after = after.trim_ascii_start();
    let parens =
        after.strip_prefix(b"(").map(<[u8]>::trim_ascii_start).and_then(|a| a.strip_prefix(b")"));
    let body = parens.unwrap_or(after).trim_ascii_start();
    let opens_body = body.is_empty() || matches!(body.first(), Some(b'{' | b'(' | b'#'));
    let fits = (1..=MAX_NAME).contains(&length) && opens_body && (keyword || parens.is_some());
    fits.then(|| String::from_utf8_lossy(name).into_owned())
}

fn closed_on_its_line(code: &[u8]) -> bool {
    let code = code.strip_suffix(b";").unwrap_or(code);
    code.contains(&b'{') && code.ends_with(b"}")
}

/// The end marker of the here-document that starts in a line.
fn opens_heredoc(code: &[u8]) -> Option<Vec<u8>> {
    let at = code.windows(2).position(|w| w == b"<<")?;
    let rest = code.get(at + 2..)?;
    if rest.first() == Some(&b'<') {
        return None;
    }
    let rest = rest.strip_prefix(b"-").unwrap_or(rest).trim_ascii_start();
    let quoted = rest.iter().filter(|b| !matches!(b, b'\'' | b'"' | b'\\'));
    let word: Vec<u8> =
        quoted.take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').copied().collect();
    let is_name = word.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    is_name.then_some(word)
}

fn add_words(code: &[u8], into: &mut FxHashSet<u32>) {
    for word in code.split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))) {
        if word.len() > 1 && word.len() <= MAX_NAME && !word[0].is_ascii_digit() && word[0] != b'-'
        {
            into.insert(ident_hash(word));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn function_spans(text: &str) -> Vec<(String, u32, u32)> {
        functions(text.as_bytes())
            .symbols
            .into_iter()
            .map(|s| (s.name, s.start_line, s.end_line))
            .collect()
    }

    #[test]
    fn functions_in_common_styles_are_found() {
        let text = "#!/bin/sh\nfoo() {\n  if x; then\n    y\n  fi\n}\n\nfunction bar-baz {\n  (\n    cd a\n  )\n}\none() { echo hi; }\n\
            function two ()\n{\n  cat <<'EOF'\nnot() {\n}\nEOF\n}\nlib::three() (\n  x\n)\n# no() {\ncall foo\narr=()\n";
        let expected = [
            ("foo", 2, 6),
            ("bar-baz", 8, 12),
            ("one", 13, 13),
            ("two", 14, 20),
            ("lib::three", 21, 23),
        ];
        assert_eq!(function_spans(text), expected.map(|(n, a, b)| (n.to_owned(), a, b)));
        assert_eq!(
            function_spans("open() {\n  x\nnext() {\n  y\n"),
            [("open".into(), 1, 2), ("next".into(), 3, 4)]
        );
        assert!(functions(b"deploy --now\n").idents.contains(&ident_hash(b"deploy")));
    }

    proptest! {
        #[test]
        fn functions_of_arbitrary_bytes_have_valid_lines(text in prop::collection::vec(any::<u8>(), 0..400)) {
            for symbol in functions(&text).symbols {
                prop_assert!(symbol.start_line >= 1 && symbol.end_line >= symbol.start_line);
            }
        }
    }
}
