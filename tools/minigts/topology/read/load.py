"""Turn a topology file into its plan, or report every problem in it at once.

A file is checked in three steps whose findings are reported together: the text (`language.tree`), each value
(`model`), the whole (`whole_file`). Whatever the file holds, the outcome is a plan or an `InputError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from minigts.errors import Problem
from minigts.formats import gts_language, network, recognised
from minigts.formats.limits import MOST_NOTES
from minigts.language.interface_names import number_of
from minigts.language.problems import require_none
from minigts.language.source import Language, read_text
from minigts.language.tree import Data, Tree, read_tree
from minigts.language.validation import problems, validate
from minigts.topology import sites
from minigts.topology.plan.build import build, link_names
from minigts.topology.plan.plan import Plan
from minigts.topology.read.compose import compose
from minigts.topology.read.delay_tables import read_tables
from minigts.topology.read.draft import draft
from minigts.topology.read.host_software import collect_software, misplaced_paths
from minigts.topology.read.model import Topology
from minigts.topology.read.resolved import resolve_settings
from minigts.topology.read.schedule import read_schedule
from minigts.topology.read.substitute import put_values
from minigts.topology.read.whole_file import WrongKernel, check
from minigts.topology.time import DEFAULT_TIME, Time
from minigts.topology.user_files import UserFiles

NOTHING_ELSE: Mapping[str, str] = {}
LARGEST_BYTES = 256_000
"""A full mesh of a hundred hosts fits; the pure-Python YAML parser takes some two seconds for as much."""
LANGUAGE = Language(
    name="topology",
    opening="`name:` and `hosts:`",
    largest_bytes=LARGEST_BYTES,
    instead_of_aliases="put what links or hosts share under `defaults:`",
)


@dataclass(frozen=True)
class Loaded:
    """A topology file that has been read."""

    plan: Plan
    subnets: frozenset[str] = frozenset()
    """The names of the links to which the file itself gives a subnet: no plan says so."""
    addresses: frozenset[tuple[str, str]] = frozenset()
    """The links and ends to which the file itself gives an address."""
    ports: frozenset[tuple[str, str]] = frozenset()
    """The links and ends whose port the file itself names."""
    defaults: Data = None
    """The file's `defaults:` as written, for hosts and links that are added later: no plan has them."""


def load(
    path: str | Path,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = DEFAULT_TIME,
    values: Mapping[str, str] = NOTHING_ELSE,
    beside: UserFiles | None = None,
) -> Plan:
    """The plan of the topology file `path`. `known_overlays` are the names `overlay:` may have; None allows any.

    `time` overrides the file's time; `best` holds when neither is there. `values` are put at their places (`varying`)
    first. `beside` has the files that the topology names. Default: those of its directory.

    Raises InputError with every problem, each with its line.
    """
    return load_file(path, known_overlays=known_overlays, time=time, best=best, values=values, beside=beside).plan


def load_file(
    path: str | Path,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = DEFAULT_TIME,
    values: Mapping[str, str] = NOTHING_ELSE,
    beside: UserFiles | None = None,
    wrong_kernel: WrongKernel | None = None,
) -> Loaded:
    """As `load`, with what the file says beyond its plan. `wrong_kernel` says why hosts here cannot have a kernel of a
    name; None allows any."""
    recognised.require_our_ending(str(path))
    text = read_text(path, gts_language.LANGUAGE if is_gts(path) else LANGUAGE)
    tree = put_values(_read(text, str(path)), values)
    files = beside or UserFiles(Path(path).parent)
    return _planned(tree, str(path), known_overlays, time, best, files, wrong_kernel)


def parse(
    text: str,
    file: str,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = DEFAULT_TIME,
    beside: UserFiles | None = None,
) -> Plan:
    """As `load`, from text. `file` is the name in messages, and paths in the topology are relative to its directory.
    Without `beside` the function is pure: no file is read, and no lab can be made of such a plan.
    """
    return parse_text(text, file, known_overlays=known_overlays, time=time, best=best, beside=beside).plan


def parse_text(
    text: str,
    file: str,
    *,
    known_overlays: Collection[str] | None = None,
    time: Time | None = None,
    best: Time = DEFAULT_TIME,
    values: Mapping[str, str] = NOTHING_ELSE,
    beside: UserFiles | None = None,
    wrong_kernel: WrongKernel | None = None,
) -> Loaded:
    """As `parse`, with what the text says beyond its plan; `wrong_kernel` as for `load_file`."""
    tree = put_values(_read(text, file), values)
    return _planned(tree, file, known_overlays, time, best, beside, wrong_kernel)


