//! Scripts inside of Vue and Svelte components. Everything else is replaced by blanks, so that
//! positions in the script are positions in the file.

use std::borrow::Cow;

/// Languages whose files are components with a script.
const LANGUAGES: [&str; 2] = ["vue", "svelte"];

/// True if files of this language have parts in another one.
pub fn is_component(lang: &str) -> bool {
    LANGUAGES.contains(&lang)
}

/// The language of the scripts of a component, and the text with nothing but them. All scripts of
/// a component share their scope, so that one with types makes all of them TypeScript.
pub fn scripts(text: &[u8]) -> (&'static str, Cow<'_, [u8]>) {
    let mut blanked: Vec<u8> =
        text.iter().map(|b| if matches!(b, b'\n' | b'\r') { *b } else { b' ' }).collect();
    let mut lang = "javascript";
    let mut at = 0;
    while let Some(tag) = next_script(text, at) {
        let end = memchr::memmem::find(&text[tag.end..], b"</script")
            .map_or(text.len(), |offset| tag.end + offset);
        blanked[tag.end..end].copy_from_slice(&text[tag.end..end]);
        lang = match (tag.lang, lang) {
            (Some(b"tsx"), _) | (_, "tsx") => "tsx",
            (Some(b"ts" | b"typescript"), _) => "typescript",
            _ => lang,
        };
        at = end;
    }
    (lang, Cow::Owned(blanked))
}

/// An opening tag of a script.
struct ScriptTag<'t> {
    /// The offset after the tag.
    end: usize,
    lang: Option<&'t [u8]>,
}

/// The first script whose tag starts at `at` or later, outside of comments.
fn next_script(text: &[u8], mut at: usize) -> Option<ScriptTag<'_>> {
    const COMMENT: &[u8] = b"<!--";
    const TAG: &[u8] = b"<script";
    loop {
        at += memchr::memchr(b'<', &text[at..])?;
        let rest = &text[at..];
        if rest.starts_with(COMMENT) {
            at += memchr::memmem::find(rest, b"-->").unwrap_or(rest.len());
        } else if rest.starts_with(TAG) {
            let after = rest.get(TAG.len()).copied();
            if after.is_some_and(|b| b.is_ascii_whitespace() || b == b'>') {
                let tag = attributes(text, at + TAG.len())?;
                if text[tag.end - 2] != b'/' {
                    return Some(tag);
                }
            }
            at += TAG.len();
        } else {
            at += 1;
        }
    }
}

/// Reads the attributes of a tag up to its `>`; values in quotes may contain that character.
fn attributes(text: &[u8], mut at: usize) -> Option<ScriptTag<'_>> {
    let mut lang = None;
    loop {
        match *text.get(at)? {
            b'>' => return Some(ScriptTag { end: at + 1, lang }),
            quote @ (b'"' | b'\'') => {
                let length = memchr::memchr(quote, &text[at + 1..])?;
                if text[..at].ends_with(b"lang=") {
                    lang = text.get(at + 1..at + 1 + length);
                }
                at += length + 2;
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> (&'static str, String) {
        let (lang, text) = scripts(text.as_bytes());
        (lang, String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn text_outside_of_scripts_is_blank_and_positions_are_unchanged() {
        let text = "<template>\n  <p>é</p>\n</template>\n<script setup lang=\"ts\">\nconst a = 1\n</script>\r\n<style>\nb {}\n</style>\n";
        let (lang, blanked) = script(text);
        assert_eq!((lang, blanked.len()), ("typescript", text.len()));
        assert_eq!(blanked.trim(), "const a = 1");
        assert_eq!(blanked.find("const"), text.find("const"));
        assert_eq!(blanked.lines().count(), text.lines().count());
    }

    #[test]
    fn language_is_that_of_the_attribute() {
        for (tag, expected) in [
            ("<script>", "javascript"),
            ("<script lang='ts' generic=\"T extends Map<string, T>\">", "typescript"),
            ("<script lang=\"tsx\" setup>", "tsx"),
            ("<script context=\"module\">", "javascript"),
        ] {
            let (lang, blanked) = script(&format!("{tag}x</script>"));
            assert_eq!((lang, blanked.trim()), (expected, "x"), "{tag}");
        }
    }

    #[test]
    fn several_scripts_and_unusual_tags_are_read() {
        let two = "<script>a</script><script lang=\"ts\" setup>b</script>";
        assert_eq!(script(two).1.split_whitespace().collect::<Vec<_>>(), ["a", "b"]);
        for (text, expected) in [
            ("<!-- <script>a</script> -->", ""),
            ("<script src=\"a.js\" />b", ""),
            ("<scripted>a</scripted>", ""),
            ("<script", ""),
            ("<script lang=\"", ""),
            ("<script>unfinished", "unfinished"),
            ("", ""),
        ] {
            assert_eq!(script(text).1.trim(), expected, "{text}");
        }
    }
}
