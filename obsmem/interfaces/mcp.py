"""The server that gives the tools to an agent, by the Model Context Protocol over standard input and output.

Invariants: standard output carries the protocol and nothing else; each call opens the store for itself and closes it, so
that calls may overlap, a broken store fails the call alone, and a sandbox that only reads is enough; the process ends with
its client, and with the process that started it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from obsmem import __version__
from obsmem.core.errors import ObsmemError, UsageError
from obsmem.interfaces.cli import hand_over
from obsmem.interfaces.mcp_scope import Asker, asker_of, server_folder
from obsmem.interfaces.mcp_tools import INSTRUCTIONS, TOOLS, Answer, call_tool, schema_of
from obsmem.interfaces.report import say_json
from obsmem.system.environment import lacks_mcp
from obsmem.system.paths import APP

LOOK_SECONDS = 1.0  # between two looks at whether the process that started us is still there
MOST_INPUT = 1 << 20  # bytes of the arguments of ``--call``


def run_mcp(arguments: argparse.Namespace) -> int:
    """``mcp``: serve until the client leaves. ``--call TOOL`` runs one tool instead; ``--json`` alone lists them."""
    if arguments.call:
        return _call_once(arguments.call, os.getcwd(), as_json=arguments.json)
    if arguments.json:
        say_json([{"name": one.name, "meaning": one.meaning, "schema": schema_of(one)} for one in TOOLS])
        return 0
    if lack := lacks_mcp():
        hand_over(["mcp"])  # a plugin starts us under any python3; the recorded one may have the package
        raise ObsmemError(f"The tools for agents cannot be served: {lack}")
    _end_with_parent()
    serve(server_folder(os.environ))
    return 0


def _call_once(name: str, folder: str, *, as_json: bool) -> int:
    try:
        given = json.loads(sys.stdin.buffer.read(MOST_INPUT) or b"{}")
    except ValueError as error:
        raise UsageError(
            f"The arguments of {name} are not JSON ({error}): give an object on standard input."
        ) from error
    answer = call_tool(name, given, Asker(folder))
    if as_json:
        say_json(answer._asdict())
    else:
        print(answer.text)
    return ObsmemError.exit_code if answer.failed else 0


def _end_with_parent() -> None:
    """End this process when the one that started it is gone: its other children may hold our input open for ever."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(0)

    if sys.platform != "win32" and parent > 1:  # there, the number of a parent stays when it has gone
        threading.Thread(target=watch, daemon=True).start()


def serve(folder: str) -> None:
    """Serve over standard input and output until the input ends."""
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(folder)

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def make_server(folder: str) -> Any:
    """The server (of the SDK) with all tools, for the workspace of a folder."""
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server

    tools = [
        types.Tool(
            name=one.name,
            description=one.meaning,
            input_schema=schema_of(one),
            annotations=types.ToolAnnotations(
                read_only_hint=not one.writes, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            ),
        )
        for one in TOOLS
    ]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        asker = asker_of(_meta(params), folder)
        answer: Answer = await anyio.to_thread.run_sync(call_tool, params.name, params.arguments or {}, asker)
        return types.CallToolResult(content=[types.TextContent(type="text", text=answer.text)], is_error=answer.failed)

    return Server(APP, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call)


def _meta(params: Any) -> Mapping[str, object]:
    """What a harness put beside the arguments of a call."""
    found: Any = getattr(params, "meta", None)
    if found is not None and hasattr(found, "model_dump"):
        found = found.model_dump(by_alias=True)
    return found if isinstance(found, Mapping) else {}
