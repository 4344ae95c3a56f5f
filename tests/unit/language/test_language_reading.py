"""What is no file of the language, for all three: one clear error, in little memory, with nothing a terminal obeys."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment_lab import SMALL, chain

from minigts.errors import InputError, Problem
from minigts.experiment_language.model import MOST_SAMPLES, Experiment
from minigts.experiments import load as experiments
from minigts.experiments import matrix as matrices
from minigts.foreign import UNPRINTABLE, printable
from minigts.language.problems import MOST_PROBLEMS
from minigts.overlays import policy
from minigts.topology.read import load as topologies

HOSTS = ("ams", "bra", "mil")
TOPOLOGY = "name: x\nhosts: {a: {location: HERE}, b: }\nlinks: [{ends: [a, b], rtt: 1ms}]\n"
EXPERIMENT = SMALL.replace("A small one", "HERE")
POLICY = "name: HERE\ngroups: {web: [ams]}\nrules: [{allow: {from: web, to: any}}]\n"
LOAD: dict[str, Callable[[Path], object]] = {
    "topology": topologies.load,
    "experiment": experiments.load,
    "policy": lambda path: policy.load(path, HOSTS),
}
GOOD = {"topology": TOPOLOGY, "experiment": EXPERIMENT, "policy": POLICY}
languages = pytest.mark.parametrize("language", LOAD)


def refused(language: str, path: Path) -> str:
    with pytest.raises(InputError) as caught:
        LOAD[language](path)
    text = str(caught.value)
    assert not UNPRINTABLE.search(text)
    assert caught.value.exit_code == 2
    assert all(problem.file == str(path) for problem in caught.value.problems)
    return text.replace(str(path), "FILE")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.yaml"


@languages
def test_the_example_is_good(language: str, file: Path) -> None:
    file.write_text(GOOD[language])
    assert LOAD[language](file)


@languages
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/tty"])
def test_a_device_is_no_file(language: str, device: str) -> None:
    assert re.fullmatch(r"FILE: (is not a regular file|cannot be read: .+)", refused(language, Path(device)))


@languages
def test_a_pipe_is_no_file_and_nobody_waits_for_it(language: str, file: Path) -> None:
    os.mkfifo(file)
    since = time.monotonic()
    assert refused(language, file) == "FILE: is not a regular file"
    assert time.monotonic() - since < 60


@languages
def test_a_directory_a_link_to_nothing_and_a_long_name_are_no_files(language: str, tmp_path: Path) -> None:
    assert refused(language, tmp_path) == "FILE: is a directory, not a file"
    (tmp_path / "link").symlink_to("nothing")
    assert refused(language, tmp_path / "link") == "FILE: no such file"
    assert refused(language, tmp_path / ("x" * 5000)).startswith("FILE: cannot be read: ")


@languages
def test_a_huge_file_is_not_read_to_its_end(language: str, file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(50_000_000_000)
    assert re.fullmatch(rf"FILE: larger than \d+ kB, which no {language} needs", refused(language, file))


@languages
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"FILE: nothing in it; an? LANGUAGE starts with `name:`.*"),
        (b"name: x\0", r"FILE:1: binary data, not an? LANGUAGE"),
        (b"name: x\ntitle: \xff", r"FILE:2: not UTF-8 text"),
        (b"name: \xed\xa0\x80", r"FILE:1: not UTF-8 text"),
        (b'name: "\\UFFFFFFFF"', r"FILE:1: not YAML: an escape or a value that cannot be read, .*"),
        (b"name: x\n<<: [1, 2]", r"(?s).*FILE:2: '<<': unknown key; .*"),
        (b"name: &x [*x]", r"FILE:1: alias 'x': aliases are not part of the language; .*"),
        (b"name: !!str x", r"FILE:1: tag 'tag:yaml.org,2002:str': tags are not part of the language"),
        (b"name: x\n---\nname: y", r"FILE:2: a second document starts here; one file holds one LANGUAGE"),
        (b"[" * 90_000, r"FILE:1: nested deeper than 12 levels, which no LANGUAGE needs"),
        (b"? [a, b]\n: c", r"FILE:1: a list cannot be a key; write `key: value`"),
        (b"name: x\n\ty: 1", r"FILE:[12]: not YAML: .*"),
        (b"- a\n- b", r"FILE:1: a list where a mapping is wanted, as in `key: value`"),
        (b"name: x\nname: y", r"(?s).*FILE:2: name: given twice, first on line 1.*"),
    ],
)
def test_what_is_no_language_is_refused(language: str, content: bytes, message: str, file: Path) -> None:
    file.write_bytes(content)
    assert re.fullmatch(message.replace("LANGUAGE", language), refused(language, file))


@languages
@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"%YAML 1.1\n---\n", b"--- # begin\n"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_byte_order_mark_a_version_and_windows_lines_are_no_matter(
    language: str, prefix: bytes, newline: bytes, file: Path
) -> None:
    file.write_bytes(prefix + GOOD[language].encode().replace(b"\n", newline))
    assert LOAD[language](file)


@languages
@pytest.mark.parametrize(
    "escape", ["\\x1b[31m", "\\a", "\\0", "\\x7f", "\\x9b", "\\r", "\\u202e", "\\u2066", "\\L", "\\ud800", "\\e"]
)
def test_what_a_terminal_obeys_is_no_text(language: str, escape: str, file: Path) -> None:
    file.write_text(GOOD[language].replace("HERE", f'"a{escape}b"'))
    assert "cannot be shown: write text that can" in refused(language, file)
    file.write_text(GOOD[language] + f'"a{escape}b": c\n')
    text = refused(language, file)
    assert "cannot be shown" in text
    assert "unknown key" in text


@languages
def test_a_name_of_a_file_is_shown_as_it_is_and_not_obeyed(language: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        LOAD[language](tmp_path / "\x1b[31mred\n.yaml")
    assert "\\x1b[31mred\\n.yaml: no such file" in str(caught.value)


def test_printable_text_is_left_alone() -> None:
    assert printable("µ – „ÄÖ“ 🦊 a\tb\nc") == "µ – „ÄÖ“ 🦊 a\tb\nc"
    assert str(Problem("f", 1, "\ud800")) == "f:1: \\ud800"


@languages
def test_rubbish_of_any_length_has_few_messages_of_little_text(language: str, file: Path) -> None:
    known = "groups: {web: [" + ", ".join(f"x{number}" for number in range(5000)) + "]}\n"
    many = "".join(f"k{number}: {'x' * 50}\n" for number in range(1000))
    file.write_text("name: x\n" + (known if language == "policy" else "") + many)
    text = refused(language, file)
    assert len(text.splitlines()) <= MOST_PROBLEMS + 1
    assert max(map(len, text.splitlines())) < 1000


NUMBERS = [
    "1e999",
    "-1",
    ".inf",
    "-.inf",
    ".nan",
    "NaN",
    "9" * 400,
    "9" * 5000,
    "1:30",
    "true",
    "2026-11-22",
    "[]",
    "{}",
]


@pytest.mark.parametrize("number", [*NUMBERS, "[]", "{}", "1e3", "1.5", "0x1ffffffffffffffff", "''", "٣"])
@pytest.mark.parametrize("key", ["seed: 7", "repetitions: 2", "transactions: 7"])
def test_what_is_no_count_is_said(key: str, number: str, file: Path) -> None:
    name, _ = key.split()
    file.write_text(SMALL.replace(key, f"{name} {number}"))
    assert re.search(rf"{name} ('.*?'|nothing|a list|a mapping) is (not|out of range)", refused("experiment", file))


@pytest.mark.parametrize("number", [each for each in NUMBERS if each != "-1"])
def test_what_is_no_number_is_said(number: str, file: Path) -> None:
    file.write_text(SMALL.replace("[21.75, 26.45]", f"[{number}]"))
    assert re.search(r"published\[0\]\.by_hops\[0\]: .* is (not a number|out of range)", refused("experiment", file))


@pytest.mark.parametrize(("written", "number"), [("0x7E1", 2017), ("2_017", 2017), ("+7", 7), ("0o17", 15)])
def test_ways_to_write_a_whole_number(written: str, number: int) -> None:
    assert experiments.parse(SMALL.replace("seed: 7", f"seed: {written}"), "x").seed == number


@pytest.mark.parametrize("rate", ["1e308%", "9" * 30 + "%", "0%", "-1mbit", "1e9mbit", "0.0001kbit", "１mbit"])
def test_a_rate_that_nothing_can_offer_is_said(rate: str, file: Path) -> None:
    file.write_text(SMALL.replace("20mbit", rate))
    assert "measurements[2].options.rate: " in refused("experiment", file)


@pytest.mark.parametrize("interval", ["0.001ms", "1.23456789us", "0.1ms", "999.999999ms", "12.3456789s"])
def test_a_duration_is_written_so_that_it_reads_back(interval: str) -> None:
    ping = f"{{name: latency, tool: ping, paths: [first-to-each], options: {{interval: {interval}}}}}"
    written = re.sub(r"\{name: latency.*", ping, SMALL)
    experiment = experiments.parse(written, "x")
    assert Experiment.model_validate_json(experiment.model_dump_json(by_alias=True)) == experiment


VARIED = """\
  - name: many
    tool: iperf3-udp
    paths: [first-to-each]
    vary: {duration: D, rate: R, datagram: G, sessions: S, stress: T, offload: ["on", "off"]}
