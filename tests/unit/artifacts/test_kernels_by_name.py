"""Kernels by name in a cache of its own: which there are, what is refused, and what the command line says of them."""

from __future__ import annotations

import json
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import named_kernels
from minigts.artifacts import digests, kernels
from minigts.artifacts.kernels import KernelRequest
from minigts.cli.app import app
from minigts.errors import InputError, MinigtsError
from minigts.experiments import prepare, provenance
from minigts.machine.contained import Namespaces
from minigts.providers import registry
from minigts.providers.uml.build.named import build, patches, source
from minigts.providers.uml.build.named.patches import Patch
from minigts.providers.uml.run import bounds
from minigts.results.schema import TOPOLOGY as TOPOLOGY_FILE
from minigts.session import plans

TOPOLOGY = "name: two\nhosts:\n  a:\n    kernel: {}\n  b: {{}}\nlinks:\n- {{ends: [a, b], delay: 1ms}}\n"
PATCH = """A patch.

--- a/net/ipv4/tcp.c
+++ b/net/ipv4/tcp.c
@@ -1,3 +1,3 @@ int one(void)
 one
--- two
+++ three
 four
@@ -9 +9,2 @@
 nine
+ten
--- /dev/null
+++ b/net/new.c
@@ -0,0 +1 @@
+new
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIGTS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mine(tmp_path: Path) -> kernels.NamedKernel:
    return named_kernels.registered("mine", named_kernels.small(tmp_path / "small"), hz=1000)


def test_a_kernel_is_found_by_its_name(mine: kernels.NamedKernel) -> None:
    assert kernels.words() == ("standard", "mine")
    assert kernels.find("mine") == mine
    assert mine.modules.name == "7.2.13-minigts"


def test_a_kernel_with_kasan_may_map_its_records(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"")
    options = {**mine.manifest.config, "KASAN": "y"}
    watched = replace(mine, manifest=mine.manifest.model_copy(update={"config": options}))
    bound, larger = (bounds.kernel_bounds(64, disk, Namespaces(), each.shadow_mb) for each in (mine, watched))
    assert (mine.shadow_mb, larger.private_mb - bound.private_mb) == (0, 16 << 20)


def test_an_unknown_kernel_names_the_known_ones_and_the_command(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("mien"))

    done = CliRunner().invoke(app, ["up", str(file)])

    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert f"{file}:4: hosts.a.kernel: no kernel 'mien' on this machine; there are standard, mine" in said
    assert "did you mean" in said
    assert "minigts kernel build mien" in said


def test_a_plan_needs_no_kernel_to_be_there(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("elsewhere"))

    done = CliRunner().invoke(app, ["plan", str(file), "--json"])

    assert done.exit_code == 0, done.stderr
    assert [each.get("kernel") for each in json.loads(done.stdout)["hosts"]] == ["elsewhere", None]


@pytest.mark.parametrize(
    "verb", [["up", "FILE"], ["explore", "FILE", "test_x.py"], ["run", "experiments/multihop.yaml"]]
)
def test_kernel_on_the_command_line_has_to_be_there(verb: list[str], tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("standard"))

    done = CliRunner().invoke(app, [*(str(file) if each == "FILE" else each for each in verb), "--kernel", "nope"])

    assert done.exit_code == 2
    assert "--kernel: no kernel 'nope' on this machine" in " ".join(done.stderr.split())


def test_kernel_takes_the_place_of_the_file_s(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("standard"))

    assert [each.kernel for each in plans.planned(file, kernel="mine").hosts] == ["", "mine"]
    assert [each.kernel for each in plans.planned(file.read_text(), kernel="mine").hosts] == ["", "mine"]


EXPERIMENT = """name: each
title: On each kernel
topology: two.yaml
overlays: [none]
seed: 1
repetitions: 1
vary: {kernel: KERNELS}
measurements:
- {name: rtt, tool: ping, paths: [first-to-last]}
"""


def prepared(folder: Path, names: str, kernel: str | None = None) -> list[tuple[str, str, bytes]]:
    """Of each lab its variant, the kernel of host b, and the topology that its results keep."""
    (folder / "two.yaml").write_text(TOPOLOGY.format("standard"))
    (folder / "each.yaml").write_text(EXPERIMENT.replace("KERNELS", names))
    found = prepare.prepare_sweep(folder / "each.yaml", paper=False, quick=False, only=(), kernel=kernel)
    return [(each.experiment.variant, each.plan.host("b").kernel, each.sources[TOPOLOGY_FILE]) for each in found]


def test_an_experiment_varies_the_kernel(
    mine: kernels.NamedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    standard, other = prepared(tmp_path, "[standard, mine]")

    assert [standard[:2], other[:2]] == [("kernel=standard", ""), ("kernel=mine", "mine")]
    assert b"kernel: mine" in other[2], "the results keep what was measured"
    with pytest.raises(InputError, match="the experiment varies the kernel itself"):
        prepared(tmp_path, "[standard, mine]", "mine")
    with pytest.raises(InputError, match=r"each\.yaml:7: vary: kernel=your: .*no kernel 'your' on this machine"):
        prepared(tmp_path, "[standard, your]")


def test_a_kernel_of_other_patches_is_refused_with_the_command(tmp_path: Path) -> None:
    named_kernels.registered("old", named_kernels.small(tmp_path / "small"), recipe="0" * 16)
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("old"))

    with pytest.raises(InputError, match=r"two\.yaml:4: .*built with other patches .*minigts kernel build old"):
        plans.planned(file)


def test_a_damaged_record_is_said_and_hides_no_other(mine: kernels.NamedKernel) -> None:
    (kernels.store() / "bad.json").write_text("{")

    with pytest.raises(MinigtsError, match=r"damaged.*minigts kernel remove bad"):
        kernels.find("bad")
    assert [each.manifest.name for each in kernels.every()] == ["mine"]
    build.remove("bad")
    assert kernels.names() == ("mine",)


def test_what_a_plan_s_kernels_are_is_said(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    """Figures of a kernel that is not the proven one say so, before they are measured."""
    plan = plans.planned(TOPOLOGY.format("mine"))

    assert plan.kernels == {"mine": ("a",)}
    (line,) = kernels.remarks(plan)
    assert line.startswith("a: kernel mine of Linux 7.2.13-1, 1000 ticks a second, unproven: other bytes in linux")
    file = tmp_path / "two.yaml"
    file.write_text(TOPOLOGY.format("mine"))
    assert "kernel mine: a" in CliRunner().invoke(app, ["plan", str(file)]).stdout


def test_a_kernel_with_other_bytes_than_the_standard_one_s_is_unproven(
    mine: kernels.NamedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not mine.proof.proven
    expected = {f"kernel/{each}": _sum(mine.directory / each) for each in _files(mine.directory)}
    monkeypatch.setattr(digests, "expected_digests", lambda: expected)

    assert mine.proof.proven, "its bytes count, not its name"


def _files(directory: Path) -> list[str]:
    return [path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()]


def _sum(path: Path) -> str:
    return subprocess.run(["sha256sum", path], capture_output=True, check=True, text=True).stdout.split()[0]


def test_a_lab_s_parts_are_those_of_its_plan(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    """Of the kernels by name a run's manifest has those that its hosts had, and the standard one if any host had it."""
    named_kernels.registered("other", named_kernels.small(tmp_path / "other", "another"))
    provider = registry.make("uml", tmp_path / "none", "virtual")
    both, alone = (plans.planned(TOPOLOGY.format("mine"), kernel=name) for name in (None, "mine"))

    words = [set(provenance.parts(provider, lambda _: None, plan)) for plan in (both, alone)]

    assert [each & {"kernel-mine", "kernel-other"} for each in words] == [{"kernel-mine"}, {"kernel-mine"}]
    assert provenance.parts(provider, lambda _: None, both)["kernel-mine"].proven is False


