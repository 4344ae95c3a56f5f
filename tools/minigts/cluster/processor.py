"""A processor for each worker of an engine that is begun here. Dask loads it in every worker, in those that are
started again, too.

The kernels of a lab in virtual time take turns most of the time. To wake a process on another processor costs more than
the little that two processors gain for it; so several labs are done sooner with one processor each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minigts.machine import processors

if TYPE_CHECKING:
    from distributed import Worker


def dask_setup(worker: Worker) -> None:
    """Workers of a LocalCluster are called by their numbers. What a worker starts has its processor, too."""
    processors.hold_to_one(0, int(worker.name))
