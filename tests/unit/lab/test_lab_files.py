"""The verbs that work in hosts: files whole or not at all, commands on all hosts, containers. Hosts are directories."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pytest
from typer.testing import CliRunner, Result

from fake_lab import fake_lab
from fake_provider import FakeProvider
from minigts.cli.app import app
from minigts.cli.verbs import exec as exec_verb
from minigts.lab import files
from minigts.lab.lab import Lab
from minigts.overlays.phases import Joined
from minigts.topology.read.load import parse

PROJECT = Path(__file__).parents[3]
PLAN = parse("name: two\npair: {hosts: [ams, bra], link: {rtt: 10ms}}\n", "two.yaml")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    made = fake_lab(PLAN, tmp_path / "state", monkeypatch)
    for host in ("ams", "bra"):
        (on(made, host) / "srv" / "data").mkdir(parents=True)
        (on(made, host) / "root").mkdir()
    return made


def on(lab: Lab, host: str) -> Path:
    return lab.rundir / "hosts" / host / "root"


def do(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def everything(directory: Path) -> list[Path]:
    """All that is there, but for what hosts say of themselves."""
    return sorted(path for path in directory.rglob("*") if path.name != "console.log")


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("ams:/srv/tool", "srv/tool"),
        ("ams:/srv/data", "srv/data/tool.sh"),
        ("ams:/srv/data/", "srv/data/tool.sh"),
        ("ams:renamed", "root/renamed"),
        ("ams:", "root/tool.sh"),
    ],
)
def test_a_file_goes_to_a_host_and_keeps_its_mode(lab: Lab, tmp_path: Path, target: str, place: str) -> None:
    (tmp_path / "tool.sh").write_text("#!/bin/sh\n")
    (tmp_path / "tool.sh").chmod(0o750)
    done = do("cp", "tool.sh", target)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    arrived = on(lab, "ams") / place
    assert arrived.read_text() == "#!/bin/sh\n"
    assert arrived.stat().st_mode & 0o7777 == 0o750
    assert not [name for name in names(arrived.parent) if name.startswith(".")]


@pytest.mark.parametrize(("target", "place"), [("here", "here"), (".", "log"), ("there/log", "there/log")])
def test_a_file_comes_from_a_host(lab: Lab, tmp_path: Path, target: str, place: str) -> None:
    (tmp_path / "there").mkdir()
    (on(lab, "ams") / "srv" / "log").write_text("said")
    assert do("cp", "ams:/srv/log", target).exit_code == 0
    assert (tmp_path / place).read_text() == "said"
    assert not [name for name in names((tmp_path / place).parent) if name.startswith(".")]


def test_a_directory_goes_and_comes_with_r(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_text("content")
    assert do("cp", "-r", "tree", "ams:/srv/data").exit_code == 0
    assert (on(lab, "ams") / "srv" / "data" / "tree" / "deep" / "file").read_text() == "content"
    assert do("cp", "-r", "ams:/srv/data/tree", "back").exit_code == 0
    assert (tmp_path / "back" / "deep" / "file").read_text() == "content"


def test_into_a_directory_that_is_there_go_the_new_files_beside_the_old(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "new").write_text("new")
    (tmp_path / "tree" / "both").write_text("new")
    old = on(lab, "ams") / "srv" / "data" / "tree"
    old.mkdir()
    (old / "both").write_text("old")
    (old / "old").write_text("old")
    assert do("cp", "-r", "tree", "ams:/srv/data").exit_code == 0
    assert {path.name: path.read_text() for path in old.iterdir()} == {"new": "new", "both": "new", "old": "old"}
    assert do("cp", "-r", "ams:/srv/data/tree", ".").exit_code == 0
    assert (tmp_path / "tree" / "old").read_text() == "old"


def test_from_host_to_host(lab: Lab) -> None:
    (on(lab, "ams") / "srv" / "log").write_text("said")
    before = names(lab.rundir)
    assert do("cp", "ams:/srv/log", "bra:/srv/data/").exit_code == 0
    assert (on(lab, "bra") / "srv" / "data" / "log").read_text() == "said"
    assert names(lab.rundir) == before


def test_a_directory_goes_from_host_to_host_and_its_size_is_said(lab: Lab) -> None:
    tree = on(lab, "ams") / "srv" / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "file").write_bytes(b"x" * 1234)
    (tree / "away").symlink_to("/etc")
    before = names(lab.rundir)
    done = do("cp", "-r", "ams:/srv/tree", "bra:/srv/data")
    assert (done.exit_code, ": 1234 bytes" in done.stderr) == (0, True), done.stderr
    arrived = on(lab, "bra") / "srv" / "data" / "tree"
    assert (arrived / "deep" / "file").read_bytes() == b"x" * 1234
    assert str((arrived / "away").readlink()) == "/etc"
    assert names(lab.rundir) == before


SECRET = "the user's own words"


def sends(monkeypatch: pytest.MonkeyPatch, evil: str, *members: tuple[str, bytes, str]) -> None:
    """Have this host send such members in place of what is asked of it, as a host does whose tar was replaced."""
    works = FakeProvider.archive_of

    def archive_of(self: FakeProvider, host: str, source: PurePosixPath, read: Callable[[IO[bytes]], Any]) -> Any:
        if host != evil:
            return works(self, host, source, read)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as made:
            for name, kind, leads_to in members:
                member = tarfile.TarInfo(name)
                member.type, member.linkname, member.mode = kind, leads_to, 0o755
                made.addfile(member)
        packed.seek(0)
        return read(packed)

    monkeypatch.setattr(FakeProvider, "archive_of", archive_of)


@pytest.mark.parametrize("target", ["bra:/srv/data", "here"])
@pytest.mark.parametrize("recursive", [False, True])
def test_a_host_that_sends_a_link_in_place_of_what_was_asked_for_gets_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, recursive: bool
) -> None:
    """Else the other host would get what the link leads to on this machine."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text(SECRET)
    (on(lab, "ams") / "srv" / "log").write_text("said")
    (on(lab, "ams") / "srv" / "tree").mkdir()
    sends(monkeypatch, "ams", (".", tarfile.SYMTYPE, str(tmp_path / "secrets" / ("" if recursive else "key"))))
    before = everything(tmp_path)
    done = do("cp", *(("-r", "ams:/srv/tree") if recursive else ("ams:/srv/log",)), target)
    assert (done.exit_code, "Traceback" in done.stderr) == (1, False)
    assert "host ams sent no whole archive: '.' is neither the file nor the directory" in done.stderr
    assert everything(tmp_path) == before


