"""Where a host is."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import text
from minigts.topology.fields import LONGEST_LOCATION
from minigts.topology.host_setting import HostSetting

Location: TypeAlias = Annotated[
    Annotated[str, text("a location", LONGEST_LOCATION, one_line=True)] | None,
    HostSetting(
        by_hand=True,
        planned=lambda written: written,
        page="""\
optional · text of one line, up to 60 characters · default: none · `location: AMS`

The host's place, for tables and figures. It has no effect on links, unless the file has [`delays: sites`](#delays).
""",
    ),
    Field(description="Location of the host, such as AMS, for figures and tables; with delays: sites, also for links."),
]
