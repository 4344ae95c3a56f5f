"""Kernels by name, which hosts may have in place of the standard one: what is known of each, and where its files are.

`<cache root>/named-kernels` has a file NAME.json for each, and a directory for each content, named by the beginning of
its digest: `linux`, `modules/` and `version`. The file is written last, so a build that was interrupted has no name. A
directory stays when its name gets another kernel, since labs that are up start hosts from it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from minigts import paths
from minigts.artifacts import digests
from minigts.errors import InputError, MinigtsError
from minigts.language import documents
from minigts.language.problems import did_you_mean
from minigts.topology.facts.hosts.kernel import NAME
from minigts.topology.kernel_names import STANDARD
from minigts.topology.plan.plan import Plan

STORE = "named-kernels"
RECIPE = "named-kernel"
"""The folder of the recipe in provision."""
_MANIFEST_BYTES = 1_000_000
_SUM = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KernelRequest(_Part):
    """What `minigts kernel build NAME` was told, by which the kernel can be built again."""

    source: str = ""
    """A directory, an archive, a git repository or a version of Debian's package; empty for the best proven version."""
    commit: str = ""
    """The commit or branch of a git repository; empty for a working tree as it is, or the repository's own."""
    patches: tuple[str, ...] = ()
    """The user's patches, by their absolute paths, in this order."""
    config: dict[str, str] = {}
    """Options beyond minigts' own, without CONFIG_."""


class SourceFacts(_Part):
    """What the kernel was compiled from."""

    kind: Literal["debian", "archive", "directory", "git"]
    place: str
    """The version of Debian's package, or the path or address."""
    commit: str = ""
    """The commit of a git repository."""
    changed: bool = False
    """Whether a working tree had changes beyond its commit."""
    sha256: str = ""
    """The digest of the archive; for a directory that of its files."""


class KernelRecord(_Part):
    """NAME.json: what is known of a kernel."""

    format: Literal[1] = 1
    name: Annotated[str, Field(max_length=40)]
    directory: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    """The name of its directory in the store."""
    linux_sha256: _SUM
    version: Annotated[str, Field(max_length=200)]
    """The version of its sources, as in 7.2.13 or 7.2.13-1."""
    asked: KernelRequest
    source: SourceFacts
    recipe: Annotated[str, Field(max_length=64)]
    """The digest of minigts' patches and options with which it was built."""
    patches: dict[str, _SUM]
    """Every patch with its digest, in the order in which they were applied: minigts' own, then the user's."""
    merged: tuple[str, ...] = ()
    """`PATCH: FILE` for each file that a patch did not fit, and for which it was merged."""
    config: dict[str, str] = {}
    """The options that were asked for, without CONFIG_; those of --hz and --debug, too."""
    config_sha256: _SUM
    lacks: tuple[str, ...] = ()
    """minigts' own options that these sources do not have, without CONFIG_."""
    hz: int
    compiler: Annotated[str, Field(max_length=200)]
    seconds: float
    """How long the build took."""
    built: str
    """When, UTC in ISO 8601."""
    minigts: str

    @property
    def is_stale(self) -> bool:
        """Whether minigts' patches or options have changed since it was built."""
        return self.recipe != recipe_key()


@dataclass(frozen=True)
class NamedKernel:
    """A kernel by name, with its files."""

    manifest: KernelRecord
    directory: Path

    @property
    def modules(self) -> Path:
        """A directory named for the kernel's release, by which modprobe knows the built-in modules."""
        return next((self.directory / "modules").iterdir())

    @property
    def in_words(self) -> str:
        """`hz1000 of Linux 7.2.13-1, 1000 ticks a second`"""
        about = self.manifest
        return f"{about.name} of Linux {about.version}, {about.hz} ticks a second"

    @property
    def shadow_mb(self) -> int:
        """The private memory that it maps for KASAN's records of the rest, of which it touches little."""
        return SHADOW_MB if self.manifest.config.get("KASAN") == "y" else 0

    @property
    def state(self) -> str:
        """`proven`, `unproven: other bytes in linux`, or `stale: minigts kernel build hz1000`."""
        return f"stale: minigts kernel build {self.manifest.name}" if self.manifest.is_stale else str(self.proof)

    @property
    def proof(self) -> digests.Proof:
        """Whether it has the bytes of the standard kernel that minigts' figures were measured with."""
        found = digests.proof(self.directory)
        assert found is not None, "the store is one of those that digests are expected of"
        return found


