"""Whether a host has a way out of the lab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host
from minigts.topology.routes.addresses import gateway_in_words


def _sentences(hosts: Sequence[Host]) -> Iterator[str]:
    if ways_out := [host.name for host in hosts if host.gateway]:
        yield f"has {gateway_in_words(ways_out)}"


Gateway: TypeAlias = Annotated[
    Annotated[bool, *truth("the host has a way out of the lab")] | None,
    HostSetting(
        from_start=lambda host: host.gateway,
        planned=bool,
        sentences=_sentences,
        features=(
            Feature(
                name="a way out",
                asks=lambda host: "gateway: true" if host.gateway else "",
                only="real",
                written=lambda value: value == "true",
                untimely="a way out exists only in real time, and this lab runs in virtual time: what lies "
                "outside does not follow the lab's clock; write `time: real`, or say --time real",
            ),
        ),
        elsewhere=Elsewhere(
            what="gateway",
            why="every other format has a way out of its own",
            has=lambda host: host.gateway,
            lost=False,
        ),
        page="""\
optional, in real time on `uml` only · `true` or `false` · default: `false` · `gateway: true`

Without a gateway no host of a lab reaches anything outside the lab. A host with the key reaches what your own programs
reach from this machine: your network, and the Internet if you have it. So it can fetch a package or ask a name server.
**Test traffic that you send there leaves the lab.** `plan` and `up` name the hosts with a gateway. The other hosts do
not reach outside through it.

The host has one more interface, `gateway`, with a default route and a name server in `/etc/resolv.conf`. This interface
is not a link: it has no declared delay, rate or loss, and is in no prediction, certificate or figure. It leads to
[slirp4netns](https://github.com/rootless-containers/slirp4netns), a TCP/IP stack in a process of yours, which needs
neither root nor an interface of this machine. Install it by `apt-get install slirp4netns`; `minigts doctor` checks for
it. It carries TCP and UDP over IPv4, and only connections that the host opens: nobody outside can connect to the host.

- Loopback of this machine, link-local addresses such as a cloud's metadata, and multicast are blocked, whatever root on
  the host sends ([what was tried](evidence/reach.md#the-way-out)). Servers on this machine's other addresses are open
  to the host, as to your network.
- A gateway is refused in [virtual time](#time), since the outside does not follow the lab's clock. `mininet` and
  `vagrant` refuse it, too.
""",
    ),
    Field(
        description="Whether the host reaches the networks of this machine, in real time on uml only. Default: false."
    ),
]
