//! fn commented() {}
use std::fmt;

/// Docs with `fn code() {}` and an apostrophe: it's here.
pub struct Log<'a, T: Fn(u8) -> u8> {
    name: &'a str,
    call: fn(u8) -> [u8; { 1 + 1 }],
    other: T,
}

impl<'a, T: Fn(u8) -> u8> Log<'a, T> {
    pub const LIMIT: usize = { 3 };

    pub async fn append(&'a self, text: &str) -> Result<(), String>
    where
        T: Clone,
    {
        /* a comment /* in a comment } */ } */
        let open = '{';
        let raw = r#"fn not_there() { " "#;
        let quote = '\'';
        match text {
            "}" => return Err(format!("{open}{raw}{quote}")),
            _ => {}
        }
        'outer: loop {
            break 'outer;
        }
        Ok(())
    }

    fn nested(&self) -> usize {
        fn inner(n: usize) -> usize {
            let far = n + 1;
            far * 2
        }
        struct Local {
            field: u8,
        }
        inner(1)
    }
}

mod tests {
    macro_rules! make {
        ($name:ident) => {
            fn $name() { work() }
        };
    }
    pub static TABLE: &[u8] = &[1, 2, 3];
    #[test]
    fn it_works() {
        let closure = |x: u8| { x + 1 };
        assert_eq!(closure(1), 2);
    }
}

pub trait Sink {
    fn write(&mut self, byte: u8);
    fn flush(&mut self) {
        let nothing = ();
        drop(nothing)
    }
}

pub(crate) const fn last() -> u8 { b'}' }
