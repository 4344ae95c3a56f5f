"""Pages of the documentation: where their links lead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"), *(PROJECT / "bench").glob("*.md")]
    if page.name != "CHANGELOG.md"
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<file>[^)#:\s]*)(?:#(?P<section>[^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)


def sections(page: Path) -> set[str]:
    """What a link may name behind the `#`, as forges make it of a heading: lower case, hyphens for spaces, no other
    sign; a second heading of the same words has -1 behind them."""
    found: dict[str, int] = {}
    anchors = set()
    for heading in HEADING.findall(page.read_text(encoding="utf-8")):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        anchors.add(anchor if anchor not in found else f"{anchor}-{found[anchor]}")
        found[anchor] = found.get(anchor, 0) + 1
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    wrong = []
    for link in LINK.finditer(text):
        target = page if not link["file"] else (page.parent / link["file"]).resolve()
        if not target.exists():
            wrong.append(f"{link[0]}: there is no such file")
        elif link["section"] and target.suffix == ".md" and link["section"] not in sections(target):
            wrong.append(f"{link[0]}: that page has no such section")
    assert wrong == []
