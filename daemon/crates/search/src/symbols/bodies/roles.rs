//! What a `{` opens, told from the tokens before it.

use super::braces::{Lang, Pass};
use super::lex;

/// What is between a pair of braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The body of a function: left out when nothing is defined in it.
    Body,
    /// Members: a class, a namespace, an object literal.
    Type,
    /// Statements.
    Code,
    /// A part of an expression or of a type; what came before it goes on behind it.
    Data,
}

/// What a word means for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A name, or a word that changes nothing.
    Plain,
    Number,
    /// `if`, `for`, …: what follows in parentheses is no call.
    Control,
    /// Begins a function.
    Function,
    /// Begins a type; in its own right a definition.
    Type,
    Enum,
    /// Defines something that has no body of interest.
    Define,
    /// Before a value, as `return`.
    Value,
    /// Before `{` of a type that is no definition (Go's `struct {`).
    Shape,
    /// `static` in Java and scripts.
    Static,
    Throws,
    Requires,
}

/// The token before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prev {
    None,
    Word(Word),
    /// A string, a character, a regex.
    Text,
    Arrow,
    /// `)`, and whether its `(` came after `if` and the like.
    Closed {
        control: bool,
    },
    Mark(u8),
}

/// What came since the last `;`, `{` or `}` between the same brackets.
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

/// What a word means in its language, at its place.
pub fn word(pass: &Pass<'_, '_>, word: &[u8], at: usize) -> Word {
    if word[0].is_ascii_digit() {
        return Word::Number;
    }
    // Keywords are short and lower-case.
    if word.len() > 12 || !word[0].is_ascii_lowercase() {
        return Word::Plain;
    }
    match pass.lang {
        Lang::Rust => rust(word),
        Lang::Go => match word {
            b"func" => Word::Function,
            b"type" if pass.prev != Prev::Mark(b'(') => Word::Define,
            b"struct" | b"interface" => Word::Shape,
            _ => Word::Plain,
        },
        Lang::Java => java(pass, word, at),
        Lang::Cpp => cpp(pass, word),
        Lang::Script => script(pass, word, at),
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

fn java(pass: &Pass<'_, '_>, word: &[u8], at: usize) -> Word {
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" | b"try" | b"synchronized" => Word::Control,
        b"class" | b"interface" if pass.prev != Prev::Mark(b'.') => Word::Type,
        b"enum" => Word::Enum,
        b"record" => {
            let after = pass.text[at + word.len()..].trim_ascii_start();
            let name = lex::word(after);
            let named = name > 0 && matches!(after[name..].trim_ascii_start().first(), Some(b'(' | b'<'));
            if named { Word::Type } else { Word::Plain }
        }
        b"static" => Word::Static,
        b"throws" => Word::Throws,
        _ => Word::Plain,
    }
}

fn cpp(pass: &Pass<'_, '_>, word: &[u8]) -> Word {
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" => Word::Control,
        // `template <class T, class U>` names no class.
        b"class" | b"struct" | b"union" | b"enum" | b"namespace"
            if !matches!(pass.prev, Prev::Mark(b'<' | b',')) =>
        {
            Word::Type
        }
        b"typedef" | b"concept" => Word::Define,
        b"requires" => Word::Requires,
        _ => Word::Plain,
    }
}

