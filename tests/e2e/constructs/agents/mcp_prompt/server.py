"""A server of one prompt."""

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # the library's first generation
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("manners")


@server.prompt()
def manners() -> str:
    """How to behave."""
    return "Be kind, and pay."


if __name__ == "__main__":
    server.run()
