"""Hosts of several kernels in one lab; patches in the files of sources that have moved; and, at night, a kernel that is
built, with other ticks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import named_kernels
from live.conftest import MakeLab, quiet
from minigts import paths
from minigts.artifacts import kernels
from minigts.artifacts.kernels import KernelRequest, NamedKernel
from minigts.cli.views import labs as shown_labs
from minigts.errors import BrokenOff, InputError
from minigts.experiments import provenance
from minigts.fidelity import measure
from minigts.lab import files
from minigts.lab.files import There
from minigts.providers.uml.build import kernel_build
from minigts.providers.uml.build.named import build, confined, patches, source
from minigts.providers.uml.build.named.patches import Patch
from minigts.providers.uml.provider import UmlProvider

pytestmark = pytest.mark.virtual
FILE = """name: kernels
hosts:
  a:
  b: {{kernel: {}}}
  c:
links: [{{ends: [a, b], rtt: 10ms}}, {{ends: [b, c], rtt: 10ms}}]
"""
NIGHTLY = "tested-at-night"
BUILD_S = 4 * 3600


@pytest.fixture
def named() -> Iterator[NamedKernel]:
    """The standard kernel under another name."""
    full = kernel_build.ensure(quiet)
    name = f"tested-{os.getpid()}"
    yield named_kernels.registered(name, full.directory)
    build.remove(name)


def test_a_host_of_another_kernel_beside_standard_ones(make_lab: MakeLab, named: NamedKernel) -> None:
    name, full = named.manifest.name, kernel_build.ensure(quiet)
    lab = make_lab(FILE.format(name))

    assert isinstance(lab.provider, UmlProvider)
    runs = {host: Path(f"/proc/{pid}/exe").readlink().parent for host, pid in lab.provider.kernels().items()}
    assert runs == {"a": full.directory, "b": named.directory, "c": full.directory}
    said = lab.provider.run("a", ["ping", "-c", "3", "-i", "0.2", "c"], timeout_s=30).stdout
    assert said.count("time=20.0 ms") == 2, "the first waits for an address as well"
    assert lab.provider.run("b", ["modprobe", "vxlan"], timeout_s=30).code == 0, "its kernel's list of modules is there"

    certificate = measure.certify(lab, quiet)
    assert certificate.kernels == {"b": name}
    assert certificate.summary()[f"kernel {name}"] == "b"
    assert shown_labs.lab_facts(lab)["kernels"] == {"b": name}
    parts = provenance.parts(lab.provider, quiet)
    assert parts["kernel"].proven is True
    assert parts[f"kernel-{name}"].sha256 == parts["kernel"].sha256, "of the same bytes, whatever its name"


def test_a_host_keeps_its_kernel_when_the_name_gets_another(
    make_lab: MakeLab, named: NamedKernel, tmp_path: Path
) -> None:
    lab = make_lab(FILE.format(named.manifest.name))
    other = named_kernels.registered(named.manifest.name, named_kernels.small(tmp_path / "small"))
    try:
        lab.provider.restart("b")  # type: ignore[attr-defined]
        assert lab.provider.run("b", ["true"], timeout_s=30).code == 0
        assert lab.provider.part_directories()[kernels.part(named.manifest.name)] == named.directory  # type: ignore[attr-defined]
    finally:
        paths.remove_tree(other.directory)
        named_kernels.registered(named.manifest.name, kernel_build.ensure(quiet).directory)


BASE = "".join(f"line {number}\n" for number in range(1, 41))
OWN = Patch(
    "0001-own.patch",
    b"--- a/net/x.c\n+++ b/net/x.c\n@@ -9,7 +9,7 @@ line 8\n line 9\n line 10\n line 11\n-line 12\n"
    b"+line twelve\n line 13\n line 14\n line 15\n",
    is_own=True,
)


class _Base:
    """The sources that minigts' patches were proven on."""

    def contents(self, wanted: object) -> list[tuple[str, bytes]]:
        return [("net/x.c", BASE.encode())]


@pytest.fixture
def applied(tmp_path: Path) -> Iterator[Callable[..., patches.Patched]]:
    """Applies patches to a file net/x.c with this text, in the root in which kernels are compiled."""
    root = confined.root().ensure(quiet) / "root"
    (tmp_path / "tree").mkdir()

    def apply(text: str, *several: Patch) -> patches.Patched:
        place = partial(confined.place, root, tmp_path / "tree")
        with place() as first, place() as second:
            both = iter((first, second))
            contents = {"net/x.c": text.encode()}
            return patches.apply(several, contents, lambda: next(both), _Base)  # type: ignore[arg-type,return-value]

    yield apply


def test_a_patch_that_fits_moved_lines_is_applied(applied: Callable[..., patches.Patched]) -> None:
    made = applied("a new line\n" * 9 + BASE, OWN)

    assert made.files["net/x.c"] == ("a new line\n" * 9 + BASE).replace("line 12\n", "line twelve\n").encode()
    assert made.merged == ()


def test_a_patch_whose_surroundings_have_changed_is_merged(applied: Callable[..., patches.Patched]) -> None:
    moved = BASE.replace("line 9\n", "another nine\n")

    made = applied(moved, OWN)

    assert made.files["net/x.c"] == moved.replace("line 12\n", "line twelve\n").encode()
    assert made.merged == ("0001-own.patch: net/x.c",)


def test_a_patch_that_cannot_be_merged_names_file_and_hunk(applied: Callable[..., patches.Patched]) -> None:
    with pytest.raises(
        InputError, match=r"minigts' patch 0001-own\.patch: net/x\.c: hunk 1 \(@@ -9,7 \+9,7 @@ line 8\)"
    ):
        applied(BASE.replace("line 12\n", "no line at all\n"), OWN)


