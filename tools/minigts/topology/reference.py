"""The sections of the topology language's reference page on the settings of links. Pure."""

from __future__ import annotations

from minigts.topology.link_settings import LINK_SETTINGS

_FIRST, _BEHIND = f"### `links[].{LINK_SETTINGS[0].word}`\n", "### `links[].mtu`\n"
_SETTABLE = "All from `delay` on can also be [set](lab.md#set-and-partition) while the lab is up.\n\n"


def sections() -> str:
    """A heading and a text for each setting, in the order of the schema."""
    of_each = (f"### `links[].{each.word}`\n{each.page}\n\n" for each in LINK_SETTINGS)
    return "".join(of_each) + _SETTABLE


def written_into(page: str) -> str:
    """The page with these sections in place of those that it has."""
    before, first, rest = page.partition(_FIRST)
    _, behind, after = rest.partition(_BEHIND)
    if not first or not behind:
        raise ValueError("the page has no place for the settings of links")
    return before + sections() + behind + after
