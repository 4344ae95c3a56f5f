"""Whether hosts spread flows over several ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypeAlias, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.problems import Finding, quote
from minigts.language.tree import Data
from minigts.topology.fields import Hashed
from minigts.topology.host_setting import Elsewhere
from minigts.topology.lab_setting import NOWHERE, LabSetting
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft
from minigts.topology.routing_engines import written_protocol

_HASHES = get_args(Hashed)


def _hashed(value: object) -> str | None:
    words: dict[str, str | None] = {"true": "layer4", "false": None} | {word: word for word in _HASHES}
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{quote(value)} does not say how flows are spread: write true, false, layer3 or layer4")
    return words[str(value)]


def _problems(document: Mapping[str, Data], _: Draft) -> Iterator[Finding]:
    if document["ecmp"] != "false" and written_protocol(document) == "neighbours":
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
        page="""\
optional, not with `routing: neighbours` · `true`, `false`, `layer3` or `layer4` · default: `false` · `ecmp: true`

Hosts spread flows over all equally good ways (equal-cost multipath), there and back, in `routed`, `ospf` and `bgp`
alike. Each host on the way chooses the next one by a hash of the packet: with `layer3` of both addresses, with
`layer4`, which `true` stands for, of the ports and the protocol, too. So all packets of a flow take one way. Different
flows between the same two hosts share a way with `layer3`, and may take different ones with `layer4`. Ping has no
ports, and takes one way with either.

- Equally good are ways with the same RTT and number of hops; with a [cost](#linkscost) or a protocol, with the same sum
  of costs. Links of the same RTT then cost the same in a protocol.
- Each host's hash has a seed of its own, which follows from [`seed`](#seed), so that the same flows take the same ways
  again. A kernel before Linux 6.11 has a random seed; `mininet` on this machine's own kernel may have such a one.
- `minigts plan` shows the number of ways, and `--json` lists up to 64 of them. Where ways differ, the RTT is a range,
  TCP's rate is one from the slowest way's to the fastest's, and the loss is the highest. [`expect`](#expect), claims
  and the certificate then accept whatever lies between the least and the most.
- With static routes a flow that is hashed to a cut link is lost: nothing tells a host to take another way. With `ospf`
  and `bgp` hosts find out. minigts counts a path as whole only while all its ways are.

[The decision on routes](decisions/routes.md) has the reasons.
""",
    ),
    Field(
        description="true or layer4: hosts spread flows over all equally good ways, by addresses and ports. layer3: "
        "by addresses alone. Default: false, one way."
    ),
]