def test_a_user_s_patch_that_does_not_fit_names_file_and_hunk(applied: Callable[..., patches.Patched]) -> None:
    theirs = Patch("fix.patch", b"--- a/net/x.c\n+++ b/net/x.c\n@@ -2 +2 @@\n-line zwei\n+line II\n", is_own=False)

    with pytest.raises(InputError, match=r"--patch fix\.patch: net/x\.c: hunk 1 \(@@ -2 \+2 @@\) does not fit"):
        applied(BASE, OWN, theirs)
    gone = Patch("gone.patch", theirs.content.replace(b"net/x.c", b"net/y.c"), is_own=False)
    with pytest.raises(InputError, match=r"--patch gone\.patch: net/y\.c: the sources have no such file"):
        applied(BASE, OWN, gone)


def test_what_compiles_reaches_nothing_of_this_machine(tmp_path: Path) -> None:
    """No network, no other process, no file but its own; and it ends with who started it."""
    root = confined.root().ensure(quiet) / "root"
    (tmp_path / "tree").mkdir()
    (tmp_path / "secret").write_text("a secret")
    with confined.place(root, tmp_path / "tree") as place:
        script = (
            f"cat {tmp_path}/secret /proc/1/root{tmp_path}/secret; kill -0 {os.getpid()}; touch /usr/x; "
            "cat /proc/net/route; exec 3<>/dev/tcp/127.0.0.1/22; echo mine >/tmp/tree/mine; ls /proc | grep -c '^[0-9]'"
        )
        place.give("try.sh", script.encode())
        log = tmp_path / "log"
        place.run("try.sh", log=log)
    said = log.read_text()
    assert "a secret" not in said
    assert "No such process" in said or "not permitted" in said
    assert "Read-only file system" in said
    assert "Network is unreachable" in said
    assert (tmp_path / "tree" / "mine").read_text() == "mine\n"


@pytest.mark.nightly
@pytest.mark.timeout(2 * BUILD_S)
def test_a_host_has_the_ticks_of_its_kernel(make_lab: MakeLab) -> None:
    made = build.build(NIGHTLY, KernelRequest(config=build.options([], 100, [])), quiet)
    assert made.manifest.hz == 100
    assert not made.proof.proven

    lab = make_lab(FILE.format(NIGHTLY))
    ticks = ["sh", "-c", "zcat /proc/config.gz | grep ^CONFIG_HZ="]
    assert [lab.provider.run(host, ticks, timeout_s=30).stdout.strip() for host in "ab"] == [
        "CONFIG_HZ=1000",
        "CONFIG_HZ=100",
    ]


@pytest.mark.nightly
@pytest.mark.timeout(2 * BUILD_S)
def test_the_second_build_compiles_what_has_changed(tmp_path: Path) -> None:
    """One changed file is compiled, and the kernel of the name is another one."""
    before = build.build(NIGHTLY, KernelRequest(config=build.options([], 100, [])), quiet)
    with source.open_tree(KernelRequest(), quiet) as found:
        [(_, text)] = found.contents(["net/ipv4/tcp_vegas.c"])
    changed = text.replace(b"TCP Vegas", b"TCP vegas", 1)
    first = text.split(b"\n").index(next(line for line in text.split(b"\n") if b"TCP Vegas" in line)) + 1
    old, new = (each.split(b"\n")[first - 1].decode() for each in (text, changed))
    patch = tmp_path / "vegas.patch"
    patch.write_text(
        f"--- a/net/ipv4/tcp_vegas.c\n+++ b/net/ipv4/tcp_vegas.c\n@@ -{first} +{first} @@\n-{old}\n+{new}\n"
    )

    asked = KernelRequest(patches=(str(patch),), config=before.manifest.asked.config)
    after = build.build(NIGHTLY, asked, quiet)

    compiled = (build.trees() / NIGHTLY / "log").read_text().count("\n  CC ")
    assert 1 <= compiled < 50
    assert list(after.manifest.patches)[-1] == "vegas.patch"
    assert before.directory.is_dir(), "labs that are up start hosts from it again"


@pytest.mark.nightly
@pytest.mark.timeout(BUILD_S)
def test_a_build_that_is_broken_off_has_no_name() -> None:
    name, broken_off = f"broken-{os.getpid()}", threading.Event()

    def say(text: str) -> None:
        if text.startswith("compiling"):
            broken_off.set()

    with pytest.raises(BrokenOff):
        build.build(name, KernelRequest(), say, broken_off)

    assert name not in kernels.names()
    assert not list(kernels.store().glob("building-*"))
    build.remove(name)


@pytest.mark.nightly
@pytest.mark.timeout(2 * BUILD_S)
def test_a_kernel_with_kmemleak_scans_its_memory(make_lab: MakeLab, tmp_path: Path) -> None:
    """The scan ends, and files that are copied into a host leave nothing behind."""
    build.build(NIGHTLY, KernelRequest(config=build.options([], None, ["kmemleak"])), quiet)
    lab = make_lab(FILE.format(NIGHTLY))
    (tmp_path / "file").write_text("some\n")
    for number in range(3):
        files.put(lab, tmp_path / "file", There.of("b", f"/var/tmp/{number}"), recursive=False)
    mount = "mount -t debugfs none /sys/kernel/debug; cd /sys/kernel/debug"
    lab.provider.run("b", ["sh", "-ec", f"{mount}; echo scan >kmemleak; sleep 6; echo scan >kmemleak"], timeout_s=300)
    found = lab.provider.run("b", ["cat", "/sys/kernel/debug/kmemleak"], timeout_s=30).stdout
    assert "/proc/self/fd" not in found
