//! The diagram of the components as a Mermaid flowchart in a fenced block.

use std::fmt::Write as _;

use cairn_protocol::explore::Component;

use crate::{facts, graph::ComponentGraph, sanitize::plain};

/// Characters of a label.
const LABEL_CHARS: usize = 40;

/// Renders the block. Identifiers are numbers, and labels have no character with a meaning.
pub fn diagram(components: &[Component]) -> String {
    let graph = ComponentGraph::new(components);
    let mut out = String::from("```mermaid\ngraph LR\n");
    for (at, component) in components[..graph.nodes].iter().enumerate() {
        let _infallible = writeln!(out, "  c{at}[\"{}\"]", label(facts::name(component)));
    }
    for (from, to) in &graph.edges {
        let _infallible = writeln!(out, "  c{from} --> c{to}");
    }
    out.push_str("```");
    out
}

/// Escapes all but letters, digits and a few signs with Mermaid's character references. Without a
/// colon, its preprocessor finds no style in a label.
fn label(name: &str) -> String {
    let mut name = plain(&facts::single_line(name));
    if let Some((end, _)) = name.char_indices().nth(LABEL_CHARS) {
        name.truncate(end);
        name.pop();
        name.push('…');
    }
    let mut out = String::new();
    for c in name.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/' | '…') {
            out.push(c);
        } else {
            let _infallible = write!(out, "#{};", u32::from(c));
        }
    }
    // An empty label is an error.
    if out.trim().is_empty() { "-".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_stay_inside() {
        for (raw, expected) in [
            ("helix-term", "helix-term"),
            ("@scope/a_b", "#64;scope/a_b"),
            ("a\"]; click c0 \"x", "a#34;#93;#59; click c0 #34;x"),
            ("```\n# x", "#96;#96;#96; #35; x"),
            ("style:#fff;", "style#58;#35;fff#59;"),
            ("</script>", "#60;/script#62;"),
            ("%%{init}%%", "#37;#37;#123;init#125;#37;#37;"),
            ("関係", "関係"),
            ("\u{202e}", "#92;u#123;202e#125;"),
            ("", "-"),
        ] {
            assert_eq!(label(raw), expected);
        }
    }
}
