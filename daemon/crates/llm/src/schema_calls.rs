//! Tool calls of models that cannot make them natively: the tools are described in the system text,
//! and a JSON Schema forces each answer to be a call or a text.
//!
//! Small models often write a call in a form that their server does not recognise; a grammar leaves
//! them no other form.

use std::{fmt::Write as _, sync::Arc};

use async_trait::async_trait;
use cairn_protocol::model::{FinishReason, Message, ModelInfo, Part, TokenUsage};
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};

use crate::{
    Chunk, ChunkStream, LlmError, ModelRequest, Provider, Recording, ScriptedCall, Step, ToolOffer,
};

/// Maximum bytes of an answer before it is parsed.
const MAX_ANSWER: usize = 1024 * 1024;

/// First line of a recording that has steps instead of the bytes of its provider.
pub(crate) const STEPS_MARK: &[u8] = b"# steps\n";

/// A provider whose tool calls are forced by a schema.
pub(crate) struct SchemaCalls(pub Arc<dyn Provider>);

/// Answer of a model in the form that the schema forces.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Forced {
    Call { call: String, arguments: Value },
    Answer { answer: String },
}

#[async_trait]
impl Provider for SchemaCalls {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn external(&self) -> bool {
        self.0.external()
    }

    fn context_tokens(&self) -> Option<u64> {
        self.0.context_tokens()
    }

    fn takes_images(&self) -> bool {
        self.0.takes_images()
    }

    fn retries_requests(&self) -> bool {
        self.0.retries_requests()
    }

    fn cost(&self, usage: &TokenUsage) -> Option<u64> {
        self.0.cost(usage)
    }

    fn count_tokens(&self, text: &str) -> u64 {
        self.0.count_tokens(text)
    }

    async fn prepare(&self) -> Result<(), LlmError> {
        self.0.prepare().await
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        // A request with a schema of its own makes no calls.
        if request.tools.is_empty() || request.schema.is_some() {
            let messages = as_text(&request.messages);
            return self.0.chat(ModelRequest { messages, tools: vec![], ..request }).await;
        }
        let number = request.messages.len();
        let recording = request.recording.clone();
        let forced = ModelRequest {
            system: system(&request.system, &request.tools),
            messages: as_text(&request.messages),
            schema: Some(schema(&request.tools)),
            tools: vec![],
            // The provider's own bytes would replay as text.
            recording: None,
            ..request
        };
        let chunks = read(self.0.chat(forced).await?, number, self.0.name().to_owned());
        Ok(match recording {
            Some(recording) => recorded(chunks, recording),
            None => chunks.boxed(),
        })
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.0.models().await
    }
}

/// Appends the tools to the system text, one per line with its arguments.
fn system(text: &str, tools: &[ToolOffer]) -> String {
    let mut system = format!(
        "{text}\n\n# Tools\nEach of your messages is one JSON object: either \
        {{\"call\": NAME, \"arguments\": {{…}}}} to call one tool, whose result follows, or \
        {{\"answer\": TEXT}} when you are done.\n"
    );
    for tool in tools {
        let properties = tool.input_schema().get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(|map| map.keys().map(String::as_str));
        let names = names.collect::<Vec<_>>().join(", ");
        let _infallible = writeln!(system, "* {}({names}): {}", tool.name(), tool.description());
    }
    system
}

/// Beginning of a reference to a definition.
const DEFS: &str = "#/$defs/";

/// Returns the schema of an answer: a call of one of the tools, or a text.
fn schema(tools: &[ToolOffer]) -> Value {
    let object = |properties: Value, required: &[&str]| {
        json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    };
    let mut defs = Map::new();
    let mut forms: Vec<Value> = Vec::new();
    for tool in tools {
        let arguments = with_shared_defs(tool, &mut defs);
        let properties = json!({ "call": { "enum": [tool.name()] }, "arguments": arguments });
        forms.push(object(properties, &["call", "arguments"]));
    }
    forms.push(object(json!({ "answer": { "type": "string" } }), &["answer"]));
    let mut schema = json!({ "anyOf": forms });
    if !defs.is_empty() {
        schema["$defs"] = defs.into();
    }
    schema
}

/// Returns the arguments' schema of a tool. Its definitions move to `defs`, with the tool in their
/// names, because a reference begins at the top of the complete schema.
fn with_shared_defs(tool: &ToolOffer, defs: &mut Map<String, Value>) -> Value {
    let mut arguments = tool.input_schema().clone();
    let prefix = format!("{DEFS}{}.", tool.name());
    rename_references(&mut arguments, &prefix);
    if let Some(Value::Object(own)) = arguments.as_object_mut().and_then(|map| map.remove("$defs"))
    {
        defs.extend(own.into_iter().map(|(name, def)| (format!("{}.{name}", tool.name()), def)));
    }
    arguments
}

