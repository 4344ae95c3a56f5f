"""The course of a seed, as a test of `minigts explore` sees it."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from minigts import api
from minigts.api.labs import words_of
from minigts.errors import HostFailed
from minigts.explore import edn, histories, judges, timeline, transactions, variables
from minigts.explore.histories import Heard, HostClocks, Operation, RegisterVerdict, SetVerdict
from minigts.explore.judges import BankVerdict, ListVerdict, QueueVerdict
from minigts.explore.timeline import Entry
from minigts.explore.transactions import TransactionVerdict
from minigts.foreign import user_text
from minigts.lab import events, provisioning
from minigts.machine.lines import Lines
from minigts.providers.agent import halting
from minigts.providers.base import RunsSideBySide

FIGURE = "linearizability.html"


def _heard_lines(host: str, said: str) -> list[tuple[int, dict[str, object]]]:
    """The lines of a client, each with its host's time."""
    return [histories.line_of(host, line) for line in Lines().feed(said.encode())]


class NothingToJudge(AssertionError):
    """What a test needs has not come about in this seed, so it says nothing about what is tested."""


class Course:
    """The seed under which a test runs, and what it notes of its course. Without `minigts explore` the seed is 0, and
    the folder is a temporary one."""

    def __init__(self, lab: api.Lab, otherwise: Path) -> None:
        self._lab = lab
        self.seed = int(os.environ.get(variables.SEED) or 0)
        self.folder = Path(os.environ.get(variables.COURSE) or otherwise)
        """The folder for the test's own files, such as a history; they are kept when the test fails."""
        self.tail = 0
        """Which tail of the seed this is; 0: none, or its beginning."""
        halting.add_move(self._go_on_as_tail)
        self._acts = 0
        self._without = {int(number) for number in os.environ.get(variables.WITHOUT, "").split(",") if number}
        self.random = random.Random(f"test/{self.seed}")
        """Random numbers of the seed, the same each time."""

    def _go_on_as_tail(self, _rundir: Path) -> None:
        self.tail, self.folder = int(os.environ[variables.TAIL]), Path(os.environ[variables.COURSE])
        self.random.seed(f"test/{self.seed}/{self.tail}")

    @property
    def now_s(self) -> float:
        """The lab's time in seconds."""
        return self._lab.now_s

    @property
    def happened(self) -> list[Entry]:
        """What faults and commands have done to the lab since the test began, as `minigts events` prints it: `event`,
        what it is about, and in virtual time `lab_s`, the moment on the scale of `now_s`."""
        found: list[Entry] = []
        for event in events.read(self._lab._lab.rundir):
            found = [] if event["event"] == timeline.BEGUN else [*found, event]
        return found

    def sleep(self, seconds: float) -> None:
        """Let the lab's time pass."""
        self._lab.sleep(seconds)

    def note(self, text: str) -> None:
        """Add a line to the course's time line."""
        self._lab.note(text)

    def require(self, condition: object, why: str) -> None:
        """Give the seed up as `vacuous` unless what the test needs has come about, such as enough writes."""
        if not condition:
            raise NothingToJudge(why)

    def act(self, name: str) -> bool:
        """Note in the time line what the test itself is about to do to the lab, such as `kill nats on b`, so that
        `replay --shrink` can leave it out, as it does with faults. False means to leave it out."""
        self._acts += 1
        done = self._acts not in self._without
        event = timeline.ACT if done else timeline.LEFT_OUT
        self._lab._lab.note({"event": event, "number": self._acts, "what": name})
        return done

    def clients(self, commands: Mapping[str, Sequence[str]], *, timeout_s: float) -> list[dict[str, object]]:
        """Run a client on each of these hosts, all from the same moment on until each has ended, and return the history
        of their operations. `histories.operations` says what clients print. In virtual time the times of the history
        are the lab's, whatever the phases of the hosts' clocks are, and whatever was paused. A client whose host fails
        has no further operations."""
        began_ns = round(self._lab.now_s * histories.NS_PER_S)
        said = {host: _heard_lines(host, text) for host, text in self._outputs(commands, timeout_s).items()}
        clocks = HostClocks(self._lab.plan, events.read(self._lab._lab.rundir))
        started = {host: clocks.start_at(host, began_ns) for host in commands}
        return histories.operations(
            Heard(clocks.lab_ns(host, at_ns, started[host]), host, told)
            for host, lines in said.items()
            for at_ns, told in lines
        )

    def _outputs(self, commands: Mapping[str, Sequence[str]], timeout_s: float) -> Mapping[str, str]:
        """What the clients have printed, by host."""
        provider = self._lab._lab.provider
        if isinstance(provider, RunsSideBySide):
            known = self._lab._lab
            words = {
                host: provisioning.environment_command(known, host, words_of((argv,)))
                for host, argv in commands.items()
            }
            ended = provider.run_side_by_side(words, timeout_s=timeout_s)
            said = {host: each.out if isinstance(each, HostFailed) else each.stdout for host, each in ended.items()}
            return {host: user_text(said[host]) for host in commands}
        with self._lab.together() as pool:
            tasks = {host: pool.start(partial(self._output, host, argv, timeout_s)) for host, argv in commands.items()}
            return {host: task.result() for host, task in tasks.items()}

    def _output(self, host: str, argv: Sequence[str], timeout_s: float) -> str:
        try:
            return self._lab.host(host).run(argv, timeout_s=timeout_s, check=False).stdout
        except HostFailed as error:
            return user_text(error.out)

    def check_registers(self, history: Iterable[Operation]) -> RegisterVerdict:
        """Whether a history of reads, writes and compare-and-sets is linearizable: `holds`, `verdict`, `keys`. If it is
        not, FIGURE in the course's folder shows it."""
        return histories.judge_registers(history, lambda _: None, figure=self.folder / FIGURE)

    def check_set(self, history: Iterable[Operation], there: Collection[str]) -> SetVerdict:
        """Which of the values that were added to a set are `lost` or `unexpected`; it holds `there` at the end."""
        return histories.judge_set(history, there)

    def check_bank(self, history: Iterable[Operation], total: int) -> BankVerdict:
        """Which reads of all accounts at once, with `balances`, do not add up to `total`, or have one below zero."""
        return judges.judge_bank(history, total)

    def check_queue(self, history: Iterable[Operation]) -> QueueVerdict:
        """Which values of a queue (`put`, and `take` until it is empty) are `lost`, taken `twice` or `unexpected`."""
        return judges.judge_queue(history)

    def check_transactions(self, history: Iterable[Operation]) -> TransactionVerdict:
        """Whether transactions over several lists (`txn`) have one order, each between its sending and its answer:
        `holds`, and otherwise `anomalies` by their usual names, each in words. `is_serializable` leaves times out."""
        return transactions.judge_transactions(history)

    def write_edn(self, history: Iterable[Operation], name: str = "history.edn") -> Path:
        """Write a history as Jepsen's checkers read it, Elle and Knossos, into the course's folder."""
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in edn.edn_lines(history)), encoding="utf-8")
        return path

    def check_lists(self, history: Iterable[Operation]) -> ListVerdict:
        """Whether lists, to which clients `append` and of which they `read` all `values`, grew at their ends alone."""
        return judges.judge_lists(history)
