"""The time methods of providers whose labs use this machine's time."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from minigts.machine.parallel import Together, together


class RealTime:
    """See `providers.base.Provider`."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        time.sleep(max(0.0, moment_s - time.monotonic()))

    def kernel_of(self, host: str) -> str:
        return host

    def together(self) -> AbstractContextManager[Together]:
        return together()
