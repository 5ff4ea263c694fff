//! Classifies what a `{` opens by the tokens before it.

use super::braces::{Lang, Scanner};
use super::lex;

/// The content of a pair of braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The body of a function, which is removed if it contains no definitions.
    Body,
    /// Members: a class, a namespace, an object literal.
    Type,
    Code,
    /// A part of an expression or of a type; the statement continues after it.
    Data,
}

/// The class of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A name or an insignificant keyword.
    Plain,
    Number,
    /// `if`, `for`, …: the following parentheses are not a call.
    Control,
    Function,
    /// Starts a type definition.
    Type,
    Enum,
    /// Defines something without a removable body.
    Define,
    /// Precedes a value, such as `return`.
    Value,
    /// Precedes the `{` of a type that is not a definition (Go's `struct {`).
    Shape,
    /// `static` in Java and scripts.
    Static,
    Throws,
    Requires,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prev {
    None,
    Word(Word),
    /// A string, a character, a regex.
    Text,
    Arrow,
    /// `)`, with `control` if its `(` followed `if` and the like.
    Closed {
        control: bool,
    },
    Mark(u8),
}

/// Flags of the tokens since the last `;`, `{` or `}` at the same nesting.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head(u16);

impl Head {
    pub const FUNCTION: u16 = 1;
    pub const TYPE: u16 = 2;
    pub const ENUM: u16 = 4;
    pub const ASSIGNED: u16 = 8;
    pub const PARENTHESES: u16 = 16;
    pub const COLON: u16 = 32;
    pub const ARROW: u16 = 64;
    pub const THROWS: u16 = 128;
    pub const REQUIRES: u16 = 256;

    pub fn has(self, what: u16) -> bool {
        self.0 & what != 0
    }

    pub fn add(&mut self, what: u16) {
        self.0 |= what;
    }

    fn clear(&mut self, what: u16) {
        self.0 &= !what;
    }
}

/// Classifies a word in its language and context.
pub fn word(scanner: &Scanner<'_, '_>, word: &[u8], at: usize) -> Word {
    if word[0].is_ascii_digit() {
        return Word::Number;
    }
    // Keywords are short and lower-case.
    if word.len() > 12 || !word[0].is_ascii_lowercase() {
        return Word::Plain;
    }
    match scanner.lang {
        Lang::Rust => rust(word),
        Lang::Go => match word {
            b"func" => Word::Function,
            b"type" if scanner.prev != Prev::Mark(b'(') => Word::Define,
            b"struct" | b"interface" => Word::Shape,
            _ => Word::Plain,
        },
        Lang::Java => java(scanner, word, at),
        Lang::Cpp => cpp(scanner, word),
        Lang::Script => script(scanner, word, at),
    }
}

fn rust(word: &[u8]) -> Word {
    match word {
        b"fn" => Word::Function,
        b"struct" | b"enum" | b"union" | b"trait" | b"impl" | b"mod" | b"const" | b"static"
        | b"macro_rules" => Word::Define,
        _ => Word::Plain,
    }
}

fn java(scanner: &Scanner<'_, '_>, word: &[u8], at: usize) -> Word {
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" | b"try" | b"synchronized" => {
            Word::Control
        }
        b"class" | b"interface" if scanner.prev != Prev::Mark(b'.') => Word::Type,
        b"enum" => Word::Enum,
        b"record" => {
            let after = scanner.text[at + word.len()..].trim_ascii_start();
            let name = lex::word(after);
            let named =
                name > 0 && matches!(after[name..].trim_ascii_start().first(), Some(b'(' | b'<'));
            if named { Word::Type } else { Word::Plain }
        }
        b"static" => Word::Static,
        b"throws" => Word::Throws,
        _ => Word::Plain,
    }
}

fn cpp(scanner: &Scanner<'_, '_>, word: &[u8]) -> Word {
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" => Word::Control,
        // `template <class T, class U>` names no class.
        b"class" | b"struct" | b"union" | b"enum" | b"namespace"
            if !matches!(scanner.prev, Prev::Mark(b'<' | b',')) =>
        {
            Word::Type
        }
        b"typedef" | b"concept" => Word::Define,
        b"requires" => Word::Requires,
        _ => Word::Plain,
    }
}

fn script(scanner: &Scanner<'_, '_>, word: &[u8], at: usize) -> Word {
    if scanner.prev == Prev::Mark(b'.') {
        return Word::Plain;
    }
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" | b"with" => Word::Control,
        b"function" => Word::Function,
        b"class" => Word::Type,
        b"return" | b"typeof" | b"case" | b"in" | b"of" | b"new" | b"throw" | b"yield"
        | b"await" | b"delete" | b"void" | b"instanceof" | b"default" => Word::Value,
        b"static" => Word::Static,
        // Keywords of TypeScript that are names elsewhere; they define something if a name follows
        // on the same line.
        b"interface" | b"type" | b"enum" | b"namespace" | b"module" => {
            let after = scanner.text[at + word.len()..].trim_start_ascii_spaces();
            if after.first().is_some_and(|b| lex::is_name(*b)) { Word::Define } else { Word::Plain }
        }
        _ => Word::Plain,
    }
}

