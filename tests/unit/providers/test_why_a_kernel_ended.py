"""Why a kernel ended, as its supervisor records it. Programs in the kernels' place say what one says on its console."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from minigts.machine import contained
from minigts.providers.agent import ended
from minigts.providers.uml.run.command_line import GuestKernel, have_restarted
from minigts.providers.uml.run.supervisor import Kernels, Launch

PANIC = "echo 'Kernel panic - not syncing: time-travel external link is broken'"
WATCHED_S = 20.0


@pytest.fixture
def rundir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It is the supervisor's working directory. A process with the threads of pytest's workers cannot be forked safely,
    as a supervisor forks itself to try namespaces: it is tried in a process of its own."""
    monkeypatch.setattr(contained, "namespaces", contained.look)
    (tmp_path / "hosts" / "ams").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def why(rundir: Path, program: str, meanwhile: Callable[[Kernels], None]) -> str:
    """What is recorded of a host whose kernel is this program, once it has ended. `meanwhile` is called after the
    program's output has come."""

    async def watch() -> None:
        launch = Launch(
            rundir, rundir / "base", (GuestKernel("ams", 64, (), number=3),), (), None, ("sh", "-c", program)
        )
        kernels = Kernels(launch, rundir)
        try:
            kernels.start_all()
            await _until(lambda: bool(kernels._consoles["ams"].panic()))
            meanwhile(kernels)
            async with _attended(kernels):
                await _until(lambda: kernels._running["ams"].process.poll() is not None)
                await asyncio.sleep(0.5)  # looked at more than once
        finally:
            await kernels.end_all()

    asyncio.run(watch())
    return ended.log(rundir, "ams").read_text()


@contextlib.asynccontextmanager
async def _attended(kernels: Kernels) -> AsyncIterator[asyncio.Task[None]]:
    """A context in which the supervisor attends to them."""
    attending = asyncio.create_task(kernels.attend())
    try:
        yield attending
    finally:
        attending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await attending


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(WATCHED_S):
        while not true():
            await asyncio.sleep(0.02)


def test_one_that_panics_says_why(rundir: Path) -> None:
    said = why(rundir, PANIC, lambda _: None)
    assert said == "ams was ended by its own kernel, which panicked: time-travel external link is broken\n"


def test_one_that_panics_since_the_clock_has_dropped_it_was_ended_by_the_clock(rundir: Path) -> None:
    said = why(
        rundir, f"{PANIC}; exec sleep 60", lambda kernels: kernels._lost(3, "it has not ended its turn for 600 s")
    )
    assert said == "ams was ended by the clock: it has not ended its turn for 600 s\n"


def test_a_host_that_cannot_be_started_again_says_why_and_the_others_are_attended_to(rundir: Path) -> None:
    """What its kernel has left in its directory stops no other: `bra` is started again while `ams` cannot be."""
    (rundir / "hosts" / "bra").mkdir()
    machines = (GuestKernel("ams", 64, (), number=3), GuestKernel("bra", 64, (), number=4))
    launch = Launch(rundir, rundir / "base", machines, (), None, ("sh", "-c", "echo up; exec sleep 1000"))

    async def watch() -> None:
        kernels = Kernels(launch, rundir)
        try:
            kernels.start_all()
            first = {name: host.process.pid for name, host in kernels._running.items()}
            async with _attended(kernels) as attending:
                consoles = rundir / "consoles" / "ams"
                consoles.rename(rundir / "elsewhere")
                consoles.write_text("in the place of a directory")
                for name in ("ams", "bra"):
                    have_restarted(rundir, name)
                    kernels._running[name].process.kill()
                await _until(lambda: kernels._running["bra"].process.pid != first["bra"])
                await _until(lambda: ended.log(rundir, "ams").exists())
                assert not attending.done()
        finally:
            await kernels.end_all()

    asyncio.run(watch())
    assert "could not be started again: " in ended.log(rundir, "ams").read_text()
    assert not ended.log(rundir, "bra").exists()
