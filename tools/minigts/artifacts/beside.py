"""Compiles products in parallel with each other and with their caller."""

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
    """A context that compiles each product in a thread, and waits for all at its end. It yields the list of failures,
    which is complete after the end. All products are needed, so the first failure breaks the other builds off.

    If the block fails or is interrupted, the builds are broken off, too; nothing is left of a build that is broken off.
    """
    broken_off, failures = threading.Event(), list[Exception]()

    def compile_one(product: Product) -> None:
        try:
            product.ensure(progress, broken_off)
            progress(f"the {product.name} is built")
        except BrokenOff:
            pass
        except Exception as error:  # the caller raises it
            failures.append(error)
            progress(f"the {product.name} cannot be built here")
            broken_off.set()

    # Threads are not joined: an interrupted join counts a running thread as ended.
    with ThreadPoolExecutor(max(1, len(products))) as pool:
        try:
            builds = [pool.submit(compile_one, product) for product in products]
            yield failures
            wait(builds)
        finally:
            broken_off.set()


def one_at_a_time(progress: Progress) -> Progress:
    """A version of `progress` that several threads can call."""
    turn = threading.Lock()

    def say(text: str) -> None:
        with turn:
            progress(text)

    return say
