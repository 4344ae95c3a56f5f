"""Decisions: the index names each page, each former number leads to one, and whatever cites a decision finds it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DECISIONS = PROJECT / "docs" / "decisions"
INDEX, _, FORMER = (DECISIONS / "README.md").read_text(encoding="utf-8").partition("## Former numbers\n")
NOTES = sorted(page for page in DECISIONS.glob("[a-z]*.md"))
SIGNS = sorted(DECISIONS.glob("[0-9]*.md"))
"""Pages that say where a former page has gone: those that files under provision/ link to, which stay as they are."""
SUFFIXES = {".md", ".py", ".rs", ".sh", ".yaml", ".j2", ".patch", ".toml", ".c", ".h", ""}
WORDS = 700


def former_pages() -> dict[str, list[str]]:
    """The pages into which each former page went, by its name without `.md`."""
    rows = re.findall(r"^\| (\d{4}-\S+) \| (.+) \|$", FORMER, re.MULTILINE)
    return {name: re.findall(r"\]\(([a-z-]+\.md)\)", pages) for name, pages in rows}


def cited() -> Iterator[tuple[str, str]]:
    """Each file of the project that names a page of a decision, with the name."""
    listed = subprocess.run(["git", "-C", PROJECT, "ls-files", "-z"], capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0")[:-1]:
        file = PROJECT / name
        if file.suffix in SUFFIXES and file.is_file() and file != Path(__file__) and file.parent != DECISIONS:
            text = file.read_text(encoding="utf-8", errors="replace")
            yield from ((name, page) for page in re.findall(r"\bdecisions/([\w-]+)\.md", text))


def test_the_index_names_each_page_by_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\((\S+)\)$", INDEX, re.MULTILINE)
    titles = [(page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# "), page.name) for page in NOTES]
    assert sorted(listed) == sorted(titles)
    assert all(title.endswith("?") for title, _ in titles)


@pytest.mark.parametrize("page", NOTES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= WORDS


def test_each_former_number_leads_to_the_pages_that_name_it() -> None:
    led: dict[str, set[int]] = {}
    for former, pages in former_pages().items():
        for page in pages:
            led.setdefault(page, set()).add(int(former[:4]))
    named = {}
    for page in NOTES:
        numbers = re.search(r"^Former numbers: (.+)\.$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if numbers:
            named[page.name] = {int(number) for number in re.sub(r"\(.*?\)", "", numbers[1]).split(",")}
    assert led == named


def test_no_former_number_stands_twice() -> None:
    numbers = re.findall(r"^\| (\d{4})-", FORMER, re.MULTILINE)
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 124


def test_every_decision_that_is_cited_is_there() -> None:
    known = {page.stem for page in [*NOTES, DECISIONS / "README.md"]}
    missing = [(name, page) for name, page in cited() if page not in known]
    assert [row for row in missing if not row[0].startswith("provision/")] == []
    assert {page for _, page in missing} <= {*former_pages()}


def test_links_under_provision_to_former_pages_lead_on() -> None:
    """Files there are inputs of builds, so they keep the names that they have."""
    linked = set()
    for page in (PROJECT / "provision").rglob("*.md"):
        linked |= set(re.findall(r"\]\([./]*docs/decisions/(\d{4}-[\w-]+)\.md\)", page.read_text(encoding="utf-8")))
    assert {page.stem for page in SIGNS} == linked
    for sign in SIGNS:
        pages = re.findall(r"\]\((\S+)\)", sign.read_text(encoding="utf-8"))
        assert pages == former_pages()[sign.stem][:1]


def test_no_page_cites_a_decision_by_its_number() -> None:
    """Numbers are former names, and stand in the table alone."""
    pages = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md"), *(PROJECT / "tools").rglob("*.py")]
    numbered = [
        str(page.relative_to(PROJECT))
        for page in pages
        if page.parent != DECISIONS and re.search(r"[Dd]ecisions?\s+\[?\d", page.read_text(encoding="utf-8"))
    ]
    assert numbered == []
