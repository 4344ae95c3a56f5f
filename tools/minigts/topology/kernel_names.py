"""The kernel that hosts have whose file names none. It is apart from the fact, as every `minigts --help` reads it."""

from __future__ import annotations

STANDARD = "standard"
"""Its name, which no plan stores."""