fn script(pass: &Pass<'_, '_>, word: &[u8], at: usize) -> Word {
    if pass.prev == Prev::Mark(b'.') {
        return Word::Plain;
    }
    match word {
        b"if" | b"for" | b"while" | b"switch" | b"catch" | b"with" => Word::Control,
        b"function" => Word::Function,
        b"class" => Word::Type,
        b"return" | b"typeof" | b"case" | b"in" | b"of" | b"new" | b"throw" | b"yield" | b"await"
        | b"delete" | b"void" | b"instanceof" | b"default" => Word::Value,
        b"static" => Word::Static,
        // Words of TypeScript that are names elsewhere: they define when a name follows on the same line.
        b"interface" | b"type" | b"enum" | b"namespace" | b"module" => {
            let after = pass.text[at + word.len()..].trim_start_ascii_spaces();
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

/// What a word changes.
pub fn take_word(pass: &mut Pass<'_, '_>, word: Word) {
    match (pass.lang, word) {
        // `fn` alone is a type; a function has a name.
        (Lang::Rust, Word::Plain) if pass.prev == Prev::Word(Word::Function) => pass.head.add(Head::FUNCTION),
        (Lang::Rust, Word::Function) => pass.defs += 1,
        (Lang::Go, Word::Function) => pass.head.add(Head::FUNCTION),
        (Lang::Script, Word::Function) => {
            let handed_on = matches!(pass.prev, Prev::Mark(b'(') | Prev::Word(Word::Value))
                || (pass.prev == Prev::Mark(b',') && in_parentheses(pass));
            pass.defs += u32::from(!handed_on);
            pass.head.add(Head::FUNCTION);
        }
        (Lang::Script, Word::Type) => {
            pass.defs += 1;
            pass.head.clear(Head::FUNCTION);
            pass.head.add(Head::TYPE);
        }
        (Lang::Cpp, Word::Type) => pass.head.add(Head::TYPE),
        (_, Word::Type) => {
            pass.defs += 1;
            pass.head.add(Head::TYPE);
        }
        (_, Word::Enum) => {
            pass.defs += 1;
            pass.head.add(Head::TYPE | Head::ENUM);
        }
        (_, Word::Define) => {
            pass.defs += 1;
            pass.head.clear(Head::FUNCTION);
        }
        (_, Word::Throws) => pass.head.add(Head::THROWS),
        (_, Word::Requires) => pass.head.add(Head::REQUIRES),
        _ => {}
    }
}

fn in_parentheses(pass: &Pass<'_, '_>) -> bool {
    pass.stack.last().is_some_and(|o| o.bracket == b'(')
}

/// What `=>` or `->` changes.
pub fn take_arrow(pass: &mut Pass<'_, '_>) {
    if pass.lang == Lang::Script && pass.head.has(Head::ASSIGNED | Head::COLON) {
        pass.defs += 1;
    }
    if pass.head.has(Head::PARENTHESES) {
        pass.head.add(Head::ARROW);
    }
}

/// What another mark changes.
pub fn take_mark(pass: &mut Pass<'_, '_>, mark: u8) {
    match mark {
        b';' => {
            pass.head = Head::default();
            let in_type = pass.stack.last().is_some_and(|o| o.role == Role::Type);
            // `{ name(): void; }` is a type whose methods count.
            pass.defs += u32::from(pass.lang == Lang::Script && in_type);
            if let Some(open) = pass.stack.last_mut() {
                open.constants = false;
            }
        }
        b',' if pass.lang == Lang::Script => after_comma(pass),
        b'=' => pass.head.add(Head::ASSIGNED),
        b':' => {
            let in_type = pass.stack.last().is_some_and(|o| o.role == Role::Type);
            let method = pass.lang == Lang::Script && in_type && matches!(pass.prev, Prev::Closed { .. });
            pass.defs += u32::from(method);
            pass.head.add(Head::COLON);
        }
        _ => {}
    }
}

/// A comma ends a value, or stands in `Map<A, B>`, which no bracket shows: what must not be forgotten then stays.
fn after_comma(pass: &mut Pass<'_, '_>) {
    let stays = match pass.stack.last() {
        Some(open) if open.bracket != b'{' => 0,
        Some(open) if open.role == Role::Type => Head::PARENTHESES,
        _ => Head::ASSIGNED | Head::COLON | Head::FUNCTION,
    };
    pass.head = Head(pass.head.0 & stays);
}

/// Whether a `/` after this begins a regex.
pub fn begins_value(prev: Prev) -> bool {
    match prev {
        Prev::None | Prev::Arrow | Prev::Word(Word::Value) => true,
        Prev::Closed { control } => control,
        Prev::Mark(mark) => !matches!(mark, b')' | b']' | b'}'),
        Prev::Word(_) | Prev::Text => false,
    }
}

/// What the `{` here opens.
pub fn role(pass: &mut Pass<'_, '_>) -> Role {
    let around = pass.stack.last().map(|o| o.role);
    let role = match pass.lang {
        Lang::Rust if pass.head.has(Head::FUNCTION) => Role::Body,
        Lang::Rust => Role::Code,
        Lang::Go if pass.prev == Prev::Word(Word::Shape) => Role::Data,
        Lang::Go if pass.head.has(Head::FUNCTION) => Role::Body,
        Lang::Go => Role::Data,
        Lang::Java => of_java(pass, around),
        Lang::Cpp => of_cpp(pass, around),
        Lang::Script => of_script(pass, around),
    };
    let inside = !matches!(around, None | Some(Role::Type));
    // Classes inside functions: what C++ names with a tag and Java makes of `new T() {`.
    if role == Role::Type && inside && matches!(pass.lang, Lang::Java | Lang::Cpp) {
        pass.defs += 1;
    }
    role
}

fn of_java(pass: &Pass<'_, '_>, around: Option<Role>) -> Role {
    let constants = pass.stack.last().is_some_and(|o| o.constants);
    if pass.head.has(Head::TYPE) {
        return Role::Type;
    }
    let among_members = matches!(around, None | Some(Role::Type));
    match pass.prev {
        Prev::Closed { control: true } => Role::Code,
        Prev::Closed { .. } if !among_members || constants || pass.head.has(Head::ASSIGNED) => Role::Type,
        Prev::Word(Word::Plain) if constants => Role::Type,
        _ if !among_members => Role::Code,
        Prev::Closed { .. } | Prev::Arrow | Prev::None | Prev::Word(Word::Static) => Role::Body,
        Prev::Mark(b'{' | b'}' | b';') => Role::Body,
        _ if pass.head.has(Head::THROWS) => Role::Body,
        _ => Role::Data,
    }
}

fn of_cpp(pass: &Pass<'_, '_>, around: Option<Role>) -> Role {
    let head = pass.head;
    let called = head.has(Head::PARENTHESES);
    let tagged = head.has(Head::TYPE) && !matches!(pass.prev, Prev::Closed { .. });
    let value = matches!(pass.prev, Prev::Mark(b'=' | b',' | b'(' | b'['));
    if !matches!(around, None | Some(Role::Type)) {
        return if tagged && !value { Role::Type } else { Role::Code };
    }
    match pass.prev {
        Prev::Closed { control: true } => Role::Code,
        _ if value || head.has(Head::REQUIRES) => Role::Data,
        Prev::Closed { .. } => Role::Body,
        _ if head.has(Head::TYPE) && !called => Role::Type,
        // Members set before the body of a constructor: `A() : a{1}, b(2) {`.
        Prev::Word(_) | Prev::Mark(b'>')
            if called && head.has(Head::COLON) && !head.has(Head::TYPE | Head::ARROW) =>
        {
            Role::Data
        }
        Prev::Word(_) | Prev::Mark(b'&' | b'}' | b'>' | b'*') if called && !head.has(Head::TYPE) => {
            Role::Body
        }
        _ if head.has(Head::TYPE) => Role::Type,
        Prev::Text => Role::Type,
        _ => Role::Data,
    }
}

fn of_script(pass: &mut Pass<'_, '_>, around: Option<Role>) -> Role {
    let head = pass.head;
    let value = matches!(
        pass.prev,
        Prev::Mark(b'=' | b'(' | b',' | b'[' | b':' | b'?' | b'&' | b'|' | b'<' | b'.' | b'~')
            | Prev::Word(Word::Value)
    );
    match pass.prev {
        Prev::Closed { control: true } => return Role::Code,
        Prev::Arrow => return Role::Body,
        _ if head.has(Head::TYPE) => return Role::Type,
        _ if head.has(Head::FUNCTION) => return if value { Role::Data } else { Role::Body },
        _ => {}
    }
    if around != Some(Role::Type) {
        // `name() {` among statements: this pass has lost its way, and what is around must stay.
        pass.defs += u32::from(matches!(pass.prev, Prev::Closed { .. }));
        return if value { Role::Type } else { Role::Code };
    }
    match pass.prev {
        // The type that a method returns, or a value.
        _ if value => {
            if head.has(Head::PARENTHESES) && !head.has(Head::ASSIGNED) {
                Role::Data
            } else {
                Role::Type
            }
        }
        Prev::Word(Word::Static) => Role::Body,
        _ if head.has(Head::PARENTHESES) => {
            pass.defs += 1;
            Role::Body
        }
        _ => Role::Code,
    }
}
