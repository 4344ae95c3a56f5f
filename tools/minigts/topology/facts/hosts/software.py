"""The user's own software on a host: image, packages, files, environment and commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

from pydantic import Field

from minigts.topology.containers import IMAGE
from minigts.topology.host_setting import Elsewhere, Feature, HostSetting
from minigts.topology.plan.elements import Host
from minigts.topology.routing_engines import ENGINES
from minigts.topology.software import (
    ENVIRONMENT,
    FILES,
    IMAGE_OF_HOST,
    PACKAGES,
    RUN,
    Commands,
    Environment,
    Files,
    Packages,
)


def _asks_for_packages(host: Host) -> str:
    if host.software is None or not host.software.packages:
        return ""
    of_engine = ENGINES[host.engine].package
    return "packages:" if {each.name for each in host.software.packages} != {of_engine} else f"engine: {host.engine}"


SOFTWARE = HostSetting(
    page="",
    field="software",
    elsewhere=Elsewhere(
        what="its software and containers",
        why="no other format has them as we do",
        has=lambda host: host.software is not None or host.containers,
        lost=False,
    ),
)
Image: TypeAlias = Annotated[
    Annotated[str, *IMAGE] | None,
    HostSetting(
        field="software",
        from_start=lambda host: host.software is not None and host.software.root is not None,
        features=(
            Feature(
                name="an image of its own",
                asks=lambda host: "image:" if host.software is not None and host.software.root else "",
                place=lambda host: host.software and host.software.root and host.software.root.place,
            ),
        ),
        elsewhere=SOFTWARE.elsewhere,
        page="""\
optional, only on `uml` · file, `docker-daemon:NAME` or `docker://REGISTRY/NAME` · default: minigts' own root ·
`image: images/alpine.tar`

A root file system of your own, written like [a container's `image`](#hostscontainersimage): a tar of it, a file of
`docker save`, an OCI archive, or an image of an engine or a registry. `run`, `files`, `environment`, `minigts exec`,
`shell` and `cp`, and `host.run` in tests and Python work in it, as root, in `/root`. Variables that a container image
sets are set; its entry point, command, user and directory are not used.

Kernel, network, links and processes are the host's, and so are `/proc`, `/sys`, `/dev`, `/run`, `/tmp`, `/etc/hosts`,
`/etc/resolv.conf` and `/etc/hostname`. Overlays, the Docker engine, the logs of `minigts logs` and the measuring tools
stay in minigts' own root: the image needs nothing for them. Only a
[`tool: command`](experiment-language.md#any-program) runs a program of the image. `exec` runs the image's programs;
`shell` and `run` need a `sh` in it.

The first `up` unpacks the image into a copy of minigts' own image, which is kept by its content in
`~/.cache/minigts/layers` and takes 0.7 GB and the image's size. A changed file makes another copy. `image` excludes
`packages`, which are Debian's. On `mininet` and `vagrant` it is refused ([why](decisions/what-hosts-have.md)).
""",
    ),
    Field(description=IMAGE_OF_HOST),
]
PackagesKey: TypeAlias = Annotated[
    Packages | None,
    HostSetting(
        field="software",
        from_start=lambda host: host.software is not None and host.software.packages,
        features=(
            Feature(
                name="packages",
                asks=_asks_for_packages,
                place=lambda host: host.software and host.software.packages[0].place,
            ),
        ),
        elsewhere=SOFTWARE.elsewhere,
        page="""\
optional, not on `mininet` · list of at most 100 Debian packages, each with its version if you like · default: none ·
`packages: [nginx-light, redis-server]`

Packages in addition to [the image's own programs](lab.md#programs-on-a-host), from the Debian release of the image. The
first `up` fetches them with their dependencies and installs them into a copy of the image; each further `up` uses that
copy and needs no network ([where it is kept](lab.md#packages)). Recommended packages are not installed. A service does
not start by itself: start it under `run`. A package that Debian does not have is an error with its line.
""",
    ),
    Field(description=PACKAGES),
]
FilesKey: TypeAlias = Annotated[
    Files | None,
    replace(
        SOFTWARE,
        page="""\
optional · list, at most 100 · default: none ·
`files: [{source: site, target: /srv/}, {source: server.py, target: /usr/local/bin/server, mode: 755}]`

Files, and directories with their content, that are copied to the host when the lab comes up, before `run`. They belong
to root there. A restarted host keeps its disk, so the files are not copied again.

### `hosts.*.files[].source`
required · path · `source: site/index.html`

The path is relative to the directory of the topology file, without `..`. It does not lead outside of that directory by
a symbolic link either, unless you [allow another directory](evidence/safety.md#files-from-elsewhere): so somebody
else's topology cannot take other files of yours. An entry has at most 100 MB, and a directory 10,000 files and
directories; [`minigts cp`](lab.md#cp) has no such limits. The plan has a digest of what is copied: a changed file makes
another plan.

### `hosts.*.files[].target`
required · path from the root · `target: /srv/site`

The path on the host. A target that ends in a slash is the directory in which the entry keeps its own name. Missing
directories are made. The target must not be in `/tmp`, `/run`, `/dev`, `/proc` or `/sys`, which are not on the host's
disk.

### `hosts.*.files[].mode`
optional, for a file · three octal digits · default: the file's own · `mode: 755`
""",
    ),
    Field(description=FILES),
]
EnvironmentKey: TypeAlias = Annotated[
    Environment | None,
    replace(
        SOFTWARE,
        page="""\
optional · mapping of names to text, at most 100 · default: none · `environment: {PORT: "8080"}`

Variables of the commands under `run`, of `minigts exec` and `minigts shell`, and of `host.run` in tests and Python.
minigts' own commands on the host and the programs in containers do not have them.
""",
    ),
    Field(description=ENVIRONMENT),
]
Run: TypeAlias = Annotated[
    Commands | None,
    replace(
        SOFTWARE,
        page="""\
optional · list of commands, at most 100 · default: none ·
`run: ["redis-server --bind 0.0.0.0 &", "until redis-cli ping; do sleep 0.1; done"]`

Commands that the host runs after it has started, once its links are as declared and before an overlay is joined. Each
is a script for `sh -e`, as root in `/root`. The commands of one host run one after the other, those of different hosts
at the same time. They run again after each `minigts restart` of the host. On `uml` and `vagrant` they reach what [a
host can reach](evidence/reach.md). On `mininet` in this machine's own kernel their root is this
machine's root: bring up no topology there that you would not run as a script. A command may take 300 seconds of the
lab's time; put `&` after a program that is to keep running.

The output of a host's first command is in `/var/log/run-1.log` on the host and in `run/HOST-1.log` in the run
directory. A command that ends with another code than 0 makes `up` fail, and nothing stays up. The commands of the other
hosts are then ended, since they may wait for something that never comes:

```
lab.yaml:9: hosts.web.run[1]: on host web `nosuchserver --port 80` ended with code 127
    sh: 1: nosuchserver: not found
```
""",
    ),
    Field(description=RUN),
]
