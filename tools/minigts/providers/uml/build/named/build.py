"""Builds a kernel by name: its sources with the patches in them, in a tree of its own that is kept, so that a second
build compiles what has changed.

`<cache root>/kernel-trees/NAME` has `tree`, in which it is compiled, and `index.json`, what of the sources is in it.
The tree is the compiler's: make runs programs of the sources, so nothing is read or written there but inside the
confined root (provision/named-kernel/confined.sh).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import minigts
from minigts import paths
from minigts.artifacts import builders, checksums, kernels
from minigts.artifacts.build import WORK_DIRECTORY, report_progress
from minigts.artifacts.build_errors import FULL, LOG_LINES
from minigts.artifacts.kernels import KernelRecord, KernelRequest, NamedKernel
from minigts.errors import EnvironmentLacks, InputError
from minigts.foreign import printable
from minigts.language import documents
from minigts.machine.progress import Progress
from minigts.providers.uml.build import namespaces
from minigts.providers.uml.build.named import confined, patches, source
from minigts.providers.uml.build.named.patches import Patch, Patched, SourceMismatch
from minigts.providers.uml.build.named.source import SourceFile, SourceTree

TICKS = (100, 250, 300, 1000)
"""The values of --hz: those that other architectures offer (kernel/Kconfig.hz)."""
DEBUG: Mapping[str, Mapping[str, str]] = {
    "kasan": {"DEBUG_KERNEL": "y", "KASAN": "y", "KASAN_GENERIC": "y"},
    "lockdep": {"DEBUG_KERNEL": "y", "PROVE_LOCKING": "y"},
    "kmemleak": {"DEBUG_KERNEL": "y", "DEBUG_FS": "y", "DEBUG_KMEMLEAK": "y"},
    "kcov": {"DEBUG_KERNEL": "y", "DEBUG_FS": "y", "KCOV": "y", "KCOV_INSTRUMENT_ALL": "y"},
}
"""The options of each word of --debug."""
ESSENTIAL = ("UML_TIME_TRAVEL_SUPPORT", "VIRTIO_UML", "VIRTIO_NET", "VIRTIO_CONSOLE", "BLK_DEV_UBD", "STATIC_LINK")
"""Options without which no host runs: sources that lack one are refused."""
WORK_MB = 5000
"""MB for a first build: the unpacked sources on their way into the tree."""
TREE_MB = 2500
PARTS = 1550
"""About how many files are compiled for the standard configuration."""
OF_THE_MACHINE = (FULL, "Killed signal terminated program", "virtual memory exhausted", "Cannot allocate memory")
"""What a log has where the compiler was ended by a lack of this machine's, and not by the sources."""
_OPTION = re.compile(r"[A-Z0-9][A-Za-z0-9_]{0,99}", re.ASCII)
_CONFIG_BYTES = 10_000_000
_HZ = re.compile(r"^CONFIG_HZ=(\d+)$", re.MULTILINE)
_COMPILER = re.compile(r'^CONFIG_CC_VERSION_TEXT="(.*)"$', re.MULTILINE)
_RELEASE = re.compile(r"[0-9A-Za-z.+~_-]{1,100}", re.ASCII)


class KernelFault(EnvironmentLacks):
    """The sources do not compile. Another commit of theirs may."""


def trees() -> Path:
    return paths.cache_root() / "kernel-trees"


def options(words: Iterable[str], hz: int | None, debug: Iterable[str]) -> dict[str, str]:
    """The options of --config, --hz and --debug, without CONFIG_: `KASAN=y` → {"KASAN": "y"}. Raises InputError."""
    found: dict[str, str] = {}
    for each in debug:
        if each not in DEBUG:
            raise InputError(f"--debug {each[:60]}: write {', '.join(DEBUG)}, several with commas between them")
        found |= DEBUG[each]
    for word in words:
        key, is_there, value = word.removeprefix("CONFIG_").partition("=")
        if not is_there or _OPTION.fullmatch(key) is None or not value.isprintable():
            raise InputError(f"--config {word[:60]}: write an option and its value, as in NET_SCH_CAKE=y")
        if value == "m":
            raise InputError(f"--config {word[:60]}: hosts load no modules, so everything is built in: write {key}=y")
        found[key] = _value(value)
    if hz is not None:
        if hz not in TICKS:
            few = ", ".join(map(str, TICKS[:-1]))
            raise InputError(f"--hz {hz}: the timer has {few} or {TICKS[-1]} ticks a second")
        found["HZ"] = str(hz)
    return found


