"""The sections of the topology language's reference page that are written from the facts' files: each key of a link, a
host, a lab and a link's ends. Pure.

Behind the words of a fact's `page` stands what follows from its other entries: whether a lab that is up may have
another value, whether a host or link that is added may have the key, and what becomes of it in other tools' files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from minigts.topology.host_setting import Elsewhere, HostSetting
from minigts.topology.host_settings import HOST_SETTINGS, field_of
from minigts.topology.link_settings import LINK_SETTINGS
from minigts.topology.plan import elements
from minigts.topology.plan.fact import Fact, fields_with_facts
from minigts.topology.plan.stored import Stored
from minigts.topology.read.links import BY_HAND, END_SETTINGS
from minigts.topology.read.model import LAB_SETTINGS

COLUMNS = 120
HOSTS, LINKS = "hosts.*.", "links[]."
_SETTABLE = (
    "All from `delay` on, except `jitter.table`, can also be [set](lab.md#set-and-partition) while the lab is up."
)
_KEY = re.compile(r"### `([^`]+)`\n")


def page_with_sections(page: str) -> str:
    """The page with these sections in place of those that it has. Raises ValueError where it lacks one."""
    written, left = sections(), []
    for part in re.split(r"(?m)^(?=##)", page):
        key = (found := _KEY.match(part)) and found[1]
        if key in written:
            left.append(written.pop(key))
        elif key is None or not _is_below(key):
            left.append(part)
    if written:
        raise ValueError(f"the page has no place for {', '.join(written)}")
    return "".join(left)


def _is_below(key: str) -> bool:
    """Whether the text of a fact has the section of `key`, as `kubernetes` has that of `kubernetes.proxy`."""
    prefix = next((each for each in (HOSTS, LINKS) if key.startswith(each)), "")
    head = re.split(r"[.\[]", key.removeprefix(prefix))[0]
    return head in {HOSTS: HOST_SETTINGS, LINKS: END_SETTINGS, "": LAB_SETTINGS}[prefix]


def sections() -> dict[str, str]:
    """By heading, each section with its heading and the line behind it."""
    found = {f"{LINKS}{each.word}": each.page for each in LINK_SETTINGS if not each.of_other_unit}
    last = next(reversed(found))
    found[last] += f"\n\n{_SETTABLE}"
    for key, of_lab in LAB_SETTINGS.items():
        fact = _fact(of_lab.field or key, Stored)
        found[key] = _text(of_lab.page, (*_while_up("A lab", fact), *_in_other_files(of_lab.elsewhere)))
    for key, of_host in HOST_SETTINGS.items():
        fact = _fact(field_of(key), elements.Host)
        further = (*_while_up("A host", fact), *_for_new_hosts(of_host), *_in_other_files(of_host.elsewhere))
        found[f"{HOSTS}{key}"] = _text(of_host.page, further)
    for key, of_ends in END_SETTINGS.items():
        fact = _fact(key, elements.Link, elements.HostPort)
        by_hand = () if key in BY_HAND else ("`minigts add link` does not take it.",)
        further = (*_while_up("A lab", fact), *by_hand, *_in_other_files(of_ends.elsewhere))
        found[f"{LINKS}{key}"] = _text(of_ends.page, further)
    return {key: f"### `{key}`\n{text}\n\n" for key, text in found.items()}


def _text(page: str, further: tuple[str, ...]) -> str:
    """A fact's own words, with these sentences before the sections of the keys below it."""
    own, *below = re.split(r"(?m)^(?=###)", page)
    added = textwrap.fill(" ".join(further), COLUMNS, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(each for each in (own.rstrip("\n"), added, "".join(below).rstrip("\n")) if each)


def _fact(name: str, *models: Any) -> Fact | None:
    """The fact of the field of that name, or of that key."""
    return next((fact for field, fact in fields_with_facts(*models) if name in (field, fact.key)), None)


def _while_up(what: str, fact: Fact | None) -> Iterator[str]:
    if fact is not None and fact.stays:
        yield f"{what} that is up keeps it: {fact.stays}."
    elif fact is not None and fact.described:
        yield f"{what} that is up takes another value with `up FILE`."


def _for_new_hosts(setting: HostSetting) -> Iterator[str]:
    if setting.from_start is not None:
        yield "Only a host that is there from the lab's start on can have it."
    elif not setting.by_hand:
        yield "`minigts add host` does not take it, and `up FILE` does."


def _in_other_files(elsewhere: Elsewhere[Any] | None) -> Iterator[str]:
    if elsewhere is not None:
        becomes = "loses it, and says so" if elsewhere.lost else "leaves it out, and says so"
        yield f"`minigts export` {becomes}: {elsewhere.why}."