trait Spaces {
    fn trim_start_ascii_spaces(&self) -> &[u8];
}

impl Spaces for [u8] {
    fn trim_start_ascii_spaces(&self) -> &[u8] {
        &self[self.iter().take_while(|b| matches!(b, b' ' | b'\t')).count()..]
    }
}

/// Updates the state for a word.
pub fn apply_word(scanner: &mut Scanner<'_, '_>, word: Word) {
    match (scanner.lang, word) {
        // `fn` alone is a type; a function has a name.
        (Lang::Rust, Word::Plain) if scanner.prev == Prev::Word(Word::Function) => {
            scanner.head.add(Head::FUNCTION)
        }
        (Lang::Rust, Word::Function) => scanner.defs += 1,
        (Lang::Go, Word::Function) => scanner.head.add(Head::FUNCTION),
        (Lang::Script, Word::Function) => {
            let is_argument = matches!(scanner.prev, Prev::Mark(b'(') | Prev::Word(Word::Value))
                || (scanner.prev == Prev::Mark(b',') && in_parentheses(scanner));
            scanner.defs += u32::from(!is_argument);
            scanner.head.add(Head::FUNCTION);
        }
        (Lang::Script, Word::Type) => {
            scanner.defs += 1;
            scanner.head.clear(Head::FUNCTION);
            scanner.head.add(Head::TYPE);
        }
        (Lang::Cpp, Word::Type) => scanner.head.add(Head::TYPE),
        (_, Word::Type) => {
            scanner.defs += 1;
            scanner.head.add(Head::TYPE);
        }
        (_, Word::Enum) => {
            scanner.defs += 1;
            scanner.head.add(Head::TYPE | Head::ENUM);
        }
        (_, Word::Define) => {
            scanner.defs += 1;
            scanner.head.clear(Head::FUNCTION);
        }
        (_, Word::Throws) => scanner.head.add(Head::THROWS),
        (_, Word::Requires) => scanner.head.add(Head::REQUIRES),
        _ => {}
    }
}

fn in_parentheses(scanner: &Scanner<'_, '_>) -> bool {
    scanner.stack.last().is_some_and(|o| o.bracket == b'(')
}

/// Updates the state for `=>` or `->`.
pub fn apply_arrow(scanner: &mut Scanner<'_, '_>) {
    if scanner.lang == Lang::Script && scanner.head.has(Head::ASSIGNED | Head::COLON) {
        scanner.defs += 1;
    }
    if scanner.head.has(Head::PARENTHESES) {
        scanner.head.add(Head::ARROW);
    }
}

/// Updates the state for another mark.
pub fn apply_mark(scanner: &mut Scanner<'_, '_>, mark: u8) {
    match mark {
        b';' => {
            scanner.head = Head::default();
            let in_type = scanner.stack.last().is_some_and(|o| o.role == Role::Type);
            // `{ name(): void; }` is a type whose methods count.
            scanner.defs += u32::from(scanner.lang == Lang::Script && in_type);
            if let Some(open) = scanner.stack.last_mut() {
                open.constants = false;
            }
        }
        b',' if scanner.lang == Lang::Script => after_comma(scanner),
        b'=' => scanner.head.add(Head::ASSIGNED),
        b':' => {
            let in_type = scanner.stack.last().is_some_and(|o| o.role == Role::Type);
            let method = scanner.lang == Lang::Script
                && in_type
                && matches!(scanner.prev, Prev::Closed { .. });
            scanner.defs += u32::from(method);
            scanner.head.add(Head::COLON);
        }
        _ => {}
    }
}

/// Updates the state for a comma, which ends a value or separates the arguments of `Map<A, B>`;
/// flags that matter in the second case are retained.
fn after_comma(scanner: &mut Scanner<'_, '_>) {
    let retained = match scanner.stack.last() {
        Some(open) if open.bracket != b'{' => 0,
        Some(open) if open.role == Role::Type => Head::PARENTHESES,
        _ => Head::ASSIGNED | Head::COLON | Head::FUNCTION,
    };
    scanner.head = Head(scanner.head.0 & retained);
}

/// True if a `/` after this token starts a regular expression.
pub fn expects_value(prev: Prev) -> bool {
    match prev {
        Prev::None | Prev::Arrow | Prev::Word(Word::Value) => true,
        Prev::Closed { control } => control,
        Prev::Mark(mark) => !matches!(mark, b')' | b']' | b'}'),
        Prev::Word(_) | Prev::Text => false,
    }
}