"""


def crossed(values: int) -> str:
    """Five options of so many values each and one of two."""
    lists = {
        "D": [f"{number}s" for number in range(1, values + 1)],
        "R": [f"{number}mbit" for number in range(1, values + 1)],
        "G": [f"{number}B" for number in range(100, 100 + values)],
        "S": [str(number) for number in range(1, values + 1)],
        "T": [f"{number}%" for number in range(values)],
    }
    text = VARIED
    for letter, listed in lists.items():
        text = text.replace(f": {letter}", f": [{', '.join(listed)}]")
    return SMALL.replace("claims:", text + "claims:")


LIMITED = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (1_000_000_000, 1_000_000_000))
from minigts.errors import InputError
from minigts.experiments.load import load
try:
    load(Path(sys.argv[1]))
except InputError as error:
    print(error)
"""


def test_samples_are_counted_before_they_are_made(file: Path) -> None:
    """6 400 000 combinations, twice, over two overlays: in a process that has little memory."""
    file.write_text(crossed(20))
    argv = [sys.executable, "-P", "-c", LIMITED, str(file)]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        env={**os.environ, "PYTHONPATH": "tools"},
        cwd=Path(__file__).parents[3],
    )
    assert "asks for at least 25,600,012 samples; at most 200,000 are possible" in done.stdout


