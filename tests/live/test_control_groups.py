"""Control groups of the second version, which hosts have; this machine may have the first alone."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from minigts import paths
from minigts.foreign import user_text
from minigts.lab import Lab

pytestmark = pytest.mark.virtual

SCRIPT = """
import json, os, sys, time
from pathlib import Path
sys.path.insert(0, "/run/minigts-tools")
from minigts.machine import cgroups
from minigts.providers.uml.run import bounds

bounds.PROCESSES = 40

def children(group):
    "How many a process of the group gets before it is refused one, and why it is."
    ours, theirs = os.pipe()
    waits, ends = os.pipe()
    if os.fork() == 0:
        cgroups.enter(cgroups.join(group))
        made, why = 0, None
        while why is None and made < 200:
            try:
                if os.fork() == 0:
                    os.close(ends)
                    os.read(waits, 1)
                    os._exit(0)
                made += 1
            except OSError as error:
                why = error.strerror
        os.write(theirs, json.dumps([made, why]).encode())
        os._exit(0)
    said = json.loads(os.read(ours, 100))
    os.close(waits)
    os.close(ends)
    os.wait()
    while (group / "cgroup.procs").read_text():
        time.sleep(0.01)
    return said

groups = bounds.Groups(Path("/a/lab"))
place = cgroups.process_place()
own = groups.make("ams", "")
said = {"version": place.version, "alone": children(own)}
shared = cgroups.place().make("minigts-shared", 0.5)
said["another"] = groups.make("bra", str(shared)) is None
said["with a share"] = children(shared)
said["quota"] = (shared / "cpu.max").read_text().split()
groups.remove()
shared.rmdir()
said["left"] = [str(each) for each in place.parent.glob("minigts-*")]
print(json.dumps(said))
"""


def tools() -> bytes:
    """The package's rooms that a host's supervisor loads, as a tar archive."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as archive:
        archive.add(
            paths.project_root() / "tools" / "minigts",
            "minigts",
            filter=lambda each: each if each.isdir() or Path(each.name).suffix == ".py" else None,
        )
    return kept.getvalue()


def test_a_host_s_processes_are_counted_and_its_share_kept(lab: Lab) -> None:
    where = "mkdir -p /run/minigts-tools && exec tar --extract --touch --directory /run/minigts-tools"
    lab.provider.run("ams", ["sh", "-c", where], timeout_s=60, stdin=tools())
    try:
        said = json.loads(user_text(lab.provider.run("ams", ["python3", "-c", SCRIPT], timeout_s=120).stdout))
    finally:
        lab.provider.run("ams", ["rm", "-r", "/run/minigts-tools"], timeout_s=60)
    refused = [39, "Resource temporarily unavailable"]
    assert said == {
        "version": 2,
        "alone": refused,
        "another": True,
        "with a share": refused,
        "quota": ["10000", "20000"],
        "left": [],
    }
