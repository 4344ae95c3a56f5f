"""What a measurement's `links:` ask of a lab; what they leave out is as declared."""

from __future__ import annotations

import pytest

from minigts.experiment_language.model import Links
from minigts.experiments.lab_control import settings
from minigts.lab import DECLARED, Settings


@pytest.mark.parametrize(
    ("links", "wanted"),
    [
        (Links(), DECLARED),
        (Links(queue="30kB"), Settings(queue_bytes=30_000)),
        (Links(rate="unlimited"), Settings(unlimited=True)),
        (Links(rate="unlimited", queue="30kB"), Settings(unlimited=True)),
        (Links(gro="on"), Settings(gro="on")),
    ],
)
def test_links_to_settings(links: Links, wanted: Settings) -> None:
    assert settings(links) == wanted
