"""The run directory of a supervisor, which ends its lab once somebody has deleted that: no `down` finds it then.

A directory of the same name that was made anew is another one: it is known by its inode, which is not used again while
the supervisor has it open.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

LOOK_S = 2.0
"""How often is looked. It is gone if it is not found twice in a row."""


class OwnDirectory:
    """The directory at `path` as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    @property
    def is_there(self) -> bool:
        """Whether its name still leads to it. Where that cannot be told, such as without a permission, it is."""
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return os.path.samestat(found, os.fstat(self._descriptor))

    async def wait_until_gone(self, every_s: float = LOOK_S) -> None:
        """Wait until it is gone."""
        missed = 0
        while missed < 2:
            await asyncio.sleep(every_s)
            missed = 0 if self.is_there else missed + 1
