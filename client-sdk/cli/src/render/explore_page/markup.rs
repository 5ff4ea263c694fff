//! Escaping for HTML and SVG.

use cairn_explore_report::{facts::single_line, sanitize::plain};

/// Escapes untrusted text for element content and quoted attributes. Control and invisible
/// characters become visible escapes first.
pub fn escape(text: &str) -> String {
    let text = plain(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out
}

/// Escapes text of several lines as one.
pub fn text(text: &str) -> String {
    escape(&single_line(text))
}

/// Renders a path that may break after its separators.
pub fn path(path: &str) -> String {
    format!("<code>{}</code>", escape(path).replace('/', "/<wbr>"))
}

/// Renders a command or name as code.
pub fn code(code: &str) -> String {
    format!("<code>{}</code>", text(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped() {
        for (raw, expected) in [
            ("a&b", "a&amp;b"),
            ("</script><img onerror=x>", "&lt;/script&gt;&lt;img onerror=x&gt;"),
            ("\" onload='x'", "&quot; onload=&#39;x&#39;"),
            ("\u{1b}[31m\u{202e}x", "\\u{1b}[31m\\u{202e}x"),
            ("&lt;", "&amp;lt;"),
        ] {
            assert_eq!(escape(raw), expected);
        }
        assert_eq!(text("a\n<b>"), "a &lt;b&gt;");
        assert_eq!(path("a/<b"), "<code>a/<wbr>&lt;b</code>");
        assert_eq!(code("`x`"), "<code>`x`</code>");
    }
}
