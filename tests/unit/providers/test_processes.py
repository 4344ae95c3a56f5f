"""Which process is a lab's: a record that is not whole is none, and nothing is signalled on its word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from isolated import run_isolated

from minigts.errors import MinigtsError
from minigts.providers.agent import lab_processes
from minigts.providers.uml.run.supervisor import Launch

END = """
import json, os, subprocess, sys, time
from pathlib import Path
from minigts.providers.agent import lab_processes

rundir = Path(sys.argv[1])
bystander = subprocess.Popen(["sleep", "1000"])
text = sys.argv[2]
text = text.replace("BYSTANDER", str(bystander.pid)).replace("STARTED", str(lab_processes.started_ticks(bystander.pid)))
text = text.replace("BOOT", Path("/proc/sys/kernel/random/boot_id").read_text().strip())
(rundir / "supervisor.json").write_bytes(text.encode("latin-1"))
problems = lab_processes.end(rundir, 0.2)
try:
    bystander.wait(0.3)  # a signal takes its time
except subprocess.TimeoutExpired:
    pass
print(json.dumps({"problems": problems, "bystander": bystander.poll(), "left": os.listdir(rundir)}))
"""
"""Whatever it signals by mistake is in the namespace that it runs in."""

WHOLE = '{"pid": BYSTANDER, "started": STARTED, "boot": "BOOT"}'
DAMAGED = {
    "every process, as one without a start time": '{"pid": -1, "started": null, "boot": "BOOT"}',
    "every process": '{"pid": -1, "started": STARTED, "boot": "BOOT"}',
    "the own group": '{"pid": 0, "started": null, "boot": "BOOT"}',
    "a group": '{"pid": -BYSTANDER, "started": null, "boot": "BOOT"}',
    "the first process": '{"pid": 1, "started": STARTED, "boot": "BOOT"}',
    "nothing in an object": "{}",
    "nothing in a list": "[]",
    "null": "null",
    "a number": "7",
    "no JSON": '{"pid": ',
    "empty": "",
    "a pid in words": '{"pid": "BYSTANDER", "started": STARTED, "boot": "BOOT"}',
    "a pid that is true": '{"pid": true, "started": STARTED, "boot": "BOOT"}',
    "a pid with a fraction": '{"pid": BYSTANDER.0, "started": STARTED, "boot": "BOOT"}',
    "a huge pid": f'{{"pid": {"9" * 400}, "started": STARTED, "boot": "BOOT"}}',
    "a pid of too many digits": f'{{"pid": {"9" * 4990}, "started": 1, "boot": ""}}',
    "no start time": '{"pid": BYSTANDER, "boot": "BOOT"}',
    "a start time of nought": '{"pid": BYSTANDER, "started": 0, "boot": "BOOT"}',
    "no boot": '{"pid": BYSTANDER, "started": STARTED}',
    "a boot that is a number": '{"pid": BYSTANDER, "started": STARTED, "boot": 7}',
    "deep": "[" * 4000,
    "not UTF-8": '{"pid": BYSTANDER, "started": STARTED, "boot": "\xff"}',
    "whole, of a process without the lab's mark": WHOLE,
}


@pytest.mark.parametrize("record", DAMAGED.values(), ids=DAMAGED.keys())
def test_nothing_is_signalled_on_the_word_of_a_damaged_record(tmp_path: Path, record: str) -> None:
    done = run_isolated(END, tmp_path, record)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"problems": [], "bystander": None, "left": []}


def test_a_directory_in_the_records_place_is_no_supervisor(tmp_path: Path) -> None:
    for name in ("supervisor.json", lab_processes.LAUNCH):
        (tmp_path / name / "deep").mkdir(parents=True)
    assert lab_processes.supervisor(tmp_path) is None
    assert lab_processes.end(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_the_records_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "supervisor.json")
    assert lab_processes.supervisor(tmp_path) is None


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that carries the mark of the run directory `tmp_path`, and has recorded itself there."""
    script = (
        "import pathlib, sys, time; from minigts.providers.agent import lab_processes;"
        "lab_processes.record(pathlib.Path(sys.argv[1])); print('recorded', flush=True); time.sleep(1000)"
    )
    started = subprocess.Popen(
        [sys.executable, "-P", "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "tools"), lab_processes.MARK: str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == b"recorded\n"
    yield started
    started.kill()
    started.wait()
    started.stdout.close()


def test_the_supervisor_is_known_and_ended(tmp_path: Path, marked: subprocess.Popen[bytes]) -> None:
    assert lab_processes.supervisor(tmp_path) == marked.pid
    assert lab_processes.marked_pids(tmp_path) == [marked.pid]
    assert lab_processes.end(tmp_path) == []
    assert marked.wait(5) == -signal.SIGTERM
    assert lab_processes.supervisor(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_one_whose_record_is_lost_is_found_by_its_mark(tmp_path: Path, marked: subprocess.Popen[bytes]) -> None:
    (tmp_path / "supervisor.json").write_text("[]")
    assert lab_processes.supervisor(tmp_path) is None
    assert lab_processes.end(tmp_path) == []
    assert marked.wait(5) == -signal.SIGKILL


@pytest.mark.parametrize("changed", [{"started": 1}, {"boot": "another"}], ids=["start time", "boot"])
def test_a_record_of_another_time_names_nobody(
    tmp_path: Path, marked: subprocess.Popen[bytes], changed: dict[str, object]
) -> None:
    record = tmp_path / "supervisor.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **changed}))
    assert lab_processes.supervisor(tmp_path) is None


def test_who_has_become_another_meanwhile_gets_no_signal(tmp_path: Path, marked: subprocess.Popen[bytes]) -> None:
    assert not lab_processes.send_if(marked.pid, signal.SIGKILL, lambda: False)
    earlier = lab_processes.Process(marked.pid, 1)
    assert not lab_processes.send_marked(earlier, signal.SIGKILL, lab_processes.MARK, str(tmp_path))
    assert not lab_processes.send_marked(
        lab_processes.Process(marked.pid, 1), signal.SIGKILL, lab_processes.MARK, "/elsewhere"
    )
    assert marked.poll() is None


LAUNCH = {"boot_directory": "/b", "base": "/i", "machines": [], "links": [], "instead": []}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        json.dumps({**LAUNCH, "machines": [7]}).encode(),
        json.dumps({**LAUNCH, "machines": [{"ports": []}]}).encode(),
        json.dumps({**LAUNCH, "links": [[]]}).encode(),
        json.dumps({**LAUNCH, "base": None}).encode(),
    ],
    ids=["empty", "null", "list", "object", "no text", "deep", "machine", "nameless machine", "link", "base"],
)
def test_a_damaged_launch_gives_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / lab_processes.LAUNCH).write_bytes(content)
    with pytest.raises(MinigtsError, match=r"launch\.json does not say what to start"):
        Launch.read(tmp_path / lab_processes.LAUNCH)


def test_a_supervisor_that_cannot_read_what_to_start_says_so_in_a_line(tmp_path: Path) -> None:
    (tmp_path / lab_processes.LAUNCH).write_text("{}")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "minigts.providers.uml.run.supervisor", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "tools")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["launch.json does not say what to start (KeyError): 'machines'"]
