"""The description of a key of a lab, for every module that needs it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minigts.language.problems import Finding
from minigts.language.tree import Data
from minigts.topology.host_setting import Elsewhere, Feature
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import Draft

NOWHERE = "no other format has it"


def _nothing(*_: object) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, kw_only=True, eq=False)
class LabSetting:
    """The properties of one key of a lab. Whether a lab that is up may have another value stands at the plan's field
    (`plan/stored.py`), as all of a plan's fields say it."""

    page: str
    """Its section of the reference page, with those of the keys below it, but for what `reference_page` adds."""
    features: tuple[Feature[Plan], ...] = ()
    elsewhere: Elsewhere[Plan] | None = None
    field: str = ""
    """The field of the plan that follows from it. Default: the key."""
    planned: Callable[[Any], object] | None = lambda written: written
    """The value of that field for the value in a file. None where more than the key decides it."""
    problems: Callable[[Mapping[str, Data], Draft], Iterator[Finding]] = _nothing
    """What is wrong with the document, beyond the key's own value, where it has the key."""
    sentence: Callable[[Plan], str] = lambda _: ""
    """What `minigts plan` says of it; empty where it says nothing."""
    title: Callable[[Plan], str] = lambda _: ""
    """What `minigts status` says of it above a lab's table."""
    status: Callable[[Plan], object] | None = None
    """Its value in the JSON of `minigts status`; None where it is not there."""
