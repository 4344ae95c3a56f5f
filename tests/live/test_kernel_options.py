"""A host's kernel has the options that the page of providers says it has, and lacks the others."""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path, PurePosixPath

import pytest

from live.program import PROJECT
from minigts.lab import Lab

pytestmark = pytest.mark.virtual


def test_a_hosts_kernel_lacks_what_the_page_says(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT)
    options = importlib.import_module("bench.kernel_options")
    lab.provider.run("ams", ["cp", "/proc/config.gz", "/root/config.gz"], timeout_s=30)
    lab.provider.get("ams", PurePosixPath("/root/config.gz"), tmp_path / "config.gz")
    config = zlib.decompress((tmp_path / "config.gz").read_bytes(), wbits=31).decode()
    assert options.missing(options.named(config)) == options.of_the_recipe()
