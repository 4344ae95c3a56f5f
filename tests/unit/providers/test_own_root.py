"""An image of the user's as a host: how it is unpacked, whatever an archive holds; and what the plan makes of it."""

from __future__ import annotations

import importlib.util
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from minigts import paths
from minigts.errors import CommandFailed, InputError, MinigtsError
from minigts.providers.uml.build import user_images
from minigts.providers.uml.build.image import Image
from minigts.topology.plan.plan import Plan, plan_json
from minigts.topology.read.load import load
from minigts.topology.software import ENTER, Root

LINK, HARD, DEVICE, DIRECTORY = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE
Content = Mapping[str, str | tuple[bytes, str]]
"""By name a file's text, or what else it is and where it leads."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """What runs on a host."""
    found = importlib.util.spec_from_file_location("root", paths.project_root() / "provision" / "guests" / "root.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def tar_of(content: Content) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, what in content.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o4755
            if isinstance(what, str):
                member.size = len(what)
                archive.addfile(member, io.BytesIO(what.encode()))
            else:
                member.type, member.linkname = what
                archive.addfile(member)
    return file.getvalue()


def saved(*layers: Content, **settings: Any) -> bytes:
    """As `docker save` writes it."""
    file = io.BytesIO()
    entry = {"Config": "config.json", "Layers": [f"{number}/layer.tar" for number in range(len(layers))]}
    parts = {f"{number}/layer.tar": tar_of(layer) for number, layer in enumerate(layers)}
    parts |= {"config.json": json.dumps({"config": settings}).encode(), "manifest.json": json.dumps([entry]).encode()}
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def unpacked(script: ModuleType, place: Path, archive: bytes) -> Path:
    (place / "image.tar").write_bytes(archive)
    script.unpack(str(place / "image.tar"), place / "root")
    return place / "root"


def test_layers_come_over_each_other_and_take_away_what_they_say(script: ModuleType, tmp_path: Path) -> None:
    lower = {"bin/sh": "old", "etc/gone": "x", "srv/a/b": "x", "srv/c": "x", "var": (DIRECTORY, ""), "opt/d/e": "x"}
    upper = {"bin/sh": "new", "etc/.wh.gone": "", "srv/.wh..wh..opq": "", "srv/new": "x", "opt/d": "a file"}
    (tmp_path / "image.tar").write_bytes(saved(lower, upper, Env=["PATH=/opt", "A=b c"]))
    assert script.unpack(str(tmp_path / "image.tar"), tmp_path / "root") == ["PATH=/opt", "A=b c"]
    root = tmp_path / "root"
    found = {str(each.relative_to(root)) for each in root.rglob("*")}
    assert found == {"bin", "bin/sh", "etc", "srv", "srv/new", "var", "opt", "opt/d"}
    assert (root / "bin" / "sh").read_text() == "new"


def test_a_root_file_system_keeps_modes_and_links(script: ModuleType, tmp_path: Path) -> None:
    root = unpacked(
        script,
        tmp_path,
        tar_of(
            {
                "./usr/bin/su": "x",
                "./bin": (LINK, "usr/bin"),
                "./bin/also": (HARD, "./usr/bin/su"),
                "dev/x": (DEVICE, ""),
            }
        ),
    )
    assert (root / "usr" / "bin" / "su").stat().st_mode & 0o7777 == 0o4755
    assert (root / "bin").readlink() == Path("usr/bin")
    assert (root / "usr" / "bin" / "also").samefile(root / "usr" / "bin" / "su")
    assert not (root / "dev" / "x").exists()


@pytest.mark.parametrize(
    ("content", "inside"),
    [
        ({"../../outside/f": "evil"}, "outside/f"),
        ({"/outside/f": "evil"}, "outside/f"),
        ({"way": (LINK, "{outside}"), "way/f": "evil"}, ""),
        ({"way": (LINK, "../../outside"), "way/f": "evil"}, "outside/f"),
        ({"f": (LINK, "{outside}/f"), "./f": "evil"}, "f"),
        ({"way": (LINK, "{outside}"), "f": (HARD, "way/kept"), "./f": "evil"}, None),
        ({"way": (LINK, "{outside}"), "way/.wh.kept": ""}, ""),
        ({"way": (LINK, "{outside}"), "way/.wh..wh..opq": ""}, ""),
        ({"way": (LINK, "way"), "way/f": "evil"}, None),
    ],
    ids=["above", "absolute", "absolute link", "link above", "link itself", "hard link", "gone", "opaque", "ring"],
)
def test_nothing_outside_of_the_root_is_touched(
    script: ModuleType, tmp_path: Path, content: Content, inside: str | None
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    meant = {
        name: what if isinstance(what, str) else (what[0], what[1].format(outside=outside))
        for name, what in content.items()
    }
    if inside is None:
        with pytest.raises((OSError, ValueError, KeyError, tarfile.TarError)):
            unpacked(script, tmp_path, saved(meant))
    else:
        assert (unpacked(script, tmp_path, saved(meant)) / inside).exists()
    assert [each.name for each in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    ("path", "lies"),
    [
        ("/etc/passwd", "etc/passwd"),
        ("/var/run/x", "run/x"),
        ("/var/run", "run"),
        ("/../../etc", "etc"),
        ("/up/x", "run/x"),
        ("//etc/./x/", "etc/x"),
        ("/", ""),
    ],
)
def test_a_path_is_where_it_would_be_in_the_root(script: ModuleType, tmp_path: Path, path: str, lies: str) -> None:
    for name in ("run", "var", "etc"):
        (tmp_path / name).mkdir()
    (tmp_path / "var" / "run").symlink_to("/run")
    (tmp_path / "up").symlink_to("../../var/run")
    assert script.within(tmp_path, path) == tmp_path / lies


@pytest.mark.parametrize(
    "archive",
    [
        b"no tar",
        saved({"a": "x"})[:2048],
        saved({"a": "x"}).replace(b"1/layer", b"2/layer").replace(b"0/layer", b"9/layer", 1),
    ],
    ids=["none", "cut off", "a layer that is not there"],
)
def test_what_cannot_be_unpacked_is_said_in_a_line(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    archive: bytes,
) -> None:
    (tmp_path / "image.tar").write_bytes(archive)
    monkeypatch.setattr(script, "ROOT", tmp_path / "root")
    monkeypatch.setattr("sys.argv", ["root.py", "unpack", str(tmp_path / "image.tar")])
    with pytest.raises(SystemExit) as ended:
        script.main()
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (user_images.BROKEN, 1)
    assert said.startswith("it cannot be unpacked: ")


def plan_of(directory: Path, text: str) -> Plan:
    (directory / "lab.yaml").write_text(f"name: x\n{text}\n")
    return load(directory / "lab.yaml")


def root_of(plan: Plan, host: str) -> Root | None:
    found = plan.host(host).software
    return None if found is None else found.root


def test_the_nearest_image_is_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGTS_FILES", str(tmp_path.parent))
    text = """