@pytest.mark.parametrize("target", ["bra:/srv/data", "here"])
def test_a_host_that_sends_a_directory_in_place_of_a_file_gets_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (on(lab, "ams") / "srv" / "log").write_text("said")
    sends(monkeypatch, "ams", (".", tarfile.DIRTYPE, ""), ("x", tarfile.REGTYPE, ""))
    before = everything(tmp_path)
    done = do("cp", "ams:/srv/log", target)
    assert done.exit_code == 1
    assert "host ams said that /srv/log is a file, and sends a directory" in done.stderr
    assert everything(tmp_path) == before


def test_links_that_lead_out_of_a_copy_are_left_out_and_said(lab: Lab, tmp_path: Path) -> None:
    tree = on(lab, "ams") / "srv" / "tree"
    tree.mkdir()
    (tree / "file").write_text("content")
    (tree / "same").symlink_to("file")
    for name in ("key", "\x1b[2Jkey", "l", "m", "n"):
        (tree / name).symlink_to(tmp_path / "secrets")
    done = do("cp", "-r", "ams:/srv/tree", "here")
    assert done.exit_code == 0
    assert names(tmp_path / "here") == ["file", "same"]
    assert "left out 5 links that lead out of the copy: " in " ".join(done.stderr.split())
    assert " and 2 more" in " ".join(done.stderr.split())
    assert "\x1b" not in done.stderr
    (tree / "n").unlink()
    for name in ("key", "\x1b[2Jkey", "l"):
        (tree / name).unlink()
    assert "left out a link that leads out of the copy: m" in " ".join(
        do("cp", "-r", "ams:/srv/tree", "b").stderr.split()
    )


