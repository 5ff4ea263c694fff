//! Signatures: the first lines of a definition without its body, on one line.

/// Lines from the start of a definition in which its name is expected: attributes, decorators and
/// types may come first.
const NAME_WITHIN: usize = 8;
/// Maximum lines of a signature.
const MAX_LINES: usize = 16;
/// Maximum characters of a signature, its mark of omission included.
const MAX_CHARS: usize = 100;

/// The signature of a definition of `name` that starts at `line`, counted from 1. `None` if the
/// file has changed so that the name is not there, or if the text says no more than the name.
pub fn signature(text: &str, line: u32, name: &str, kind: &str) -> Option<String> {
    if matches!(kind, "section" | "module") {
        return None;
    }
    let lines = text.lines().skip((line as usize).checked_sub(1)?);
    let mut head = Head { name, kind, text: String::new(), depth: 0, is_named: false };
    for (at, line) in lines.take(MAX_LINES).enumerate() {
        let line = line.trim();
        if !head.is_named && (at >= NAME_WITHIN || is_before(line, name)) {
            continue;
        }
        if head.add(line) {
            break;
        }
    }
    head.finish()
}

/// True for a comment, an attribute or an annotation on a line of its own before a definition.
fn is_before(line: &str, name: &str) -> bool {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| line.starts_with(prefix));
    starts(&["//", "/*", "*", "# ", "--"]) || (starts(&["#[", "@", "[["]) && !has_word(line, name))
}

/// The text of a signature so far.
struct Head<'a> {
    name: &'a str,
    kind: &'a str,
    text: String,
    /// Open parentheses and square brackets.
    depth: u32,
    /// True once the text has the name.
    is_named: bool,
}

impl Head<'_> {
    /// Adds a line and returns whether the signature ends in it.
    fn add(&mut self, line: &str) -> bool {
        let is_joined = self.text.is_empty() || self.text.ends_with(['(', '[']);
        if !is_joined && !line.starts_with([')', ']']) {
            self.text.push(' ');
        }
        let end = self.end(line);
        self.text.push_str(line.get(..end.unwrap_or(line.len())).unwrap_or_default());
        self.is_named = self.is_named || has_word(&self.text, self.name);
        end.is_some() || (self.depth == 0 && self.is_named)
    }

    /// The offset at which the signature ends within a line.
    fn end(&mut self, line: &str) -> Option<usize> {
        if self.kind == "macro" {
            return macro_end(line, self.name);
        }
        let is_value = matches!(self.kind, "constant" | "variable" | "property");
        for (at, c) in line.char_indices() {
            match c {
                '(' | '[' => self.depth += 1,
                ')' | ']' => self.depth = self.depth.saturating_sub(1),
                '{' | ';' if self.depth == 0 => return Some(at),
                // Values may be long, or secret.
                '=' if self.depth == 0 && is_value => return Some(at),
                _ => {}
            }
        }
        None
    }

    fn finish(self) -> Option<String> {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.replace(",)", ")").replace(",]", "]").replace(char::is_control, "?");
        let mut text = text.trim();
        let ends = ["=>", "=", ":", ",", "\\"];
        while let Some(rest) = ends.iter().find_map(|end| text.strip_suffix(end)) {
            text = rest.trim_end();
        }
        if !has_word(text, self.name) || text == self.name {
            return None;
        }
        let Some((end, _)) = text.char_indices().nth(MAX_CHARS - 1) else {
            return Some(text.to_owned());
        };
        let cut = text.get(..end)?.trim_end();
        has_word(cut, self.name).then(|| format!("{cut}…"))
    }
}

/// The offset after the name of a macro and its parameters.
fn macro_end(line: &str, name: &str) -> Option<usize> {
    let end = line.find(name)? + name.len();
    let parameters = line.get(end..).filter(|rest| rest.starts_with('('));
    Some(end + parameters.and_then(|rest| rest.find(')')).map_or(0, |close| close + 1))
}

