"""The full kernel alone in virtual time, with a disk that fails, is late and loses what was not flushed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from live.test_virtual_kernel import boot

pytestmark = pytest.mark.full_kernel

BLOCK, SECTOR = 4096, 512
BLOCKS = 64
ORDERS = "mount -t sysfs system /sys; cd /sys/module/ubd/parameters"
WRITE = "bs=4k oflag=direct of=/dev/ubda status=none"
CUT = f"""{ORDERS}; echo 1 >write_cache
yes old | tr -d '\\n' | dd {WRITE} iflag=fullblock count={BLOCKS} conv=fsync
yes new | tr -d '\\n' | dd {WRITE} iflag=fullblock count={BLOCKS // 2}
cat power_cut; echo SEED >power_cut"""
LATE = f"""{ORDERS}; echo "3000,20000" >late_us
for each in 1 2 3 4 5; do dd if=/dev/zero {WRITE} count=1 conv=notrunc; done; cat /proc/uptime
dd if=/dev/ubda iflag=direct bs=4k count=50 of=/dev/null 2>/dev/null; cat /proc/uptime"""
FAIL = f"""{ORDERS}; echo "0,250000,7" >errors
for each in $(seq 40); do dd if=/dev/zero {WRITE} count=1 conv=notrunc && echo written || echo failed; done
echo "0,0,0" >errors; dd if=/dev/zero {WRITE} count=40 conv=notrunc && echo all"""


def disk(directory: Path) -> Path:
    file = directory / "disk"
    file.write_bytes(bytes(BLOCKS * BLOCK))
    return file


def left(directory: Path, seed: int) -> tuple[list[bytes], list[bytes]]:
    """What a power cut has left of the blocks that were written and not flushed, and of those after them."""
    file = disk(directory)
    said = boot(directory, CUT.replace("SEED", str(seed)), f"ubd0={file}")
    assert said.startswith(f"{BLOCKS // 2}\n"), said
    content = file.read_bytes()
    blocks = [content[place : place + BLOCK] for place in range(0, len(content), BLOCK)]
    return blocks[: BLOCKS // 2], blocks[BLOCKS // 2 :]


def test_a_power_cut_loses_what_was_not_flushed_as_its_seed_draws(tmp_path: Path) -> None:
    """Seed 2 keeps some blocks, with others between them that it loses, and tears some."""
    new, old = (word * (BLOCKS * BLOCK // len(word) + 1) for word in (b"new", b"old"))
    unflushed, flushed = left(tmp_path, 2)
    of_each = []
    for number, block in enumerate(unflushed):
        here = slice(number * BLOCK, (number + 1) * BLOCK)
        kept = next(size for size in range(BLOCK, -1, -SECTOR) if block[:size] == new[here][:size])
        assert block[kept:] == old[here][kept:]
        of_each.append(kept)
    assert {0, BLOCK} < {*of_each}, of_each
    assert of_each != sorted(of_each, reverse=True), "a later one has outlived an earlier one"
    assert b"".join(flushed) == old[BLOCKS // 2 * BLOCK : BLOCKS * BLOCK]
    assert left(tmp_path, 2)[0] == unflushed != left(tmp_path, 3)[0]


def test_a_late_disk_answers_later(tmp_path: Path) -> None:
    """Five writes of 20 ms, then fifty reads of 3 ms."""
    said = boot(tmp_path, LATE, f"ubd0={disk(tmp_path)}")
    written, read = (float(each) for each in re.findall(r"^(\d+\.\d+) \d+\.\d+$", said, re.MULTILINE))
    assert 0.1 <= written < 0.2, said
    assert 0.15 <= read - written < 0.25, said


def test_a_share_of_writes_fails(tmp_path: Path) -> None:
    said = boot(tmp_path, FAIL, f"ubd0={disk(tmp_path)}")
    assert 4 <= said.count("failed\n") <= 16 and "\nall\n" in said, said
    assert said.count("failed\n") + said.count("written\n") == 40


def test_in_real_time_a_disk_takes_no_orders(tmp_path: Path) -> None:
    tries = "; ".join(
        f"echo {order} >{name} || echo refused" for name, order in (("write_cache", 1), ("late_us", "1,1"))
    )
    said = boot(tmp_path, f"{ORDERS}; {tries}; echo 1 >power_cut || echo refused", f"ubd0={disk(tmp_path)}", passing=())
    assert said.count("refused\n") == 3, said