def _planned(
    tree: Tree,
    file: str,
    known_overlays: Collection[str] | None,
    time: Time | None,
    best: Time,
    beside: UserFiles | None,
    wrong_kernel: WrongKernel | None = None,
) -> Loaded:
    drafted, untabled = read_tables(tree, draft(tree.data), beside)
    if by_sites := sites.uses_sites(tree.data):
        drafted = sites.add_site_delays(drafted)
    topology, findings = validate(tree.data, Topology)
    time = time or _written_time(tree.data) or best
    gathered = collect_software(tree, drafted, file, beside)
    composed = compose(tree, drafted, gathered.software, file, beside)
    astray = tuple(misplaced_paths(tree, drafted, composed.containers, beside))
    drafted = composed.compose(drafted)
    whole = check(tree.data, drafted, known_overlays, time, wrong_kernel)
    located = sites.check(drafted) if by_sites else ()
    schedule, untimely = read_schedule((topology and topology.schedule) or (), drafted, beside, time)
    found = chain(findings, untabled, whole, located, gathered.findings, composed.findings, astray, untimely)
    require_none([*problems(tree, file, found), *composed.problems], file)
    assert topology is not None  # without one there are findings
    plan, strays = resolve_settings(
        gathered.apply(build(topology, drafted, time, str(Path(file).absolute().parent))), drafted
    )
    require_none(problems(tree, file, strays), file)
    notes = (*tree.notes, *composed.notes)[:MOST_NOTES]
    further = {"notes": notes, "schedule": schedule}
    named = [*zip(drafted.links, link_names(drafted.links), strict=True)]
    subnets = frozenset(name for link, name in named if link.subnet is not None)
    addresses = frozenset((name, end) for link, name in named for end, _ in link.addresses)
    ports = frozenset(
        (name, end) for link, name in named for end, given in link.interfaces if number_of(given) is not None
    )
    assert isinstance(tree.data, dict)  # otherwise there are findings
    complete = plan.model_copy(update=further) if any(further.values()) else plan
    return Loaded(complete, subnets, addresses, ports, _defaults(tree.data))


def _defaults(document: Mapping[str, Data]) -> Data:
    """The file's `defaults:`, with the lab's kernel as that of hosts."""
    written, kernel = document.get("defaults"), document.get("kernel")
    if kernel is None:
        return written
    of_all = written if isinstance(written, dict) else {}
    of_hosts = of_all.get("host")
    return {**of_all, "host": {"kernel": kernel, **(of_hosts if isinstance(of_hosts, dict) else {})}}


def _read(text: str, file: str) -> Tree:
    """The document of a topology file, or of a file in GTS's language, which has its own suffix. Other tools' files are
    refused, with the command that imports them."""
    if is_gts(file):
        return network.tree(_of_gts(text, file))
    recognised.require_our_ending(file)
    recognised.require_no_xml(text, file)
    tree = read_tree(text, file, LANGUAGE)
    recognised.require_ours(tree.data, file)
    return tree


def _of_gts(text: str, file: str) -> network.Network:
    from minigts.formats import gts  # noqa: PLC0415 - most files are not in it

    return gts.read(text, file)


def is_gts(file: str | Path) -> bool:
    """Whether a file of that name is in GTS's language."""
    return Path(file).suffix.lower() in gts_language.SUFFIXES


def require_fit(read: network.Network, file: str) -> None:
    """Raise InputError with every problem that a network of another format has as a topology."""
    size = len(network.text(read).encode())
    if size > LARGEST_BYTES:
        too_large = f"its topology would have {size // 1000} kB, and a topology has at most {LARGEST_BYTES // 1000} kB"
        require_none([Problem(file, 0, too_large)], file)
    _planned(network.tree(read), file, None, None, DEFAULT_TIME, None)


def topology_bytes(path: Path, values: Mapping[str, str] = NOTHING_ELSE) -> bytes:
    """The topology that results keep: the file's own bytes, or, for GTS's language or other `values`, a topology file
    written from it. Raises InputError."""
    if values:
        text = read_text(path, gts_language.LANGUAGE if is_gts(path) else LANGUAGE)
        document = put_values(_read(text, str(path)), values).data
        assert isinstance(document, dict)  # values have been put into it
        return "".join(f"{key}: {network.flow(value)}\n" for key, value in document.items()).encode()
    if not is_gts(path):
        return path.read_bytes()
    return network.text(_of_gts(read_text(path, gts_language.LANGUAGE), str(path))).encode()


def _written_time(data: Data) -> Time | None:
    """The document's time, even if other keys are wrong; a wrong word counts as virtual, which allows more."""
    written = data.get("time") if isinstance(data, dict) else None
    return None if written is None else "real" if written == "real" else "virtual"
