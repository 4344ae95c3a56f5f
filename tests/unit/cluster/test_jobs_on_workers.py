"""Jobs handed to the workers of a real cluster on this machine, where only what a worker answers is made up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import cloudpickle
import pytest

from live.program import until
from minigts.cluster import dispatch, engine, worker
from minigts.cluster.jobs import Job, split
from minigts.errors import EnvironmentLacks, InputError, MinigtsError
from minigts.experiments import prepare, run_folders
from minigts.experiments.run import RunProgress
from minigts.lab import lifecycle
from minigts.lab.rundir import all_labs, exclusive, lab_named

pytestmark = pytest.mark.touched("tools/minigts/cluster")

EXPERIMENT = """\
name: some
title: Some jobs
topology: {topology}
vary: {{pair.link.delay: [1ms, 2ms, 3ms]}}
overlays: [none]
seed: 1
repetitions: 1
measurements:
  - {{name: rtt, tool: ping, paths: [first-to-last], options: {{count: 3}}}}
"""
LIMIT_S = 180
NOBODY = 2**22
"""The number of no process: Linux has none as high (proc(5), pid_max)."""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_STATE", str(tmp_path / "state"))


@pytest.fixture
def jobs(tmp_path: Path) -> Sequence[Job]:
    (tmp_path / "two.yaml").write_text("name: two\npair: {link: {delay: 1ms}}\n")
    (tmp_path / "some.yaml").write_text(EXPERIMENT.format(topology=tmp_path / "two.yaml"))
    prepared = prepare.prepare_sweep(tmp_path / "some.yaml", paper=False, quick=False, only=(), time="virtual")
    directories = run_folders.begin(tmp_path / "results", prepared, "uml")
    return tuple(split(directories[0].parent, directories))


def left_of_a_job() -> str:
    """What is left of a job's lab whose process is gone."""
    lab = lab_named(worker.lab_name("abcdef", 1, NOBODY))
    with exclusive(lab.rundir):
        lifecycle.begin_anew(lab)
    return lab.name


def test_what_is_left_of_a_job_is_taken_down_on_its_own_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(worker, "where_processes_are", lambda: "another0")
        theirs = left_of_a_job()
    assert left_of_a_job() != theirs
    assert not worker.remove_labs("abcdef", True)
    assert not worker.remove_labs("abcdef", False)
    assert [each.name for each in all_labs()] == [theirs]


def test_why_a_lab_could_not_be_taken_down_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    name = left_of_a_job()

    def fail(lab: object) -> None:
        raise ExceptionGroup("it is not down", [MinigtsError(f"process {number} does not end") for number in (7, 8)])

    monkeypatch.setattr(worker.labs, "down", fail)
    assert worker.remove_labs("abcdef", True) == f"{name}: process 7 does not end, process 8 does not end"


def test_a_scheduler_that_is_begun_here_hears_nobody_without_its_key_and_serves_no_pages() -> None:
    from distributed import Client, Security  # noqa: PLC0415 -- half a second, when tests are collected

    with engine.open_engine("local:1", lambda _: None) as opened:
        scheduler = urlsplit(opened.client.scheduler.address)
        assert (scheduler.scheme, scheduler.hostname) == ("tls", "127.0.0.1")
        with pytest.raises(OSError, match=r"tcp://127\.0\.0\.1"):
            Client(f"tcp://{scheduler.netloc}", timeout="3s")
        with pytest.raises(OSError, match="TLS"):
            Client(f"tls://{scheduler.netloc}", timeout="3s", security=Security.temporary())
        page = opened.client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.http_server.port)
        with pytest.raises(HTTPError) as refused:
            urlopen(f"http://127.0.0.1:{page}/info/main/workers.html", timeout=60)
        assert refused.value.code == 404


class Made:
    """A provider whose parts are a few bytes."""

    name = "made"

    def is_built(self) -> bool:
        return True

    def parts_key(self) -> str:
        raise AssertionError

    def pack(self, target: Path, _progress: Callable[[str], None]) -> str:
        target.write_bytes(b"parts")
        return "sum"

    def unpack(self, packed: Path, sha256: str, progress: Callable[[str], None]) -> None:
        raise AssertionError


