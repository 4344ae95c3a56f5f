"""The user's own containers on a host, or a Compose file of them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from minigts.language.fields import Strict, matching
from minigts.topology.containers import IMAGE, MOST_ENTRIES, REFERENCE, ContainerSpec
from minigts.topology.facts.hosts.software import SOFTWARE
from minigts.topology.host_setting import HostSetting
from minigts.topology.software import BelowTopology

_Reference: TypeAlias = Annotated[str, *matching("an image's name, as in redis:7", REFERENCE)]


class ComposeSpec(Strict):
    """A Compose file, used unchanged."""

    file: BelowTopology
    """Path of the file, relative to the topology file's directory and inside it."""
    images: dict[_Reference, Annotated[str, *IMAGE]] = Field({}, max_length=MOST_ENTRIES)
    """Sources of images, by their names in the Compose file. Default: this machine's own engine has each image."""


class _OrItsPath:
    """The JSON Schema of a path or the mapping."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "examples": ["compose.yaml"]}, handler(core)]}


A_FILE = (BeforeValidator(lambda value: {"file": value} if isinstance(value, str) else value), _OrItsPath)
"""Annotations of a field that takes the mapping, or the file's path alone."""


Containers: TypeAlias = Annotated[
    tuple[ContainerSpec, ...] | None,
    HostSetting(
        from_start=lambda host: host.containers,
        elsewhere=SOFTWARE.elsewhere,
        page="""\
optional · list, at most 20 a host · default: none · `containers: [{name: web, image: web.tar}]`

Containers of your own on the host. Each joins the overlay's network, with an address of its own. `up` starts them when
the overlay has been joined, `restart` starts them again with their host, and they are removed with the overlay. So they
need an overlay that supports them: `swarm` or `flannel`, or a variant of one of those; on other overlays, which an
experiment may join, they do not run. The provider's hosts need Docker, so `mininet` has no containers. [Programs of
your own](own-programs.md) has a whole example.

### `hosts.*.containers[].name`
required · name · `name: web`

Every container finds the others in its `/etc/hosts`: `web.ams` is the container `web` on host `ams`. `web` alone is the
container of the same host, or, if there is none, the only container of that name in the network. A container must not
have the name of a host. `minigts exec --container web`, and `shell`, take the same names.

### `hosts.*.containers[].image`
required · file, `docker-daemon:NAME` or `docker://REGISTRY/NAME` · `image: images/web.tar`

- A file whose name ends in `.tar`, `.tgz` or as in `.tar.gz`. Its path is relative to the topology's directory and
  [does not lead out of it](evidence/safety.md#files-from-elsewhere). It is a file of `docker save` or `podman save`, an
  OCI archive, or a tar of a root file system. A root file system names no program, so it needs `command`.
- `docker-daemon:web:1` is an image of your machine's own engine, saved from it by `docker` or `podman` at each `up`.
- `docker://registry.example/web:1` is fetched by `skopeo`, which you install, and kept in
  `~/.cache/minigts/container-images`. It is fetched once; delete the file there to fetch it again.

Each host's engine loads an image once; a changed file is another image. Hosts themselves never ask a registry.

### `hosts.*.containers[].command`
optional · text or list of words · default: the image's own · `command: nginx -g 'daemon off;'`

A text is split into words by a shell's rules, but no shell runs it. As with `docker run`, it is appended to the image's
entry point.

### `hosts.*.containers[].environment`
optional · mapping of names to texts · default: the image's own · `environment: {LEVEL: debug}`

### `hosts.*.containers[].ports`
optional · list of TCP ports · default: none · `ports: ["8080:80"]`

`8080:80` forwards the host's port 8080 to the container's port 80; `80` forwards 80 to 80. Other hosts then reach the
container at the host's address, without the overlay. A program on the host forwards the connections, as Docker's own
proxy does; other containers reach the container without this key.

### `hosts.*.containers[].volumes`
optional · list of `SOURCE:TARGET`, with `:ro` for read-only · default: none ·
`volumes: ["./site:/srv:ro", "data:/var"]`

A source that begins with `./`, `../` or `/` is a file or directory on this machine. A relative path begins at the
topology's directory, and no path may [lead out of it](evidence/safety.md#files-from-elsewhere). The host gets a copy at
`up` and at `restart`; a container's changes are not copied back. Any other source names a directory on the host, which
is kept as long as the lab. Whatever else a container writes is lost when it is started anew, as by `minigts restart`.

### `hosts.*.containers[].restart`
optional · `no`, `on-failure`, `always` or `unless-stopped` · default: `no` · `restart: always`

What the engine does when the container's program ends, as in Docker. The container keeps its address and network.
`minigts restart` starts every container, whatever the value.
""",
    ),
    Field(description="Containers of your own on the host, in the lab's overlay. Default: none."),
]


Compose: TypeAlias = Annotated[
    Annotated[ComposeSpec, *A_FILE] | None,
    HostSetting(
        field="containers",
        elsewhere=SOFTWARE.elsewhere,
        page="""\
optional · file, or a mapping · default: none · `compose: shop/compose.yaml`

A Compose file, as for `docker compose`. Its services become [containers](#hostscontainers) on the host, after those
under `containers`, and follow the same rules. A change in the file makes another plan.

| of a service | in the lab |
|---|---|
| its name | its container's: `minigts exec --container web` |
| `image` | an image of your machine's own engine, unless `images` (below) names another place |
| `command`, `entrypoint`, `working_dir`, `user`, `labels`, `healthcheck` | as in Compose; `minigts status` shows what the health check found |
| `environment`, `env_file` | as in Compose; a name without a value takes it from the host's `environment` |
| `ports` | `HOST:CONTAINER`, TCP, one port an entry |
| `expose` | has no effect: containers reach every port of each other |
| `volumes` | `./path` relative to the Compose file, copied to the host; or a name from the file's top-level `volumes` |
| `restart` | `no`, `on-failure`, `always`, `unless-stopped` |
| `depends_on` | the order in which they start; the only condition is `service_started` |
| `networks` | all services share the overlay's network; `aliases` are kept, a network that would keep two services apart is refused |
| `container_name`, `hostname`, aliases | further names, known to the containers of the same host |
| `x-minigts: {host: NAME}` | the host on which the service runs, where several hosts take the file; without it each host of the file runs all services |

A file that places one service places all. `depends_on` holds across hosts, too: a service starts after those on other
hosts on which it depends. Every host that the file names has `compose: FILE`, or all have it by `defaults`.

Every other key is refused, with its file, its line and what would be right: `build`, `deploy`, `network_mode`,
`privileged` and the rest. YAML's aliases are refused, too. Other keys that begin with `x-` are ignored; `version` and
`name` have no effect, and `up` says so.

`$NAME` and `${NAME:-default}` are filled in by Compose's rules, with [the host's `environment`](#hostsenvironment).
Your shell's variables and a file `.env` are not used: a lab must be the same for everybody who has its files. A
variable that has neither a value nor a default is an error; Compose would fill in nothing.

### `hosts.*.compose.file`
required · path · `file: shop/compose.yaml`

The path is relative to the topology file's directory and never leads outside of it, as a [source](#hostsfilessource);
the same holds for `env_file`s. `compose: FILE` is short for it.

### `hosts.*.compose.images`
optional · mapping of names to images · default: none · `images: {"redis:7": images/redis.tar}`

The place of each image that the Compose file names, written like [a container's `image`](#hostscontainersimage). So you
need not change the Compose file on a machine without an engine. A name that the file does not have is an error.
""",
    ),
    Field(description="A Compose file whose services are containers on the host. Default: none."),
]
