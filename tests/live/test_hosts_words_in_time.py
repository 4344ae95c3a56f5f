"""A seed's time line has what hosts said, at the lab's time: their clocks are stepped and paused, and begin anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from live.explored import explored
from live.program import Program, Traces
from live.test_explored_seeds import RING
from minigts.explore import host_logs, timeline

pytestmark = [pytest.mark.touched("tools/minigts/explore"), pytest.mark.virtual, pytest.mark.timeout(600)]
FAULTS = """
faults:
  clock-skew: {every: 3s, for: 2s, of: [a]}
  kill: {every: 4s, for: 1s, of: [b]}
  pause: {every: 3s, for: 1s to 2s, of: [c]}
  length: 12s
  heal: 3s before the end
  at_most: 3
"""
TEST = """
import json
from contextlib import suppress

from minigts.errors import MinigtsError

MARK = "echo $(date -u +%FT%T.%NZ) mark $0 >>/var/log/mine.log; echo '<3>mark '$0 >/dev/kmsg"
WORDS = "abcdefghijklmnopq"


def test_which_fails(lab, course):
    course.note("begun")
    began_s, told = course.now_s, []
    for number in range(len(WORDS)):
        for host in "abc":
            with suppress(MinigtsError):
                lab.host(host).run("sh", "-c", MARK, WORDS[number], timeout_s=5)
                told.append((host, WORDS[number], course.now_s - began_s))
        course.sleep(0.7)
    (course.folder / "marks.json").write_text(json.dumps(told))
    raise AssertionError("as it is to")
"""


def test_hosts_words_stand_at_the_labs_time(program: Program, traces: Traces, tmp_path: Path) -> None:
    for name, text in (("ring.yaml", RING), ("faults.yaml", FAULTS), ("test_marks.py", TEST)):
        (tmp_path / name).write_text(text)
    test, faults = tmp_path / "test_marks.py", tmp_path / "faults.yaml"
    made, _ = explored(program, tmp_path / "results", tmp_path / "ring.yaml", test, "--seeds", "1", faults=faults)
    seed = made / "failed" / "000001"
    played = timeline.read((seed / timeline.FILE).read_text())
    assert {"fault", "started", "resumed"} <= {entry["event"] for entry in played}
    (began_s,) = [float(str(entry["at_s"])) for entry in played if entry["event"] == timeline.NOTE]
    said = timeline.read((seed / host_logs.FILE).read_text())
    marks = json.loads((seed / "marks.json").read_text())
    at_s = {(each["host"], each["log"], str(each["text"]).split("mark ")[-1]): each["at_s"] for each in said}
    assert len(marks) > 30
    for host, word, since_s in marks:
        ended_s = began_s + since_s + 2e-6
        assert ended_s - 0.005 < at_s[host, "mine", word] < ended_s
        if (ended_s > 1 and host != "b") or ended_s > 3:  # a kernel's first lines are of its boot
            assert ended_s - 0.015 < at_s[host, host_logs.KERNEL, word] < ended_s
    assert not traces.left()
