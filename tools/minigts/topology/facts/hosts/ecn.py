"""Whether TCP of a host asks for explicit congestion notification."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from minigts.language.quantities import Words
from minigts.topology import sysctls as tuning
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host

_ECN = Words("a choice of ECN", tuple(tuning.ECN_VALUES))


def _ecn(host: Host) -> str | None:
    return next((each.value for each in host.sysctls if each.name == tuning.ECN), None)


def _planned(written: str | None) -> tuple[tuning.Sysctl, ...]:
    return () if written is None else (tuning.Sysctl(name=tuning.ECN, value=tuning.ECN_VALUES[written]),)


def _asks_accurate_ecn(host: Host) -> bool:
    return _ecn(host) == tuning.ECN_VALUES["accurate"]


Ecn: TypeAlias = Annotated[
    Annotated[str, BeforeValidator(_ECN.parse), WithJsonSchema(_ECN.schema)] | None,
    HostSetting(
        by_hand=True,
        field="sysctls",
        planned=_planned,
        features=(
            Feature(
                name="accurate ECN",
                asks=lambda host: "ecn: accurate" if _asks_accurate_ecn(host) else "",
                only="virtual",
                written=lambda value: value == "accurate",
                untimely="accurate ECN exists only in virtual time, whose kernel has it, and this lab runs in real "
                "time: write `ecn: on`",
            ),
        ),
        elsewhere=Elsewhere(
            what="ecn", why="no other format has it as we do", has=lambda host: _ecn(host) is not None, lost=True
        ),
        page="""\
optional · `off`, `on` or `accurate` · default: Linux's own, which accepts ECN and does not ask for it · `ecn: on`

Whether the host's TCP asks for explicit congestion notification when it opens a connection, and accepts it from others.
`on` is ECN by RFC 3168, and `off` does neither. `accurate` asks for accurate ECN (AccECN), which reports how many
packets were marked and not only that some were; only the kernel of [virtual time](#time) has it. What marks is a [queue
discipline](#queue-disciplines). DCTCP (`sysctls: {net.ipv4.tcp_congestion_control: dctcp}`) asks for ECN by itself; the
other end accepts it by default.

The key sets `net.ipv4.tcp_ecn` to 0 (`off`), 1 (`on`) or 3 (`accurate`), and `plan`, the manifest and the certificate
name it so. Containers have a network of their own, in which Linux's own value holds.
""",
    ),
    Field(
        description="Whether TCP asks for ECN: on (RFC 3168), accurate (AccECN) or off, which does not accept it "
        "either. Default: Linux's own: it accepts ECN and does not ask."
    ),
]
