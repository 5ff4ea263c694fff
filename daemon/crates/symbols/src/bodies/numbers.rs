//! Tables of numbers, which contain no definitions and cost a parser some sixty bytes of memory per
//! byte.

use super::Cut;
use super::lex;

/// Bytes between two probes; tables are longer.
const STEP: usize = 256;
/// Bytes of a probe, all of which must be possible in a table.
const PROBE: usize = 24;
/// Maximum nesting of brackets in a table.
const DEPTH: usize = 8;

/// The cuts of number lists, nested ones included; each extends from after a bracket or comma to a
/// comma.
pub fn cuts(lang: &str, text: &[u8]) -> Vec<Cut> {
    let (mut cuts, mut at) = (Vec::new(), 0);
    while let Some(probe) = text.get(at..at + PROBE) {
        if !probe.iter().all(|b| is_table_byte(*b)) {
            at += STEP;
            continue;
        }
        let reach = cuts.last().map_or(0, |c: &Cut| c.to).max(at.saturating_sub(STEP));
        let back = text[reach..at].iter().rev().take_while(|b| is_table_byte(**b)).count();
        let mut from = at - back;
        at += PROBE;
        while from < at {
            let to = if starts_element(text, from) { list(lang, text, from) } else { from };
            if to > from + PROBE {
                cuts.push(Cut { from, to, replacement: b"" });
            }
            from = to.max(from + 1);
        }
        at = from.max(at);
    }
    cuts
}

fn is_table_byte(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || b" \t\r\n,._-+xXuUlLoO{}[]()".contains(&byte)
}

/// True if an element of a list may start here, after a bracket or a comma.
fn starts_element(text: &[u8], at: usize) -> bool {
    let starts = matches!(text[at], b'0'..=b'9' | b'-' | b'+' | b'{' | b'[' | b'(');
    starts && matches!(text[..at].trim_ascii_end().last(), Some(b'{' | b'[' | b'(' | b','))
}

/// The end of the list that starts at `from`, after the last comma between its elements.
fn list(lang: &str, text: &[u8], from: usize) -> usize {
    let (mut at, mut end) = (from, from);
    while let Some(next) = element(lang, text, at) {
        at = space(lang, text, next);
        if text.get(at) != Some(&b',') {
            break;
        }
        end = at + 1;
        at = space(lang, text, end);
    }
    end
}

/// The end of the number, or of the brackets that contain only numbers, at `at`.
fn element(lang: &str, text: &[u8], mut at: usize) -> Option<usize> {
    let mut open = Vec::new();
    loop {
        match *text.get(at)? {
            b'0'..=b'9' | b'-' | b'+' => at = number(text, at)?,
            bracket @ (b'{' | b'[' | b'(') if open.len() < DEPTH => {
                open.push(bracket);
                at += 1;
            }
            close @ (b'}' | b']' | b')') => {
                if !matches!((open.pop()?, close), (b'{', b'}') | (b'[', b']') | (b'(', b')')) {
                    return None;
                }
                at += 1;
            }
            b',' if !open.is_empty() => at += 1,
            _ => return None,
        }
        if open.is_empty() {
            return Some(at);
        }
        at = space(lang, text, at);
    }
}

fn number(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at + usize::from(matches!(text[at], b'-' | b'+'));
    if !text.get(end)?.is_ascii_digit() {
        return None;
    }
    while let Some(byte) = text.get(end) {
        let exponent =
            matches!(byte, b'-' | b'+') && matches!(text[end - 1], b'e' | b'E' | b'p' | b'P');
        if !(lex::is_name(*byte) || *byte == b'.' || exponent) {
            break;
        }
        end += 1;
    }
    Some(end)
}

/// The end of the spaces, line ends and comments at `at`.
fn space(lang: &str, text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or(&[]);
        at += match rest {
            [b' ' | b'\t' | b'\r' | b'\n', ..] => 1,
            [b'/', b'/', ..] if lang != "python" => lex::line(bounded_lookahead(rest)),
            [b'/', b'*', ..] if lang != "python" => lex::until(bounded_lookahead(rest), 2, b"*/"),
            [b'#', ..] if lang == "python" => lex::line(bounded_lookahead(rest)),
            _ => return at,
        };
    }
}

/// The text in which a comment between numbers must end; a longer comment ends the list, so that no
/// comment is read repeatedly.
fn bounded_lookahead(rest: &[u8]) -> &[u8] {
    &rest[..rest.len().min(STEP)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(lang: &str, text: &str) -> String {
        String::from_utf8(
            super::super::apply_cuts(text.as_bytes(), &cuts(lang, text.as_bytes())).text,
        )
        .unwrap()
    }

    #[test]
    fn tables_are_removed_and_named_values_stay() {
        let numbers = "0x1F600, -12, 1.5e-3, 007u,\n".repeat(40);
        let pairs = "{0x41, 0x5a, 1},\n{0x61, 0x7a, 1}, {0xb5, 0xb5, 1}, // Latin\n".repeat(40);
        for (lang, text, start, end) in [
            (
                "c",
                format!("int a[] = {{{numbers} 7}};\nint b;\n"),
                "int a[] = {\n 7};",
                "\nint b;\n",
            ),
            (
                "rust",
                format!("const A: &[u8] = &[{numbers}];\nfn f() {{}}\n"),
                "const A: &[u8] = &[\n];",
                "fn f() {}\n",
            ),
            (
                "go",
                format!("var a = []R{{\n{pairs}}}\nvar b = 1\n"),
                "var a = []R{\n",
                "// Latin\n}\nvar b = 1\n",
            ),
            (
                "python",
                format!("A = [  # one\n{numbers}]\nb = 2\n"),
                "A = [  # one\n",
                "]\nb = 2\n",
            ),
        ] {
            let result = result(lang, &text);
            assert!(result.len() * 3 < text.len(), "{lang} {result}");
            assert!(result.starts_with(start) && result.ends_with(end), "{lang} {result}");
        }
        let named = "A = 1, B = 2, C = 3, f(x), 0x1F, \n".repeat(60);
        let words = "bad, add, fed, 0, dead_beef, \n".repeat(60);
        let unequal = "(1, 2], ".repeat(200);
        for text in [format!("enum E {{ {named} }}"), words, unequal] {
            assert_eq!(result("c", &text), text);
        }
    }

    #[test]
    fn cuts_of_unusual_text_are_valid() {
        for text in [
            "",
            "1,",
            &"1, ".repeat(300),
            &"{".repeat(3000),
            &"{1,".repeat(3000),
            &"- , ".repeat(900),
            &"1, /*".repeat(300),
        ] {
            for lang in ["c", "python"] {
                let cuts = cuts(lang, text.as_bytes());
                assert!(cuts.iter().all(|c| c.from < c.to && c.to <= text.len()), "{text}");
                assert!(cuts.windows(2).all(|w| w[0].to <= w[1].from), "{text}");
            }
        }
    }
}