def _value(written: str) -> str:
    """A value as .config has it: a text in quotation marks."""
    if written in ("y", "n") or re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", written):
        return written
    return json.dumps(written.strip('"'))


def build(name: str, asked: KernelRequest, say: Progress, broken_off: threading.Event | None = None) -> NamedKernel:
    """Build the kernel `name`, and give it that name; return it. A kernel that has the name keeps it until then.

    Raises InputError for sources that are none, SourceMismatch for patches or options that do not go with them,
    KernelFault for ones that do not compile, EnvironmentLacks where it cannot be built here, and BrokenOff.
    """
    kernels.require_name(name)
    of_user = tuple(patches.user_patch(Path(path)) for path in asked.patches)
    own = trees() / name
    _require_room(own)
    (own / "tree").mkdir(parents=True, exist_ok=True)
    with builders.only_builder(own.with_name(f"{name}.lock"), f"kernel {name}", say, broken_off):
        root = confined.root().ensure(say, broken_off) / "root"
        begun = time.monotonic()
        with source.open_tree(asked, say) as sources:
            making = _Making(own, asked, of_user, sources, partial(confined.place, root, own / "tree"), say, broken_off)
            return making.made(name, begun)


def remove(name: str) -> None:
    """Remove a kernel's name, its tree, and its files where no other name has them. Raises InputError."""
    if name not in kernels.names() and not (trees() / name).is_dir():
        raise InputError(kernels.unknown(name))
    mine = _directory_of(name)
    (kernels.store() / f"{name}.json").unlink(missing_ok=True)
    paths.remove_tree(trees() / name)
    if mine is not None:
        remove_unnamed(mine)


def remove_unnamed(directory: Path) -> None:
    """Remove a directory of the store, unless a name has it."""
    if directory not in {each.directory for each in kernels.every()}:
        paths.remove_tree(directory)


def _directory_of(name: str) -> Path | None:
    with suppress(minigts.errors.MinigtsError):
        found = kernels.read(name)
        return None if found is None else found.directory
    return None


def _require_room(own: Path) -> None:
    if lacking := namespaces.missing():
        raise EnvironmentLacks(lacking[0])
    paths.cache_root().mkdir(parents=True, exist_ok=True)
    new = not (own / "index.json").exists()
    for place, needed_mb in ((WORK_DIRECTORY, WORK_MB if new else 500), (paths.cache_root(), TREE_MB if new else 100)):
        free_mb = shutil.disk_usage(place).free >> 20
        if free_mb < needed_mb:
            raise EnvironmentLacks(f"building a kernel takes {needed_mb} MB in {place}; {free_mb} MB are free")


