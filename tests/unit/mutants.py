"""What can be done to a text so that it is broken as a bad disk, a bad tool or a bad editor breaks it."""

from __future__ import annotations

import random
import re

TOKENS = (
    *("", "0", "-1", "1e999", "NaN", "Infinity", "9" * 400, "1.2.3", "null", "[]", "{}", '"', "\\", "\0", "é", "\n"),
    *("=", ": ", "@ ", "%", " ms", "true", "-0", "0x10", "\ud800", "{" * 2000),
)


def mutated(text: str, chance: random.Random) -> str:
    """`text` with one to four things done to it, of which each has been seen or can be imagined of a broken tool."""
    for _ in range(chance.randint(1, 4)):
        a, b = sorted(chance.randint(0, len(text)) for _ in range(2))
        match chance.randrange(7):
            case 0:
                text = text[:a]
            case 1:
                text = text[:a] + text[b:]
            case 2:
                text = text[:b] + text[a:b][:5000] + text[b:]
            case 3:
                text = text[:a] + chance.choice(TOKENS) + text[a:]
            case 4:
                numbers = list(re.finditer(r"-?\d+(?:\.\d+)?", text))
                if numbers:
                    found = chance.choice(numbers)
                    text = text[: found.start()] + chance.choice(TOKENS) + text[found.end() :]
            case 5:
                lines = text.splitlines(keepends=True)
                chance.shuffle(lines)
                text = "".join(lines)
            case _:
                text = text[:a] + chr(chance.randrange(0x250)) + text[a + 1 :]
    return text
