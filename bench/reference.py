"""Writes the files that are generated from the languages' models: three JSON Schemas, and the sections of the
reference page that are of facts.

Run it after a change to a model or to the fact. Tests compare these files with its output. No hosts.
"""

from __future__ import annotations

import argparse

from bench import stage
from minigts.cli import console
from minigts.experiment_language import model as experiments
from minigts.overlays import policy
from minigts.topology import reference_page
from minigts.topology.read import model as topologies

PAGE = stage.PROJECT / "docs" / "topology-language.md"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    texts = {
        stage.PROJECT / "topologies" / "schema.json": topologies.json_schema_text(),
        stage.PROJECT / "experiments" / "schema.json": experiments.json_schema_text(),
        stage.PROJECT / "docs" / "policy.schema.json": policy.json_schema_text(),
        PAGE: reference_page.page_with_sections(PAGE.read_text(encoding="utf-8")),
    }
    for path, text in texts.items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            console.note(f"{path.relative_to(stage.PROJECT)} is written again")


if __name__ == "__main__":
    main()
