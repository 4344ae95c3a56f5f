"""An incident by the Model Context Protocol: the tools of `minigts mcp` that ask hosts, the ticket, and the answer."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from minigts.agents.roles import TOOLS, Role
from minigts.agents.server import INSTRUCTIONS, server
from minigts.arena import play as plays
from minigts.arena.exercise import parse_fault
from minigts.arena.play import Play, PlayedDesk
from minigts.arena.scores import ArenaAnswer
from minigts.arena.transcript import MOST_CALLS
from minigts.errors import MinigtsError

_INSTRUCTIONS = f"""\
{INSTRUCTIONS}

This lab has an incident: something may be wrong in it. `ticket` says what a user complains of, and which kinds of
faults there are. Find each fault's kind and host, mend it by `run` and `write_file`, break nothing else, and call
`answer` once. Each call and the lab's time count. There may be one fault, several, or none. At most {MOST_CALLS}
calls."""
Faults = Annotated[
    list[str],
    Field(description="Each fault as KIND@HOST, such as no-route@bra; an empty list says that nothing is wrong"),
]


def server_of(play: Play, role: Role) -> MCPServer:
    """A server with the tools of that role for the lab of an incident."""
    left_out = {name for names in TOOLS.values() for name in names} - {*plays.TOOLS}
    made = server(play.lab_name, role, lambda _gone: PlayedDesk(play.lab_name, play), left_out, _INSTRUCTIONS)

    async def ticket() -> str:
        """What a user complains of, and the kinds of faults that an answer may name."""
        kinds = "\n".join(f"{name}: {says}" for name, says in play.kinds.items())
        return f"{play.record.ticket}\n\nKinds of faults:\n{kinds}"

    async def answer(faults: Faults) -> str:
        """Answer the incident, once. It is judged by the lab as it is now."""
        try:
            given = ArenaAnswer(faults=tuple(map(parse_fault, faults)))
            whole = await anyio.to_thread.run_sync(play.answer, given)
        except MinigtsError as error:
            raise ToolError(str(error)) from error
        found = whole.end.score
        return found.model_dump_json()

    made.add_tool(ticket, structured_output=False)
    made.add_tool(answer, structured_output=False)
    return made
