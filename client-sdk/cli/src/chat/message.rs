//! A message to the model: the typed text with its pastes, mentioned files and pictures.

use cairn_protocol::{model::Part, turn::Input};

use super::{
    Chat,
    images::{self, Image, MAX_IMAGES},
    mentions, pastes,
};
use crate::{exit::Failure, render::output};

/// Bytes of text per token, for the part of the context that attachments may fill.
const BYTES_PER_TOKEN: u64 = 4;
/// Bytes that attachments may have if the model's context is unknown.
const DEFAULT_ROOM: u64 = 256 * 1024;

/// A message that is complete and within the limits.
pub struct Message {
    pub input: Input,
    pub context: Option<String>,
}

impl Message {
    /// A text without attachments.
    pub fn plain(text: String, context: Option<String>) -> Self {
        Self { input: Input::Text(text), context }
    }
}

impl Chat<'_> {
    /// Adds to a typed text what it mentions, and the pictures that were added before.
    ///
    /// # Errors
    /// A file that may not be attached, a picture that is too large or none, a message over the
    /// limit. The pictures that were added before stay.
    pub async fn compose(
        &mut self,
        text: String,
        context: Option<String>,
    ) -> Result<Message, Failure> {
        let attached = mentions::attach(&self.client, &self.folder, &text, self.room()).await?;
        let mut pictures = self.pictures.clone();
        let home = self.app.env.home.clone();
        let mut paths = images::files_in(&text, &self.folder, home.as_deref());
        if !self.app.is_remote() {
            paths.extend(attached.images.iter().map(|path| self.folder.join(path)));
        }
        paths.dedup();
        let mut notes = attached.notes;
        for path in paths {
            let image = Image::read(&path)?;
            notes.push(format!("attached {}", image.describe()));
            pictures.push(image);
        }
        if pictures.len() > MAX_IMAGES {
            return Err(Failure::usage(format!(
                "the message has {} pictures; at most {MAX_IMAGES} can go with one",
                pictures.len()
            ))
            .hint("send them in several messages"));
        }
        // A paste is text: what it mentions is not attached.
        let text = self.sources.pastes.expand(&text);
        let context = Some(context.unwrap_or_default() + &attached.context);
        let context = context.filter(|text| !text.is_empty());
        let message = Message { input: input(text, pictures), context };
        check_size(&message)?;
        self.pictures.clear();
        for note in notes {
            self.app.info(&note);
        }
        Ok(message)
    }

    /// Returns the number of bytes that attached files may have: a quarter of the context.
    fn room(&self) -> usize {
        let window = self.usage.map(|(_, window)| window).filter(|window| *window > 0);
        let bytes = window.map_or(DEFAULT_ROOM, |tokens| tokens * BYTES_PER_TOKEN / 4);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

fn input(text: String, pictures: Vec<Image>) -> Input {
    if pictures.is_empty() {
        return Input::Text(text);
    }
    let pictures = pictures.into_iter().map(Image::into_part);
    Input::Parts(std::iter::once(Part::Text { text }).chain(pictures).collect())
}

fn check_size(message: &Message) -> Result<(), Failure> {
    let bytes = match &message.input {
        Input::Text(text) => text.len(),
        Input::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.len(),
                Part::Image { data, .. } => data.len(),
            })
            .sum(),
    };
    let total = bytes + message.context.as_ref().map_or(0, String::len);
    if total <= pastes::MAX_STORED {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the message has {} with its pictures and files; the limit is {}",
        output::bytes(total as u64),
        output::bytes(pastes::MAX_STORED as u64)
    ))
    .hint("send fewer or smaller ones"))
}
