"""`tool: command`: what its options may say, what is run, and what of the output is the result."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from experiment_lab import begin, chain, endpoints, recorder_of, require_known

from minigts.errors import CommandTimeout, InputError
from minigts.experiment_language.model import Experiment, Links
from minigts.experiments import outputs
from minigts.experiments.derive import derive
from minigts.experiments.load import parse
from minigts.experiments.matrix import matrix
from minigts.experiments.run import run_together
from minigts.experiments.sample_steps import LISTENING, SERVED, Surroundings, _listening, procedure
from minigts.lab.queues import End, Queue
from minigts.overlays import Endpoint
from minigts.providers.base import CommandResult
from minigts.providers.real_time import RealTime
from minigts.report import chart_choice, render
from minigts.report.read import read
from minigts.results import store
from minigts.results.schema import Laid, RawSample, Side
from minigts.results.tables import SAMPLE_COLUMNS, SERIES_COLUMNS, SUMMARY_COLUMNS
from minigts.tools import command
from minigts.tools.base import ParseError, PathUnderTest, Service
from minigts.topology.outage import SILENT, Outage
from minigts.topology.read import load as topology
from minigts.topology.schedule import Moment
from minigts.topology.software import ENTER

PLAN = chain(4)
FILE = """\
name: mine
title: Mine
topology: topologies/chain6.yaml
overlays: [none]
seed: 7
repetitions: 1
measurements:
  - name: it
    tool: command
    paths: [{from: ams, to: bra}]
    ends: {from: host, to: host}
    options: {OPTIONS}
claims:
  - {value: bounded, range: over 0 ms}
