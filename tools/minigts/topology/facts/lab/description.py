"""What a topology is for."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import text
from minigts.topology.fields import LONGEST_DESCRIPTION
from minigts.topology.lab_setting import LabSetting

Description: TypeAlias = Annotated[
    Annotated[str, text("a description", LONGEST_DESCRIPTION)] | None,
    LabSetting(
        planned=lambda written: (written or "").strip(),
        page="""\
optional · text up to 4000 characters · default: empty · `description: Six hosts in a row`
""",
    ),
    Field(description="What it is for: the lesson or the figure."),
]
