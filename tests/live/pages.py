"""The page of `minigts serve`, as tests open it in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 120_000


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--disable-dev-shm-usage"])
        yield started
        started.close()


def opened(browser: Browser, url: str, said: list[str], width: int) -> Page:
    """A page that has been told of the lab; what it complains of goes into `said`."""
    page = browser.new_context(viewport={"width": width, "height": 844}).new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    page.wait_for_selector("#links tr")
    return page


def slide(page: Page, name: str, value: str) -> None:
    page.fill(name, value)
    page.dispatch_event(name, "change")
