"""What docs/evidence/documents.md quotes is read from short extracts of the documents, docs/published/extracts.yaml."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from minigts.language.formula import formula

PROJECT = Path(__file__).parents[2]
PUBLISHED = PROJECT / "docs" / "published"
PAGE = (PROJECT / "docs" / "evidence" / "documents.md").read_text(encoding="utf-8")
DOCUMENTS = Path(os.environ.get("MINIGTS_DOCUMENTS", PROJECT.parent / "shared" / "seeds"))
"""Where the documents themselves lie; they are not part of the project."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w]*\.yaml)")
PLACES = re.compile(r"\((?:[^()]*\b(?:sections?|figures?|its prose|appendix)\b[^()]*|the same[^()]*)\)")
"""Where a row names a document's section or figure."""
NAMES = re.compile(
    r"`[^`]*`|\]\([^)]*\)|report \d+|figures? \d+(?:'s)?|sections? [\d., and]+|Linux \d[\d.]*|Docker 1\.\d+"
)
"""What has a number in it that is no figure."""


@dataclass(frozen=True)
class Extract:
    document: str
    line: int
    quote: str


FILE: Mapping[str, list[dict[str, object]]] = yaml.safe_load((PUBLISHED / "extracts.yaml").read_text(encoding="utf-8"))
EXTRACTS = [Extract(**entry) for entry in FILE["extracts"]]  # type: ignore[arg-type]


def numbers(text: str) -> list[float]:
    """The figures of a text, in order; `8,700` is one."""
    return [float(found[0].replace(",", "")) for found in NUMBER.finditer(text)]


def of_quotes(document: str) -> set[float]:
    """Every number in a document's extracts: `560Mbits/s` and `24小时` have one, too."""
    quoted = " ".join(each.quote for each in EXTRACTS if each.document == document)
    return {float(found) for found in re.findall(r"\d+(?:\.\d+)?", quoted)}


def derived(document: str) -> dict[float, str]:
    """The figures that follow from the extracts, with what they are computed by."""
    return {
        float(entry["figure"]): str(entry["by"])  # type: ignore[arg-type]
        for entry in FILE["derived"]
        if entry["document"] == document
    }


def ours(document: str) -> set[float]:
    """The figures that are settings of an experiment in a claim's text, or of an image; each says what it is."""
    return {float(entry["figure"]) for entry in FILE["ours"] if entry["document"] == document and entry["what"]}  # type: ignore[arg-type]


def of_the_star() -> set[float]:
    """The least and the most of each number of workers in the authors' table, with those numbers."""
    with (PUBLISHED / "gts-2016-star.csv").open(encoding="utf-8") as file:
        table = [
            {key: float(row[key]) for key in ("workers", "mean_kbit", "jitter_ms")} for row in csv.DictReader(file)
        ]
    found = {row["workers"] for row in table}
    for workers in [*found]:
        for column, decimals in (("mean_kbit", 0), ("jitter_ms", 2)):
            own = [round(row[column], decimals) for row in table if row["workers"] == workers]
            found |= {min(own), max(own)}
    return found


def rows(report: str) -> Iterator[tuple[str, str]]:
    """What the document says, and what its own data say, of each row of a report's table."""
    _, _, rest = PAGE.partition(f"## Report {report}:")
    for line in rest.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("| ") else []
        if len(cells) == 6 and cells[0] != "the document says":
            yield cells[0], cells[1]


QUOTED = [
    pytest.param(report, says, id=f"{report}-{number}")
    for report in ("000", "001", "002", "003", "004")
    for number, (says, _) in enumerate(rows(report))
    if numbers(NAMES.sub("", PLACES.sub("", says)))
]


@pytest.mark.parametrize(("report", "says"), QUOTED)
def test_each_figure_that_a_row_quotes_is_in_an_extract(report: str, says: str) -> None:
    known = of_quotes(report) | {*derived(report)} | ours(report) | (of_the_star() if "(section 2)" in says else set())
    assert [each for each in numbers(NAMES.sub("", PLACES.sub("", says))) if each not in known] == [], says


