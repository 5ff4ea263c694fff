#!/usr/bin/env python3
"""Judges Cairn's requests and streams by the official SDKs of the model providers.

    pip install -r tests/conformance/requirements.txt
    python sdks.py < task.json

Standard input is one JSON object: `requests`, a list of `{"provider", "body"}`, and `streams`, a list of
`{"provider", "path"}` of recorded answers. Standard output is one JSON object: `requests`, for each the list of errors
that the SDK's own parameter types report (empty if they accept the body, where an unknown field is an error), and
`streams`, for each what the SDK's stream parser reads: `{"text", "calls": [[id, name, arguments]], "usage": [input,
output], "error"}`."""

import http.server
import json
import pathlib
import sys
import threading
import typing

# The SDKs declare lists as iterables, which pydantic checks only when they are iterated: lists are checked at once.
ITERABLE, typing.Iterable = typing.Iterable, typing.List
import anthropic
import anthropic.types.message_create_params
import google.genai
import google.genai.types
import ollama
import openai
import openai.types.chat.completion_create_params
import openai.types.responses.response_create_params
import pydantic

ADAPTERS = {
    "openai": pydantic.TypeAdapter(openai.types.chat.completion_create_params.CompletionCreateParamsStreaming),
    "responses": pydantic.TypeAdapter(openai.types.responses.response_create_params.ResponseCreateParamsStreaming),
    "anthropic": pydantic.TypeAdapter(anthropic.types.message_create_params.MessageCreateParamsStreaming),
    "ollama": pydantic.TypeAdapter(ollama._types.ChatRequest),
}
typing.Iterable = ITERABLE


class GeminiBody(pydantic.BaseModel):
    """A body of the REST API; the SDK has types for its parts."""

    contents: list[google.genai.types.Content]
    systemInstruction: typing.Optional[google.genai.types.Content] = None
    tools: list[google.genai.types.Tool] = []
    generationConfig: typing.Optional[google.genai.types.GenerationConfig] = None


ADAPTERS["gemini"] = pydantic.TypeAdapter(GeminiBody)


def errors(provider, body):
    try:
        ADAPTERS[provider].validate_json(json.dumps(body), extra="forbid")
    except pydantic.ValidationError as error:
        # The name of a union lists its members, which would hide the message.
        return [f"{'.'.join(str(part)[:40] for part in e['loc'])}: {e['msg']}" for e in error.errors()]
    return []


class Peer(http.server.BaseHTTPRequestHandler):
    """Answers every request with the file that its server names."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        content = pathlib.Path(self.server.path).read_bytes()
        lines = self.server.path.endswith(".ndjson")
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson" if lines else "text/event-stream")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def read_openai(url, seen):
    client = openai.OpenAI(api_key="k", base_url=url, max_retries=0)
    messages = [{"role": "user", "content": "x"}]
    calls = {}
    for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
        for choice in chunk.choices[:1]:
            seen["text"] += (choice.delta.content or "") + (choice.delta.refusal or "")
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, ["", "", ""])
                known[0] += call.id or ""
                known[1] += call.function.name or ""
                known[2] += call.function.arguments or ""
                seen["calls"] = list(calls.values())
        if chunk.usage:
            seen["usage"] = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]


def read_responses(url, seen):
    client = openai.OpenAI(api_key="k", base_url=url, max_retries=0)
    with client.responses.stream(model="m", input="x") as stream:
        for event in stream:
            if event.type in ("response.output_text.delta", "response.refusal.delta"):
                seen["text"] += event.delta
            elif event.type == "response.output_item.done" and event.item.type == "function_call":
                seen["calls"].append([event.item.call_id, event.item.name, event.item.arguments])
            elif event.type in ("response.completed", "response.incomplete"):
                usage = event.response.usage
                seen["usage"] = [usage.input_tokens, usage.output_tokens]
            elif event.type == "error":
                raise openai.OpenAIError(event.message)


def read_anthropic(url, seen):
    client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
    messages = [{"role": "user", "content": "x"}]
    with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
        for event in stream:
            if event.type == "text":
                seen["text"] += event.text
        message = stream.get_final_message()
    seen["calls"] = [[b.id, b.name, json.dumps(b.input)] for b in message.content if b.type == "tool_use"]
    cached = (message.usage.cache_read_input_tokens or 0) + (message.usage.cache_creation_input_tokens or 0)
    seen["usage"] = [message.usage.input_tokens + cached, message.usage.output_tokens]


def read_ollama(url, seen):
    client = ollama.Client(host=url)
    for part in client.chat(model="m", messages=[{"role": "user", "content": "x"}], stream=True):
        seen["text"] += part.message.content or ""
        for call in part.message.tool_calls or []:
            seen["calls"].append(["", call.function.name, json.dumps(dict(call.function.arguments))])
        if part.done:
            seen["usage"] = [part.prompt_eval_count or 0, part.eval_count or 0]


def read_gemini(url, seen):
    client = google.genai.Client(api_key="k", http_options={"base_url": url})
    for part in client.models.generate_content_stream(model="m", contents="x"):
        # An error in the stream has no candidate; a refused prompt has its reason.
        if part.candidates is None and part.prompt_feedback is None:
            raise google.genai.errors.APIError(503, {})
        for one in (part.candidates[0].content.parts if part.candidates and part.candidates[0].content else None) or []:
            if one.function_call:
                call = one.function_call
                seen["calls"].append([call.id or "", call.name, json.dumps(call.args)])
            elif one.text and not one.thought:
                seen["text"] += one.text
        usage = part.usage_metadata
        seen["usage"] = [usage.prompt_token_count, (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)]


READERS = {"openai": read_openai, "responses": read_responses, "anthropic": read_anthropic, "ollama": read_ollama,
           "gemini": read_gemini}


def read(server, provider, path):
    seen = {"text": "", "calls": [], "usage": [0, 0], "error": None}
    server.path = path
    try:
        READERS[provider](f"http://127.0.0.1:{server.server_port}", seen)
    except Exception as error:  # Any error of an SDK is its judgement.
        seen["error"] = f"{type(error).__name__}: {error}"
    return seen


def main():
    task = json.load(sys.stdin)
    requests = [errors(one["provider"], one["body"]) for one in task["requests"]]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    streams = [read(server, one["provider"], one["path"]) for one in task["streams"]]
    json.dump({"requests": requests, "streams": streams}, sys.stdout)


main()