SHADOW_MB = 16 << 20
"""An eighth of a process's 128 TB, KASAN_SHADOW_SIZE in arch/um/include/asm/kasan.h of Linux."""
PART = "kernel"
"""The word for the standard kernel among a lab's parts."""


def part(name: str) -> str:
    """The word for a kernel by name among a lab's parts, in manifests and messages."""
    return f"{PART}-{name}"


def store() -> Path:
    return paths.cache_root() / STORE


def recipe() -> Path:
    return paths.project_root() / "provision" / RECIPE


def own_patches() -> tuple[Path, ...]:
    """minigts' patches in the order in which they are applied."""
    return tuple(sorted((paths.project_root() / "provision" / "kernel" / "patches").glob("*.patch")))


def own_config() -> Path:
    return paths.project_root() / "provision" / "kernel" / "config"


def standard_ticks() -> int:
    """Ticks a second of the standard kernel, by its configuration."""
    lines = own_config().read_text(encoding="utf-8").splitlines()
    return next(int(line.removeprefix("HZ=")) for line in lines if line.startswith("HZ="))


def recipe_key() -> str:
    """The digest of minigts' own patches and options."""
    return paths.content_key((path.name, path) for path in (*own_patches(), own_config()))


def require_name(name: str) -> str:
    """The name itself. Raises InputError for one that no kernel can have."""
    if NAME.fullmatch(name) is None:
        raise InputError(f"{name[:60]!r} is no kernel's name: write letters, digits, dots and hyphens, as in 7.2.13")
    if name == STANDARD:
        raise InputError(f"{STANDARD} is the name of the kernel that hosts have anyway: choose another one")
    return name


def names() -> tuple[str, ...]:
    """The names of the kernels that are built, sorted."""
    shared = paths.shared_cache()
    stores = {store(), *([] if shared is None else [shared / STORE])}
    return tuple(sorted({path.stem for each in stores for path in each.glob("*.json") if NAME.fullmatch(path.stem)}))


def words() -> tuple[str, ...]:
    """The words that `kernel:` may have here: `standard`, and the names of those that are built."""
    return (STANDARD, *names())


def unknown(name: str) -> str:
    """What is said of a name that no kernel here has."""
    among = words()
    return (
        f"no kernel {name[:60]!r} on this machine; there are {', '.join(among)}{did_you_mean(name, among)}; it is "
        f"built by: minigts kernel build {name[:60]} --source …"
    )


def read(name: str) -> NamedKernel | None:
    """The kernel of that name; None if there is none. Raises MinigtsError for a damaged record."""
    path = paths.cache_entry(store() / f"{name}.json")
    try:
        manifest = documents.model(paths.read_whole(path, _MANIFEST_BYTES), KernelRecord)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MinigtsError(f"{path} is damaged; to remove it: minigts kernel remove {name}") from error
    return NamedKernel(manifest, path.with_name(manifest.directory))


def every() -> Iterator[NamedKernel]:
    """The kernels that are built, by their names; without those of damaged records, which `names` has, too."""
    for name in names():
        try:
            found = read(name)
        except MinigtsError:
            continue
        if found is not None:
            yield found


def find(name: str) -> NamedKernel:
    """The kernel of that name, for hosts. Raises InputError for an unknown one, and for one that was built with other
    patches or options of minigts."""
    found = read(name) if NAME.fullmatch(name) else None
    if found is None:
        raise InputError(unknown(name))
    if found.manifest.is_stale:
        raise InputError(
            f"kernel {name} was built with other patches or options of minigts than it has now; to build it anew from "
            f"the same source: minigts kernel build {name}"
        )
    if not (found.directory / "linux").is_file():
        raise InputError(f"the files of kernel {name} are gone; to build it again: minigts kernel build {name}")
    return found


def wrong(name: str) -> str:
    """Why hosts cannot have a kernel of that name here; empty where they can."""
    if name == STANDARD:
        return ""
    try:
        find(name)
    except MinigtsError as error:
        return str(error)
    return ""


def remarks(plan: Plan) -> tuple[str, ...]:
    """A line for each kernel by name in the plan: who has it, and whether it is proven. Raises InputError as `find`."""
    found = {name: find(name) for name in plan.kernels}
    return tuple(
        f"{', '.join(plan.kernels[name])}: kernel {each.in_words}, {each.state}" for name, each in found.items()
    )


def values(name: str | None) -> Mapping[str, str]:
    """What --kernel NAME puts into a topology: its `kernel:`. Raises InputError for a kernel that hosts cannot have."""
    if name is None:
        return {}
    if why := wrong(name):
        raise InputError(f"--kernel: {why}")
    return {"kernel": name}
