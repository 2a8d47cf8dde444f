"""A server of two tools, as somebody else would run it: it writes down what it was asked to do."""

import os

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # the library's first generation
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("sheets")


@server.tool()
def add_row(order: str, amount: int = 1) -> dict:
    """Adds a row."""
    with open(os.environ["CONSTRUCTS_OUT"], "a") as out:
        out.write(f"add_row {order} {amount}\n")
    return {"row": 7}


@server.tool()
def count_rows(sheet: str) -> dict:
    """Counts rows."""
    return {"rows": 7}


if __name__ == "__main__":
    server.run()
