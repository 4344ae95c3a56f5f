"""What a provider has whose labs go by this machine's time."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from minigts.machine.together import Together, together


class OnMachineTime:
    """See `providers.base.Provider`."""

    def now_s(self) -> float:
        return time.monotonic()

    def together(self) -> AbstractContextManager[Together]:
        return together()
