"""Whether hosts spread flows over several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding, shown
from minigts.language.tree import Data
from minigts.topology.fields import Hashed
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft

_HASHES = get_args(Hashed)


def _hashed(value: object) -> str | None:
    words: dict[str, str | None] = {"true": "layer4", "false": None} | {word: word for word in _HASHES}
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{shown(value)} does not say how flows are spread: write true, false, layer3 or layer4")
    return words[str(value)]


def _problems(document: Mapping[str, Data], _: Draft) -> Iterator[Finding]:
    if document["ecmp"] != "false" and document.get("routing") == "neighbours":
        why = "`routing: neighbours` leaves hosts without routes"
        yield ("ecmp",), f"{why}, so there is nothing to spread; take one of the two out"


def _sentence(plan: Plan) -> str:
    if plan.ecmp is None:
        return ""
    of_what = {"layer3": "addresses", "layer4": "addresses and ports"}[plan.ecmp]
    return f"flows are spread over all equally good ways, by a hash of {of_what}"


Ecmp: TypeAlias = Annotated[
    Annotated[Hashed | None, BeforeValidator(_hashed), WithJsonSchema({"enum": [True, False, *_HASHES]})],
    LabSetting(
        elsewhere=Elsewhere(what="ecmp", why=NOWHERE, has=lambda plan: plan.ecmp, lost=True),
        problems=_problems,
        sentence=_sentence,
    ),
    Field(
        description="true or layer4: hosts spread flows over all equally good ways, by addresses and ports. layer3: "
        "by addresses alone. Default: false, one way."
    ),
]