defaults: {host: {image: ../far.tar}}
chain: {hosts: [a, b]}
hosts: {c: {image: "docker-daemon:debian:13"}}
links: [{ends: [b, c]}]
"""
    plan = plan_of(tmp_path, text)
    far, near = root_of(plan, "a"), root_of(plan, "c")
    assert far is not None and near is not None
    assert far.image == str(tmp_path.parent / "far.tar")
    assert str(far.place) == f"{tmp_path}/lab.yaml:3: defaults.host.image"
    assert near.image == "docker-daemon:debian:13"
    assert Plan.model_validate_json(plan_json(plan)) == plan


def test_a_plan_without_images_says_nothing_of_them(tmp_path: Path) -> None:
    assert '"root"' not in plan_json(plan_of(tmp_path, "pair: {host: {run: [x]}}"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("image: debian", r"pair.host.image: 'debian' is no image: write a file, as in"),
        ("image: 'docker://'", r"pair.host.image: 'docker://' names no image"),
        ("image: a.tar, packages: [curl]", r"pair.host.packages: are Debian's, and this host has its own image"),
    ],
)
def test_an_image_that_is_none_is_an_error_with_its_line(tmp_path: Path, settings: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"lab.yaml:2: {words}"):
        plan_of(tmp_path, f"pair: {{host: {{{settings}}}}}")


def test_commands_enter_the_root_with_the_hosts_variables(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'pair: {host: {image: a.tar, environment: {A: "b c"}}}')
    found = plan.hosts[0].software
    assert found is not None
    assert found.wrap(("ls",)) == (ENTER, "A=b c", "--", "ls")


@pytest.mark.parametrize("what", ["not there", "no image"])
def test_a_file_that_is_no_image_is_named_with_its_place(tmp_path: Path, what: str) -> None:
    if what == "no image":
        (tmp_path / "a.tar").write_bytes(tar_of({"README": "x"}))
    root = root_of(plan_of(tmp_path, "pair: {host: {image: a.tar}}"), "h1")
    assert root is not None
    wanted = "is no image: a tar of" if what == "no image" else "No such file"
    with pytest.raises(InputError, match=rf"lab.yaml:2: pair.host.image: {tmp_path}/a.tar:? {wanted}"):
        user_images._taken(root, lambda _: None)


def test_what_a_host_cannot_unpack_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of({"usr/a": "x"}))

    def fail(*_: object) -> Path:
        failed = CommandFailed("image", ["bash"], user_images.BROKEN, "", "and\nit cannot be unpacked: why\n")
        raise MinigtsError("it could not be installed") from failed

    monkeypatch.setattr(user_images, "_layer", fail)
    plan = plan_of(tmp_path, "pair: {host: {image: a.tar}}")
    with pytest.raises(
        InputError, match=rf"lab.yaml:2: pair.host.image: {tmp_path}/a.tar: it cannot be unpacked: why$"
    ):
        user_images.roots(plan, cast("Image", None), lambda _: None)
