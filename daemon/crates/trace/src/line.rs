//! A record as text, shared by all of its recipients.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

/// JSON of one envelope, shared by all clones.
#[derive(Clone)]
pub struct Line(Arc<Inner>);

struct Inner {
    text: Box<str>,
    framed: OnceLock<Bytes>,
}

impl Line {
    /// Returns the form sent to clients, which the first caller creates and all share: `make` must
    /// return the same for every caller.
    pub fn framed(&self, make: impl FnOnce(&str) -> String) -> Bytes {
        self.0.framed.get_or_init(|| make(&self.0.text).into()).clone()
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self(Arc::new(Inner { text: text.into(), framed: OnceLock::new() }))
    }
}

impl Deref for Line {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_framed_once() {
        let line = Line::from("{}".to_owned());
        let first = line.framed(|text| format!("[{text}]"));
        let second = line.clone().framed(|_| unreachable!("it was made before"));
        assert_eq!((&*first, first.as_ptr()), (&b"[{}]"[..], second.as_ptr()));
    }
}