@contextmanager
def answering(
    monkeypatch: pytest.MonkeyPatch, call: Callable[..., str], workers: int
) -> Iterator[Callable[[Sequence[Job]], tuple[dict[str, str], list[str], list[str]]]]:
    """Has jobs done by workers that say what `call` says: why jobs were given up, those that were kept, what was
    said."""
    said: list[str] = []
    monkeypatch.setattr(dispatch, "_on_worker", lambda: call)
    monkeypatch.setattr(dispatch.registry, "make", lambda *_: Made())
    with engine.open_engine(f"local:{workers}", lambda _: None) as opened:

        def perform(jobs: Sequence[Job]) -> tuple[dict[str, str], list[str], list[str]]:
            kept: list[str] = []
            lost: dict[str, str] = {}

            def keep(job: Job, _files: Mapping[str, str]) -> None:
                kept.append(job.name)

            def lose(job: Job, why: str) -> None:
                lost[job.name] = why

            dispatch.run_jobs(opened, jobs, keep, lose, said.append, lambda _: None)
            return lost, kept, said

        yield perform


def test_a_worker_without_minigts_says_so_and_not_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "REFUSING_S", 0.2)
    (tmp_path / "call").write_bytes(cloudpickle.dumps(dispatch._on_worker()))
    script = (
        "import cloudpickle, pathlib, time; call = cloudpickle.loads(pathlib.Path('call').read_bytes()); "
        "begun = time.monotonic(); print(call('perform', '{}', '', '')); print(time.monotonic() - begun)"
    )
    told, seconds = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert json.loads(told)["kind"] == "refused"
    assert float(seconds) >= 0.2


class Killed:
    """What Dask says of a job under which workers died."""

    status = "error"

    def exception(self) -> Exception:
        from distributed import KilledWorker  # noqa: PLC0415 -- as above

        return KilledWorker("job", "tcp://127.0.0.1:1", engine.MOST_DEATHS - 1)


def test_a_job_that_workers_die_of_is_given_to_no_other(jobs: Sequence[Job]) -> None:
    has_done = dispatch._Dispatch(SimpleNamespace(client=None, campaign_id="abcdef"), lambda _: None)  # type: ignore[arg-type]
    answer, where = has_done._answer(Killed())  # type: ignore[arg-type]
    assert has_done._again(dispatch._Assignment(jobs[0], 1, frozenset()), answer, where) == (
        "3 workers died while they had it"
    )


