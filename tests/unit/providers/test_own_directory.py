"""When a supervisor's run directory counts as gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from minigts.providers.agent.own_directory import OwnDirectory


def test_a_directory_is_known_by_itself_and_not_by_its_name(tmp_path: Path) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    own = OwnDirectory(place)
    assert own.is_there
    (place / "file").touch()
    assert own.is_there
    place.rename(tmp_path / "elsewhere")
    assert not own.is_there
    place.mkdir()
    assert not own.is_there
    place.rmdir()
    (tmp_path / "elsewhere").rename(place)
    assert own.is_there
    place.rename(tmp_path / "elsewhere")
    place.touch()
    assert not own.is_there


def test_it_is_waited_for_until_it_is_gone_twice_in_a_row(tmp_path: Path) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    own = OwnDirectory(place)

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(own.wait_until_gone(every_s=0.001), 0.05)
        place.rmdir()
        await asyncio.wait_for(own.wait_until_gone(every_s=0.001), 60)

    asyncio.run(wait())