/// Classifies the `{` at the current position.
pub fn role(scanner: &mut Scanner<'_, '_>) -> Role {
    let enclosing = scanner.stack.last().map(|o| o.role);
    let role = match scanner.lang {
        Lang::Rust if scanner.head.has(Head::FUNCTION) => Role::Body,
        Lang::Rust => Role::Code,
        Lang::Go if scanner.prev == Prev::Word(Word::Shape) => Role::Data,
        Lang::Go if scanner.head.has(Head::FUNCTION) => Role::Body,
        Lang::Go => Role::Data,
        Lang::Java => java_role(scanner, enclosing),
        Lang::Cpp => cpp_role(scanner, enclosing),
        Lang::Script => script_role(scanner, enclosing),
    };
    let inside = !matches!(enclosing, None | Some(Role::Type));
    // Classes inside functions: tagged types in C++, and `new T() {` in Java.
    if role == Role::Type && inside && matches!(scanner.lang, Lang::Java | Lang::Cpp) {
        scanner.defs += 1;
    }
    role
}

fn java_role(scanner: &Scanner<'_, '_>, enclosing: Option<Role>) -> Role {
    let constants = scanner.stack.last().is_some_and(|o| o.constants);
    if scanner.head.has(Head::TYPE) {
        return Role::Type;
    }
    let among_members = matches!(enclosing, None | Some(Role::Type));
    match scanner.prev {
        Prev::Closed { control: true } => Role::Code,
        Prev::Closed { .. } if !among_members || constants || scanner.head.has(Head::ASSIGNED) => {
            Role::Type
        }
        Prev::Word(Word::Plain) if constants => Role::Type,
        _ if !among_members => Role::Code,
        Prev::Closed { .. } | Prev::Arrow | Prev::None | Prev::Word(Word::Static) => Role::Body,
        Prev::Mark(b'{' | b'}' | b';') => Role::Body,
        _ if scanner.head.has(Head::THROWS) => Role::Body,
        _ => Role::Data,
    }
}

fn cpp_role(scanner: &Scanner<'_, '_>, enclosing: Option<Role>) -> Role {
    let head = scanner.head;
    let called = head.has(Head::PARENTHESES);
    let tagged = head.has(Head::TYPE) && !matches!(scanner.prev, Prev::Closed { .. });
    let value = matches!(scanner.prev, Prev::Mark(b'=' | b',' | b'(' | b'['));
    if !matches!(enclosing, None | Some(Role::Type)) {
        return if tagged && !value { Role::Type } else { Role::Code };
    }
    match scanner.prev {
        Prev::Closed { control: true } => Role::Code,
        _ if value || head.has(Head::REQUIRES) => Role::Data,
        Prev::Closed { .. } => Role::Body,
        _ if head.has(Head::TYPE) && !called => Role::Type,
        // A member initializer before the body of a constructor: `A() : a{1}, b(2) {`.
        Prev::Word(_) | Prev::Mark(b'>')
            if called && head.has(Head::COLON) && !head.has(Head::TYPE | Head::ARROW) =>
        {
            Role::Data
        }
        Prev::Word(_) | Prev::Mark(b'&' | b'}' | b'>' | b'*')
            if called && !head.has(Head::TYPE) =>
        {
            Role::Body
        }
        _ if head.has(Head::TYPE) => Role::Type,
        Prev::Text => Role::Type,
        _ => Role::Data,
    }
}

fn script_role(scanner: &mut Scanner<'_, '_>, enclosing: Option<Role>) -> Role {
    let head = scanner.head;
    let value = matches!(
        scanner.prev,
        Prev::Mark(b'=' | b'(' | b',' | b'[' | b':' | b'?' | b'&' | b'|' | b'<' | b'.' | b'~')
            | Prev::Word(Word::Value)
    );
    match scanner.prev {
        Prev::Closed { control: true } => return Role::Code,
        Prev::Arrow => return Role::Body,
        _ if head.has(Head::TYPE) => return Role::Type,
        _ if head.has(Head::FUNCTION) => return if value { Role::Data } else { Role::Body },
        _ => {}
    }
    if enclosing != Some(Role::Type) {
        // `name() {` among statements means that the pass misread the text, so the enclosing body
        // must stay.
        scanner.defs += u32::from(matches!(scanner.prev, Prev::Closed { .. }));
        return if value { Role::Type } else { Role::Code };
    }
    match scanner.prev {
        // The return type of a method, or a value.
        _ if value => {
            if head.has(Head::PARENTHESES) && !head.has(Head::ASSIGNED) {
                Role::Data
            } else {
                Role::Type
            }
        }
        Prev::Word(Word::Static) => Role::Body,
        _ if head.has(Head::PARENTHESES) => {
            scanner.defs += 1;
            Role::Body
        }
        _ => Role::Code,
    }
}
