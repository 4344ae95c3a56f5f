"""Values that are one of a few words, such as `fq_codel`: the counterpart of a quantity (`quantities`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigts.language.problems import did_you_mean, shown


@dataclass(frozen=True)
class Words:
    """The words that a value may be. `what` names such a value in messages: `a routing mode`."""

    what: str
    words: tuple[str, ...]

    def parse(self, value: object) -> str:
        """The word. Raises ValueError with the list of words."""
        if not isinstance(value, str) or value not in self.words:
            hint = did_you_mean(value, self.words) if isinstance(value, str) else ""
            either = " or ".join([", ".join(self.words[:-1]), self.words[-1]] if self.words[1:] else self.words)
            raise ValueError(f"{shown(value)} is not {self.what}: write {either}{hint}")
        return value

    @property
    def example(self) -> str:
        return self.words[0]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such a value."""
        return {"type": "string", "enum": list(self.words)}
