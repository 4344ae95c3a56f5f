"""The metadata of a bundle: RO-Crate 1.1 (w3id.org/ro/crate/1.1), one JSON document in its root. Pure.

The library rocrate is not used, as it needs HTTP clients for what takes few lines here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from minigts.results import schema, sweeps
from minigts.results.schema import Manifest

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"
PROVEN = "proven: it had the bytes that this version of minigts expects"
UNPROVEN = "unproven: it had other bytes than this version of minigts expects"
TYPES = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".yaml": "application/yaml",
    ".log": "text/plain",
}
ABOUT = {
    schema.MANIFEST: "the experiment as it stood, the plan, versions, the machine, what was read back",
    schema.SAMPLES: "a row a sample",
    schema.SUMMARY: "a row for the samples that differ in nothing but their repetition",
    schema.SERIES: "what was watched over time",
    schema.FLOWS: "a row for each of the flows that ran at the same time",
    schema.CLAIMS: "each claim's verdict, with figures",
    schema.CERTIFICATE: "the lab against its plan, before the first sample",
    schema.EXPERIMENT: "the experiment's file",
    schema.TOPOLOGY: "the topology's file",
    schema.LOG: "what the run did and when",
    schema.REPORT: "figures and tables",
    **{sweeps.ALL + name: f"the rows of {name} of all labs of a sweep" for name in sweeps.TABLES},
}


@dataclass(frozen=True)
class CrateFile:
    """One file of a bundle."""

    name: str
    size: int
    sha256: str


def metadata(name: str, runs: Mapping[str, Manifest], files: Sequence[CrateFile]) -> str:
    """The metadata of a bundle called `name`; `runs` are its manifests by their folders."""
    first = next(iter(runs.values()))
    ended = max(run.ended or run.started for run in runs.values())
    experiments = ", ".join(dict.fromkeys(run.experiment.name for run in runs.values()))
    program = f"#minigts-{first.minigts}"
    measured = f"What minigts measured in its experiments {experiments}, and all that doing it again takes"
    version = " ".join(part for part in (first.minigts, first.commit) if part)
    graph = _graph(name, measured, ended, files, program, version)
    graph[1]["mentions"] = _named(map(_action, runs))
    parts: dict[str, dict[str, Any]] = {}
    for folder, run in runs.items():
        own = {word: f"#{word}-{facts.sha256[:16]}" for word, facts in run.parts.items()}
        for word, facts in run.parts.items():
            about = {"name": f"the hosts' {word}", "identifier": facts.key, "sha256": facts.sha256}
            if facts.proven is not None:
                about["description"] = PROVEN if facts.proven else UNPROVEN
            parts[own[word]] = {"@id": own[word], "@type": "SoftwareApplication", **about}
        graph.append(_run(folder, run, program, [*own.values()], files))
    graph += parts.values()
    return _document(graph)


def plain(name: str, about: str, version: str, moment: str, files: Sequence[CrateFile]) -> str:
    """The metadata of a bundle without runs: what it is about in words, the version of minigts, and when it was."""
    return _document(_graph(name, about, moment, files, f"#minigts-{version.replace(' ', '-')}", version))


def _graph(
    name: str, about: str, moment: str, files: Sequence[CrateFile], program: str, version: str
) -> list[dict[str, Any]]:
    """What the metadata of each bundle have: itself, its content, the program, the files."""
    return [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": {"@id": PROFILE},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": name,
            "description": about,
            "datePublished": moment,
            "license": "as whoever made this bundle says; minigts itself has no say in that",
            "hasPart": _named(each.name for each in files),
        },
        {"@id": program, "@type": "SoftwareApplication", "name": "minigts", "softwareVersion": version},
        *(_file(each) for each in files),
    ]


def _document(graph: list[dict[str, Any]]) -> str:
    context = [f"{PROFILE}/context", {"sha256": "https://schema.org/sha256"}]
    return json.dumps({"@context": context, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _named(places: Iterable[str]) -> Any:
    """References to places; RO-Crate has a single one outside a list."""
    found = [{"@id": each} for each in places]
    return found[0] if len(found) == 1 else found


def _action(folder: str) -> str:
    return f"#run-{folder.strip('/').replace('/', '-')}"


def _run(folder: str, run: Manifest, program: str, parts: Sequence[str], files: Sequence[CrateFile]) -> dict[str, Any]:
    own = [each.name for each in files if str(PurePosixPath(each.name).parent) == folder]
    sources = [f"{folder}/{name}" for name in (schema.EXPERIMENT, schema.TOPOLOGY) if f"{folder}/{name}" in own]
    action = {
        "@id": _action(folder),
        "@type": "CreateAction",
        "name": f"{run.experiment.name}, {run.plan.time} time, seed {run.experiment.seed}, on {run.provider}",
        "instrument": {"@id": program},
        "object": _named((*sources, *parts)),
        "result": _named(each for each in own if each not in sources),
        "startTime": run.started,
    }
    return action | ({"endTime": run.ended} if run.ended else {})


def _file(each: CrateFile) -> dict[str, Any]:
    path = PurePosixPath(each.name)
    about = ABOUT.get(path.name) or ("one attempt at one sample" if path.parent.name == schema.RAW else "")
    return {
        "@id": each.name,
        "@type": "File",
        "name": path.name,
        **({"description": about} if about else {}),
        "contentSize": str(each.size),
        "encodingFormat": TYPES.get(path.suffix, "application/octet-stream"),
        "sha256": each.sha256,
    }