fn rename_references(value: &mut Value, prefix: &str) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(reference) if key == "$ref" => {
                        if let Some(name) = reference.strip_prefix(DEFS) {
                            *reference = format!("{prefix}{name}");
                        }
                    }
                    inner => rename_references(inner, prefix),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| rename_references(inner, prefix)),
        _ => {}
    }
}

/// Writes calls and results as the texts that the model sent and received.
fn as_text(messages: &[Message]) -> Vec<Message> {
    let mut texts: Vec<Message> = Vec::new();
    for message in messages {
        match message {
            Message::User { .. } => texts.push(message.clone()),
            Message::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| {
                    json!({ "call": call.name, "arguments": call.arguments }).to_string()
                });
                let answer = (!text.trim().is_empty() && calls.len() == 0)
                    .then(|| json!({ "answer": text }).to_string());
                let text = answer.into_iter().chain(calls).collect::<Vec<_>>().join("\n");
                texts.push(Message::Assistant { text, calls: vec![], reasoning: None });
            }
            Message::Tool { name, content, failed, .. } => {
                let kind = if *failed { "Error" } else { "Result" };
                let part = Part::Text { text: format!("{kind} of {name}:\n{content}") };
                match texts.last_mut() {
                    Some(Message::User { parts }) => parts.push(part),
                    _ => texts.push(Message::User { parts: vec![part] }),
                }
            }
        }
    }
    texts
}

/// Reads an answer to its end, and returns it as a text or a call.
fn read(
    answer: ChunkStream,
    number: usize,
    who: String,
) -> impl futures_util::Stream<Item = Result<Chunk, LlmError>> + Send {
    let state = (answer, String::new(), false);
    let chunks = stream::unfold(state, move |(mut answer, mut text, is_finished)| {
        let who = who.clone();
        async move {
            if is_finished {
                return None;
            }
            loop {
                match answer.next().await {
                    Some(Ok(Chunk::Text(part))) if text.len() + part.len() > MAX_ANSWER => {
                        let error = format!("{who} sent an answer of more than {MAX_ANSWER} bytes");
                        let last = vec![Err(LlmError::TooLarge(error))];
                        return Some((last, (answer, text, true)));
                    }
                    Some(Ok(Chunk::Text(part))) => text.push_str(&part),
                    Some(Ok(Chunk::Finish(reason))) => {
                        let last = finished(&text, reason, number);
                        return Some((last, (answer, text, true)));
                    }
                    Some(Ok(other)) => return Some((vec![Ok(other)], (answer, text, false))),
                    Some(Err(error)) => return Some((vec![Err(error)], (answer, text, true))),
                    None => return None,
                }
            }
        }
    });
    chunks.flat_map(stream::iter)
}

/// Records the chunks as the steps of a script.
fn recorded(
    chunks: impl futures_util::Stream<Item = Result<Chunk, LlmError>> + Send + 'static,
    recording: Recording,
) -> ChunkStream {
    recording.push(STEPS_MARK);
    let chunks = chunks.inspect(move |chunk| {
        let step = match chunk {
            Ok(Chunk::Text(text)) => Step::Text(text.clone()),
            Ok(Chunk::Reasoning(text)) => Step::Reasoning(text.clone()),
            Ok(Chunk::CallStart { id, name, .. }) => Step::Call(ScriptedCall {
                id: Some(id.clone()),
                name: name.clone(),
                arguments: Value::Null,
            }),
            Ok(Chunk::CallArguments { delta, .. }) => Step::Arguments(delta.clone()),
            Ok(Chunk::Usage(usage)) => Step::Usage(*usage),
            Ok(Chunk::Finish(reason)) => Step::Finish(*reason),
            Ok(Chunk::PromptProgress { .. } | Chunk::ReasoningItem(_)) | Err(_) => return,
        };
        if let Ok(mut line) = serde_json::to_vec(&step) {
            line.push(b'\n');
            recording.push(&line);
        }
    });
    Box::pin(chunks)
}

/// Returns the last chunks of an answer. A server that ignores the schema may send plain text.
fn finished(text: &str, reason: FinishReason, number: usize) -> Vec<Result<Chunk, LlmError>> {
    let chunks = match serde_json::from_str(text.trim()) {
        Ok(Forced::Call { call, arguments }) => vec![
            Chunk::CallStart { index: 0, id: format!("call_{number}"), name: call },
            Chunk::CallArguments { index: 0, delta: arguments.to_string() },
            Chunk::Finish(FinishReason::ToolCalls),
        ],
        Ok(Forced::Answer { answer }) => vec![Chunk::Text(answer), Chunk::Finish(reason)],
        Err(_) => vec![Chunk::Text(text.to_owned()), Chunk::Finish(reason)],
    };
    chunks.into_iter().map(Ok).collect()
}

