"""A copy's directory has the same name in each lab: a guest sees it in the arguments of its programs."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest

from minigts.providers.agent.provider import AgentProvider
from minigts.providers.uml.run import confinement, transfer


class Noting:
    """A provider whose hosts only note what they are asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def run(self, _host: str, argv: list[str], **_how: Any) -> None:
        self.asked.append(tuple(argv))


def test_what_a_host_is_asked_to_unpack_does_not_differ_from_lab_to_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "version", lambda: 1)
    source = tmp_path / "file"
    source.write_text("content")
    asked = []
    for lab in ("one", "other"):
        shared = tmp_path / lab
        shared.mkdir()
        provider = Noting()
        for _ in range(2):
            transfer.put(cast(AgentProvider, provider), "h1", shared, source, PurePosixPath("/root/file"))
        asked += provider.asked
        assert not list(shared.iterdir())
    assert len({*asked}) == 1


def test_a_copy_beside_another_has_a_place_of_its_own(tmp_path: Path) -> None:
    with transfer._place(tmp_path, "put") as one:
        (one / "file").touch()
        with transfer._place(tmp_path, "put") as other:
            assert one != other
    assert not list(tmp_path.iterdir())
