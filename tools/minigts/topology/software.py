"""The user's software on a host: packages, files, environment, commands at boot; in a file and in a plan.

`gathering` finds it and checks it.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from minigts.errors import Problem
from minigts.foreign import UNPRINTABLE
from minigts.language.fields import Strict, matching, text, text_schema
from minigts.language.host_paths import LONGEST_PATH, checked_source, checked_target
from minigts.language.problems import quote
from minigts.topology.containers import Image as HostImage

LONGEST_COMMAND, LONGEST_VALUE = 4000, 4000
LONGEST_FILE_NAME = 4096
"""The longest path of Linux."""
MOST_ENTRIES = 100
"""The most entries of each kind on a host."""
LARGEST_FILE_MB, MOST_FILES_IN_DIRECTORY = 100, 10_000
ENTER, PLACE = "/usr/lib/minigts/own-root/enter", "/usr/lib/minigts/own-root/root.py"
"""`ENTER` runs a command in the root of the user's image, which a host has; `PLACE` finds a path in it."""

PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}(?:=[A-Za-z0-9][A-Za-z0-9.+:~-]{0,99})?", re.ASCII)
PACKAGE_HINT = "a Debian package: write its name, as in redis-server, or with its version, as in redis-server=5:8.0.2-3"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
VARIABLE_HINT = "a variable's name: letters, digits and underscores, no digit first"
_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)
_SHA256 = r"\A(?:[0-9a-f]{64})?\z"


def _mode(value: object) -> int:
    if not isinstance(value, str) or not _MODE.fullmatch(value):
        raise ValueError(f"{quote(value)} is not a file's mode: write three octal digits, as in 755")
    return int(value, 8)


def _command(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_COMMAND:
        raise ValueError(f"{quote(value)} is not a command: write text of at most {LONGEST_COMMAND} characters")
    return value


def _few(value: object) -> object:
    if isinstance(value, list | dict) and len(value) > MOST_ENTRIES:
        raise ValueError(f"{len(value)} entries; at most {MOST_ENTRIES} are possible")
    return value


BelowTopology: TypeAlias = Annotated[str, BeforeValidator(checked_source), WithJsonSchema({"type": "string"})]


class FileSpec(Strict):
    """A file or directory that is copied to a host before its commands run."""

    source: BelowTopology = Field(
        description="Path of the file, relative to the topology file's directory and inside it."
    )
    target: Annotated[str, BeforeValidator(checked_target), text_schema("^/", "/srv/site")] = Field(
        description="Path on the host; with a slash at its end, the directory for the file."
    )
    mode: Annotated[int, BeforeValidator(_mode), text_schema("^0?[0-7]{3}$", "755")] | None = Field(
        None, description="The file's mode on the host, in octal digits. Default: its mode on this machine."
    )


_Command: TypeAlias = Annotated[str, BeforeValidator(_command), WithJsonSchema({"type": "string", "minLength": 1})]
_Package: TypeAlias = Annotated[str, *matching(PACKAGE_HINT, PACKAGE)]
_Variable: TypeAlias = Annotated[str, *matching(VARIABLE_HINT, VARIABLE)]
_Value: TypeAlias = Annotated[str, text("a variable's value", LONGEST_VALUE)]

Packages: TypeAlias = Annotated[tuple[_Package, ...], BeforeValidator(_few)]
Files: TypeAlias = Annotated[tuple[FileSpec, ...], BeforeValidator(_few)]
Environment: TypeAlias = Annotated[dict[_Variable, _Value], BeforeValidator(_few)]
Commands: TypeAlias = Annotated[tuple[_Command, ...], BeforeValidator(_few)]

IMAGE_OF_HOST = (
    "A root file system of your own, for your commands on the host: a file, or an image of an engine or a registry. "
    "Default: minigts' own. Only on uml."
)
PACKAGES = "Debian packages in addition to the image's own; fetched once, then kept. Not on mininet. Default: none."
FILES = "Files and directories that are copied to the host as the lab comes up."
ENVIRONMENT = "Variables of the commands under `run`, of `minigts exec` and `minigts shell`."
RUN = "Commands for `sh -e` that run as root whenever the host has started, one after the other."


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _printable(value: str) -> str:
    if found := UNPRINTABLE.search(value):
        raise ValueError(f"holds the character {found[0]!a}; write text that can be shown")
    return value


def _on_host(value: str) -> str:
    return checked_target(value).removesuffix("/")


def _absolute(value: str) -> str:
    if not PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts:
        raise ValueError(f"{quote(value)} is no path from the root")
    return value


class Place(_Frozen):
    """A place in a file, for messages. Any two are equal, so that plans do not differ by their places."""

    file: Annotated[str, Field(max_length=LONGEST_FILE_NAME), AfterValidator(_printable)]
    line: Annotated[int, Field(ge=0)]
    path: Annotated[str, Field(max_length=400), AfterValidator(_printable)]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Place)

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return str(Problem(self.file, self.line, self.path))


class Variable(_Frozen):
    name: Annotated[str, Field(pattern=rf"\A{VARIABLE.pattern}\z")]
    value: Annotated[str, Field(max_length=LONGEST_VALUE), AfterValidator(_printable)]


class Package(_Frozen):
    name: Annotated[str, Field(pattern=rf"\A{PACKAGE.pattern}\z")]
    place: Place


class File(_Frozen):
    """A file or directory of this machine for a host. It is copied only if it has this digest: so a plan that somebody
    else wrote gets only content that its writer knew already."""

    source: Annotated[str, Field(max_length=LONGEST_FILE_NAME), AfterValidator(_printable), AfterValidator(_absolute)]
    target: Annotated[str, Field(max_length=2 * LONGEST_PATH), AfterValidator(_printable), AfterValidator(_on_host)]
    mode: Annotated[int, Field(ge=0, le=0o777)] | None = None
    sha256: Annotated[str, Field(pattern=_SHA256)]
    """Empty in a plan that was made without reading this machine's files."""
    place: Place


class Command(_Frozen):
    """A command for `sh -e`."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_COMMAND), AfterValidator(_printable)]
    place: Place


class Root(_Frozen):
    """The user's own root file system, in which the user's commands run."""

    image: HostImage
    place: Place


class Software(_Frozen):
    """The user's software on a host. Lists are in the order in which things are done."""

    root: Annotated[Root | None, Field(exclude_if=lambda root: root is None)] = None
    """The root in which commands run. With None, which is not stored, they run in the image's own."""

    packages: Annotated[tuple[Package, ...], Field(max_length=MOST_ENTRIES)] = ()
    files: Annotated[tuple[File, ...], Field(max_length=MOST_ENTRIES)] = ()
    environment: Annotated[tuple[Variable, ...], Field(max_length=MOST_ENTRIES)] = ()
    run: Annotated[tuple[Command, ...], Field(max_length=MOST_ENTRIES)] = ()

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command with this environment, in the host's own root if it has one."""
        if self.root is not None:
            return (ENTER, *self.assignments, "--", *argv)
        return ("env", *self.assignments, *argv) if self.environment else argv

    @property
    def into_root(self) -> tuple[str, ...]:
        """The prefix that runs a command in the host's own root; empty where there is none."""
        return () if self.root is None else (ENTER, "--")

    @property
    def assignments(self) -> tuple[str, ...]:
        """`NAME=value` of each variable."""
        return tuple(f"{each.name}={each.value}" for each in self.environment)
