"""The two documents of a release: its bill of materials (CycloneDX 1.6) and its origin (in-toto statement, SLSA 1.0).

Both are JSON with sorted keys and without the time of day, so the same release has the same documents.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping

from minigts.release.materials import Material

SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "minigts/release")
BUILD_TYPE = "minigts/release/1"


def bill(version: str, materials: Iterable[Material]) -> str:
    """The bill of materials, one component for each."""
    components = [_component(each) for each in materials]
    listed = json.dumps(components, sort_keys=True)
    return _text(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "serialNumber": f"urn:uuid:{uuid.uuid5(SPACE, version + listed)}",
            "metadata": {
                "component": {
                    "type": "application",
                    "bom-ref": "minigts",
                    "name": "minigts",
                    "version": version,
                    "licenses": [{"license": {"id": "Apache-2.0"}}],
                }
            },
            "components": components,
        }
    )


def _component(each: Material) -> dict[str, object]:
    made: dict[str, object] = {
        "type": "library",
        "bom-ref": f"{each.of}:{each.purl}",
        "name": each.name,
        "version": each.version,
        "purl": each.purl,
        "properties": [{"name": "minigts:part", "value": each.of}],
    }
    if each.sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": each.sha256}]
    return made


def origin(sums: Mapping[str, str], parts: Mapping[str, str], commit: str, version: str) -> str:
    """Where the files come from. `sums` are theirs by name, and `parts` has the sum of each built part's content by
    STORE/KEY."""
    return _text(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": sums[name]}} for name in sorted(sums)],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {"version": version},
                    "resolvedDependencies": [
                        _source(commit),
                        *({"name": name, "digest": {"sha256": parts[name]}} for name in sorted(parts)),
                    ],
                },
                "runDetails": {"builder": {"id": "minigts release build"}},
            },
        }
    )


def _source(commit: str) -> dict[str, object]:
    made: dict[str, object] = {"name": "source", "digest": {"gitCommit": commit.removesuffix("-dirty")}}
    return made | {"annotations": {"uncommitted": True}} if commit.endswith("-dirty") else made


def _text(tree: object) -> str:
    return json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
