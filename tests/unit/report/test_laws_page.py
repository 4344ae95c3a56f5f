"""The page of laws, made from tests/unit/report_sample with laws written into its manifest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer.testing

from minigts import paths
from minigts.cli.app import app
from minigts.errors import InputError
from minigts.experiments.load import load
from minigts.report import laws

SAMPLE = Path(__file__).parents[1] / "report_sample"
VALIDATION = sorted((paths.project_root() / "experiments" / "validation").glob("*.yaml"))
DOCUMENTED = paths.project_root() / "docs" / "evidence" / "validation.md"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "results"))


def say(results: Path, name: str, change: Any) -> None:
    content = json.loads((results / name).read_text())
    change(content)
    (results / name).write_text(json.dumps(content))


def with_laws(results: Path, *laws_of_claims: str, used: tuple[float, ...] = (), verdict: str = "held") -> None:
    def in_the_manifest(manifest: Any) -> None:
        judged = [claim for claim in manifest["experiment"]["claims"] if claim.get("latency") != "as-declared"]
        for law, claim in zip(laws_of_claims, judged, strict=False):
            claim |= {"law": law, "text": claim["text"] or "Said.", "tolerance": "Derived.", "failure": "The wire."}

    def in_the_verdicts(verdicts: Any) -> None:
        for share, claim in zip(used, verdicts, strict=False):
            claim |= {"used": share, "verdict": verdict}

    say(results, "manifest.json", in_the_manifest)
    say(results, "claims.json", in_the_verdicts)


def test_claims_of_one_law_stand_together_and_the_worst_counts(results: Path) -> None:
    with_laws(results, "Sum", "Other", "Sum", used=(0.25, 0.5, 0.1, 0.75))
    [group] = laws.groups(results)
    assert [(law.name, len(law.claims), law.used, law.share) for law in group.laws] == [
        ("Sum", 2, 0.75, "75 %"),
        ("Other", 1, 0.1, "10 %"),
    ]
    assert {law.verdict for law in group.laws} == {"held"}
    with_laws(results, "Sum", used=(0.25, 1.5), verdict="failed")
    assert laws.groups(results)[0].laws[0].verdict == "failed"


def test_the_page_has_range_figures_and_meaning(results: Path) -> None:
    with_laws(results, "Sum", used=(0.25,))
    text = str(laws.page(laws.groups(results)))
    assert "| Sum | held | 25 % |  | [" in text and f"### {laws.KINDS[None]}\n" in text
    assert "*Range:* Derived." in text
    assert "*A failure would mean:* The wire." in text
    assert json.loads((results / "claims.json").read_text())[0]["detail"] in text
    assert "1 laws and references: 1 held." not in text and "1 law or reference: 1 held." in text


@pytest.mark.parametrize(
    ("quick", "command"), [(True, "minigts validate NAME --quick"), (False, "minigts validate NAME")]
)
def test_the_page_names_the_command_that_measured_it(results: Path, quick: bool, command: str) -> None:
    with_laws(results, "Sum", used=(0.25,))
    say(results, "manifest.json", lambda manifest: manifest.update({"quick": True} if quick else {}))
    [group] = laws.groups(results)
    assert group.command == command.replace("NAME", group.results.name)
    assert f"`{group.command}`" in str(laws.page([group]))


def test_results_without_a_law_have_no_page(results: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has a `law:`"):
        laws.groups(results)
    with pytest.raises(InputError):
        laws.groups(tmp_path / "nowhere")


@pytest.mark.parametrize(("verdict", "code"), [("held", 0), ("failed", 1), ("undecided", 1)])
def test_the_command_shows_the_laws_and_ends_with_1_unless_all_hold(results: Path, verdict: str, code: int) -> None:
    with_laws(results, "Sum", used=(0.25,), verdict=verdict)
    target = results.parent / "page.md"
    ran = typer.testing.CliRunner().invoke(app, ["validate", "--from", str(results), "--page", str(target)])
    assert ran.exit_code == code, ran.output
    assert "Sum" in ran.output and "25 %" in ran.output
    assert target.read_text() == str(laws.page(laws.groups(results)))
    assert (results.parent / laws.FIGURE).read_text().startswith("<?xml")


def test_a_failure_that_its_file_explains_is_shown_and_does_not_end_with_1(results: Path) -> None:
    with_laws(results, "Sum", used=(2.0,), verdict="failed")
    say(results, "manifest.json", lambda manifest: manifest["experiment"]["claims"][0].update(why="Known."))
    [law] = laws.groups(results)[0].laws
    assert (law.verdict, law.explained, law.shown) == ("failed", True, "failed, explained")
    page = str(laws.page(laws.groups(results)))
    assert "1 law or reference: 1 failed, explained.\n" in page and "*Came out:* **failed, explained**" in page
    ran = typer.testing.CliRunner().invoke(app, ["validate", "--from", str(results)])
    assert ran.exit_code == 0
    assert "*Why:* Known." in (results / laws.PAGE).read_text()


HISTORY = [
    {"since": "2026-11-26", "range": "under 5 ms", "figures": "before", "came_out": "7 ms", "why": "Frames wait."},
    {"since": "2026-11-27", "range": "under 9 ms", "figures": "after"},
]


def test_laws_are_sorted_by_what_they_test_and_say_when_their_ranges_were_written(results: Path) -> None:
    with_laws(results, "Sum", "Other", used=(0.25, 0.5))

    def sorted_by_kind(manifest: Any) -> None:
        for claim in manifest["experiment"]["claims"]:
            if claim.get("law"):
                claim |= {"kind": {"Sum": "emerges", "Other": "clock"}[claim["law"]], "history": HISTORY}

    say(results, "manifest.json", sorted_by_kind)
    page = laws.page(laws.groups(results))
    text = str(page)
    emerges, clock = text.index("### What emerges\n"), text.index("### The clock against its own settings\n")
    assert emerges < text.index("| Sum |") < clock < text.index("| Other |")
    written = "2026-11-27, after its figures; formerly under 5 ms (came out: 7 ms)"
    [row] = [line for line in text.splitlines() if line.startswith("| Sum |")]
    assert f" | {written} | [" in row and f"- *Range written:* {written}\n" in text
    assert "- *Given up:* under 5 ms, 2026-11-26, before its figures: Frames wait.\n" in text
    (results / "page.md").write_text(text)
    assert laws.read_page(results / "page.md") == page


def test_claims_whose_ranges_are_of_different_days_are_counted(results: Path) -> None:
    with_laws(results, "Sum", "Sum", used=(0.25, 0.5))

    def of_one_claim(manifest: Any) -> None:
        next(claim for claim in manifest["experiment"]["claims"] if claim.get("law"))["history"] = HISTORY

    say(results, "manifest.json", of_one_claim)
    [law] = laws.groups(results)[0].laws
    assert law.written == (
        "2026-11-27, after its figures (1 of 2 claims); not said (1 of 2 claims); formerly under 5 ms (came out: 7 ms)"
    )


def test_nothing_on_the_page_holds_at_the_end_of_its_range() -> None:
    """A claim fails there, says the page; RED stood at 100 % as held."""
    rows = laws.read_page(DOCUMENTED).table
    assert [row.law for row in rows if row.word == "held" and row.used is not None and row.used >= 1] == []


def test_a_renewed_page_keeps_what_was_not_measured(results: Path, tmp_path: Path) -> None:
    with_laws(results, "Sum", used=(0.25,))
    made = laws.page(laws.groups(results))
    [name] = made.sections
    target = tmp_path / "page.md"
    target.write_text(DOCUMENTED.read_text(encoding="utf-8"), encoding="utf-8")
    ran = typer.testing.CliRunner().invoke(app, ["validate", "--from", str(results), "--renew", str(target)])
    assert ran.exit_code == 0, ran.output
    before, after = laws.read_page(DOCUMENTED), laws.read_page(target)
    assert after.sections == dict(sorted({**before.sections, **made.sections}.items()))
    assert after.sections[name].rows == made.table
    assert {*after.table} == {*before.table, *made.table}
    again = typer.testing.CliRunner().invoke(app, ["validate", "--from", str(results), "--renew", str(target)])
    assert (again.exit_code, target.read_text()) == (0, str(after))


def test_the_page_in_the_documentation_is_read_as_it_was_written() -> None:
    assert str(laws.read_page(DOCUMENTED)) == DOCUMENTED.read_text(encoding="utf-8")


def test_what_is_no_page_is_not_renewed(results: Path, tmp_path: Path) -> None:
    with_laws(results, "Sum", used=(0.25,))
    other = tmp_path / "other.md"
    other.write_text("# Mine\n\n## A section\n")
    ran = typer.testing.CliRunner().invoke(app, ["validate", "--from", str(results), "--renew", str(other)])
    assert (ran.exit_code, other.read_text()) == (2, "# Mine\n\n## A section\n")
    assert "is no page of `minigts validate`" in ran.output


@pytest.mark.parametrize("words", [["nothing"], ["loss-law", "--from", "."], ["--quick", "--from", "."]])
def test_what_the_command_cannot_do_is_one_error(words: list[str]) -> None:
    ran = typer.testing.CliRunner().invoke(app, ["validate", *words])
    assert ran.exit_code == 2


@pytest.mark.parametrize("file", VALIDATION, ids=lambda file: file.stem)
def test_each_experiment_of_validation_is_on_the_page_as_it_is_now(file: Path) -> None:
    page = DOCUMENTED.read_text(encoding="utf-8")
    experiment = load(file)
    claims = [claim for claim in experiment.quick_version().claims if claim.law]
    assert claims, "its quick form says no law"
    assert f"## {experiment.name}\n" in page
    for claim in claims:
        assert f"### {claim.law}\n" in page, "`minigts validate --page docs/evidence/validation.md` makes it again"
        assert f"`{claim.words}`" in page
        assert claim.tolerance.strip() in page
        assert f"*Range written:* {laws.HeldLaw(claim, ()).written}\n" in page
        assert f"### {laws.KINDS[claim.kind]}\n" in page
