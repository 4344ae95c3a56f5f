"""A host whose disk has a cache, and whose power is cut by hand: what was flushed is there, and what was not may be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.conftest import quiet, state_directory
from live.program import Program
from minigts import lab as labs
from minigts import overlays
from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.topology.read.load import parse

pytestmark = [pytest.mark.touched("tools/minigts/lab", "tools/minigts/providers/uml"), pytest.mark.virtual]
PAIR = "name: cut\nhosts: {ams: {disk: cached}, bra: }\nlinks: [{ends: [ams, bra], rtt: 2ms}]\n"
WRITE = """
cd /root; echo flushed >kept; sync kept; sync .; echo written >lost
for each in 1 2 3 4 5 6 7 8; do head -c 4096 /dev/zero | tr '\\0' "$each"; done >blocks; sync blocks
for each in a b c d e f g h; do head -c 4096 /dev/zero | tr '\\0' "$each"; done >/dev/shm/new
dd if=/dev/shm/new of=blocks oflag=direct conv=notrunc bs=4k
"""
FIRST_BYTES = (
    "for each in 0 1 2 3 4 5 6 7; do dd if=/root/blocks bs=4k skip=$each count=1 status=none | head -c 1; done"
)


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with state_directory(tmp_path_factory.mktemp("cut")):
        made = labs.up(parse(PAIR, "cut.yaml", time="virtual"), "uml", None, quiet)
        overlays.join(made, "none", quiet)
        yield made
        labs.down(made)


def test_what_was_flushed_outlives_a_power_cut(lab: Lab) -> None:
    """Of eight blocks that were written again each is the new one or the old one."""
    program = Program(lab.rundir.parents[1])
    lab.provider.run("ams", ["sh", "-euc", WRITE], timeout_s=60)
    program.succeeds("kill", "ams", "--power-cut", "--seed", "3")
    program.succeeds("start", "ams")
    assert user_text(lab.provider.run("ams", ["cat", "/root/kept"], timeout_s=60).stdout) == "flushed\n"
    assert lab.provider.run("ams", ["test", "-s", "/root/lost"], timeout_s=60, check=False).code
    said = user_text(lab.provider.run("ams", ["dmesg"], timeout_s=60).stdout)
    assert "EXT4-fs (ubda): recovery complete" in said
    assert "EXT4-fs error" not in said
    found = user_text(lab.provider.run("ams", ["sh", "-euc", FIRST_BYTES], timeout_s=60).stdout)
    assert all(byte in pair for byte, pair in zip(found, ("1a", "2b", "3c", "4d", "5e", "6f", "7g", "8h"), strict=True))
    refused = program.run("kill", "bra", "--power-cut")
    assert (refused.returncode, "bra has no disk that a power cut lets lose anything" in refused.stderr) == (2, True)
    assert program.run("kill", "bra", "--seed", "3").returncode == 2
