"""`minigts schema`: JSON Schemas of the languages."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from minigts.cli.verbs import PROJECT, Verb

verb = Verb(PROJECT, 480)


class SchemaOf(StrEnum):
    """The languages that have a schema."""

    TOPOLOGY = "topology"
    EXPERIMENT = "experiment"
    POLICY = "policy"


@verb.command()
def schema(
    language: Annotated[SchemaOf, typer.Argument(help="The kind of files.")] = SchemaOf.TOPOLOGY,
) -> None:
    """Print the JSON Schema of topology, experiment or policy files, for editors.

    Example:  minigts schema experiment > experiment.schema.json
    """
    from minigts.experiment_language import model as experiments
    from minigts.overlays import policy
    from minigts.topology.read import model as topologies

    texts = {
        SchemaOf.TOPOLOGY: topologies.json_schema_text,
        SchemaOf.EXPERIMENT: experiments.json_schema_text,
        SchemaOf.POLICY: policy.json_schema_text,
    }
    typer.echo(texts[language](), nl=False)
