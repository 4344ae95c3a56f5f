"""Each language's reference page and JSON Schema keep up with its model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel

from minigts.experiment_language import claims as claim_language
from minigts.experiment_language import figures as figure_language
from minigts.experiment_language import model as experiment
from minigts.experiments import load as experiments
from minigts.language.validation import keys
from minigts.overlays import policy
from minigts.tools import OPEN, TOOLS, command, flows
from minigts.topology import host_settings, reference_page
from minigts.topology.containers import ContainerSpec
from minigts.topology.facts.hosts.containers import ComposeSpec
from minigts.topology.facts.hosts.processor import ProcessorSpec
from minigts.topology.facts.lab.expect import Expect
from minigts.topology.facts.lab.kubernetes import KubernetesSpec
from minigts.topology.facts.lab.tolerances import ToleranceSpec
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.read import load as topologies
from minigts.topology.read import model as topology
from minigts.topology.read.links import LinkSpec
from minigts.topology.schedule import Step
from minigts.topology.software import FileSpec

PROJECT = Path(__file__).parents[3]
HOSTS = ("ams", "bra", "mil")


@dataclass(frozen=True)
class Language:
    """A language's models by the prefix of their keys' headings, its page and schema, and how its files are read."""

    page: str
    schema: str
    schema_text: Callable[[], str]
    models: Mapping[str, type[BaseModel]]
    parse: Callable[[str], object]

    @property
    def reference(self) -> str:
        return (PROJECT / self.page).read_text(encoding="utf-8")

    @property
    def keys(self) -> list[str]:
        found = {prefix + key for prefix, model in self.models.items() for key in keys(model)}
        return sorted(found | {f"links[].{each.word}" for each in LINK_SETTINGS if "links[]." in self.models})


LANGUAGES = {
    "topology": Language(
        "docs/topology-language.md",
        "topologies/schema.json",
        topology.json_schema_text,
        {
            "": topology.Topology,
            "hosts.*.": host_settings.HostSpec,
            "hosts.*.processor.": ProcessorSpec,
            "hosts.*.files[].": FileSpec,
            "hosts.*.containers[].": ContainerSpec,
            "hosts.*.compose.": ComposeSpec,
            "switches.*.": topology.SwitchSpec,
            "links[].": LinkSpec,
            "schedule[].": Step,
            "expect[].": Expect,
            "kubernetes.": KubernetesSpec,
            "tolerances.": ToleranceSpec,
        },
        lambda text: topologies.parse(text, "reference"),
    ),
    "experiment": Language(
        "docs/experiment-language.md",
        "experiments/schema.json",
        experiment.json_schema_text,
        {
            "": experiment.Experiment,
            "measurements[].": experiment.MEASUREMENTS["netperf-rr"],
            "measurements[].paths[].": experiment.HostPair,
            "measurements[].ends.": experiment.Ends,
            "measurements[].links.": experiment.Links,
            "measurements[].cut.": experiment.Cut,
            "measurements[].cross[].": experiment.Crossing,
            "measurements[].queues.": experiment.Queues,
            **{f"{name}.": tool.options for name, tool in (*TOOLS.items(), *OPEN.items())},
            "command.also.*.": command.Numbered,
            "flows.flows.*.": flows.FLOWS["iperf3-tcp"],
            "claims[].": claim_language.Claim,
            "claims[].history[].": claim_language.Written,
            "published[].": claim_language.Published,
            "published[].values[].": claim_language.Value,
            "figures[].": figure_language.Figure,
            "figures[].lines[].": figure_language.Line,
            "figures[].axes.*.": figure_language.Axis,
            "figures[].style.": figure_language.Style,
            "paper.": experiment.Scale,
        },
        lambda text: experiments.parse(text, "reference"),
    ),
    "policy": Language(
        "docs/policy.md",
        "docs/policy.schema.json",
        policy.json_schema_text,
        {"": policy.Policy, "rules[].": policy.Rule, "rules[].allow.": policy.Flow},
        lambda text: policy.parse(text, "reference", HOSTS),
    ),
}
KEYS = [(name, key) for name, language in LANGUAGES.items() for key in language.keys]
EXAMPLES = [
    (name, example)
    for name, language in LANGUAGES.items()
    for example in re.findall(r"```yaml\n(.*?)```", language.reference, re.DOTALL)
]


@pytest.mark.parametrize(("language", "key"), KEYS)
def test_key_has_its_heading_and_an_example(language: str, key: str) -> None:
    sections = re.findall(rf"^### `{re.escape(key)}`\n(.*?)(?=^##|\Z)", LANGUAGES[language].reference, re.M | re.S)
    assert len(sections) == 1
    assert re.search(rf"`([^`]*[{{ ])?{re.escape(key.rpartition('.')[2])}: ", sections[0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_headings_name_keys_that_exist(language: str) -> None:
    reference = LANGUAGES[language].reference
    assert sorted(re.findall(r"^### `(.+)`$", reference, re.MULTILINE)) == LANGUAGES[language].keys


@pytest.mark.parametrize(("language", "example"), EXAMPLES)
def test_whole_example_is_good(language: str, example: str) -> None:
    assert LANGUAGES[language].parse(example)


@pytest.mark.parametrize("example", re.findall(r"`((?:chain|pair|star): \{.*\})`", LANGUAGES["topology"].reference))
def test_shorthand_example_is_good(example: str) -> None:
    assert topologies.parse(f"name: x\n{example}\n", "reference").paths


@pytest.mark.parametrize("language", LANGUAGES)
def test_shipped_schema_is_current(language: str) -> None:
    """`minigts schema LANGUAGE` prints it, and `bench/run reference` writes it."""
    assert (PROJECT / LANGUAGES[language].schema).read_text(encoding="utf-8") == LANGUAGES[language].schema_text()


def test_the_page_has_the_sections_that_follow_from_the_facts() -> None:
    """`bench/run reference` writes them."""
    page = LANGUAGES["topology"].reference
    assert reference_page.page_with_sections(page) == page


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_is_described(language: str) -> None:
    schema = json.loads(LANGUAGES[language].schema_text())
    models = [each for each in (schema, *schema["$defs"].values()) if "properties" in each]
    bare = [key for model in models for key, field in model["properties"].items() if "description" not in field]
    assert bare == []


@pytest.mark.parametrize("language", ["experiment", "policy"])
def test_every_part_of_the_language_is_among_those_that_the_page_is_held_to(language: str) -> None:
    """By its keys, or the page of the language that has the part, too. A topology's shorthands are held to it by their
    examples."""
    schema = json.loads(LANGUAGES[language].schema_text())
    known = [set(keys(model)) for each in LANGUAGES.values() for model in each.models.values()]
    parts = {name: set(part["properties"]) for name, part in schema["$defs"].items() if "properties" in part}
    assert [name for name, own in parts.items() if own not in known] == []


@pytest.mark.parametrize("path", sorted((PROJECT / "experiments").rglob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_experiment_names_its_schema(path: Path) -> None:
    up = "../" * (len(path.relative_to(PROJECT / "experiments").parts) - 1)
    assert path.read_text(encoding="utf-8").startswith(f"# yaml-language-server: $schema={up}schema.json\n")
    assert experiments.load(path).name == path.stem
