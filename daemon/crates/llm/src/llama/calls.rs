//! Tool calls as text, in the format that many small models are trained on: JSON between two tags.

use cairn_protocol::model::ToolUse;
use serde_json::{Value, json};

use crate::ToolOffer;

const BEGIN: &str = "<tool_call>";
const END: &str = "</tool_call>";

/// Returns the part of the system text that describes the tools.
pub(super) fn offer(tools: &[ToolOffer]) -> String {
    let mut text = format!(
        "\n\nYou may call tools. To call one, write {BEGIN}{{\"name\": …, \"arguments\": {{…}}}}{END} \
        and wait for its result. The tools are:\n"
    );
    for tool in tools {
        let offer = json!({
            "name": tool.name(),
            "description": tool.description(),
            "parameters": tool.input_schema(),
        });
        text += &offer.to_string();
        text.push('\n');
    }
    text
}

/// Formats a call of the conversation.
pub(super) fn written(call: &ToolUse) -> String {
    let call = json!({"name": call.name, "arguments": call.arguments});
    format!("{BEGIN}{call}{END}")
}

/// Formats a tool's result.
pub(super) fn answered(content: &str) -> String {
    format!("<tool_response>\n{content}\n</tool_response>")
}

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Call { name: String, arguments: Value },
}

/// Extracts calls from the text of an answer as it arrives.
#[derive(Default)]
pub(super) struct Reader {
    offered: bool,
    buffer: String,
    inside: bool,
}

impl Reader {
    /// Creates a reader for an answer; without `offered` tools everything is text.
    pub(super) fn new(offered: bool) -> Self {
        Self { offered, ..Self::default() }
    }

    /// Adds text, and returns the pieces that are complete.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        if !self.offered {
            return vec![Piece::Text(text.to_owned())];
        }
        self.buffer.push_str(text);
        let mut pieces = Vec::new();
        loop {
            let tag = if self.inside { END } else { BEGIN };
            let Some(at) = self.buffer.find(tag) else { break };
            let rest = self.buffer.split_off(at + tag.len());
            let body = std::mem::replace(&mut self.buffer, rest);
            let body = &body[..at];
            pieces.extend(if self.inside { Some(call(body)) } else { text_piece(body) });
            self.inside = !self.inside;
        }
        if !self.inside {
            // The end of the text may be the start of a tag.
            let tag_length =
                (1..BEGIN.len()).rev().find(|n| self.buffer.ends_with(&BEGIN[..*n])).unwrap_or(0);
            let rest = self.buffer.split_off(self.buffer.len() - tag_length);
            pieces.extend(text_piece(&std::mem::replace(&mut self.buffer, rest)));
        }
        pieces
    }

    /// Returns the remaining buffered text at the end of the answer.
    pub(super) fn end(&mut self) -> Option<Piece> {
        let buffer = std::mem::take(&mut self.buffer);
        if self.inside { Some(call(&buffer)) } else { text_piece(&buffer) }
    }
}

fn text_piece(text: &str) -> Option<Piece> {
    (!text.is_empty()).then(|| Piece::Text(text.to_owned()))
}

/// Parses a call; returns the text itself if it is invalid.
fn call(body: &str) -> Piece {
    let read = serde_json::from_str::<Value>(body.trim()).ok();
    let name = read.as_ref().and_then(|call| Some(call.get("name")?.as_str()?.to_owned()));
    match (name, read) {
        (Some(name), Some(mut call)) => Piece::Call {
            name,
            arguments: call.get_mut("arguments").map_or_else(|| json!({}), Value::take),
        },
        _ => Piece::Text(format!("{BEGIN}{body}{END}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_extracted_for_any_split_of_the_text() {
        let text = "I look.<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"p\": \"a<b\"}}\n</tool_call> a < b <tool";
        let call = Piece::Call { name: "ls".into(), arguments: json!({"p": "a<b"}) };
        for size in 1..text.len() {
            let mut reader = Reader::new(true);
            let letters: Vec<char> = text.chars().collect();
            let mut all = Vec::new();
            for part in letters.chunks(size) {
                all.extend(reader.push(&part.iter().collect::<String>()));
            }
            all.extend(reader.end());
            let joined = |pieces: &[Piece]| -> String {
                pieces
                    .iter()
                    .map(|p| if let Piece::Text(t) = p { t.as_str() } else { "" })
                    .collect()
            };
            let at =
                all.iter().position(|p| *p == call).unwrap_or_else(|| panic!("{size}: {all:?}"));
            assert_eq!(
                (joined(&all[..at]), joined(&all[at..])),
                ("I look.".into(), " a < b <tool".into())
            );
        }
        let mut reader = Reader::new(true);
        assert_eq!(reader.push("<tool_call>no"), []);
        assert_eq!(reader.end(), Some(Piece::Text("<tool_call>no</tool_call>".into())));
        assert_eq!(Reader::default().push(BEGIN), [Piece::Text(BEGIN.into())]);
    }
}