def test_the_limit_holds_for_what_a_topology_makes_of_the_file() -> None:
    """The same is counted and made; one more is refused, by number."""
    experiment = experiments.parse(crossed(4).replace("repetitions: 2", "repetitions: 1"), "x")
    plan = chain(3)
    assert matrices.sample_count(experiment, plan) == len(matrices.matrix(experiment, plan)) == 2 * (7 + 4096)
    many = experiment.model_copy(update={"repetitions": 100})
    with pytest.raises(InputError, match=r"experiment small asks for 820,600 samples; at most 200,000 are possible"):
        matrices.matrix(many, plan)
    assert MOST_SAMPLES == 200_000


@pytest.mark.parametrize(
    ("was", "written", "message"),
    [
        ("repetitions: 2", "repetitions: 100000", "FILE:1: asks for at least 600,000 samples; at most 200,000"),
        ("claims:", "paper: {repetitions: 100000}\nclaims:", "FILE:11: paper: asks for at least 600,000 samples"),
        (
            "claims:",
            "quick: {overlays: [nun]}\nclaims:",
            "FILE:11: quick.overlays[0]: no overlay 'nun'; overlays here are none, swarm",
        ),
        (
            "claims:",
            "quick: {measurements: [latncy]}\nclaims:",
            "FILE:11: quick.measurements[0]: no measurement 'latncy'; did you mean 'latency'?",
        ),
        ("options: {transactions: 7}", "vary: {transactions: [7, 7]}", "vary.transactions[1]: 7 is given twice"),
        ("options: {transactions: 7}", "vary: {transactions: [7, x]}", "vary.transactions[1]: 'x' is not a count"),
        (
            "options: {transactions: 7}",
            "vary: {tranactions: [7]}",
            "no option 'tranactions'; did you mean 'trans",
        ),
        (
            "tool: netperf-rr, paths: [first-to-each, each-segment], options: {transactions: 7}",
            "tool: ping, paths: [first-to-each]}\npaper: {duration: 2h",
            "FILE:9: paper.duration: latency: 720,000 echo requests, one every 10ms, in 7200s; at most 100,000",
        ),
    ],
)
def test_what_could_never_be_run_is_said_where_it_stands(was: str, written: str, message: str, file: Path) -> None:
    assert was in SMALL
    text = SMALL.replace(was, written)
    if "2h" in written:
        lines = text.splitlines(keepends=True)
        text = "".join([*(line for line in lines if not line.startswith("paper")), "paper: {duration: 2h}\n"])
        message = message.replace("FILE:9", f"FILE:{len(text.splitlines())}")
    file.write_text(text)
    assert message in refused("experiment", file)


@pytest.mark.parametrize(
    ("was", "written", "message"),
    [
        (
            "transactions: 7",
            "datagram: 7B",
            "options.datagram: unknown key; keys here are transactions, duration, prot",
        ),
        ("transactions: 7", "claims: 7", "options.claims: unknown key; keys here are transactions, duration, protocol"),
        ("transactions: 7", "protcol: tcp", "options.protcol: unknown key; did you mean 'protocol'?"),
        ("rate: 20mbit", "windoww: 1kB", "options.windoww: unknown key; keys here are offload, stress"),
        (
            "latency: sum-of-segments",
            "{latency: as-declared, tool: ping}",
            "claims[0].tool: unknown key; keys here are lat",
        ),
        (
            "tool: iperf3-tcp",
            "tool: iperf3",
            "measurements[1]: no tool 'iperf3'; tools are netperf-rr, ping, iperf3-",
        ),
        ("tool: iperf3-tcp", "tol: iperf3-tcp", "measurements[1]: 'tool' is missing"),
        ("[first-to-each]", "[{from: ams, too: bra}]", "paths[0].too: unknown key; did you mean 'to'?"),
    ],
)
def test_only_keys_that_are_allowed_there_are_offered(was: str, written: str, message: str, file: Path) -> None:
    assert was in SMALL
    file.write_text(SMALL.replace(was, written))
    assert message in refused("experiment", file)