/// True if the text has the name, not as a part of a longer one.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, name, kind and signature.
    type Case = (&'static str, &'static str, &'static str, Option<&'static str>);
    const CASES: &[Case] = &[
        (
            "pub fn open(path: &Path) -> io::Result<File> {\n  x\n}",
            "open",
            "function",
            Some("pub fn open(path: &Path) -> io::Result<File>"),
        ),
        (
            "#[inline]\n// Opens open.\npub fn open<'a>(\n    path: &'a Path,\n    mode: [u8; 2],\n) -> File\nwhere\n    A: B,\n{",
            "open",
            "method",
            Some("pub fn open<'a>(path: &'a Path, mode: [u8; 2]) -> File"),
        ),
        ("pub struct Root {\n    id: u8,", "Root", "struct", Some("pub struct Root")),
        ("pub struct Seq(pub u64);", "Seq", "struct", Some("pub struct Seq(pub u64)")),
        ("const KEY: &str = \"sk-123\";", "KEY", "constant", Some("const KEY: &str")),
        ("KEY = 'sk-123'", "KEY", "constant", None),
        ("val key: String = \"sk-123\"", "key", "property", Some("val key: String")),
        ("type Rows = Vec<Vec<u8>>;", "Rows", "type", Some("type Rows = Vec<Vec<u8>>")),
        ("macro_rules! say {\n", "say", "macro", Some("macro_rules! say")),
        ("#define MAX(a, b) ((a) > (b) ? (a) : (b))", "MAX", "macro", Some("#define MAX(a, b)")),
        ("#define LIMIT 4096", "LIMIT", "macro", Some("#define LIMIT")),
        (
            "static robj *\nlookup_key(redisDb *db, robj *key)\n{",
            "lookup_key",
            "function",
            Some("static robj * lookup_key(redisDb *db, robj *key)"),
        ),
        (
            "def load(\n    self,\n    path: str = \"a\",\n) -> dict[str, int]:\n    pass",
            "load",
            "method",
            Some("def load(self, path: str = \"a\") -> dict[str, int]"),
        ),
        ("class Session(Base):", "Session", "class", Some("class Session(Base)")),
        (
            "export const send = async ({ to, from }) => {",
            "send",
            "function",
            Some("export const send = async ({ to, from })"),
        ),
        (
            "@Override\npublic <T> void write(JsonWriter out, T value) throws IOException {",
            "write",
            "method",
            Some("public <T> void write(JsonWriter out, T value) throws IOException"),
        ),
        ("@Test public void reads() {", "reads", "method", Some("@Test public void reads()")),
        (
            "func (s *Server) Serve(l net.Listener) error {",
            "Serve",
            "method",
            Some("func (s *Server) Serve(l net.Listener) error"),
        ),
        ("area :: Shape -> Double", "area", "function", Some("area :: Shape -> Double")),
        // The file has changed, is shorter than the line, or the definition is its own name.
        ("fn other() {}", "open", "function", None),
        ("", "open", "function", None),
        ("open() {", "open", "method", Some("open()")),
        ("# Open\n", "Open", "section", None),
        ("fn re\u{1b}open() {}\nfn open() {}", "open", "function", Some("fn re?open()")),
    ];

    #[test]
    fn signatures_have_no_body() {
        for (text, name, kind, expected) in CASES {
            assert_eq!(signature(text, 1, name, kind).as_deref(), *expected, "{text}");
        }
        assert_eq!(signature("a\nfn b() {}", 2, "b", "function").as_deref(), Some("fn b()"));
        assert_eq!(signature("fn b() {}", 0, "b", "function"), None);
        assert_eq!(signature("fn b() {}", u32::MAX, "b", "function"), None);
    }

    #[test]
    fn long_signatures_are_cut() {
        let text = format!("fn open({}) {{", "first: u8, ".repeat(50));
        let short = signature(&text, 1, "open", "function").unwrap();
        assert!(short.ends_with('…') && short.chars().count() <= MAX_CHARS, "{short}");
        let late = format!("fn {}open()", "é".repeat(200));
        assert_eq!(signature(&late, 1, "open", "function"), None);
    }
}
