"""The browser that pages are looked at with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from drawn_once import drawn_once

__all__ = ["chromium", "drawn_once"]


@pytest.fixture(scope="module")
def chromium(browser_program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser_program, args=["--disable-dev-shm-usage"])
        yield started
        started.close()
