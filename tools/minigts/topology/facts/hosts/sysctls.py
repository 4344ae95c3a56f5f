"""Settings of a host's kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.problems import list_names
from minigts.topology import sysctls as tuning
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host


def _of_whole_kernel(host: Host) -> str:
    names = [each.name for each in host.sysctls if tuning.is_of_whole_kernel(each.name)]
    return f"sysctls: {list_names(names)}" if names else ""


def _planned(written: Mapping[str, str] | None) -> tuple[tuning.Sysctl, ...]:
    return tuple(tuning.Sysctl(name=name, value=value) for name, value in (written or {}).items())


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    yield from (f"tuned: {words}" for words in tuning.tuning_lines((host.name, host.sysctls) for host in hosts))


Sysctls: TypeAlias = Annotated[
    Annotated[dict[str, str], *tuning.WRITTEN] | None,
    HostSetting(
        by_hand=True,
        planned=_planned,
        sentences=_sentences,
        features=(Feature(name="sysctls of a kernel of its own", asks=_of_whole_kernel),),
        elsewhere=Elsewhere(
            what="sysctls",
            why="each format has them otherwise, or not at all",
            has=lambda host: any(each.name != tuning.ECN for each in host.sysctls),
            lost=True,
        ),
        page="""\
optional · mapping of names to values · default: Linux's own · `sysctls: {net.core.rmem_default: 4194304}`

Settings of the host's kernel, as `sysctl` names them: the sizes of sockets' buffers and their limits, the number of
frames that may wait for the kernel, and TCP's congestion control. Without the key every host has the defaults of Linux
7.2:

| setting | Linux's own | values |
|---|---|---|
| `net.core.rmem_default`, `net.core.wmem_default` | `212992` | bytes, 4608 or more |
| `net.core.rmem_max`, `net.core.wmem_max` | `4194304` | bytes, 4608 or more: the most that a program may ask for |
| `net.core.netdev_max_backlog` | `1000` | frames |
| `net.ipv4.tcp_rmem` | `4096 131072 33554432` | least, default and most bytes of a TCP socket's receive buffer |
| `net.ipv4.tcp_wmem` | `4096 16384 4194304` | the same of its send buffer |
| `net.ipv4.tcp_congestion_control` | `cubic` | `bbr`, `cubic`, `dctcp`, `htcp`, `reno`, `vegas`, `westwood` |

The send buffer of 4 MB limits TCP over long and fast links: over 100 ms and 1 Gbit/s one connection carries 225 Mbit/s,
2.8 MB a round trip. The plan predicts 168 to 336: of a send buffer at least half is payload, of a receive buffer [107
to 151 of 256](evidence/virtual-time.md#a-window-of-two-sizes). A larger buffer lifts this limit; declare it in the file
where figures need it: `sysctls: {net.ipv4.tcp_wmem: 4096 16384 16777216}`. `plan`, the manifest and the report show the
settings that differ from Linux's own; the [certificate](evidence/trust.md) reads all of these back. The host's
containers have the same settings.

Any other setting under `net.` may be written, too, up to 100 a host: `sysctls: {net.ipv4.tcp_notsent_lowat: 16384,
net.ipv4.conf.eth1.proxy_arp: 1}`. It is set when the host's interfaces have their names, and read back in the words of
the file. A setting that the host's kernel does not have, or a value that it refuses, ends `up` with an error. The
plan's figures do not follow these settings, and containers do not have them. Those by which a host forwards as planned,
such as `net.ipv4.ip_forward`, are the lab's own, and `net.ipv4.tcp_ecn` is [`ecn`](#hostsecn): the file cannot have
them here. Set what is not under `net.` by `run:`.

On `mininet`, whose hosts share a kernel, `net.core.*` is refused; `net.ipv4.*` is each host's own. [The decision on
what hosts have](decisions/what-hosts-have.md) has the reasons.
""",
    ),
    Field(
        description="Settings of the host's kernel by their names: buffers, queues, TCP's congestion control. Default: "
        "Linux's own."
    ),
]
