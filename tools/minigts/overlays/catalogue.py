"""The catalogue of overlays: the folders under provision/overlays, each with an `overlay.yaml`:

    description: the real flanneld with etcd      # shown in the table of docs/overlays.md
    engines: [docker]           # kinds of hosts on which it runs: `docker` (default): hosts with a container engine;
                                # `namespace`: hosts that are namespaces themselves
    extends: other              # another folder, whose phases and programs this one uses
    programs: {built: true}     # by the folder's build/build.sh; or {supplied: [NAME, …]}, by the user. A long build
                                # has `long: {minutes: 15, parts: 1000, work_mb: 6000}`, too: how long it takes on two
                                # cores, about how many lines its log has, MB that it needs in /var/tmp; `also:` names
                                # other folders whose build it runs, too, and `processor_minutes: 20` is what the
                                # whole takes of a processor, by which the time that is left is told
    memory: {leader_mb: 1000, host_mb: 500}     # the least memory of each network's first host, and of every other
    policy: nftables            # the hosts' nftables enforce policies; `itself`: its phase policy does; `objects`: that
                                # makes them NetworkPolicy objects of Kubernetes; default: none
    containers: NETWORK         # the engine's network that the user's own containers join; default: they cannot
    pods: true                  # its containers are pods of Kubernetes; default: false
    second: true                # it can have a second container on a host; default: false
    kernel_modules: [NAME, …]   # modules that it needs and not every host's kernel has
    prints:                     # what its phases print as KEY=VALUE beyond what every overlay's do: of each key a
      join: {TOKEN: "[0-9a-z]{50}"}     # pattern (Python's `re`) for the whole value. Any other line ends the phase:
      verify: {LEASE: "[0-9./]+"}       # what the leader's `join` prints becomes variables on the other hosts
    variants:                   # the first has the folder's name, another is, for instance, `flannel-udp`
      vxlan: {encapsulation: vxlan}
      udp: {encapsulation: udp, overhead_bytes: 28}

An overlay without variants has `data_path: {encapsulation: …}` instead. A variant has the keys

    encapsulation: how packets cross a link: none, ipip, vxlan, udp, esp, wireguard; over IPv6 ipv6, vxlan6, wireguard6,
        and then the variant's name ends in v6
    overhead_bytes: by how much a container's MTU is smaller than the links'; default: the encapsulation's headers
    mtu: a container's MTU in bytes, instead of overhead_bytes
    prove_encryption: true, when `verify` has to search the links for readable words
    one_segment: true, when all hosts of a network must be on one segment
    kernel_modules: as above
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from minigts.artifacts import overlay_programs, supplied
from minigts.artifacts.build import Product
from minigts.errors import InputError
from minigts.language.fields import choice
from minigts.language.problems import Finding, did_you_mean, quote
from minigts.language.source import Language, read_text
from minigts.language.tree import read_tree
from minigts.language.validation import read_model
from minigts.machine.progress import Progress
from minigts.topology import overlay_names
from minigts.topology.overlay_names import FILE

Encapsulation = Literal["none", "ipip", "vxlan", "udp", "esp", "wireguard", "ipv6", "vxlan6", "wireguard6"]
Engine = Literal["docker", "namespace"]
PolicyBy = Literal["nftables", "itself", "objects"]

OVER_IPV6 = ("ipv6", "vxlan6", "wireguard6")
"""Encapsulations over IPv6: none, VXLAN and WireGuard."""
HEADER_BYTES: Mapping[str, int] = {"none": 0, "ipip": 20, "vxlan": 50, "ipv6": 0, "vxlan6": 70}
"""The bytes that an encapsulation adds to a packet: outer IP header, and for VXLAN the headers of UDP, VXLAN and inner
Ethernet. Other encapsulations pad, encrypt, or depend on the program."""

LANGUAGE = Language(
    name="overlay",
    opening="`description:` and `data_path:`",
    largest_bytes=64_000,
    instead_of_aliases="repeat in each variant what variants share",
)
_VARIANT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


IPV4 = r"[0-9]{1,3}(\.[0-9]{1,3}){3}"
ADDRESS = re.compile(rf"{IPV4}|[0-9a-f:]{{2,39}}")
END: Mapping[str, re.Pattern[str]] = {
    "ADDRESS": ADDRESS,
    "MTU": re.compile("[0-9]{1,5}"),
    "ENTER": re.compile("[1-9][0-9]{0,9}"),
    "OWN": ADDRESS,
}
"""What every overlay's phases `start` and `second` may print."""
PRINTED: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "join": {},
    "start": END,
    "second": END,
    "verify": {"ENCAPSULATION": re.compile("|".join(get_args(Encapsulation))), "ENCRYPTED": re.compile("yes")},
}
"""What every overlay's phases may print, by phase; an overlay's `prints:` adds to it."""
KEY = re.compile("[A-Z][A-Z0-9_]{0,63}")
OBEYED = re.compile("(BASH|LD|GLIBC|PROMPT)_.*|(PYTHON|SHELL|POSIX).*|ENV|IFS|PATH|HOME|PS[0-9]|CDPATH|GLOBIGNORE")
"""Variables that Bash, the loader or a program obeys: no phase may print one."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataPath(_Part):
    """How an overlay carries packets between two hosts."""

    encapsulation: Annotated[Encapsulation, choice("an encapsulation", *get_args(Encapsulation))]
    overhead_bytes: int | None = Field(default=None, ge=0, le=200)
    mtu: int | None = Field(default=None, ge=576, le=65535)
    prove_encryption: bool = False
    one_segment: bool = False
    """Whether all hosts of a network must be on one segment."""
    kernel_modules: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _mtu_is_known(self) -> Self:
        if self.mtu is not None and self.overhead_bytes is not None:
            raise ValueError("say `mtu:` or `overhead_bytes:`, not both")
        if self.mtu is None and self.overhead_bytes is None and self.encapsulation not in HEADER_BYTES:
            raise ValueError(
                f"what {self.encapsulation} adds depends on the program: add `overhead_bytes:`, by how much the "
                "containers' MTU is smaller than the links', or `mtu:`"
            )
        return self

    def mtu_over(self, link_mtu: int) -> int:
        """A container's MTU in bytes, where the smallest MTU of the lab's links is `link_mtu`."""
        if self.mtu is not None:
            return self.mtu
        return link_mtu - (HEADER_BYTES[self.encapsulation] if self.overhead_bytes is None else self.overhead_bytes)


class LongBuild(_Part):
    """A build of which the user sees how far it is."""

    minutes: int = Field(ge=1)
    """How long it takes on two cores."""
    parts: int = Field(ge=1)
    """About how many lines its log has."""
    work_mb: int = Field(ge=1)
    processor_minutes: int = Field(default=0, ge=0)
    """How much of a processor's time it takes; 0 where that was not measured."""
    also: tuple[str, ...] = ()
    """Other folders whose build it runs, too."""


