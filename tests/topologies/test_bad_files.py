"""Each bad topology beside this file must give exactly the messages in its `.expected`, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from minigts.errors import InputError
from minigts.topology.read.load import load

HERE = Path(__file__).parent


@pytest.mark.parametrize("path", sorted(HERE.glob("*.yaml")), ids=lambda path: path.stem)
def test_bad_file_gives_its_message(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(path, known_overlays=["none", "swarm"])
    assert str(caught.value).replace(str(path), path.name) + "\n" == path.with_suffix(".expected").read_text()
    assert caught.value.exit_code == 2
