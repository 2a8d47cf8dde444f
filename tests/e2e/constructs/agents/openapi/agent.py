"""An agent whose tools are the operations of an OpenAPI document."""

import inspect
import os

from google.adk.agents import LlmAgent
from google.adk.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset

BODY = {
    "type": "object",
    "required": ["order"],
    "properties": {"order": {"type": "string"}, "amount": {"type": "integer", "default": 1}},
}
SPEC = {
    "openapi": "3.0.0",
    "info": {"title": "payments", "version": "1"},
    "servers": [{"url": os.environ.get("CONSTRUCTS_API", "http://127.0.0.1:9")}],
    "paths": {
        "/payments": {
            "post": {
                "operationId": "pay",
                "summary": "Pays.",
                "requestBody": {"content": {"application/json": {"schema": BODY}}},
                "responses": {"200": {"description": "paid"}},
            }
        }
    },
}

# A newer framework turns to no machine of its own network, unless it is told to.
NEARBY = "allow_private_network_access"
NEAR = {NEARBY: True} if NEARBY in inspect.signature(OpenAPIToolset).parameters else {}

root_agent = LlmAgent(
    name="openapi",
    model="gemini-2.5-flash",
    instruction="Pay.",
    tools=[OpenAPIToolset(spec_dict=SPEC, **NEAR)],
)
