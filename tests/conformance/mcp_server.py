"""A server made with the official MCP package: what it is asked, it answers; one tool brings another.

Usage: mcp_server.py [PORT]
On standard input and output, or by streamable HTTP at http://127.0.0.1:PORT/mcp.
"""

import os
import sys
from typing import Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("peer")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def environment() -> str:
    """Names the variables of this process."""
    return " ".join(sorted(os.environ))


@server.tool()
async def grow(context: Context) -> str:
    """Brings another tool."""

    def later() -> str:
        """Came later."""
        return "here"

    server.add_tool(later, name="later")
    await context.session.send_tool_list_changed()
    return "grown"


class Booking(BaseModel):
    """The values that the user enters."""

    name: str = Field(description="Name of the guest", max_length=20)
    guests: int = Field(default=2, ge=1, le=8)
    vegan: bool = False
    room: Literal["garden", "tower"] = "garden"


@server.tool()
async def book(context: Context) -> str:
    """Books a table for the user, who is asked for the values."""
    answer = await context.elicit("Which table?", Booking)
    if answer.action != "accept":
        return answer.action
    return f"booked for {len(answer.data.name)} letters, {answer.data.guests} guests, {answer.data.room}"


class Note(BaseModel):
    """One value."""

    text: str


@server.tool()
async def pester(context: Context) -> str:
    """Asks its user again and again."""
    return " ".join([(await context.elicit(f"Note {n}?", Note)).action for n in range(10)])


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it cannot be done")


if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