def test_list_says_what_is_known(mine: kernels.NamedKernel) -> None:
    found = json.loads(CliRunner().invoke(app, ["kernel", "list", "--json"]).stdout)

    assert [each["name"] for each in found] == ["standard", "mine"]
    assert (found[1]["hz"], found[1]["state"].partition(":")[0]) == (1000, "unproven")
    assert "mine" in CliRunner().invoke(app, ["kernel", "list"]).stdout


def test_remove_leaves_files_that_another_name_has(mine: kernels.NamedKernel, tmp_path: Path) -> None:
    twin = named_kernels.registered("twin", named_kernels.small(tmp_path / "again"))
    assert twin.directory == mine.directory

    assert CliRunner().invoke(app, ["kernel", "remove", "mine"]).exit_code == 0
    assert twin.directory.is_dir()
    assert CliRunner().invoke(app, ["kernel", "remove", "twin"]).exit_code == 0
    assert not twin.directory.exists()
    assert CliRunner().invoke(app, ["kernel", "remove", "twin"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["standard", "--hz", "1000"], "standard is the name of the kernel that hosts have anyway"),
        (["a/b"], "is no kernel's name"),
        (["--hz", "1000"], "go with a name"),
        (["x", "--hz", "999"], "the timer has 100, 250, 300 or 1000 ticks a second"),
        (["x", "--debug", "kasan,kmsan"], "--debug kmsan: write kasan, lockdep, kmemleak, kcov"),
        (["x", "--config", "NET_SCH_CAKE"], "write an option and its value, as in NET_SCH_CAKE=y"),
        (["x", "--config", "NET_SCH_CAKE=m"], "so everything is built in: write NET_SCH_CAKE=y"),
        (["x", "--patch", "/nowhere"], "--patch /nowhere: No such file"),
    ],
)
def test_what_build_refuses(words: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["kernel", "build", *words])

    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert kernels.names() == ()


def test_options_are_those_of_hz_debug_and_config() -> None:
    found = build.options(["CONFIG_LSM=landlock", "TCP_CONG_BBR=n", "LOG_BUF_SHIFT=20"], 250, ["lockdep"])

    assert found == {
        "DEBUG_KERNEL": "y",
        "PROVE_LOCKING": "y",
        "LSM": '"landlock"',
        "TCP_CONG_BBR": "n",
        "LOG_BUF_SHIFT": "20",
        "HZ": "250",
    }


