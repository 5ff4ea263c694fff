"""An editor: the ACP client of PyPI's `agent-client-protocol`, over `cairn acp`.

Usage: editor.py BINARY FOLDER SCENARIO [SESSION | PROGRAM SCRIPT FOLDER]
Plays a scenario and prints one JSON object with what came.
"""

import asyncio
import json
import os
import sys

import acp
from acp.schema import AllowedOutcome, DeniedOutcome, EnvVariable, Implementation, RequestPermissionResponse
from acp.stdio import spawn_agent_process


class Editor:
    def __init__(self, answer):
        self.answer = answer
        self.updates = []
        self.asked = []
        self.waits = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(
            {
                "toolCall": tool_call.model_dump(by_alias=True, exclude_none=True, mode="json"),
                "options": [[o.option_id, str(o.kind)] for o in options],
            }
        )
        self.waits.set()
        if self.answer == "never":
            await asyncio.Event().wait()
        if self.answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.answer))

    def on_connect(self, conn):
        pass

    def text(self, kind="agent_message_chunk"):
        return "".join(u["content"]["text"] for u in self.updates if u["sessionUpdate"] == kind)


async def begin(editor, conn):
    info = Implementation(name="editor", title="Editor", version="1")
    return await conn.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=info)


async def ask(conn, session, text):
    try:
        return (await conn.prompt(session_id=session, prompt=[acp.text_block(text)])).stop_reason
    except acp.RequestError as error:
        return {"code": error.code, "message": str(error)}


async def turn(editor, conn, folder, out):
    """A whole turn with a question to the user."""
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    out["session"] = made.session_id
    out["modes"] = [m.id for m in made.modes.available_modes]
    out["models"] = made.config_options[0].current_value
    out["stop"] = await ask(conn, made.session_id, "write it")


async def modes(editor, conn, folder, out):
    """A turn in which nothing is changed, then commands."""
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    await conn.set_session_mode(session_id=made.session_id, mode_id="dry-run")
    out["stop"] = await ask(conn, made.session_id, "write it")
    out["cleared"] = await ask(conn, made.session_id, "/clear")
    options = await conn.set_config_option(config_id="model", session_id=made.session_id, value="script")
    out["model"] = options.config_options[0].current_value
    try:
        await conn.set_session_mode(session_id=made.session_id, mode_id="nonsense")
    except acp.RequestError as error:
        out["refused"] = error.code


async def cancel(editor, conn, folder, out):
    """A turn that is stopped while it waits for its user."""
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    turn = asyncio.create_task(ask(conn, made.session_id, "write it"))
    await editor.waits.wait()
    await conn.cancel(session_id=made.session_id)
    out["stop"] = await turn


async def busy(editor, conn, folder, out):
    """Two prompts at once: the second waits for the first."""
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    out["stop"] = await asyncio.gather(*(ask(conn, made.session_id, text) for text in ["one", "two"]))


async def vanish(editor, conn, folder, out):
    """An editor that is gone while its user is asked."""
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    out["session"] = made.session_id
    asyncio.create_task(ask(conn, made.session_id, "write it"))
    await editor.waits.wait()


async def load(editor, conn, folder, out):
    """A session of the past."""
    session = sys.argv[4]
    listed = await conn.list_sessions(cwd=folder)
    out["listed"] = [s.session_id for s in listed.sessions]
    await conn.load_session(cwd=folder, session_id=session, mcp_servers=[])
    out["words"] = editor.text("user_message_chunk")
    out["said"] = editor.text()
    out["stop"] = await ask(conn, session, "and now?")


async def servers(editor, conn, folder, out):
    """A session with the editor's own MCP servers and a further folder, which ends with it."""
    command, script, further = sys.argv[4:7]
    stdio = acp.schema.McpServerStdio
    named = [
        stdio(name="peer", command=command, args=[script], env=[EnvVariable(name="OWN", value="${HOME}")]),
        stdio(name="broken", command="/no/such/program", args=[], env=[]),
    ]
    made = await conn.new_session(cwd=folder, mcp_servers=named, additional_directories=[further])
    session = made.session_id
    out["session"] = session
    out["stop"] = await ask(conn, session, "write it")
    other = await conn.new_session(cwd=folder, mcp_servers=[])
    out["other"] = await ask(conn, other.session_id, "write it")
    for name, wrong in {
        "sse": acp.schema.SseMcpServer(type="sse", name="x", url="http://127.0.0.1:1/", headers=[]),
        "nameless": stdio(name="", command=command, args=[], env=[]),
    }.items():
        try:
            await conn.new_session(cwd=folder, mcp_servers=[wrong])
        except acp.RequestError as error:
            out[name] = error.code
    await conn.close_session(session_id=session)
    await conn.load_session(cwd=folder, session_id=session, mcp_servers=[])
    out["reopened"] = await ask(conn, session, "write it")


async def delete(editor, conn, folder, out):
    """Authentication, and a session that is deleted."""
    await conn.authenticate(method_id=out["methods"][0])
    try:
        await conn.authenticate(method_id="nonsense")
    except acp.RequestError as error:
        out["refused"] = error.code
    made = await conn.new_session(cwd=folder, mcp_servers=[])
    out["stop"] = await ask(conn, made.session_id, "hi")
    # The package has the method's types, but no function for it yet.
    gone = acp.schema.DeleteSessionRequest(session_id=made.session_id)
    await conn._conn.send_request("session/delete", gone.model_dump(by_alias=True, exclude_none=True))
    out["listed"] = [s.session_id for s in (await conn.list_sessions(cwd=folder)).sessions]


async def hello(editor, conn, folder, out):
    """Nothing but the beginning."""


async def main():
    binary, folder, scenario = sys.argv[1:4]
    answers = {"turn": "once", "cancel": "never", "vanish": "never", "reject": "deny", "dismiss": "cancelled"}
    editor = Editor(answers.get(scenario, "once"))
    play = {"reject": turn, "dismiss": turn}.get(scenario) or globals()[scenario]
    out = {}
    async with spawn_agent_process(editor, binary, "acp", env=dict(os.environ)) as (conn, process):
        hello = await begin(editor, conn)
        out["version"] = hello.protocol_version
        out["methods"] = [m.id for m in hello.auth_methods]
        out["load"] = hello.agent_capabilities.load_session
        out["images"] = hello.agent_capabilities.prompt_capabilities.image
        await play(editor, conn, folder, out)
        if scenario == "vanish":
            process.kill()
    out["updates"], out["asked"] = editor.updates, editor.asked
    out.setdefault("said", editor.text())
    print(json.dumps(out))
    sys.stdout.flush()
    os._exit(0)


asyncio.run(asyncio.wait_for(main(), 60))
