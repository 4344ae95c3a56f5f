"""A run with recorded outputs, slow enough to be killed in the middle of anything: `killed_run.py DIRECTORY [SAMPLE]`.

Started by test_experiment_kills.py as a process of its own. Says `ready` when that sample is about to be taken,
takes it and one more, and waits to be killed. Without SAMPLE it runs to its end.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from experiment_lab import Replay, chain, endpoints, recorder_of

from minigts.experiment_language.model import Links
from minigts.experiments.run import run_together
from minigts.lab.queues import End, Queue
from minigts.overlays import Endpoint
from minigts.results.folder import exclusive
from minigts.results.schema import Laid
from minigts.topology.outage import SILENT, Outage
from minigts.topology.schedule import Moment

PLAN = chain()
SAMPLE_S = 0.01


class Stage:
    """Every overlay can be joined at once; its data path stays what it is."""

    recording = staticmethod(recorder_of())

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        return endpoints(PLAN, overlay)

    def verify(self, overlay: str) -> str:
        return overlay

    def overlay_record(self, overlay: str) -> Laid:
        return Laid()

    def leave(self, overlay: str) -> None: ...

    def second(self, host: str) -> Endpoint:
        raise AssertionError(host)

    def set_links(self, links: Links) -> None: ...

    def links_kept(self) -> AbstractContextManager[None]:
        return nullcontext()

    def play(self, moments: Sequence[Moment]) -> Iterable[tuple[float, Mapping[str, float]]]:
        return ()

    def queues(
        self, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
    ) -> Iterable[tuple[float, Mapping[End, Queue]]]:
        return ()

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None: ...

    def processor_seconds(self) -> Mapping[str, float]:
        return {}


def _slowly(number: int, _argv: Sequence[str]) -> None:
    if len(sys.argv) > 2 and number == int(sys.argv[2]):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    if len(sys.argv) > 2 and number == int(sys.argv[2]) + 2:
        signal.pause()
    time.sleep(SAMPLE_S)


def main() -> None:
    with exclusive(Path(sys.argv[1])):
        run_together([Path(sys.argv[1])], Replay(_slowly), Stage(), lambda _progress: None)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
