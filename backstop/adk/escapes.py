"""The ways by which an effect of an agent can pass interception: one closed list for everybody.

The harness names what it finds by these words, the driver says what each comes to
(`backstop.replay.escapes`), a configuration accepts them, and `docs/doctor.md` explains them.
"""

from __future__ import annotations

from enum import StrEnum


class Way(StrEnum):
    """A way past interception."""

    FUNCTION_NODE = "function-node"
    CUSTOM_AGENT = "custom-agent"
    INCLUDE_PLUGINS = "include-plugins"
    OWN_RUNNER = "own-runner"
    CODE_EXECUTOR = "code-executor"
    CALLBACK = "callback"
    INSTRUCTION_PROVIDER = "instruction-provider"
    TOOLSET = "toolset"
    SERVER_SIDE_TOOL = "server-side-tool"
    REMOTE_MCP = "remote-mcp"
    OWN_LOOP = "own-loop"
    TOOL_TO_TOOL = "tool-to-tool"
    BACKGROUND_TASK = "background-task"
    SERVICE = "service"
    IMPORT_TIME = "import-time"
    DIRECT_MODEL = "direct-model"
    LIVE_MODE = "live-mode"
    NETWORKED_PLUGIN = "networked-plugin"