"""
GOOD = "run: echo 7, find: '[0-9.]+', unit: ms, label: time, timeout: 20s"


def experiment(options: str = GOOD, more: str = "", claims: str = "") -> Experiment:
    text = FILE.replace("OPTIONS", options).replace("claims:\n", f"{more}claims:\n{claims}")
    return parse(text, "mine.yaml")


def options(written: str = GOOD) -> command.CommandOptions:
    found = experiment(written).measurements[0].options
    assert isinstance(found, command.CommandOptions)
    return found


def way(target: str = "10.0.0.2", source: str = "10.0.0.1") -> PathUnderTest:
    return PathUnderTest(target, 1500, 1500, PLAN.path("ams", "bra"), source=source)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("run: x, find: '(\\d+', unit: ms, label: t", r"options\.find: .* missing \), unterminated .* at character 1$"),
        ("run: x, find: 'a)b', unit: ms, label: t", r"options\.find: .* unbalanced parenthesis at character 2$"),
        ("run: x, find: '(a)(b)', unit: ms, label: t", r"options\.find: .* has 2 groups: name the one with the number"),
        ("run: x, json: 'a.b[', unit: ms, label: t", r"options\.json: 'a\.b\[' is no JMESPath: .* at character 5$"),
        ("run: x, json: 'a..b', unit: ms, label: t", r"options\.json: 'a\.\.b' is no JMESPath: .* at character 3$"),
        ("run: x, json: 'a ~ b', unit: ms, label: t", r"options\.json: 'a ~ b' is no JMESPath: .* at character 3$"),
        ("run: x, unit: ms, label: t", r"options: one of `find:` and `json:`"),
        ("run: x, find: a, json: a, unit: ms, label: t", r"options: one of `find:` and `json:`"),
        ("run: x, find: a, label: t", r"options: 'unit' is missing"),
        ("find: a, unit: ms, label: t", r"options: 'run' is missing"),
        ("run: [], find: a, unit: ms, label: t", r"options\.run: a command has from 1 to 4000 characters"),
        ("run: {a: b}, find: a, unit: ms, label: t", r"options\.run: a mapping is no command"),
        ("run: '{tagret}', find: a, unit: s, label: t", r"options\.run: nothing is called .tagret.; did you mean"),
        ("run: '{port}', find: a, unit: ms, label: t", r"options\.run: \{port\} needs `port:`"),
        ("run: x, find: a, unit: ms, label: t, with: {value: 3}", r"options\.with\.value: 'value' has another meaning"),
        ("run: x, find: a, unit: ms, label: t, with: {a: 'x y'}", r"options\.with\.a: 'x y' is no word of letters"),
        ("run: x, find: a, unit: ms, label: t, better: more", r"options\.better: 'more' is not a direction"),
        ("run: x, find: a, unit: ms, label: t, factor: 0", r"options\.factor: times 0 every number is 0"),
        ("run: x, find: a, unit: 3ms, label: t", r"options\.unit: '3ms' is not a unit"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_error_with_its_line(said: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^mine\.yaml:1[0-2]: measurements\[0\]\.{message}"):
        experiment(said)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("{value: bounded, range: under 3 s}", "'under 3 s' needs the unit of it, ms"),
        ("{value: better, than: {overlay: none}}", "it does not say what is `better:`"),
        ("{value: better}", "value: better needs `than:`"),
        ("{value: falls}", "value: falls needs `by:`"),
        ("{latency: steady, of: other}", "no measurement 'other'"),
    ],
)
def test_a_claim_that_says_nothing_of_the_number_is_refused(claim: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(claims=f"  - {claim}\n")


def test_a_value_of_no_command_is_refused() -> None:
    text = FILE.replace("tool: command", "tool: ping").replace("    options: {OPTIONS}\n", "")
    with pytest.raises(
        InputError, match="claims of `value` are about measurements of traffic, flows, command; none is here"
    ):
        parse(text, "mine.yaml")


@pytest.mark.parametrize(
    "name", sorted({*SAMPLE_COLUMNS, *SUMMARY_COLUMNS, *SERIES_COLUMNS, "from", "to", "of", "path"})
)
def test_no_word_of_one_s_own_has_the_name_of_a_column(name: str) -> None:
    with pytest.raises(InputError, match=rf"options\.with\.?({name})?: "):
        experiment(f"{GOOD}, with: {{{name}: 3}}")


def test_addresses_and_words_stand_in_their_places() -> None:
    found = options(
        "run: \"curl -w '%{time_total}' ${A} {target}:{port}/{size} {{size}} {source} {duration}\", "
        "serve: [a, '{port}'], port: 80, with: {size: 10kB}, find: a, unit: ms, label: t, duration: 1500ms, timeout: 7s"
    )
    line = "curl -w '%{time_total}' ${A} 10.0.0.2:80/10kB {size} 10.0.0.1 1.5"
    assert command.argv(found, way()) == ("timeout", "-k", "2", "7", "sh", "-c", line)
    assert command.serves(found, way()) == Service(("a", "80"), 80)


def test_a_program_of_a_host_with_an_image_of_the_user_s_is_the_image_s() -> None:
    asked = experiment("run: echo 7, serve: wait, find: '[0-9.]+', unit: ms, label: time")
    plan = topology.parse("name: x\nchain: {hosts: [ams, bra], host: {image: a.tar}}\n", "x.yaml")
    around = Surroundings(plan, {}, lambda host: Endpoint(host, "", 0, ()), 0.004)
    todo = procedure(asked.measurements[0], matrix(asked, plan)[0], around)
    assert todo.client.argv[0] == "timeout"
    assert todo.client.argv[-5:] == (ENTER, "--", "sh", "-c", "echo 7")
    assert todo.beside[0].argv[-5:] == (ENTER, "--", "sh", "-c", "wait")


def test_a_program_on_an_overlay_is_the_host_s_own_in_the_container_s_network() -> None:
    asked = parse(FILE.replace("    ends: {from: host, to: host}\n", "").replace("OPTIONS", f"{GOOD}, serve: s"), "x")
    ends = {name: Endpoint(name, "10.9.0.9", 1450, ("nsenter", "--all", "-t", "9")) for name in ("ams", "bra")}
    around = Surroundings(PLAN, ends, lambda host: ends[host], 0.004)
    todo = procedure(asked.measurements[0], matrix(asked, PLAN)[0], around)
    inside = ("nsenter", "--net", "--all", "-t", "9")
    assert todo.client.argv[:6] == (*inside, "timeout")
    assert [call.argv[:5] for call in (*todo.beside, *todo.lead)] == [inside, inside]
    assert [(call.host, call.argv[0]) for call in todo.after] == [("bra", "sh")]
    assert not todo.before


@pytest.mark.parametrize(
    ("where", "stdout", "number"),
    [
        ("find: '[0-9.]+ ms'", "took 3.5 ms\n", None),
        ("find: '([0-9.]+) ms'", "took 3.5 ms\nthen 4 ms\n", 3.5),
        ("find: '(a|took) (?P<value>\\S+)'", "took 1e3 ms\n", 1000.0),
        ("find: '^-?[0-9]+$'", "x\n-42\n", -42.0),
        ("find: '^none$'", "took 3.5 ms\n", None),
        ("json: a.b", '{"a": {"b": 7}}', 7.0),
        ("json: 'max(a[*].b)'", '{"a": [{"b": 7}, {"b": 9.5}]}', 9.5),
        ("json: a", '{"a": "12"}', 12.0),
        ("json: a", '{"a": true}', None),
        ("json: a", '{"a": [1]}', None),
        ("json: a", '{"b": 1}', None),
        ("json: a", "[1", None),
        ("json: a", "", None),
        ("json: a", '{"a": 1e400}', None),
        ("json: sum(a)", '{"a": 3}', None),
    ],
)
def test_the_number_is_where_the_file_says(where: str, stdout: str, number: float | None) -> None:
    asked = options(f"run: x, {where}, unit: ms, label: time")
    if number is None:
        with pytest.raises(ParseError):
            command.parse(asked, stdout)
    else:
        assert command.parse(asked, stdout) == number


def test_an_output_in_which_nothing_is_found_is_shown() -> None:
    with pytest.raises(
        ParseError, match=re.escape("time: `find: ^took` finds nothing in what the program printed: none")
    ):
        command.parse(options("run: x, find: ^took, unit: ms, label: time"), "none of it\n")


def test_what_varies_fills_the_line() -> None:
    varied = experiment(f"{GOOD}, with: {{size: 1}}", "    vary: {size: [1, 2kB], duration: [1s]}\n")
    [measurement] = varied.measurements
    assert [*measurement.conditions] == ["size=1 duration=1s", "size=2kB duration=1s"]
    under = measurement.under("size=2kB duration=1s").options
    assert isinstance(under, command.CommandOptions)
    assert (under.values, under.duration_s) == ({"size": "2kB"}, 1.0)
    assert Experiment.model_validate(varied.file_values()) == varied


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("{sizes: [1, 2]}", r"vary\.sizes: no option 'sizes'; did you mean 'size'\?"),
        ("{size: [1, a b]}", r"vary\.size\[1\]: 'a b' is no word"),
        ("{run: [a, b]}", r"vary\.run: no option 'run'"),
    ],
)
def test_only_words_of_one_s_own_and_the_duration_vary(vary: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(f"{GOOD}, with: {{size: 1}}", f"    vary: {vary}\n")


class Here(RealTime):
    """Hosts that are all this machine: what is run on one is run here, with nothing of it replaced."""

    name = "here"
    pace_s = 0.004

    def __init__(self, served: Path) -> None:
        self._served = str(served)

    def run(
        self, host: str, argv: Sequence[str], *, timeout_s: float, check: bool = True, **_ignored: object
    ) -> CommandResult:
        require_known(host)
        if argv[0] == "ping":
            return CommandResult(host, tuple(argv), 0, "", "", 0.0)
        words = [word.replace(SERVED, self._served) for word in argv]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise CommandTimeout(host, argv, timeout_s, "", "") from error
        return CommandResult(host, tuple(argv), done.returncode, done.stdout, done.stderr, 0.1)


class Stage:
    recording = staticmethod(recorder_of())

    def join(self, overlay: str) -> Mapping[str, Endpoint]:
        return endpoints(PLAN, overlay)

    def verify(self, overlay: str) -> str:
        return overlay

    def overlay_record(self, overlay: str) -> Laid:
        return Laid()

    def leave(self, overlay: str) -> None: ...

    def second(self, host: str) -> Endpoint:
        raise InputError(host)

    def set_links(self, links: Links) -> None: ...

    def links_kept(self) -> AbstractContextManager[None]:
        return nullcontext()

    def play(self, moments: Sequence[Moment]) -> Iterable[tuple[float, Mapping[str, float]]]:
        return ()

    def queues(
        self, ends: Sequence[End], every_s: float, ended: Callable[[], bool]
    ) -> Iterable[tuple[float, Mapping[End, Queue]]]:
        return ()

    def set_link(self, name: str, *, up: bool, how: Outage = SILENT) -> None: ...

    def processor_seconds(self) -> Mapping[str, float]:
        return {}


def taken(tmp_path: Path, asked: Experiment) -> tuple[Path, list[dict[str, str]]]:
    directory = tmp_path / "results"
    begin(directory, asked, PLAN)
    run_together([directory], Here(tmp_path / "served"), Stage(), lambda _: None)  # type: ignore[arg-type]
    derive(directory)
    with (directory / "samples.csv").open(newline="") as stream:
        return directory, list(csv.DictReader(stream))


SERVER = (
    "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    "open('FILE', 'w').write(str(s.server_port)); s.serve_forever()"
)


def test_a_program_is_measured_beside_what_serves_it_and_stands_in_tables_figures_and_verdicts(tmp_path: Path) -> None:
    """A web server of Python's on a port of its own choosing, which the client reads from a file."""
    port = tmp_path / "port"
    said = {
        "serve": [sys.executable, "-c", SERVER.replace("FILE", str(port))],
        "run": f"while [ ! -s {port} ]; do sleep 0.02; done; curl -sSf -o /dev/null -w '%{{size_download}}' "
        f"http://127.0.0.1:$(cat {port})/",
        **{"find": r"\d+", "unit": "B", "label": "page", "better": "lower"},
    }
    text = FILE.replace("OPTIONS", json.dumps(said)[1:-1]).replace("over 0 ms", "over 10 B")
    asked = parse(text, "mine.yaml")
    directory, [row] = taken(tmp_path, asked)
    assert (row["ok"], row["unit"], row["tool"]) == ("true", "B", "command")
    assert float(row["value"]) > 100
    [verdict] = json.loads((directory / "claims.json").read_text())
    assert verdict["verdict"] == "undecided"
    assert verdict["detail"].startswith("it: 1 sample, and fewer than 5 decide nothing; (it ams to bra over none) ")
    assert "interval" not in verdict["detail"]
    assert "B," in (directory / "summary.csv").read_text().replace("\n", ",")
    page = render(directory).read_text()
    [chart] = chart_choice.charts(read(directory))
    assert [panel.label for panel in chart.panels] == ["page in B"]
    assert "Lower is better." in page
    raw = store.good(directory, row["sample"])
    assert raw is not None
    assert '"GET / HTTP/1.1" 200' in next(side.stderr for side in raw.around if side.name == "server")
    assert not [*tmp_path.glob("served*")]


