"""The site's pages: each page is in a part or listed by another, and those made of the program have all of it. Links
and Sphinx's own reading are tried by `docs/site/build --check`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from minigts import api, paths
from minigts.cli import verbs
from minigts.cli.app import app

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(PROJECT)
    from docs.site import build_site  # noqa: PLC0415 -- docs is a package for its own command alone

    yield build_site


def test_every_page_is_in_a_part_or_linked_from_one(site: ModuleType, tmp_path: Path) -> None:
    site.lay_out(tmp_path)
    pages = {*tmp_path.rglob("*.md")} - {tmp_path / "index.md"}
    parts = [tmp_path / f"{page}.md" for part in site.PARTS for page in site.pages_of(part, tmp_path)]
    listed = {page for pattern in site.LISTED for page in tmp_path.glob(f"{pattern}.md")}
    assert len(parts) == len(set(parts))
    assert {*parts} | listed == pages
    assert not {*parts} & listed
    linked = {(page.parent / link["file"]).resolve() for page in parts for link in site.LINK.finditer(page.read_text())}
    assert listed - linked == set()


def test_the_first_page_fits_a_screen_and_has_three_ways_in(site: ModuleType, tmp_path: Path) -> None:
    site.lay_out(tmp_path)
    first, *lists = (tmp_path / "index.md").read_text(encoding="utf-8").split("```{toctree}")
    assert len(re.sub(r"\]\([^)]*\)|!\[[^\]]*", "", first).split()) < 220
    assert re.findall(r"^\| \*\*(\w+)\*\* \|", first, re.MULTILINE) == ["student", "researcher", "engineer"]
    assert {(tmp_path / file).exists() for file in re.findall(r"\]\(([^)]+)\)", first)} == {True}
    assert len(lists) == len(site.PARTS)
    assert all(":hidden:" in each for each in lists)


def test_a_link_to_a_folder_is_words_on_the_site(site: ModuleType) -> None:
    page = PROJECT / "docs" / "gts.md"
    assert site.without_folders("see [gts](../topologies/gts), [it](lab.md)", page) == "see gts, [it](lab.md)"


@pytest.mark.parametrize("name", verbs.names())
def test_a_verbs_page_has_all_its_options_and_examples(site: ModuleType, name: str) -> None:
    command: Any = verbs.verb(name).command_named(name)
    text = site.reference.verb_text(name)
    for each in getattr(command, "commands", {"": command}).values():
        for parameter in each.params:
            if parameter.param_type_name == "option":
                assert all(f"`{word}`" in text for word in parameter.opts), parameter.name
        for example in re.findall(r"^Example: +(.*)$", each.help or "", re.MULTILINE):
            assert f"    {example}\n" in text


@pytest.mark.parametrize("language", ["topology", "experiment", "policy"])
def test_every_key_of_a_schema_is_on_its_page(site: ModuleType, language: str) -> None:
    _, file, _ = site.reference.LANGUAGES[language]
    schema = json.loads((PROJECT / file).read_text())
    text = site.reference.keys_page(language)
    shown = {key.rsplit(".", 1)[-1].removesuffix("[]") for key in re.findall(r"^\[?`([^`]+)`", text, re.MULTILINE)}
    described = [schema, *schema.get("$defs", {}).values()]
    assert {key for node in described for key in node.get("properties", {})} <= shown


def test_the_page_of_python_has_every_name_and_method(site: ModuleType) -> None:
    text = site.reference.python_page()
    for name in api.__all__:
        assert f"## `{name}`\n" in text
        if not inspect.isclass(getattr(api, name)):
            continue
        for member, value in inspect.getmembers(getattr(api, name), inspect.isfunction):
            if (
                not member.startswith("_")
                and inspect.isclass(getattr(api, name))
                and value.__module__.startswith("minigts")
            ):
                assert f"### `{name}.{member}()`\n" in text


def test_docs_says_where_the_site_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    for unset in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(unset, raising=False)
    missing = CliRunner().invoke(app, ["docs"])
    assert (missing.exit_code, "docs/site/build" in missing.output) == (3, True)
    (tmp_path / "site" / "man").mkdir(parents=True)
    for file in ("index.html", "man/minigts.1", "man/minigts-up.1"):
        (tmp_path / "site" / file).touch()
    for words, page in ((["docs"], "index.html"), (["docs", "--man", "up"], "man/minigts-up.1")):
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, done.output) == (0, f"{tmp_path / 'site' / page}\n")
    for wrong in ("upp", "../index"):
        done = CliRunner().invoke(app, ["docs", "--man", wrong])
        assert (done.exit_code, "no man page" in done.output) == (2, True)
