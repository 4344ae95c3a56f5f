"""Writes the traces beside it: moments at which three kinds of radio links deliver a packet, made up and not measured.

    python3 topologies/traces/generate.py

Each line is a millisecond in which 1500 bytes may be delivered, as mm-link (mahimahi) reads them. The same seed gives
the same bytes. What each link imitates is said where it is made; none is a record of a network.
"""

import math
import random
from collections.abc import Iterator
from pathlib import Path

SEED = 59
PACKET_BITS = 1500 * 8
"""Of a delivery opportunity."""


def cellular(chance: random.Random) -> Iterator[float]:
    """Mbit/s in each millisecond of a phone that moves, for a minute: the rate wanders around 6 Mbit/s by a factor, the
    more the longer one waits, and a handover stops it for 50 to 300 ms every ten seconds or so."""
    away, stopped_ms = 0.0, 0
    for _ in range(60_000):
        away += -away / 2000 + chance.gauss(0, 0.025)
        if not stopped_ms and chance.random() < 1e-4:
            stopped_ms = chance.randint(50, 300)
        stopped_ms = max(0, stopped_ms - 1)
        yield 0.0 if stopped_ms else 6 * math.exp(away)


def wireless_lan(chance: random.Random) -> Iterator[float]:
    """Mbit/s in each millisecond of a station among others, for ten seconds: it sends some packets at once when it has
    won the medium, every 2 to 8 ms, and stays silent for up to 60 ms while others send or its frames are repeated."""
    wait_ms = 0
    for _ in range(10_000):
        if wait_ms:
            wait_ms -= 1
            yield 0.0
            continue
        wait_ms = chance.randint(2, 8) if chance.random() > 0.02 else chance.randint(20, 60)
        yield chance.randint(2, 16) * PACKET_BITS / 1000


def satellite(chance: random.Random) -> Iterator[float]:
    """Mbit/s in each millisecond of the way up to satellites in low orbits, for a minute: a new satellite every 15 s,
    each with a rate of its own between 5 and 15 Mbit/s, some 40 to 100 ms without any as it takes over, and small
    changes within."""
    for _ in range(4):
        rate, silent_ms = chance.uniform(5, 15), chance.randint(40, 100)
        for at in range(15_000):
            yield 0.0 if at < silent_ms else rate * (1 + 0.1 * math.sin(at / 700) + chance.gauss(0, 0.1))


def opportunities(rates_mbit: Iterator[float]) -> Iterator[int]:
    """The milliseconds of packets, so that their bits are those of the rates; the last line is the end of the trace."""
    bits, at = 0.0, 0
    for at, rate in enumerate(rates_mbit, start=1):
        bits += max(0.0, rate) * 1000
        while bits >= PACKET_BITS:
            bits -= PACKET_BITS
            yield at
    yield at


def main() -> None:
    for make in (cellular, wireless_lan, satellite):
        lines = "".join(f"{at}\n" for at in opportunities(make(random.Random(SEED))))
        Path(__file__).with_name(f"{make.__name__.replace('_', '-')}.trace").write_text(lines)


if __name__ == "__main__":
    main()