@pytest.mark.parametrize(
    ("said", "error", "kept"),
    [
        ("run: 'echo 7; echo no >&2; exit 3'", "time: the program ended with code 3: no", "7\n"),
        (
            "run: 'echo half; exec sleep 30', timeout: 300ms",
            "time: the program did not end within 0.3 s; so far: half",
            "half\n",
        ),
        ("run: 'echo none'", "time: `find: [0-9.]+` finds nothing in what the program printed: none", "none\n"),
        ("run: 'echo .'", "time: '.' is no number; the program printed: .", ".\n"),
        ("run: [no-such-program]", "time: the program cannot be started: timeout: ", ""),
        ("run: 'echo 7', serve: 'echo bad >&2; exit 9'", "what serves on bra ended with code 9: bad", "7\n"),
    ],
)
def test_a_program_without_result_is_an_error_that_names_where_and_keeps_the_output(
    tmp_path: Path, said: str, error: str, kept: str
) -> None:
    asked = experiment(f"{said}, find: '[0-9.]+', unit: ms, label: time")
    directory, [row] = taken(tmp_path, asked)
    assert (row["ok"], row["attempts"]) == ("false", "3")
    assert row["error"].startswith(error)
    tried = store.earlier(directory, row["sample"])
    assert [raw.stdout for raw in tried] == [kept] * 3


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        ({"listening": 1}, "what serves on bra: nothing listens on port 1 within 10 s"),
        ({"listening": 1, "server": 9}, "what serves on bra ended with code 9: nothing listens on port 1 within 10 s"),
        ({"listening": 0, "server": 0}, ""),
    ],
)
def test_what_serves_and_does_not_listen_is_named(ended: Mapping[str, int], error: str) -> None:
    said = "nothing listens on port 1 within 10 s\n"
    sides = tuple(Side(name=name, host="bra", code=code, stdout="", stderr=said) for name, code in ended.items())
    raw = RawSample(
        sample="x", host="ams", argv=(), code=0, stdout="7", stderr="", started="", seconds=1, attempt=1, around=sides
    )
    assert outputs.failure(experiment().measurements[0], raw) == error


