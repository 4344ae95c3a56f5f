"""Where the delays of links come from that say none."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from minigts.language.fields import choice
from minigts.topology.lab_setting import LabSetting

Delays: TypeAlias = Annotated[
    Annotated[Literal["written", "sites"], choice("where delays come from", "written", "sites")],
    LabSetting(
        planned=None,
        page="""\
optional · `written` or `sites` · default: `written` · `delays: sites`

The delay of a link for which neither the link, its shorthand nor `defaults` has a delay.

- `written`: the link has no delay.
- `sites`: the link has the delay between its ends' [locations](#hostslocation), which are then GTS's sites: AMS BRA CPH
  HAM LJU LON MAD MIL PAR PRG. A location that is no site is an error with its line; a link with an end without a
  location has no delay. `minigts plan` shows for each link whether its delay is from the file, measured, or from the
  distance. [GTS](gts.md#delays-between-sites) has the figures ([why](decisions/foreign-files.md)).
""",
    ),
    Field(
        description="sites: a link without a delay gets the one between its ends' locations, which are GTS's sites. "
        "written: it has none. Default: written."
    ),
]