def test_a_copy_into_a_directory_replaces_links_there_and_follows_none(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("the user's")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").symlink_to("../outside/file")
    tree = on(lab, "ams") / "srv" / "tree"
    tree.mkdir()
    (tree / "file").write_text("the host's")
    assert do("cp", "-r", "ams:/srv/tree", ".").exit_code == 0
    assert ((tmp_path / "tree" / "file").read_text(), (tmp_path / "tree" / "file").is_symlink()) == (
        "the host's",
        False,
    )
    assert (tmp_path / "outside" / "file").read_text() == "the user's"


@pytest.mark.parametrize("said", ["\x1b[2J nothing", "link directory", "file", "file file file"])
def test_a_host_that_says_another_kind_of_path_is_not_believed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    works = FakeProvider.run

    def run(self: FakeProvider, host: str, argv: Sequence[str], **more: Any) -> Any:
        done = works(self, host, argv, **more)
        return replace(done, stdout=said) if files.LOOK in argv else done

    monkeypatch.setattr(FakeProvider, "run", run)
    done = do("cp", "ams:/srv/log", "here")
    assert (done.exit_code, "cannot be read" in done.stderr, "\x1b" in done.stderr) == (1, True, False)


def test_to_all_hosts_and_from_all(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("tool")
    assert do("cp", "--all", "tool", ":/srv/data/").exit_code == 0
    (on(lab, "bra") / "srv" / "data" / "tool").write_text("bra's")
    assert do("cp", "--all", ":/srv/data/tool", "got").exit_code == 0
    assert {host: (tmp_path / "got" / host / "tool").read_text() for host in ("ams", "bra")} == {
        "ams": "tool",
        "bra": "bra's",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "ams:/srv"], "no file or directory nothing on this machine"),
        (["ams:/srv/nothing", "."], "no file or directory /srv/nothing on host ams"),
        (["tree", "ams:/srv"], "tree is a directory: say -r"),
        (["ams:/srv/data", "."], "ams:/srv/data is a directory: say -r"),
        (["file", "ams:/no-such-place/file"], "no directory /no-such-place on host ams"),
        (["file", "ams:/srv/new/"], "no directory /srv/new on host ams"),
        (["ams:/srv/log", "no-such-place/log"], "no directory no-such-place on this machine"),
        (["-r", "tree", "ams:/srv/log"], "ams:/srv/log is a file, and tree is a directory"),
        (["file", "lju:/srv"], "no host 'lju'; there are ams, bra"),
        (["file", "file2"], "neither file nor file2 is on a host"),
        (["./ams:file", "bra"], "neither ./ams:file nor bra is on a host"),
        (["--all", "file", "ams:/srv"], "write one side as :PATH"),
    ],
)
def test_what_cannot_be_copied_is_one_error_and_changes_nothing(
    lab: Lab, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "file").touch()
    (on(lab, "ams") / "srv" / "log").write_text("said")
    before = everything(tmp_path)
    done = do("cp", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"minigts: {message}" in done.stderr.replace("minigts: cp: ", "minigts: ").replace("cp --all: ", "")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("way", ["in", "out"])
def test_broken_off_it_leaves_what_was_there(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (tmp_path / "file").write_text("here")
    (on(lab, "ams") / "srv" / "file").write_text("there")

    def half_put(self: FakeProvider, host: str, source: Path, target: PurePosixPath) -> None:
        (self.rundir / "hosts" / host / "root" / str(target).lstrip("/")).write_text("he")
        raise KeyboardInterrupt

    def half_get(self: FakeProvider, host: str, source: PurePosixPath, target: Path) -> None:
        target.write_text("th")
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeProvider, "put", half_put)
    monkeypatch.setattr(FakeProvider, "get", half_get)
    done = do("cp", *(("file", "ams:/srv/file") if way == "in" else ("ams:/srv/file", "file")))
    assert done.exit_code == 130
    assert (tmp_path / "file").read_text() == "here"
    assert (on(lab, "ams") / "srv" / "file").read_text() == "there"
    assert (names(on(lab, "ams") / "srv"), names(tmp_path)) == (["data", "file"], ["file", "state"])


def test_on_all_hosts_each_line_has_its_hosts_name(lab: Lab) -> None:
    done = do("exec", "--all", "--", "sh", "-c", "echo one; printf two")
    assert done.exit_code == 0
    assert sorted(done.stdout.splitlines()) == ["ams  one", "ams  two", "bra  one", "bra  two"]


def test_the_worst_exit_code_is_that_of_all(lab: Lab) -> None:
    (on(lab, "bra") / "bad").touch()
    done = do("exec", "--all", "--", "sh", "-c", 'test ! -e "$HOME/bad" || exit 7')
    assert done.exit_code == 7


def test_one_that_takes_too_long_keeps_no_other_from_it(lab: Lab) -> None:
    (on(lab, "bra") / "slow").touch()
    done = do("exec", "--all", "--timeout", "1", "--", "sh", "-c", 'test ! -e "$HOME/slow" || sleep 60; echo done')
    assert (done.exit_code, done.stdout) == (124, "ams  done\n")
    assert "bra: ended after 1 s" in done.stderr


def test_all_as_json_is_a_list(lab: Lab) -> None:
    said = json.loads(do("exec", "--all", "--json", "--", "echo", "x").stdout)
    assert [(each["host"], each["code"], each["stdout"]) for each in said] == [("ams", 0, "x\n"), ("bra", 0, "x\n")]


@pytest.mark.parametrize(
    "arguments", [["exec", "--all"], ["exec", "ams"], ["exec", "ams", "-v"], ["exec", "--all", "--", "-v"]]
)
def test_without_a_command_it_says_how_one_is_written(lab: Lab, arguments: list[str]) -> None:
    assert do(*arguments).exit_code == 2


def joined(lab: Lab, name: str, **words: str) -> None:
    ends = {host: {"ADDRESS": "10.0.0.1", "MTU": "1450", **words} for host in ("ams", "bra")}
    lab.put("overlay.json", Joined(name=name, programs="", ends=ends).model_dump_json())


@pytest.mark.parametrize("verb", [["exec", "--container", "ams", "--", "true"], ["shell", "--container", "ams"]])
def test_without_an_overlay_there_is_no_container(lab: Lab, verb: list[str]) -> None:
    done = do(*verb)
    assert (done.exit_code, "no overlay is joined on lab two" in done.stderr) == (2, True)
    joined(lab, "none")
    done = do(*verb)
    assert (done.exit_code, "overlay none there is no measuring container on ams" in done.stderr) == (2, True)


def test_a_command_is_run_in_the_container(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a program of the test's own in place of nsenter, which would need rights and a container."""
    (tmp_path / "nsenter").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "nsenter").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    joined(lab, "swarm", ENTER="77")
    done = do("exec", "-c", "ams", "--", "ip", "route")
    assert (done.exit_code, done.stdout) == (0, "--all --root --wd --target 77 -- ip route\n")


def test_several_files_go_into_a_directory_there(lab: Lab, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    assert do("cp", "one", "two", "ams:/srv/data").exit_code == 0
    assert do("cp", "one", "two", "ams:").exit_code == 0
    assert {"one", "two"} <= {*names(on(lab, "ams") / "srv" / "data")} & {*names(on(lab, "ams") / "root")}
    assert do("cp", "--all", "one", "two", ":/srv").exit_code == 0
    assert {"one", "two"} <= {*names(on(lab, "bra") / "srv")}


def test_several_files_come_into_a_directory_here_from_any_hosts(lab: Lab, tmp_path: Path) -> None:
    (on(lab, "ams") / "srv" / "a").write_text("of ams")
    (on(lab, "bra") / "srv" / "b").write_text("of bra")
    (tmp_path / "here").mkdir()
    assert do("cp", "ams:/srv/a", "bra:/srv/b", "here").exit_code == 0
    assert [(tmp_path / "here" / name).read_text() for name in ("a", "b")] == ["of ams", "of bra"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("one", "nothing", "ams:/srv/data"), "no file or directory nothing on this machine"),
        (("one", "two", "ams:/srv/absent"), "no directory"),
        (("ams:/srv/x", "bra:/srv/y", "one"), "several sources need a directory as target"),
        (("one",), "name a source and a target"),
    ],
)
def test_what_is_wrong_with_one_of_several_is_said_before_any_is_copied(
    lab: Lab, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    before = everything(lab.rundir)
    done = do("cp", *words)
    assert (done.exit_code, told in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert everything(lab.rundir) == before


@pytest.mark.parametrize(
    ("line", "better"),
    [("ping -c 1 bra", "ping -c 1 bra"), ("ls | wc -l", "sh -c 'ls | wc -l'")],
)
def test_a_command_line_as_one_word_is_told_to_be_words(lab: Lab, line: str, better: str) -> None:
    done = do("exec", "ams", line)
    assert done.exit_code == 127
    told = "minigts: exec takes a command as separate words, without a shell: minigts exec ams -- "
    assert done.stderr.splitlines()[-1] == f"{told}{better}"
    assert "separate words" not in do("exec", "ams", "--", "sh", "-c", "exit 127").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["frobnicate", "-x"], "frobnicate: command not found; `packages: [PACKAGE]` of this host"),
        (["/bin/frobnicate"], None),
        (["sh", "-c", "frobnicate"], None),
        (["env", "frobnicate"], None),
        (["sh", "-c", "echo 'sh: No such file or directory' >&2; exit 127"], None),
    ],
)
def test_a_program_that_a_host_lacks_is_advised_on(
    lab: Lab, words: list[str], told: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the image's own script, under the name that it has there."""
    advice = tmp_path / "command-not-found"
    shutil.copy(PROJECT / "provision" / "image" / "advise", advice)
    monkeypatch.setattr(exec_verb, "ADVICE", str(advice))
    done = do("exec", "ams", "--", *words)
    notes = [line for line in done.stderr.splitlines() if line.startswith("minigts: ")]
    assert done.exit_code == 127
    assert len(notes) == (told is not None)
    assert not told or notes[0].startswith(f"minigts: {told}")


def test_a_host_without_advice_has_only_the_error(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exec_verb, "ADVICE", str(tmp_path / "absent"))
    assert "minigts: " not in do("exec", "ams", "--", "frobnicate").stderr


def test_status_has_the_addresses_of_the_measuring_containers(lab: Lab) -> None:
    def facts() -> tuple[object, bool]:
        (shown,) = json.loads(do("status", "--json").stdout)
        return shown["measuring_containers"], "measuring container" in do("status").stdout

    assert facts() == ({}, False)
    joined(lab, "none")
    assert facts() == ({}, False)
    joined(lab, "swarm", ENTER="77")
    assert facts() == ({"ams": "10.0.0.1", "bra": "10.0.0.1"}, True)
    assert "10.255.0.2\t10.0.0.1\tanswers\n" in do("status").stdout


def test_exec_on_a_terminal_attaches_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def attach(_provider: FakeProvider, host: str, argv: tuple[str, ...]) -> int:
        seen.append((host, *argv))
        return 7

    monkeypatch.setattr(FakeProvider, "attach", attach)
    assert do("exec", "-it", "ams", "bash", "-l").exit_code == 7
    assert seen == [("ams", "bash", "-l")]
    for more in ("--all", "--json"):
        done = do("exec", "-t", more, "ams", "bash")
        assert (done.exit_code, "only one host can have the terminal" in done.stderr) == (2, True)