class Programs(_Part):
    """Programs that an overlay's hosts need and that are in no package."""

    built: bool = False
    long: LongBuild | None = None
    supplied: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.built == bool(self.supplied):
            raise ValueError("programs are either `built: true` or `supplied: [NAME, …]`")
        if self.long and not self.built:
            raise ValueError("`long:` is about programs that are built: add `built: true`")
        return self


class OverlayMemory(_Part):
    """The least memory of hosts on which an overlay runs, in MB."""

    leader_mb: int = Field(ge=1)
    """Of each network's first host."""
    host_mb: int = Field(ge=1)
    """Of every other."""


class Prints(_Part):
    """What an overlay's phases print as KEY=VALUE, beyond what every overlay's do: patterns of the values, by key."""

    join: dict[str, str] = {}
    """On the leader; they become variables of phase `join` on the other hosts."""
    verify: dict[str, str] = {}


class Declaration(_Part):
    """The content of an `overlay.yaml`."""

    description: str
    engines: tuple[Annotated[Engine, choice("an engine", *get_args(Engine))], ...] = ("docker",)
    extends: str | None = None
    programs: Programs | None = None
    memory: OverlayMemory | None = None
    policy: Annotated[PolicyBy, choice("a way to enforce policies", *get_args(PolicyBy))] | None = None
    containers: str = ""
    pods: bool = False
    second: bool = False
    reroutes: bool = False
    """Whether it finds another way when a link is cut, over hosts and links of its own network."""
    kernel_modules: tuple[str, ...] = ()
    prints: Prints = Prints()
    variants: dict[str, DataPath] = {}
    data_path: DataPath | None = None

    @model_validator(mode="after")
    def _variants_or_one_data_path(self) -> Self:
        if bool(self.variants) == (self.data_path is not None):
            raise ValueError("an overlay has either `variants:` or, without any, `data_path: {encapsulation: …}`")
        return self


