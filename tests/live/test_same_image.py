"""What hosts start from tells of nobody's build: one set of packages gives the same bytes, and so the same lab."""

from __future__ import annotations

import pytest

from minigts.foreign import user_text
from minigts.lab import Lab
from minigts.providers.uml.build import image

pytestmark = [pytest.mark.virtual, pytest.mark.nightly]

HOUR_S = 3600
LAYERS = """
cd /var/lib/docker/image/overlay2/layerdb/sha256
for each in *; do echo "$each $(cat "$each/cache-id")"; done
"""


def said(lab: Lab, script: str) -> list[str]:
    return user_text(lab.provider.run("ams", ["bash", "-c", script], timeout_s=120).stdout).splitlines()


def test_no_file_of_a_host_tells_when_its_image_was_built(lab: Lab) -> None:
    ready = image.present()
    assert ready is not None
    built_s = int(ready.root.stat().st_mtime)
    assert said(lab, f"find / -xdev -fstype ext4 -newermt @{built_s - HOUR_S} ! -newermt @{built_s + HOUR_S}") == []


def test_dockers_store_has_no_names_that_chance_gave(lab: Lab) -> None:
    named = [line.split() for line in said(lab, LAYERS)]
    assert named
    assert all(layer == directory for layer, directory in named)