@pytest.mark.timeout(LIMIT_S)
def test_a_job_is_given_up_once_three_workers_have_died_of_it(
    jobs: Sequence[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = tmp_path / "deaths"

    def call(name: str, *_words: object) -> str:
        from distributed import get_worker  # noqa: PLC0415
        from distributed.utils import sync  # noqa: PLC0415

        if name != "perform":
            return ""
        dying = get_worker()

        async def die() -> None:
            """All that a scheduler sees of a worker's death. These workers are threads of the test's own process."""
            dying.batched_stream.comm.abort()

        with deaths.open("a") as file:
            file.write(f"{dying.name}\n")
        sync(dying.loop, die)
        return '{"kind": "done"}'

    def keep(job: Job, _files: Mapping[str, str]) -> None:
        raise AssertionError(f"{job.name} was done by a worker that had died")

    options = {"n_workers": 4, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    file = engine.EngineFile(cluster="distributed.LocalCluster", options=options)
    monkeypatch.setattr(dispatch, "_on_worker", lambda: call)
    lost: dict[str, str] = {}

    def lose(job: Job, why: str) -> None:
        lost[job.name] = why

    with engine.open_engine(file, lambda _: None) as opened:
        dispatch.run_jobs(opened, jobs[:1], keep, lose, lambda _: None, lambda _: None)
    assert lost == {jobs[0].name: "3 workers died while they had it"}
    assert len({*deaths.read_text().splitlines()}) == len(deaths.read_text().splitlines()) == 3


def test_how_far_a_campaign_is_goes_by_the_samples_that_workers_tell_of(jobs: Sequence[Job]) -> None:
    seen: list[RunProgress] = []
    first, second, third = jobs
    standing = dispatch._ProgressCounter(jobs, seen.append, 2)
    standing.hear({"job": first.number, "done": 1})
    standing.hear({"job": second.number, "done": 1})
    standing.hear({"job": second.number, "done": 0})  # another worker begins it anew
    standing.finished(first, 2)
    standing.hear({"job": first.number, "done": 0})  # late: it has ended
    standing.finished(second, 1)
    standing.finished(third, 1)
    assert [(at.done, at.total) for at in seen] == [(done, 3) for done in (0, 1, 2, 1, 1, 2, 3)]
    assert seen[0].doing == "beginning (2 workers)"
    assert seen[-1].doing == f"{third.name} (1 worker)"
    assert seen[-1].seconds_left == 0


def test_what_a_worker_tells_of_its_job_is_heard() -> None:
    heard: list[Mapping[str, int]] = []

    def job() -> None:
        tell = worker.telling("abcdef", 7)
        tell(RunProgress(2, 5, 0.0, "a sample"))
        tell(RunProgress(3, 5, 0.0, "too soon to be told"))

    with engine.open_engine("local:1", lambda _: None) as opened:
        opened.client.subscribe_topic(worker.topic("abcdef"), lambda event: heard.append(event[1]))
        opened.client.submit(job).result(timeout=60)
        assert until(lambda: bool(heard))
    assert [(told["job"], told["done"]) for told in heard] == [(7, 2)]
    job()  # without a worker nobody hears it


@pytest.mark.timeout(LIMIT_S)
def test_jobs_go_on_when_every_worker_but_one_that_refuses_is_another_now(
    jobs: Sequence[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing, died = tmp_path / "refusing", tmp_path / "died"

    def call(name: str, *_words: str) -> str:
        import os  # noqa: PLC0415
        import time  # noqa: PLC0415

        if name != "perform":
            return ""
        try:
            with refusing.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            while not (pid := refusing.read_text()):
                time.sleep(0.01)
            if pid != str(os.getpid()):
                if not died.exists():
                    time.sleep(1)  # until what was refused waits for this worker
                    died.touch()
                    os._exit(1)
                return '{"kind": "done"}'
        time.sleep(0.2)  # as a worker does; else the job would go to and fro while the other one is started
        return '{"kind": "refused", "why": "another minigts"}'

    with answering(monkeypatch, call, 2) as perform:
        lost, kept, said = perform(jobs)
    assert not lost
    assert sorted(kept) == sorted(job.name for job in jobs)
    assert len(said) == 1
    assert said[0].endswith("is given no more jobs: another minigts")


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("kind", "attempts"), [("wrong", 1), ("failed", dispatch.ATTEMPTS)])
def test_a_job_that_fails_is_tried_again_unless_no_worker_can_do_it(
    jobs: Sequence[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, attempts: int
) -> None:
    tried, number = tmp_path / "tried", jobs[0].number

    def call(name: str, *words: object) -> str:
        import json  # noqa: PLC0415

        if name != "perform" or json.loads(str(words[0]))["number"] != number:
            return '{"kind": "done"}' if name == "perform" else ""
        with tried.open("a") as file:
            file.write("once\n")
        return json.dumps({"kind": kind, "why": "there is no such file"})

    with answering(monkeypatch, call, 1) as perform:
        lost, kept, _ = perform(jobs)
    assert lost == {jobs[0].name: "there is no such file"}
    assert sorted(kept) == sorted(job.name for job in jobs[1:])
    assert len(tried.read_text().splitlines()) == attempts


@pytest.mark.timeout(LIMIT_S)
def test_parts_that_cannot_be_sent_cost_a_job_one_attempt(
    jobs: Sequence[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, here = tmp_path / "tried", tmp_path / "here"

    def call(name: str, *_words: object) -> str:
        if name == "receive" and not tried.exists():
            tried.touch()
            raise OSError(28, "No space left on device")
        if name == "unpack":
            here.touch()
        lacks = '{"kind": "lacks-parts", "machine": "here"}'
        return "" if name != "perform" else '{"kind": "done"}' if here.exists() else lacks

    with answering(monkeypatch, call, 1) as perform:
        lost, kept, _ = perform(jobs)
    assert not lost
    assert sorted(kept) == sorted(job.name for job in jobs)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("why", "said"), [("", "though they were sent there"), ("too little room", "too little room")])
def test_a_worker_that_parts_are_no_use_to_is_given_no_more_jobs(
    jobs: Sequence[Job], monkeypatch: pytest.MonkeyPatch, why: str, said: str
) -> None:
    def call(name: str, *_words: object) -> str:
        if name == "unpack":
            return why
        return '{"kind": "lacks-parts", "machine": "here"}' if name == "perform" else ""

    monkeypatch.setattr(dispatch, "RESTARTED_S", 1.0)
    with (
        answering(monkeypatch, call, 1) as perform,
        pytest.raises(EnvironmentLacks, match=f"no worker can do the jobs: .*{said}"),
    ):
        perform(jobs)


def test_a_scheduler_is_waited_for_no_longer_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr("distributed.Client", lambda *given, **how: asked.append((*given, how)))
    engine._client_of("tcp://192.0.2.1:8786")
    assert asked == [("tcp://192.0.2.1:8786", {"timeout": engine.WAITING_S, "set_as_default": False})]


@pytest.mark.parametrize("refused", [TypeError, ValueError])
def test_what_dask_says_of_an_address_is_said_with_it(
    refused: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise refused("no certificate")

    monkeypatch.setattr("distributed.Client", refuse)
    with pytest.raises(InputError, match=r"^--on tls://a+: no certificate$") as caught:
        engine._client_of("tls://" + "a" * 100)
    assert str(caught.value) == f"--on tls://{'a' * 54}: no certificate"
