"""The agent folder: `agent.py` holds `root_agent`."""

from . import agent as agent
