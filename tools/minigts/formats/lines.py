"""The common part of readers of files that are no YAML: problems and losses by their lines, and the network."""

from __future__ import annotations

from collections.abc import Sequence

from minigts.errors import Problem
from minigts.formats.attached import Fitted
from minigts.formats.network import Network, NetworkLink, NetworkMachine, Notes, routing_and_time
from minigts.language.problems import require_none


class FileLines:
    """A file that is read piece by piece; as `yaml_document.Document`, with lines for places; 0 is the whole file."""

    def __init__(self, file: str, *, leave_out: bool = False) -> None:
        self._file, self._leave_out = file, leave_out
        self.problems: list[Problem] = []
        self.notes = Notes()

    def wrong(self, line: int, message: str) -> None:
        self.problems.append(Problem(self._file, line, message))

    def lose(self, line: int, what: str, owner: str, why: str) -> None:
        """Report a setting that affects the network and cannot be honoured."""
        if self._leave_out:
            self.notes.add(what[:60], owner[:40], f"left out: {why}")
        else:
            self.wrong(line, f"{what} of {owner[:40]} cannot be honoured: {why}. With --leave-out it is left out")

    def settle(self, found: Fitted) -> None:
        """Report interfaces and addresses that differ from the file's."""
        for where, what, owner, why in found.lost:
            line = where[0] if where and isinstance(where[0], int) else 0
            self.lose(line, what, owner, why)
        for where, message in found.twice:
            self.wrong(where[0] if where and isinstance(where[0], int) else 0, message)
        found.note_names(self.notes)

    def network(
        self, name: str, machines: Sequence[NetworkMachine], links: Sequence[NetworkLink], description: str = ""
    ) -> Network:
        """The whole network. Raises InputError with every problem."""
        require_none(self.problems, self._file)
        routing, time = routing_and_time(machines, links, self.notes)
        return Network(
            name, tuple(machines), tuple(links), description, routing=routing, time=time, notes=self.notes.lines()
        )
