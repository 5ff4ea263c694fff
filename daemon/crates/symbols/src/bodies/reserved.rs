//! Reserved words, which are never identifiers.

const RUST: &str = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
    mod move mut pub ref return self Self static struct super trait true type unsafe use where while";
const PYTHON: &str = "and as assert async await break class continue def del elif else except False finally for from global \
    if import in is lambda None nonlocal not or pass raise return True try while with yield";
const GO: &str = "break case chan const continue default defer else fallthrough for func go goto if import interface map \
    package range return select struct switch type var";
const C: &str = "auto break case char const continue default define do double elif else endif enum extern float for goto if \
    ifdef ifndef include inline int long pragma register return short signed sizeof static struct switch typedef undef \
    union unsigned void volatile while";
const CPP: &str = "catch class constexpr delete explicit false friend mutable namespace new noexcept nullptr operator private \
    protected public template this throw true try typename using virtual";
const JAVA: &str = "abstract boolean break byte case catch char class continue default do double else enum extends final \
    finally float for if implements import instanceof int interface long native new null package private protected \
    public return short static super switch synchronized this throw throws transient try void volatile while true false";
const SCRIPT: &str = "break case catch class const continue default delete do else export extends false finally for function \
    if import in instanceof let new null return super switch this throw true try typeof var void while yield";

/// The reserved words of a language.
pub fn words(lang: &str) -> impl Iterator<Item = &'static str> {
    let (own, more) = match lang {
        "rust" => (RUST, ""),
        "python" => (PYTHON, ""),
        "go" => (GO, ""),
        "c" => (C, ""),
        "cpp" => (CPP, C),
        "java" => (JAVA, ""),
        _ => (SCRIPT, ""),
    };
    own.split_ascii_whitespace().chain(more.split_ascii_whitespace())
}
