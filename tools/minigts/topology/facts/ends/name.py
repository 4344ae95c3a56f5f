"""The name of a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import matching
from minigts.language.problems import Finding, path_of
from minigts.topology.end_setting import EndSetting
from minigts.topology.fields import NAME, NAME_HINT
from minigts.topology.read.declared import DraftLink


def _problems(links: Sequence[DraftLink]) -> Iterator[Finding]:
    first: dict[str, DraftLink] = {}
    for link in (each for each in links if each.name is not None):
        if (other := first.setdefault(str(link.name), link)) is not link:
            yield (*link.where, "name"), f"link {link.name!r} is already declared in {path_of(other.where)}"


LinkName: TypeAlias = Annotated[
    Annotated[str, *matching(NAME_HINT, NAME)] | None,
    EndSetting(
        by_hand=True,
        problems=_problems,
        page="""\
optional · name like the file's, unique in it · default: the ends, `ams-bra`; a number follows where that is taken,
`ams-bra-2` · `name: northern`
""",
    ),
    Field(description="Name of the link. Default: its ends, such as ams-bra."),
]
