"""The lessons' pages as the browser shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from minigts import paths
from minigts.errors import InputError

FIGURES = "\n## What you see\n"
"""What begins the part of a lesson's page that tells what is measured."""


def folder() -> Path:
    return paths.project_root() / "docs" / "lessons"


def names() -> list[str]:
    """Of the lessons, as `3-queues`."""
    return sorted(file.stem for file in folder().glob("[0-9]*.md"))


def state(topology: str) -> dict[str, Any]:
    """What a page is told of them: their names, and which is that of the lab's topology, if it is one's."""
    known = names()
    return {"kind": "lessons", "names": known, "own": own(topology, known)}


def own(topology: str, known: Sequence[str]) -> str | None:
    """`1-delay-adds-up` for `lesson-1`. Pure."""
    return next((name for name in known if topology == f"lesson-{name.partition('-')[0]}"), None)


def page(name: str) -> str:
    """A lesson's text as HTML: no tags of its own, no pictures, and of links their words.

    What is measured is folded up, since it is to be predicted first. Raises InputError.
    """
    if name not in names():
        raise InputError("there is no such lesson")
    steps, heading, figures = (folder() / f"{name}.md").read_text(encoding="utf-8").partition(FIGURES)
    if not heading:
        return rendered(steps)
    return f"{rendered(steps)}<details><summary>What you see</summary>{rendered(figures)}</details>\n"


def rendered(text: str) -> str:
    """Pure. What looks like HTML in it is shown as it is written."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "autolink"])
    for rule in ("link_open", "link_close"):  # they lead to files of the project, which the page has not
        markdown.add_render_rule(rule, _nothing)
    return str(markdown.render(text))


def _nothing(*_: object) -> str:
    return ""