#[cfg(test)]
mod tests {
    use cairn_protocol::model::ToolUse;

    use super::*;
    use crate::{Recorded, Scripted, ScriptedAnswer};

    fn offer() -> ToolOffer {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        ToolOffer::new("read_file", "Reads a file.", &schema).unwrap()
    }

    async fn chunks(text: &str) -> Vec<Chunk> {
        let half = text.len() / 2;
        let steps = [&text[..half], &text[half..]].map(|part| Step::Text(part.to_owned()));
        let script = Scripted::new(vec![ScriptedAnswer::new(steps.into())]);
        let recording = Recording::default();
        let request = ModelRequest {
            messages: vec![Message::user("go")],
            tools: vec![offer()],
            recording: Some(recording.clone()),
            ..ModelRequest::default()
        };
        let all = |stream: ChunkStream| async {
            let visible = |chunk: &Chunk| std::future::ready(!matches!(chunk, Chunk::Usage(_)));
            stream.map(Result::unwrap).filter(visible).collect::<Vec<_>>().await
        };
        let live = SchemaCalls(Arc::new(script)).chat(request.clone()).await.unwrap();
        let live = all(live).await;
        let replay = Recorded::new("openai", "m", vec![recording.take()]).unwrap();
        assert_eq!(all(replay.chat(request).await.unwrap()).await, live);
        live
    }

    #[tokio::test]
    async fn forced_answers_become_calls_and_texts() {
        let call = chunks("{\"call\": \"read_file\", \"arguments\": {\"path\": \"a\"}}").await;
        assert_eq!(
            call,
            [
                Chunk::CallStart { index: 0, id: "call_1".into(), name: "read_file".into() },
                Chunk::CallArguments { index: 0, delta: "{\"path\":\"a\"}".into() },
                Chunk::Finish(FinishReason::ToolCalls),
            ]
        );
        let stop = Chunk::Finish(FinishReason::Stop);
        assert_eq!(
            chunks("{\"answer\": \"x\\ny\"}").await,
            [Chunk::Text("x\ny".into()), stop.clone()]
        );
        // A server that does not enforce the schema.
        assert_eq!(chunks("plain words").await, [Chunk::Text("plain words".into()), stop]);
    }

    #[test]
    fn schema_allows_calls_of_the_tools_and_a_text() {
        let schema = schema(&[offer()]);
        let call = &schema["anyOf"][0];
        assert_eq!(call["properties"]["call"]["enum"], json!(["read_file"]));
        assert_eq!(call["properties"]["arguments"], *offer().input_schema());
        assert_eq!(schema["anyOf"][1]["required"], json!(["answer"]));
        let system = system("Be brief.", &[offer()]);
        assert!(system.starts_with("Be brief.\n") && system.contains("* read_file(path): Reads"));
    }

    #[test]
    fn definitions_of_tools_are_found_from_the_top() {
        let edits = json!({
            "type": "object",
            "properties": { "edits": { "type": "array", "items": { "$ref": "#/$defs/Piece" } } },
            "$defs": { "Piece": { "properties": { "next": { "$ref": "#/$defs/Piece" } } } },
        });
        let mut defs = Map::new();
        let offered = ToolOffer::new("edit", "Edits.", &edits).unwrap();
        let arguments = with_shared_defs(&offered, &mut defs);
        assert_eq!(arguments["properties"]["edits"]["items"]["$ref"], "#/$defs/edit.Piece");
        assert!(arguments.get("$defs").is_none());
        assert_eq!(defs["edit.Piece"]["properties"]["next"]["$ref"], "#/$defs/edit.Piece");
    }

    #[test]
    fn history_is_written_in_the_forced_form() {
        let call =
            ToolUse { id: "c".into(), name: "read_file".into(), arguments: json!({ "path": "a" }) };
        let result = |failed| Message::Tool {
            call_id: "c".into(),
            name: "read_file".into(),
            content: "text".into(),
            failed,
        };
        let answer =
            |text: &str, calls| Message::Assistant { text: text.into(), calls, reasoning: None };
        let texts = as_text(&[
            Message::user("go"),
            answer("I look.", vec![call.clone(), call]),
            result(false),
            result(true),
            answer("done", vec![]),
        ]);
        let call = "{\"arguments\":{\"path\":\"a\"},\"call\":\"read_file\"}";
        assert_eq!(texts[1], answer(&format!("{call}\n{call}"), vec![]));
        let parts = ["Result of read_file:\ntext", "Error of read_file:\ntext"];
        let parts = parts.map(|text| Part::Text { text: text.into() });
        assert_eq!(texts[2], Message::User { parts: parts.into() });
        assert_eq!(texts[3], answer("{\"answer\":\"done\"}", vec![]));
    }
}
