"""`minigts serve` of a lab in this process, beside a browser that the test drives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minigts.lab import Lab
from minigts.serve.auth import Access
from minigts.serve.listening import bind
from minigts.serve.server import Server


@contextmanager
def served(lab: Lab, results: Path, said: list[str], interval_s: float = 0.3) -> Iterator[Access]:
    """Its lab is shown meanwhile. What the server complains of goes into `said`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        with bind("127.0.0.1", 0) as listening:
            access = Access("127.0.0.1", listening.getsockname()[1])
            serving = Server(lab, access, results, interval_s).serving(listening, said.append)
            asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(20)
            try:
                yield access
            finally:
                asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()
