//! Images of a message: paths that the user types, pastes or drops, and their content.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cairn_protocol::model::Part;

use crate::{
    exit::Failure,
    render::output::{self, plain},
};

/// Maximum bytes of an image; its base64 form and a text fit into a turn's input.
pub const MAX_IMAGE: u64 = 5 * 1024 * 1024;
/// Maximum images of one message.
pub const MAX_IMAGES: usize = 16;
/// Endings of names that are taken for images.
const EXTENSIONS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp"];
/// First bytes of each format with its type and name; those of WebP follow a length.
const FORMATS: &[(&[u8], &str, &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png", "PNG"),
    (b"\xff\xd8\xff", "image/jpeg", "JPEG"),
    (b"GIF87a", "image/gif", "GIF"),
    (b"GIF89a", "image/gif", "GIF"),
];

/// An image that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    name: String,
    format: &'static str,
    mime: &'static str,
    bytes: u64,
    data: String,
}

impl Image {
    /// Reads a file. Its format is that of its content, whatever its name is.
    ///
    /// # Errors
    /// A failure that names the limit or the formats.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = plain(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
        let failed = |e: std::io::Error| Failure::path(path, &e);
        let meta = path.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(Failure::usage(format!("{name} is not a file")));
        }
        check_size(&name, meta.len())?;
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_IMAGE + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::of_bytes(name, &bytes)
    }

    /// Checks the content of an image.
    ///
    /// # Errors
    /// As [`Image::read`].
    pub fn of_bytes(name: String, bytes: &[u8]) -> Result<Self, Failure> {
        check_size(&name, bytes.len() as u64)?;
        let Some((mime, format)) = format(bytes) else {
            return Err(Failure::usage(format!("{name} is not a PNG, JPEG, GIF or WebP picture"))
                .hint("convert it, or mention it with @ as a file"));
        };
        let data = STANDARD.encode(bytes);
        Ok(Self { name, format, mime, bytes: bytes.len() as u64, data })
    }

    /// Describes the image in a few words.
    pub fn describe(&self) -> String {
        format!("{} ({}, {})", self.name, self.format, output::bytes(self.bytes))
    }

    /// Converts the image to a part of a message.
    pub fn into_part(self) -> Part {
        Part::Image { mime: self.mime.into(), data: self.data }
    }
}

fn check_size(name: &str, bytes: u64) -> Result<(), Failure> {
    if bytes <= MAX_IMAGE {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name} has {}; a picture may have at most {}",
        output::bytes(bytes),
        output::bytes(MAX_IMAGE)
    ))
    .hint("scale it down first, for example with: magick IN.png -resize 1600x1600 OUT.png"))
}

/// Returns type and name of an image's format.
fn format(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some(("image/webp", "WebP"));
    }
    FORMATS
        .iter()
        .find(|(magic, ..)| bytes.starts_with(magic))
        .map(|(_, mime, format)| (*mime, *format))
}

/// Returns true if a path has the name of an image.
pub fn is_image_name(path: &str) -> bool {
    Path::new(path)
        .extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| EXTENSIONS.contains(&e.to_ascii_lowercase().as_str()))
}

/// Lists the image files that a text names: words that are paths, with quotes or escaped spaces as
/// terminals insert them for dropped files, and `file://` addresses.
pub fn files_in(text: &str, folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for word in words(text) {
        if !is_image_name(&word) {
            continue;
        }
        let path = resolved(&word, folder, home);
        if path.is_file() && !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

/// Resolves a typed path.
pub fn resolved(word: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    if let Some(encoded) = word.strip_prefix("file://") {
        let path = percent_encoding::percent_decode_str(encoded).decode_utf8_lossy();
        return PathBuf::from(path.into_owned());
    }
    match (word.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(word),
    }
}

/// Splits a text into words. A word in quotes may have spaces, and a backslash escapes a character;
/// an apostrophe inside a word is a character.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        if first == '\'' || first == '"' {
            word.extend(chars.by_ref().take_while(|c| *c != first));
        } else {
            let mut next = Some(first);
            while let Some(c) = next {
                if c != '\\' {
                    word.push(c);
                } else if let Some(escaped) = chars.next() {
                    word.push(escaped);
                }
                next = chars.next_if(|c| !c.is_whitespace());
            }
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
pub const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_paths_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a.png", "two words.JPG", "it's.gif", "doc.txt"] {
            std::fs::write(at(name), PIXEL).unwrap();
        }
        let folder = dir.path().display().to_string();
        for (text, expected) in [
            ("look at a.png please".to_owned(), vec!["a.png"]),
            (format!("{folder}/two\\ words.JPG"), vec!["two words.JPG"]),
            (format!("'{folder}/two words.JPG' and \"a.png\""), vec!["two words.JPG", "a.png"]),
            (format!("file://{folder}/two%20words.JPG"), vec!["two words.JPG"]),
            ("don't open doc.txt or it's.gif".to_owned(), vec!["it's.gif"]),
            ("~/a.png a.png".to_owned(), vec!["a.png"]),
            ("missing.png and .png".to_owned(), vec![]),
        ] {
            let got = files_in(&text, dir.path(), Some(dir.path()));
            let expected: Vec<PathBuf> = expected.into_iter().map(at).collect();
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn format_is_that_of_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("photo.png");
        for (bytes, mime) in [
            (PIXEL, "image/png"),
            (b"\xff\xd8\xff\xe0" as &[u8], "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let part = Image::read(&path).unwrap().into_part();
            let Part::Image { mime: got, data } = part else { panic!("not an image") };
            assert_eq!((got.as_str(), STANDARD.decode(data).unwrap().as_slice()), (mime, bytes));
        }
        std::fs::write(&path, "text").unwrap();
        let failure = Image::read(&path).unwrap_err();
        assert!(failure.text().contains("is not a PNG, JPEG, GIF or WebP"), "{}", failure.text());
    }

    #[test]
    fn too_large_image_is_refused_with_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("big.png");
        std::fs::File::create(&path).unwrap().set_len(50 * 1024 * 1024).unwrap();
        let failure = Image::read(&path).unwrap_err();
        let text = failure.text();
        assert!(text.contains("big.png has 50") && text.contains("at most 5"), "{text}");
        assert!(Image::read(dir.path()).is_err());
    }
}
