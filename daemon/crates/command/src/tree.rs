//! Conversion of the parser's tree into parts.

use std::{
    ops::{ControlFlow, Range},
    time::{Duration, Instant},
};

use tree_sitter::{Node, ParseOptions};

use super::{
    Direction, Kind, MAX_COMMAND, MAX_DEPTH, MAX_PARTS, Part, Redirection,
    lexer::{self, Token, Word},
    wrappers,
};

/// Time limit of one parse. Deep nesting makes the parser try many readings.
const PARSE_TIME: Duration = Duration::from_millis(250);
/// Deepest tree that is converted.
const MAX_NESTING: usize = 200;

/// The parts, and the reason why the two readings disagree.
type Read = (Vec<Part>, Option<&'static str>);

/// Parses `text`, which is nested `depth` wrappers deep.
///
/// # Errors
/// The reason why it cannot be parsed at all.
pub(super) fn read(text: &str, depth: usize) -> Result<Read, String> {
    if text.len() > MAX_COMMAND {
        return Err(format!("it is longer than {MAX_COMMAND} bytes"));
    }
    if depth > MAX_DEPTH {
        return Err(format!("commands are nested more than {MAX_DEPTH} levels deep"));
    }
    if text.contains('\0') {
        return Err("it contains a NUL byte".into());
    }
    // The grammar's scanner is C code that some unusual texts crash or send into an endless loop:
    // it gets only texts that the lexer could split.
    lexer::tokens(text)?;
    let tree = parse(text).ok_or("it takes too long to parse")?;
    let root = tree.root_node();
    if root.has_error() {
        return Err("it is not a complete command line".into());
    }
    let mut walk = Walk { text, parts: Vec::new(), spans: Vec::new() };
    walk.statement(root, 0)?;
    let mut unsure = walk.disagreement();
    let mut parts = Vec::new();
    for part in walk.parts {
        let (inner, doubt) = wrappers::unwrap(part, depth)?;
        parts.extend(inner);
        unsure = unsure.or(doubt);
    }
    if parts.len() > MAX_PARTS {
        return Err(format!("it has more than {MAX_PARTS} commands"));
    }
    Ok((parts, unsure))
}

fn parse(text: &str) -> Option<tree_sitter::Tree> {
    let mut parser = cairn_parsing::parser();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let until = Instant::now() + PARSE_TIME;
    let mut late = |_: &tree_sitter::ParseState| {
        if Instant::now() > until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut late);
    let bytes = text.as_bytes();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

struct Walk<'a> {
    text: &'a str,
    parts: Vec<Part>,
    /// Words and operators as the parser split them.
    spans: Vec<Range<usize>>,
}

/// Node kinds that are words.
const WORDS: &[&str] = &[
    "word",
    "string",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "number",
    "simple_expansion",
    "expansion",
    "arithmetic_expansion",
    "brace_expression",
    "command_substitution",
    "process_substitution",
    "array",
    "variable_name",
    "special_variable_name",
    "file_descriptor",
    "extglob_pattern",
    "regex",
    "test_operator",
];

/// Node kinds that consist of statements, words and keywords.
const GROUPS: &[&str] = &[
    "program",
    "list",
    "pipeline",
    "subshell",
    "compound_statement",
    "do_group",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "for_statement",
    "case_statement",
    "case_item",
    "negated_command",
    "redirected_statement",
    "variable_assignments",
];

impl Walk<'_> {
    fn source(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn bare(&self, kind: Kind, node: Node<'_>) -> Part {
        Part {
            kind,
            words: vec![],
            assignments: vec![],
            redirections: vec![],
            source: self.source(node).to_owned(),
            span: node.byte_range(),
        }
    }

    /// Collects the commands of a statement.
    fn statement(&mut self, node: Node<'_>, depth: usize) -> Result<(), String> {
        if depth > MAX_NESTING {
            return Err(format!("it is nested more than {MAX_NESTING} levels deep"));
        }
        let kind = node.kind();
        match kind {
            "comment" => Ok(()),
            _ if GROUPS.contains(&kind) => self.children(node, depth),
            "command" => self.command(node, depth),
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                let mut part = self.bare(Kind::Plain, node);
                self.redirection(node, &mut part, depth)?;
                // Words after a redirection belong to the command before it.
                let words = std::mem::take(&mut part.words);
                match self.parts.last_mut().filter(|_| !words.is_empty()) {
                    Some(command) => command.words.extend(words),
                    None => part.words = words,
                }
                self.parts.push(part);
                Ok(())
            }
            "variable_assignment" => {
                let mut part = self.bare(Kind::Plain, node);
                self.assignment(node, &mut part, depth)?;
                self.parts.push(part);
                Ok(())
            }
            "declaration_command" | "unset_command" => self.declaration(node, depth),
            "function_definition" | "c_style_for_statement" | "test_command" => {
                self.parts.push(self.bare(Kind::Opaque, node));
                self.children(node, depth)
            }
            _ if WORDS.contains(&kind) => {
                self.spans.push(node.byte_range());
                self.inside(node, depth)
            }
            // Parts of tests and arithmetic, which are entirely opaque.
            "binary_expression"
            | "unary_expression"
            | "ternary_expression"
            | "postfix_expression"
            | "parenthesized_expression"
            | "subscript"
            | "command_name"
            | "heredoc_body" => self.inside(node, depth),
            "heredoc_start" | "heredoc_end" | "heredoc_content" => Ok(()),
            _ if !node.is_named() => {
                self.spans.push(node.byte_range());
                Ok(())
            }
            other => Err(format!("it has a part of an unknown kind ({other})")),
        }
    }

    fn children(&mut self, node: Node<'_>, depth: usize) -> Result<(), String> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        children.into_iter().try_for_each(|child| self.statement(child, depth + 1))
    }

    /// Collects commands that are substituted anywhere in a word.
    fn inside(&mut self, node: Node<'_>, depth: usize) -> Result<(), String> {
        if depth > MAX_NESTING {
            return Err(format!("it is nested more than {MAX_NESTING} levels deep"));
        }
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if matches!(node.kind(), "command_substitution" | "process_substitution") {
            // The strict reading has given up on such a line, so its spans are of no use.
            return children.into_iter().try_for_each(|child| self.statement(child, depth + 1));
        }
        children.into_iter().try_for_each(|child| self.inside(child, depth + 1))
    }

    fn word(&mut self, node: Node<'_>, depth: usize) -> Result<Word, String> {
        self.spans.push(node.byte_range());
        self.inside(node, depth)?;
        Ok(lexer::decode(self.source(node)))
    }

    fn command(&mut self, node: Node<'_>, depth: usize) -> Result<(), String> {
        let mut part = self.bare(Kind::Plain, node);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "comment" => {}
                "variable_assignment" => self.assignment(child, &mut part, depth + 1)?,
                "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                    self.redirection(child, &mut part, depth + 1)?;
                }
                // A complete subshell may stand where a redirection does.
                "subshell" => self.statement(child, depth + 1)?,
                _ => {
                    let word = self.word(child, depth + 1)?;
                    part.words.push(word);
                }
            }
        }
        self.parts.push(part);
        Ok(())
    }

    /// Collects `export`, `declare` and similar commands, which change the meaning of later
    /// commands.
    fn declaration(&mut self, node: Node<'_>, depth: usize) -> Result<(), String> {
        let mut part = self.bare(Kind::Opaque, node);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        for child in children {
            let word = self.word(child, depth + 1)?;
            part.words.push(word);
        }
        self.parts.push(part);
        Ok(())
    }

    fn assignment(&mut self, node: Node<'_>, part: &mut Part, depth: usize) -> Result<(), String> {
        let word = self.word(node, depth)?;
        let source = self.source(node);
        let (name, value) = source.split_once('=').unwrap_or((source, ""));
        let mut value = lexer::decode(value);
        value.certainty = value.certainty.max(word.certainty);
        part.assignments.push((name.trim_end_matches('+').to_owned(), value));
        Ok(())
    }

    fn redirection(&mut self, node: Node<'_>, part: &mut Part, depth: usize) -> Result<(), String> {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        if node.kind() == "heredoc_redirect" {
            let target = Word::unknown(self.source(node));
            part.redirections.push(Redirection { direction: Direction::Text, target });
            // The rest of the same line is attached to this node: more words, redirections, a
            // complete pipeline.
            for child in children {
                match child.kind() {
                    "heredoc_start" | "heredoc_end" | "heredoc_body" => {
                        self.inside(child, depth + 1)?
                    }
                    "file_redirect" | "herestring_redirect" => {
                        self.redirection(child, part, depth + 1)?
                    }
                    kind if WORDS.contains(&kind) => {
                        let word = self.word(child, depth + 1)?;
                        part.words.push(word);
                    }
                    _ => self.statement(child, depth + 1)?,
                }
            }
            return Ok(());
        }
        let (mut operator, mut aimed) = ("", false);
        for child in children {
            if child.kind() == "file_descriptor" || !child.is_named() {
                self.spans.push(child.byte_range());
                if !child.is_named() {
                    operator = child.kind();
                }
                continue;
            }
            let target = self.word(child, depth + 1)?;
            if aimed {
                part.words.push(target);
                continue;
            }
            aimed = true;
            let closes = target.text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
                && !target.text.is_empty();
            let direction = match operator {
                "<<<" => Direction::Text,
                "<" => Direction::Read,
                ">&" | "<&" | ">&-" | "<&-" if closes => Direction::Join,
                "<&" => Direction::Read,
                _ => Direction::Write,
            };
            part.redirections.push(Redirection { direction, target });
        }
        Ok(())
    }

    /// Returns the reason why the strict reading contradicts the parser, if it does.
    fn disagreement(&mut self) -> Option<&'static str> {
        let tokens = match lexer::tokens(self.text) {
            Ok(tokens) => tokens,
            Err(why) => return Some(why),
        };
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut breaks = Vec::new();
        for token in tokens {
            match token {
                Token::Word(span) | Token::Operator(span) => pieces.push(span),
                Token::Newline(at) => breaks.push(at),
            }
        }
        self.spans.sort_by_key(|s| (s.start, s.end));
        let broken = self
            .parts
            .iter()
            .any(|p| breaks.iter().any(|b| p.kind == Kind::Plain && p.span.contains(b)));
        (self.spans != pieces || broken).then_some("two parsers disagree about it")
    }
}
