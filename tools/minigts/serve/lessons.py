"""The lessons' pages for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from minigts import paths
from minigts.errors import InputError

FIGURES = "\n## What you see\n"
"""The heading of the part of a lesson's page that has the measured figures."""


def folder() -> Path:
    return paths.project_root() / "docs" / "lessons"


def names() -> list[str]:
    """The names of all lessons, such as `3-queues`; a teacher's own, too."""
    return sorted(_pages())


def _pages() -> dict[str, Path]:
    return {file.stem: file for place in (folder(), *paths.lessons_roots()) for file in place.glob("[0-9]*.md")}


def state(topology: str) -> dict[str, Any]:
    """The message for the page: the lessons' names, and the lesson of the lab's topology, if it has one."""
    known = names()
    return {"kind": "lessons", "names": known, "own": own(topology, known)}


def own(topology: str, known: Sequence[str]) -> str | None:
    """The lesson of a topology: `1-delay-adds-up` for `lesson-1`; None: none. Pure."""
    return next((name for name in known if topology == f"lesson-{name.partition('-')[0]}"), None)


def page(name: str) -> str:
    """A lesson's text as HTML without pictures and links. HTML in the text is shown as text.

    The measured figures are folded up, since students predict first. Raises InputError when there is no such lesson.
    """
    file = _pages().get(name)
    if file is None:
        raise InputError("there is no such lesson")
    steps, heading, figures = file.read_text(encoding="utf-8").partition(FIGURES)
    if not heading:
        return render(steps)
    return f"{render(steps)}<details><summary>What you see</summary>{render(figures)}</details>\n"


def render(text: str) -> str:
    """Markdown as HTML; HTML in it is shown as text. Pure."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "autolink"])
    for rule in ("link_open", "link_close"):  # they lead to files of the project, which the server does not show
        markdown.add_render_rule(rule, _nothing)
    return str(markdown.render(text))


def _nothing(*_: object) -> str:
    return ""
