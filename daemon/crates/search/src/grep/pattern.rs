//! Compiles patterns; their size is estimated from the parsed form before anything is built.

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::search::GrepParams;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::filters::invalid;
use cairn_trigram_index::{Flags, NEST_LIMIT};

/// Maximum steps of a pattern with expanded repetitions. Matching may cost as many steps per byte
/// of a file.
const MAX_STEPS: u64 = 50_000;
/// Maximum bytes of a compiled pattern.
const MAX_COMPILED: usize = 16 * 1024 * 1024;
/// Maximum bytes of a matcher's cache.
const MAX_CACHE: usize = 16 * 1024 * 1024;
/// Maximum steps that a character class counts for, regardless of its ranges.
const MAX_OF_CLASS: u64 = 32;

pub(super) struct Pattern {
    pub(super) matcher: RegexMatcher,
    pub(super) text: String,
    pub(super) flags: Flags,
    pub(super) multiline: bool,
    /// Lines that do not match are the result.
    pub(super) invert: bool,
    /// The files of the scope are the result.
    pub(super) lists_files: bool,
}

impl Pattern {
    /// Compiles the pattern of a request.
    ///
    /// # Errors
    /// `invalid_params` for an unknown flag; `bad_pattern` for an invalid or too large pattern.
    pub(super) fn compile(params: &GrepParams) -> Result<Self, Failure> {
        let mut build = RegexMatcherBuilder::new();
        build
            .multi_line(true)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_CACHE)
            .nest_limit(NEST_LIMIT);
        let mut flags = Flags::default();
        let mut multiline = false;
        let mut invert = false;
        let mut lists_files = false;
        for flag in &params.flags {
            match flag.as_str() {
                "ignore_case" | "i" => {
                    flags.any_case = true;
                    build.case_insensitive(true)
                }
                // Only the matcher decides whether case matters; querying trigrams of any case is
                // always correct.
                "smart_case" | "S" => {
                    flags.any_case = true;
                    build.case_smart(true)
                }
                "word" | "w" => build.word(true),
                "multiline" | "U" => {
                    multiline = true;
                    &mut build
                }
                "dot_all" | "s" => {
                    flags.dot_all = true;
                    build.dot_matches_new_line(true)
                }
                "invert" | "v" => {
                    invert = true;
                    &mut build
                }
                "files" => {
                    lists_files = true;
                    &mut build
                }
                other => {
                    return Err(invalid(
                        "flags",
                        format_args!("'{}' is not known", other.escape_default()),
                    ));
                }
            };
        }
        if lists_files && !params.count_only {
            return Err(invalid("flags", "'files' needs countOnly"));
        }
        if !multiline {
            build.line_terminator(Some(b'\n'));
        }
        let text = if params.is_regex {
            params.pattern.clone()
        } else {
            regex_syntax::escape(&params.pattern)
        };
        check_size(&text)?;
        let matcher = build
            .build(&text)
            .map_err(|e| Failure::new(Reason::BadPattern, format!("pattern: {e}")))?;
        Ok(Self { matcher, text, flags, multiline, invert, lists_files })
    }
}

/// Refuses a pattern that is too large. The matcher reports patterns that cannot be parsed.
fn check_size(pattern: &str) -> Result<(), Failure> {
    let parsed = regex_syntax::ParserBuilder::new()
        .nest_limit(NEST_LIMIT)
        .utf8(false)
        .build()
        .parse(pattern);
    let steps = parsed.map_or(0, |hir| steps(&hir));
    if steps <= MAX_STEPS {
        return Ok(());
    }
    let text = format!(
        "pattern: it has {steps} steps with repetitions expanded; the limit is {MAX_STEPS}"
    );
    Err(Failure::new(Reason::BadPattern, text))
}

fn steps(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => {
            (class.ranges().len() as u64).clamp(1, MAX_OF_CLASS)
        }
        HirKind::Class(Class::Bytes(class)) => (class.ranges().len() as u64).clamp(1, MAX_OF_CLASS),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            steps(&repetition.sub).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => steps(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum, part| sum.saturating_add(steps(part)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(pattern: &str) -> Result<Pattern, Failure> {
        let params = serde_json::json!({"pattern": pattern, "isRegex": true});
        Pattern::compile(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn too_large_pattern_is_refused_immediately_with_its_size() {
        let start = std::time::Instant::now();
        for pattern in [
            "a{0,1000}{0,1000}",
            "(?:a{0,300}){0,300}",
            "((a{1,100}){1,100}){1,100}",
            "(ab|cd){1000}{1000}{1000}{1000}",
            "\\w{1000}{2}{2}",
            "[^x]{0,60000}",
        ] {
            let failure = compile(pattern).err().unwrap();
            assert_eq!(failure.reason, Reason::BadPattern, "{pattern}: {failure}");
            assert!(failure.message.contains("steps"), "{pattern}: {failure}");
        }
        assert!(compile(&format!("{}a{}", "(".repeat(400), ")".repeat(400))).is_err());
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
        // Control: common patterns compile.
        for pattern in [
            "fn \\w+\\(",
            "(?i)error|warn(ing)?",
            "\\w{1,64}",
            "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "a{0,1000}",
        ] {
            assert!(compile(pattern).is_ok(), "{pattern}");
        }
    }
}