def test_a_patch_s_files_and_hunks() -> None:
    """Lines of a hunk that look like the head of a file are lines of the hunk."""
    assert Patch("p", PATCH.encode(), is_own=False).hunks == {
        "net/ipv4/tcp.c": ("@@ -1,3 +1,3 @@ int one(void)", "@@ -9 +9,2 @@"),
        "net/new.c": ("@@ -0,0 +1 @@",),
    }


def test_minigts_own_patches_are_read() -> None:
    several = [Patch(path.name, path.read_bytes(), is_own=True) for path in kernels.own_patches()]

    assert len(several) > 20
    assert next(each.files for each in several if "ticks-are-asked-for" in each.name) == ("arch/um/Kconfig",)
    assert all(each.files and all(each.hunks.values()) for each in several)


@pytest.mark.parametrize("path", ["a/../../x", "a//etc/passwd"])
def test_a_patch_that_leads_out_of_the_tree_is_refused(tmp_path: Path, path: str) -> None:
    file = tmp_path / "bad.patch"
    file.write_text(f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n")

    with pytest.raises(InputError, match="no path in a tree of sources"):
        patches.user_patch(file)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    for path, text in (("Makefile", "all:\n"), ("arch/um/Kconfig", "config UML\n"), ("net/tcp.c", "int x;\n")):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    (place / "link").symlink_to("net/tcp.c")
    return place


FILES = {"Makefile", "arch/um/Kconfig", "net/tcp.c", "link"}


def opened(place: Path, commit: str = "") -> tuple[source.SourceFacts, dict[str, source.SourceFile], dict[str, bytes]]:
    with source.open_tree(KernelRequest(source=str(place), commit=commit), lambda _: None) as found:
        files = dict(found.files())
        return found.facts, files, dict(found.contents(files))


def committed(place: Path) -> str:
    git = ["git", "-C", str(place), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def test_a_commit_of_more_files_than_git_answers_at_once_is_read(tree: Path) -> None:
    """git holds an answer back until it has more of them, or its input ends."""
    for number in range(1201):
        (tree / f"net/{number}.c").write_text(f"int x{number};\n")
    committed(tree)

    _, files, contents = opened(tree, "HEAD")

    assert len(files) == len(contents) == len(FILES) + 1201
    assert contents["net/777.c"] == b"int x777;\n"


def test_a_directory_an_archive_and_a_commit_have_the_same_files(tree: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "linux.tar.xz", "w:xz") as archive:
        archive.add(tree, "linux-7.2")
    facts, files, contents = opened(tree)
    assert (facts.kind, set(files)) == ("directory", FILES)
    assert (files["link"].mode, contents["link"], contents["net/tcp.c"]) == ("link", b"net/tcp.c", b"int x;\n")

    facts, files, packed = opened(tmp_path / "linux.tar.xz")
    assert (facts.kind, packed) == ("archive", contents)

    head = committed(tree)
    facts, files, kept = opened(tree, "HEAD")
    assert (facts.kind, facts.commit, kept) == ("git", head, contents)


def test_a_working_tree_is_as_it_is_and_says_that_it_was_changed(tree: Path) -> None:
    head = committed(tree)
    (tree / ".gitignore").write_text("*.o\n")
    (tree / "net/tcp.o").write_text("an object")
    (tree / "net/tcp.c").write_text("int y;\n")

    facts, files, contents = opened(tree)

    assert (facts.kind, facts.commit, facts.changed) == ("directory", head, True)
    assert set(files) == {*FILES, ".gitignore"}
    assert contents["net/tcp.c"] == b"int y;\n"


def test_a_changed_file_has_another_stamp(tree: Path) -> None:
    _, before, _ = opened(tree)
    (tree / "net/tcp.c").write_text("int yy;\n")
    _, after, _ = opened(tree)

    assert [path for path in before if before[path] != after[path]] == ["net/tcp.c"]


def test_a_directory_in_which_a_kernel_was_compiled_is_refused(tree: Path) -> None:
    (tree / ".config").write_text("")

    with pytest.raises(InputError, match="make mrproper"):
        opened(tree)


def test_what_holds_no_sources_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no archive")

    with pytest.raises(InputError, match="holds no sources of Linux"):
        opened(tmp_path / "empty")
    with pytest.raises(InputError, match="no archive that can be read"):
        opened(tmp_path / "text")
    with pytest.raises(InputError, match="names the git repository"):
        opened(tmp_path / "text", "v6.12")


def test_an_archive_that_leads_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(tmp_path / "file", "linux/../../x")

    with pytest.raises(InputError, match="no path of a file in a tree of sources"):
        opened(tmp_path / "bad.tar")


def test_a_commit_that_is_none_is_refused(tree: Path) -> None:
    committed(tree)

    with pytest.raises(InputError, match=r"git rev-parse|it has no commit"):
        opened(tree, "v9.9")
    with pytest.raises(InputError, match="no name of a commit"):
        opened(tree, "--upload-pack=x")