def test_of_an_endless_output_the_beginning_is_kept(tmp_path: Path) -> None:
    asked = experiment("run: 'yes 7 | head -c 6000000', find: '^[0-9]+$', unit: ms, label: time")
    directory, [row] = taken(tmp_path, asked)
    raw = store.good(directory, row["sample"])
    assert (row["value"], raw is not None) == ("7", True)
    assert raw is not None and raw.stdout.endswith(
        "7\n\n[1,000,000 characters more were printed, which are not kept]\n"
    )


def test_what_serves_is_ended_with_all_that_its_line_has_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    asked = experiment(
        f"run: 'cat {mark}', serve: 'sleep 77 & echo $! >{mark}; wait', find: '[0-9]+', unit: ms, label: t"
    )
    _, [row] = taken(tmp_path, asked)
    assert row["ok"] == "true"
    own = Path(f"/proc/{int(float(row['value']))}/cmdline")
    assert not (own.exists() and own.read_text())  # whom nobody has waited for has no command line any more


@pytest.mark.parametrize("port", [None, 5201])
def test_who_serves_is_waited_for_on_its_own_host(port: int | None) -> None:
    target = Endpoint("bra", "10.0.0.2", 1500, ("docker", "exec", "bra"))
    call = _listening(target, port)
    inside = ("nsenter", "--net", "docker", "exec", "bra")
    assert (call.name, call.host, call.argv[:5]) == (LISTENING, "bra", inside)
    assert call.argv[5:] == ("sleep", "0.2") if port is None else call.argv[-1] == "5201"


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("", "the output is no JSON, line 1: the program printed nothing"),
        ("\n  \n", "the output is no JSON, line 3: the program printed nothing"),
        ('{"a": 1}\nusage: x\n', 'the output is no JSON, line 2: {"a": 1}'),
        ("usage: x\nmore\n", "the output is no JSON, line 1: usage: x"),
    ],
)
def test_an_output_that_is_no_json_is_shown_with_its_line(stdout: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        command._by_path("a", stdout)
    assert str(caught.value) == message


ALSO = (
    "run: 'echo took=7 errors=2 {\\\"rate\\\":1.5}', find: 'took=([0-9]+)', unit: ms, label: time, better: lower, "
    "also: {errors: {find: 'errors=([0-9]+)', unit: requests, label: failed requests, better: lower}, "
    "share_percent: {find: 'rate.*?([0-9.]+)', factor: 10, unit: '%', label: share}}"
)


def test_a_program_has_several_numbers_in_samples_tables_figures_and_verdicts(tmp_path: Path) -> None:
    claims = (
        "  - {value: bounded, metric: errors, range: 1 to 3 requests}\n"
        "  - {value: bounded, metric: share_percent, range: under 5 %}\n"
    )
    directory, [row] = taken(tmp_path, experiment(ALSO, claims=claims))
    assert (row["value"], row["errors"], row["share_percent"]) == ("7", "2", "15")
    verdicts = json.loads((directory / "claims.json").read_text())
    assert ["2 requests" in each["detail"] for each in verdicts[:1]] == [True]
    assert "15 %" in verdicts[1]["detail"]
    page = render(directory).read_text()
    assert "failed requests in requests" in page
    [chart] = chart_choice.charts(read(directory))
    assert [panel.label for panel in chart.panels] == ["time in ms", "failed requests in requests", "share in %"]


def test_a_sample_without_one_of_its_numbers_has_failed(tmp_path: Path) -> None:
    _, [row] = taken(
        tmp_path, experiment(f"{GOOD}, also: {{lost: {{find: none, unit: '%', label: loss}}}}".replace("lost", "gone"))
    )
    assert row["ok"] == "false"
    assert "loss: `find: none` finds nothing in what the program printed: 7" in row["error"]


@pytest.mark.parametrize(
    ("also", "claim", "message"),
    [
        ("value: {find: x, unit: ms, label: t}", "", r"options\.also\.value: 'value' has another meaning already"),
        ("rtt_ms: {find: x, unit: ms, label: t}", "", r"options\.also\.rtt_ms: 'rtt_ms' has another meaning already"),
        ("seed: {find: x, unit: ms, label: t}", "", r"options\.also\.seed: 'seed' has another meaning already"),
        ("Own: {find: x, unit: ms, label: t}", "", r"options\.also\.Own: .*a column's name"),
        ("own: {unit: ms, label: t}", "", r"options\.also\.own: one of `find:` and `json:` says where"),
        ("own: {find: x, label: t}", "", r"options\.also\.own: 'unit' is missing"),
        ("own: {find: '(', unit: ms, label: t}", "", r"options\.also\.own\.find: .* is no regular expression"),
        ("own: {find: x, unit: ms, label: t, factor: 0}", "", r"options\.also\.own\.factor: times 0"),
        ("own: {find: x, unit: ms, label: t, colour: red}", "", r"options\.also\.own\.colour: unknown key"),
        (
            "own: {find: x, unit: ms, label: t}",
            "  - {value: bounded, metric: owm, range: under 5 ms}\n",
            r"claims\[0\]\.metric: no column 'owm'; did you mean 'own'\?",
        ),
        (
            "own: {find: x, unit: ms, label: t}",
            "  - {value: bounded, metric: own, range: under 5 s}\n",
            r"claims\[0\]\.range: 'under 5 s' needs the unit of it, ms",
        ),
        (
            "own: {find: x, unit: ms, label: t}",
            "  - {value: better, metric: own, than: {overlay: swarm}}\n",
            r"claims\[0\]\.value: it does not say what is `better:`",
        ),
    ],
)
def test_what_is_wrong_with_a_further_number_has_its_place(also: str, claim: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment(f"{GOOD}, also: {{{also}}}", claims=claim)