@dataclass(frozen=True)
class _Making:
    """One build."""

    own: Path
    asked: KernelRequest
    of_user: Sequence[Patch]
    sources: SourceTree
    place: Callable[[], AbstractContextManager[confined.Workplace]]
    say: Progress
    broken_off: threading.Event | None

    def made(self, name: str, begun: float) -> NamedKernel:
        several = self._patches()
        self.say("reading the sources")
        files = self.sources.files()
        patched = self._patched(several, files)
        self._bring(files, patched)
        with self.place() as place:
            self._compile(name, place)
            return self._register(name, place, several, patched, begun)

    def _patches(self) -> tuple[Patch, ...]:
        own = (Patch(path.name, path.read_bytes(), is_own=True) for path in kernels.own_patches())
        return (*own, *self.of_user)

    def _patched(self, several: Sequence[Patch], files: Mapping[str, SourceFile]) -> Patched:
        touched = {path for patch in several for path in patch.files if path in files}
        contents = dict(self.sources.contents(touched))
        self.say(f"applying {len(several)} patches")
        with self.place() as first, self.place() as second:
            places = iter((first, second))
            return patches.apply(
                several, contents, lambda: next(places), lambda: source.proven(self.say), self.broken_off
            )

    def _bring(self, files: Mapping[str, SourceFile], patched: Patched) -> None:
        """Bring the tree to these files. What changes is taken out of the index first, so that it is written again if
        this is interrupted."""
        known = self._index()
        wanted = {path: [file.mode, file.stamp] for path, file in files.items() if path not in patched.files}
        for path, content in patched.files.items():
            if content is not None:
                mode = files[path].mode if path in files else "plain"
                wanted[path] = [mode, f"patched {hashlib.sha256(content).hexdigest()}"]
        changed = [path for path, what in wanted.items() if known.get(path) != what]
        gone = [path for path in known if path not in wanted]
        if not changed and not gone:
            return
        self.say(f"{len(changed)} of {len(wanted)} files are new or changed, {len(gone)} are gone")
        left = {path: what for path, what in known.items() if wanted.get(path) == what}
        self._keep_index(left)
        with self.place() as place:
            place.give("removed", "".join(f"{path}\0" for path in gone).encode())
            self._pack(place.work / "changed.tar", changed, wanted, patched)
            if place.run("take.sh", broken_off=self.broken_off):
                raise EnvironmentLacks("the sources could not be unpacked: is the disk full?")
        self._keep_index(wanted)

    def _pack(
        self, target: Path, changed: Sequence[str], wanted: Mapping[str, Sequence[str]], patched: Patched
    ) -> None:
        with tarfile.open(target, "w") as archive:
            of_source = [path for path in changed if path not in patched.files]
            own = ((path, content) for path in changed if (content := patched.files.get(path)) is not None)
            for path, content in (*own,):
                _add(archive, path, wanted[path][0], content)
            for path, content in self.sources.contents(of_source) if of_source else ():
                _add(archive, path, wanted[path][0], content)

    def _index(self) -> Mapping[str, list[str]]:
        try:
            found = documents.document(paths.read_whole(self.own / "index.json", source.LISTED.bytes), source.LISTED)
            return {str(path): [str(mode), str(stamp)] for path, (mode, stamp) in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            # What is in the tree is not known: it is made again.
            paths.remove_tree(self.own / "tree")
            (self.own / "tree").mkdir(parents=True)
            return {}

    def _keep_index(self, what: Mapping[str, Sequence[str]]) -> None:
        paths.write_whole(self.own / "index.json", json.dumps(what))

    def _compile(self, name: str, place: confined.Workplace) -> None:
        asked = "".join(f"{key}={value}\n" for key, value in self.asked.config.items())
        essential = "".join(f"{key}=y\n" for key in ESSENTIAL)
        place.give("wanted", kernels.own_config().read_bytes() + b"\n" + asked.encode())
        place.give("asked", (asked + essential).encode())
        log = self.own / "log"
        log.unlink(missing_ok=True)
        self.say(f"compiling kernel {name}")
        with report_progress(log, self.say, f"kernel {name}", "  CC ", PARTS):
            code = place.run("compile.sh", self.sources.version, log=log, broken_off=self.broken_off)
        if code:
            raise self._failed(name, log)

    def _failed(self, name: str, log: Path) -> Exception:
        said = log.read_bytes().decode(errors="replace").splitlines() if log.exists() else []
        if refused := [line for line in said if line.startswith("error: options: ")]:
            them = printable(refused[0].removeprefix("error: options: ").strip())
            return SourceMismatch(f"these sources cannot have, as asked for: {them}")
        errors = [line for line in said if re.search(r"\berror: |\*\*\* ", line)][:LOG_LINES] or said[-LOG_LINES:]
        shown = "".join(f"\n    {printable(line)[:300]}" for line in errors)
        of_machine = any(each in line for line in said for each in OF_THE_MACHINE)
        kind = EnvironmentLacks if of_machine else KernelFault
        return kind(f"kernel {name} does not compile:{shown}\nThe log: {log}")

    def _register(
        self, name: str, place: confined.Workplace, several: Sequence[Patch], patched: Patched, begun: float
    ) -> NamedKernel:
        store = kernels.store()
        store.mkdir(parents=True, exist_ok=True)
        made = store / f"building-{name}"
        paths.remove_tree(made)
        try:
            try:
                _collect(place, made)
                config = place.read("out/config", _CONFIG_BYTES)
                lacks = confined.lines(place.read("out/lacks", _CONFIG_BYTES))
            except OSError as error:
                raise EnvironmentLacks(
                    f"kernel {name}: the build has left no kernel that can be taken: {error}"
                ) from error
            found = checksums.entries(made)
            directory = store / checksums.total(found)[:16]
            if not directory.is_dir():
                made.rename(directory)
                checksums.keep(directory, found)
        finally:
            paths.remove_tree(made)
            made.with_name(f".{made.name}.sums").unlink(missing_ok=True)
        text = config.decode(errors="replace")
        manifest = KernelRecord(
            name=name,
            directory=directory.name,
            linux_sha256=next(each.sha256 for each in found if each.name == "linux"),
            version=(directory / "version").read_text(encoding="utf-8").strip(),
            asked=self.asked,
            source=self._facts(),
            recipe=kernels.recipe_key(),
            patches={each.name: each.sha256 for each in several},
            merged=patched.merged,
            config=self.asked.config,
            config_sha256=hashlib.sha256(config).hexdigest(),
            lacks=tuple(printable(line.removeprefix("CONFIG_").partition("=")[0])[:100] for line in lacks),
            hz=int(ticks[1]) if (ticks := _HZ.search(text)) else 100,
            compiler=printable(compiler[1])[:200] if (compiler := _COMPILER.search(text)) else "",
            seconds=round(time.monotonic() - begun, 1),
            built=datetime.now(UTC).isoformat(timespec="seconds"),
            minigts=minigts.__version__,
        )
        paths.write_whole(store / f"{name}.json", manifest.model_dump_json(indent=1) + "\n")
        return NamedKernel(manifest, directory)

    def _facts(self) -> kernels.SourceFacts:
        if self.sources.facts.kind != "directory":
            return self.sources.facts
        digest = hashlib.sha256(json.dumps(sorted(self._index().items())).encode())
        return self.sources.facts.model_copy(update={"sha256": digest.hexdigest()})


def _add(archive: tarfile.TarFile, path: str, mode: str, content: bytes) -> None:
    member = tarfile.TarInfo(path)
    if mode == "link":
        member.type, member.linkname = tarfile.SYMTYPE, content.decode(errors="surrogateescape")
        archive.addfile(member)
        return
    member.size, member.mode = len(content), 0o755 if mode == "executable" else 0o644
    archive.addfile(member, io.BytesIO(content))


def _collect(place: confined.Workplace, target: Path) -> None:
    """Copy a kernel's files out of a script's place, with modes of our own."""
    target.mkdir()
    for path in ("linux", "version", *_module_files(place)):
        content = place.read(f"out/{path}")
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(content)
        (target / path).chmod(0o755 if path == "linux" else 0o644)


def _module_files(place: confined.Workplace) -> Iterator[str]:
    releases = place.names("out/modules")
    if len(releases) != 1 or _RELEASE.fullmatch(release := releases[0]) is None:
        raise FileNotFoundError("no directory of modules with a release's name")
    for name in place.names(f"out/modules/{release}"):
        yield f"modules/{release}/{name}"
