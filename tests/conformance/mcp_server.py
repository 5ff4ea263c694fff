"""A server made with the official MCP package: what it is asked, it answers; one tool brings another.

Usage: mcp_server.py [PORT]
On standard input and output, or by streamable HTTP at http://127.0.0.1:PORT/mcp.
"""

import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations

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


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it cannot be done")


if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
