"""How a caller is told what is under way."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str], None]
"""Takes one sentence, as somebody may read it while they wait."""
