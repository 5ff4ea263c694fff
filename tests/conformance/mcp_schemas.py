"""The tools as other clients convert them: to Gemini's declarations, to OpenAI's strict functions, to Anthropic's tools.

Usage: mcp_schemas.py CAIRN ROOT
Prints the number of tools that each form takes, and the forms that refuse a tool that they should refuse.
"""

import asyncio
import json
import os
import re
import sys

from google.genai import types
from mcp import Client, StdioServerParameters
from openai.lib._pydantic import _ensure_strict_json_schema

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
WRONG = {"name": "a b", "inputSchema": {"type": "object", "properties": {"x": {"type": "tuple", "prefixItems": []}, "y": 3}}}


def gemini(tool):
    declaration = types.FunctionDeclaration(
        name=tool["name"], description=tool.get("description", ""), parameters=types.Schema.model_validate(plain(tool["inputSchema"]))
    )
    assert declaration.parameters.type == types.Type.OBJECT


def plain(schema):
    """What converters drop: Gemini's schemas have no closed objects. All else must be a field of its type."""
    return {key: value for key, value in schema.items() if key != "additionalProperties"}


def openai(tool):
    strict = _ensure_strict_json_schema(json.loads(json.dumps(tool["inputSchema"])), path=(), root=tool["inputSchema"])
    assert strict["additionalProperties"] is False and strict["required"] == list(strict["properties"])
    assert not set(strict) & {"oneOf", "anyOf", "allOf", "not", "$ref", "$defs"}
    assert NAME.match(tool["name"])


def anthropic(tool):
    assert NAME.match(tool["name"]) and tool["inputSchema"]["type"] == "object"


def count(form, tools):
    for tool in tools:
        form(tool)
    return len(tools)


def refuses(form):
    try:
        form(WRONG)
    except Exception:
        return True
    return False


async def main(cairn, root):
    env = {name: os.environ[name] for name in ("CAIRN_HOME", "HOME", "PATH") if name in os.environ}
    server = StdioServerParameters(command=cairn, args=["mcp", "--root", root], env=env)
    async with Client(server) as session:
        listed = (await session.list_tools()).tools
    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    forms = {"gemini": gemini, "openai": openai, "anthropic": anthropic}
    out = {name: count(form, tools) for name, form in forms.items()}
    out["refused"] = [name for name, form in forms.items() if refuses(form)]
    print(json.dumps(out))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:3]), 60))
