"""The build of a kernel by name, on sources small enough to compile in a second: what is registered, what is compiled
again, what is refused, and what is left of a build that fails or is broken off."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live.conftest import quiet
from minigts import paths
from minigts.artifacts import kernels
from minigts.artifacts.kernels import KernelRequest, NamedKernel
from minigts.errors import BrokenOff, EnvironmentLacks, InputError
from minigts.providers.uml.build.named import build, confined

pytestmark = [pytest.mark.uml, pytest.mark.nightly]

MAKEFILE = r"""
all: linux
kernelversion: ; @echo 9.1.0
kernelrelease: ; @echo 9.1.0-minigts
allnoconfig: ; grep -xFf known $(KCONFIG_ALLCONFIG) >.config
linux: a.o b.o .config
	gcc -static -o linux a.o b.o
	: >modules.builtin
	: >modules.builtin.modinfo
%.o: %.c
	@echo "  CC      $@"
	gcc -c -o $@ $<
"""
ESSENTIAL = "".join(f"CONFIG_{each}=y\n" for each in build.ESSENTIAL)
SOURCES = {
    "Makefile": MAKEFILE,
    "arch/um/Kconfig": "",
    "known": f'{ESSENTIAL}CONFIG_LOCALVERSION="-minigts"\nCONFIG_HZ=1000\nCONFIG_NET=y\n',
    "a.c": 'int answer(void);\n#include <stdio.h>\nint main(void) { return printf("%d\\n", answer()) < 0; }\n',
    "b.c": "int answer(void) { return 1; }\n",
}
Build = Callable[..., NamedKernel]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in SOURCES.items():
        (tmp_path / "linux" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linux" / path).write_text(text)
    return tmp_path / "linux"


@pytest.fixture
def built(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """Builds the kernel `small` of these sources, without minigts' patches, in a cache of its own."""
    root = confined.root()
    ready = root.ensure(quiet)
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    (confined.root().store).mkdir(parents=True)
    (confined.root().store / root.key).symlink_to(ready)
    monkeypatch.setattr(kernels, "own_patches", lambda: ())

    def run(
        broken_off: threading.Event | None = None, say: Callable[[str], None] = quiet, **config: str
    ) -> NamedKernel:
        return build.build("small", KernelRequest(source=str(tree), config=config), say, broken_off)

    yield run
    paths.remove_tree(tmp_path / "cache" / "kernel-trees")


def answer(kernel: NamedKernel) -> str:
    return subprocess.run([kernel.directory / "linux"], capture_output=True, text=True, check=True).stdout.strip()


def compiled() -> list[str]:
    said = (build.trees() / "small" / "log").read_text().splitlines()
    return [line.split()[1] for line in said if line.startswith("  CC ")]


def test_a_kernel_gets_its_name_and_what_is_known_of_it(built: Build, tree: Path) -> None:
    made = built(HZ="1000", NET="y")

    assert (answer(made), compiled()) == ("1", ["a.o", "b.o"])
    about = made.manifest
    assert kernels.find("small") == made
    assert (about.version, about.hz, about.source.kind, about.source.place) == ("9.1.0", 1000, "directory", str(tree))
    assert about.config == {"HZ": "1000", "NET": "y"}
    assert {"IPV6", "INET"} < set(about.lacks), "of minigts' own options"
    assert made.modules.name == "9.1.0-minigts"


def test_the_second_build_compiles_what_has_changed(built: Build, tree: Path) -> None:
    before = built()
    (tree / "b.c").write_text("int answer(void) { return 2; }\n")
    after = built()

    assert (answer(after), compiled()) == ("2", ["b.o"])
    assert answer(before) == "1", "hosts that are up are started from it again"
    assert kernels.find("small").directory == after.directory


def test_the_same_again_compiles_nothing(built: Build) -> None:
    before, after = built(), built()

    assert compiled() == []
    assert after.directory == before.directory


def test_a_file_that_is_gone_is_gone_from_the_tree(built: Build, tree: Path) -> None:
    built()
    (tree / "b.c").rename(tree / "c.c")
    (tree / "Makefile").write_text(MAKEFILE.replace("b.o", "c.o"))

    assert answer(built()) == "1"
    inside = {path.name for path in (build.trees() / "small" / "tree").glob("*.c")}
    assert inside == {"a.c", "c.c"}


@pytest.mark.parametrize("config", [{"TCP_MD5SIG": "y"}, {"NET": "n"}], ids=["cannot be had", "cannot be left out"])
def test_an_option_that_cannot_be_met_is_refused(built: Build, tree: Path, config: dict[str, str]) -> None:
    (tree / "Makefile").write_text(MAKEFILE.replace(">.config", ">.config; echo CONFIG_NET=y >>.config"))

    with pytest.raises(InputError, match=f"these sources cannot have, as asked for: CONFIG_{next(iter(config))}="):
        built(**config)
    assert kernels.names() == ()


def test_a_compiler_s_error_is_shown_and_the_name_keeps_its_kernel(built: Build, tree: Path) -> None:
    before = built()
    (tree / "b.c").write_text("int answer(void) { return x; }\n")

    with pytest.raises(EnvironmentLacks, match=r"b\.c:1:\d+: error: .x. undeclared"):
        built()
    assert kernels.find("small") == before


def test_what_is_broken_off_has_no_name_and_is_built_afterwards(built: Build, tree: Path) -> None:
    (tree / "Makefile").write_text(MAKEFILE.replace("gcc -c", "test -e go || sleep 600; gcc -c"))
    broken_off = threading.Event()

    def say(text: str) -> None:
        if text.startswith("compiling"):
            broken_off.set()

    with pytest.raises(BrokenOff):
        built(broken_off, say)
    assert kernels.names() == ()
    assert not list(kernels.store().glob("*"))

    (tree / "go").write_text("")
    assert answer(built()) == "1"


@pytest.mark.parametrize(
    "trick",
    [
        "ln -sf /etc/passwd /tmp/out/linux",
        "rm -r /tmp/out/modules; ln -s /etc /tmp/out/modules",
        "mv /tmp/out /tmp/other; ln -s other /tmp/out",
        "mkdir /tmp/out/modules/2",
    ],
)
def test_links_that_sources_leave_lead_nowhere(built: Build, monkeypatch: pytest.MonkeyPatch, trick: str) -> None:
    """A program of the sources runs with the rights of the script, and can exchange what that leaves."""
    script = (kernels.recipe() / "compile.sh").read_text()
    run = confined.Workplace.run

    def tricked(place: confined.Workplace, name: str, *words: str, **more: Any) -> int:
        if name == "compile.sh":
            place.give(name, f"{script}\n{trick}\n".encode())
        return run(place, name, *words, **more)

    monkeypatch.setattr(confined.Workplace, "run", tricked)
    with pytest.raises(EnvironmentLacks, match="the build has left no kernel that can be taken"):
        built()
    assert kernels.names() == ()