@pytest.mark.parametrize("report", ["000", "003", "004"])
def test_each_figure_of_a_documents_own_log_is_in_an_extract(report: str) -> None:
    """Report 001's data are tables of others, and 002's were never published."""
    known = of_quotes(report) | {*derived(report)}
    said = {own: [each for each in numbers(NAMES.sub("", own)) if each not in known] for _, own in rows(report)}
    assert {own: lacking for own, lacking in said.items() if lacking} == {}


@pytest.mark.parametrize("report", ["000", "003", "004"])
def test_of_two_figures_of_a_document_the_ratio_is_derived(report: str) -> None:
    """So that 716 of 756, two figures of one log, is told from 715 of 756, its two totals."""
    cells = [cell for row in rows(report) for cell in row]
    pairs = {
        (float(found[1]), float(found[2]))
        for cell in cells
        for found in re.finditer(r"(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?) [MG]bit/s", cell)
    }
    ratios = [[each for each in numbers(by) if each != 100] for by in derived(report).values()]
    assert pairs and [pair for pair in pairs if [*pair] not in ratios] == []


def test_the_seconds_of_report_000s_log_are_those_of_its_log() -> None:
    """Three of nine were not."""
    _, _, rest = PAGE.partition("## Report 000's two logs\n")
    said = " ".join(rest.partition("\n## ")[0].split())
    seconds = re.search(r"first burst have ((?:\d+, )+\d+ and \d+) Mbit/s, ([\d.]+) in the mean", said)
    assert seconds is not None
    in_order = [
        float(found[1])
        for each in sorted(EXTRACTS, key=lambda each: each.line)
        if (found := re.search(r"sec .*Bytes\s+(\d+) Mbits/sec\s+0\s", each.quote)) and "1.5" in each.quote[-14:]
    ]
    assert numbers(seconds[1]) == in_order and len(in_order) == 9
    assert float(seconds[2]) == round(statistics.fmean(in_order), 1)
    totals = [each.quote for each in EXTRACTS if each.document == "000" and "sender" in each.quote]
    retransmitted = [int(quote.split()[-2]) for quote in totals]
    assert f"with {retransmitted[0]} retransmissions; over the overlay 715, with {retransmitted[1]}" in said


@pytest.mark.parametrize("entry", FILE["derived"], ids=lambda entry: f"{entry['document']}-{entry['figure']}")
def test_what_is_derived_follows_from_figures_of_the_extracts(entry: dict[str, object]) -> None:
    by = str(entry["by"])
    figures = [each for each in numbers(by) if each != 100]
    assert [each for each in figures if each not in of_quotes(str(entry["document"]))] == []
    decimals = len(str(entry["figure"]).partition(".")[2])
    assert round(formula(by).value({}), decimals) == float(str(entry["figure"]))


@pytest.mark.parametrize("network", ["flannel", "calico"])
def test_kubernetes_ratios_are_those_of_the_published_table(network: str) -> None:
    with (PUBLISHED / "k8s-cni-2024.csv").open(encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["pod_tcp_1_gbit"]]
    gbit = {
        name: [float(row["pod_tcp_1_gbit"]) for row in found if row["network"] == name]
        for name in (network, "baremetal")
    }
    medians, means = (
        round(100 * middle(gbit[network]) / middle(gbit["baremetal"]))
        for middle in (statistics.median, statistics.fmean)
    )
    name = {"flannel": "flannel", "calico": "Calico"}[network]
    assert f"over {name} has {medians} % of bare metal, by the medians.* | {means} % by the means;" in PAGE


@pytest.mark.parametrize("document", sorted(FILE["documents"]))
def test_the_extracts_are_of_the_documents_and_short(document: str) -> None:
    file: Mapping[str, str] = FILE["documents"][document]  # type: ignore[call-overload]
    own = [each for each in EXTRACTS if each.document == document]
    assert own and [each for each in own if len(each.quote) > 160] == []
    path = DOCUMENTS / file["name"]
    if not path.is_file():
        pytest.skip(f"{path} is not there: set MINIGTS_DOCUMENTS to the folder of the documents")
    content = path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == file["sha256"]
    lines = content.decode().split("\n")
    assert [each for each in own if each.quote not in lines[each.line - 1]] == []
