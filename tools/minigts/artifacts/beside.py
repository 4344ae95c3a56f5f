"""Products that are compiled side by side, and beside what their caller does meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from minigts.artifacts.product import Product
from minigts.errors import BrokenOff

Progress = Callable[[str], None]


@contextmanager
def compiling(products: Sequence[Product], progress: Progress) -> Iterator[list[Exception]]:
    """Each in a thread of its own; the block's end waits for them. Gives a list, then whole, of why some are not there:
    with the first failure the others are broken off, for they are of use together.

    When the block fails or is interrupted they are broken off, too, and nothing of them is left.
    """
    broken_off, failures = threading.Event(), list[Exception]()

    def compile_one(product: Product) -> None:
        try:
            product.ensure(progress, broken_off)
            progress(f"the {product.name} is built")
        except BrokenOff:
            pass
        except Exception as error:  # the thread's end; its caller raises it
            failures.append(error)
            progress(f"the {product.name} cannot be built here")
            broken_off.set()

    # Not by joining threads: a join that is interrupted counts a thread as ended that is not.
    with ThreadPoolExecutor(max(1, len(products))) as pool:
        try:
            builds = [pool.submit(compile_one, product) for product in products]
            yield failures
            wait(builds)
        finally:
            broken_off.set()


def one_at_a_time(progress: Progress) -> Progress:
    """The same progress, for several threads."""
    turn = threading.Lock()

    def say(text: str) -> None:
        with turn:
            progress(text)

    return say
