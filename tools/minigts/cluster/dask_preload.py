"""Binds each worker of an engine on this machine to one processor. Dask loads this module in every worker, also in one
that it restarts.

The kernels of a lab in virtual time mostly take turns. Waking a process on another processor costs more than a second
processor gains, so several labs run faster with one processor each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigts.machine import affinity

if TYPE_CHECKING:
    from distributed import Worker


def dask_setup(worker: Worker) -> None:
    """Bind a worker to a processor by its number, which is its name in a LocalCluster; child processes inherit it."""
    affinity.hold_to_one(0, int(worker.name))
