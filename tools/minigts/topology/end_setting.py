"""The description of a key of a link that is none of what it does to packets: names, addresses, costs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import WithJsonSchema

from minigts.language.problems import Finding, Misplaced, did_you_mean, list_names, quote
from minigts.topology.host_setting import Elsewhere
from minigts.topology.plan.elements import Link
from minigts.topology.plan.plan import Plan
from minigts.topology.read.declared import DraftLink

BY_END = WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1})
"""The schema of a mapping of a link's ends to texts."""


class Unfit(ValueError):
    """Why a text cannot be what it should be."""


class LinkOfPlan(NamedTuple):
    plan: Plan
    link: Link


def _nothing(_: Sequence[DraftLink]) -> Iterator[Finding]:
    return iter(())


@dataclass(frozen=True, kw_only=True, eq=False)
class EndSetting:
    """The properties of one key of a link. Whether a lab that is up may have another value stands at the plan's field
    (`plan/elements.py`)."""

    page: str
    """Its section of the reference page, with those of the keys below it, but for what `reference_page` adds."""
    by_hand: bool = False
    """Whether `minigts add` takes it for a link."""
    elsewhere: Elsewhere[LinkOfPlan] | None = None
    problems: Callable[[Sequence[DraftLink]], Iterator[Finding]] = _nothing
    """What is wrong with it in a file with these links."""


def texts_of_ends(
    value: object, what: str, example: str, read: Callable[[str], str], whats: str | None = None
) -> dict[str, str]:
    """A mapping of a link's ends to texts, each as `read` returns it. Raises ValueError, Misplaced."""
    if not isinstance(value, dict) or not value:
        wanted = f"write it as in {{ams: {example}}}"
        raise ValueError(f"{quote(value)} is no mapping of the link's ends to {whats or f'{what}es'}: {wanted}")
    findings: list[Finding] = []
    found: dict[str, str] = {}
    for end, written in value.items():
        try:
            found[str(end)] = read(written if isinstance(written, str) else "")
        except Unfit as error:
            findings.append(((end,), f"{quote(written)} is not an {what}: {error}"))
        except ValueError:
            findings.append(((end,), f"{quote(written)} is not an {what}: write it as in {example}"))
    if findings:
        raise Misplaced(findings)
    return found


def strange_ends(link: DraftLink, key: str, written: Mapping[str, str]) -> Iterator[Finding]:
    """What of this mapping of a link's key names no end of the link."""
    for name in written:
        if name not in link.ends:
            why = f"no end of the link; its ends are {list_names(link.ends)}{did_you_mean(name, link.ends)}"
            yield (*link.where, key, name), why
