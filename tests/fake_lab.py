"""A lab of fake hosts that is up, and hosts that answer without running anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fake_provider import FakeProvider
from minigts.lab import Lab
from minigts.lab.record import Record
from minigts.lab.rundir import MARKER, lab_named
from minigts.providers import registry
from minigts.providers.base import CommandResult
from minigts.topology.plan.plan import Plan


class Answering(FakeProvider):
    """Its hosts run no command, and say what `answer` says."""

    def answer(self, host: str, argv: Sequence[str], stdin: bytes) -> tuple[int, str]:
        """The exit code of a command, and what it prints."""
        return 0, ""

    def run(
        self,
        host: str,
        argv: Sequence[str],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: bytes = b"",
        on_output: Callable[[bytes], None] | None = None,
    ) -> CommandResult:
        code, stdout = self.answer(host, argv, stdin)
        return CommandResult(host, tuple(argv), code, stdout, "", 0.0)


def fake_lab(
    plan: Plan,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: type[FakeProvider] = FakeProvider,
    off: frozenset[str] = frozenset(),
) -> Lab:
    """The plan's lab, with its hosts on that provider up but for those that are `off`; none of them is configured.
    `state` is the state directory from then on."""
    monkeypatch.setenv("MINIGTS_STATE", str(state))
    monkeypatch.setitem(registry._PROVIDERS, "fake", provider)
    made = lab_named(plan.name)
    made.rundir.mkdir(parents=True)
    (made.rundir / MARKER).touch()
    digest = made.write_plan(plan)
    made.write(Record(provider="fake", time="real", created=datetime.now(UTC), plan_sha256=digest, state="up", off=off))
    made.provider.up(plan, lambda _: None)
    return made