@dataclass(frozen=True)
class Overlay:
    """An overlay: a folder and one of its variants; `variant` is empty where the folder has none."""

    name: str
    folder: Path
    variant: str
    declaration: Declaration
    data_path: DataPath

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its own folder, and before it the one that it extends."""
        extended = self.declaration.extends
        return (self.folder.parent / extended, self.folder) if extended else (self.folder,)

    @property
    def kernel_modules(self) -> tuple[str, ...]:
        """Kernel modules that it needs and only the full kernel has for sure."""
        return (*self.declaration.kernel_modules, *self.data_path.kernel_modules)

    def phase_outputs(self, phase: str) -> Mapping[str, re.Pattern[str]]:
        """What a phase may print as KEY=VALUE: a pattern of the whole value, by key."""
        own: dict[str, re.Pattern[str]] = {}
        for folder in self.folders:
            own |= {key: re.compile(text) for key, text in getattr(_declaration(folder).prints, phase, {}).items()}
        return {**PRINTED[phase], **own}

    @property
    def lacks(self) -> str:
        """A sentence on the programs that the user has to supply; empty where none are missing."""
        for folder in self.folders:
            wanted = _declaration(folder).programs
            if wanted is not None and wanted.supplied and not supplied.is_there(folder.name):
                return supplied.remedy(folder.name, wanted.supplied)
        return ""

    @property
    def missing_build(self) -> str:
        """The name of what is built when it is joined for the first time on this machine; empty where all is there."""
        for folder in reversed(self.folders):
            wanted = _declaration(folder).programs
            if wanted is not None and wanted.long is not None:
                product = _long_build(folder, wanted.long)
                return "" if product.present() else product.name
            if wanted is not None and wanted.built:
                return overlay_programs.missing_build(folder / "build")
        return ""

    def programs(self, progress: Progress) -> Path | None:
        """The directory with its programs, which are built or copied now; None when it needs none.

        The directory's name is a digest of its content. Raises EnvironmentLacks, MinigtsError.
        """
        for folder in reversed(self.folders):
            wanted = _declaration(folder).programs
            if wanted is not None and wanted.long is not None:
                return _long_build(folder, wanted.long).ensure(progress)
            if wanted is not None and wanted.built:
                return overlay_programs.ensure(folder / "build", progress)
            if wanted is not None:
                return supplied.take(folder.name, wanted.supplied)
        return None


def _long_build(folder: Path, build: LongBuild) -> Product:
    return Product(
        name=overlay_programs.product_name(folder / "build"),
        folder=folder / "build",
        store=overlay_programs.store(),
        duration=f"some {build.minutes} minutes on two cores",
        work_mb=build.work_mb,
        step="",
        steps=build.parts,
        processor_s=60.0 * build.processor_minutes,
        parts=("", *(f"../../{name}/build" for name in build.also)),
        shares_store=True,
    )


def scripts() -> Path:
    return overlay_names.folder()


def known_names() -> tuple[str, ...]:
    """Names of all overlays and their variants, in alphabetical order."""
    return overlay_names.known_names()


def find(name: str) -> Overlay:
    """The overlay called `name`. Raises InputError, which lists all overlays, when there is none."""
    folder = _folders().get(name)
    if folder is None:
        if (why := overlay_names.why_unknown(name, known_names())) is not None:
            raise InputError(why)
        raise InputError(
            f"no overlay {name!r}; there are {', '.join(known_names())}{did_you_mean(name, known_names())}"
        )
    return next(overlay for overlay in read_folder(folder) if overlay.name == name)


def enforcing() -> tuple[str, ...]:
    """Names of the overlays that can enforce a policy."""
    return tuple(name for name in known_names() if find(name).declaration.policy)


@cache
def _folders() -> Mapping[str, Path]:
    """Of each overlay, by its name. Of the files only names are read: reading all would take longer than most verbs."""
    return {
        name: path.parent
        for path in sorted(scripts().glob(f"*/{FILE}"))
        for name in overlay_names.names(path.parent.name, overlay_names.variants(path))
    }


def read_folder(folder: Path) -> tuple[Overlay, ...]:
    """The overlays of one folder. Raises InputError with every problem of its `overlay.yaml`."""
    declared = _declaration(folder)
    if declared.data_path is not None:
        return (Overlay(folder.name, folder, "", declared, declared.data_path),)
    named = zip(overlay_names.names(folder.name, tuple(declared.variants)), declared.variants.items(), strict=True)
    return tuple(Overlay(name, folder, variant, declared, data_path) for name, (variant, data_path) in named)


@cache
def _declaration(folder: Path) -> Declaration:
    file = folder / FILE
    tree = read_tree(read_text(file, LANGUAGE), str(file), LANGUAGE)
    return read_model(tree, str(file), Declaration, lambda declared: _misfits(folder, declared))


def _misfits(folder: Path, declared: Declaration) -> Iterator[Finding]:
    """Problems of a declaration: invalid names of variants, and missing folders and files that it refers to."""
    for variant in declared.variants:
        if not _VARIANT.fullmatch(variant):
            why = f"{quote(variant)} is no variant's name: write small letters, digits and single hyphens"
            yield ("variants", variant), why
    if tuple(declared.variants) != overlay_names.variants(folder / FILE):
        yield (
            ("variants",),
            "each variant stands on a line of its own below `variants:`, with its braces or keys behind",
        )
    for variant, data_path in declared.variants.items():
        if (data_path.encapsulation in OVER_IPV6) != (overlay_names.needs_ipv6(f"-{variant}")):
            why = f"a variant whose name ends in v6, and no other, has one of {', '.join(OVER_IPV6)}"
            yield ("variants", variant, "encapsulation"), why
    yield from _misprints(declared.prints)
    others = sorted(path.parent.name for path in folder.parent.glob(f"*/{FILE}") if path.parent != folder)
    if declared.extends is not None and declared.extends not in others:
        hint = did_you_mean(declared.extends, others) or f"; folders are {', '.join(others)}"
        yield ("extends",), f"no folder {quote(declared.extends)}{hint}"
    if declared.programs is not None and declared.programs.built and not (folder / "build" / "build.sh").exists():
        yield ("programs", "built"), f"there is no {folder / 'build' / 'build.sh'}"


def _misprints(prints: Prints) -> Iterator[Finding]:
    """Keys that no phase may print, and patterns that cannot be read."""
    for phase, patterns in prints:
        for key, text in patterns.items():
            where = ("prints", phase, key)
            if not KEY.fullmatch(key) or OBEYED.fullmatch(key) or key in PRINTED[phase]:
                yield where, f"a phase may not print {quote(key)}: it is obeyed by a program, taken, or not in capitals"
            try:
                re.compile(text)
            except re.error as error:
                yield where, f"{quote(text)} is no pattern: {error}"
