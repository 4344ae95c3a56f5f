"""Whether each host has a name server."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.language.fields import truth
from minigts.topology.host_setting import Elsewhere, Feature
from minigts.topology.lab_setting import NOWHERE, LabSetting

Dns: TypeAlias = Annotated[
    Annotated[bool, *truth("each host has a name server")],
    LabSetting(
        features=(
            Feature(
                name="name servers",
                asks=lambda plan: "dns: true" if plan.dns else "",
                instead="leave `dns` out: names are in /etc/hosts",
            ),
        ),
        elsewhere=Elsewhere(what="dns", why=NOWHERE, has=lambda plan: plan.dns, lost=False),
        sentence=lambda plan: "each host has a name server" if plan.dns else "",
        title=lambda plan: "a name server on each host" if plan.dns else "",
        status=lambda plan: plan.dns,
        page="""\
optional, not on `mininet` · `true` or `false` · default: `false` · `dns: true`

Every host has a name server of its own, `dnsmasq` on 127.0.0.1, and asks it (`/etc/resolv.conf`). Without the key
nothing is started, and the names of hosts are in `/etc/hosts` alone. With it programs that ask a name server, such as
`dig`, `nginx` or Go's own resolver, find the lab's names on each host and in each container, also while links are cut:

| name | address |
|---|---|
| `ams` | the host's own, as in `/etc/hosts`; with [`ipv6`](#ipv6) the AAAA record, too |
| `web.ams` | that of the host's container `web`, in the overlay; `web` alone where only one host has it, or on that host |
| `measure.ams` | that of the measuring container on that host |

In a [measuring container](lab.md#the-measuring-container) `ams` is the measuring container on host ams, as in its
`/etc/hosts`. Any other name does not exist (NXDOMAIN), except on a host with a [`gateway`](#hostsgateway), whose server
asks outside. The certificate and `minigts check` ask each host's server, and report one that does not answer.
`/var/log/dnsmasq.log` on a host has the servers' messages ([why](decisions/names-and-addresses.md)).
""",
    ),
    Field(
        description="true: each host has a name server, which knows the lab's hosts and containers. Not on mininet. "
        "Default: false, hosts' names are in /etc/hosts alone."
    ),
]
