"""What these tests share: results folders are signed by a key of their own, not by the user's, and what this machine's
users share is not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def state_of_the_tests() -> Iterator[None]:
    """A state directory, unless the caller has chosen one; its path is short, as sockets' have to be."""
    if "MINIGTS_STATE" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="minigts-") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_STATE", place)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_shared_cache() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGTS_SHARED_CACHE", "")
        yield
